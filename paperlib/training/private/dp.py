"""DP-SGD for one module of any architecture, through Opacus."""

import os
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from paperlib.models.devices import default_device
from paperlib.training import fitting
from paperlib.training.batches import check_examples
from paperlib.training.config import TrainingConfig


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
) -> fitting.Fitted:
    """Train one classifier with DP-SGD, forming every example's gradient.

    Guarantee:
        ``privacy_of(config, len(x))``, in exact arithmetic: the noise is drawn from torch's
        generator in float32, which resists a statistician and not an adversary who attacks floating
        point. The batches are those of ``fit_ensemble`` for the same seed; the noise is not.
        ``losses`` are statistics of the training data that the guarantee does not cover.

    Args:
        module_or_widths: As in ``fit``, and so are ``x``, ``y`` and the arguments not named here.
        config: Settings with ``clip_norm`` that clip each example (``microbatches`` None).
        at_once: Most records whose gradients are in memory together, 1 or more; None takes a whole
            batch. The steps are the same but for rounding.

    Raises:
        ValueError: Data that do not fit, a config without ``clip_norm`` or with microbatches, or a
            module that mixes the records of a batch (batch norm); other errors as in ``fit``.

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
    from opacus import GradSampleModule  # takes seconds to import
    from opacus.optimizers import DPOptimizer
    from opacus.validators import ModuleValidator

    device = default_device(device)
    module = fitting.as_module(module_or_widths, config).to(device)
    classes = fitting.check_outputs(module, x, device)
    data = check_examples(x, y, classes=classes, device=device)
    problems = ModuleValidator.validate(module.train(), strict=False)
    if problems:
        raise ValueError(f"module: expected layers that keep records apart; {problems[0]}")
    per_example = GradSampleModule(module, loss_reduction="sum")
    try:
        private = DPOptimizer(
            fitting.make_optimizer(module, config),
            noise_multiplier=config.noise_multiplier,
            max_grad_norm=config.clip_norm or 0.0,
            expected_batch_size=config.expected_batch(len(data)),
        )

        def step(records: torch.Tensor) -> torch.Tensor:
            """One step on the records of these numbers, their gradients clipped one by one; the sum
            of losses.
            """
            total = torch.zeros((), device=device)  # of the losses
            pieces = records.split(at_once or max(1, len(records)))
            for number, piece in enumerate(pieces, 1):
                private.zero_grad()
                logits = per_example(data.x[piece])
                loss = fitting.training_loss(logits, data.y[piece], reduction="sum")
                loss.backward()
                # Clipped gradients are summed until the last piece, which makes the step.
                private.signal_skip_step(number < len(pieces))
                private.step()
                total += loss.detach()
            return total

        one_epoch = fitting.private_epochs(private, config, len(data), data.y.device, step)
        checkpoints = fitting.Checkpoints(
            saved=fitting.checkpoint_of(checkpoint, module, data, config),
            stateful={"module": module, "optimizer": private.original_optimizer},
            epochs_between=checkpoint_every,
            resume=resume,
        )
        with warnings.catch_warnings():
            # Records need no gradient of their own, and torch says so at every first layer.
            warnings.filterwarnings("ignore", message="Full backward hook is firing")
            losses = fitting.train_epochs(one_epoch, config, device, checkpoints, progress=progress)
        return fitting.Fitted(module=module.eval(), config=config, losses=losses)
    finally:
        per_example.to_standard_module()
