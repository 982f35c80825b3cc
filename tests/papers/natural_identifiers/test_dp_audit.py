"""Means over models of the DP audits, and paired differences."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel

from paperlib.papers.natural_identifiers import dp_audit as dp
from paperlib.papers.natural_identifiers.dp_models import SCORES

PAPERS, OURS, DIFFERENCE = dp.CURVES


def audits(models=3):
    """Bounds that differ by model, score and cardinality; top 4 is larger everywhere and counts nowhere."""
    rng = np.random.default_rng(1)
    rows = [
        {"model": model, "target": target, "canaries": 10, "score": score, "cardinality": c, "top": top}
        | {"paper": rng.random() + 9 * (top == 4), "tight": rng.random() + 9 * (top == 4)}
        for model in range(models)
        for target in (5.0, math.inf)
        for score in SCORES
        for c in (2, 8, 64)
        for top in (1, 4)
    ]
    return pd.DataFrame(rows)


def of(means, curve, **values):
    for name, value in {"curve": curve, **values}.items():
        means = means[means[name] == value]
    return means.iloc[0]


def test_the_paper_s_curve_is_the_better_of_its_two_scores_and_differences_are_paired_by_model():
    table = audits()
    chosen = table[(table["top"] == 1) & (table["target"] == 5.0) & (table["cardinality"] == 8)]
    each = chosen.pivot_table("paper", "model", "score")
    means = dp.mean_bounds(table, ["target", "cardinality"])
    row = of(means, PAPERS, target=5.0, cardinality=8)
    assert row["mean"] == pytest.approx(each[["loss", "min_k"]].max(axis=1).mean())
    assert row["models"] == 3
    ours = of(means, DIFFERENCE, target=5.0, cardinality=8)
    assert ours["mean"] == pytest.approx(chosen[chosen["score"] == "difference"]["tight"].mean())
    chosen = table[(table["top"] == 1) & (table["target"] == math.inf) & (table["score"] == "difference")]
    each = chosen.pivot_table("tight", "model", "cardinality")
    expected = ttest_rel(each[64], each[2]).confidence_interval(0.9)
    means = dp.mean_bounds(table, ["target", "cardinality"], less=2, confidence=0.9)
    row = of(means, DIFFERENCE, target=math.inf, cardinality=64)
    assert [row["low"], row["high"]] == pytest.approx(list(expected))
    assert row["mean"] == pytest.approx((each[64] - each[2]).mean())
    assert 2 not in set(means["cardinality"])
    alone = dp.mean_bounds(audits(1), ["target", "cardinality"])  # one model has no interval
    assert alone["low"].isna().all()
    assert alone["mean"].notna().all()
