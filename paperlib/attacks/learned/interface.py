"""Learned attacks: their inputs, the interface of every attack, boosted trees, and the choice of
the best.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from paperlib.core import FloatArray, MembershipScores
from paperlib.core.checks import check_at_least

Criterion = Callable[[FloatArray, NDArray[np.bool_]], float]
"""Function of scores and membership, higher is better."""


def area_under_curve(scores: FloatArray, membership: NDArray[np.bool_]) -> float:
    """The AUC, in [0, 1]."""
    return MembershipScores.from_labels(scores, membership).auc()


@dataclass(frozen=True, eq=False)
class AttackInputs:
    """All that an attack may see of n examples.

    Args:
        examples: The examples themselves: features, pixels or tokens, shape (n, ...).
        losses: Losses and other numbers that models give for them, shape (n, k); k may be 0.

    Raises:
        ValueError: The lengths differ, ``losses`` is not a table, or a number is NaN or infinite.
    """

    examples: NDArray[Any]
    losses: FloatArray

    def __init__(self, examples: ArrayLike, losses: ArrayLike) -> None:
        """Keep both as arrays; a ValueError where the lengths differ or a number is not finite."""
        object.__setattr__(self, "examples", np.asarray(examples))
        object.__setattr__(self, "losses", np.asarray(losses, dtype=np.float64))
        if (
            self.losses.ndim != 2
            or self.examples.ndim < 1
            or len(self.losses) != len(self.examples)
        ):
            raise ValueError(
                f"losses: expected shape (n, k) with n = {len(np.atleast_1d(self.examples))} as in "
                f"examples, got {self.losses.shape}"
            )
        _check_finite_rows("examples", self.examples)
        _check_finite_rows("losses", self.losses)

    def __len__(self) -> int:
        return len(self.losses)

    def take(self, index: ArrayLike) -> "AttackInputs":
        """The examples at ``index``, row numbers of shape (k,), in this order; an IndexError for a
        number that is no row.
        """
        rows = np.asarray(index)
        return AttackInputs(self.examples[rows], self.losses[rows])

    def without_losses(self) -> "AttackInputs":
        """The examples alone."""
        return AttackInputs(self.examples, self.losses[:, :0])

    def flat(self) -> NDArray[Any]:
        """Examples and losses as one table, shape (n, features)."""
        examples = self.examples.reshape(len(self), -1)
        return np.concatenate([examples.astype(np.float64, copy=False), self.losses], axis=1)


def _check_finite_rows(name: str, values: NDArray[Any]) -> None:
    """Refuse (ValueError) rows, (n, ...), with NaN or infinite numbers."""
    if values.dtype.kind not in "fc":  # whole numbers and text have no such values
        return
    bad = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
    if bad.any():
        raise ValueError(
            f"{name}: {int(bad.sum())} of {len(values)} rows hold NaN or infinite "
            f"values (first at row {int(bad.argmax())}); mend the model or drop these "
            "examples before auditing"
        )


def joined(first: AttackInputs, second: AttackInputs) -> AttackInputs:
    """The n examples of the first and the m of the second, one after the other, (n + m, ...); a
    ValueError where their shapes or numbers of losses differ.
    """
    examples = np.concatenate([first.examples, second.examples])
    return AttackInputs(examples, np.concatenate([first.losses, second.losses]))


@dataclass(frozen=True, eq=False)
class Labelled:
    """Examples whose membership the attack may know: the part it is trained on, or the validation
    part.

    Args:
        inputs: Attack inputs of n examples.
        membership: True for a member, shape (n,).
        criterion: Function that says how good an attack's scores of these examples are.

    Raises:
        ValueError: The lengths differ.
    """

    inputs: AttackInputs
    membership: NDArray[np.bool_]
    criterion: Criterion = area_under_curve

    def __post_init__(self) -> None:
        """Refuse (ValueError) memberships that are not one per input, shape (n,)."""
        if self.membership.shape != (len(self.inputs),):
            raise ValueError(
                f"membership: expected shape ({len(self.inputs)},) as in inputs, got "
                f"{self.membership.shape}"
            )

    def value(self, scores: FloatArray) -> float:
        """The criterion of scores of these examples, shape (n,)."""
        return self.criterion(scores, self.membership)

    def halves(self) -> "tuple[Labelled, Labelled]":
        """Two parts that share no example, each with every other member and every other
        non-member.
        """
        order = np.argsort(self.membership, kind="stable")  # non-members, then members
        return self._take(order[::2]), self._take(order[1::2])

    def _take(self, rows: NDArray[np.int64]) -> "Labelled":
        """The examples at ``rows``, in this order."""
        return replace(self, inputs=self.inputs.take(rows), membership=self.membership[rows])


class FittedAttack(Protocol):
    """An attack that has been trained."""

    def scores(self, inputs: AttackInputs, /) -> FloatArray:
        """One score per example, higher means member, shape (n,), of inputs of the shapes of the
        training.
        """
        ...


@dataclass(frozen=True, eq=False)
class FittedClassifier:
    """A trained classifier of scikit-learn, and the table that it reads of the inputs, shape (n,
    columns).
    """

    model: Any
    table: Callable[[AttackInputs], NDArray[Any]]

    def scores(self, inputs: AttackInputs) -> FloatArray:
        """Log odds of being a member, shape (n,); a ValueError for a table of another width than
        that of the training.
        """
        return np.asarray(self.model.decision_function(self.table(inputs)), dtype=np.float64)


class Attack(Protocol):
    """Settings of an attack: a frozen dataclass that knows how to train itself."""

    @property
    def name(self) -> str:
        """Name in tables."""
        ...

    def fit(
        self, train: Labelled, validation: Labelled, *, seeds: Sequence[int]
    ) -> Sequence[FittedAttack]:
        """Train once from each seed, each as if it were the only one, but for rounding.

        The validation part may decide when training stops, by its ``value`` if the attack can.

        Raises:
            ValueError: Inputs of a shape that the attack does not take.
        """
        ...


@dataclass(frozen=True)
class LossScore:
    """The attack that needs no training: minus the first column of the losses.

    Source:
        PANORAMIA, section 5.2, O(1): a threshold on the loss of the target.
    """

    name: str = "loss"

    def fit(
        self, train: Labelled, validation: Labelled, *, seeds: Sequence[int]
    ) -> "list[LossScore]":
        """Return this attack itself for each seed."""
        return [self for _ in seeds]

    def scores(self, inputs: AttackInputs) -> FloatArray:
        """Minus the loss, shape (n,); a ValueError where there is no column of losses."""
        if not inputs.losses.shape[1]:
            raise ValueError("losses: expected at least one column, the target's loss, got none")
        return -inputs.losses[:, 0]


@dataclass(frozen=True, kw_only=True)
class BoostedTrees:
    """Histogram gradient boosting, stopped early on the validation part.

    Attributes:
        rounds: Largest number of boosting rounds.
        smallest_leaf: Smallest number of examples in a leaf.
        penalty: L2 penalty on leaf values.
        columns: Share of the columns that a split may choose from; below 1 the seed matters.

    Source:
        PANORAMIA, appendix C.3 (gradient boosting with a grid search).

    >>> inputs = AttackInputs(np.zeros((80, 1)), np.arange(80.0)[:, None])
    >>> part = Labelled(inputs, np.arange(80) < 40)
    >>> [trees] = BoostedTrees(smallest_leaf=5).fit(part, part, seeds=[0])
    >>> bool(trees.scores(inputs)[:40].min() > trees.scores(inputs)[40:].max())
    True
    """

    learning_rate: float = 0.1
    rounds: int = 100
    leaves: int = 15
    smallest_leaf: int = 20
    penalty: float = 1.0
    columns: float = 0.7

    @property
    def name(self) -> str:
        """Name in tables."""
        return f"boosted trees ({self.leaves} leaves, rate {self.learning_rate:g})"

    def fit(
        self, train: Labelled, validation: Labelled, *, seeds: Sequence[int]
    ) -> list[FittedClassifier]:
        """One classifier per seed, in their order, trained on examples and losses as one table;
        rounds end after 10 without a better log loss on the validation part.
        """
        stop: Any = True  # scikit-learn's own annotation has only the default, "auto"
        untrained: Any = partial(
            HistGradientBoostingClassifier,
            learning_rate=self.learning_rate,
            max_iter=self.rounds,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=self.smallest_leaf,
            l2_regularization=self.penalty,
            max_features=self.columns,
            early_stopping=stop,
            n_iter_no_change=10,
        )
        data = (train.inputs.flat(), train.membership)
        held = {"X_val": validation.inputs.flat(), "y_val": validation.membership}
        models = [untrained(random_state=seed).fit(*data, **held) for seed in seeds]
        return [FittedClassifier(model, AttackInputs.flat) for model in models]


def fit_best(
    attacks: Sequence[Attack],
    train: Labelled,
    validation: Labelled,
    *,
    criterion: Criterion,
    restarts: int = 5,
    seed: int = 0,
) -> FittedAttack:
    """Train attacks, and keep the one that does best on the validation part.

    Every setting is trained once; the best of them is trained again from other seeds until it has
    been trained ``restarts`` times, and the best of these is kept, the first of equals. One half of
    the validation part decides when a training stops, the other half compares the trained attacks.

    Args:
        validation: Examples to stop trainings and compare settings, two members and two others or
            more.
        criterion: Function of scores and membership, higher is better, such as the bound itself.
        restarts: Number of trainings of the best setting, 1 or more, from ``seed``, ``seed + 1``
            and so on.

    Raises:
        ValueError: No attack, no restart, too few members or others, or scores that are not finite.

    Source:
        PANORAMIA, appendix C.1 (stopping by the bound) and C.2 (the best of 5 initialisations),
        there on one validation part.
    """
    if not attacks:
        raise ValueError("attacks: expected at least one, got none")
    check_at_least(1, restarts=restarts)
    _check_members_and_others("train", train, 1)
    _check_members_and_others("validation", validation, 2)
    stopping, choice = replace(validation, criterion=criterion).halves()

    def value(attack: Attack, fitted: FittedAttack) -> float:
        """The criterion of a trained attack on the half that compares; a ValueError for NaN and
        infinities.
        """
        scores = fitted.scores(choice.inputs)
        if not np.isfinite(scores).all():
            raise ValueError(
                f"attacks: {attack.name} gave scores that are NaN or infinite; change its settings"
            )
        return choice.value(scores)

    candidates = [attack.fit(train, stopping, seeds=[seed])[0] for attack in attacks]
    values = [value(attack, fitted) for attack, fitted in zip(attacks, candidates, strict=True)]
    if restarts > 1:
        best = attacks[int(np.argmax(values))]
        again = best.fit(train, stopping, seeds=range(seed + 1, seed + restarts))
        candidates += again
        values += [value(best, fitted) for fitted in again]
    return candidates[int(np.argmax(values))]


def _check_members_and_others(name: str, labelled: Labelled, least: int) -> None:
    """Refuse (ValueError) fewer than ``least`` members, or fewer others."""
    members = int(labelled.membership.sum())
    others = labelled.membership.size - members
    if min(members, others) < least:
        raise ValueError(
            f"{name}: expected {least} or more members and as many others, got {members} "
            f"and {others}"
        )
