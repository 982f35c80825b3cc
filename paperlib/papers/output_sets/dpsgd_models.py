"""The models of Figure 3: trained by DP-SGD on records that fair coins include, then asked about
all.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paperlib.core import FloatArray, IntArray
from paperlib.data.images.pixels import ImageSet
from paperlib.data.registry import load_images
from paperlib.models import cross_entropy
from paperlib.models.devices import default_device
from paperlib.models.images import as_input, classifier_for, image_logits
from paperlib.models.images.networks import PatchFeatures
from paperlib.papers.kept import kept_runs
from paperlib.training import TrainingConfig, fit_dp, fit_ensemble, noise_for, privacy_of

Kind = Literal["natural", "mislabelled"]
FEATURES = "features"
"""The network that is an MLP on `PatchFeatures`; other names are those of ``ARCHITECTURES``."""
_AT_ONCE = 512  # images whose gradients a network of convolutions holds together


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Settings of DP-SGD; every record is in a batch with probability 1 / ``batches``."""

    epochs: int  #: passes over the members, 1 or more
    batches: int = 10  #: batches of an epoch, 1 or more
    learning_rate: float = 1.0  #: above 0
    momentum: float = 0.9  #: of SGD, in [0, 1)
    clip_norm: float = 1.0  #: largest norm of a record's gradient, above 0


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What all models of Figure 3 have in common."""

    dataset: str = "mnist5k"  #: a name of `load_images`
    #: an MLP on fixed features, or a name of ``paperlib.models.images.ARCHITECTURES``
    network: str = FEATURES
    filters: int = 32  #: of the fixed features, 1 or more
    width: int = 128  #: hidden units of the MLP, or width of the network
    delta: float = 1e-5  #: of DP-SGD and of the audits, in (0, 1)
    tested: int = 10_000  #: images of the test part that the accuracy is measured on


@dataclass(frozen=True, kw_only=True)
class Audited(Setup):
    """One model of Figure 3."""

    kind: Kind  #: records as they are, or each with a wrong label
    records: int  #: number of audit records; 0 takes the whole training part
    others: int = 0  #: further records with their own labels, always trained on
    epsilon: float  #: that DP-SGD guarantees, nats; infinite for the same training without noise
    choice: Choice
    seed: int  #: of records, coins, parameters, batches and noise

    @property
    def together(self) -> tuple[Any, ...]:
        """Models that are equal in this are trained on the same records, and asked the same."""
        records = (self.kind, self.records, self.others, self.seed)
        return (self.dataset, self.network, self.filters, self.width, self.tested, *records)


class Answers(TypedDict):
    """What a model says, and what the accountant."""

    member: NDArray[np.bool_]  #: whether each audit record was trained on, shape (records,)
    loss: FloatArray  #: its cross-entropy after training, nats
    runner_up: FloatArray  #: log-probability of the likeliest other class than its label
    accuracy: float  #: on the test part
    member_accuracy: float  #: on members, by the labels that they were trained with
    guarantee: float  #: epsilon by the accountant at delta; infinite without noise
    seconds: float  #: of training


@dataclass(frozen=True)
class Drawn:
    """Audit records of one model."""

    places: IntArray  #: in the training part, shape (records,)
    labels: IntArray  #: that they are trained with
    member: NDArray[np.bool_]  #: coins
    others: IntArray  #: places of records that are always trained on


@lru_cache(maxsize=1)
def images_of(dataset: str) -> ImageSet:
    """The images, kept in memory."""
    return load_images(dataset)


@lru_cache(maxsize=1)
def inputs_of(dataset: str, network: str, filters: int) -> tuple[Tensor, Tensor]:
    """Both parts as networks take them: pixels, or answers of filters drawn from images of the test
    part.
    """
    images = images_of(dataset)
    train, test = as_input(images.train_x), as_input(images.test_x)
    if network == FEATURES:
        features = PatchFeatures(test, filters=filters, seed=0)
        train, test = (torch.cat([features(part) for part in x.split(256)]) for x in (train, test))
    return train, test


def draw_records(model: Audited, labels: IntArray, classes: int) -> Drawn:
    """The audit records of a model: which ones, their labels and coins, by its seed, kind and
    number.
    """
    records = model.records or labels.size
    if records + model.others > labels.size:
        raise ValueError(
            f"records: expected at most {labels.size}, got {records} and {model.others} others"
        )
    rng = np.random.default_rng([model.seed, model.kind == "mislabelled", records])
    order = rng.permutation(labels.size)
    places, others = order[:records], order[records : records + model.others]
    shift = rng.integers(1, classes, records) if model.kind == "mislabelled" else 0
    trained_with = (labels[places] + shift) % classes
    return Drawn(places, trained_with, rng.integers(0, 2, records).astype(bool), others)


def training_of(model: Audited, examples: int) -> TrainingConfig:
    """DP-SGD of a model on so many members, with the least noise that keeps its epsilon."""
    settings = asdict(model.choice)
    batch_size = -(-examples // settings.pop("batches"))
    config = TrainingConfig(**settings, batch_size=batch_size, seed=model.seed)
    if math.isinf(model.epsilon):
        return config
    # The noise is for a sampling rate rounded up, and so enough.
    rate = min(1.0, math.ceil(1000 * config.sampling_rate(examples)) / 1000)
    noise = noise_for(model.epsilon, rate, config.steps(examples), model.delta)
    return replace(config, noise_multiplier=noise)


def train(models: Sequence[Audited]) -> list[Answers]:
    """Train models that are equal in `Audited.together`, and ask each about its records."""
    first = models[0]
    images = images_of(first.dataset)
    train_x, test_x = inputs_of(first.dataset, first.network, first.filters)
    drawn = draw_records(first, images.train_y, images.outputs)
    taken = np.concatenate([drawn.places[drawn.member], drawn.others])
    x = train_x[taken]
    y = np.concatenate([drawn.labels[drawn.member], images.train_y[drawn.others]])
    configs = [training_of(model, taken.size) for model in models]
    started = time.perf_counter()
    if first.network == FEATURES:
        widths = (x.shape[1], first.width, images.outputs)
        fitted = fit_ensemble(
            [replace(config, widths=widths) for config in configs], x, y, progress=False
        )
        parts = train_x[drawn.places], test_x[: first.tested]
        logits = list(zip(*map(fitted.logits, parts), strict=True))
    else:
        logits = []
        for model, config in zip(models, configs, strict=True):
            options = {"width": model.width, "group_norm": True, "seed": model.seed}
            module = classifier_for(images.train_x[:1], model.network, images.outputs, **options)
            fit_dp(module, x, y, config=config, at_once=_AT_ONCE, progress=False)
            module.eval().to(default_device())
            asked = (images.train_x[drawn.places], images.test_x[: model.tested])
            logits.append(tuple(image_logits(module, part) for part in asked))
    seconds = (time.perf_counter() - started) / len(models)
    labels = torch.from_numpy(drawn.labels)
    answers = list[Answers]()
    for model, config, (asked, tested) in zip(models, configs, logits, strict=True):
        asked = asked.double().cpu()
        runner_up = asked.log_softmax(1).scatter(1, labels[:, None], -torch.inf).amax(1)
        answers.append(
            Answers(
                member=drawn.member,
                loss=cross_entropy(asked, labels).numpy(),
                runner_up=runner_up.numpy(),
                accuracy=float(
                    (tested.cpu().argmax(1).numpy() == images.test_y[: len(tested)]).mean()
                ),
                member_accuracy=float((asked.argmax(1) == labels).numpy()[drawn.member].mean()),
                guarantee=privacy_of(config, taken.size, delta=model.delta).epsilon,
                seconds=seconds,
            )
        )
    return answers


def answers_of(models: Sequence[Audited], *, folder: Path) -> dict[Audited, Answers]:
    """Answers of every model; what was trained before is read from ``folder``."""
    return kept_runs(
        train,
        models,
        folder=folder,
        data={name: dict(images_of(name).sha256s) for name in {model.dataset for model in models}},
        batch_key=lambda model: model.together,
        max_batch=64 if all(model.network == FEATURES for model in models) else 1,
        workers=0,
    )
