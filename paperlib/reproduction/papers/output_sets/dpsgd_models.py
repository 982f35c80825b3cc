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
from paperlib.io import user_cache_folder
from paperlib.io.budget import has_budget
from paperlib.io.files import config_hash
from paperlib.models import cross_entropy
from paperlib.models.devices import default_device
from paperlib.models.images import classifier_for, image_logits
from paperlib.models.images.build import as_input
from paperlib.models.images.networks import PatchFeatures
from paperlib.reproduction.data.images.pixels import ImageSet
from paperlib.reproduction.data.registry import load_images
from paperlib.reproduction.papers.kept import kept_runs
from paperlib.training import TrainingConfig, fit_dp, fit_ensemble, noise_for
from paperlib.training.private.accounting import privacy_of

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

    rows: IntArray  #: their rows in the training part, shape (records,)
    labels: IntArray  #: that they are trained with
    member: NDArray[np.bool_]  #: coins
    others: IntArray  #: rows of the records that are always trained on


@lru_cache(maxsize=1)
def images_of(dataset: str) -> ImageSet:
    """The images, kept in memory."""
    return load_images(dataset)


@lru_cache(maxsize=1)
def inputs_of(dataset: str, network: str, filters: int) -> tuple[Tensor, Tensor]:
    """Training and test part as networks take them, shape (n, ...): pixels, or answers of filters
    that are drawn from images of the test part.
    """
    images = images_of(dataset)
    train = as_input(images.train_x)
    test = as_input(images.test_x)
    if network != FEATURES:
        return train, test
    features = PatchFeatures(test, filters=filters, seed=0)
    return _in_batches(features, train), _in_batches(features, test)


def _in_batches(features: PatchFeatures, pixels: Tensor) -> Tensor:
    """Answers of the filters to all images, a few at a time."""
    return torch.cat([features(batch) for batch in pixels.split(256)])


def draw_records(model: Audited, labels: IntArray, classes: int) -> Drawn:
    """The audit records of a model: which ones, their labels and coins, by its seed, kind and
    number.

    Args:
        model: Its settings.
        labels: Of the whole training part, shape (n,).
        classes: Number of classes.

    Raises:
        ValueError: The training part has too few records.
    """
    records = model.records or labels.size
    if records + model.others > labels.size:
        raise ValueError(
            f"records: expected at most {labels.size}, got {records} and {model.others} others"
        )
    rng = np.random.default_rng([model.seed, model.kind == "mislabelled", records])
    order = rng.permutation(labels.size)
    rows = order[:records]
    others = order[records : records + model.others]
    # A wrong label is the right one plus 1 to classes - 1, modulo the number of classes.
    shift = rng.integers(1, classes, records) if model.kind == "mislabelled" else 0
    trained_with = (labels[rows] + shift) % classes
    coins = rng.integers(0, 2, records).astype(bool)
    return Drawn(rows, trained_with, coins, others)


def training_of(model: Audited, examples: int) -> TrainingConfig:
    """DP-SGD of a model on so many ``examples``, with the least noise that keeps its epsilon; an
    infinite epsilon has clipping alone.
    """
    settings = asdict(model.choice)
    batch_size = -(-examples // settings.pop("batches"))
    config = TrainingConfig(**settings, batch_size=batch_size, seed=model.seed)
    if math.isinf(model.epsilon):
        return config
    # The noise is for a sampling rate rounded up, and so enough.
    rate = min(1.0, math.ceil(1000 * config.sampling_rate(examples)) / 1000)
    noise = noise_for(model.epsilon, rate, config.steps(examples), model.delta)
    return replace(config, noise_multiplier=noise)


def trained_answers(models: Sequence[Audited]) -> list[Answers]:
    """Train models that are equal in `Audited.together`, and ask each about its records.

    The answers are in the order of ``models``; each holds an equal share of the seconds.
    """
    first = models[0]
    images = images_of(first.dataset)
    drawn = draw_records(first, images.train_y, images.outputs)
    trained_on = np.concatenate([drawn.rows[drawn.member], drawn.others])
    y = np.concatenate([drawn.labels[drawn.member], images.train_y[drawn.others]])
    configs = [training_of(model, trained_on.size) for model in models]
    # The inputs of features are computed before the clock starts.
    train_x, test_x = inputs_of(first.dataset, first.network, first.filters)
    x = train_x[trained_on]
    started = time.perf_counter()
    if first.network == FEATURES:
        widths = (x.shape[1], first.width, images.outputs)
        ensemble = fit_ensemble(
            [replace(config, widths=widths) for config in configs], x, y, progress=False
        )
        on_records = ensemble.logits(train_x[drawn.rows])
        on_tests = ensemble.logits(test_x[: first.tested])
        logits = list(zip(on_records, on_tests, strict=True))
    else:
        logits = [
            _trained_logits(model, config, (x, y), drawn)
            for model, config in zip(models, configs, strict=True)
        ]
    seconds = (time.perf_counter() - started) / len(models)
    answers: list[Answers] = []
    for model, config, (on_record, on_test) in zip(models, configs, logits, strict=True):
        guarantee = privacy_of(config, trained_on.size, delta=model.delta).epsilon
        answers.append(_answers(drawn, on_record, on_test, images, guarantee, seconds))
    return answers


def _trained_logits(
    model: Audited, config: TrainingConfig, members: tuple[Tensor, IntArray], drawn: Drawn
) -> tuple[Tensor, Tensor]:
    """Train one network on the inputs and labels of its members; its logits of the audit records
    and of the first images of the test part, shape (n, classes) each.
    """
    images = images_of(model.dataset)
    module = classifier_for(
        images.train_x[:1],
        model.network,
        images.outputs,
        width=model.width,
        group_norm=True,
        seed=model.seed,
    )
    # Only a run that has to end in time is kept on the way, and one that goes on from it.
    folder = user_cache_folder() / "checkpoints"
    checkpoint = (
        folder / f"{config_hash({'model': repr(model)})}.checkpoint" if has_budget() else None
    )
    fit_dp(
        module,
        *members,
        config=config,
        at_once=_AT_ONCE,
        progress=False,
        ghost=True,
        checkpoint=checkpoint,
        checkpoint_every=max(1, config.epochs),
    )
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    module.eval().to(default_device())
    on_records = image_logits(module, images.train_x[drawn.rows])
    return on_records, image_logits(module, images.test_x[: model.tested])


def _answers(
    drawn: Drawn,
    on_records: Tensor,
    on_tests: Tensor,
    images: ImageSet,
    guarantee: float,
    seconds: float,
) -> Answers:
    """Answers from the logits of the audit records and of the first images of the test part."""
    labels = torch.from_numpy(drawn.labels)
    logits = on_records.double().cpu()
    # The largest log-probability once that of the label is put to -inf.
    runner_up = logits.log_softmax(1).scatter(1, labels[:, None], -torch.inf).amax(1)
    right_on_tests = on_tests.cpu().argmax(1).numpy() == images.test_y[: len(on_tests)]
    right_on_records = (logits.argmax(1) == labels).numpy()
    return Answers(
        member=drawn.member,
        loss=cross_entropy(logits, labels).numpy(),
        runner_up=runner_up.numpy(),
        accuracy=float(right_on_tests.mean()),
        member_accuracy=float(right_on_records[drawn.member].mean()),
        guarantee=guarantee,
        seconds=seconds,
    )


def model_answers(models: Sequence[Audited], *, folder: Path) -> dict[Audited, Answers]:
    """Answers of every model. What was trained before is read from ``folder``, and the others are
    trained, those with equal `Audited.together` at once.
    """
    return kept_runs(
        trained_answers,
        models,
        folder=folder,
        data={name: dict(images_of(name).sha256s) for name in {model.dataset for model in models}},
        batch_key=lambda model: model.together,
        max_batch=64 if all(model.network == FEATURES for model in models) else 1,
        workers=0,
    )
