"""Values beside the paper's, means over models of the DP audits, and the randomized-response
figure.
"""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, ttest_rel

from paperlib.bounds import rank_epsilon, ranks_from_scores
from paperlib.reproduction.exhibits import paper_table
from paperlib.reproduction.papers.natural_identifiers import benchmark as bench
from paperlib.reproduction.papers.natural_identifiers import dp_audit as dp
from paperlib.reproduction.papers.natural_identifiers import randomized_response as nid
from paperlib.reproduction.papers.natural_identifiers.dp_models import SCORES
from paperlib.reproduction.papers.natural_identifiers.planted import PAPER_ATTACKS, TOKENS

GROUPS = ("held out", "trained", "trained, occurs once", "1 time")


def test_the_papers_value_is_its_mean_over_subsets():
    places = itertools.product(
        [*bench.PAPER_MODELS, bench.DIFFERENCE], GROUPS, [*PAPER_ATTACKS, TOKENS]
    )
    beside = bench.beside_paper(pd.DataFrame(list(places), columns=["model", "group", "attack"]))
    assert len(beside) == len(bench.PAPER_MODELS) * len(GROUPS) * len(PAPER_ATTACKS)
    row = beside.set_index(["model", "group", "attack"]).sort_index()
    table = paper_table("nid_table01").query(
        "mia == 'loss' and split == 'test' and subset != 'average'"
    )
    expected = pytest.approx(table["value_pct"].mean())
    assert row.loc[("large", "held out", "loss"), "paper_auc"] == expected
    once, trained = (
        row.loc[("one pass", group, "loss"), "paper_tpr"] for group in (GROUPS[2], GROUPS[1])
    )
    assert once == trained
    assert row.loc[("large", "1 time")][["paper_auc", "paper_tpr"]].isna().all(axis=None)


def test_what_lies_beyond_folding_is_counted_and_noise_is_folded_further_of_fewer_identifiers():
    folded = bench.folded_cells(paper_table("nid_table01").query("mia == 'loss'"))
    beyond = (folded["printed"] > folded["noise_95"]).groupby(folded["split"]).agg(["sum", "size"])
    assert beyond.loc["train"].tolist() == [4, 9]
    assert beyond.loc["test", "size"] == 3
    cells = folded[folded["split"] == "test"].set_index("subset").loc[["github", "pile"]]
    assert cells["identifiers"].tolist() == [197, 293]
    few, many = cells["noise_mean"]
    assert few > many > 50


PAPERS, OURS, DIFFERENCE = dp.CURVES


def audits(models=3):
    """Bounds that differ by model, score and cardinality; top 4 is larger everywhere and counts
    nowhere.
    """
    rng = np.random.default_rng(1)
    rows = [
        {
            "model": model,
            "target": target,
            "canaries": 10,
            "score": score,
            "cardinality": c,
            "top": top,
        }
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
    means = dp.bounds_over_models(table, ["target", "cardinality"])
    row = of(means, PAPERS, target=5.0, cardinality=8)
    assert row["mean"] == pytest.approx(each[["loss", "min_k"]].max(axis=1).mean())
    assert row["models"] == 3
    ours = of(means, DIFFERENCE, target=5.0, cardinality=8)
    assert ours["mean"] == pytest.approx(chosen[chosen["score"] == "difference"]["tight"].mean())
    chosen = table[
        (table["top"] == 1) & (table["target"] == math.inf) & (table["score"] == "difference")
    ]
    each = chosen.pivot_table("tight", "model", "cardinality")
    expected = ttest_rel(each[64], each[2]).confidence_interval(0.9)
    means = dp.bounds_over_models(table, ["target", "cardinality"], less=2, confidence=0.9)
    row = of(means, DIFFERENCE, target=math.inf, cardinality=64)
    assert [row["low"], row["high"]] == pytest.approx(list(expected))
    assert row["mean"] == pytest.approx((each[64] - each[2]).mean())
    assert 2 not in set(means["cardinality"])
    alone = dp.bounds_over_models(audits(1), ["target", "cardinality"])  # one model has no interval
    assert alone["low"].isna().all()
    assert alone["mean"].notna().all()


SMALL = nid.RandomizedResponseConfig(
    epsilons=(2.0,), curves=((4, 1), (4, 2)), largest_sets=100_000, points=3
)


@pytest.mark.parametrize("top", [1, 2, 3, 4])
def test_success_rate_is_that_of_simulated_randomized_response(top):
    ranks, sizes = ranks_from_scores(*nid.simulated_scores(4, 2.0, 20_000, seed=1), seed=2)
    assert (sizes == 4).all()
    hits, rate = int((ranks <= top).sum()), nid.success_rate("randomized response", 4, top, 2.0)
    assert binom.isf(1 - 1e-6, 20_000, rate) <= hits <= binom.isf(1e-6, 20_000, rate)


def test_mean_over_outcomes_equals_simulation():
    frame = nid.bounds_by_sets(SMALL)
    chosen = "mechanism == 'subset selection' and bound == 'tight' and top == 2 and sets == 1000"
    row = frame.query(chosen).iloc[0]
    rate = nid.success_rate("subset selection", 4, 2, 2.0)
    hits = np.random.default_rng(0).binomial(1000, rate, 4_000)
    simulated = rank_epsilon(hits, 1000, 4, top=2, confidence=0.99)
    assert row["mean"] == pytest.approx(simulated.mean(), abs=5 * simulated.std() / np.sqrt(4_000))
    assert row["low"] < row["mean"] < row["high"]
    assert (frame["error_rate"] <= 0.01).all()


def test_limits_are_what_many_sets_approach_and_an_unknown_mechanism_is_refused():
    limit = nid.limits(SMALL).set_index(["mechanism", "top"])
    assert limit.loc[("subset selection", 2), "tight"] == pytest.approx(2.0)
    assert limit.loc[("subset selection", 2), "paper"] < 2.0
    far = rank_epsilon(
        round(1e9 * limit.loc[("randomized response", 2), "success_rate"]), 10**9, 4, top=2
    )
    assert far == pytest.approx(limit.loc[("randomized response", 2), "tight"], abs=1e-3)
    with pytest.raises(ValueError, match="mechanism: expected one of"):
        nid.success_rate("laplace", 4, 1, 1.0)


def test_vacuous_delta_is_where_the_bound_reaches_zero():
    config = nid.DeltaConfig(cardinalities=(8, 64), sets=200)
    deltas = nid.vacuous_deltas(config).set_index("cardinality")
    assert (deltas["sharp"] > 3 * deltas["published"]).all()
    for cardinality, row in deltas.iterrows():
        near = row["published"] / 1.01, row["published"] * 1.01
        around = nid.DeltaConfig(cardinalities=(cardinality,), sets=200, deltas=near)
        bounds = nid.bounds_by_delta(around).query("delta_term == 'published'")["bound"].tolist()
        assert bounds[0] > 0 == bounds[1]
