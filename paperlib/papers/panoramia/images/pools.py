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

from paperlib.audits.panoramia.image_models import ImageHelper, answers, likely_labels, train_helper
from paperlib.audits.panoramia.memorization import copies, near_duplicates
from paperlib.audits.panoramia.pools import Pools, cached_pools, pools_cache, pools_of
from paperlib.core import FloatArray, check_at_least, check_choice
from paperlib.data.images.pixels import Pixels, shrink
from paperlib.generators.image_quality import FakeFilter, kernel_distance
from paperlib.generators.images import FlowConfig
from paperlib.io import code_tag
from paperlib.models.images import image_features
from paperlib.papers.panoramia.images.data import (
    Images,
    ImageSplit,
    LabelledImages,
    noisy_labels,
    split_images,
)
from paperlib.papers.panoramia.images.models import ImageTarget, private_training, run_target
from paperlib.report import used_data

_COMPARED = 32


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
        ImageHelper(name=one, data=one) for one in ("synthetic", "real")
    )
    targets: tuple[ImageTarget, ...]
    seed: int = 0  # of the generator's draws and of the labels of generated images

    def __post_init__(self) -> None:
        check_choice("labels", self.labels, ("class", "labeler"))
        for role, given in (("targets", self.targets), ("helpers", self.helpers)):
            names = [one.name for one in given]
            if len(set(names)) < len(names):
                raise ValueError(f"{role}: expected different names, got {names}")
        if not self.targets:
            raise ValueError("targets: expected at least one, got none")
        same = [
            one.name for one in self.helpers if replace(one, name=self.labeler.name) == self.labeler
        ]
        if self.labels == "labeler" and not self.split.label_noise and same:
            raise ValueError(
                f"helpers: {same[0]} is the labeler itself (same data, labels, settings and seed); "
                "it agrees with all labels of generated images, which tells them from real ones; "
                "give it another seed"
            )
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


@dataclass(frozen=True, eq=False)
class GeneratedImages:
    """D_out, images for the synthetic helper, and numbers about them by name."""

    audit: LabelledImages
    helper: LabelledImages
    quality: dict[str, float]


def image_pools(config: ImageConfig) -> Pools:
    """Train what has to be trained, and ask every model about every image."""
    images = load_split(config)

    def build() -> Pools:
        made, parts = generated_images(config, images), images.parts
        sets = _asked(images, made)
        helpers = {
            one.helper: _helper_answers(config, one, images, made, sets) for one in config.helpers
        }
        said, details = _target_answers(config, images, sets)
        targets = {one.audited: said[one.name] for one in config.targets}
        compared = copies(*map(_small, (made.audit.x, parts["generator"].x, parts["nonmembers"].x)))
        examples = {kind: part.x for kind, part in sets.items()}
        return pools_of(examples, targets, helpers, pd.DataFrame(details), compared.warnings)

    key = {
        "images": _without_models(config),
        "targets": config.targets,
        "private": [private_training(target, images) for target in config.targets],
        "helpers": [helper.about() for helper in config.helpers],
        "data": images.sha256s,
    }
    return cached_pools(key, build, code=__name__)


def _asked(images: Images, made: GeneratedImages) -> dict[str, LabelledImages]:
    """What every model is asked about, by kind."""
    parts = images.parts
    sets = {"members": parts["members"], "generated": made.audit, "nonmembers": parts["nonmembers"]}
    return {kind: part for kind, part in sets.items() if len(part)}


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
    """The real images, dealt out; noted as used data."""
    images = split_images(config.split)
    if config.labels == "class" and images.multi_label:
        raise ValueError(
            f"labels: expected 'labeler' for {images.name}, whose images have several labels"
        )
    used_data(images.name, [part.x for part in images.parts.values()])
    return images


def generated_images(config: ImageConfig, images: Images) -> GeneratedImages:
    """Train the generator on D_G, draw images, drop obvious fakes, and label the rest."""
    names = (
        "split",
        "generator",
        "fakes",
        "generated",
        "helper_images",
        "seed",
    )  # labels do not count
    about = {name: getattr(config, name) for name in names}
    key = {"stage": "drawn", "config": about, "data": images.sha256s, "code": code_tag(__name__)}
    drawn = pools_cache().resumed(key, partial(_draw, config, images))
    given = pools_cache().resumed(
        _key(config, images, "labels"), partial(_label, config, images, drawn)
    )
    audit, helper = (
        LabelledImages(drawn["x"][rows], given["true"][rows], given["y"][rows])
        for rows in (slice(config.generated), slice(config.generated, None))
    )
    return GeneratedImages(
        audit, helper, {"kept": float(drawn["kept"]), **_numbers(given, "quality/")}
    )


def _numbers(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, float]:
    """The numbers whose names begin so, by the rest of their names."""
    return {
        name.removeprefix(prefix): float(arrays[name]) for name in arrays if name.startswith(prefix)
    }


def _seeds(config: ImageConfig) -> list[int]:
    return [int(seed) for seed in np.random.SeedSequence(config.seed).generate_state(4)]


def _draw(config: ImageConfig, images: Images, checkpoint: Path) -> dict[str, Any]:
    """Generated images that pass the filter, the classes asked for, and the share that passes."""
    real, seeds = images.parts["generator"], _seeds(config)
    classes = 1 if images.multi_label else images.outputs
    known = np.zeros(len(real), dtype=np.int64) if images.multi_label else real.true
    flow = config.generator.fit(real.x, known, classes=classes, checkpoint=checkpoint)
    drawn = flow.sample(len(real), seeds[0])[0] if config.fakes.threshold < 1 else real.x[:0]
    fakes = config.fakes.fit(real.x, drawn, seed=seeds[1] % 2**31)
    x, asked, share = _kept(flow, fakes, config.generated + config.helper_images, seeds[2])
    return {"x": x, "asked": asked, "kept": share}


def _label(
    config: ImageConfig, images: Images, drawn: Mapping[str, NDArray[Any]], checkpoint: Path
) -> dict[str, NDArray[Any]]:
    """True and given labels of generated images, and numbers about their quality."""
    real, x, true = images.parts["generator"], drawn["x"], drawn["asked"]
    labeler = train_helper(config.labeler, real.x, real.true, images.outputs, checkpoint)
    if config.labels == "labeler":
        true = likely_labels(labeler, x, multi_label=images.multi_label)
    rng = np.random.default_rng(_seeds(config)[3])
    y = noisy_labels(true, config.split.label_noise, images.outputs, rng)
    # Kernel distance to the members by the labeler's features, and near duplicates of D_G by
    # pixels.
    held, quality = images.parts["nonmembers"], dict[str, float]()
    features = image_features(labeler, images.parts["members"].x).numpy()
    for name, part in (("generated", x[: config.generated]), ("nonmembers", held.x)):
        if len(part) > 1:
            value, error = kernel_distance(features, image_features(labeler, part).numpy())
            quality |= {f"kid {name}": value, f"kid {name} error": error}
    if len(held):
        repeated = near_duplicates(*map(_small, (x[: config.generated], real.x, held.x)))
        quality |= dict(zip(("near generated", "near nonmembers"), repeated, strict=True))
        right = likely_labels(labeler, held.x, multi_label=images.multi_label) == held.true
        quality["labeler accuracy"] = float(right.mean())
    numbers = {f"quality/{name}": np.array(value) for name, value in quality.items()}
    return {"true": true, "y": y, **numbers}


def _kept(
    flow: Any, fakes: Any, wanted: int, seed: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64], float]:
    """As many images as wanted that pass the filter, their classes, and the share that passes."""
    xs, ys, drawn, have = [], [], 0, 0
    while have < wanted:
        # Drawing is slow: no more than are likely to be missing.
        count = wanted if not have else min(wanted, math.ceil(1.1 * (wanted - have) * drawn / have))
        x, y = flow.sample(count, seed + drawn)
        keeps = fakes.keeps(x)
        drawn, have = drawn + count, have + int(keeps.sum())
        xs.append(x[keeps])
        ys.append(y[keeps])
        if 20 * have < drawn:  # to go on would take more than 20 draws for each image
            raise ValueError(
                f"fakes: the filter keeps only {have / drawn:.1%} of the images; raise its "
                "threshold, or train the generator longer"
            )
    return np.concatenate(xs)[:wanted], np.concatenate(ys)[:wanted], have / drawn


def _helper_answers(
    config: ImageConfig,
    helper: ImageHelper,
    images: Images,
    made: GeneratedImages,
    sets: Mapping[str, LabelledImages],
) -> dict[str, FloatArray]:
    known = {
        "synthetic": made.helper,
        "real": images.parts["generator"],
        "others": images.parts["others"],
    }
    data = known[helper.data]

    def compute(checkpoint: Path) -> dict[str, FloatArray]:
        module = train_helper(helper, data.x, data.y, images.outputs, checkpoint)
        return {kind: answers(module, part.x, part.y) for kind, part in sets.items()}

    return pools_cache().resumed(_key(config, images, "helper", helper.about()), compute)


def _target_answers(
    config: ImageConfig, images: Images, sets: Mapping[str, LabelledImages]
) -> tuple[dict[str, dict[str, FloatArray]], list[dict[str, Any]]]:
    """Outputs of each target by kind, and rows about them; several epochs of one run are one
    training.
    """
    runs: dict[ImageTarget, dict[str, NDArray[Any]]] = {}
    for run in dict.fromkeys(target.run for target in config.targets):
        epochs = tuple(sorted({target.epochs for target in config.targets if target.run == run}))
        key = _key(config, images, "target", run, epochs, private_training(run, images))
        runs[run] = pools_cache().resumed(key, partial(run_target, run, epochs, images, sets))
    found: dict[str, dict[str, FloatArray]] = {}
    rows: list[dict[str, Any]] = []
    for target in config.targets:
        arrays, epoch = runs[target.run], target.epochs
        found[target.name] = {kind: arrays[f"{epoch}/{kind}"] for kind in sets}
        about = {"architecture": target.architecture, "width": target.width}
        rows.append(about | _numbers(arrays, f"{epoch}/metric/"))
    return found, rows


def _key(config: ImageConfig, images: Images, stage: str, *model: Any) -> dict[str, Any]:
    """A model's answers depend on the images asked about, so on the generator too."""
    about = {"config": _without_models(config), "data": images.sha256s, "code": code_tag(__name__)}
    return {"stage": stage, "model": model, **about}


def _without_models(config: ImageConfig) -> dict[str, Any]:
    """What images depend on: everything but targets and helpers."""
    rest = {one.name: getattr(config, one.name) for one in fields(config)}
    del rest["targets"], rest["helpers"]
    return rest | {"labeler": config.labeler.about()}
