"""Rank audits against the settled check values, enumeration, convolution and linear programming."""

import itertools
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, ive
from scipy.stats import binom

from paperlib.bounds import (
    audit_ranks,
    exposure,
    rank_epsilon,
    rank_p_value,
    ranks_from_scores,
    score_margins,
)
from paperlib.bounds.ranks import audit as ranks_audit
from paperlib.bounds.ranks.detection import rank_limit_of_detection
from paperlib.bounds.ranks.p_values import (
    candidate_sets,
    mean_failures_of_sets,
    poisson_binomial,
    rank_success_probability,
)
from tests.bounds.worst_case import largest_gain
from tests.refusals import refused


def ranks_with(hits: int, sets: int, top: int = 1) -> np.ndarray:
    """Ranks of an audit in which ``hits`` of ``sets`` are hits."""
    return np.where(np.arange(sets) < hits, 1, top + 1)


MIXED = np.repeat([8, 128], [20, 30])


def test_check_values():
    for hits, sizes, options, expected in (
        (400, 64, {}, 5.341780),
        (400, 64, {"bound": "paper"}, 5.341780),
        (450, 64, {"top": 8}, 3.893048),
        (450, 64, {"top": 8, "bound": "paper"}, 2.046166),
        (300, 2, {}, 0.251685),
        (400, 64, {"delta": 1e-5}, 5.330384),
        (400, [64] * 499 + [65], {}, 5.342),
    ):
        ranks = ranks_with(hits, 500, options.get("top", 1))
        # The mixed path joins the closed form continuously.
        tolerance = 6e-7 if isinstance(sizes, int) else 1e-3
        assert audit_ranks(ranks, sizes, **options).epsilon == pytest.approx(
            expected, abs=tolerance
        )
    assert audit_ranks(ranks_with(30, 50), MIXED).epsilon == pytest.approx(3.763727, abs=6e-7)


def exact_tails(chances: np.ndarray) -> list[Fraction]:
    """Tails in rational arithmetic: no rounding at all."""
    mass = [Fraction(1)]
    for chance in map(Fraction, chances.tolist()):
        mass = [a * (1 - chance) + b * chance for a, b in zip([*mass, 0], [0, *mass], strict=True)]
    return list(itertools.accumulate(reversed(mass)))[::-1]


@pytest.mark.parametrize("sets", [63, 64, 65, 129])
def test_far_tail_is_never_understated(sets):
    chances = np.random.default_rng(sets).uniform(0.001, 0.3, sets)
    truth = exact_tails(chances)
    found = poisson_binomial(chances).upper_tail(np.arange(sets + 1))
    assert all(Fraction(float(a)) >= b for a, b in zip(found, truth, strict=True))
    visible = np.array([float(t) for t in truth]) > 1e-22
    np.testing.assert_allclose(found[visible], np.array(truth, dtype=float)[visible], rtol=1e-8)
    assert np.array(truth[-1], dtype=float) < 1e-40  # the tail does go far beyond machine precision


def test_a_fourier_transform_would_understate_the_far_tail():
    """The twin that the test above must catch: the textbook transform without care."""
    chances = np.random.default_rng(64).uniform(0.001, 0.3, 64)
    points = np.exp(2j * np.pi * np.arange(65) / 65)
    mass = np.fft.fft(np.prod(1 - chances + chances * points[:, None], axis=1)).real / 65
    tails = np.cumsum(mass[::-1])[::-1]
    assert any(Fraction(float(a)) < b for a, b in zip(tails, exact_tails(chances), strict=True))


@pytest.mark.parametrize("sets", [1, 2, 100, 5_000])
def test_tail_of_equal_coins_is_binomial(sets):
    counts = np.arange(-1, sets + 2)
    expected = binom.sf(counts - 1, sets, 0.3)
    np.testing.assert_allclose(
        poisson_binomial(np.full(sets, 0.3)).upper_tail(counts), expected, atol=1e-10
    )


def naive_tail(sizes, tops, epsilon, bound):
    """P[hits >= k] for k = 0..m by one convolution per set."""
    sizes, tops = np.asarray(sizes, float), np.asarray(tops, float)
    if bound == "tight":
        chances = tops * np.exp(epsilon) / (tops * np.exp(epsilon) + sizes - tops)
    else:
        chances = np.minimum(1, tops * np.exp(epsilon) / (sizes - 1 + np.exp(epsilon)))
    mass = np.ones(1)
    for chance in chances:
        mass = np.convolve(mass, [1 - chance, chance])
    return np.cumsum(mass[::-1])[::-1]


def naive_p_value(hits, sizes, tops, epsilon, delta, bound):
    return dual_value(naive_tail(sizes, tops, epsilon, bound), hits, delta * np.sum(sizes))


def dual_value(tails, hits, failures):
    slope = max((tails[hits - i] - tails[hits]) / i for i in range(1, hits + 1))
    return min(1.0, tails[hits] + failures * slope)


def naive_epsilon(hits, sizes, tops, delta, bound, level=0.05):
    low, high = 0.0, 40.0
    if naive_p_value(hits, sizes, tops, 0.0, delta, bound) > level:
        return 0.0
    for _ in range(50):
        middle = (low + high) / 2
        refuted = naive_p_value(hits, sizes, tops, middle, delta, bound) <= level
        low, high = (middle, high) if refuted else (low, middle)
    return low


@pytest.mark.parametrize("bound", ["tight", "paper"])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-4])
@pytest.mark.parametrize("seed", range(2))
def test_bound_equals_brute_force(seed, delta, bound):
    rng = np.random.default_rng(seed)
    sizes = rng.choice([4, 9, 40], 60)
    tops = np.minimum(rng.integers(1, 4, 60), sizes - 1)
    hits = 45
    ranks = np.where(np.arange(60) < hits, 1, sizes)
    found = audit_ranks(ranks, sizes, top=tops, delta=delta, bound=bound)
    assert found.correct == hits
    assert found.epsilon == pytest.approx(naive_epsilon(hits, sizes, tops, delta, bound), abs=1e-6)
    p_value = rank_p_value(hits, sizes, 1.0, top=tops, delta=delta, bound=bound)
    assert p_value == pytest.approx(naive_p_value(hits, sizes, tops, 1.0, delta, bound), abs=1e-9)


@pytest.mark.parametrize("bound", ["tight", "paper"])
@pytest.mark.parametrize(("delta", "confidence"), [(0.0, 0.95), (0.0, 0.7), (1e-4, 0.95)])
@pytest.mark.parametrize(
    ("size", "top", "hits"), [(2, 1, 70), (16, 1, 50), (16, 5, 78), (16, 15, 80)]
)
def test_equal_sizes_equal_brute_force(size, top, hits, delta, confidence, bound):
    options = {"top": top, "delta": delta, "bound": bound, "confidence": confidence}
    found = audit_ranks(ranks_with(hits, 80, top), size, **options).epsilon
    expected = naive_epsilon(hits, [size] * 80, [top] * 80, delta, bound, 1 - confidence)
    assert found == pytest.approx(expected, abs=1e-6)
    assert found <= expected + 1e-9  # rounded down


def worst_case(hits, counts, sizes, tops, epsilon, delta):
    """Largest P[hits or more] over all (epsilon, delta)-DP mechanisms, by linear programming.

    By symmetry a mechanism is the distribution of its numbers of hits of two kinds of sets, and
    delta bounds, for each kind, the sum of what the likelihoods of k and k + 1 hits exceed
    e^epsilon times each other.
    """
    states = list(itertools.product(range(counts[0] + 1), range(counts[1] + 1)))
    place = {state: i for i, state in enumerate(states)}
    excesses, growth = [], np.exp(epsilon)
    for state, kind in itertools.product(states, (0, 1)):
        more = (state[0] + (kind == 0), state[1] + (kind == 1))
        if more not in place:
            continue
        n, r, m = sizes[kind], tops[kind], counts[kind]
        up, down = (n - r) / ((n - 1) * m) * more[kind], r / ((n - 1) * m) * (m - state[kind])
        excesses.append((kind, (place[more], up), (place[state], growth * down)))
        excesses.append((kind, (place[state], down), (place[more], growth * up)))
    return largest_gain([float(sum(state) >= hits) for state in states], excesses, delta)


@pytest.mark.parametrize(("size", "top"), [(2, 1), (8, 1), (8, 3), (5, 4)])
@pytest.mark.parametrize(("sets", "share"), [(1, 1.0), (4, 0.8), (20, 0.9), (20, 0.5)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-3), (0.7, 0.02), (2.0, 1e-4)])
def test_sharp_delta_term_is_the_worst_case_of_equal_sets(size, top, sets, share, epsilon, delta):
    hits = max(1, round(share * sets))
    found = rank_p_value(hits, [size] * sets, epsilon, top=top, delta=delta, delta_term="sharp")
    truth = worst_case(hits, (sets, 0), (size, 2), (top, 1), epsilon, delta)
    assert found == pytest.approx(truth, abs=2e-6) or found == 1.0
    assert found >= truth - 1e-6


@pytest.mark.parametrize("hits", [2, 5, 8])
@pytest.mark.parametrize(("sizes", "tops"), [((2, 9), (1, 1)), ((5, 16), (2, 3))])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-3), (1.0, 0.02), (2.5, 1e-4)])
def test_delta_terms_of_mixed_sets_cover_the_worst_case(hits, sizes, tops, epsilon, delta):
    truth = worst_case(hits, (4, 5), sizes, tops, epsilon, delta)
    options = {"top": np.repeat(tops, (4, 5)), "delta": delta}
    all_sizes = np.repeat(sizes, (4, 5))
    sharp = rank_p_value(hits, all_sizes, epsilon, delta_term="sharp", **options)
    theorem = rank_p_value(hits, all_sizes, epsilon, **options)
    assert truth - 1e-7 <= sharp <= truth + 8 * delta
    assert theorem > 0.5 or truth - 1e-7 <= theorem


def test_concentration_constant_of_the_martingale_cost():
    """It rounds up the maximum of sqrt(x) e^-x I_0(x), and no sum of coins we try exceeds it."""
    top = (np.sqrt(grid := np.linspace(0.01, 20, 200_001)) * ive(0, grid)).max()
    assert 0.46882 < top <= 0.46883
    rng = np.random.default_rng(5)
    for _ in range(300):
        chances = rng.beta(*rng.uniform(0.05, 3, 2), int(rng.integers(1, 60)))
        deviation = np.sqrt((chances * (1 - chances)).sum())
        assert poisson_binomial(chances).mass.max() * deviation <= top


def test_theorem_two_can_understate_a_p_value_near_one_and_ours_does_not():
    """Its proof takes the failures as independent of the hits; here that is not so."""
    truth = worst_case(1, (2, 0), (2, 2), (1, 1), 1.0, 0.01)
    assert truth == pytest.approx(0.931083, abs=1e-6)
    assert naive_p_value(1, [2, 2], [1, 1], 1.0, 0.01, "tight") == pytest.approx(0.930564, abs=1e-6)
    assert rank_p_value(1, [2, 2], 1.0, delta=0.01) >= truth - 1e-6


@pytest.mark.parametrize("size", [2, 8, 64])
@pytest.mark.parametrize("sets", [1, 5, 50, 1_000])
def test_theorem_two_holds_wherever_audits_use_it(size, sets):
    """Below one half it never understates the exact worst case."""
    for top, epsilon in itertools.product({1, size // 2}, [0.0, 1.0, 4.0]):
        tails = naive_tail([size] * sets, [top] * sets, epsilon, "tight")
        counts = np.unique(np.linspace(1, sets, 9).round().astype(int))
        for hits, delta in itertools.product(counts, [1e-7, 1e-4, 1e-2]):
            theorem = dual_value(tails, hits, size * sets * delta)
            truth = rank_p_value(
                hits, [size] * sets, epsilon, top=top, delta=delta, delta_term="sharp"
            )
            assert theorem > 0.5 or truth <= theorem + 1e-12


@pytest.mark.parametrize("seed", range(20))
def test_hits_given_up_have_the_stated_mean_for_any_finite_mechanism(seed):
    """Thin the hits until the chance of one is that of the pure bound: what is lost is given up."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 9))
    top, epsilon = int(rng.integers(1, size)), rng.uniform(0, 2)
    given_value = rng.dirichlet(
        np.full(30, rng.choice([0.1, 1.0])), size
    )  # row a: outputs given value a
    pairs = itertools.permutations(range(size), 2)
    delta = max(
        np.maximum(given_value[a] - np.exp(epsilon) * given_value[b], 0).sum() for a, b in pairs
    )
    best = np.sort(given_value, axis=0)[-top:].sum(axis=0) / given_value.sum(axis=0)
    allowed = rank_success_probability(size, epsilon, top=top)
    given_up = (given_value.mean(axis=0) * np.maximum(0, best - allowed)).sum()
    one_set = candidate_sets(np.array([size]), top, "tight")
    assert given_up <= mean_failures_of_sets(one_set, delta, epsilon) + 1e-12
    # Attained where all outputs are alike: a hit of chance q + mean uses up delta.
    mean = mean_failures_of_sets(one_set, 1e-3, epsilon)
    likelier, other = (allowed + mean) / top, (1 - allowed - mean) / (size - top)
    excess = (likelier - np.exp(epsilon) * other) * top * (size - top) / (size - 1)
    assert excess == pytest.approx(1e-3)
    whole = candidate_sets(np.array([size]), size, "tight")
    assert mean_failures_of_sets(whole, delta, epsilon) == 0  # always a hit


def worst_error(sizes, tops, epsilon, delta, confidence):
    """Largest P[the audit with margins shows more than epsilon] over all (epsilon, delta)-DP
    mechanisms.

    A mechanism chooses which candidates to put first in each set, and the order of the sets. By
    symmetry it is the distribution of the hits and the order.
    """
    m, growth = len(sizes), np.exp(epsilon)
    orders = list(itertools.permutations(range(m)))
    states = list(itertools.product(itertools.product((0, 1), repeat=m), orders))
    place = {state: i for i, state in enumerate(states)}
    excesses = []
    for (hit, order), j in itertools.product(states, range(m)):
        if hit[j]:
            continue
        more, less = place[(*hit[:j], 1, *hit[j + 1 :]), order], place[hit, order]
        shared = comb(
            sizes[j] - 2, tops[j] - 1
        )  # guesses with one of two candidates and not the other
        up = shared / comb(sizes[j] - 1, tops[j] - 1)
        down = shared / comb(sizes[j] - 1, tops[j])
        excesses.append((j, (more, up), (less, growth * down)))
        excesses.append((j, (less, down), (more, growth * up)))
    gain = []
    for hit, order in states:
        ranks, margins = np.where(hit, 1, sizes), -np.argsort(order)
        options = {"top": tops, "delta": delta, "confidence": confidence}
        gain.append(float(audit_ranks(ranks, sizes, margins=margins, **options).epsilon > epsilon))
    return largest_gain(gain, excesses, delta)


WORST = (
    ((4, 4, 4), (1, 1, 1), 0.3, 0.1, 0.6, True),
    ((4, 4, 4), (2, 2, 2), 0.0, 0.1, 0.6, True),
    ((4, 2, 3), (1, 1, 2), 0.0, 0.1, 0.6, True),
    ((4, 4, 4), (1, 1, 1), 0.6, 0.05, 0.8, True),
    ((3, 3), (1, 2), 0.3, 0.02, 0.7, False),
    ((2, 2, 2), (1, 1, 1), 0.0, 0.01, 0.8, False),
    ((2, 4, 2, 4), (1, 1, 1, 1), 0.3, 0.05, 0.6, True),
)


@pytest.mark.parametrize(("sizes", "tops", "epsilon", "delta", "confidence", "caught"), WORST)
def test_no_mechanism_exceeds_the_error_of_an_audit_with_margins(
    sizes, tops, epsilon, delta, confidence, caught, monkeypatch
):
    case = (sizes, tops, epsilon, delta, confidence)
    assert worst_error(*case) <= 1 - confidence + 1e-7
    # The twin that gives up no hits is refuted by a mechanism.
    monkeypatch.setattr(ranks_audit, "mean_failures_of_sets", lambda *_: 0.0)
    assert (worst_error(*case) > 1 - confidence + 1e-3) == caught


def test_few_leaking_sets_are_seen_at_a_delta_above_zero_whose_sharp_term_does_not_grow():
    """Once 0 at delta 1e-4: the hits to give up were counted at epsilon 0."""
    rng = np.random.default_rng(0)
    leaking = np.arange(500) < 50
    ranks, margins = np.where(leaking, 1, rng.integers(1, 65, 500)), leaking + rng.random(500)
    found = [
        audit_ranks(ranks, 64, margins=margins, delta=delta).epsilon
        for delta in (0, 1e-5, 1e-4, 1e-2)
    ]
    assert found[0] > found[1] > found[2] > 6.5
    assert found[3] == 0
    sizes = np.array([2, 16, 128])
    perfect = np.ones(500, dtype=int)
    sharp = [audit_ranks(perfect, n, delta=1e-3, delta_term="sharp").epsilon for n in sizes]
    theorem = [audit_ranks(perfect, n, delta=1e-3).epsilon for n in sizes]
    pure = [audit_ranks(perfect, n).epsilon for n in sizes]
    assert np.all(np.subtract(pure, sharp) < 0.03)
    assert theorem[-1] == 0.0
    assert "shows nothing" in audit_ranks(perfect, 128, delta=1e-3).warnings[0]


@given(
    st.integers(1, 60), st.integers(2, 40), st.floats(0, 1), st.floats(0, 1), st.floats(0.5, 0.999)
)
@settings(derandomize=True, deadline=None, max_examples=100)
def test_tight_bound_is_never_below_the_papers(sets, size, share, place, confidence):
    hits, top = round(share * sets), 1 + int(place * (size - 2))
    options = {"top": top, "confidence": confidence}
    tight, paper = (
        rank_epsilon(hits, sets, size, bound=bound, **options) for bound in ("tight", "paper")
    )
    assert tight >= paper - 1e-9
    if top == 1:
        assert tight == pytest.approx(float(paper), abs=1e-9)
    if tight > 0:
        p_value = rank_p_value(hits, [size] * sets, float(tight), top=top)
        assert p_value == pytest.approx(1 - confidence, rel=1e-6)


def test_one_guess_is_bounded_and_a_top_equal_to_the_set_size_shows_nothing_and_says_so():
    assert audit_ranks([1], 2).epsilon == 0.0  # one fair guess shows nothing at 95 %
    assert audit_ranks([1], 1000).epsilon == pytest.approx(np.log(0.05 / 0.95 * 999), abs=1e-6)
    for size, delta in ((4, 0.0), (4, 1e-3), ([4] * 9 + [4], 0.0)):
        result = audit_ranks([1] * 10, size, top=4, delta=delta)
        assert result.epsilon == 0.0
        assert "Every candidate counts as a hit" in result.warnings[0]
    mixed = audit_ranks([1] * 40, [4] * 20 + [64] * 20, top=[4] * 20 + [1] * 20)
    alone = audit_ranks([1] * 20, 64)
    assert mixed.epsilon == pytest.approx(alone.epsilon, abs=1e-6)


def naive_log_evidence(hits, sizes, tops, epsilon, offsets, failures):
    """The supermartingale of the book, written with the alternatives' probabilities."""
    p = np.asarray(rank_success_probability(sizes, epsilon, top=tops))
    best = -np.inf
    log_odds = np.log(p) - np.log1p(-p)
    for guesses in range(1, len(hits) + 1):
        terms = []
        for offset in offsets:
            q = expit(log_odds + offset)
            x = hits[:guesses]
            steps = np.where(x, np.log(q / p)[:guesses], np.log((1 - q) / (1 - p))[:guesses])
            terms.append(steps.sum() - failures * offset)
        best = max(best, np.logaddexp.reduce(terms) - np.log(len(offsets)))
    return best


@pytest.mark.parametrize(("delta", "failures"), [(0.0, 0), (1e-5, 0), (3e-3, 1)])
def test_search_equals_brute_force(delta, failures):
    rng = np.random.default_rng(2)
    sizes = rng.choice([4, 30], 40)
    margins = rng.random(40)
    hits = rng.random(40) < 0.4 + 0.6 * margins
    result = audit_ranks(np.where(hits, 1, 2), sizes, margins=margins, delta=delta)
    start = 0.25 * np.floor(4 * result.epsilon)  # of the step on which hits are given up alike
    spent = delta * ((sizes - 1) / (np.exp(start) + sizes - 1)).sum()
    level = 0.05 - spent / (failures + 1)
    order = np.argsort(-margins)
    offsets = np.geomspace(3 / np.sqrt(40), 12, 24)
    evidence = naive_log_evidence(hits[order], sizes[order], 1, result.epsilon, offsets, failures)
    assert result.epsilon > 0
    assert evidence == pytest.approx(np.log(1 / level), abs=1e-6)
    assert evidence >= np.log(1 / level)  # the reported epsilon is itself refuted
    assert result.correct == hits[order][: result.guesses].sum()
    assert result.search == "anytime"
    assert any("Margins" in text for text in result.assumptions)


TIED_MARGINS = {
    "all equal": lambda rng, sets: np.zeros(sets),
    "right or wrong": lambda rng, sets: (rng.random(sets) < 0.2) * 1.0,
    "few values": lambda rng, sets: np.floor(2 * rng.exponential(size=sets)),
}


def orders_of_rows(ranks):
    """Rows sorted by rank, reversed and shuffled: orders that know the ranks, and one that does
    not.
    """
    by_rank = np.argsort(ranks, kind="stable")
    return by_rank, by_rank[::-1], np.random.default_rng(1).permutation(ranks.size)


@pytest.mark.parametrize("delta", [0.0, 1e-4])
@pytest.mark.parametrize("law", TIED_MARGINS)
def test_the_order_of_the_rows_changes_no_audit_of_ranks_and_no_limit(law, delta):
    rng = np.random.default_rng(11)
    margins = TIED_MARGINS[law](rng, 200)
    sizes = rng.choice([8, 64], 200)
    ranks = np.where(rng.random(200) < 0.4 + 0.1 * margins, 1, rng.integers(1, sizes + 1))
    audits, limits = [], []
    for order in orders_of_rows(ranks):
        audits.append(
            audit_ranks(ranks[order], sizes[order], margins=margins[order], delta=delta).to_dict()
        )
        limit = rank_limit_of_detection(
            sizes[order], margins=margins[order], delta=delta, simulations=10
        )
        limits.append(limit.records)
    assert audits[0]["epsilon"] > 1
    assert audits[0] == audits[1] == audits[2]
    assert limits[0] == limits[1] == limits[2]


@pytest.mark.parametrize("law", TIED_MARGINS)
def test_a_stop_within_equal_margins_counts_as_none(law):
    """Written by hand: the best of the prefixes that end where the margin changes."""
    rng = np.random.default_rng(12)
    margins = TIED_MARGINS[law](rng, 60)
    hits = rng.random(60) < 0.3 + 0.2 * margins
    ranks = np.where(hits, 1, 2)
    result = audit_ranks(ranks, 8, margins=margins)
    order = np.argsort(-margins, kind="stable")
    ends = [k for k in range(1, 61) if k == 60 or margins[order[k - 1]] != margins[order[k]]]
    offsets = np.geomspace(3 / np.sqrt(60), 12, 24)
    assert result.epsilon > 0
    evidence = []
    for end in ends:
        success = rank_success_probability(8, result.epsilon)
        odds = np.log(success) - np.log1p(-success)
        right = hits[order[:end]].sum()
        terms = []
        for offset in offsets:
            chance = expit(odds + offset)
            gain = right * np.log(chance / success)
            terms.append(gain + (end - right) * np.log((1 - chance) / (1 - success)))
        evidence.append(np.logaddexp.reduce(terms) - np.log(offsets.size))
    assert max(evidence) == pytest.approx(np.log(20), abs=1e-6)
    assert result.guesses == ends[int(np.argmax(evidence))]


def false_claims(law, trials=60):
    """Audits above 0 without a leak, the rows sorted by rank: the order of the rows knows them."""
    rng, claims = np.random.default_rng(13), 0
    for _ in range(trials):
        ranks = np.sort(rng.integers(1, 65, 500))
        margins = TIED_MARGINS[law](rng, 500)
        claims += audit_ranks(ranks, 64, margins=margins).epsilon > 0
    return claims


@pytest.mark.parametrize("law", ["all equal", "right or wrong"])
def test_rows_sorted_by_rank_show_no_leak_that_is_not_there(law, monkeypatch):
    """Once 299 and 218 of 300 audits claimed one."""
    assert false_claims(law) <= binom.isf(1e-6, 60, 0.05)
    # The twin that may stop at every row claims a leak nearly always.
    monkeypatch.setattr(ranks_audit, "_last_rows_of_ties", lambda margins: np.arange(margins.size))
    assert false_claims(law) > 30


def test_abstention_helps_when_the_attack_knows_what_it_knows():
    rng = np.random.default_rng(3)
    exposed = rng.random(300) < 0.3
    candidates = rng.normal(size=(300, 31))
    true = rng.normal(size=300) + 5 * exposed
    ranks, sizes = ranks_from_scores(true, candidates)
    searched = audit_ranks(ranks, sizes, margins=score_margins(true, candidates))
    assert searched.epsilon > audit_ranks(ranks, sizes).epsilon + 1
    assert searched.guesses < 200
    assert searched.search == "anytime"
    assert any("Margins" in text for text in searched.assumptions)


def test_candidate_sets_may_differ_in_length_ties_are_random_and_margins_blind_to_the_truth():
    ranks, sizes = ranks_from_scores([1.0, 5.0], [[0.0, 2.0, 3.0], [4.0]])
    assert ranks.tolist() == [3, 1]
    assert sizes.tolist() == [4, 2]
    assert score_margins([1.0, 5.0], [[0.0, 2.0, 3.5], [4.0]]).tolist() == [1.5, 1.0]
    assert ranks_from_scores([1.0], [[0.0, 2.0, 3.0]], higher_means_member=False)[0].tolist() == [2]
    assert exposure([1, 2, 8], [8, 8, 8]).tolist() == [3.0, 2.0, 0.0]
    rng = np.random.default_rng(4)
    pooled = rng.normal(size=(20, 6))
    first = score_margins(pooled[:, 0], pooled[:, 1:], top=2)
    last = score_margins(pooled[:, 5], pooled[:, :5], top=2)
    np.testing.assert_array_equal(first, last)
    ordered = np.sort(pooled, axis=1)
    np.testing.assert_allclose(first, ordered[:, -2] - ordered[:, -3])
    true, tied = np.zeros(4_000), np.zeros((4_000, 3))
    ranks, _ = ranks_from_scores(true, tied)
    counts = np.bincount(ranks, minlength=5)[1:]
    assert (counts >= binom.isf(1 - 1e-6, 4_000, 0.25)).all()
    assert (counts <= binom.isf(1e-6, 4_000, 0.25)).all()
    assert (ranks_from_scores(true, tied)[0] == ranks).all()
    assert (ranks_from_scores(true, tied, seed=1)[0] != ranks).any()
    assert (ranks_from_scores(true, tied, ties="pessimistic")[0] == 4).all()


def test_bad_arguments_are_refused():
    refused("ranks", audit_ranks, [], 4)
    refused("ranks: expected at least 1, got 0", audit_ranks, [0, 1], 4)
    refused("ranks: expected whole numbers, got 1.5", audit_ranks, [1.5], 4)
    refused("ranks: 1 of 2 values are NaN", audit_ranks, [1, np.nan], 4)
    refused(r"rank 5 in a set of 4 \(index 1\)", audit_ranks, [1, 5], 4)
    refused("set_sizes: expected one number or 2", audit_ranks, [1, 1], [4, 4, 4])
    refused("set_sizes: expected at least 2, got 1", audit_ranks, [1], 1)
    refused("top: expected at most the set size, got 5 for a set of 4", audit_ranks, [1], 4, top=5)
    refused("top: expected at least 1, got 0", audit_ranks, [1], 4, top=0)
    refused("top", audit_ranks, [1, 1], 4, top=[1, 1, 1])
    refused("confidence", audit_ranks, [1], 4, confidence=1.0)
    refused("delta", audit_ranks, [1], 4, delta=1.0)
    refused(
        "bound: expected one of 'tight', 'paper', got 'best'", audit_ranks, [1], 4, bound="best"
    )
    refused("delta_term", audit_ranks, [1], 4, delta_term="none")
    refused(
        "delta_term: 'sharp' needs bound='tight'",
        audit_ranks,
        [1],
        4,
        delta_term="sharp",
        bound="paper",
    )
    refused(
        "delta_term: 'sharp' is for audits without",
        audit_ranks,
        [1],
        4,
        delta_term="sharp",
        margins=[1],
    )
    refused("margins: expected 2 values like ranks, got 1", audit_ranks, [1, 1], 4, margins=[1.0])
    refused("margins: 1 of 2 values are NaN", audit_ranks, [1, 1], 4, margins=[1.0, np.nan])
    refused("correct: expected at most 2", rank_p_value, 4, [4, 4], 1.0)
    refused("set_sizes", rank_p_value, 1, 4, 1.0)
    refused("epsilon", rank_p_value, 1, [4], -1.0)
    refused("correct: expected at most the number of sets, got 5 of 4", rank_epsilon, 5, 4, 8)
    refused(
        "top: expected at most the set size, got 9 for a set of 8", rank_epsilon, 1, 4, 8, top=9
    )
    refused("epsilon", rank_success_probability, 8, -1.0)
    refused("epsilon", rank_success_probability, 8, np.nan)
    refused("top.*5 for a set of 4", rank_success_probability, [8, 4], 1.0, top=5)
    refused("candidate_scores: expected 1 sets", ranks_from_scores, [1.0], [[1.0], [2.0]])
    refused("candidate_scores: expected at least one score", ranks_from_scores, [1.0], [[]])
    refused("true_scores: 1 of 1 values are NaN", ranks_from_scores, [np.nan], [[1.0]])
    refused("candidate_scores: 1 of 1 values are infinite", ranks_from_scores, [1.0], [[np.inf]])
    refused("ties", ranks_from_scores, [1.0], [[2.0]], ties="best")
    refused("top: expected less than the smallest set size 2", score_margins, [1.0], [[2.0]], top=2)
    refused("ranks", exposure, [3], 2)
    for chances in ([], [0.5, 1.1], [np.nan], [-0.1]):
        refused("probabilities", poisson_binomial, chances)


def test_margins_that_know_reversed_scores_and_a_true_score_among_its_candidates_are_seen():
    rng = np.random.default_rng(0)
    true, others = rng.normal(size=300), rng.normal(size=(300, 20))
    ranks = ranks_from_scores(true, others)
    assert audit_ranks(*ranks).warnings == ()
    refused("so they know it", audit_ranks, *ranks, margins=true - others.max(axis=1))
    told = [np.exp(true - others.max(axis=1)), score_margins(true, others)]
    assert [
        "above that of every miss" in str(audit_ranks(*ranks, margins=one).warnings) for one in told
    ] == [
        True,
        False,
    ]
    refused("among its own candidates", ranks_from_scores, true, np.column_stack([true, others]))
    reversed_ranks = ranks_from_scores(true + 1, others, higher_means_member=False)
    assert "probably reversed" in audit_ranks(*reversed_ranks).warnings[0]
