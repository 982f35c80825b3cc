"""Learned attacks: their inputs, labelled inputs, and the interface of every attack."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paperlib.core import FloatArray, MembershipScores

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
        object.__setattr__(self, "examples", np.asarray(examples))
        object.__setattr__(self, "losses", np.asarray(losses, dtype=np.float64))
        if self.losses.ndim != 2 or self.examples.ndim < 1 or len(self.losses) != len(self.examples):
            raise ValueError(
                f"losses: expected shape (n, k) with n = {len(np.atleast_1d(self.examples))} as in examples, "
                f"got {self.losses.shape}"
            )
        for name, values in (("examples", self.examples), ("losses", self.losses)):
            if values.dtype.kind in "fc":
                bad = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
                if bad.any():
                    raise ValueError(
                        f"{name}: {int(bad.sum())} of {len(values)} rows hold NaN or infinite values (first "
                        f"at row {int(bad.argmax())}); mend the model or drop these examples before auditing"
                    )

    def __len__(self) -> int:
        return len(self.losses)

    def take(self, index: ArrayLike) -> "AttackInputs":
        """The examples at ``index``, in this order."""
        rows = np.asarray(index)
        return AttackInputs(self.examples[rows], self.losses[rows])

    def without_losses(self) -> "AttackInputs":
        """The examples alone."""
        return AttackInputs(self.examples, self.losses[:, :0])

    def flat(self) -> NDArray[Any]:
        """Examples and losses as one table, shape (n, features)."""
        examples = self.examples.reshape(len(self), -1)
        return np.concatenate([examples.astype(np.float64, copy=False), self.losses], axis=1)


def joined(first: AttackInputs, second: AttackInputs) -> AttackInputs:
    """The examples of two, one after the other."""
    return AttackInputs(
        np.concatenate([first.examples, second.examples]), np.concatenate([first.losses, second.losses])
    )


@dataclass(frozen=True, eq=False)
class Labelled:
    """Examples whose membership the attack may know: the part it is trained on, or the validation part.

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
        if self.membership.shape != (len(self.inputs),):
            raise ValueError(
                f"membership: expected shape ({len(self.inputs)},) as in inputs, got {self.membership.shape}"
            )

    def value(self, scores: FloatArray) -> float:
        """The criterion of scores of these examples, shape (n,)."""
        return self.criterion(scores, self.membership)

    def halves(self) -> "tuple[Labelled, Labelled]":
        """Two parts that share no example, each with every other member and every other non-member."""
        order = np.argsort(self.membership, kind="stable")
        first, second = (
            replace(self, inputs=self.inputs.take(rows), membership=self.membership[rows])
            for rows in (order[::2], order[1::2])
        )
        return first, second


class FittedAttack(Protocol):
    """An attack that has been trained."""

    def scores(self, inputs: AttackInputs, /) -> FloatArray:
        """One score per example, higher means member, shape (n,)."""
        ...


@dataclass(frozen=True, eq=False)
class FittedClassifier:
    """A trained classifier of scikit-learn, and the table that it reads of the inputs, shape (n, columns)."""

    model: Any
    table: Callable[[AttackInputs], NDArray[Any]]

    def scores(self, inputs: AttackInputs) -> FloatArray:
        """Log odds of being a member."""
        return np.asarray(self.model.decision_function(self.table(inputs)), dtype=np.float64)


class Attack(Protocol):
    """Settings of an attack: a frozen dataclass that knows how to train itself."""

    @property
    def name(self) -> str:
        """Name in tables."""
        ...

    def fit(self, train: Labelled, validation: Labelled, *, seeds: Sequence[int]) -> Sequence[FittedAttack]:
        """Train once from each seed, each as if it were the only one, but for rounding.

        Args:
            train: Examples to train on.
            validation: Examples that may decide when training stops, by their ``value`` if the attack can;
                nothing else is seen.
            seeds: Seeds of the trainings, at least one.
        """
        ...


@dataclass(frozen=True)
class LossScore:
    """The attack that needs no training: minus the first column of the losses.

    Source:
        PANORAMIA, section 5.2, O(1): a threshold on the loss of the target.
    """

    name: str = "loss"

    def fit(self, train: Labelled, validation: Labelled, *, seeds: Sequence[int]) -> "list[LossScore]":
        """Return this attack itself for each seed."""
        return [self for _ in seeds]

    def scores(self, inputs: AttackInputs) -> FloatArray:
        """Minus the loss, shape (n,)."""
        if not inputs.losses.shape[1]:
            raise ValueError("losses: expected at least one column, the target's loss, got none")
        return -inputs.losses[:, 0]
