"""Images of a class, drawn by a rectified flow: straight lines from noise to images.

The paper's generator is StyleGAN2, which is not packaged. A rectified flow learns the direction
from noise to an image at each point between the two; drawing follows it.
"""

import copy
import math
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import silu
from torch.optim.swa_utils import get_ema_multi_avg_fn

from paperlib.core.checks import check_at_least, check_choice, check_in
from paperlib.core.packages import optional_package
from paperlib.io.progress import progress_bar
from paperlib.models.devices import as_tensor, check_labels, default_device
from paperlib.models.images.build import as_input
from paperlib.training.batches import generator as seeded_generator
from paperlib.training.fitting import Saved, TrainingDiverged

_FREQUENCIES = 16  # by which the MLP is told the time; chosen


@dataclass(frozen=True, kw_only=True)
class FlowConfig:
    """Settings of the generator.

    Attributes:
        network: "mlp", for images of a few dozen pixels, or "unet", diffusers' `UNet2DModel`.
        width: Hidden units of the MLP; channels of the U-Net's first block, a multiple of 8.
        blocks: Residual blocks of the MLP; levels of the U-Net, whose channels double after the
            first.
        learning_rate: Peak of a one-cycle schedule.
        average: Weight of the past in the running mean of parameters that is drawn from, in [0, 1).
        dequantise: Uniform noise on the training pixels, in units of the gap between grey values.
        levels: Evenly spaced grey values of the images, 2 to 256; drawn pixels are rounded to them.
        sampler: "heun" (second order) or "euler".
        sampler_steps: Steps from noise to image.
        precision: "float32", or "bfloat16" to train and draw under autocast.
        compile: Compile the network's training on a GPU, which pays in long runs.

    Source:
        Liu, Gong and Liu (2023), arXiv:2209.03003; times drawn by a logistic normal: Esser et al.
        (2024), arXiv:2403.03206.
    """

    network: str = "mlp"
    width: int = 192
    blocks: int = 2
    steps: int = 2000
    batch_size: int = 128
    learning_rate: float = 2e-3
    average: float = 0.98
    dequantise: float = 0.0
    levels: int = 256
    sampler: str = "heun"
    sampler_steps: int = 25
    precision: str = "float32"
    compile: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse (ValueError) unknown choices, and numbers out of range."""
        check_choice("network", self.network, ("mlp", "unet"))
        check_choice("sampler", self.sampler, ("heun", "euler"))
        check_choice("precision", self.precision, ("float32", "bfloat16"))
        counts = ("width", "blocks", "steps", "batch_size", "sampler_steps")
        check_at_least(1, **{name: getattr(self, name) for name in counts})
        check_in("[0, 1)", "average", self.average)
        check_in("[2, 256]", "levels", self.levels)

    def fit(
        self,
        images: Any,
        labels: Any,
        *,
        classes: int,
        device: torch.device | str | None = None,
        progress: bool = True,
        checkpoint: Path | None = None,
    ) -> "FittedFlow":
        """Train on images and their classes.

        Args:
            images: uint8, shape (n, channels, side, side).
            labels: Class numbers, shape (n,); all 0 for a generator without classes.
            device: None takes CUDA where there is one, else the CPU.
            checkpoint: File that is written about once a minute and at the end, and read if it is
                there: the training ends as one that was not interrupted. The caller removes it.

        Raises:
            ValueError: Images or labels that do not fit.
            CheckpointError: The checkpoint is damaged or of another training.
            TrainingDiverged: The loss stopped being finite.
        """
        device = default_device(device)
        x = as_tensor(images)
        shape = tuple(as_input(x[:1]).shape[1:])
        if not len(x):
            raise ValueError("images: expected at least one, got none")
        x = x.to(device)
        y = check_labels(labels, classes, len(x)).to(device)
        kind = VelocityMLP if self.network == "mlp" else VelocityUNet
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            network = kind(shape, classes, self.width, self.blocks).to(device)
        run = _FlowTraining(self, network, x, y)
        saved = Saved(checkpoint, {"config": asdict(self), "images": list(x.shape)})
        run.finish(saved, progress=progress)
        shares = torch.bincount(y, minlength=classes).double().cpu() / len(y)
        return FittedFlow(run.averaged, self, shape, shares.numpy(), tuple(run.losses))


@dataclass(frozen=True, eq=False)
class FittedFlow:
    """A trained generator."""

    # Points (B, channels, side, side), times (B,) and classes (B,) to velocities.
    network: nn.Module
    config: FlowConfig
    shape: tuple[int, ...]  # of an image: channels, side, side
    shares: NDArray[np.float64]  # of each class in the training data, shape (classes,)
    losses: tuple[float, ...]  # mean squared error of each tenth of the training

    def sample(
        self, n: int, seed: int, *, batch: int | None = None
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Draw images, uint8 (n, channels, side, side), and classes, (n,), as frequent as in
        training.

        Args:
            batch: Images drawn at once; None takes what memory has room for.

        Raises:
            ValueError: ``n`` below 1.
        """
        check_at_least(1, n=n)
        labels = np.random.default_rng(seed).choice(len(self.shares), size=n, p=self.shares)
        # Fewer of images beyond 32 pixels a side, for their memory; on a GPU the images depend on
        # the number.
        batch = batch or max(1, min(1024, 1024 * 32 * 32 // math.prod(self.shape[1:])))
        rng = torch.Generator().manual_seed(seed)
        device = next(self.network.parameters()).device
        images: list[NDArray[np.uint8]] = []
        with progress_bar(n, label="drawing", unit="image") as bar:
            for classes in torch.from_numpy(labels).split(batch):
                noise = torch.randn(len(classes), *self.shape, generator=rng)
                bar.update(len(classes))
                images.append(self._pixels(self._drawn(noise.to(device), classes.to(device))))
        return np.concatenate(images), labels.astype(np.int64)

    def _pixels(self, x: Tensor) -> NDArray[np.uint8]:
        """Numbers from about -1 to 1 as the nearest of evenly spaced grey values."""
        steps = self.config.levels - 1
        grey = ((x.cpu().double() + 1) / 2 * steps).round().clamp(0, steps)
        return (grey * (255 / steps)).round().to(torch.uint8).numpy()

    @torch.inference_mode()
    def _drawn(self, x: Tensor, y: Tensor) -> Tensor:
        """Follow the velocity from noise ``x``, time 0, to images of classes ``y``, time 1."""
        times = torch.linspace(0, 1, self.config.sampler_steps + 1, device=x.device)
        for now, then in pairwise(times):
            step = then - now
            velocity = self._velocity(x, now, y)
            # Heun's step goes by the mean of the velocities at its two ends, and Euler's by that at
            # its start; so does the last, since no velocity was trained at time 1.
            if self.config.sampler == "heun" and then < 1:
                velocity = (velocity + self._velocity(x + step * velocity, then, y)) / 2
            x = x + step * velocity
        return x

    def _velocity(self, x: Tensor, time: Tensor, y: Tensor) -> Tensor:
        """The network's velocity at one time for all points, of the shape of ``x``."""
        with torch.autocast(
            x.device.type, torch.bfloat16, enabled=self.config.precision == "bfloat16"
        ):
            return self.network(x, time.expand(len(x)), y).float()


class _FlowTraining:
    """A training of the generator, with all that has to be restored where it is taken up again."""

    def __init__(self, config: FlowConfig, network: nn.Module, x: Tensor, y: Tensor) -> None:
        """A training of ``network`` on uint8 images ``x``, (n, channels, side, side), of classes
        ``y``, (n,).
        """
        self.config = config
        self.network = network
        self.x = x
        self.y = y
        self.averaged = copy.deepcopy(network).eval()
        self.forward: Any = torch.compile(network) if config.compile and x.is_cuda else network
        self.optimizer = torch.optim.AdamW(network.parameters(), weight_decay=0.01, fused=True)
        # One step longer than the training, since it also steps behind the last one.
        self.cycle = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, config.learning_rate, total_steps=config.steps + 1
        )
        # What has a state of its own, in the order in which states are restored.
        self.stateful: dict[str, Any] = {
            "network": network,
            "averaged": self.averaged,
            "optimizer": self.optimizer,
            "cycle": self.cycle,
        }
        self.rng = seeded_generator(config.seed, "module", 0, x.device)
        self.done = 0  # steps
        self.losses: list[float] = []  # means over a tenth of the steps each
        self.total = torch.zeros((), device=x.device)  # of the losses since the last mean

    def step(self) -> None:
        """One step of the network on a batch drawn at random, and of its running mean, from which
        images are drawn.
        """
        size = (self.config.batch_size,)
        rows = torch.randint(len(self.x), size, generator=self.rng, device=self.x.device)
        self.optimizer.zero_grad(set_to_none=True)
        loss = _loss(self.config, self.forward, self.x[rows], self.y[rows], self.rng)
        loss.backward()
        self.optimizer.step()
        self.cycle.step()
        self.done += 1
        # A plain mean of all steps until that would remember longer than ``average`` allows.
        weight_of_the_past = min(self.config.average, self.done / (self.done + 1))
        average = get_ema_multi_avg_fn(weight_of_the_past)
        average(list(self.averaged.parameters()), list(self.network.parameters()), self.done)
        self.total += loss.detach()

    def finish(self, saved: Saved, *, progress: bool) -> None:
        """Train to the end, from the checkpoint where there is one; the mean loss of each tenth of
        the steps is kept.

        Raises:
            CheckpointError: The checkpoint is damaged or of another training.
            TrainingDiverged: The loss stopped being finite.
        """
        state = saved.state(self.x.device)
        if state is not None:
            self._restore(state)
        steps = self.config.steps
        tenth = max(1, steps // 10)
        bar = progress_bar(steps, label="generator", unit="step", initial=self.done, show=progress)
        with bar:
            for _ in range(self.done, steps):
                self.step()
                if self.done % tenth == 0:
                    self._note_loss(tenth)
                saved.keep(self._state, now=self.done == steps)
                bar.update()

    def _note_loss(self, steps: int) -> None:
        """Keep the mean loss of the last ``steps`` steps; refuses one that is not finite."""
        loss = float(self.total) / steps
        self.losses.append(loss)
        self.total.zero_()
        if not math.isfinite(loss):
            raise TrainingDiverged(
                f"the generator's loss is {loss} at step {self.done}; lower learning_rate"
            )

    def _restore(self, state: dict[str, Any]) -> None:
        """Go back to what `_state` returned."""
        for name, target in self.stateful.items():
            target.load_state_dict(state[name])
        self.rng.set_state(state["rng"].cpu())
        self.done = state["done"]
        self.losses = list(state["losses"])
        self.total.copy_(state["total"])

    def _state(self) -> dict[str, Any]:
        """All that the rest of the training depends on, for a checkpoint."""
        states = {name: source.state_dict() for name, source in self.stateful.items()}
        return states | {
            "rng": self.rng.get_state(),
            "done": self.done,
            "losses": self.losses,
            "total": self.total,
        }


def _loss(config: FlowConfig, forward: Any, x: Tensor, y: Tensor, rng: torch.Generator) -> Tensor:
    """Mean squared error of the velocity at random points between noise and a batch of images.

    On the straight line from noise to image the velocity is the same at all times: image - noise.
    """
    device = x.device
    target = as_input(x)
    if config.dequantise:
        spread = config.dequantise * 2 / (config.levels - 1)  # of grey values from -1 to 1
        target = target + spread * (torch.rand(target.shape, generator=rng, device=device) - 0.5)
    noise = torch.randn(target.shape, generator=rng, device=device)
    times = torch.sigmoid(torch.randn(len(x), generator=rng, device=device))
    share_of_image = times[:, None, None, None]
    points = (1 - share_of_image) * noise + share_of_image * target
    with torch.autocast(device.type, torch.bfloat16, enabled=config.precision == "bfloat16"):
        velocity = forward(points, times, y)
    return (velocity.float() - (target - noise)).square().mean()


class VelocityMLP(nn.Module):
    """Residual blocks on all pixels at once, told the time and the class in every block."""

    def __init__(self, shape: tuple[int, ...], classes: int, width: int, blocks: int) -> None:
        """``blocks`` residual blocks of ``width`` numbers, for images of ``shape`` (channels, side,
        side).
        """
        super().__init__()
        pixels = math.prod(shape)
        self.entry = nn.Linear(pixels, width)
        # A time is told as sines and cosines of _FREQUENCIES frequencies, from 1 to e^6.
        waves = 2 * _FREQUENCIES
        self.time = nn.Sequential(nn.Linear(waves, width), nn.SiLU(), nn.Linear(width, width))
        self.label = nn.Embedding(classes, width)
        # One layer for each block, which tells it time and class.
        self.told = nn.ModuleList([nn.Linear(width, width) for _ in range(blocks)])
        self.blocks = nn.ModuleList([_residual(width) for _ in range(blocks)])
        self.exit = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, pixels))
        frequencies = torch.exp(torch.linspace(0, 6, _FREQUENCIES))
        self.frequencies = nn.Buffer(frequencies, persistent=False)

    def forward(self, x: Tensor, times: Tensor, labels: Tensor) -> Tensor:
        """Velocities, of the shape of ``x``, at points ``x`` (B, ...), times (B,), classes (B,)."""
        angles = times[:, None] * self.frequencies
        waves = torch.cat([angles.sin(), angles.cos()], dim=1)
        condition = silu(self.time(waves) + self.label(labels))
        hidden = self.entry(x.flatten(1))
        for tell, block in zip(self.told, self.blocks, strict=True):
            hidden = hidden + block(hidden + tell(condition))
        return self.exit(hidden).view_as(x)


def _residual(width: int) -> nn.Module:
    """What a block adds to its ``width`` numbers: two layers behind a norm."""
    both = [nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width)]
    return nn.Sequential(nn.LayerNorm(width), *both)


class VelocityUNet(nn.Module):
    """diffusers' `UNet2DModel`, given the class; attention where the side is at most a quarter."""

    def __init__(self, shape: tuple[int, ...], classes: int, width: int, levels: int) -> None:
        """``levels`` of which each but the last halves an image of ``shape`` (channels, side,
        side), with ``width`` channels in the first and twice as many in the others.

        Raises:
            ValueError: A side that cannot be halved so often, or a width that is no multiple of 8.
            ModuleNotFoundError: ``diffusers`` is not installed.
        """
        super().__init__()
        if shape[1] % 2 ** (levels - 1):
            raise ValueError(
                f"blocks: expected levels that halve a side of {shape[1]} evenly, got {levels} "
                f"({levels - 1} halvings)"
            )
        if width % 8:
            raise ValueError(f"width: expected a multiple of 8 for the U-Net, got {width}")
        down, up = ["DownBlock2D"] * levels, ["UpBlock2D"] * levels
        for level in range(2, levels):  # with attention; on the way up in the reverse order
            down[level] = "AttnDownBlock2D"
            up[levels - 1 - level] = "AttnUpBlock2D"
        # Slow to import.
        package = optional_package("diffusers.models.unets.unet_2d", "images", "the U-Net")
        self.unet = package.UNet2DModel(
            sample_size=shape[1],
            in_channels=shape[0],
            out_channels=shape[0],
            layers_per_block=2,
            block_out_channels=(width, *[2 * width] * (levels - 1)),
            down_block_types=tuple(down),
            up_block_types=tuple(up),
            num_class_embeds=classes,
            norm_num_groups=8,
        )

    def forward(self, x: Tensor, times: Tensor, labels: Tensor) -> Tensor:
        """Velocities, of the shape of ``x``, at points ``x`` (B, channels, side, side), times (B,)
        from 0 to 1, classes (B,).
        """
        # diffusers counts time from 0 to 1000.
        return self.unet(x, 1000 * times, class_labels=labels).sample
