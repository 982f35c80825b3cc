"""Targets, helpers and the labeler of the tests on images, and what they say of images."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import nn

from paperlib.audits.panoramia.image_models import answers
from paperlib.audits.panoramia.pools import Target
from paperlib.models.images import (
    ARCHITECTURES,
    CosineFeatures,
    as_input,
    classifier_for,
    image_logits,
    image_losses,
)
from paperlib.papers.panoramia.images.data import Images, LabelledImages
from paperlib.training import TrainingConfig, fit_dp, fit_ensemble, noise_for
from paperlib.training.images import ImageTraining, fit_images, flops_per_image, images_per_second

_AT_ONCE = 512  # images whose gradients DP-SGD holds together: of ResNet-18 about 23 GB in float32
_FIXED = (
    nn.Flatten,
    CosineFeatures,
)  # layers without trained parameters in front of the layers of an MLP
_TARGET = re.compile(r"(?P<null>null )?(?P<name>[a-z0-9-]+?)(@(?P<width>\d+))?:(?P<epochs>\d+)")


@dataclass(frozen=True, kw_only=True)
class ImageTarget(ImageTraining):
    """A model to be audited; with DP-SGD, decay, schedule and flips are left out."""

    name: str  # name in tables
    architecture: str = "cnn"  # a name of ``paperlib.models.images.ARCHITECTURES``
    width: int = 16  # see ``paperlib.models.images.ImageArchitecture``
    null: bool = (
        False  # train it on other images in the place of the members: an audit must find nothing
    )
    dp_epsilon: float | None = None  # of DP-SGD, nats; None trains without
    dp_delta: float = 1e-5  # of DP-SGD
    clip_norm: float = 1.0  # of DP-SGD
    batch_size: int = 32
    group_norm: bool = False  # group norm for batch norm; taken with DP-SGD in any case
    pretrained: bool = False  # start from ImageNet weights

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dp_epsilon is not None and not 0 < self.dp_epsilon < np.inf:
            raise ValueError(
                f"dp_epsilon: expected a finite number above 0, or None, got {self.dp_epsilon}"
            )

    @property
    def run(self) -> "ImageTarget":
        """The training run, which targets that differ in name and epochs alone may share."""
        one_run = self.dp_epsilon is None and self.schedule == "constant"
        return replace(self, name="", epochs=1 if one_run else self.epochs)

    @property
    def audited(self) -> Target:
        """The target as audits know it."""
        kind = "null" if self.null else "trained" if self.dp_epsilon is None else "private"
        return Target(self.name, kind, self.epochs, self.dp_epsilon)


def parse_targets(words: Sequence[str], **settings: Any) -> tuple[ImageTarget, ...]:
    """Targets written as "[null ]ARCHITECTURE[@WIDTH]:EPOCHS"; settings named as a model are its
    own.
    """
    found = []
    own = {name: settings.pop(name) for name in tuple(settings) if name in ARCHITECTURES}
    for text in words:
        if (match := _TARGET.fullmatch(text)) is None or match["name"] not in ARCHITECTURES:
            raise ValueError(
                "targets: expected '[null ]ARCHITECTURE[@WIDTH]:EPOCHS' with one of "
                f"{', '.join(ARCHITECTURES)}, got {text!r}"
            )
        width = {} if match["width"] is None else {"width": int(match["width"])}
        shown = match["name"] + (f"-{match['width']}" if match["width"] else "")
        chosen = {**width, **settings, **own.get(match["name"], {})}
        private = f" DP {chosen['dp_epsilon']:g}" if chosen.get("dp_epsilon") is not None else ""
        name = f"{match['null'] or ''}{shown} E{match['epochs']}{private}"
        about = {
            "architecture": match["name"],
            "epochs": int(match["epochs"]),
            "null": bool(match["null"]),
        }
        found.append(ImageTarget(name=name, **about, **chosen))
    return tuple(found)


def run_target(
    target: ImageTarget,
    epochs: Sequence[int],
    images: Images,
    asked: Mapping[str, LabelledImages],
    checkpoint: Path | None = None,
) -> dict[str, NDArray[Any]]:
    """Train a target, and ask it after some epochs; by "EPOCH/KIND" and "EPOCH/metric/NAME"."""
    x, y = images.together(images.split.trained_on(null=target.null))
    found: dict[str, NDArray[Any]] = {}
    for epoch, module in train_target(target, x, y, images.outputs, epochs, checkpoint).items():
        there = {kind: part for kind, part in asked.items() if len(part)}
        found |= {
            f"{epoch}/{kind}": answers(module, part.x, part.y) for kind, part in there.items()
        }
        metrics = _metrics(module, LabelledImages(x, y, y), images.parts["nonmembers"])
        metrics["parameters"] = sum(values.numel() for values in module.parameters())
        found |= {f"{epoch}/metric/{name}": np.array(value) for name, value in metrics.items()}
    return found


def _metrics(
    module: nn.Module, trained_on: LabelledImages, held_out: LabelledImages
) -> dict[str, float]:
    """Accuracy and mean loss on the labels as given; on attributes the share that is right."""
    found = {}
    for name, part in (("train", trained_on), ("test", held_out)):
        if not len(part):
            found |= {f"{name}_metric": np.nan, f"{name}_loss": np.nan}
            continue
        logits = image_logits(module, part.x)
        guess = (logits > 0).long() if part.y.ndim == 2 else logits.argmax(dim=1)
        found[f"{name}_metric"] = float((guess.numpy() == part.y).mean())
        found[f"{name}_loss"] = float(image_losses(logits, part.y).mean())
    return found


def training_speed(
    target: ImageTarget, images: Images, *, epochs: int = 1, peak: float | None = None
) -> pd.DataFrame:
    """Speed of training a target as it is here, and in a plain loop over a DataLoader."""
    x, y = images.together(images.split.trained_on(null=target.null))
    module, config = _built(target, x, images.outputs), replace(target, epochs=epochs)
    flops = flops_per_image(module, x, y, config=config)
    speeds = images_per_second(module, x, y, config=config)
    table = pd.DataFrame({"loop": list(speeds), "images per second": list(speeds.values())})
    table["TFLOP/s"] = table["images per second"] * flops / 1e12
    return table.assign(share=np.nan if peak is None else table["TFLOP/s"] / peak)


def _built(target: ImageTarget, x: NDArray[np.uint8], outputs: int) -> nn.Module:
    options = {name: getattr(target, name) for name in ("width", "pretrained", "seed")}
    options["group_norm"] = target.dp_epsilon is not None or target.group_norm
    return classifier_for(x, target.architecture, outputs, **options)


def train_target(
    target: ImageTarget,
    x: NDArray[np.uint8],
    y: NDArray[np.int64],
    outputs: int,
    epochs: Sequence[int],
    checkpoint: Path | None = None,
) -> dict[int, nn.Module]:
    """The model after each number of epochs, trained on these images; with DP-SGD after the last
    alone.
    """
    module, private = _built(target, x, outputs), dp_training(target, len(x))
    if private is None:
        config = replace(target, epochs=max(epochs))
        return fit_images(
            module, x, y, config=config, snapshots=epochs, checkpoint=checkpoint
        ).snapshots
    if y.ndim > 1:
        raise ValueError("dp_epsilon: expected None for images with several labels")
    if all(isinstance(layer, (*_FIXED, nn.Linear, nn.ReLU)) for layer in module.children()):
        # An MLP is trained by `fit_ensemble`, which needs no gradients of single images.
        fixed = nn.Sequential(*(layer for layer in module.children() if isinstance(layer, _FIXED)))
        linears = [layer for layer in module.children() if isinstance(layer, nn.Linear)]
        widths = (linears[0].in_features, *(layer.out_features for layer in linears))
        fitted = fit_ensemble([replace(private, widths=widths)], fixed(as_input(x)), y)
        own = nn.Sequential(*fixed, *fitted.model(0).children())
        return {epochs[-1]: own.to(fitted.parameters.device).eval()}
    fitted = fit_dp(module, as_input(x), y, config=private, at_once=_AT_ONCE, checkpoint=checkpoint)
    return {epochs[-1]: fitted.module}


def private_training(target: ImageTarget, images: Images) -> TrainingConfig | None:
    """`dp_training` of a target on the parts it is trained on."""
    parts = images.split.trained_on(null=target.null)
    return dp_training(target, sum(len(images.parts[part]) for part in parts))


def dp_training(target: ImageTarget, examples: int) -> TrainingConfig | None:
    """How a target is trained with the least noise that keeps its epsilon; None for one without
    DP.
    """
    if target.dp_epsilon is None:
        return None
    shared = ("epochs", "batch_size", "optimizer", "learning_rate", "clip_norm", "seed")
    settings: dict[str, Any] = {name: getattr(target, name) for name in shared}
    plain = TrainingConfig(**settings, momentum=0.9 if target.optimizer == "sgd" else 0.0)
    rate, steps = plain.sampling_rate(examples), plain.steps(examples)
    return replace(
        plain, noise_multiplier=noise_for(target.dp_epsilon, rate, steps, target.dp_delta)
    )
