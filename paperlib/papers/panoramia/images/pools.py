"""PANORAMIA on images: the pools of members, generated and other real images.

Every stage is kept on disk by its own configuration: other targets do not train the generator anew, and other
attacks train nothing anew.
"""

import math
from collections.abc import Callable, Mapping
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
    """What pools of images are made of.

    >>> ImageConfig(targets=(ImageTarget(name="cnn 5", epochs=5),)).generated
    1200
    """

    split: ImageSplit = field(default_factory=ImageSplit)  # the images, and how many go where
    generator: FlowConfig = field(default_factory=lambda: FlowConfig(levels=5))
    fakes: FakeFilter = field(default_factory=FakeFilter)  # the filter that drops obvious fakes
    generated: int = 1200  # images of D_out, which nothing has seen before the audit
    helper_images: int = 2400  # generated images that the synthetic helper is trained on
    # labels of generated images: "class", the one the generator was asked for, or "labeler", the prediction
    # of a classifier trained on D_G. Images with several labels need the labeler
    labels: str = "class"
    # the classifier trained on D_G with true labels; it labels, and its features measure quality
    labeler: ImageHelper = field(default_factory=lambda: ImageHelper(name="labeler", data="real", seed=2))
    helpers: tuple[ImageHelper, ...] = tuple(
        ImageHelper(name=data, data=data) for data in ("synthetic", "real")
    )
    targets: tuple[ImageTarget, ...]
    seed: int = 0  # of the generator's draws and of the labels of generated images, 0 or more

    def __post_init__(self) -> None:
        check_choice("labels", self.labels, ("class", "labeler"))
        for role, given in (("targets", self.targets), ("helpers", self.helpers)):
            names = [one.name for one in given]
            if len(set(names)) < len(names):
                raise ValueError(f"{role}: expected different names, got {names}")
        if not self.targets:
            raise ValueError("targets: expected at least one, got none")
        same = [one.name for one in self.helpers if replace(one, name=self.labeler.name) == self.labeler]
        if self.labels == "labeler" and not self.split.label_noise and same:
            raise ValueError(
                f"helpers: {same[0]} is the labeler itself (same data, labels, settings and seed); it agrees "
                "with all labels of generated images, which tells them from real ones; give it another seed"
            )
        if self.generator.levels != self.split.levels:
            raise ValueError(
                f"generator: expected levels {self.split.levels} as in split, got {self.generator.levels}"
            )
        if any(target.null for target in self.targets) and not self.split.others:
            raise ValueError("split: expected others above 0, which the null target is trained on, got 0")
        check_at_least(2, generated=self.generated, helper_images=self.helper_images)


@dataclass(frozen=True, eq=False)
class GeneratedImages:
    """What the generator gave."""

    audit: LabelledImages  # D_out
    helper: LabelledImages  # images that the synthetic helper is trained on
    quality: dict[str, float]  # numbers about it, by name


def image_pools(config: ImageConfig) -> Pools:
    """Train what has to be trained, and ask every model about every image."""
    images = load_split(config)

    def build() -> Pools:
        made, parts = generated_images(config, images), images.parts
        sets = _asked(images, made)
        helpers = {one.helper: _helper_answers(config, one, images, made, sets) for one in config.helpers}
        said, details = _target_answers(config, images, sets)
        targets = {one.audited: said[one.name] for one in config.targets}
        compared = (made.audit.x, parts["generator"].x, parts["nonmembers"].x)
        warnings = copies(*map(_small, compared)).warnings
        examples = {kind: part.x for kind, part in sets.items()}
        return pools_of(examples, targets, helpers, pd.DataFrame(details), warnings)

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
    """Accuracy of each target on what it was trained on, a share; trained once, for `image_pools` too."""
    images = load_split(config)
    _, details = _target_answers(config, images, _asked(images, generated_images(config, images)))
    return [row["train_metric"] for row in details]


def _small(x: Pixels) -> Pixels:
    """Large images shrunk to ``_COMPARED`` pixels a side, where that divides theirs: distances are slow."""
    side = x.shape[-1]
    return shrink(x, _COMPARED) if side > _COMPARED and side % _COMPARED == 0 else x


def load_split(config: ImageConfig) -> Images:
    """The real images, dealt out; noted as used data."""
    images = split_images(config.split)
    if config.labels == "class" and images.multi_label:
        raise ValueError(f"labels: expected 'labeler' for {images.name}, whose images have several labels")
    used_data(images.name, [part.x for part in images.parts.values()])
    return images


def generated_images(config: ImageConfig, images: Images) -> GeneratedImages:
    """Train the generator on D_G, draw images, drop obvious fakes, and label the rest."""
    drawn = _trained_once(_drawn_key(config, images), partial(_draw, config, images))
    given = _trained_once(_key(config, images, "labels"), partial(_label, config, images, drawn))
    audit, helper = (
        LabelledImages(drawn["x"][rows], given["true"][rows], given["y"][rows])
        for rows in (slice(config.generated), slice(config.generated, None))
    )
    return GeneratedImages(audit, helper, {"kept": float(drawn["kept"]), **_numbers(given, "quality/")})


def _trained_once(
    key: Mapping[str, Any], compute: Callable[[Path], Mapping[str, Any]]
) -> dict[str, NDArray[Any]]:
    """What ``compute`` returns, kept on disk; a training that was interrupted goes on from its checkpoint."""
    checkpoint = pools_cache().path(key).with_suffix(".checkpoint")
    arrays = pools_cache().get(key, lambda: compute(checkpoint))
    checkpoint.unlink(missing_ok=True)
    return arrays


def _numbers(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, float]:
    """The numbers whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): float(arrays[name]) for name in arrays if name.startswith(prefix)}


def _seeds(config: ImageConfig) -> list[int]:
    return [int(seed) for seed in np.random.SeedSequence(config.seed).generate_state(4)]


def _draw(config: ImageConfig, images: Images, checkpoint: Path) -> dict[str, Any]:
    """Generated images that pass the filter, the classes asked for, and the share that passes."""
    real, seeds = images.parts["generator"], _seeds(config)
    classes = 1 if images.multi_label else images.outputs
    known = np.zeros(len(real), dtype=np.int64) if images.multi_label else real.true
    flow = config.generator.fit(real.x, known, classes=classes, checkpoint=checkpoint)
    filters = config.fakes.threshold < 1
    drawn = flow.sample(len(real), seeds[0])[0] if filters else real.x[:0]
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
    quality = _quality(labeler, images, x[: config.generated])
    held = images.parts["nonmembers"]
    if len(held):
        right = likely_labels(labeler, held.x, multi_label=images.multi_label) == held.true
        quality["labeler accuracy"] = float(right.mean())
    numbers = {f"quality/{name}": np.array(value) for name, value in quality.items()}
    return {"true": true, "y": y, **numbers}


def _kept(
    flow: Any, fakes: Any, wanted: int, seed: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64], float]:
    """As many images as wanted that pass the filter, and the share that does.

    After the first draw no more are drawn than are likely to be missing: drawing is slow.
    """
    xs, ys, drawn, have = [], [], 0, 0
    while have < wanted:
        count = wanted if not have else min(wanted, math.ceil(1.1 * (wanted - have) * drawn / have))
        x, y = flow.sample(count, seed + drawn)
        keeps = fakes.keeps(x)
        drawn, have = drawn + count, have + int(keeps.sum())
        xs.append(x[keeps])
        ys.append(y[keeps])
        if 20 * have < drawn:  # to go on would take more than 20 draws for each image
            raise ValueError(
                f"fakes: the filter keeps only {have / drawn:.1%} of the images; raise its threshold, or "
                "train the generator longer"
            )
    return np.concatenate(xs)[:wanted], np.concatenate(ys)[:wanted], have / drawn


def _quality(module: Any, images: Images, generated: NDArray[np.uint8]) -> dict[str, float]:
    """Of generated images and of real non-members, what `quality_table` shows.

    That is the kernel distance to the members on features of the labeler, and the share that nearly repeats
    an image of D_G, by pixels.
    """
    members = image_features(module, images.parts["members"].x).numpy()
    found = {}
    for name, x in (("generated", generated), ("nonmembers", images.parts["nonmembers"].x)):
        if len(x) < 2:
            continue
        value, error = kernel_distance(members, image_features(module, x).numpy())
        found |= {f"kid {name}": value, f"kid {name} error": error}
    if len(held := images.parts["nonmembers"].x):
        repeated = near_duplicates(*map(_small, (generated, images.parts["generator"].x, held)))
        found |= dict(zip(("near generated", "near nonmembers"), repeated, strict=True))
    return found


def _helper_answers(
    config: ImageConfig,
    helper: ImageHelper,
    images: Images,
    made: GeneratedImages,
    sets: Mapping[str, LabelledImages],
) -> dict[str, FloatArray]:
    known = {"synthetic": made.helper, "real": images.parts["generator"], "others": images.parts["others"]}
    data = known[helper.data]

    def compute(checkpoint: Path) -> dict[str, FloatArray]:
        module = train_helper(helper, data.x, data.y, images.outputs, checkpoint)
        return {kind: answers(module, part.x, part.y) for kind, part in sets.items()}

    return _trained_once(_key(config, images, "helper", helper.about()), compute)


def _target_answers(
    config: ImageConfig, images: Images, sets: Mapping[str, LabelledImages]
) -> tuple[dict[str, dict[str, FloatArray]], list[dict[str, Any]]]:
    """Targets that differ in epochs alone are one run, looked at on its way."""
    found: dict[str, dict[str, FloatArray]] = {}
    rows: dict[str, dict[str, Any]] = {}
    for run in sorted({target.run for target in config.targets}, key=repr):
        targets = [target for target in config.targets if target.run == run]
        epochs = tuple(sorted({target.epochs for target in targets}))
        key = _key(config, images, "target", run, epochs, private_training(run, images))
        arrays = _trained_once(key, partial(run_target, run, epochs, images, sets))
        for target in targets:
            found[target.name] = {kind: arrays[f"{target.epochs}/{kind}"] for kind in sets}
            about = {"architecture": target.architecture, "width": target.width}
            rows[target.name] = about | _numbers(arrays, f"{target.epochs}/metric/")
    order = [target.name for target in config.targets]
    return {name: found[name] for name in order}, [rows[name] for name in order]


def _drawn_key(config: ImageConfig, images: Images) -> dict[str, Any]:
    """What drawn images depend on: not on their labels."""
    names = ("split", "generator", "fakes", "generated", "helper_images", "seed")
    about = {name: getattr(config, name) for name in names}
    return {"stage": "drawn", "config": about, "data": images.sha256s, "code": code_tag(__name__)}


def _key(config: ImageConfig, images: Images, stage: str, *model: Any) -> dict[str, Any]:
    """A model's answers depend on the images asked about, so on the generator too."""
    return {
        "stage": stage,
        "model": model,
        "config": _without_models(config),
        "data": images.sha256s,
        "code": code_tag(__name__),
    }


def _without_models(config: ImageConfig) -> dict[str, Any]:
    """What images depend on: everything but targets and helpers."""
    rest = {one.name: getattr(config, one.name) for one in fields(config)}
    del rest["targets"], rest["helpers"]
    return rest | {"labeler": config.labeler.about()}
