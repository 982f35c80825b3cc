"""Audit DP-SGD of a small GPT after the fact, by identifiers put before dialogues (Figures 2 and
5).
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from paperlib.attacks.dataset_inference import ranks_and_positions
from paperlib.bounds import audit_ranks
from paperlib.core import FloatArray
from paperlib.papers.comparison.targets import guarantees
from paperlib.papers.natural_identifiers.dp_models import SCORES, DpRun

CURVES = {
    "Theorem 2, the better of loss and min_k": (("loss", "min_k"), "paper"),
    "sharp term, the better of loss and min_k": (("loss", "min_k"), "tight"),
    "sharp term, difference": (("difference",), "tight"),
}
"""What is shown: scores of which the better one counts, and the bound. The first is the paper's."""


def theoretical_epsilons(run: DpRun, delta: float) -> tuple[float, float]:
    """Epsilon of the run for adding or removing one document, and for replacing one by another."""
    return guarantees(run.training, run.canaries + run.others, delta)


def audit_scores(
    scores: FloatArray,
    *,
    cardinality: int,
    top: int = 1,
    delta: float,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, float]:
    """Hit rate and bounds, Theorem 2 and ours, from scores of shape (m, 1 + c), the inserted one
    first.
    """
    if not 2 <= cardinality <= scores.shape[1]:
        raise ValueError(f"cardinality: expected 2 to {scores.shape[1]}, got {cardinality}")
    ranks, _ = ranks_and_positions(scores[:, :cardinality], np.random.default_rng(seed))
    options: dict[str, Any] = {"top": top, "delta": delta, "confidence": confidence}
    tight = audit_ranks(ranks, cardinality, delta_term="sharp", **options)
    paper = audit_ranks(ranks, cardinality, bound="paper", **options)
    return {"hit_rate": tight.hit_rate, "paper": paper.epsilon, "tight": tight.epsilon}


def audit_table(
    trained: Mapping[DpRun, Mapping[str, FloatArray]],
    targets: Mapping[DpRun, float],
    *,
    cardinalities: Sequence[int],
    tops: Sequence[int] = (1,),
    delta: float,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Every audit of `trained_runs`, one row per run, score, cardinality and number of places that
    count.
    """
    rows = []
    options: dict[str, Any] = {"delta": delta, "confidence": confidence}
    for (run, target), score, c, top in itertools.product(
        targets.items(), SCORES, cardinalities, tops
    ):
        if top < c:
            about = {"model": run.seed, "target": target, "canaries": run.canaries, "score": score}
            _, theory = theoretical_epsilons(run, delta)
            about |= {"cardinality": c, "top": top, "epsilon_replacement": theory}
            audit = audit_scores(
                trained[run][score], cardinality=c, top=top, seed=run.seed, **options
            )
            rows.append(
                {**about, **audit, "below_theory": max(audit["paper"], audit["tight"]) <= theory}
            )
    return pd.DataFrame(rows)


def mean_bounds(
    audits: pd.DataFrame, keys: Sequence[str], *, less: int = 0, confidence: float = 0.95
) -> pd.DataFrame:
    """Mean bound over models with r = 1, of each of `CURVES`, with t-intervals."""
    tables = list[pd.DataFrame]()
    for curve, (scores, bound) in CURVES.items():
        chosen = audits[audits["score"].isin(scores) & (audits["top"] == 1)]
        best = chosen.groupby([*keys, "model"])[bound].max()
        if less and len(best):
            rest, lesser = best.drop(less, level="cardinality"), best.xs(less, level="cardinality")
            best = rest - lesser.reindex(rest.index.droplevel("cardinality")).values
        each = best.groupby(list(keys)).agg(["size", "mean", "sem"]).reset_index()
        half = student.ppf((1 + confidence) / 2, (each["size"] - 1).clip(lower=1)) * each["sem"]
        table = each.rename(columns={"size": "models"}).drop(columns="sem")
        table.insert(0, "curve", curve)
        tables.append(table.assign(low=each["mean"] - half, high=each["mean"] + half))
    return pd.concat(tables, ignore_index=True)
