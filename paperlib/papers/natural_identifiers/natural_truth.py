"""The benchmark and dataset inference on natural members and non-members of GPTs."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from paperlib.attacks.dataset_inference import infer_dataset
from paperlib.core import FloatArray
from paperlib.papers.natural_identifiers.benchmark import auc_differences, judged
from paperlib.papers.natural_identifiers.natural_models import (
    NaturalConfig,
    NaturalSplit,
    natural_split,
    natural_values,
)

ALL = "all"
"""Part and kind of the rows about all identifiers of a side."""
_LOSS = "loss"
_FEWEST = 10  # identifiers of a cell whose AUC is shown


def natural_table(
    config: NaturalConfig,
    *,
    widths: Sequence[int] = (224, 144, 56),
    generated: int = 127,
    draws: int = 200,
    set_size: int = 100,
) -> pd.DataFrame:
    """Train models of three widths, and one for one pass, on one side; judge the identifiers of
    both.
    """
    split = natural_split(config)
    sizes = zip(("large", "medium", "small"), widths, strict=True)
    configs = {name: replace(config, width=width) for name, width in sizes}
    configs["one pass"] = replace(configs["medium"], epochs=1)
    values = {
        name: natural_values(one, split, generated=generated) for name, one in configs.items()
    }
    subsets, tables = _subsets(split), list[pd.DataFrame]()
    for (name, one), (subset, here) in itertools.product(configs.items(), subsets.items()):
        scores = values[name][here][..., :-1]
        scores = scores[np.isfinite(scores).all(axis=(1, 2))][:set_size]
        tested = (
            infer_dataset(scores, seed=config.seed).p_value if len(scores) == set_size else math.nan
        )
        table = judged(name, values[name], {subset: here}, draws=draws, seed=config.seed)
        tables.append(table.assign(p_value=tested, parameters=one.parameters()))
    tables.append(auc_differences(values, subsets, draws=draws))
    whole = pd.concat(tables, ignore_index=True).rename(columns={"group": "subset"})
    whole = whole.assign(part=ALL, kind=ALL)
    return pd.concat([whole, natural_cells(values, split, draws=draws)], ignore_index=True)


def overall(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of `natural_table` about all identifiers of a side, without part and kind."""
    return table[table["part"] == ALL].drop(columns=["part", "kind"])


def natural_cells(
    values: Mapping[str, FloatArray], split: NaturalSplit, *, draws: int = 200
) -> pd.DataFrame:
    """The loss of each model by part of the corpus and kind of identifier, on each side."""
    names = np.array([(one.subset, one.kind) for one in [*split.members, *split.non_members]])
    sides = {
        name: here for name, here in _subsets(split).items() if name in ("held out", "trained")
    }
    cells = list[pd.DataFrame]()
    for (part, kind), (subset, side) in itertools.product(np.unique(names, axis=0), sides.items()):
        here = side & (names == (part, kind)).all(axis=1)
        about = {
            "subset": subset,
            "part": part,
            "kind": kind,
            "identifiers": here.sum(),
            "attack": _LOSS,
        }
        for model, scores in values.items():
            row = pd.DataFrame([{"model": model}])
            if here.sum() >= _FEWEST:
                row = judged(model, scores[..., :1], {subset: here}, attacks=(_LOSS,), draws=draws)
                row = row.drop(columns="group")
            if here.any():
                cells.append(row.assign(**about))
    return pd.concat(cells, ignore_index=True)


def _subsets(split: NaturalSplit) -> dict[str, np.ndarray]:
    """Which scores belong to each group of identifiers that has some."""
    times = np.array([one.occurrences for one in [*split.members, *split.non_members]])
    groups = {"held out": times == 0, "trained": times > 0}
    groups |= {"trained, occurs once": times == 1, "trained, occurs oftener": times > 1}
    return {name: here for name, here in groups.items() if here.any()}
