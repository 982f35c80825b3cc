"""The limit of detection: fresh audits with so many exposed records show a leak as often as it
says.
"""

from itertools import pairwise

import numpy as np
import pytest

from paperlib import MembershipScores, audit_scores
from paperlib.bounds import audit_ranks, combine_runs, limit_of_detection, rank_epsilon
from paperlib.bounds.one_run.combine import rank_scores, search_runs
from paperlib.bounds.one_run.search import Hypothesis
from paperlib.bounds.ranks.detection import rank_limit_of_detection
from paperlib.reproduction.validity.one_run_cases import searched_epsilon
from tests.refusals import refused

FRESH = 100  # a share near .8 has a standard error of .04


def scores_of(m, *, ties=False, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 40, m).astype(float) if ties else rng.normal(size=m)
    return MembershipScores.from_labels(values, rng.random(m) < 0.5)


def share_shown(scores, exposed, *, epsilon=0.0, strength=np.inf, **options):
    """Share of fresh audits of these scores whose bound exceeds ``epsilon``, some records
    exposed.
    """
    rng, shown = np.random.default_rng([1, exposed]), 0
    for _ in range(FRESH):
        values = scores.pooled()[0].copy()
        labels, chosen = (
            rng.random(values.size) < 0.5,
            rng.choice(values.size, exposed, replace=False),
        )
        labels[chosen] = rng.random(exposed) < 1 / (1 + np.exp(-strength))
        values[chosen] = 100 + rng.random(exposed)
        if options.get("guess") == "nonmembers":
            values, labels = -values, ~labels
        shown += searched_epsilon(MembershipScores.from_labels(values, labels), **options) > epsilon
    return shown / FRESH


@pytest.mark.parametrize(
    "options",
    [
        *({}, {"ties": True}, {"ties": True, "guess": "both"}, {"strength": 2.0}),
        *({"guess": guess} for guess in ("members", "nonmembers", "both")),
        {"delta": 6e-4, "epsilon": 0.5, "guess": "members"},
    ],
)
def test_fresh_audits_show_so_many_exposed_records_as_often_as_stated(options):
    scores = scores_of(150, ties=options.pop("ties", False))
    k = limit_of_detection(scores, **options).records
    assert (
        share_shown(scores, k, **options) > 0.7
    )  # .8 less two standard errors of both simulations
    assert share_shown(scores, k - 1, **options) < 0.9


def test_a_limit_that_forgets_the_looks_is_caught():
    k = limit_of_detection(scores_of(150), guess="members").records
    assert share_shown(scores_of(150), k) < 0.6


def test_it_falls_with_what_is_asked_and_says_what_it_is():
    scores = scores_of(100)
    limit = limit_of_detection(scores)
    fewer = [limit_of_detection(scores, confidence=0.8), limit_of_detection(scores, power=0.3)]
    more = [limit_of_detection(scores, confidence=0.999), limit_of_detection(scores, epsilon=0.5)]
    assert max(one.records for one in fewer) < limit.records < min(one.records for one in more)
    those = f"Had {limit.records} of {scores.member.size} members been ranked"
    assert limit.sentence.startswith(f"{those} above all other records and nothing")
    assert "shown more than epsilon = 0.5 in 80 % of cases" in more[1].sentence
    weak = limit_of_detection(scores, strength=1.0, simulations=20)
    assert "of 100 records been ranked above all others, 73% of them members" in weak.sentence


def test_too_few_records_are_never_seen_and_bad_values_are_refused():
    few = MembershipScores([1.0, 2.0], [0.0, 3.0])
    assert limit_of_detection(few).records is None
    assert "Had all 2 members" in limit_of_detection(few).sentence
    for name, value in (("power", 1.0), ("strength", 0.0), ("epsilon", -1.0), ("simulations", 0)):
        refused(f"^{name}: ", limit_of_detection, few, **{name: value})
    refused(r"^guess: ", limit_of_detection, few, guess="grid")


def share_of_ranks_shown(sizes, exposed, epsilon=0.0, **options):
    """Share of fresh audits of such sets that show more than ``epsilon``, some true values surely
    first.
    """
    rng, shown = np.random.default_rng(5), 0
    for _ in range(FRESH):
        ranks, chosen = rng.integers(1, sizes + 1), rng.choice(sizes.size, exposed, replace=False)
        ranks[chosen] = 1
        if "margins" in options:
            options["margins"] = rng.random(sizes.size)
            options["margins"][chosen] += 1
        shown += audit_ranks(ranks, sizes, **options).epsilon > epsilon
    return shown / FRESH


@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ([64], {}),
        ([64], {"delta": 1e-4}),
        ([64], {"epsilon": 1.0}),
        ([2, 3], {"margins": np.zeros(100)}),
        ([2, 3], {"margins": np.zeros(100), "delta": 1e-3}),
        ([64], {"margins": np.zeros(100), "delta": 1e-3, "epsilon": 1.0}),
    ],
)
def test_fresh_ranks_show_so_many_first_places_as_often_as_stated(sizes, options):
    sizes = np.resize(sizes, 100)
    limit = rank_limit_of_detection(sizes, **options)
    assert share_of_ranks_shown(sizes, limit.records, **options) > 0.7
    assert share_of_ranks_shown(sizes, limit.records - 1, **options) < 0.9
    assert "of 100 identifiers been ranked first" in limit.sentence
    assert ("with the largest margins" in limit.sentence) == ("margins" in options)


def test_a_limit_of_ranks_that_forgets_the_looks_is_caught_and_bad_margins_are_refused():
    sizes = np.full(200, 3)
    first = 1 + np.flatnonzero(rank_epsilon(np.arange(1, 9), np.arange(1, 9), 3) > 0)[0]
    assert share_of_ranks_shown(sizes, first, margins=None) < 0.6
    assert rank_limit_of_detection([64] * 200, delta=1e-3).records is None
    for margins in (np.zeros(199), np.full(200, np.nan)):
        refused(r"^margins: ", rank_limit_of_detection, sizes, margins=margins)


def share_of_runs_shown(runs, exposed, planned=None, delta=0.0, **options):
    """Share of fresh audits of such runs, together, whose bound is above 0, some members on top of
    theirs.
    """
    rng, shown = np.random.default_rng(6), 0
    ends = np.cumsum([0, *map(len, runs)])
    for _ in range(150):
        labels, values = rng.random(ends[-1]) < 0.5, rng.normal(size=ends[-1])
        chosen = rng.choice(ends[-1], exposed, replace=False)
        labels[chosen], values[chosen] = True, 100 + rng.random(exposed)
        fresh = [MembershipScores.from_labels(values[a:b], labels[a:b]) for a, b in pairwise(ends)]
        shown += search_runs(fresh, planned, Hypothesis(delta, 0.05), **options).epsilon > 0
    return shown / 150


RUNS = [scores_of(m, seed=seed) for seed, m in enumerate((60, 60, 120))]


@pytest.mark.parametrize("options", [{}, {"planned": 240}, {"guess": "members", "delta": 1e-4}])
def test_fresh_runs_show_so_many_exposed_records_as_often_as_stated(options):
    limit = combine_runs(RUNS, **options).detection
    assert share_of_runs_shown(RUNS, limit.records, **options) > 0.7
    assert share_of_runs_shown(RUNS, limit.records - 1, **options) < 0.9
    assert "members been ranked above all other records of their run and nothing" in limit.sentence


def test_a_limit_of_runs_that_takes_them_for_one_is_caught():
    k = limit_of_detection(rank_scores(RUNS), guess="members").records
    assert share_of_runs_shown(RUNS, k, guess="members") < 0.6


def test_printing_a_result_simulates_nothing_until_the_limit_is_asked_for():
    scores = scores_of(150)
    result = audit_scores(scores, design="randomized").headline
    for text in (str(result), repr(result), result._repr_html_(), " ".join(result.remarks)):
        assert "would have shown" not in text
    assert "detection" not in vars(result)
    assert result.detection.sentence == limit_of_detection(scores).sentence
    assert result.detection.sentence in str(result)
