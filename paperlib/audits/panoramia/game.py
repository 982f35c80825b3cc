"""The privacy game and its settings: three parts, of which the test part is judged once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from paperlib.attacks.learned import Attack, AttackInputs, BoostedTrees, FittedAttack, Labelled
from paperlib.attacks.learned.interface import joined
from paperlib.core import FloatArray, IntArray, RecallSearch, check_at_least, check_choice, check_confidence

Form = Literal["helpers", "paper"]
FORMS: tuple[Form, ...] = get_args(Form)
SEARCHES: tuple[RecallSearch, ...] = get_args(RecallSearch)
Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class AuditConfig:
    """Settings of audits.

    Attributes:
        train: Number of examples that attacks are trained on, half of them members, even, 2 or more.
        validation: Number of examples that trainings are stopped by (half of them) and that settings and
            restarts are chosen on (the others), half of them members, even, 4 or more.
        test: Number of examples that are judged, each a member by a fair coin: the paper's m.
        attacks: Settings to choose from, for the baseline and for the attack alike.
        form: "paper": the baseline sees the example and the synthetic helper, the attack the example and the
            target. "helpers": both see all helpers, and the attack the target besides, in whose place the
            baseline sees the placebo, if there is one.
        searches: Corrections for testing many recall levels; settings are chosen by the first.
        restarts: Trainings of the best setting, 1 or more, of which the best is kept.
        repetitions: Number of games, 1 or more, each with its own split, coins and attacks.
        confidence: Confidence level of each audit of each game, in (0, 1).
        seed: Seed of the first game, 0 or more.
        same_test: True judges all games on one test part, with one toss of its coins, so that they differ in
            what attacks learn from alone (the paper, Appendix D.1). Their deviation then leaves out the test
            part's share.
    """

    train: int
    validation: int
    test: int
    attacks: tuple[Attack, ...] = (BoostedTrees(), BoostedTrees(leaves=4, learning_rate=0.2))
    form: Form = "helpers"
    searches: tuple[RecallSearch, ...] = SEARCHES
    restarts: int = 5
    repetitions: int = 5
    confidence: float = 0.95
    seed: int = 0
    same_test: bool = False

    def __post_init__(self) -> None:
        check_choice("form", self.form, Form)
        check_confidence(self.confidence)
        if not self.searches:
            raise ValueError("searches: expected at least one of union, anytime")
        for search in self.searches:
            check_choice("searches", search, RecallSearch)
        check_at_least(1, restarts=self.restarts, repetitions=self.repetitions)


class TestPartError(RuntimeError):
    """Training after the test part was judged, or judging it twice."""

    __test__ = False  # not a test case, whatever pytest thinks of the name


class GameSplit:
    """A game on members and others, split into training, validation and test part.

    In the training and validation parts half are members. In the test part each place is filled by a fair
    coin, by a member or by another example, never shown twice: a whole game, as
    ``bounds.one_run.fair_coins`` describes. With ``twins`` the coin chooses between member i and other i, as
    in the pairs of the paper, and no pair of the test part is shown elsewhere. With ``learned`` the first so
    many members are for training and validation alone, and the others for the test part alone: helpers may
    have learned the first. The test part never leaves this object: `judge` hands it to trained attacks, once,
    and after that nothing can be trained.

    ``inputs`` leads from the name of each attack, or None for the baseline, to its inputs on all members and
    on all others. The sizes of the parts are numbers of examples, 2 or more, the first two even.
    Games of one ``test_seed`` share test part and coins; with None these follow ``seed`` as all else does.

    Raises:
        ValueError: Lengths that differ between attacks, other sizes, or too few examples for them.

    Source:
        PANORAMIA, Definition 2 and section 3.

    >>> members = others = AttackInputs(np.zeros((40, 1)), np.ones((40, 1)))
    >>> game = GameSplit({"loss": (members, others)}, train=10, validation=10, test=20, seed=0)
    >>> part = game.train("loss")
    >>> len(part.inputs), int(part.membership.sum())
    (10, 5)
    """

    def __init__(
        self,
        inputs: Mapping[str | None, tuple[AttackInputs, AttackInputs]],
        *,
        train: int,
        validation: int,
        test: int,
        seed: int,
        test_seed: int | None = None,
        twins: bool = False,
        learned: int = 0,
    ) -> None:
        members, others = _lengths(inputs)
        for name, size in (("train", train), ("validation", validation)):
            if size < 2 or size % 2:
                raise ValueError(f"{name}: expected an even number of examples, 2 or more, got {size}")
        if test < 2:
            raise ValueError(f"test: expected 2 examples or more, got {test}")
        rng = np.random.default_rng(seed if test_seed is None else test_seed)
        coins = rng.random(test) < 0.5
        fixed = (train + validation) // 2
        if twins and (members != others or test_seed is not None):
            raise ValueError("twins: expected as many others as members, and no test_seed")
        if learned and (twins or test_seed is not None):
            raise ValueError("learned: expected 0 with twins or test_seed")
        needed = (test, test) if twins else (int(coins.sum()), int((~coins).sum()))
        if learned:
            _check_enough("learned", learned, fixed, train, validation, test)
            _check_enough("members", members, learned + needed[0], train, validation, test)
        _check_enough("members", members, fixed + needed[0], train, validation, test)
        _check_enough("others", others, fixed + needed[1], train, validation, test)
        self._inputs = dict(inputs)
        self._members, self._others = rng.permutation(members), rng.permutation(others)
        if learned:
            may_learn = self._members < learned
            self._members = np.append(self._members[may_learn][:fixed], self._members[~may_learn])
        if twins:
            first, shown = self._members[:fixed], self._members[fixed : fixed + test]
            self._members, self._others = (np.append(first, shown[heads]) for heads in (coins, ~coins))
        elif test_seed is not None:
            again, heads = np.random.default_rng(seed), int(coins.sum())
            _deal_again(self._members, slice(fixed, fixed + heads), again)
            _deal_again(self._others, slice(fixed, fixed + test - heads), again)
        self._train, self._validation, self._coins = train, validation, coins
        self._judged = False

    def train(self, name: str | None) -> Labelled:
        """Training part of an attack, with membership; `TestPartError` after the test part was judged."""
        return self._open_part(name, 0, self._train // 2)

    def validation(self, name: str | None) -> Labelled:
        """The part on which an attack's settings are chosen, with membership; raises as `train`."""
        return self._open_part(name, self._train // 2, self._validation // 2)

    def judge(self, fitted: Mapping[str | None, FittedAttack]) -> tuple[dict[str | None, FloatArray], Flags]:
        """Scores of all attacks on the test part, once.

        Returns:
            Name of each attack to its scores, higher means member, shape (test,); and membership, True for a
            member, shape (test,). The order of the examples is random.

        Raises:
            TestPartError: It was judged before.
            ValueError: An attack that the game does not know, or scores that are not one finite number each.
        """
        if self._judged:
            raise TestPartError("the test part has been judged; draw another game from other examples")
        if unknown := [name for name in fitted if name not in self._inputs]:
            raise ValueError(f"fitted: expected attacks of {list(self._inputs)}, got {unknown}")
        self._judged = True
        return {name: self._scores(name, attack) for name, attack in fitted.items()}, self._coins.copy()

    def _scores(self, name: str | None, attack: FittedAttack) -> FloatArray:
        start, coins = (self._train + self._validation) // 2, self._coins
        count = int(coins.sum())
        members, others = self._inputs[name]
        scores = np.empty(coins.size)
        for flag, inputs, index in (
            (True, members, self._members[start : start + count]),
            (False, others, self._others[start : start + coins.size - count]),
        ):
            own = np.asarray(attack.scores(inputs.take(index)), dtype=np.float64)
            if own.shape != index.shape or not np.isfinite(own).all():
                raise ValueError(
                    f"{name or 'baseline'}: expected one finite score for each of {index.size} examples"
                )
            scores[coins == flag] = own
        return scores

    def _open_part(self, name: str | None, start: int, half: int) -> Labelled:
        if self._judged:
            raise TestPartError("the test part has been judged; nothing may be trained on this game any more")
        members, others = self._inputs[name]
        rows: tuple[IntArray, IntArray] = (
            self._members[start : start + half],
            self._others[start : start + half],
        )
        shown = joined(members.take(rows[0]), others.take(rows[1]))
        return Labelled(shown, np.arange(2 * half) < half)


def _deal_again(order: IntArray, kept: slice, rng: np.random.Generator) -> None:
    """Deal out all places anew but those of the test part."""
    rest = np.ones(len(order), dtype=bool)
    rest[kept] = False
    order[rest] = rng.permutation(order[rest])


def smallest_pool(train: int, validation: int, test: int) -> int:
    """Members (and others) that a game of this size needs, whatever its coins: all but once in a million.

    >>> smallest_pool(100, 100, 400)
    350
    """
    return (train + validation + test) // 2 + round(2.5 * test**0.5)


def sizes_for(pool: int, *, train: float = 0.3, validation: float = 0.1) -> dict[str, int]:
    """Sizes for `GameSplit`, for a pool of members and one of others, both at least this large.

    ``train`` and ``validation`` are shares of the pool, in (0, 1); the rest is judged, less a reserve for the
    coins.

    Raises:
        ValueError: Fewer than 30, or no share left to judge.

    >>> sizes_for(1000)
    {'train': 600, 'validation': 200, 'test': 1039}
    """
    if pool < 30:
        raise ValueError(
            f"members: expected 30 or more to split into training, validation and test, got {pool}"
        )
    if not (0 < train < 1 and 0 < validation < 1 and train + validation < 1):
        raise ValueError(
            f"train, validation: expected shares of less than 1 together, got {train}, {validation}"
        )
    learned, chosen = (2 * max(1, round(share * pool)) for share in (train, validation))
    test = largest_test(pool - (learned + chosen) // 2)
    return {"train": learned, "validation": chosen, "test": test}


def largest_test(pool: int) -> int:
    """Examples that a test part has whose coins find enough of both kinds in pools of this size.

    All but once in a million, and 2 at the least.

    >>> largest_test(600)
    1039
    """
    test = 2 * pool
    while test > 2 and smallest_pool(0, 0, test) > pool:
        test -= 1
    return max(2, test)


def _lengths(inputs: Mapping[str | None, tuple[AttackInputs, AttackInputs]]) -> tuple[int, int]:
    if not inputs:
        raise ValueError("inputs: expected at least one attack, got none")
    sizes = {name: (len(members), len(others)) for name, (members, others) in inputs.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"inputs: expected as many members and others for every attack, got {sizes}")
    return next(iter(sizes.values()))


def _check_enough(name: str, there: int, wanted: int, train: int, validation: int, test: int) -> None:
    if there < wanted:
        raise ValueError(
            f"{name}: {there} are too few for train={train}, validation={validation}, test={test}, which "
            f"need {wanted} of them (half of each, the test part by fair coins); ask for smaller parts, or "
            "bring more"
        )
