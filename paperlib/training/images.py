"""Train a classifier of images: data on the device, snapshots on the way, and images per second."""

import copy
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.flop_counter import FlopCounterMode

from paperlib.core.checks import check_at_least, check_choice, check_in
from paperlib.models.devices import as_tensor, default_device
from paperlib.models.images.build import as_input
from paperlib.training.batches import generator
from paperlib.training.fitting import Checkpoints, Saved, epoch_loss, train_epochs, training_loss


@dataclass(frozen=True, kw_only=True)
class ImageTraining:
    """Settings of the training of an image classifier."""

    epochs: int
    batch_size: int = 64
    optimizer: str = "adam"  # or "sgd" (momentum 0.9, Nesterov)
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    schedule: str = "constant"  # of the learning rate, or "cosine" down to 0
    augment: bool = False  # flips, and shifts by up to an eighth of the side, as usual on CIFAR
    precision: str = (
        "float32"  # or "bfloat16": under autocast, in the layout that convolutions like then
    )
    compile: bool = False  # the forward pass on a GPU, which pays in long runs
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse (ValueError) unknown choices, and numbers out of range."""
        check_choice("optimizer", self.optimizer, ("adam", "sgd"))
        check_choice("schedule", self.schedule, ("constant", "cosine"))
        check_choice("precision", self.precision, ("float32", "bfloat16"))
        check_at_least(1, epochs=self.epochs, batch_size=self.batch_size)
        check_in("(0, inf)", "learning_rate", self.learning_rate)


@dataclass(frozen=True, eq=False)
class FittedImages:
    """A module in evaluation mode, copies by epoch of which it is the last, and mean losses of the
    epochs.
    """

    module: nn.Module
    snapshots: dict[int, nn.Module]
    losses: tuple[float, ...]


def fit_images(
    module: nn.Module,
    images: Any,
    labels: Any,
    *,
    config: ImageTraining,
    snapshots: Sequence[int] = (),
    device: torch.device | str | None = None,
    progress: bool = True,
    checkpoint: Path | None = None,
) -> FittedImages:
    """Train a classifier in place on uint8 images, shape (n, channels, side, side).

    Args:
        labels: Class numbers, (n,), or 0 and 1 for each attribute, (n, attributes).
        snapshots: Epochs, from 1, after which a copy of the module is kept.
        checkpoint: File from which a training of the same settings goes on, if it exists.

    Raises:
        ValueError: Images or labels that do not fit, or a snapshot after no epoch.
        CheckpointError: The checkpoint is damaged or of another run.
        TrainingDiverged: The loss stopped being finite.
    """
    outside = [epoch for epoch in snapshots if not 1 <= epoch <= config.epochs]
    if outside:
        raise ValueError(f"snapshots: expected epochs from 1 to {config.epochs}, got {outside}")
    device = default_device(device)
    module = module.to(device, memory_format=_layout(config))  # pyright: ignore[reportCallIssue]
    x, y = _checked(images, labels, device)
    run = _ImageTraining(module, x, y, config)
    kept = _Snapshots(module)
    shapes = {name: list(values.shape) for name, values in module.state_dict().items()}

    def one_epoch(epoch: int) -> float:
        """One epoch, by its number from 0, after which the module is copied where that was asked
        for.
        """
        loss = run.one_epoch(epoch)
        if epoch + 1 in snapshots and epoch + 1 < config.epochs:
            kept.keep(epoch + 1)
        return loss

    identity = {"config": asdict(config), "images": list(x.shape), "module": shapes}
    checkpoints = Checkpoints(
        saved=Saved(checkpoint, identity),
        # The snapshots come first, for the module holds each of them while it is read.
        stateful={
            "kept": kept,
            "module": module,
            "optimizer": run.optimizer,
            "cosine": run.cosine,
        },
    )
    losses = train_epochs(one_epoch, config, device, checkpoints, progress=progress)
    return FittedImages(module.eval(), {**kept.copies, config.epochs: module}, losses)


class _Snapshots:
    """Copies of a module by epoch."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.copies: dict[int, nn.Module] = {}

    def keep(self, epoch: int) -> None:
        """Copy the module as it is."""
        self.copies[epoch] = copy.deepcopy(self.module).eval()

    def state_dict(self) -> dict[int, Any]:
        """Weights of each copy."""
        return {epoch: module.state_dict() for epoch, module in self.copies.items()}

    def load_state_dict(self, state: dict[int, Any]) -> None:
        """Copies with these weights; the module ends with those of the last."""
        for epoch, weights in state.items():
            self.module.load_state_dict(weights)
            self.keep(epoch)


class _ImageTraining:
    """Steps and epochs of one training."""

    def __init__(self, module: nn.Module, x: Tensor, y: Tensor, config: ImageTraining) -> None:
        """A training of ``module`` on uint8 images ``x``, (n, channels, side, side), with labels
        ``y``, (n,) or (n, attributes), all on one device.
        """
        self.module = module
        self.x = x
        self.y = y
        self.config = config
        self.forward: Any = torch.compile(module) if config.compile and x.is_cuda else module
        options: Any = {
            "lr": config.learning_rate,
            "weight_decay": config.weight_decay,
            "fused": True,
        }
        self.optimizer: torch.optim.Optimizer
        if config.optimizer == "adam":
            self.optimizer = torch.optim.AdamW(module.parameters(), **options)
        else:
            self.optimizer = torch.optim.SGD(
                module.parameters(), momentum=0.9, nesterov=True, **options
            )
        steps = config.epochs * -(-len(x) // config.batch_size)  # rounded up in each epoch
        # Of every training, for its checkpoint; with a constant rate it makes no step.
        self.cosine = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, steps)

    def step(self, rng: torch.Generator, records: Tensor) -> Tensor:
        """Learn from the records of these numbers, shape (B,), changed by ``rng`` where the config
        says so; their mean loss, nats, shape ().
        """
        x, config = self.x, self.config
        images = augmented(x[records], rng) if config.augment else x[records]
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(x.device.type, torch.bfloat16, enabled=config.precision == "bfloat16"):
            logits = self.forward(as_input(images).contiguous(memory_format=_layout(config)))
        loss = training_loss(logits.float(), self.y[records])
        loss.backward()
        self.optimizer.step()
        if config.schedule == "cosine":
            self.cosine.step()
        return loss.detach()

    def one_epoch(self, epoch: int) -> float:
        """One pass over shuffled batches, by its number from 0; returns the mean loss, nats."""
        self.module.train()
        config, device = self.config, self.x.device
        step = partial(self.step, generator(config.seed, "module", epoch, device))
        return epoch_loss(step, config.seed, epoch, len(self.x), config.batch_size, device)


def augmented(x: Tensor, rng: torch.Generator) -> Tensor:
    """Images (B, channels, side, side), each flipped by a coin and shifted by up to an eighth of
    its side, 0 where nothing moves in.
    """
    count, _, side, _ = x.shape
    reach = max(1, side // 8)  # the farthest shift, in pixels
    flip = torch.rand(count, device=x.device, generator=rng) < 0.5
    x = torch.where(flip[:, None, None, None], x.flip(3), x)
    # A shifted image is a square of the padded one, from these first row and column on.
    first = torch.randint(0, 2 * reach + 1, (2, count, 1), device=x.device, generator=rng)
    first_row, first_column = first
    pixels = torch.arange(side, device=x.device)
    rows = (first_row + pixels)[:, :, None]
    columns = (first_column + pixels)[:, None, :]
    images = torch.arange(count, device=x.device)[:, None, None]
    padded = pad(x, (reach, reach, reach, reach))
    # Such an index puts the axis that it takes whole last: (B, side, side, channels).
    return padded[images, :, rows, columns].permute(0, 3, 1, 2)


def _checked(images: Any, labels: Any, device: torch.device) -> tuple[Tensor, Tensor]:
    """Images (n, channels, side, side) and labels, int64, on the device; a ValueError where they do
    not fit each other.
    """
    x = as_tensor(images)
    y = as_tensor(labels)
    as_input(x[:1])  # refuses what is no array of uint8 images
    if not len(x) or len(y) != len(x) or y.ndim not in (1, 2):
        expected = f"shape (n,) or (n, attributes) for {len(x)} images"
        raise ValueError(f"labels: expected {expected}, got {tuple(y.shape)}")
    return x.to(device), y.long().to(device)


def images_per_second(
    module: nn.Module, images: Any, labels: Any, *, config: ImageTraining
) -> dict[str, float]:
    """Images per second of this loop, "here", and of a plain "dataloader" loop in float32, both
    after an epoch that is not timed. Copies of ``module`` are trained.

    Raises:
        ValueError: Images or labels that `fit_images` refuses.
    """
    device = default_device()
    x, y = _checked(images, labels, device)
    trained = copy.deepcopy(module).to(device)
    trained = trained.to(memory_format=_layout(config))  # pyright: ignore[reportCallIssue]
    here = _timed(_ImageTraining(trained, x, y, config).one_epoch, config.epochs, len(x), device)
    # As most people write it: float images in a DataLoader, moved batch by batch.
    plain = copy.deepcopy(module).to(device)
    data = TensorDataset(as_input(images), as_tensor(np.asarray(labels)).long())
    loader = DataLoader(data, batch_size=config.batch_size, shuffle=True)
    optimizer = torch.optim.Adam(plain.parameters(), lr=config.learning_rate)

    def epoch(_: int) -> None:
        """One epoch of the plain loop, which is timed for comparison."""
        plain.train()
        for pixels, classes in loader:
            optimizer.zero_grad()
            training_loss(plain(pixels.to(device)), classes.to(device)).backward()
            optimizer.step()

    return {"here": here, "dataloader": _timed(epoch, config.epochs, len(x), device)}


# TFLOP/s without sparsity, by a part of the driver's name: bfloat16, and TF32, in which
# convolutions run.
_PEAKS = {
    "H100": (989.4, 494.7),
    "A100": (312.0, 156.0),
    "4090": (165.2, 82.6),
}  # NVIDIA's data sheets


def peak_of(name: str | None, precision: str) -> float | None:
    """Most TFLOP/s of a GPU in "bfloat16" or "float32", by the name that its driver tells; None
    without a GPU, or for one that is not known here.
    """
    for model, (bfloat16, tf32) in _PEAKS.items():
        if name and model in name:
            return bfloat16 if precision == "bfloat16" else tf32
    return None


def flops_per_image(module: nn.Module, images: Any, labels: Any, *, config: ImageTraining) -> float:
    """Operations of products and convolutions for each image of a training step; a multiply-add is
    two.

    A copy of ``module`` makes one step on the first batch of images.

    Raises:
        ValueError: Images or labels that `fit_images` refuses.
    """
    device = default_device()
    x, y = _checked(images[: config.batch_size], labels[: config.batch_size], device)
    run = _ImageTraining(copy.deepcopy(module).to(device), x, y, replace(config, compile=False))
    with FlopCounterMode(display=False) as counter:
        run.step(generator(config.seed, "module", 0, device), torch.arange(len(x), device=device))
    return counter.get_total_flops() / len(x)


def _layout(config: ImageTraining) -> torch.memory_format:
    """Convolutions in bfloat16 are fastest with the channels of a pixel side by side."""
    return torch.channels_last if config.precision == "bfloat16" else torch.contiguous_format


def _timed(epoch: Any, epochs: int, images: int, device: torch.device) -> float:
    """Images per second in ``epochs`` epochs of so many images, after one that is not timed.

    ``epoch`` trains in the epoch of a number from 0.
    """

    def wait() -> None:
        """Wait until the device has done its work; a GPU's calls return earlier."""
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    epoch(0)
    wait()
    start = time.perf_counter()
    for number in range(epochs):
        epoch(number)
    wait()
    return images * epochs / (time.perf_counter() - start)
