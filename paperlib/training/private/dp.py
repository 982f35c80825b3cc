"""DP-SGD for one module of any architecture, through Opacus."""

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from torch import nn

from paperlib.models.devices import default_device
from paperlib.training import fitting
from paperlib.training.batches import Examples, check_examples
from paperlib.training.config import TrainingConfig
from paperlib.training.language.clipping import add_clipped_gradients, has_known_layers


def fit_dp(
    module_or_widths: nn.Module | Sequence[int],
    x: Any,
    y: Any,
    *,
    config: TrainingConfig,
    device: torch.device | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 1,
    resume: bool = True,
    progress: bool = True,
    at_once: int | None = None,
    ghost: bool = False,
) -> fitting.Fitted:
    """Train one classifier with DP-SGD: every example's gradient is formed, or with ``ghost`` its
    norm alone.

    Guarantee:
        ``privacy_of(config, len(x))``, in exact arithmetic: the noise is drawn from torch's
        generator in float32, which resists a statistician and not an adversary who attacks floating
        point. The batches are those of ``fit_ensemble`` for the same seed; the noise is not.
        ``losses`` are statistics of the training data that the guarantee does not cover.

    Args:
        module_or_widths: A module, trained in place, that maps (B, ...) to logits (B, outputs); or
            the widths of an MLP, initialised from ``config.seed``.
        x: Records, shape (n, ...), finite.
        y: Class numbers, shape (n,); 0 or 1 for one output.
        device: None takes CUDA where there is one, else the CPU.
        checkpoint: File to write after every ``checkpoint_every`` epochs and after the last; with
            ``resume`` training goes on from it if it exists.
        config: Settings with ``clip_norm`` that clip each example (``microbatches`` None).
        at_once: Most records whose gradients are in memory together, 1 or more; None takes a whole
            batch. The steps are the same but for rounding.
        ghost: Ghost clipping where all weights are of layers Linear, Conv2d, GroupNorm, LayerNorm
            and Embedding: less memory, and the same steps but for rounding. The first batch is
            compared with autograd. Gradients of other models are formed.

    Raises:
        ValueError: Data that do not fit, a config without ``clip_norm`` or with microbatches, or a
            module that mixes the records of a batch (batch norm).
        CheckpointError: The checkpoint is damaged or of another run.
        TrainingDiverged: The loss stopped being finite.

    >>> config = TrainingConfig(
    ...     epochs=1, batch_size=1, learning_rate=0.1, clip_norm=1, noise_multiplier=1
    ... )
    >>> fitted = fit_dp((2, 4, 1), [[0.0, 1.0], [1.0, 0.0]], [0, 1], config=config, device="cpu")
    >>> fitted.logits([[1.0, 1.0]]).shape
    torch.Size([1, 1])
    """
    if not config.is_private:
        raise ValueError("config: expected clip_norm for DP-SGD, got None; fit trains without DP")
    if config.groups is not None:
        raise ValueError(
            f"config: expected microbatches None (each example clipped by itself), "
            f"got {config.microbatches}; fit_ensemble clips averages of groups"
        )
    from opacus.validators import ModuleValidator  # takes seconds to import

    device = default_device(device)
    module = fitting.as_module(module_or_widths, config).to(device)
    classes = fitting.check_outputs(module, x, device)
    data = check_examples(x, y, classes=classes, device=device)
    problems = ModuleValidator.validate(module.train(), strict=False)
    if problems:
        raise ValueError(f"module: expected layers that keep records apart; {problems[0]}")
    training = _Training(module, data, config, at_once)
    by_norms = ghost and has_known_layers(module)
    with (_ghost if by_norms else _formed)(training) as (private, step):
        one_epoch = fitting.private_epochs(private, config, len(data), data.y.device, step)
        checkpoints = fitting.Checkpoints(
            saved=fitting.checkpoint_of(checkpoint, module, data, config),
            stateful={"module": module, "optimizer": private.original_optimizer},
            epochs_between=checkpoint_every,
            resume=resume,
        )
        losses = fitting.train_epochs(one_epoch, config, device, checkpoints, progress=progress)
        return fitting.Fitted(module=module.eval(), config=config, losses=losses)


@dataclass(frozen=True, eq=False)
class _Training:
    """What is trained on what, and most records in memory together, None for a whole batch."""

    module: nn.Module
    data: Examples
    config: TrainingConfig
    at_once: int | None

    def optimizer(self, kind: Callable[..., Any]) -> Any:
        """Opacus's optimizer of a kind, which adds the noise."""
        return kind(
            fitting.make_optimizer(self.module, self.config),
            noise_multiplier=self.config.noise_multiplier,
            max_grad_norm=self.clip_norm,
            expected_batch_size=self.config.expected_batch(len(self.data)),
        )

    @property
    def clip_norm(self) -> float:
        """Largest norm of a clipped gradient, which every config has that gets here."""
        return cast(float, self.config.clip_norm)

    def pieces(self, records: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Record numbers, (B,), cut into what is in memory together; one piece of an empty
        batch.
        """
        return records.split(self.at_once or max(1, len(records)))

    def losses(self, model: nn.Module, reduction: str, records: torch.Tensor) -> torch.Tensor:
        """Cross-entropy, nats, of the records of these numbers, (B,): of each, (B,), where
        ``reduction`` is "none", and their sum, (), where it is "sum".
        """
        logits = model(self.data.x[records])
        return fitting.training_loss(logits, self.data.y[records], reduction=reduction)


_Steps = tuple[Any, Callable[[torch.Tensor], torch.Tensor]]
"""An optimizer of Opacus, and a step on record numbers that returns the sum of their losses."""


@contextmanager
def _formed(training: _Training) -> Iterator[_Steps]:
    """While this is open: an optimizer of Opacus, and a step on record numbers that forms every
    record's gradient and returns the sum of their losses.
    """
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    per_example = GradSampleModule(training.module, loss_reduction="sum")
    try:
        private = training.optimizer(DPOptimizer)

        def step(records: torch.Tensor) -> torch.Tensor:
            """One step of DP-SGD on the records of these numbers, (B,), which may be none; the sum
            of their losses, ().
            """
            total = torch.zeros((), device=records.device)  # of the losses
            pieces = training.pieces(records)
            for number, piece in enumerate(pieces, 1):
                private.zero_grad()
                loss = training.losses(per_example, "sum", piece)
                loss.backward()
                # Clipped gradients are summed until the last piece, which makes the step: Opacus
                # keeps its sums through `zero_grad` where the step before it was skipped.
                private.signal_skip_step(number < len(pieces))
                private.step()
                total += loss.detach()
            return total

        with warnings.catch_warnings():
            # Records need no gradient of their own, and torch says so at every first layer.
            warnings.filterwarnings("ignore", message="Full backward hook is firing")
            yield private, step
    finally:
        per_example.to_standard_module()


@contextmanager
def _ghost(training: _Training) -> Iterator[_Steps]:
    """While this is open: an optimizer of Opacus, and a step on record numbers that computes the
    norm of every record's gradient and returns the sum of their losses.

    The first records are checked by autograd, with a ValueError where a weight is used outside of
    its layer.
    """
    from opacus.optimizers import DPOptimizerFastGradientClipping

    private = training.optimizer(DPOptimizerFastGradientClipping)
    checked = False  # whether a batch was compared with autograd

    def step(records: torch.Tensor) -> torch.Tensor:
        """One step of DP-SGD on the records of these numbers, (B,), which may be none; the sum of
        their losses, ().
        """
        nonlocal checked
        total = torch.zeros((), device=records.device)
        for parameter in private.params:  # An empty batch is a step of noise alone.
            parameter.grad = torch.zeros_like(parameter)
        for piece in training.pieces(records) if len(records) else ():
            losses = add_clipped_gradients(
                training.module,
                partial(training.losses, training.module, "none", piece),
                len(piece),
                clip_norm=training.clip_norm,
                check=not checked,
            )
            checked = True
            total += losses.sum()
        private.step()
        private.zero_grad(set_to_none=True)
        return total

    yield private, step
