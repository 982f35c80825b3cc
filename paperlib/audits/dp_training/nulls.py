"""Whether a record that is said to have no gradient can stand for no record, in a user's loop."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import stdtr

from paperlib.audits.dp_training.loop import Loop, changes, interplay, with_record
from paperlib.core.checks import FloatArray

NullUse = Literal["none", "plain", "among clipped", "changes others", "has a gradient"]
"""How a null is used: not at all, as it is, by what a canary adds among records that are clipped,
or not, since it changes the gradients of other records or has a gradient itself.
"""

_EXACT = 0.05  # of the change seen: a null that changes others by less cannot mislead on clipping
_LEVEL = 1e-5  # of the test whether a null has a gradient; its error costs power and accuses nobody


@dataclass(frozen=True)
class Among:
    """A canary in place of record 0 of some data, and the gradients of this training."""

    data: Any  # what the user's loop trains on
    canary: Any  # one of its records
    seed: int  # of the training
    rows: FloatArray  # gradient of each step, shape (steps, parameters)


def null_rows(
    loop: Loop, null: Any, among: tuple[Among, Among], is_fault: bool, seen: float
) -> tuple[FloatArray | None, NullUse]:
    """Gradients of the training with no record in place of record 0, shape (steps, parameters),
    and how the null was used for it; None in their place where the null cannot stand for no record.

    It can if the canary in its place adds the same to two trainings of other records, and if the
    steps of a training on nulls alone have no direction in common. A null that changes others is
    tried among copies of the canary, which are clipped (`_among_clipped`).

    Args:
        loop: The user's training.
        null: A record that is said to have no gradient.
        among: Two trainings with a canary, on different other records.
        is_fault: Whether ordinary records change each other's gradients too. Then the null cannot
            be judged by what it changes: it is taken as it is, if its gradients are finite.
        seen: The least change of a step that holds a record, a Euclidean norm: what the canary adds
            is the same if it differs by a small share of this.
    """
    first, second = among
    rows = loop.read(with_record(first.data, null), first.seed)
    other = loop.read(with_record(second.data, null), second.seed)
    adds_the_same = interplay(first.rows, rows, second.rows, other).max() <= _EXACT * seen
    if is_fault:
        return (rows, "plain") if np.isfinite(rows).all() else (None, "changes others")
    if not adds_the_same:
        return _among_clipped(loop, null, first, seen)
    if _has_gradient(loop.read(with_record(first.data, null, slice(None)), first.seed)):
        return None, "has a gradient"
    return rows, "plain"


def _has_gradient(rows: FloatArray) -> bool:
    """Whether the steps of a training with nulls alone have a direction in common.

    Without a gradient they are noise, and do not go along the mean of the others. Steps that are
    not finite, as of a mean over no record, or all the same, as noise of one seed is, say nothing.
    """
    if len(rows) < 8 or not np.isfinite(rows).all() or np.allclose(rows, rows[0]):
        return False
    # One half of the steps gives a direction, and a one-sided t-test asks whether the other half,
    # which is independent of it, goes along it.
    mean = rows[1::2].mean(0)
    direction = mean / max(float(np.linalg.norm(mean)), 1e-300)
    along = rows[::2] @ direction
    error = float(along.std(ddof=1)) / len(along) ** 0.5
    p_value = float(stdtr(len(along) - 1, -along.mean() / max(error, 1e-300)))
    return p_value < _LEVEL


def _among_clipped(
    loop: Loop, null: Any, first: Among, seen: float
) -> tuple[FloatArray | None, NullUse]:
    """Gradients of the training with no record in place of record 0, shape (steps, parameters),
    from what the canary adds among copies of itself, and how the null was used; None where this
    fails.

    The gradients of the copies are so large that a factor on them, such as by a mean that leaves
    out the null, changes nothing once they are clipped. If they are not so large, what the canary
    adds depends on how many of the others are nulls, or is 0, as the mean makes up for it.
    """
    alike = with_record(first.data, first.canary, slice(None))
    half_null = with_record(alike, null, slice(1, None, 2))
    added: list[FloatArray] = []  # by the canary to each step, (steps, parameters), among each
    for others in (alike, half_null):
        with_canary = loop.read(with_record(others, first.canary), first.seed)
        with_null = loop.read(with_record(others, null), first.seed)
        # A step that holds nulls alone is a mean over no record: it says nothing.
        held = np.isfinite(with_null).all(axis=1, keepdims=True)
        added.append(np.where(held, with_canary - with_null, 0))
    largest = float(np.linalg.norm(added[0], axis=1).max())
    if largest <= seen or changes(*added).max() > _EXACT * seen:
        return None, "changes others"
    return first.rows - added[0], "among clipped"
