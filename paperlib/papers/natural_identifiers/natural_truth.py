"""The benchmark and dataset inference on natural members and non-members of a small GPT."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from paperlib.audits.language import CorpusScores
from paperlib.papers.natural_identifiers.natural_models import NaturalConfig, natural_split, natural_values
from paperlib.papers.natural_identifiers.planted import PAPER_ATTACKS


def natural_scores(
    config: NaturalConfig, *, generated: int = 31, attacks: Sequence[str] = PAPER_ATTACKS
) -> CorpusScores:
    """Train on one side, score the identifiers of both.

    Args:
        config: Documents and model.
        generated: Alternatives per identifier.
        attacks: Names of `score_texts`; no reference model, no neighbours.

    Returns:
        Scores whose subsets are "held out", "trained, occurs once" and "trained, occurs oftener".
    """
    split = natural_split(config)
    values = natural_values(config, split, generated=generated, attacks=attacks)
    groups = [
        "trained, occurs once" if one.occurrences == 1 else "trained, occurs oftener" for one in split.members
    ]
    groups += ["held out"] * len(split.non_members)
    return CorpusScores(f"GPT of width {config.width}", values, tuple(attacks), np.array(groups))


def natural_table(
    config: NaturalConfig, *, generated: int = 31, draws: int = 200, set_size: int = 100
) -> pd.DataFrame:
    """The benchmark and dataset inference on natural members and non-members.

    Args:
        config: Documents and model.
        generated: Alternatives per identifier.
        draws: Bootstrap draws, 1 or more.
        set_size: Identifiers of a suspect set.

    Returns:
        The columns of `CorpusScores.quality`, and p_value: dataset inference on the first ``set_size``
        identifiers of the row's subset (one-sided, folds in order), NaN where there are fewer.
    """
    scores = natural_scores(config, generated=generated)
    quality = scores.quality(draws=draws, seed=config.seed)
    found = scores.inference(set_size=set_size, seed=config.seed)
    p_values = (
        found[found["schedule"] == "forward"].set_index("subset")["p_value"].to_dict() if len(found) else {}
    )
    return quality.assign(p_value=quality["subset"].map(p_values))
