"""Small networks on handwritten digits: over-trained to three degrees, and trained with DP-SGD."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.datasets import load_digits

from paperlib.core import FloatArray
from paperlib.core.checks import check_at_least, check_in
from paperlib.generators.table_filter import FilteredGenerator
from paperlib.report import used_data
from paperlib.reproduction.papers.comparison.targets import AuditTarget, TrainedConfig
from paperlib.reproduction.papers.kept import cached_arrays
from paperlib.training import TrainingConfig, fit_ensemble
from paperlib.training.ensembles import MLPEnsemble

_LABEL = "label"
_RECORDS, _CANDIDATES = 1, 2  # streams of a seed: of the drawn records, and of orders of labels


@dataclass(frozen=True, kw_only=True)
class DigitsConfig(TrainedConfig):
    """Records and training of the classifiers."""

    #: audited digits, each trained on or not by its own fair coin; the rest is for helpers
    records: int = 1200
    noisy_labels: float = 0.4  #: share of all records whose label is drawn anew, in (0, 1]
    epochs: tuple[int, ...] = (20, 60, 200)
    width: int = 256  #: hidden units, 1 or more

    def __post_init__(self) -> None:
        """Refuse (ValueError) numbers out of range."""
        check_in("(0, 1]", "noisy_labels", self.noisy_labels)
        check_at_least(1, private_epochs=self.private_epochs, width=self.width)
        if not 100 <= self.records <= 1500:
            raise ValueError(
                f"records: expected 100 to 1500 of the 1797 digits, got {self.records}"
            )


@dataclass(frozen=True)
class Digits:
    """Audited records first, then those that the generator and the helper learn from."""

    pixels: np.ndarray  # in [0, 1], shape (n, 64)
    labels: np.ndarray  # as trained with, shape (n,)
    spoiled: np.ndarray  # whose label was drawn at random, shape (n,)
    member: np.ndarray  # coins of the audited records, shape (records,)


@lru_cache(maxsize=1)
def _loaded() -> tuple[np.ndarray, np.ndarray]:
    """Pixels of the digits in [0, 1], shape (1797, 64), and their labels."""
    loaded: Any = load_digits(return_X_y=True)
    images, labels = loaded
    return (images / 16).astype(np.float32), labels


def drawn_digits(config: DigitsConfig) -> Digits:
    """Order the digits, draw a share of the labels anew, and toss a fair coin for each audited
    one.
    """
    pixels, labels = _loaded()
    rng = np.random.default_rng([config.seed, _RECORDS])
    order = rng.permutation(labels.size)
    spoiled = rng.random(labels.size) < config.noisy_labels
    trained_with = np.where(spoiled, rng.integers(0, 10, labels.size), labels[order])
    member = rng.integers(0, 2, config.records).astype(bool)
    return Digits(pixels[order], trained_with, spoiled, member)


def classifiers(config: DigitsConfig) -> list[AuditTarget]:
    """All classifiers with their scores, from the cache if the same code trained them before."""
    digits = drawn_digits(config)
    examples = int(digits.member.sum())
    plain = TrainingConfig(
        widths=(64, config.width, 10),
        epochs=1,
        batch_size=64,
        optimizer="adam",
        learning_rate=1e-3,
        seed=config.seed,
    )
    private = replace(plain, learning_rate=1e-2, clip_norm=1.0)
    trainings = config.trainings(plain, private, examples)
    checksum = used_data("handwritten digits (scikit-learn)", _loaded())
    stage = {"stage": "compared classifiers", "config": config, "data": checksum}
    arrays = cached_arrays(
        stage, lambda: _train(config, digits, list(trainings.values())), code=__name__
    )
    return config.targets(
        "classifier", trainings, arrays, member=digits.member, examples=examples, labels=True
    )


def _train(
    config: DigitsConfig, digits: Digits, configs: list[TrainingConfig]
) -> Mapping[str, Any]:
    """Train a model by each of ``configs`` on the members, and ask all of them.

    Returns:
        "signals", shape (models, records, 4): both `_signals` of the model and of a helper that
            learned no member. "sets": see `_label_sets`. For PANORAMIA on members and as many rows
            of a generator, n together: "features", (n, 66), the helper's signals and the pixels;
            "generated_signals", (models, n, 2); "member", (n,); and "seconds" of generator and
            helper.
    """
    audited = slice(config.records)
    x, y, member = digits.pixels[audited], digits.labels[audited], digits.member
    others = slice(config.records, None)
    other_x, other_y = digits.pixels[others], digits.labels[others]
    models = fit_ensemble(configs, x[member], y[member], device="cpu", progress=False)
    started = perf_counter()
    generated_x, generated_y = _generated(other_x, other_y, int(member.sum()), config.seed)
    helper = fit_ensemble(configs[:1], other_x, other_y, device="cpu", progress=False)
    seconds = perf_counter() - started
    both_x = np.concatenate([x[member], generated_x])
    both_y = np.concatenate([y[member], generated_y])
    # What the helper says, which never saw a member, is the same beside each model.
    of_helper = np.broadcast_to(_signals(helper, x, y), (len(configs), len(x), 2))
    return {
        "signals": np.concatenate([_signals(models, x, y), of_helper], axis=2),
        "sets": _label_sets(models, x, y, member & digits.spoiled[audited], config.seed),
        "features": np.column_stack([_signals(helper, both_x, both_y)[0], both_x]),
        "generated_signals": _signals(models, both_x, both_y),
        "member": np.arange(len(both_y)) < member.sum(),
        "seconds": seconds,
    }


def _generated(
    x: np.ndarray, y: np.ndarray, count: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Pixels and labels drawn from a generator that is fitted on these."""
    table = pd.DataFrame(x).add_prefix("pixel ").assign(**{_LABEL: y})
    rows = FilteredGenerator(seed=seed).fit(table).sample(count, seed + 1)
    return rows.drop(columns=_LABEL).to_numpy(np.float32), rows[_LABEL].to_numpy()


def _signals(models: MLPEnsemble, x: np.ndarray, y: np.ndarray) -> FloatArray:
    """Of each model and record the log odds of the given label, and the log-probability of the
    likeliest one: shape (models, n, 2).
    """
    likeliest = models.logits(x).double().log_softmax(-1).amax(-1).cpu().numpy()
    return np.stack([-models.margin_losses(x, y), likeliest], axis=2)


def _label_sets(
    models: MLPEnsemble, x: np.ndarray, y: np.ndarray, drawn: np.ndarray, seed: int
) -> FloatArray:
    """Logits of the m records of the mask ``drawn``, members whose label was drawn at random, that
    label first and the others in random order: shape (models, m, 10).
    """
    # Label y + shift modulo 10: shift 0 is the label itself and comes first.
    shift = np.tile(np.arange(10), (int(drawn.sum()), 1))
    shift[:, 1:] = np.random.default_rng([seed, _CANDIDATES]).permuted(shift[:, 1:], axis=1)
    order = (y[drawn, None] + shift) % 10
    logits = models.logits(x[drawn]).double()
    return logits.gather(2, torch.from_numpy(order).expand(len(models), *order.shape)).cpu().numpy()
