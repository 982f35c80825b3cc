"""The benchmark and dataset inference on natural members and non-members of small GPTs."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from paperlib.attacks.dataset_inference import infer_dataset
from paperlib.papers.natural_identifiers.benchmark import auc_differences, judged
from paperlib.papers.natural_identifiers.natural_models import (
    NaturalConfig,
    NaturalSplit,
    natural_split,
    natural_values,
)


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
        The columns of `judged`, with group named subset: "held out", "trained", and its parts "occurs once"
        and "occurs oftener" (in the documents trained on); parameters of the model; and p_value: dataset
        inference on the first ``set_size`` identifiers of the subset (one-sided, folds in order), NaN where
        there are fewer. The rows of `auc_differences` follow.
    """
    split = natural_split(config)
    sizes = zip(("large", "medium", "small"), widths, strict=True)
    configs = {name: replace(config, width=width) for name, width in sizes}
    configs["one pass"] = replace(configs["medium"], epochs=1)
    values = {name: natural_values(one, split, generated=generated) for name, one in configs.items()}
    subsets, tables = _subsets(split), list[pd.DataFrame]()
    for (name, one), (subset, here) in itertools.product(configs.items(), subsets.items()):
        attacks = values[name][here][:set_size, :, :-1]
        tested = infer_dataset(attacks, seed=config.seed).p_value if len(attacks) == set_size else math.nan
        table = judged(name, values[name], {subset: here}, draws=draws, seed=config.seed)
        tables.append(table.assign(p_value=tested, parameters=one.parameters()))
    less = auc_differences(values, subsets, draws=draws)
    return pd.concat([*tables, less], ignore_index=True).rename(columns={"group": "subset"})


def _subsets(split: NaturalSplit) -> dict[str, np.ndarray]:
    """Which scores belong to each group of identifiers that has some."""
    times = np.array([one.occurrences for one in split.members] + [0] * len(split.non_members))
    found = {"held out": times == 0, "trained": times > 0}
    found |= {"trained, occurs once": times == 1, "trained, occurs oftener": times > 1}
    return {name: here for name, here in found.items() if here.any()}
