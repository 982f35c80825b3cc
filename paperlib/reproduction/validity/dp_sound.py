"""Sound loops of DP-SGD over a grid of sizes, batches, rates and losses, not to be accused."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional

from paperlib.reproduction.validity.dp_faults import SOUND, made_up_records, train_with_fault

# Of the grid; chosen.
_OPACUS_SHARE = 0.25  # of all loops; the others are the sound loops of the zoo of faults
_RECORDS = (16, 131)  # least, and one above the most
_RATES = (0.1, 0.15, 0.25, 0.3, 0.5, 0.75, 1.0)
_NORMS = (0.1, 0.5, 1.0, 2.0, 10.0)
_NOISES = (0.5, 0.7, 1.0, 2.0)
_STEPS = (4, 8, 12, 24)
_FEWEST_BATCHES = 8  # steps of the loops of Opacus, whose passes end only with the data

LOSSES: dict[str, Callable[[Tensor, Tensor, str], Tensor]] = {
    "cross-entropy": lambda outputs, labels, how: functional.cross_entropy(
        outputs, labels, reduction=how
    ),
    "smoothed labels": lambda outputs, labels, how: functional.cross_entropy(
        outputs, labels, reduction=how, label_smoothing=0.1
    ),
    "margin": lambda outputs, labels, how: functional.multi_margin_loss(
        outputs, labels, reduction=how
    ),
    "negative likelihood": lambda outputs, labels, how: functional.nll_loss(
        functional.log_softmax(outputs, 1), labels, reduction=how
    ),
}
"""Losses of the loops of Opacus, by name: of outputs, labels, and "mean" or "sum"."""

NULLS: dict[str, Any] = {
    "none": None,
    "label -100": (torch.zeros(8), torch.tensor(-100)),
    "features 0": (torch.zeros(8), torch.tensor(0)),
}
"""Records that stand for none, by name."""


@dataclass(frozen=True, kw_only=True)
class SoundSetting:
    """One sound loop, and what is stated of it.

    Attributes:
        loop: A name of ``SOUND`` of the zoo of faults, or "Opacus, mean" or "Opacus, sum".
        loss: The name of a loss.
        records: Records of the data.
        batch: Expected size of a batch, records.
        sampling_rate, clipping_norm, noise_multiplier, steps: As in `audit_dp_training`.
        null: A name of `NULLS`.
        seed: Of the data.
    """

    loop: str
    loss: str
    records: int
    batch: float
    sampling_rate: float
    clipping_norm: float
    noise_multiplier: float
    steps: int
    null: str
    seed: int


def sound_settings(count: int, seed: int = 0) -> list[SoundSetting]:
    """So many settings, drawn from the grid: a quarter of them of Opacus, all others of the zoo."""
    rng = np.random.default_rng(seed)
    settings: list[SoundSetting] = []
    for number in range(count):
        of_opacus = number < round(_OPACUS_SHARE * count)
        settings.append((_opacus_setting if of_opacus else _zoo_setting)(rng, number))
    return settings


def sound_audits(
    audit: Callable[..., Any], settings: Sequence[SoundSetting], seeds: int = 1
) -> pd.DataFrame:
    """What the audit says of each setting, a row each: its fields, ``failed`` (names of the checks
    that accuse the loop, empty for none) and ``refused`` (why there is no audit, empty otherwise).

    Args:
        audit: `audit_dp_training`, which this room does not import.
        settings: Of `sound_settings`.
        seeds: Seeds of the check of batches.
    """
    rows: list[dict[str, Any]] = []
    for setting in settings:
        data = made_up_records(setting.records, seed=setting.seed)
        failed = refused = ""
        try:
            audited = audit(
                _loop(setting),
                data,
                clipping_norm=setting.clipping_norm,
                noise_multiplier=setting.noise_multiplier,
                sampling_rate=setting.sampling_rate,
                steps=setting.steps,
                null=NULLS[setting.null],
                seeds=seeds,
            )
            failed = ", ".join(check.name for check in audited.checks if not check.passed)
        except ValueError as error:
            refused = str(error)
        rows.append({**asdict(setting), "failed": failed, "refused": refused})
    return pd.DataFrame(rows)


def _zoo_setting(rng: np.random.Generator, number: int) -> SoundSetting:
    """One of the sound loops of the zoo, the next of `SOUND` for each ``number``, with settings
    that are drawn.
    """
    records = int(rng.integers(*_RECORDS))
    rate = float(rng.choice(_RATES))
    loop = SOUND[number % len(SOUND)]
    if loop == "batches in shuffled order":
        records += records % 2  # an even number of them
    nulls = ["none", "label -100"]
    return SoundSetting(
        loop=loop or "plain loop",
        loss="cross-entropy",
        records=records,
        batch=rate * records,
        sampling_rate=rate,
        clipping_norm=float(rng.choice(_NORMS)),
        noise_multiplier=float(rng.choice(_NOISES)),
        steps=int(rng.choice(_STEPS)),
        null=str(rng.choice(nulls)),
        seed=number,
    )


def _opacus_setting(rng: np.random.Generator, number: int) -> SoundSetting:
    """A loop of Opacus, which takes its rate from the number of batches of a data loader, with
    settings that are drawn; ``number`` is the seed of its data.
    """
    records = int(rng.integers(*_RECORDS))
    batches = int(rng.integers(1, 8))
    batch = math.ceil(records / batches)
    batches = math.ceil(records / batch)  # fewer where batches of this size take all records
    loss = str(rng.choice([*LOSSES]))
    nulls = ["none", "features 0"]
    if loss == "cross-entropy":
        nulls.append("label -100")
    return SoundSetting(
        loop=f"Opacus, {rng.choice(['mean', 'sum'])}",
        loss=loss,
        records=records,
        batch=records / batches,
        sampling_rate=1 / batches,
        clipping_norm=float(rng.choice(_NORMS)),
        noise_multiplier=float(rng.choice(_NOISES)),
        steps=batches * math.ceil(_FEWEST_BATCHES / batches),  # whole passes
        null=str(rng.choice(nulls)),
        seed=number,
    )


def _loop(setting: SoundSetting) -> Callable[[Any, int], None]:
    """The training of a setting: a function of the data and a seed."""
    if setting.loop.startswith("Opacus"):
        return partial(_opacus_loop, setting=setting)
    return partial(
        train_with_fault,
        fault=setting.loop.removeprefix("plain loop"),
        steps=setting.steps,
        sampling_rate=setting.sampling_rate,
        clipping_norm=setting.clipping_norm,
        noise_multiplier=setting.noise_multiplier,
    )


def _opacus_loop(data: tuple[Tensor, Tensor], seed: int, setting: SoundSetting) -> None:
    """Train a linear model by Opacus, with biases unless the null has features of 0: with them its
    gradient would not be 0.
    """
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(seed)
    reduction = setting.loop.removeprefix("Opacus, ")
    features, labels = data
    model = torch.nn.Linear(features.shape[1], 2, bias=setting.null != "features 0")
    batches = round(1 / setting.sampling_rate)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Opacus: its noise is not that of a secure generator
        # Its types have a fourth value, for another mode.
        engine: Any = PrivacyEngine()
        private, optimizer, loader = engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=DataLoader(
                TensorDataset(features, labels), batch_size=math.ceil(len(features) / batches)
            ),
            noise_multiplier=setting.noise_multiplier,
            max_grad_norm=setting.clipping_norm,
            loss_reduction=reduction,
        )
        for _ in range(setting.steps // batches):
            for x, y in loader:
                optimizer.zero_grad()
                LOSSES[setting.loss](private(x), y, reduction).backward()
                optimizer.step()
