"""Short trainings of a user's loop that differ in one record, and the gradients that they
release.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    widths: list[int]  # numbers of each parameter that had a gradient in any step
    numbers: list[int]  # and which of the optimizer's parameters it is, from 1
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


class Loop:
    """A user's training loop, whose optimizer's gradients are read.

    Attributes:
        widths: Numbers of each parameter; empty before the first training.
        used: Whether each parameter had a gradient in any step of any training yet.
        divisor: What the optimizer says that it divides the noisy sum by, as that of Opacus does;
            None where it says nothing.
    """

    def __init__(self, train: Train) -> None:
        self._train = train
        self.widths: list[int] = []
        self.used: NDArray[np.bool_] = np.zeros(0, bool)
        self.divisor: float | None = None

    def held(self, data: Any, seed: int) -> FloatArray:
        """Gradients of a training whose parameters are held at their start, (steps, parameters)."""
        rows = self._released(data, seed, hold=True)
        if not np.isfinite(rows).all():
            raise ValueError("train: gradients that are not finite; use smaller canaries")
        return rows

    def steps_made(self, data: Any, seed: int) -> int:
        """Number of steps of a training whose parameters move."""
        return len(self._released(data, seed, hold=False))

    def _released(self, data: Any, seed: int, *, hold: bool) -> FloatArray:
        """Gradients given to the optimizer, (steps, parameters).

        With ``hold``, the optimizer gets gradients of 0 instead, so that the parameters stay. A
        loop without an optimizer of torch must return the gradients itself.
        """
        # This import takes seconds.
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        steps: list[FloatArray] = []

        def read(optimizer: Any, _args: Any, _kwargs: Any) -> None:
            gradients, widths, used = _gradients(optimizer, hold=hold)
            self._note(widths, used)
            if not steps:
                self.divisor = _divisor_of_wrapper(optimizer)
            steps.append(gradients)

        handle = register_optimizer_step_pre_hook(read)
        try:
            returned = self._train(data, seed)
        finally:
            handle.remove()
        if steps:
            return np.array(steps)
        gradients = _returned_gradients(returned)
        self._note([gradients.shape[1]], [True])
        return gradients

    def _note(self, widths: list[int], used: list[bool]) -> None:
        """Keep which parameters have had a gradient; a ValueError for other parameters."""
        if not self.widths:
            self.widths = widths
            self.used = np.zeros(len(widths), bool)
        if widths != self.widths:
            raise ValueError("train: expected one optimizer with the same parameters in every step")
        self.used |= np.array(used, bool)


def _gradients(optimizer: Any, *, hold: bool) -> tuple[FloatArray, list[int], list[bool]]:
    """The gradients of a step in one row, numbers of each parameter, and whether it has a gradient;
    ``hold`` sets them to 0.

    A parameter without a gradient in this step counts as zeros.
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
    widths = [parameter.numel() for parameter in parameters]
    used = [parameter.grad is not None for parameter in parameters]
    if hold:
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad = torch.zeros_like(parameter.grad)
    return row, widths, used


def _divisor_of_wrapper(optimizer: Any) -> float | None:
    """What the private optimizer whose step calls this one divides by; None without such a one.

    Opacus wraps an optimizer by one with the attributes ``original_optimizer``,
    ``expected_batch_size`` and ``loss_reduction``. The wrapped one does not know of it, so that it
    is looked for among the calls that led here.
    """
    import torch

    frame = inspect.currentframe()
    while frame is not None:
        owner = frame.f_locals.get("self")
        is_optimizer = isinstance(owner, torch.optim.Optimizer)
        if is_optimizer and getattr(owner, "original_optimizer", None) is optimizer:
            return _divisor_of(owner)
        frame = frame.f_back
    return None


def _divisor_of(wrapper: Any) -> float | None:
    """What an optimizer of Opacus divides by; None where its attributes do not say it."""
    if getattr(wrapper, "loss_reduction", "") == "sum":
        return 1.0
    return getattr(wrapper, "expected_batch_size", None) or None


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


def held_runs(
    loop: Loop, data: Any, canaries: list[Any], null: Any, seeds: int, seen: float
) -> Runs:
    """The trainings that most checks look at; a step that changes by less than ``seen`` held no
    canary.
    """
    # Every training gets a copy of its own, which it may change.
    first = loop.held(_with(data, canaries[0]), 0)
    if not loop.used.any():
        raise ValueError("train: no parameter of the optimizer has a gradient in any step")
    again = loop.held(_with(data, canaries[0]), 0)
    if again.shape != first.shape or np.abs(again - first).max() > seen / 10:
        raise ValueError(
            "train: two trainings of the same data and seed differ; expected the seed to decide "
            "weights, batches and noise, as by torch.manual_seed(seed)"
        )
    of_canaries, farthest, seed = _seen_canaries(loop, data, canaries, again, seen)
    pairs: list[tuple[FloatArray, FloatArray]] = []
    for other in range(1, seeds + 1):
        near = loop.held(_with(data, canaries[0]), other)
        pairs.append((near, loop.held(_with(data, canaries[farthest]), other)))
    if np.array_equal(pairs[0][0], first):
        raise ValueError(
            "train: two seeds give the same training; expected batches and noise by the seed"
        )
    record = tuple(column[0] for column in data) if isinstance(data, tuple) else data[0]
    all_alike = _with(data, record, slice(None))
    of_null = None if null is None else loop.held(_with(data, null), seed)
    moved = [loop.steps_made(_with(data, canary), seed) for canary in canaries]
    runs = Runs(
        canaries=of_canaries,
        null=of_null,
        pairs=pairs,
        quiet=loop.held(all_alike, 0),
        quiet_too=loop.held(all_alike, 1),
        widths=loop.widths,
        numbers=list(range(1, len(loop.widths) + 1)),
        moved=moved,
    )
    return _without_unused(runs, loop.used)


def _without_unused(runs: Runs, used: NDArray[np.bool_]) -> Runs:
    """The trainings without the parameters that had no gradient in any step of any of them: no
    step changes these, so that nothing of them is released.
    """
    if used.all():
        return runs
    columns = np.repeat(used, runs.widths)
    return Runs(
        canaries=[rows[:, columns] for rows in runs.canaries],
        null=None if runs.null is None else runs.null[:, columns],
        pairs=[(near[:, columns], far[:, columns]) for near, far in runs.pairs],
        quiet=runs.quiet[:, columns],
        quiet_too=runs.quiet_too[:, columns],
        widths=np.array(runs.widths)[used].tolist(),
        numbers=np.array(runs.numbers)[used].tolist(),
        moved=runs.moved,
    )


def _seen_canaries(
    loop: Loop, data: Any, canaries: list[Any], of_first: FloatArray, seen: float
) -> tuple[list[FloatArray], int, int]:
    """Gradients of the training with each canary, by the first seed with which a canary changes a
    step; the canary that changes one the most; and the seed.

    ``of_first`` are the gradients with the first canary and seed 0.
    """
    for seed in range(_MOST_SEEDS):  # a short training may not meet the record
        others = [loop.held(_with(data, canary), seed) for canary in canaries[1:]]
        if seed > 0:
            of_first = loop.held(_with(data, canaries[0]), seed)
        of_canaries = [of_first, *others]
        largest = [changes(gradients, of_first).max() for gradients in of_canaries]
        if max(largest) > seen:
            return of_canaries, int(np.argmax(largest)), seed
    raise ValueError(
        "canaries: they change no step; expected records with large, different gradients"
    )


def along(loop: Loop, data: Any, canary: Any, null: Any, seed: int, *, member: bool) -> FloatArray:
    """How far each step went in the direction of a canary's gradient, among records without a
    gradient.
    """
    all_null = _with(data, null, slice(None))
    all_canaries = _with(data, canary, slice(None))
    empty = loop.held(all_null, seed)
    # Both trainings have one seed, so that their difference is without the noise.
    direction = (loop.held(all_canaries, seed) - empty).sum(0)
    released = loop.held(_with(all_null, canary), seed) if member else empty
    return released @ direction / max(float(np.linalg.norm(direction)), 1e-300)


def changes(gradients: FloatArray, other: FloatArray) -> FloatArray:
    """By how much two trainings differ in each step that both made, shape (steps,)."""
    steps = min(len(gradients), len(other))
    return np.linalg.norm(gradients[:steps] - other[:steps], axis=1)
