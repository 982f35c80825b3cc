"""Train one classifier of any architecture; checkpoints are whole or absent, and matched to their
run.
"""

import hashlib
import math
import os
import pickle
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from paperlib.core.checks import check_at_least, check_choice
from paperlib.io.budget import is_spent, stop_if_spent
from paperlib.io.files import atomic_file, config_hash
from paperlib.io.progress import progress_bar
from paperlib.models import MLP
from paperlib.models.devices import default_device, evaluating
from paperlib.training.batches import (
    Examples,
    check_examples,
    check_records,
    generator,
    poisson_batches,
    shuffled,
    torch_seed,
)
from paperlib.training.config import TrainingConfig

_FORMAT = 1
_ADVICE = "remove the file, or pass resume=False to start over"


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; it is left where it is."""


def save_checkpoint(
    path: str | os.PathLike[str], run: Mapping[str, Any], state: Mapping[str, Any]
) -> None:
    """Write ``state``, tensors and plain values by name, with the ``run`` that it belongs to, for
    which `Saved.state` asks.

    Raises:
        OutputError: The file cannot be written, as on a full disk; the one before stays as it was.
    """
    content = {"format": _FORMAT, "run": dict(run), "state": dict(state)}
    with atomic_file(path) as file:
        stream = _Stream(file)
        try:
            torch.save(content, cast(BinaryIO, stream))  # it calls write and flush alone
        except RuntimeError:
            # Over a full disk torch speaks of a position in its archive.
            if stream.error is not None:
                raise stream.error from None
            raise


class _Stream:
    """What torch writes to: a file, and the error of the system that stopped the writing."""

    def __init__(self, file: BinaryIO) -> None:
        self.error: OSError | None = None
        self._file = file

    def write(self, data: bytes) -> int:
        """Write all of it, or keep the error."""
        try:
            return self._file.write(data)
        except OSError as error:
            self.error = error
            raise

    def flush(self) -> None:
        """Hand what is held to the system, or keep the error."""
        try:
            self._file.flush()
        except OSError as error:
            self.error = error
            raise


class Saved:
    """The checkpoint of one run, written again when ``seconds`` have passed; without a path none
    is.

    ``run`` is what makes a run this one, plain values by name: a file of another is refused.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, run: Mapping[str, Any], *, seconds: float = 60.0
    ) -> None:
        self._path = path
        self._run = run
        self._seconds = seconds
        self._written = time.monotonic()

    def state(self, device: torch.device | str) -> dict[str, Any] | None:
        """The state kept of this run, its tensors on ``device``; None where there is no file.

        Raises:
            CheckpointError: The file is damaged, no checkpoint, or of another run.
        """
        if self._path is None:
            return None
        path = Path(self._path)
        if not path.exists():
            return None
        checkpoint = _loaded(path, device)
        is_ours = isinstance(checkpoint, dict) and checkpoint.get("format") == _FORMAT
        if not is_ours or "state" not in checkpoint:
            raise CheckpointError(f"{path} is not a checkpoint of this library; {_ADVICE}")
        run = checkpoint["run"]
        different = sorted(
            name for name in {*run, *self._run} if run.get(name) != self._run.get(name)
        )
        if different:
            names = ", ".join(different)
            raise CheckpointError(f"{path} belongs to another run (different: {names}); {_ADVICE}")
        return checkpoint["state"]

    def keep(self, state: Callable[[], Mapping[str, Any]], *, now: bool = False) -> None:
        """Write what ``state`` returns, if the time has come, ``now`` says so, or the time that the
        user gave the run is over.

        Raises:
            BudgetSpent: The time of the run is over (`paperlib.io.budget`), and the state is
                written. A run without a path goes on, for nothing of it would be kept.
        """
        if self._path is None:
            return
        is_due = time.monotonic() - self._written >= self._seconds
        if not (now or is_due or is_spent()):
            return
        save_checkpoint(self._path, self._run, state())
        self._written = time.monotonic()
        stop_if_spent()


def _loaded(path: Path, device: torch.device | str) -> Any:
    """What a checkpoint's file holds; a `CheckpointError` if it cannot be read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the format of files that fail right after
            # With weights_only a file runs no code.
            return torch.load(path, map_location=device, weights_only=True)
    except (RuntimeError, EOFError, OSError, ValueError, KeyError, pickle.UnpicklingError) as error:
        message = str(error).strip()
        reason = message.splitlines()[0] if message else type(error).__name__
        raise CheckpointError(f"{path} is not a whole checkpoint ({reason}); {_ADVICE}") from error


@dataclass(frozen=True, kw_only=True, eq=False)
class Checkpoints:
    """What the checkpoints of a training hold, and when they are read and written.

    Attributes:
        saved: The file of the run, or of no run.
        stateful: Objects with ``state_dict`` and ``load_state_dict``, by name; they are read in
            this order.
        epochs_between: Epochs between two checkpoints, 1 or more; None leaves it to the time of
            ``saved``.
        resume: Whether to go on from the file if it exists.
    """

    saved: Saved
    stateful: Mapping[str, Any]
    epochs_between: int | None = None
    resume: bool = True

    def restore(self, epochs: int, device: torch.device) -> list[float]:
        """Put every object into its state of the checkpoint; returns the losses of its epochs.

        Raises:
            CheckpointError: It cannot be used, or has more than ``epochs`` epochs.
        """
        state = self.saved.state(device) if self.resume else None
        if state is None:
            return []
        losses = list(state["losses"])
        if len(losses) > epochs:
            raise CheckpointError(
                f"checkpoint: already has {len(losses)} epochs, and config.epochs is "
                f"{epochs}; ask for as many or more, or use another file"
            )
        for name, target in self.stateful.items():
            target.load_state_dict(state[name])
        return losses

    def keep(self, losses: list[float], epochs: int) -> None:
        """Write the state after ``len(losses)`` of all epochs, if the time for it has come.

        Raises:
            BudgetSpent: The time that the user gave the run is over, and the state is written.
        """
        done = len(losses)
        is_due = False
        if self.epochs_between is not None:
            is_due = done % self.epochs_between == 0 or done == epochs
        self.saved.keep(lambda: self._state(losses), now=is_due)

    def _state(self, losses: list[float]) -> dict[str, Any]:
        """The states of all objects, by name, and the losses of the epochs so far."""
        states = {name: source.state_dict() for name, source in self.stateful.items()}
        return states | {"losses": losses}


class TrainingDiverged(ArithmeticError):
    """The loss stopped being finite."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted:
    """A classifier in evaluation mode, and the mean cross-entropy of each epoch, seen while
    training.
    """

    module: nn.Module
    config: TrainingConfig
    losses: tuple[float, ...]

    def logits(self, x: Any, *, batch: int = 4096) -> Tensor:
        """Logits, shape (n, outputs), float32, on the model's device, of records (n, ...),
        ``batch`` at a time.

        Raises:
            ValueError: Records that are not finite, or have no axis of features.
        """
        device = next(self.module.parameters()).device
        with torch.inference_mode():
            logits = [
                self.module(records.to(device)).float() for records in check_records(x).split(batch)
            ]
        return torch.cat(logits)


def fit(
    module_or_widths: nn.Module | Sequence[int],
    x: Any,
    y: Any,
    *,
    config: TrainingConfig,
    device: torch.device | str | None = None,
    precision: str = "float32",
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 1,
    resume: bool = True,
    progress: bool = True,
) -> Fitted:
    """Train one classifier with cross-entropy.

    Guarantee:
        On a given device the result depends on the arguments alone. A run that was interrupted and
        resumed ends with the same bits as any other (on CUDA as far as its kernels are
        deterministic). The global random state is left as it was.

    Args:
        module_or_widths: A module, trained in place, that maps (B, ...) to logits (B, outputs); or
            the widths of an MLP, initialised from ``config.seed``.
        x: Records, shape (n, ...), finite.
        y: Class numbers, shape (n,); 0 or 1 for one output.
        config: Settings without ``clip_norm``.
        device: None takes CUDA where there is one, else the CPU.
        precision: "float32", or "bfloat16" for the products of the forward pass (autocast).
        checkpoint: File to write after every ``checkpoint_every`` epochs and after the last.
        checkpoint_every: Epochs, 1 or more.
        resume: True to continue from ``checkpoint`` if it exists.

    Raises:
        ValueError: Data that do not fit the model, or a config with DP-SGD.
        CheckpointError: The checkpoint is damaged or of another run.
        TrainingDiverged: The loss stopped being finite; the last checkpoint is of the epoch before.

    >>> config = TrainingConfig(epochs=2, batch_size=2, learning_rate=0.1)
    >>> fitted = fit((2, 4, 1), [[0.0, 1.0], [1.0, 0.0]], [0, 1], config=config, device="cpu")
    >>> len(fitted.losses), fitted.logits([[1.0, 1.0]]).shape
    (2, torch.Size([1, 1]))
    """
    check_choice("precision", precision, ("float32", "bfloat16"))
    if config.is_private:
        raise ValueError(
            "config: expected clip_norm None; train with DP-SGD through fit_dp or fit_ensemble"
        )
    device = default_device(device)
    module = as_module(module_or_widths, config).to(device)
    data = check_examples(x, y, classes=check_outputs(module, x, device), device=device)
    optimizer = make_optimizer(module, config)

    def step(records: Tensor) -> Tensor:
        """One step on the records of these numbers, shape (B,); their mean loss, shape ()."""
        optimizer.zero_grad()
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bfloat16"):
            logits = module(data.x[records])
        loss = training_loss(logits.float(), data.y[records])
        loss.backward()
        optimizer.step()
        return loss.detach()

    def one_epoch(epoch: int) -> float:
        """One epoch, by its number from 0; its mean loss, nats."""
        module.train()
        return epoch_loss(step, config.seed, epoch, len(data), config.batch_size, device)

    checkpoints = Checkpoints(
        saved=checkpoint_of(checkpoint, module, data, config, precision),
        stateful={"module": module, "optimizer": optimizer},
        epochs_between=checkpoint_every,
        resume=resume,
    )
    losses = train_epochs(one_epoch, config, device, checkpoints, progress=progress)
    return Fitted(module=module.eval(), config=config, losses=losses)


def as_module(module_or_widths: nn.Module | Sequence[int], config: TrainingConfig) -> nn.Module:
    """The module itself, or an MLP of these widths, inputs first, initialised from the seed.

    Raises:
        ValueError: Widths that are not those of ``config``, where it has some.
    """
    if isinstance(module_or_widths, nn.Module):
        return module_or_widths
    mlp = MLP(tuple(module_or_widths), config.activation)
    if config.widths and config.widths != mlp.widths:
        expected = f"those of config, {config.widths}, or none there"
        raise ValueError(f"widths: expected {expected}; got {mlp.widths}")
    return mlp.module(mlp.initial(generator(config.seed, "initial")))


def check_outputs(module: nn.Module, x: Any, device: torch.device) -> int:
    """Number of labels that the module can tell apart, found by running it on one record of ``x``,
    shape (n, ...): its outputs, and 2 for a single one.

    Raises:
        ValueError: No record, one that the module does not take, or logits not of shape (1,
            outputs).
    """
    first = check_records(x)[:1].to(device)
    if not len(first):
        raise ValueError("x: expected at least one record, got none")
    try:
        with evaluating(module):
            logits = module(first)
    except RuntimeError as error:
        shape = tuple(first.shape[1:])
        raise ValueError(f"x: records of shape {shape} do not fit the module: {error}") from error
    if logits.ndim != 2 or len(logits) != 1:
        shape = tuple(logits.shape)
        raise ValueError(f"module: expected logits of shape (B, outputs), got {shape} for B = 1")
    return max(2, logits.shape[1])


def training_loss(logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
    """Cross-entropy, nats, of logits (B, outputs) with class numbers (B,), binary for one output;
    binary over all attributes where labels are 0 or 1, (B, attributes).

    ``reduction`` is torch's: "mean" or "sum" of all to a scalar, or "none" for each by itself, of
    the labels' shape.
    """
    if labels.ndim == 1 and logits.shape[-1] > 1:
        return cross_entropy(logits, labels, reduction=reduction)
    log_odds = logits if labels.ndim == 2 else logits[..., 0]
    return binary_cross_entropy_with_logits(log_odds, labels.to(logits.dtype), reduction=reduction)


def make_optimizer(
    module: nn.Module, config: TrainingConfig, *, betas: tuple[float, float] = (0.9, 0.999)
) -> torch.optim.Optimizer:
    """The optimizer of ``config`` for the weights that require a gradient, with torch's fused
    kernels; ``betas`` are Adam's. A ValueError where there are no such weights.
    """
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if config.optimizer == "adam":
        return torch.optim.Adam(parameters, lr=config.learning_rate, betas=betas, fused=True)
    return torch.optim.SGD(
        parameters, lr=config.learning_rate, momentum=config.momentum, fused=True
    )


@contextmanager
def seeded(seed: int, epoch: int, device: torch.device) -> Iterator[None]:
    """Global random numbers (dropout) from the seed and the epoch, and the old state afterwards."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(torch_seed(seed, "module", epoch))
        yield


def checkpoint_of(
    path: str | os.PathLike[str] | None,
    module: nn.Module,
    data: Examples,
    config: TrainingConfig,
    precision: str = "float32",
) -> Saved:
    """The checkpoint of a classifier's training: only a run with the same data, settings (but for
    ``epochs``) and shapes of the module takes it up. It is never written by the clock, and not at
    all without a ``path``.
    """
    if path is None:
        return Saved(None, {})
    digest = hashlib.sha256()
    for tensor in (data.x, data.y):
        digest.update(str(tuple(tensor.shape)).encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    run = {  # without the number of epochs: a longer run may continue a shorter one
        "config": config_hash({**config.to_dict(), "epochs": "any", "precision": precision}),
        "data": digest.hexdigest()[:32],
        "module": {name: list(tensor.shape) for name, tensor in module.state_dict().items()},
    }
    return Saved(path, run, seconds=math.inf)


def train_epochs(
    one_epoch: Callable[[int], float],
    config: Any,
    device: torch.device,
    checkpoints: Checkpoints,
    *,
    is_last: Callable[[int], bool] = lambda epoch: False,
    progress: bool = True,
) -> tuple[float, ...]:
    """Train for ``config.epochs`` epochs with ``config.seed``; returns the mean loss of each.

    Args:
        one_epoch: Trains in the epoch of this number, from 0, and returns its mean loss.
        config: Settings of any kind that have ``epochs`` and ``seed``.
        device: Whose global random numbers are seeded for each epoch.
        checkpoints: Where a training goes on from; its losses come first in what is returned.
        is_last: Whether training ends early, after this epoch.

    Raises:
        CheckpointError: A checkpoint that cannot be used.
        TrainingDiverged: A loss that is not finite.
    """
    if checkpoints.epochs_between is not None:
        check_at_least(1, checkpoint_every=checkpoints.epochs_between)
    losses = checkpoints.restore(config.epochs, device)
    with progress_bar(config.epochs, label="training", unit="epoch", show=progress) as bar:
        bar.update(len(losses))
        for epoch in range(len(losses), config.epochs):
            with seeded(config.seed, epoch, device):
                loss = one_epoch(epoch)
            losses.append(loss)
            if not math.isfinite(loss):
                raise TrainingDiverged(
                    f"the training loss is {loss} in epoch {epoch + 1}; lower learning_rate"
                )
            bar.update()
            if is_last(epoch):
                break
            checkpoints.keep(losses, config.epochs)
    return tuple(losses)


def epoch_loss(
    step: Callable[[Tensor], Tensor],
    seed: int,
    epoch: int,
    examples: int,
    batch: int,
    device: torch.device,
) -> float:
    """Mean loss of one pass over shuffled batches of ``batch`` of so many ``examples``, in the
    order of this seed and epoch.

    ``step`` learns from record numbers, shape (B,), and returns their mean loss, a scalar.
    """
    total = torch.zeros(
        (), device=device
    )  # of all losses; read once, as reading a GPU waits for it
    order = torch.from_numpy(shuffled(seed, epoch, examples)).to(device)
    for records in order.split(batch):
        total += step(records) * len(records)
    return float(total) / examples


def private_epochs(
    optimizer: Any,
    config: TrainingConfig,
    examples: int,
    device: torch.device,
    step: Callable[[Tensor], Any],
) -> Callable[[int], float]:
    """A function that trains one epoch, by its number from 0, of DP-SGD with an optimizer of
    Opacus, and returns the mean loss of the records seen.

    ``step`` learns from record numbers, shape (B,), B possibly 0, and returns the sum of their
    losses. Of ``examples`` records each is in a batch by its own coin.
    """
    steps = config.steps_per_epoch(examples)
    rate = config.sampling_rate(examples)

    def one_epoch(epoch: int) -> float:
        """One epoch of steps on batches drawn at random; the mean loss of the records seen."""
        optimizer.generator = generator(config.seed, "noise", epoch, device)
        batches = poisson_batches(config.seed, epoch, examples, rate=rate, steps=steps)
        total: Any = 0.0
        for number in range(steps):
            total = total + step(torch.from_numpy(batches.batch(number)).to(device))
        return float(total) / max(1, len(batches.records))

    return one_epoch
