"""A user's loop of training, run again and again with its optimizer's gradients read."""

import inspect
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.core.checks import FloatArray

Train = Callable[[Any, int], Any]


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

    def read(self, data: Any, seed: int) -> FloatArray:
        """Gradients of a training on ``data`` with this seed, whose parameters are held at their
        start, (steps, parameters); also such as are not finite.

        Raises:
            ValueError: No optimizer made a step and no gradients were returned, or parameters that
                change from step to step.
        """
        return self._released(data, seed, hold=True)

    def held(self, data: Any, seed: int) -> FloatArray:
        """Gradients of a training on ``data`` with this seed, whose parameters are held at their
        start, (steps, parameters); a ValueError for such as are not finite.
        """
        rows = self.read(data, seed)
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
            """Keep the gradients that the optimizer is about to apply, before each of its steps."""
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
        """Keep which parameters have had a gradient; a ValueError for parameters of other widths
        than those of the first step.
        """
        if not self.widths:
            self.widths = widths
            self.used = np.zeros(len(widths), bool)
        if widths != self.widths:
            raise ValueError("train: expected one optimizer with the same parameters in every step")
        self.used |= np.array(used, bool)


def _gradients(optimizer: Any, *, hold: bool) -> tuple[FloatArray, list[int], list[bool]]:
    """The gradients of a step in one row, shape (numbers,); how many of these numbers each
    parameter has; and whether each has a gradient, else its numbers are zeros.

    ``hold`` sets the gradients to 0, so that the step leaves the parameters where they are.
    """
    import torch

    groups = [group["params"] for group in optimizer.param_groups]
    parameters = [parameter for group in groups for parameter in group if parameter.requires_grad]
    flat = [_gradient(parameter).flatten() for parameter in parameters]
    row = torch.cat(flat).detach().cpu().double().numpy()
    widths = [parameter.numel() for parameter in parameters]
    used = [parameter.grad is not None for parameter in parameters]
    if hold:
        for parameter in itertools.compress(parameters, used):
            parameter.grad = torch.zeros_like(parameter.grad)
    return row, widths, used


def _gradient(parameter: Any) -> Any:
    """The gradient of a parameter, or zeros."""
    import torch

    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


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
    """The gradients that a loop without an optimizer of torch returns, (steps, parameters); a
    ValueError where it returns anything else.
    """
    steps = [] if returned is None else [record_value(row) for row in returned]
    gradients = np.array(steps, dtype=float)
    if gradients.ndim != 2:
        raise ValueError(
            "train: no torch optimizer made a step; expected one, or the gradients released at "
            "learning rate 0 as the returned value, shape (steps, parameters), got shape "
            f"{gradients.shape}"
        )
    return gradients


def with_record(data: Any, record: Any, where: Any = 0) -> Any:
    """A copy of the data, one array or a tuple of arrays, with a record at the row ``where``, or at
    each of a slice of rows; a record of a tuple of arrays is a tuple too.
    """
    if isinstance(data, tuple):
        return tuple(
            with_record(column, value, where) for column, value in zip(data, record, strict=True)
        )
    copy: Any = data.clone() if hasattr(data, "clone") else np.array(data)
    copy[where] = copy.new_tensor(record_value(record)) if hasattr(copy, "new_tensor") else record
    return copy


def record_value(record: Any) -> Any:
    """A record's values without what torch keeps beside them."""
    return record.detach().cpu().numpy() if hasattr(record, "detach") else record


def changes(gradients: FloatArray, other: FloatArray) -> FloatArray:
    """By how much two trainings differ in each step that both made, shape (steps,)."""
    steps = min(len(gradients), len(other))
    return np.linalg.norm(gradients[:steps] - other[:steps], axis=1)


def interplay(
    first: FloatArray, second: FloatArray, first_too: FloatArray, second_too: FloatArray
) -> FloatArray:
    """By how much the difference of two trainings changes from some data to other data, shape
    (steps,), for each step that all made: 0 where each record adds the same whatever the others
    are; infinite where a gradient is not finite.

    All four are rows of gradients, shape (steps, parameters): two trainings on some data, and the
    same two on other data.
    """
    steps = min(map(len, (first, second, first_too, second_too)))
    here = first[:steps] - second[:steps]
    there = first_too[:steps] - second_too[:steps]
    sizes = np.linalg.norm(here - there, axis=1)
    return np.where(np.isfinite(sizes), sizes, np.inf)
