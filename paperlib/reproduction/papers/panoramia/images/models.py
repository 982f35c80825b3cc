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
from paperlib.models.images import classifier_for, image_logits, image_losses
from paperlib.models.images.build import ARCHITECTURES, as_input
from paperlib.models.images.networks import CosineFeatures
from paperlib.reproduction.papers.panoramia.images.data import Images, LabelledImages
from paperlib.training import TrainingConfig, fit_dp, fit_ensemble, noise_for
from paperlib.training.images import ImageTraining, fit_images, flops_per_image, images_per_second

_AT_ONCE = 512  # images whose gradients DP-SGD holds together: of ResNet-18 about 23 GB in float32
# Layers without trained parameters in front of the layers of an MLP.
_FIXED = (nn.Flatten, CosineFeatures)
_TARGET = re.compile(r"(?P<null>null )?(?P<name>[a-z0-9-]+?)(@(?P<width>\d+))?:(?P<epochs>\d+)")


@dataclass(frozen=True, kw_only=True)
class ImageTarget(ImageTraining):
    """A model to be audited; with DP-SGD, decay, schedule and flips are left out."""

    name: str  # name in tables
    architecture: str = "cnn"  # a name of ``paperlib.models.images.ARCHITECTURES``
    width: int = 16  # see ``paperlib.models.images.ImageArchitecture``
    # Train it on other images in the place of the members: an audit must find nothing.
    null: bool = False
    dp_epsilon: float | None = None  # of DP-SGD, nats; None trains without
    dp_delta: float = 1e-5  # of DP-SGD
    clip_norm: float = 1.0  # of DP-SGD
    batch_size: int = 32
    group_norm: bool = False  # group norm for batch norm; taken with DP-SGD in any case
    pretrained: bool = False  # start from ImageNet weights

    def __post_init__(self) -> None:
        """Refuse (ValueError) an epsilon that is no finite number above 0."""
        super().__post_init__()
        if self.dp_epsilon is not None and not 0 < self.dp_epsilon < np.inf:
            raise ValueError(
                f"dp_epsilon: expected a finite number above 0, or None, got {self.dp_epsilon}"
            )

    @property
    def run(self) -> "ImageTarget":
        """The training run, which targets that differ in name and epochs alone may share."""
        # Otherwise what happens up to an epoch depends on how many are to come.
        shared = self.dp_epsilon is None and self.schedule == "constant"
        return replace(self, name="", epochs=1 if shared else self.epochs)

    @property
    def audited(self) -> Target:
        """The target as audits know it."""
        if self.null:
            kind = "null"
        elif self.dp_epsilon is None:
            kind = "trained"
        else:
            kind = "private"
        return Target(self.name, kind, self.epochs, self.dp_epsilon)


def parse_targets(words: Sequence[str], **settings: Any) -> tuple[ImageTarget, ...]:
    """Targets written as "[null ]ARCHITECTURE[@WIDTH]:EPOCHS"; settings named as a model are its
    own.

    The other ``settings`` are fields of `ImageTarget` for all. Raises ValueError for a text of
    another form.
    """
    by_model = {name: value for name, value in settings.items() if name in ARCHITECTURES}
    of_all = {name: value for name, value in settings.items() if name not in ARCHITECTURES}
    targets = []
    for text in words:
        match = _TARGET.fullmatch(text)
        if match is None or match["name"] not in ARCHITECTURES:
            raise ValueError(
                "targets: expected '[null ]ARCHITECTURE[@WIDTH]:EPOCHS' with one of "
                f"{', '.join(ARCHITECTURES)}, got {text!r}"
            )
        targets.append(_parsed(match, {**of_all, **by_model.get(match["name"], {})}))
    return tuple(targets)


def _parsed(match: re.Match[str], settings: Mapping[str, Any]) -> ImageTarget:
    """The target that a match of ``_TARGET`` describes, with further fields in ``settings``; a
    width there overrules that of the text.
    """
    architecture, width, epochs = match["name"], match["width"], match["epochs"]
    options: dict[str, Any] = {"architecture": architecture, "epochs": int(epochs)}
    options["null"] = bool(match["null"])
    name = (match["null"] or "") + architecture
    if width is not None:
        name += f"-{width}"
        if "width" not in settings:
            options["width"] = int(width)
    name += f" E{epochs}"
    if settings.get("dp_epsilon") is not None:
        name += f" DP {settings['dp_epsilon']:g}"
    return ImageTarget(name=name, **options, **settings)


def run_target(
    target: ImageTarget,
    epochs: Sequence[int],
    images: Images,
    asked: Mapping[str, LabelledImages],
    checkpoint: Path | None = None,
) -> dict[str, NDArray[Any]]:
    """Train a target, and ask it after these epochs about the images ``asked``, by kind.

    Holds "EPOCH/KIND", the `answers` about a kind, and "EPOCH/metric/NAME", numbers about the
    model: accuracy and mean loss in training and test, and its number of parameters.
    """
    x, y = images.together(images.split.trained_on(null=target.null))
    learned = LabelledImages(x, y, y)
    arrays: dict[str, NDArray[Any]] = {}
    for epoch, module in train_target(target, x, y, images.outputs, epochs, checkpoint).items():
        for kind, examples in asked.items():
            if len(examples):
                arrays[f"{epoch}/{kind}"] = answers(module, examples.x, examples.y)
        metrics = _metrics(module, learned, images.parts["nonmembers"])
        for name, value in metrics.items():
            arrays[f"{epoch}/metric/{name}"] = np.array(value)
    return arrays


def _metrics(
    module: nn.Module, trained_on: LabelledImages, held_out: LabelledImages
) -> dict[str, float]:
    """Accuracies and mean losses on both, and the number of the model's parameters."""
    train_accuracy, train_loss = _accuracy_and_loss(module, trained_on)
    test_accuracy, test_loss = _accuracy_and_loss(module, held_out)
    return {
        "train_metric": train_accuracy,
        "train_loss": train_loss,
        "test_metric": test_accuracy,
        "test_loss": test_loss,
        "parameters": sum(values.numel() for values in module.parameters()),
    }


def _accuracy_and_loss(module: nn.Module, images: LabelledImages) -> tuple[float, float]:
    """Accuracy, a share, and mean loss, nats, on the labels as given; both are NaN without images.

    Of images with several labels the accuracy is the share of all their attributes that is right.
    """
    if not len(images):
        return np.nan, np.nan
    logits = image_logits(module, images.x)
    # An attribute's logit above 0 is a probability above a half.
    guess = (logits > 0).long() if images.y.ndim == 2 else logits.argmax(dim=1)
    accuracy = float((guess.numpy() == images.y).mean())
    return accuracy, float(image_losses(logits, images.y).mean())


def training_speed(
    target: ImageTarget, images: Images, *, epochs: int = 1, peak: float | None = None
) -> pd.DataFrame:
    """Speed of training a target as it is here, and in a plain loop over a DataLoader.

    Args:
        target: Whose network and settings are timed.
        images: Of which it is trained on its parts.
        epochs: Passes that are timed.
        peak: Of the device, TFLOP/s; None where it is not known.

    Returns:
        A row for each loop: images per second, TFLOP/s, and the share of the peak, NaN without one.
    """
    x, y = images.together(images.split.trained_on(null=target.null))
    module = _built(target, x, images.outputs)
    config = replace(target, epochs=epochs)
    flops = flops_per_image(module, x, y, config=config)
    speeds = images_per_second(module, x, y, config=config)
    table = pd.DataFrame({"loop": list(speeds), "images per second": list(speeds.values())})
    table["TFLOP/s"] = table["images per second"] * flops / 1e12
    return table.assign(share=np.nan if peak is None else table["TFLOP/s"] / peak)


def _built(target: ImageTarget, x: NDArray[np.uint8], outputs: int) -> nn.Module:
    """The target's network for such images before training; DP-SGD needs group norm."""
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
    """The model after each number of ``epochs``, trained on these images; with DP-SGD after the
    last alone.

    Args:
        target: Network, training and seed.
        x: Images, uint8, shape (n, channels, side, side).
        y: Labels, shape (n,), or attributes, (n, outputs).
        outputs: Columns of the logits.
        epochs: After which a copy is kept, from 1.
        checkpoint: File from which an interrupted training goes on; None keeps none.

    Raises:
        ValueError: DP-SGD on images with several labels.
    """
    module = _built(target, x, outputs)
    private = dp_training(target, len(x))
    if private is None:
        config = replace(target, epochs=max(epochs))
        return fit_images(
            module, x, y, config=config, snapshots=epochs, checkpoint=checkpoint
        ).snapshots
    if y.ndim > 1:
        raise ValueError("dp_epsilon: expected None for images with several labels")
    is_mlp = all(isinstance(layer, (*_FIXED, nn.Linear, nn.ReLU)) for layer in module.children())
    if is_mlp:
        return {epochs[-1]: _private_mlp(module, x, y, private)}
    fitted = fit_dp(module, as_input(x), y, config=private, at_once=_AT_ONCE, checkpoint=checkpoint)
    return {epochs[-1]: fitted.module}


def _private_mlp(
    module: nn.Module, x: NDArray[np.uint8], y: NDArray[np.int64], private: TrainingConfig
) -> nn.Module:
    """An MLP of the shape of ``module`` trained with DP-SGD by `fit_ensemble`, which needs no
    gradients of single images.
    """
    fixed = nn.Sequential(*(layer for layer in module.children() if isinstance(layer, _FIXED)))
    linears = [layer for layer in module.children() if isinstance(layer, nn.Linear)]
    widths = (linears[0].in_features, *(layer.out_features for layer in linears))
    fitted = fit_ensemble([replace(private, widths=widths)], fixed(as_input(x)), y)
    trained = nn.Sequential(*fixed, *fitted.model(0).children())
    return trained.to(fitted.parameters.device).eval()


def private_training(target: ImageTarget, images: Images) -> TrainingConfig | None:
    """`dp_training` of a target on the parts it is trained on."""
    names = images.split.trained_on(null=target.null)
    return dp_training(target, sum(len(images.parts[name]) for name in names))


def dp_training(target: ImageTarget, examples: int) -> TrainingConfig | None:
    """How a target is trained on so many ``examples`` by DP-SGD with the least noise that keeps its
    epsilon; None for a target without DP.
    """
    if target.dp_epsilon is None:
        return None
    shared = ("epochs", "batch_size", "optimizer", "learning_rate", "clip_norm", "seed")
    settings: dict[str, Any] = {name: getattr(target, name) for name in shared}
    plain = TrainingConfig(**settings, momentum=0.9 if target.optimizer == "sgd" else 0.0)
    rate = plain.sampling_rate(examples)
    noise = noise_for(target.dp_epsilon, rate, plain.steps(examples), target.dp_delta)
    return replace(plain, noise_multiplier=noise)
