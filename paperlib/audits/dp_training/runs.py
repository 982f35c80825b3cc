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
_MOST_CANARIES = 8
_MOST_SEEDS = 20


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
    canaries: list[Any] = []
    for row in range(_MOST_CANARIES // 2):
        for sign in (_OUTLIER, -_OUTLIER):
            if isinstance(data, tuple):
                first = _scaled(data[0][row], sign)
                canaries.append((first, *(column[row] for column in data[1:])))
            else:
                canaries.append(_scaled(data[row], sign))
    return canaries


def _scaled(values: Any, factor: float) -> Any:
    """Floating-point numbers times a factor; other values, such as tokens, as they are."""
    return values * factor if "float" in str(getattr(values, "dtype", "")) else values


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

    With ``hold``, the optimizer gets gradients of 0 instead, so that the parameters stay. A loop
    without an optimizer of torch must return the gradients itself.
    """
    from torch.optim.optimizer import register_optimizer_step_pre_hook  # takes seconds to import

    steps: list[FloatArray] = []
    widths: list[list[int]] = []

    def read(optimizer: Any, _args: Any, _kwargs: Any) -> None:
        gradients, step_widths = _gradients(optimizer, hold=hold)
        steps.append(gradients)
        widths.append(step_widths)

    handle = register_optimizer_step_pre_hook(read)
    try:
        returned = train(data, seed)
    finally:
        handle.remove()
    if not steps:
        gradients = _returned_gradients(returned)
        return gradients, [gradients.shape[1]]
    if any(step_widths != widths[0] for step_widths in widths):
        raise ValueError("train: expected one optimizer with the same parameters in every step")
    return np.array(steps), widths[0]


def _gradients(optimizer: Any, *, hold: bool) -> tuple[FloatArray, list[int]]:
    """The gradients of a step in one row, and numbers of each parameter; ``hold`` sets them to 0.

    A parameter without a gradient counts as zeros.
    """
    import torch

    parameters = [
        parameter
        for group in optimizer.param_groups
        for parameter in group["params"]
        if parameter.requires_grad
    ]
    flat: list[torch.Tensor] = []
    for parameter in parameters:
        gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        flat.append(gradient.flatten())
    row = torch.cat(flat).detach().cpu().double().numpy()
    if hold:
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad = torch.zeros_like(parameter.grad)
    return row, [parameter.numel() for parameter in parameters]


def _returned_gradients(returned: Any) -> FloatArray:
    """The gradients that a loop without an optimizer of torch returns, (steps, parameters)."""
    steps = [] if returned is None else [_value(row) for row in returned]
    gradients = np.array(steps, dtype=float)
    if gradients.ndim != 2:
        raise ValueError(
            "train: no torch optimizer made a step; expected one, or the gradients released at "
            "learning rate 0 as the returned value, shape (steps, parameters), got shape "
            f"{gradients.shape}"
        )
    return gradients


def _held(train: Train, data: Any, seed: int) -> FloatArray:
    """Gradients of a training whose parameters are held at their start, (steps, parameters)."""
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
    # Every training gets a copy of its own, which it may change.
    first, widths = _released(train, _with(data, canaries[0]), 0, hold=True)
    again = held(_with(data, canaries[0]), 0)
    if again.shape != first.shape or np.abs(again - first).max() > seen / 10:
        raise ValueError(
            "train: two trainings of the same data and seed differ; expected the seed to decide "
            "weights, batches and noise, as by torch.manual_seed(seed)"
        )
    of_canaries, farthest, seed = _seen_canaries(train, data, canaries, again, seen)
    pairs = [
        (held(_with(data, canaries[0]), other), held(_with(data, canaries[farthest]), other))
        for other in range(1, seeds + 1)
    ]
    if np.array_equal(pairs[0][0], first):
        raise ValueError(
            "train: two seeds give the same training; expected batches and noise by the seed"
        )
    record = tuple(column[0] for column in data) if isinstance(data, tuple) else data[0]
    all_alike = _with(data, record, slice(None))
    of_null = None if null is None else held(_with(data, null), seed)
    moved = [len(_released(train, _with(data, canary), seed, hold=False)[0]) for canary in canaries]
    return Runs(
        canaries=of_canaries,
        null=of_null,
        pairs=pairs,
        quiet=held(all_alike, 0),
        quiet_too=held(all_alike, 1),
        widths=widths,
        moved=moved,
    )


def _seen_canaries(
    train: Train, data: Any, canaries: list[Any], of_first: FloatArray, seen: float
) -> tuple[list[FloatArray], int, int]:
    """Gradients of the training with each canary, by the first seed with which a canary changes a
    step; the canary that changes one the most; and the seed.

    ``of_first`` are the gradients with the first canary and seed 0.
    """
    for seed in range(_MOST_SEEDS):  # a short training may not meet the record
        others = [_held(train, _with(data, canary), seed) for canary in canaries[1:]]
        if seed > 0:
            of_first = _held(train, _with(data, canaries[0]), seed)
        of_canaries = [of_first, *others]
        largest = [changes(gradients, of_first).max() for gradients in of_canaries]
        if max(largest) > seen:
            return of_canaries, int(np.argmax(largest)), seed
    raise ValueError(
        "canaries: they change no step; expected records with large, different gradients"
    )


def along(
    train: Train, data: Any, canary: Any, null: Any, seed: int, *, member: bool
) -> FloatArray:
    """How far each step went in the direction of a canary's gradient, among records without a
    gradient.
    """
    all_null = _with(data, null, slice(None))
    all_canaries = _with(data, canary, slice(None))
    empty = _held(train, all_null, seed)
    # Both trainings have one seed, so that their difference is without the noise.
    direction = (_held(train, all_canaries, seed) - empty).sum(0)
    released = _held(train, _with(all_null, canary), seed) if member else empty
    return released @ direction / max(float(np.linalg.norm(direction)), 1e-300)


def changes(gradients: FloatArray, other: FloatArray) -> FloatArray:
    """By how much two trainings differ in each step that both made, shape (steps,)."""
    steps = min(len(gradients), len(other))
    return np.linalg.norm(gradients[:steps] - other[:steps], axis=1)
