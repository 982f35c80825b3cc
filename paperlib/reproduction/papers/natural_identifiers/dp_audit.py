"""Audit DP-SGD of a small GPT after the fact, by identifiers put before dialogues (Figures 2 and
5).
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd
from scipy.stats import t as student

from paperlib.attacks.dataset_inference import ranks_and_positions
from paperlib.bounds import audit_ranks
from paperlib.core import FloatArray
from paperlib.reproduction.papers.comparison.targets import guarantees
from paperlib.reproduction.papers.natural_identifiers.dp_models import SCORES, DpRun

CURVES = {
    "Theorem 2, the better of loss and min_k": (("loss", "min_k"), "paper"),
    "sharp term, the better of loss and min_k": (("loss", "min_k"), "tight"),
    "sharp term, difference": (("difference",), "tight"),
}
"""What is shown: scores of which the better one counts, and the bound. The first is the paper's."""


def theoretical_epsilons(run: DpRun, delta: float) -> tuple[float, float]:
    """Epsilon of the run for adding or removing one document, and for replacing one by another."""
    return guarantees(run.training, run.canaries + run.others, delta)


def hit_rate_and_bounds(
    scores: FloatArray,
    *,
    cardinality: int,
    top: int = 1,
    delta: float,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, float]:
    """Hit rate and two bounds on epsilon, nats, by Theorem 2 ("paper") and ours ("tight").

    Args:
        scores: Higher for members, shape (m, 1 + c), the inserted string first.
        cardinality: Number of the first columns that are ranked, 2 to 1 + c.
        top: A rank up to this is a hit.
        delta: Of the bounds, in [0, 1).
        confidence: Of each bound, in (0, 1).
        seed: Of what decides between equal scores.

    Raises:
        ValueError: A number out of range.
    """
    if not 2 <= cardinality <= scores.shape[1]:
        raise ValueError(f"cardinality: expected 2 to {scores.shape[1]}, got {cardinality}")
    ranks, _ = ranks_and_positions(scores[:, :cardinality], np.random.default_rng(seed))
    options: dict[str, Any] = {"top": top, "delta": delta, "confidence": confidence}
    tight = audit_ranks(ranks, cardinality, delta_term="sharp", **options)
    paper = audit_ranks(ranks, cardinality, bound="paper", **options)
    return {"hit_rate": tight.hit_rate, "paper": paper.epsilon, "tight": tight.epsilon}


def rank_audits(
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

    Args:
        trained: Each run to its scores by name, shape (m, 1 + c), the inserted string first.
        targets: Each run to be audited, to the epsilon that it was to have, nats.
        cardinalities: Candidates that are ranked, the inserted string included, 2 to 1 + c.
        tops: Ranks that count as hits; those that are not below the cardinality are left out.
        delta: Of the bounds and of the accountant, in [0, 1).
        confidence: Of the bounds, in (0, 1).

    Returns:
        The epsilon for replacement that the accountant allows (epsilon_replacement), hit rate and
        both bounds of `hit_rate_and_bounds`, nats, and whether neither bound exceeds the accountant
        (below_theory).
    """
    rows: list[dict[str, Any]] = []
    options: dict[str, Any] = {"delta": delta, "confidence": confidence}
    audits = itertools.product(targets.items(), SCORES, cardinalities, tops)
    for (run, target), score, cardinality, top in audits:
        if top >= cardinality:
            continue
        _, theory = theoretical_epsilons(run, delta)
        bounds = hit_rate_and_bounds(
            trained[run][score], cardinality=cardinality, top=top, seed=run.seed, **options
        )
        rows.append(
            {
                "model": run.seed,
                "target": target,
                "canaries": run.canaries,
                "score": score,
                "cardinality": cardinality,
                "top": top,
                "epsilon_replacement": theory,
                **bounds,
                "below_theory": max(bounds["paper"], bounds["tight"]) <= theory,
            }
        )
    return pd.DataFrame(rows)


def bounds_over_models(
    audits: pd.DataFrame, keys: Sequence[str], *, less: int = 0, confidence: float = 0.95
) -> pd.DataFrame:
    """Mean bound over models where rank 1 alone counts, of each of `CURVES`, with t-intervals.

    Args:
        audits: Rows of `rank_audits`.
        keys: Columns by which means are taken, such as target and cardinality.
        less: From each bound that of the same model with so many candidates is subtracted, and
            rows of this cardinality go; 0 subtracts nothing.
        confidence: Of the intervals, in (0, 1).

    Returns:
        A row for each curve and value of the keys: models (their number), mean, low and high, nats;
            the ends are NaN for one model.
    """
    tables: list[pd.DataFrame] = []
    for curve, (scores, bound) in CURVES.items():
        top_one = audits[audits["score"].isin(scores) & (audits["top"] == 1)]
        best = top_one.groupby([*keys, "model"])[bound].max()
        if less and len(best):
            best = _less_those_of(best, less)
        over_models = best.groupby(list(keys)).agg(["size", "mean", "sem"]).reset_index()
        degrees = (over_models["size"] - 1).clip(lower=1)
        half = student.ppf((1 + confidence) / 2, degrees) * over_models["sem"]
        table = over_models.rename(columns={"size": "models"}).drop(columns="sem")
        table.insert(0, "curve", curve)
        mean = over_models["mean"]
        tables.append(table.assign(low=mean - half, high=mean + half))
    return pd.concat(tables, ignore_index=True)


def _less_those_of(bounds: pd.Series, cardinality: int) -> pd.Series:
    """Bounds, nats, of the other cardinalities, less that of the same model at this one.

    ``bounds`` has the cardinality among the levels of its index.
    """
    others = bounds.drop(cardinality, level="cardinality")
    subtracted = bounds.xs(cardinality, level="cardinality")
    same_models = cast(pd.MultiIndex, others.index).droplevel("cardinality")
    return others - subtracted.reindex(same_models).values
