"""The privacy game and its settings: three parts, of which the test part is judged once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from paperlib.attacks.learned import Attack, BoostedTrees
from paperlib.attacks.learned.interface import AttackInputs, FittedAttack, Labelled, joined
from paperlib.core import FloatArray, IntArray
from paperlib.core.checks import check_at_least, check_choice, check_confidence
from paperlib.core.options import RecallSearch

Form = Literal["helpers", "paper"]
FORMS: tuple[Form, ...] = get_args(Form)
SEARCHES: tuple[RecallSearch, ...] = get_args(RecallSearch)
Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class AuditConfig:
    """Settings of audits: sizes of the parts of a game, attacks to choose from, and repetitions."""

    train: int  # half of them members, even
    # half of them members; one half stops trainings, the other chooses settings and restarts
    validation: int
    test: int  # each a member by a fair coin: the paper's m
    attacks: tuple[Attack, ...] = (BoostedTrees(), BoostedTrees(leaves=4, learning_rate=0.2))
    # "paper": the baseline sees the example and the synthetic helper, the attack the example and
    # the target. "helpers": both see all helpers; the attack also sees the target, the baseline the
    # placebo in its place.
    form: Form = "helpers"
    searches: tuple[RecallSearch, ...] = SEARCHES  # settings are chosen by the first
    restarts: int = 5  # trainings of the best setting, of which the best is taken
    repetitions: int = 5  # games, each with its own split, coins and attacks
    confidence: float = 0.95  # of each audit of each game
    seed: int = 0  # of the first game
    # All games have one test part and one toss of its coins, and differ in what attacks learn from
    # alone (the paper, Appendix D.1): their deviation then leaves out the test part's share.
    same_test: bool = False

    def __post_init__(self) -> None:
        """Refuse (ValueError) unknown forms and searches, and numbers out of range."""
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
    """A game on members and others: parts to train, to choose and to judge (PANORAMIA, Definition
    2).

    In the training and validation parts half are members. In the test part each place is filled by
    a fair coin, by a member or by another example, never shown twice: a whole game, as
    ``bounds.one_run.fair_coins`` describes. It never leaves this object: `judge` hands it to
    trained attacks, once, and after that nothing can be trained.

    Args:
        inputs: The name of each attack, None for the baseline, to its inputs on members and others.
        train, validation: Examples of these parts, even numbers, 2 or more.
        test: Examples of the test part, 2 or more.
        seed: Of the split and, where ``test_seed`` is None, of the coins.
        test_seed: Games of one test seed share test part and coins.
        twins: The coin chooses between member i and other i, as in the pairs of the paper, and no
            pair of the test part is shown elsewhere.
        learned: The first so many members are for training and validation alone, since helpers may
            have learned them, and the others for the test part alone; 0 deals all of them.

    Raises:
        ValueError: Attacks with other numbers of examples, too few of them, or options that do not
            go together.
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
        """Toss the coins of the test part, and deal members and others to the parts; arguments and
        errors are those of the class.
        """
        members, others = _pool_sizes(inputs)
        _check_parts(train, validation, test)
        if twins and (members != others or test_seed is not None):
            raise ValueError("twins: expected as many others as members, and no test_seed")
        if learned and (twins or test_seed is not None):
            raise ValueError("learned: expected 0 with twins or test_seed")
        rng = np.random.default_rng(seed if test_seed is None else test_seed)
        coins = rng.random(test) < 0.5
        heads = int(coins.sum())
        # Training and validation parts take the first places of both pools, the test part the next.
        before_test = (train + validation) // 2
        test_members, test_others = (test, test) if twins else (heads, test - heads)
        sizes = f"train={train}, validation={validation}, test={test}"
        if learned:
            _check_enough("learned", learned, before_test, sizes)
            _check_enough("members", members, learned + test_members, sizes)
        _check_enough("members", members, before_test + test_members, sizes)
        _check_enough("others", others, before_test + test_others, sizes)
        self._inputs = dict(inputs)
        # Numbers of members and of others in the order of the parts.
        self._members = rng.permutation(members)
        self._others = rng.permutation(others)
        if learned:  # the first parts from members that helpers learned, the test from the others
            may_learn = self._members < learned
            to_learn = self._members[may_learn][:before_test]
            self._members = np.append(to_learn, self._members[~may_learn])
        if twins:  # one order for both: the coin chooses which of the two is shown
            first = self._members[:before_test]
            pairs = self._members[before_test : before_test + test]
            self._members = np.append(first, pairs[coins])
            self._others = np.append(first, pairs[~coins])
        elif test_seed is not None:  # the test part stays, and ``seed`` deals all else
            again = np.random.default_rng(seed)
            _deal_again(self._members, slice(before_test, before_test + heads), again)
            _deal_again(self._others, slice(before_test, before_test + test - heads), again)
        self._train = train
        self._validation = validation
        self._coins = coins
        self._judged = False

    def train(self, name: str | None) -> Labelled:
        """Training part of an attack, with membership; `TestPartError` after the test part was
        judged.
        """
        return self._open_part(name, 0, self._train // 2)

    def validation(self, name: str | None) -> Labelled:
        """The part on which an attack's settings are chosen, with membership; `TestPartError` after
        the test part was judged.
        """
        return self._open_part(name, self._train // 2, self._validation // 2)

    def judge(
        self, fitted: Mapping[str | None, FittedAttack]
    ) -> tuple[dict[str | None, FloatArray], Flags]:
        """Scores of all attacks on the test part, (m,) by name, in random order, and membership,
        (m,); once.

        Raises:
            TestPartError: The test part has been judged before.
            ValueError: An attack whose inputs are unknown, or scores that are not finite.
        """
        if self._judged:
            raise TestPartError(
                "the test part has been judged; draw another game from other examples"
            )
        unknown = [name for name in fitted if name not in self._inputs]
        if unknown:
            raise ValueError(f"fitted: expected attacks of {list(self._inputs)}, got {unknown}")
        self._judged = True
        start = (self._train + self._validation) // 2
        coins = self._coins.copy()
        heads = int(coins.sum())
        members = self._members[start:][:heads]
        others = self._others[start:][: coins.size - heads]
        scores = {name: np.empty(coins.size) for name in fitted}
        for name, attack in fitted.items():
            member_inputs, other_inputs = self._inputs[name]
            scores[name][coins] = _checked_scores(name, attack, member_inputs, members)
            scores[name][~coins] = _checked_scores(name, attack, other_inputs, others)
        return scores, coins

    def _open_part(self, name: str | None, start: int, half: int) -> Labelled:
        """``half`` of the members and as many others, from place ``start`` on, as the attack
        ``name`` sees them, with membership; `TestPartError` after the test part was judged.
        """
        if self._judged:
            raise TestPartError(
                "the test part has been judged; nothing may be trained on this game any more"
            )
        members, others = self._inputs[name]
        rows = slice(start, start + half)
        inputs = joined(members.take(self._members[rows]), others.take(self._others[rows]))
        return Labelled(inputs, np.arange(2 * half) < half)


def _pool_sizes(
    inputs: Mapping[str | None, tuple[AttackInputs, AttackInputs]],
) -> tuple[int, int]:
    """Numbers of members and of others; a ValueError where they are not the same for every attack,
    or there is no attack.
    """
    if not inputs:
        raise ValueError("inputs: expected at least one attack, got none")
    counts = {name: (len(members), len(others)) for name, (members, others) in inputs.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(
            f"inputs: expected as many members and others for every attack, got {counts}"
        )
    return next(iter(counts.values()))


def _check_parts(train: int, validation: int, test: int) -> None:
    """Refuse (ValueError) parts to learn from that cannot be members by half, and a test part of
    fewer than two examples.
    """
    for name, size in (("train", train), ("validation", validation)):
        if size < 2 or size % 2:
            raise ValueError(f"{name}: expected an even number of examples, 2 or more, got {size}")
    if test < 2:
        raise ValueError(f"test: expected 2 examples or more, got {test}")


def _check_enough(name: str, size: int, least: int, sizes: str) -> None:
    """Refuse (ValueError) fewer than ``least`` of the examples called ``name``, of which there are
    ``size``, for a game of these ``sizes``.
    """
    if size < least:
        raise ValueError(
            f"{name}: {size} are too few for {sizes}, which need {least} of them (half of each, "
            "the test part by fair coins); ask for smaller parts, or bring more"
        )


def _checked_scores(
    name: str | None, attack: FittedAttack, inputs: AttackInputs, index: IntArray
) -> FloatArray:
    """An attack's scores of the examples of these numbers, ``index``, shape (k,); a ValueError
    where they are not finite, or others than k. The ``name`` None is the baseline's.
    """
    scores = np.asarray(attack.scores(inputs.take(index)), dtype=np.float64)
    if scores.shape != index.shape or not np.isfinite(scores).all():
        raise ValueError(
            f"{name or 'baseline'}: expected one finite score for each of {index.size} examples"
        )
    return scores


def _deal_again(order: IntArray, test: slice, rng: np.random.Generator) -> None:
    """Permute ``order``, the numbers of a pool's examples, in place, but for the places of the test
    part.
    """
    rest = np.ones(len(order), dtype=bool)
    rest[test] = False
    order[rest] = rng.permutation(order[rest])


def smallest_pool(train: int, validation: int, test: int) -> int:
    """Members (and others) that a game of this size needs, whatever its coins: all but once in a
    million.
    """
    # Of the test part half, and 2.5 sqrt(test), which is five standard deviations of its coins.
    return (train + validation + test) // 2 + round(2.5 * test**0.5)


def sizes_for(pool: int) -> dict[str, int]:
    """Sizes for `GameSplit` and such pools: 30 % to train on, 10 % to choose on, the rest to judge;
    a ValueError for a pool below 30.
    """
    if pool < 30:
        raise ValueError(
            f"members: expected 30 or more to split into training, validation and test, got {pool}"
        )
    train, validation = (2 * round(share * pool) for share in (0.3, 0.1))
    return {
        "train": train,
        "validation": validation,
        "test": largest_test(pool - (train + validation) // 2),
    }


def largest_test(pool: int) -> int:
    """The largest test part, 2 or more, whose coins have enough of both kinds all but once in a
    million.
    """
    test = 2 * pool
    while test > 2 and smallest_pool(0, 0, test) > pool:
        test -= 1
    return max(2, test)
