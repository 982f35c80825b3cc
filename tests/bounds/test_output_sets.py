"""Output sets: check values, brute force, kernel estimates against scipy, baselines, bad inputs."""

import html
import itertools
import math
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import beta, cauchy, expon, gaussian_kde, laplace, logistic, ncx2, norm
from scipy.stats import f as f_distribution

from paperlib.bounds import audit_output_set, fit_output_set, one_run_epsilon, optimal_output_set
from paperlib.bounds.one_run.fair_coins import game_size
from paperlib.bounds.one_run.tails import random_count_p_value, refuted_log_odds
from paperlib.bounds.output_sets.choices import (
    METHODS,
    SelectionRule,
    choose_optimal,
    choose_top_bottom,
    logistic_fit,
    ratio_scores,
    selection_of,
)
from paperlib.bounds.output_sets.densities import density_pair
from paperlib.bounds.output_sets.level_sets import OutputSet, count_guesses, inside, overlap
from paperlib.core import MembershipScores
from tests.refusals import refused

BOTH = math.inf
GUESSES = ("both", "members")
PAPER_RULE = SelectionRule(min_density=0.01, error_divisor=1.0)


def density(*components):
    """Even mixture of frozen distributions, as a density."""
    return lambda x: sum(c.pdf(x) for c in components) / len(components)


PAIRS = {
    "gaussian": ([norm(-2), norm(1)], [norm(-1), norm(0)], (-12, 12)),
    "laplace": ([laplace(-1), laplace(2)], [laplace(-2), laplace(1)], (-30, 30)),
    "cauchy": ([cauchy(-1, 0.1)], [cauchy(1, 3)], (-BOTH, BOTH)),
    "f": ([f_distribution(3, 10)], [f_distribution(5, 10)], (0, BOTH)),
    "logistic": ([logistic(-1, 0.1)], [logistic(1, 3)], (-100, 100)),
    "chi2": ([ncx2(1, 3)], [ncx2(2, 1)], (0, BOTH)),
}
GAUSSIAN, LAPLACE = (
    (density(*PAIRS[k][0]), density(*PAIRS[k][1])) for k in ("gaussian", "laplace")
)


def scores(n=400, shift=1.5, seed=0):
    rng = np.random.default_rng(seed)
    return MembershipScores(rng.normal(shift, 1, n), rng.normal(0, 1, n))


def mixture_scores(m, seed):
    rng = np.random.default_rng(seed)
    return MembershipScores(
        rng.normal(rng.choice([-2, 1], m), 1), rng.normal(rng.choice([-1, 0], m), 1)
    )


def test_objective_equals_check_values_grows_with_m_falls_with_confidence_and_its_level_is_right():
    for m, objective in (
        (100, 0.0372),
        (400, 0.5116),
        (1600, 0.9722),
        (6400, 1.4062),
        (51200, 1.9626),
    ):
        found = optimal_output_set(*GAUSSIAN, m=m, support=(-12, 12))
        assert found.objective == pytest.approx(objective, abs=5e-5)
    assert optimal_output_set(*GAUSSIAN, m=1, support=(-12, 12)).objective == -BOTH
    values = [
        optimal_output_set(*LAPLACE, m=m, support=(-30, 30)).objective
        for m in (50, 100, 1000, 10**5)
    ]
    assert values == sorted(values)
    assert values[-1] < 1  # the largest log-ratio of the pair
    strict = optimal_output_set(*LAPLACE, m=1000, support=(-30, 30), confidence=0.999)
    assert strict.objective < values[2]
    found = optimal_output_set(*GAUSSIAN, m=400, support=(-12, 12))
    sampling = math.sqrt(2 * math.log(20) / 400 / found.mass)
    assert expit(found.tau) == pytest.approx(found.accuracy - sampling / 2, abs=1e-9)


def test_laplace_has_four_intervals_flat_ratios_are_taken_whole_and_only_hard_edges_end_one():
    found = optimal_output_set(*LAPLACE, m=100, support=(-30, 30))
    assert len(found.intervals) == 4
    cuts = [cut for interval in found.intervals for cut in interval if abs(cut) < BOTH]
    np.testing.assert_allclose(cuts, [-1.651, -1.25, -0.392, 0.392, 1.25, 1.651], atol=1e-3)
    # |log p/q| is exactly 1 beyond 2 in the Laplace pair: no shred of the plateau is lost.
    found = optimal_output_set(*LAPLACE, m=10**9, support=(-30, 30))
    assert found.tau == pytest.approx(1, abs=1e-3)
    np.testing.assert_allclose(found.intervals, [(-BOTH, -2), (2, BOTH)], atol=2e-3)
    found = optimal_output_set(expon(scale=1).pdf, expon(scale=4).pdf, m=100, support=(0, 90))
    assert (found.intervals[0][0], found.intervals[-1][1]) == (0, BOTH)


@pytest.fixture(scope="module")
def cells():
    """Masses of p and q in fine cells between quantiles of all components, from their own cdf."""

    def mass(components, edges):
        return np.diff(sum(c.cdf(edges) for c in components)) / len(components)

    found = {}
    for name, (p, q, _) in PAIRS.items():
        quantiles = np.concatenate([c.ppf(np.linspace(0, 1, 20_001)) for c in [*p, *q]])
        edges = np.unique(quantiles)
        p_mass, q_mass = mass(p, edges), mass(q, edges)
        kept = (p_mass > 1e-13) | (q_mass > 1e-13)
        found[name] = p_mass[kept], q_mass[kept]
    return found


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("m", [30, 100, 1000, 20_000])
@pytest.mark.parametrize("guess", GUESSES)
def test_no_level_set_of_a_dense_grid_is_better(name, m, guess, cells):
    p_mass, q_mass = cells[name]
    if guess == "members":
        p_mass, q_mass = p_mass[p_mass >= q_mass], q_mass[p_mass >= q_mass]
    with np.errstate(divide="ignore"):
        order = np.argsort(-np.abs(np.log(p_mass) - np.log(q_mass)), kind="stable")
    mass, right = np.cumsum((p_mass + q_mass)[order]), np.cumsum(np.maximum(p_mass, q_mass)[order])
    best = (right / mass - np.sqrt(2 * np.log(20) / (m * mass))).max()
    p, q, support = PAIRS[name]
    found = optimal_output_set(density(*p), density(*q), m=m, support=support, guess=guess)
    ours = found.accuracy - math.sqrt(2 * math.log(20) / (m * found.mass))
    # Members alone end where p = q, inside a cell; the stationary level of both sides forgives
    # that.
    assert ours == pytest.approx(best, abs=1e-6 if guess == "both" else 2e-5)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("guess", GUESSES)
def test_level_sets_beat_every_subset_of_a_discrete_support(seed, guess):
    """All 2^9 - 1 subsets of nine cells, as step densities; "members": of the cells with p >= q."""
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(9)), rng.dirichlet(np.ones(9))

    def step(mass):
        return lambda x: mass[np.clip(np.floor(x).astype(int), 0, 8)] * ((x >= 0) & (x < 9))

    cells = [i for i in range(9) if guess == "both" or p[i] >= q[i]]
    best = max(
        float(np.maximum(p, q)[[*kept]].sum() / (p + q)[[*kept]].sum())
        - math.sqrt(2 * math.log(20) / (200 * float((p + q)[[*kept]].sum())))
        for size in range(1, 10)
        for kept in itertools.combinations(cells, size)
    )
    found = optimal_output_set(step(p), step(q), m=200, support=(0, 9), guess=guess)
    ours = found.accuracy - math.sqrt(2 * math.log(20) / (200 * found.mass))
    assert ours == pytest.approx(best, abs=1e-6 if guess == "both" else 2e-5)


@pytest.mark.parametrize("guess", GUESSES)
def test_equal_densities_leave_the_whole_line_and_a_worthless_objective(guess):
    found = optimal_output_set(norm.pdf, norm.pdf, m=100, support=(-9, 9), guess=guess)
    assert found.intervals == ((-BOTH, BOTH),)
    assert found.objective < 0
    assert found.accuracy == pytest.approx(0.5)


@pytest.mark.parametrize("n", [2, 50, 3000])
@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e5])
def test_fft_estimate_equals_scipy(n, unit):
    rng = np.random.default_rng(n)
    first, second = unit * rng.normal(0, 1, n), unit * rng.normal(1, 2, n)
    pair = density_pair(first, second, bandwidths=(0.3 * unit, 0.4 * unit))
    at = pair.grid[:: max(1, pair.grid.size // 400)]
    for sample, estimate, width in ((first, pair.member, 0.3), (second, pair.nonmember, 0.4)):
        exact = gaussian_kde(sample, bw_method=width * unit / sample.std(ddof=1))(at)
        ours = np.interp(at, pair.grid, estimate)
        # A sample shared between two grid points is a little wider or narrower than the average
        # one.
        np.testing.assert_allclose(ours, exact, atol=(2e-3 if n == 2 else 3e-4) * exact.max())


def test_fitted_set_nears_the_closed_form_which_of_members_alone_is_a_half_line():
    found = fit_output_set(mixture_scores(20_000, 1), total=200)
    exact = optimal_output_set(*GAUSSIAN, m=100, support=(-12, 12))
    x = np.linspace(-4, 3, 1401)
    assert (found.contains(x) == exact.contains(x)).mean() > 0.75
    agreed = found.contains(x) & exact.contains(x)
    assert (found.guess(x) == exact.guess(x))[agreed].mean() > 0.98
    assert len(found.intervals) == 3
    # log p/q = x - 1/2, so the set is x >= tau + 1/2 and its masses are normal tails.
    found = optimal_output_set(norm(1).pdf, norm.pdf, m=500, support=(-12, 12), guess="members")
    ((low, high),) = found.intervals
    assert (low, high) == (pytest.approx(found.tau + 0.5, abs=1e-6), BOTH)
    p, q = norm(1).sf(low), norm.sf(low)
    assert (found.accuracy, found.mass) == (pytest.approx(p / (p + q)), pytest.approx(p + q))
    assert set(found.guess(np.linspace(-5, 5, 101)).tolist()) == {0, 1}


def test_cut_points_move_with_the_unit_but_the_paper_s_density_floor_depends_on_it():
    a, b = (density(*(norm(1e4 * one + 7, 1e4) for one in means)) for means in ((-2, 1), (-1, 0)))
    found = optimal_output_set(a, b, m=100, support=(-12e4, 12e4))
    base = optimal_output_set(*GAUSSIAN, m=100, support=(-12, 12))
    np.testing.assert_allclose(
        np.array(found.intervals), 1e4 * np.array(base.intervals) + 7, rtol=1e-6
    )
    some = mixture_scores(500, 2)
    moved = MembershipScores(1e3 * some.member + 5, 1e3 * some.nonmember + 5)
    found, other = fit_output_set(some), fit_output_set(moved)
    np.testing.assert_allclose(
        np.array(other.intervals), 1e3 * np.array(found.intervals) + 5, rtol=1e-6
    )
    base = mixture_scores(2000, 3)
    found = fit_output_set(base, rule=PAPER_RULE)
    assert not found.contains([-30.0, 30.0]).any()
    moved = MembershipScores(1e3 * base.member, 1e3 * base.nonmember)
    everywhere = fit_output_set(moved, rule=PAPER_RULE)
    assert everywhere.intervals == ((-BOTH, BOTH),)  # no density reaches 0.01 per unit


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("delta", [0.0, 1e-4])
@pytest.mark.parametrize("guess", GUESSES)
def test_epsilon_is_the_one_run_bound_of_its_counts(method, delta, guess):
    selection, judged = scores(seed=3), scores(seed=4)
    found = audit_output_set(
        selection, judged, method=method, delta=delta, rule=SelectionRule(guess=guess)
    )
    correct, guesses = count_guesses(found.output_set, judged)
    assert (found.correct, found.guesses, found.total) == (correct, guesses, 800)
    m_delta = 800 * delta / (2 if guess == "members" else 1)
    p_value = partial(random_count_p_value, level=1 - 0.95)
    assert found.epsilon == refuted_log_odds(correct, guesses, 1 - 0.95, m_delta, p_value)
    if delta == 0:
        assert found.epsilon == one_run_epsilon(correct, guesses)
    assert found.epsilon > 0.5
    assert f"{delta:g}" in found.claim
    assert found.to_dict()["method"] == method
    assert str(found).startswith(found.headline)
    assert html.escape(found.headline) in found._repr_html_()


def test_choice_sees_the_selection_scores_only_and_a_set_that_holds_nothing_makes_no_guess():
    selection = scores(seed=5)
    judged = scores(seed=6, shift=1.5), scores(seed=7, shift=-2)
    sets = [audit_output_set(selection, one, method="top_bottom").output_set for one in judged]
    assert sets[0].intervals == sets[1].intervals
    empty = OutputSet(
        intervals=(),
        member_intervals=((0.0, 1.0),),
        objective=0.0,
        tau=1.0,
        confidence=0.95,
        accuracy=0.0,
        mass=0.0,
    )
    assert count_guesses(empty, scores()) == (0, 0)
    assert str(empty).startswith("no guess")


@pytest.mark.parametrize("seed", range(5))
def test_level_of_members_alone_has_the_best_bound_of_all_levels(seed):
    """A loop over all levels, each with the guesses that the estimates without the score make
    there.
    """
    rng = np.random.default_rng(seed)
    some = MembershipScores(
        rng.normal(0.8, 1.3, 30), rng.normal(0, 1, 28)
    )  # few enough to be tried all
    rule = SelectionRule(error_divisor=1.0, guess="members")
    chosen = selection_of(some, rule, total=90, delta=0.0, confidence=0.95)
    bounds = {}
    for tau in chosen.estimate.levels:
        kept = (chosen.estimate.levels >= tau) & chosen.estimate.says_member
        k, n = (90 / 58 * count for count in ((kept & chosen.is_member).sum(), kept.sum()))
        bounds[tau] = logit(beta.ppf(0.05, k, n - k + 1)) if k else -BOTH
    tau = choose_optimal(chosen).tau
    assert bounds[min(bounds, key=lambda level: abs(level - tau))] == max(bounds.values())


@pytest.mark.parametrize("seed", range(5))
def test_overlap_is_where_both_sets_hold_a_point(seed):
    rng = np.random.default_rng(seed)
    first, second = (
        tuple(map(tuple, np.sort(rng.integers(0, 40, 8)).reshape(-1, 2))) for _ in range(2)
    )
    x = np.arange(-1.0, 42)
    np.testing.assert_array_equal(
        inside(overlap(first, second), x), inside(first, x) & inside(second, x)
    )


def test_ratio_scores_know_the_ratio_of_two_normals_and_no_direction():
    rng = np.random.default_rng(0)
    some, x = (
        MembershipScores(rng.normal(1, 1, 20_000), rng.normal(0, 1, 20_000)),
        np.linspace(-1, 2, 9),
    )
    np.testing.assert_allclose(ratio_scores(some, x), x - 0.5, atol=0.1)
    turned = MembershipScores(-some.member, -some.nonmember, higher_means_member=False)
    np.testing.assert_allclose(ratio_scores(turned, -x), ratio_scores(some, x), atol=1e-3)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("guess", GUESSES)
def test_top_bottom_is_the_best_of_all_pairs(seed, guess):
    rng = np.random.default_rng(seed)
    some = MembershipScores(
        rng.normal(0.8, 1, 20).round(1), rng.normal(0, 1, 21).round(1)
    )  # with ties
    rule = SelectionRule(error_divisor=1.0, guess=guess)
    chosen = selection_of(some, rule, total=41, delta=0.0, confidence=0.95)
    best, says_member = -BOTH, chosen.estimate.says_member
    guessed, right = says_member | (guess == "both"), says_member == chosen.is_member
    edges = np.concatenate([[-BOTH], np.unique(chosen.x), [BOTH]])
    for low, high in itertools.combinations_with_replacement(edges, 2):
        kept = (chosen.x < low) | (chosen.x >= high)
        if kept.any():
            made = kept & guessed
            best = max(best, float(chosen.bound((made & right).sum(), made.sum())))
    assert choose_top_bottom(chosen).objective == pytest.approx(best, abs=1e-12)


def test_logistic_fit_equals_a_general_minimiser():
    some = scores(200, 1.0)
    x, is_member = some.pooled()

    def loss(w):
        z = w[0] + w[1] * (x - x.mean()) / x.std()
        return np.logaddexp(0, np.where(is_member, -z, z)).sum() + 0.5e-6 * x.size * w[1] ** 2

    slope, intercept, _, _ = logistic_fit(x, is_member)
    np.testing.assert_allclose([intercept, slope], minimize(loss, [0, 0]).x, atol=1e-4)


def test_multimodal_scores_favour_the_optimal_set_over_the_tails():
    """All that tells the classes apart lies in the middle."""
    rng = np.random.default_rng(0)

    def draw():
        return MembershipScores(
            rng.normal(rng.choice([-6.0, 0.0, 6.0], 400, p=(0.4, 0.2, 0.4)), 0.4),
            rng.normal(rng.choice([-6.0, 3.0, 6.0], 400, p=(0.4, 0.2, 0.4)), 0.4),
        )

    found = {
        m: np.mean([audit_output_set(draw(), draw(), method=m).epsilon for _ in range(10)])
        for m in METHODS
    }
    assert found["optimal"] > max(found[m] for m in METHODS if m != "optimal") + 0.5


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("delta", [0.0, 0.01])
@pytest.mark.parametrize("guess", GUESSES)
@pytest.mark.parametrize(
    "case",
    [
        ([1, 1], [0, 0]),
        ([1, 1], [1, 1]),
        ([0, 1e300], [-1e300, 4]),
        ([5e-324, 0, 1], [1, 2, 3]),
        ([1e9, 1e9 + 1, 1e9 + 2], [1e9, 1e9 + 5, 1e9 + 6]),
        ([0, 1, 1, 1] * 50, [0, 0, 0, 1] * 50),
    ],
)
def test_degenerate_scores_give_a_finite_bound(method, delta, guess, case):
    selection, judged = MembershipScores(*case), MembershipScores(*case)
    found = audit_output_set(
        selection, judged, method=method, delta=delta, rule=SelectionRule(guess=guess)
    )
    assert 0 <= found.epsilon < 10
    assert found.correct <= found.guesses <= found.total


def test_randomized_response_bits_reach_their_bound():
    """Scores 0 and 1 only: 75 of 100 right on each side is all there is."""
    bits = MembershipScores([0, 1, 1, 1] * 50, [0, 0, 0, 1] * 50)
    again = MembershipScores(bits.member, bits.nonmember)
    found = audit_output_set(bits, again)
    assert (found.correct, found.guesses) == (300, 400)
    found = audit_output_set(bits, again, rule=SelectionRule(guess="members"))
    assert (found.correct, found.guesses) == (150, 200)


def test_unbalanced_evaluation_is_refused_or_played_and_the_same_scores_twice_refused():
    rng = np.random.default_rng(0)
    uneven = MembershipScores(rng.normal(0, 1, 900), rng.normal(0, 1, 100))
    refused("fair coins", audit_output_set, scores(), uneven)
    found = audit_output_set(scores(), uneven, design="game", seed=1)
    assert found.total == game_size(100)
    assert "subsample" in found.assumptions[0]
    first = scores(seed=1)
    refused("same object", audit_output_set, first, first)
    with pytest.raises(ValueError, match="100% of the values are selection scores"):
        audit_output_set(first, MembershipScores(first.member, first.nonmember))
    refused(
        "direction",
        audit_output_set,
        first,
        MembershipScores([1.0], [2.0], higher_means_member=False),
    )


def test_equal_counts_are_doubted_in_both_parts_and_not_in_one_by_chance():
    members, others = np.random.default_rng(0).normal(size=(2, 151))
    whole = MembershipScores(members + 1, others[:149])
    splits = (whole.split(seed=seed) for seed in range(99))
    parts = next(both for both in splits if both[1].member.size == 75)
    assert len(parts[1]) == 150
    assert audit_output_set(*parts).warnings == ()
    fixed = MembershipScores(parts[0].member[:75], np.append(parts[0].nonmember, 0.0)[:75])
    (warning,) = audit_output_set(fixed, parts[1]).warnings
    assert "exactly as many members as non-members" in warning


def test_bad_arguments_are_refused():
    for change, message in (
        ({"m": 0}, "m: expected at least 1"),
        ({"confidence": 1.0}, "confidence"),
        ({"guess": "nonmembers"}, "guess"),
        ({"support": (3, 3)}, "support"),
        ({"support": (50, 80)}, "p: expected a density with mass 1"),
        ({"q": lambda x: -norm.pdf(x)}, "q: expected finite densities"),
        ({"q": lambda x: np.full(x.shape, np.nan)}, "q: expected finite densities"),
        ({"p": lambda x: 1.0}, "p: expected one density value per point"),
    ):
        arguments = {"p": norm.pdf, "q": norm(1, 1).pdf, "m": 100, "support": (-12, 12)} | change
        refused(message, optimal_output_set, arguments.pop("p"), arguments.pop("q"), **arguments)
    refused("method", audit_output_set, scores(seed=1), scores(seed=2), method="best")
    refused("design", audit_output_set, scores(seed=1), scores(seed=2), design="fair")
    refused("delta", audit_output_set, scores(seed=1), scores(seed=2), delta=1.0)
    refused("confidence", audit_output_set, scores(seed=1), scores(seed=2), confidence=0.0)
    refused("guess: expected one of 'both', 'members'", SelectionRule, guess="nonmembers")
    refused("floor", SelectionRule, floor=1.0)
    refused("min_density", SelectionRule, min_density=-1.0)
    refused("error_divisor", SelectionRule, error_divisor=float("nan"))
    refused("at least 2 member scores", fit_output_set, MembershipScores([1.0], [0.0, 2.0]))
    refused("at least 2 nonmember scores", ratio_scores, MembershipScores([1.0, 2.0], [0.0]), [1.0])
    refused(r"scores: .* NaN", ratio_scores, scores(), [np.nan])
    refused("total", fit_output_set, scores(), total=0)
    refused("bandwidths", density_pair, [0.0, 1.0], [0.0, 1.0], bandwidths=(0.0, 1.0))
