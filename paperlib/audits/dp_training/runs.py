"""Short trainings of a user's loop that differ in one record, and the gradients that they
release.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from paperlib.core.checks import FloatArray

Train = Callable[[Any, int], Any]

_OUTLIER = 100.0
_MOST_CANARIES, _MOST_SEEDS = 8, 20


@dataclass(frozen=True)
class Runs:
    """Released gradients, each (steps, parameters), of trainings whose parameters are held at their
    start.
    """

    canaries: list[FloatArray]  # one for each canary in place of record 0, all with one seed
    null: FloatArray | None  # with the record without a gradient in its place
    pairs: list[tuple[FloatArray, FloatArray]]  # two canaries, by seed
    quiet: FloatArray  # every record the same
    quiet_too: FloatArray  # of another seed
    widths: list[int]  # numbers of each parameter
    moved: list[int]  # steps made by trainings that are not held, by canary


def outliers(data: Any) -> list[Any]:
    """Records times 100 and times -100, so that of two signs one is far on the wrong side."""
    columns = data if isinstance(data, tuple) else (data,)
    found: list[Any] = []
    for at in range(_MOST_CANARIES // 2):
        for sign in (_OUTLIER, -_OUTLIER):
            first = columns[0][at]
            first = first * sign if "float" in str(getattr(first, "dtype", "")) else first
            found.append(
                (first, *(column[at] for column in columns[1:]))
                if isinstance(data, tuple)
                else first
            )
    return found


def _with(data: Any, record: Any, where: Any = 0) -> Any:
    """A copy of the data with a record at a place, or at every place."""
    if isinstance(data, tuple):
        return tuple(
            _with(column, value, where) for column, value in zip(data, record, strict=True)
        )
    copy: Any = data.clone() if hasattr(data, "clone") else np.array(data)
    copy[where] = copy.new_tensor(_value(record)) if hasattr(copy, "new_tensor") else record
    return copy


def _value(record: Any) -> Any:
    """A record's values without what torch keeps beside them."""
    return record.detach().cpu().numpy() if hasattr(record, "detach") else record


def _released(train: Train, data: Any, seed: int, *, hold: bool) -> tuple[FloatArray, list[int]]:
    """Gradients given to the optimizer, (steps, parameters), and numbers of each parameter.

    With ``hold``, the optimizer gets gradients of 0 instead, so that the parameters stay.
    """
    import torch  # here, so that audits of scores do not wait for it
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    rows: list[FloatArray] = []
    widths: list[list[int]] = []

    def read(optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        trained = [
            one for group in optimizer.param_groups for one in group["params"] if one.requires_grad
        ]
        flat = [
            (torch.zeros_like(one) if one.grad is None else one.grad).flatten() for one in trained
        ]
        rows.append(torch.cat(flat).detach().cpu().double().numpy())
        widths.append([one.numel() for one in trained])
        for one in trained if hold else ():
            if one.grad is not None:
                one.grad = torch.zeros_like(one.grad)

    handle = register_optimizer_step_pre_hook(read)
    try:
        returned = train(data, seed)
    finally:
        handle.remove()
    if rows:
        if len({tuple(width) for width in widths}) > 1:
            raise ValueError("train: expected one optimizer with the same parameters in every step")
        return np.array(rows), widths[0]
    array = np.array([_value(row) for row in returned] if returned is not None else [], dtype=float)
    if array.ndim != 2:
        raise ValueError(
            "train: no torch optimizer made a step; expected one, or the gradients released at "
            "learning rate 0 as the returned value, shape (steps, parameters), got shape "
            f"{array.shape}"
        )
    return array, [array.shape[1]]


def _held(train: Train, data: Any, seed: int) -> FloatArray:
    rows = _released(train, data, seed, hold=True)[0]
    if not np.isfinite(rows).all():
        raise ValueError("train: gradients that are not finite; use smaller canaries")
    return rows


def held_runs(
    train: Train, data: Any, canaries: list[Any], null: Any, seeds: int, seen: float
) -> Runs:
    """The trainings that most checks look at; a step that changes by less than ``seen`` held no
    canary.
    """
    held = partial(_held, train)
    first, widths = _released(train, _with(data, canaries[0]), 0, hold=True)
    again = held(_with(data, canaries[0]), 0)
    if again.shape != first.shape or np.abs(again - first).max() > seen / 10:
        raise ValueError(
            "train: two trainings of the same data and seed differ; expected the seed to decide "
            "weights, batches and noise, as by torch.manual_seed(seed)"
        )
    for seed in range(_MOST_SEEDS):  # a short training may not meet the record
        rest = [held(_with(data, canary), seed) for canary in canaries[1:]]
        of_canaries = [held(_with(data, canaries[0]), seed) if seed else again, *rest]
        apart = [changes(one, of_canaries[0]).max() for one in of_canaries]
        if max(apart) > seen:
            break
    else:
        raise ValueError(
            "canaries: they change no step; expected records with large, different gradients"
        )
    far = int(np.argmax(apart))
    pairs = [
        (held(_with(data, canaries[0]), other), held(_with(data, canaries[far]), other))
        for other in range(1, seeds + 1)
    ]
    if np.array_equal(pairs[0][0], first):
        raise ValueError(
            "train: two seeds give the same training; expected batches and noise by the seed"
        )
    record = tuple(column[0] for column in data) if isinstance(data, tuple) else data[0]
    alike = _with(data, record, slice(None))
    of_null = None if null is None else held(_with(data, null), seed)
    moved = [len(_released(train, _with(data, one), seed, hold=False)[0]) for one in canaries]
    return Runs(of_canaries, of_null, pairs, held(alike, 0), held(alike, 1), widths, moved)


def along(
    train: Train, data: Any, canary: Any, null: Any, seed: int, *, member: bool
) -> FloatArray:
    """How far each step went in the direction of a canary's gradient, among records without a
    gradient.
    """
    none, every = (_with(data, record, slice(None)) for record in (null, canary))
    empty = _held(train, none, seed)
    towards = (_held(train, every, seed) - empty).sum(0)  # of one seed, so without the noise
    released = _held(train, _with(none, canary), seed) if member else empty
    return released @ towards / max(float(np.linalg.norm(towards)), 1e-300)


def changes(one: FloatArray, other: FloatArray) -> FloatArray:
    """By how much two trainings differ in each step that both made."""
    least = min(len(one), len(other))
    return np.linalg.norm(one[:least] - other[:least], axis=1)
