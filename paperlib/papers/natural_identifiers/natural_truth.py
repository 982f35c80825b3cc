"""The benchmark and dataset inference on natural members and non-members of a small GPT."""

import numpy as np
import pandas as pd

from paperlib.audits.language import CorpusScores
from paperlib.papers.natural_identifiers.natural_models import NaturalConfig, natural_split, natural_values
from paperlib.papers.natural_identifiers.planted import PAPER_ATTACKS


def natural_table(
    config: NaturalConfig, *, generated: int = 31, draws: int = 200, set_size: int = 100
) -> pd.DataFrame:
    """Train on one side, score the identifiers of both, and judge each group of them.

    Returns:
        The columns of `CorpusScores.quality` for the subsets "held out", "trained, occurs once" and "trained,
        occurs oftener", and p_value: dataset inference on the first ``set_size`` identifiers of the subset
        (one-sided, folds in order), NaN where there are fewer.
    """
    split = natural_split(config)
    values = natural_values(config, split, generated=generated)
    groups = ["once" if one.occurrences == 1 else "oftener" for one in split.members]
    subsets = [f"trained, occurs {group}" for group in groups] + ["held out"] * len(split.non_members)
    scores = CorpusScores(f"GPT of width {config.width}", values, PAPER_ATTACKS, np.array(subsets))
    quality = scores.quality(draws=draws, seed=config.seed)
    found = scores.inference(set_size=set_size, seed=config.seed)
    tested = found[found["schedule"] == "forward"].set_index("subset")["p_value"] if len(found) else {}
    return quality.assign(p_value=quality["subset"].map(dict(tested)))
