"""The benchmark and dataset inference on natural members and non-members of GPTs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from paperlib.attacks.dataset_inference import infer_dataset
from paperlib.core import FloatArray
from paperlib.reproduction.papers.natural_identifiers.benchmark import auc_differences, judged
from paperlib.reproduction.papers.natural_identifiers.natural_models import (
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

    Args:
        config: Corpus, split and training; its width is replaced by each of ``widths``.
        widths: Of the models "large", "medium" and "small"; "one pass" has that of "medium".
        generated: Alternatives of each identifier.
        draws: Of the bootstraps behind intervals and errors.
        set_size: Identifiers of a set of dataset inference; groups with fewer have no p-value.

    Returns:
        A row for each model, group of identifiers (subset) and score, with part and kind `ALL`:
            columns of `judged`, p_value and parameters; then rows of `auc_differences`; then rows
            of `natural_cells` by part of the corpus and kind. Qualities are shares in [0, 1].

    Raises:
        ValueError: The corpus has too few documents, or the vocabulary too few tokens.
    """
    split = natural_split(config)
    sizes = zip(("large", "medium", "small"), widths, strict=True)
    configs = {name: replace(config, width=width) for name, width in sizes}
    configs["one pass"] = replace(configs["medium"], epochs=1)
    values = {
        name: natural_values(of_model, split, generated=generated)
        for name, of_model in configs.items()
    }
    subsets = _subsets(split)
    tables: list[pd.DataFrame] = []
    for name, of_model in configs.items():
        for subset, members in subsets.items():
            # The number of tokens, which is the last score, is no signal of the test. Identifiers
            # that not all attacks were asked about have NaN, and are left out.
            scores = values[name][members][..., :-1]
            scores = scores[np.isfinite(scores).all(axis=(1, 2))][:set_size]
            p_value = math.nan
            if len(scores) == set_size:
                p_value = infer_dataset(scores, seed=config.seed).p_value
            table = judged(name, values[name], {subset: members}, draws=draws, seed=config.seed)
            tables.append(table.assign(p_value=p_value, parameters=of_model.parameters()))
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
    """How well the loss of each model tells the members, a row per part of the corpus, kind and
    side.

    Args:
        values: Scores of identifiers and alternatives by model, shape (n, 1 + c, attacks), in the
            order of the split's members and then its non-members.
        draws: Of the bootstrap behind the errors.

    Returns:
        The columns of `_cell`, and subset (the side), part, kind, identifiers (their number) and
            attack.
    """
    identifiers = [*split.members, *split.non_members]
    names = np.array([(identifier.subset, identifier.kind) for identifier in identifiers])
    subsets = _subsets(split)
    sides = {name: subsets[name] for name in ("held out", "trained") if name in subsets}
    cells: list[pd.DataFrame] = []
    for corpus_part, kind in np.unique(names, axis=0):
        for subset, side in sides.items():
            members = side & (names == (corpus_part, kind)).all(axis=1)
            if not members.any():
                continue
            for model, scores in values.items():
                row = _cell(model, scores, subset, members, draws=draws)
                cells.append(
                    row.assign(
                        subset=subset,
                        part=corpus_part,
                        kind=kind,
                        identifiers=members.sum(),
                        attack=_LOSS,
                    )
                )
    return pd.concat(cells, ignore_index=True)


def _cell(
    model: str, scores: FloatArray, subset: str, members: np.ndarray, *, draws: int
) -> pd.DataFrame:
    """One row with the quality of the loss, shares in [0, 1], on the identifiers of a mask
    ``members``, shape (n,); of fewer than `_FEWEST` the model's name alone.
    """
    if members.sum() < _FEWEST:
        return pd.DataFrame([{"model": model}])
    row = judged(model, scores[..., :1], {subset: members}, attacks=(_LOSS,), draws=draws)
    return row.drop(columns="group")


def _subsets(split: NaturalSplit) -> dict[str, np.ndarray]:
    """By the name of each group that has any identifier, a mask of the identifiers of both sides,
    members first, shape (n,).
    """
    identifiers = [*split.members, *split.non_members]
    times = np.array([identifier.occurrences for identifier in identifiers])
    groups = {
        "held out": times == 0,
        "trained": times > 0,
        "trained, occurs once": times == 1,
        "trained, occurs oftener": times > 1,
    }
    return {name: members for name, members in groups.items() if members.any()}
