"""Audit DP-SGD of a small GPT after the fact, by identifiers put before dialogues (Figures 2 and 5)."""

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from paperlib.attacks.dataset_inference import ranks_and_positions
from paperlib.bounds import audit_ranks
from paperlib.core import FloatArray
from paperlib.papers.natural_identifiers.dp_models import SCORES, DpRun
from paperlib.training import epsilon_of, replacement_epsilon

CURVES = {
    "Theorem 2, the better of loss and min_k": (("loss", "min_k"), "paper"),
    "sharp term, the better of loss and min_k": (("loss", "min_k"), "tight"),
    "sharp term, difference": (("difference",), "tight"),
}
"""What is shown: scores of which the better one counts, and the bound. The first is the paper's."""


def theoretical_epsilons(run: DpRun, delta: float) -> tuple[float, float]:
    """Epsilon of the run for adding or removing one document, and for replacing one by another.

    Replacing one document moves the sum of clipped gradients by up to twice the clipping norm. The audit's
    bound is for replacement, so it compares with the second number.

    >>> from paperlib.papers.natural_identifiers.dp_models import run_for
    >>> add, swap = theoretical_epsilons(run_for(5.0, 1e-5), 1e-5)
    >>> add < 5.0 < swap
    True
    """
    if run.noise == 0:
        return math.inf, math.inf
    rate, steps = run.sampling
    return epsilon_of(run.noise, rate, steps, delta, accountant="pld"), _replacement(run, delta)


@lru_cache(maxsize=256)
def _replacement(run: DpRun, delta: float) -> float:
    return replacement_epsilon(run.noise, *run.sampling, delta) if run.noise else math.inf


def audit_scores(
    scores: FloatArray,
    *,
    cardinality: int,
    top: int = 1,
    delta: float,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, float]:
    """Hits and bounds of one run: the paper's Theorem 2, and ours (tight bound, sharp delta term).

    From scores of shape (m, 1 + c), the inserted identifier first; the first ``cardinality`` are used, and
    ``top`` places count as a hit. The results are hit_rate, paper and tight (nats).

    >>> audit = audit_scores(np.array([[2.0, 1.0, 0.0]] * 40), cardinality=2, delta=1e-5)
    >>> audit["hit_rate"], round(audit["tight"], 2)
    (1.0, 2.55)
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
    """Every audit of `trained_runs`, at each candidate set size and number of places that count as a hit.

    Returns:
        One row per run, score, cardinality and top below it, with model (the seed of the run), target,
        canaries, epsilon_replacement (theory), the columns of `audit_scores` and below_theory.
    """
    rows = []
    options: dict[str, Any] = {"delta": delta, "confidence": confidence}
    names = ("model", "target", "canaries", "score", "cardinality", "top")
    for (run, target), score, c, top in itertools.product(targets.items(), SCORES, cardinalities, tops):
        if top < c:
            theory = _replacement(run, delta)
            audited = audit_scores(trained[run][score], cardinality=c, top=top, seed=run.seed, **options)
            about = dict(zip(names, (run.seed, target, run.canaries, score, c, top), strict=True))
            below = max(audited["paper"], audited["tight"]) <= theory
            rows.append({**about, "epsilon_replacement": theory, **audited, "below_theory": below})
    return pd.DataFrame(rows)


def mean_bounds(
    audits: pd.DataFrame, keys: Sequence[str], *, less: int = 0, confidence: float = 0.95
) -> pd.DataFrame:
    """Mean bound over models with r = 1, of each of `CURVES`, with t-intervals.

    >>> rows = [("loss", 2, 0, 0.1), ("loss", 8, 0, 0.4), ("loss", 2, 1, 0.3), ("loss", 8, 1, 0.8)]
    >>> audits = pd.DataFrame(rows, columns=["score", "cardinality", "model", "paper"])
    >>> audits = audits.assign(top=1, tight=0.0, target=5.0)
    >>> mean_bounds(audits, ["target", "cardinality"], less=2)["mean"].round(3).tolist()[:1]
    [0.4]
    """
    found = list[pd.DataFrame]()
    for curve, (scores, bound) in CURVES.items():
        chosen = audits[audits["score"].isin(scores) & (audits["top"] == 1)]
        best = chosen.groupby([*keys, "model"])[bound].max()
        if less and len(best):
            rest = best.drop(less, level="cardinality")
            best = (
                rest - best.xs(less, level="cardinality").reindex(rest.index.droplevel("cardinality")).values
            )
        each = best.groupby(list(keys)).agg(["size", "mean", "sem"]).reset_index()
        half = student.ppf((1 + confidence) / 2, (each["size"] - 1).clip(lower=1)) * each["sem"]
        table = each[[*keys]].assign(
            models=each["size"], mean=each["mean"], low=each["mean"] - half, high=each["mean"] + half
        )
        found.append(table.assign(curve=curve)[["curve", *table.columns]])
    return pd.concat(found, ignore_index=True)
