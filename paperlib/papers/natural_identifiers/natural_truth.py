"""The benchmark and dataset inference on natural members and non-members of small GPTs."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.special import ndtri

from paperlib.audits.candidates import auc_difference
from paperlib.audits.language import CorpusScores
from paperlib.core import FloatArray
from paperlib.models.language import new_language_model
from paperlib.papers.natural_identifiers.natural_models import (
    NaturalConfig,
    NaturalSplit,
    natural_split,
    natural_values,
)
from paperlib.papers.natural_identifiers.planted import PAPER_ATTACKS, TOKENS

DIFFERENCE = "large less small"
"""Name of the rows with the difference in AUC of two models on the same identifiers."""


def natural_table(
    config: NaturalConfig,
    *,
    widths: Sequence[int] = (128, 64, 32),
    generated: int = 31,
    draws: int = 200,
    set_size: int = 100,
) -> pd.DataFrame:
    """Train models on one side, score the identifiers of both, and judge each group of them.

    The models are "large", "medium" and "small" by their widths, and "one pass", of the middle width, which
    sees every document once.

    Returns:
        The columns of `CorpusScores.quality` for the subsets "held out", "trained", and its parts "occurs
        once" and "occurs oftener" (in the documents trained on), the attacks and the number of tokens;
        parameters of the model; and p_value: dataset inference on the first ``set_size`` identifiers of the
        subset (one-sided, folds in order), NaN where there are fewer. Rows of the model `DIFFERENCE` hold the
        difference in AUC alone, with its interval of 99 %.
    """
    split = natural_split(config)
    configs = _models(config, widths)
    values = {name: natural_values(one, split, generated=generated) for name, one in configs.items()}
    subsets = _subsets(split)
    options = {"draws": draws, "set_size": set_size, "seed": config.seed}
    tables = [
        _judged(name, values[name], here, subset, **options).assign(parameters=_parameters(one))
        for (name, one), (subset, here) in itertools.product(configs.items(), subsets.items())
    ]
    less = auc_differences(values, subsets, draws=draws).rename(columns={"group": "subset"})
    return pd.concat([*tables, less], ignore_index=True)


def _models(config: NaturalConfig, widths: Sequence[int]) -> Mapping[str, NaturalConfig]:
    sizes = zip(("large", "medium", "small"), widths, strict=True)
    found = {name: replace(config, width=width) for name, width in sizes}
    return found | {"one pass": replace(found["medium"], epochs=1)}


def _subsets(split: NaturalSplit) -> dict[str, np.ndarray]:
    """Which scores belong to each group of identifiers that has some."""
    times = np.array([one.occurrences for one in split.members] + [0] * len(split.non_members))
    found = {"held out": times == 0, "trained": times > 0}
    found |= {"trained, occurs once": times == 1, "trained, occurs oftener": times > 1}
    return {name: here for name, here in found.items() if here.any()}


def _judged(
    name: str, values: FloatArray, here: np.ndarray, subset: str, *, draws: int, set_size: int, seed: int
) -> pd.DataFrame:
    names = np.full(int(here.sum()), subset)
    quality = CorpusScores(name, values[here], (*PAPER_ATTACKS, TOKENS), names).quality(
        draws=draws, seed=seed
    )
    attacks = CorpusScores(name, values[here][..., :-1], PAPER_ATTACKS, names)
    found = attacks.inference(set_size=set_size, seed=seed)
    tested = found.query("schedule == 'forward'")["p_value"].tolist() if len(found) else [math.nan]
    return quality.assign(p_value=tested[0])


def _parameters(config: NaturalConfig) -> int:
    return new_language_model(config.shape(context=config.window), config.vocabulary).num_parameters()


def auc_differences(
    values: Mapping[str, FloatArray],
    groups: Mapping[str, np.ndarray],
    *,
    draws: int = 200,
    confidence: float = 0.99,
) -> pd.DataFrame:
    """AUC of the large model less that of the small one on the same identifiers, by group and attack.

    Args:
        values: Scores of "large" and "small", shape (n, 1 + c, attacks), the paper's attacks first.
        groups: Name to which identifiers belong to it, shape (n,).
        draws: Number of bootstrap draws, 1 or more.
        confidence: Confidence level of the intervals, in (0, 1).

    Returns:
        Columns model (`DIFFERENCE`), group, identifiers, attack, auc, auc_low, auc_high, as shares.
    """
    z, rows = float(ndtri((1 + confidence) / 2)), list[dict[str, object]]()
    for (group, here), (at, attack) in itertools.product(groups.items(), enumerate(PAPER_ATTACKS)):
        large, small = (values[name][here][..., at] for name in ("large", "small"))
        auc, error = auc_difference(large, small, draws=draws)
        about = {"model": DIFFERENCE, "group": group, "identifiers": int(here.sum()), "attack": attack}
        rows.append({**about, "auc": auc, "auc_low": auc - z * error, "auc_high": auc + z * error})
    return pd.DataFrame(rows)
