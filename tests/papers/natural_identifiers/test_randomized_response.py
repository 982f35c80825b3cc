"""The randomized-response figure against simulation."""

import numpy as np
import pytest
from scipy.stats import binom

from paperlib.bounds import rank_epsilon, ranks_from_scores
from paperlib.papers.natural_identifiers import randomized_response as nid

SMALL = nid.RandomizedResponseConfig(epsilons=(2.0,), curves=((4, 1), (4, 2)), largest_sets=100_000, points=3)


@pytest.mark.parametrize("top", [1, 2, 3, 4])
def test_success_rate_is_that_of_simulated_randomized_response(top):
    ranks, sizes = ranks_from_scores(*nid.simulated_scores(4, 2.0, 20_000, seed=1), seed=2)
    assert (sizes == 4).all()
    hits, rate = int((ranks <= top).sum()), nid.success_rate("randomized response", 4, top, 2.0)
    assert binom.isf(1 - 1e-6, 20_000, rate) <= hits <= binom.isf(1e-6, 20_000, rate)


def test_mean_over_outcomes_equals_simulation():
    frame = nid.bounds_by_sets(SMALL)
    row = frame.query(
        "mechanism == 'subset selection' and bound == 'tight' and top == 2 and sets == 1000"
    ).iloc[0]
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
    far = rank_epsilon(round(1e9 * limit.loc[("randomized response", 2), "success_rate"]), 10**9, 4, top=2)
    assert far == pytest.approx(limit.loc[("randomized response", 2), "tight"], abs=1e-3)
    with pytest.raises(ValueError, match="mechanism: expected one of"):
        nid.success_rate("laplace", 4, 1, 1.0)


def test_vacuous_delta_is_where_the_bound_reaches_zero():
    config = nid.DeltaConfig(cardinalities=(8, 64), sets=200)
    deltas = nid.vacuous_deltas(config).set_index("cardinality")
    assert (deltas["sharp"] > 3 * deltas["published"]).all()
    for cardinality, row in deltas.iterrows():
        around = nid.DeltaConfig(
            cardinalities=(cardinality,), sets=200, deltas=(row["published"] / 1.01, row["published"] * 1.01)
        )
        bounds = nid.bounds_by_delta(around).query("delta_term == 'published'")["bound"].tolist()
        assert bounds[0] > 0 == bounds[1]
