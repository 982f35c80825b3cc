"""PANORAMIA on images: the pools, of which every stage is kept on disk by its own configuration."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import nn

from paperlib.audits.panoramia.image_models import ImageHelper, answers, likely_labels, train_helper
from paperlib.audits.panoramia.memorization import copies, near_duplicates
from paperlib.audits.panoramia.pools import Pools, cached_pools, pools_cache, pools_of
from paperlib.core import FloatArray
from paperlib.core.checks import check_at_least, check_choice
from paperlib.generators.image_quality import FakeFilter, kernel_distance
from paperlib.generators.images import FlowConfig
from paperlib.io.sources import code_tag
from paperlib.models.images.build import image_features
from paperlib.report import used_data
from paperlib.reproduction.data.images.pixels import Pixels, shrink
from paperlib.reproduction.papers.panoramia.images.data import (
    Images,
    ImageSplit,
    LabelledImages,
    noisy_labels,
    split_images,
)
from paperlib.reproduction.papers.panoramia.images.models import (
    ImageTarget,
    private_training,
    run_target,
)

_COMPARED = 32  # pixels a side of images whose pixels are compared


@dataclass(frozen=True, kw_only=True)
class ImageConfig:
    """What pools of images are made of."""

    split: ImageSplit = field(default_factory=ImageSplit)
    generator: FlowConfig = field(default_factory=lambda: FlowConfig(levels=5))
    fakes: FakeFilter = field(default_factory=FakeFilter)
    generated: int = 1200  # images of D_out, which nothing has seen before the audit
    helper_images: int = 2400  # generated images that the synthetic helper is trained on
    # Generated images get the class that was asked for ("class"), or that predicted by the labeler,
    # trained on D_G with true labels ("labeler"; always where images have several). Its features
    # measure quality.
    labels: str = "class"
    labeler: ImageHelper = field(
        default_factory=lambda: ImageHelper(name="labeler", data="real", seed=2)
    )
    helpers: tuple[ImageHelper, ...] = tuple(
        ImageHelper(name=data, data=data) for data in ("synthetic", "real")
    )
    targets: tuple[ImageTarget, ...]
    seed: int = 0  # of the generator's draws and of the labels of generated images

    def __post_init__(self) -> None:
        """Refuse (ValueError) settings of targets, helpers, generator and split that do not go
        together.
        """
        check_choice("labels", self.labels, ("class", "labeler"))
        _check_names("targets", [target.name for target in self.targets])
        _check_names("helpers", [helper.name for helper in self.helpers])
        if not self.targets:
            raise ValueError("targets: expected at least one, got none")
        self._check_labeler()
        if self.generator.levels != self.split.levels:
            raise ValueError(
                f"generator: expected levels {self.split.levels} as in split, got "
                f"{self.generator.levels}"
            )
        if any(target.null for target in self.targets) and not self.split.others:
            raise ValueError(
                "split: expected others above 0, which the null target is trained on, got 0"
            )
        check_at_least(2, generated=self.generated, helper_images=self.helper_images)

    def _check_labeler(self) -> None:
        """Refuse a helper that agrees with all labels because it gave them."""
        if self.labels != "labeler" or self.split.label_noise:
            return
        for helper in self.helpers:
            if replace(helper, name=self.labeler.name) == self.labeler:
                raise ValueError(
                    f"helpers: {helper.name} is the labeler itself (same data, labels, settings "
                    "and seed); it agrees with all labels of generated images, which tells them "
                    "from real ones; give it another seed"
                )


def _check_names(role: str, names: list[str]) -> None:
    """Refuse (ValueError) a name that occurs twice; ``role`` begins the message."""
    if len(set(names)) < len(names):
        raise ValueError(f"{role}: expected different names, got {names}")


@dataclass(frozen=True, eq=False)
class GeneratedImages:
    """Generated images for the audit and for the synthetic helper, and numbers about them by
    name.
    """

    audit: LabelledImages
    helper: LabelledImages
    quality: dict[str, float]


def image_pools(config: ImageConfig) -> Pools:
    """Train what has to be trained, and ask every model about every image; kept on disk.

    Raises:
        ValueError: The data set has too few images, or images of several labels where generated
            ones get classes; or the filter keeps too few generated images.
    """
    images = load_split(config)
    key = {
        "images": _without_models(config),
        "targets": config.targets,
        # The noise of private training depends on the number of images and on the accountant.
        "private": [private_training(target, images) for target in config.targets],
        "helpers": [helper.about() for helper in config.helpers],
        "data": images.sha256s,
    }
    return cached_pools(key, partial(_build_pools, config, images), code=__name__)


def _build_pools(config: ImageConfig, images: Images) -> Pools:
    """The pools, of which each stage is read from disk or computed."""
    made = generated_images(config, images)
    asked = _asked(images, made)
    helpers = {
        helper.helper: _helper_answers(config, helper, images, made, asked)
        for helper in config.helpers
    }
    outputs, details = _target_answers(config, images, asked)
    targets = {target.audited: outputs[target.name] for target in config.targets}
    # A generator that copies is nearer to its own training images than to other real ones.
    compared = copies(
        generated=_small(made.audit.x),
        trained_on=_small(images.parts["generator"].x),
        held_out=_small(images.parts["nonmembers"].x),
    )
    examples = {kind: examples.x for kind, examples in asked.items()}
    return pools_of(examples, targets, helpers, pd.DataFrame(details), compared.warnings)


def _asked(images: Images, made: GeneratedImages) -> dict[str, LabelledImages]:
    """What every model is asked about, by kind; kinds without images are left out."""
    asked = {
        "members": images.parts["members"],
        "generated": made.audit,
        "nonmembers": images.parts["nonmembers"],
    }
    return {kind: examples for kind, examples in asked.items() if len(examples)}


def training_accuracies(config: ImageConfig) -> list[float]:
    """Accuracy of each target on its training part, a share; kept for `image_pools` too."""
    images = load_split(config)
    _, details = _target_answers(config, images, _asked(images, generated_images(config, images)))
    return [row["train_metric"] for row in details]


def _small(x: Pixels) -> Pixels:
    """Large images shrunk to ``_COMPARED`` pixels a side where possible: distances are slow."""
    side = x.shape[-1]
    return shrink(x, _COMPARED) if side > _COMPARED and side % _COMPARED == 0 else x


def load_split(config: ImageConfig) -> Images:
    """The real images, dealt out; noted as used data.

    Raises:
        ValueError: Images of several labels for helpers that learn classes.
    """
    images = split_images(config.split)
    if config.labels == "class" and images.multi_label:
        raise ValueError(
            f"labels: expected 'labeler' for {images.name}, whose images have several labels"
        )
    used_data(images.name, [labelled.x for labelled in images.parts.values()])
    return images


def generated_images(config: ImageConfig, images: Images) -> GeneratedImages:
    """Train the generator on its part of the images, draw images, drop obvious fakes, and label the
    rest; kept on disk.

    Raises:
        ValueError: The filter keeps less than a twentieth of the images.
    """
    # How images are labelled plays no part in how they are drawn.
    names = ("split", "generator", "fakes", "generated", "helper_images", "seed")
    settings = {name: getattr(config, name) for name in names}
    key = {"stage": "drawn", "config": settings, "data": images.sha256s, "code": code_tag(__name__)}
    drawn = pools_cache().resumed(key, partial(_draw, config, images))
    labelled = pools_cache().resumed(
        _key(config, images, "labels"), partial(_label, config, images, drawn)
    )

    def piece(rows: slice) -> LabelledImages:
        """The generated images of these rows with their labels."""
        return LabelledImages(drawn["x"][rows], labelled["true"][rows], labelled["y"][rows])

    quality = {"kept": float(drawn["kept"]), **_numbers(labelled, "quality/")}
    return GeneratedImages(
        audit=piece(slice(config.generated)),
        helper=piece(slice(config.generated, None)),
        quality=quality,
    )


def _numbers(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, float]:
    """The numbers whose names begin so, by the rest of their names."""
    return {
        name.removeprefix(prefix): float(arrays[name]) for name in arrays if name.startswith(prefix)
    }


def _seeds(config: ImageConfig) -> list[int]:
    """Seeds of the images that the filter learns, of the filter, of the draws and of the labels."""
    return [int(seed) for seed in np.random.SeedSequence(config.seed).generate_state(4)]


def _draw(config: ImageConfig, images: Images, checkpoint: Path) -> dict[str, Any]:
    """Train the generator, from the checkpoint where there is one, and draw images.

    Returns:
        "x": images that pass the filter, uint8 (n, channels, side, side), for the audit and then
            for the helper. "asked": the classes that the generator was asked for, (n,). "kept": the
            share of the drawn images that passes.
    """
    real = images.parts["generator"]
    for_filter, of_filter, of_draws, _ = _seeds(config)
    if images.multi_label:  # a generator without classes
        classes, labels = 1, np.zeros(len(real), dtype=np.int64)
    else:
        classes, labels = images.outputs, real.true
    flow = config.generator.fit(real.x, labels, classes=classes, checkpoint=checkpoint)
    fake = real.x[:0]
    if config.fakes.threshold < 1:  # at 1 the filter drops nothing, and learns nothing
        fake, _ = flow.sample(len(real), for_filter)
    fakes = config.fakes.fit(real.x, fake, seed=of_filter % 2**31)
    x, classes_asked, share = _kept(flow, fakes, config.generated + config.helper_images, of_draws)
    return {"x": x, "asked": classes_asked, "kept": share}


def _label(
    config: ImageConfig, images: Images, drawn: Mapping[str, NDArray[Any]], checkpoint: Path
) -> dict[str, NDArray[Any]]:
    """True and given labels of generated images, and numbers about their quality.

    Args:
        drawn: Images "x", uint8 (n, channels, side, side), and the classes "asked" of the
            generator, (n,).
        checkpoint: File from which the training of the labeler goes on.

    Returns:
        "true" and "y", and for each quality an array of shape () by the name "quality/NAME".
    """
    real = images.parts["generator"]
    labeler = train_helper(config.labeler, real.x, real.true, images.outputs, checkpoint)
    true = drawn["asked"]
    if config.labels == "labeler":
        true = likely_labels(labeler, drawn["x"], multi_label=images.multi_label)
    *_, of_labels = _seeds(config)
    rng = np.random.default_rng(of_labels)
    y = noisy_labels(true, config.split.label_noise, images.outputs, rng)
    quality = _quality(labeler, images, drawn["x"][: config.generated])
    numbers = {f"quality/{name}": np.array(value) for name, value in quality.items()}
    return {"true": true, "y": y, **numbers}


def _quality(labeler: nn.Module, images: Images, generated: Pixels) -> dict[str, float]:
    """How good generated images are, by name; only what the number of real non-members allows.

    "kid KIND" and "kid KIND error": kernel distance from the members by the labeler's features, and
    its error. "near KIND": share of near duplicates of the generator's training images by pixels.
    "labeler accuracy": share of real non-members whose true label it finds.
    """
    real, held_out = images.parts["generator"], images.parts["nonmembers"]
    quality: dict[str, float] = {}
    features = image_features(labeler, images.parts["members"].x).numpy()
    for name, x in (("generated", generated), ("nonmembers", held_out.x)):
        if len(x) > 1:
            value, error = kernel_distance(features, image_features(labeler, x).numpy())
            quality[f"kid {name}"] = value
            quality[f"kid {name} error"] = error
    if len(held_out):
        near_generated, near_real = near_duplicates(
            _small(generated), _small(real.x), _small(held_out.x)
        )
        quality["near generated"] = near_generated
        quality["near nonmembers"] = near_real
        guesses = likely_labels(labeler, held_out.x, multi_label=images.multi_label)
        quality["labeler accuracy"] = float((guesses == held_out.true).mean())
    return quality


def _kept(
    flow: Any, fakes: Any, size: int, seed: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64], float]:
    """Draw from ``flow`` until ``size`` images pass the filter ``fakes``.

    Returns:
        The images, uint8 (size, channels, side, side), their classes, (size,), and the share of the
            drawn images that passes. Raises ValueError where this falls below a twentieth.
    """
    xs: list[NDArray[np.uint8]] = []
    ys: list[NDArray[np.int64]] = []
    drawn = kept = 0
    while kept < size:
        count = size
        if kept:  # drawing is slow: no more than are likely to be missing
            count = min(size, math.ceil(1.1 * (size - kept) * drawn / kept))
        x, y = flow.sample(count, seed + drawn)
        passes = fakes.keeps(x)
        xs.append(x[passes])
        ys.append(y[passes])
        drawn += count
        kept += int(passes.sum())
        if 20 * kept < drawn:  # to go on would take more than 20 draws for each image
            raise ValueError(
                f"fakes: the filter keeps only {kept / drawn:.1%} of the images; raise its "
                "threshold, or train the generator longer"
            )
    return np.concatenate(xs)[:size], np.concatenate(ys)[:size], kept / drawn


def _helper_answers(
    config: ImageConfig,
    helper: ImageHelper,
    images: Images,
    made: GeneratedImages,
    asked: Mapping[str, LabelledImages],
) -> dict[str, FloatArray]:
    """The helper's `answers` about the images ``asked``, by kind; kept on disk."""
    learned = {
        "synthetic": made.helper,
        "real": images.parts["generator"],
        "others": images.parts["others"],
    }[helper.data]

    def compute(checkpoint: Path) -> dict[str, FloatArray]:
        """Train the helper, from the checkpoint where there is one; its answers by kind, shape (n,
        k).
        """
        module = train_helper(helper, learned.x, learned.y, images.outputs, checkpoint)
        return {kind: answers(module, examples.x, examples.y) for kind, examples in asked.items()}

    return pools_cache().resumed(_key(config, images, "helper", helper.about()), compute)


def _target_answers(
    config: ImageConfig, images: Images, asked: Mapping[str, LabelledImages]
) -> tuple[dict[str, dict[str, FloatArray]], list[dict[str, Any]]]:
    """Ask every target about the images ``asked``; several epochs of one run are one training.

    Returns:
        Outputs, (n, k), by name of the target and kind of image; and for each target a row with its
            architecture, width and the metrics of `run_target`, in their order.
    """
    epochs_of: dict[ImageTarget, set[int]] = {}
    for target in config.targets:
        epochs_of.setdefault(target.run, set()).add(target.epochs)
    runs: dict[ImageTarget, dict[str, NDArray[Any]]] = {}
    for run, numbers in epochs_of.items():
        epochs = tuple(sorted(numbers))
        key = _key(config, images, "target", run, epochs, private_training(run, images))
        runs[run] = pools_cache().resumed(key, partial(run_target, run, epochs, images, asked))
    outputs: dict[str, dict[str, FloatArray]] = {}
    rows: list[dict[str, Any]] = []
    for target in config.targets:
        arrays = runs[target.run]
        outputs[target.name] = {kind: arrays[f"{target.epochs}/{kind}"] for kind in asked}
        model = {"architecture": target.architecture, "width": target.width}
        rows.append(model | _numbers(arrays, f"{target.epochs}/metric/"))
    return outputs, rows


def _key(config: ImageConfig, images: Images, stage: str, *model: Any) -> dict[str, Any]:
    """The cache key of a model's answers at a stage; ``model`` says which model it is.

    They are about generated images too, so the key has all settings that these depend on.
    """
    return {
        "stage": stage,
        "model": model,
        "config": _without_models(config),
        "data": images.sha256s,
        "code": code_tag(__name__),
    }


def _without_models(config: ImageConfig) -> dict[str, Any]:
    """What images depend on: everything but targets and helpers."""
    settings = {setting.name: getattr(config, setting.name) for setting in fields(config)}
    del settings["targets"], settings["helpers"]
    settings["labeler"] = config.labeler.about()
    return settings
