"""Bursts are what they claim, by enumeration; bounds that pay for delta survive them, blind ones do
not.
"""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array, eye_array, hstack, vstack
from scipy.special import expit
from scipy.stats import binom, chisquare

from paperlib.bounds import one_run_epsilon
from paperlib.bounds.one_run import anytime
from paperlib.bounds.one_run.f_dp import f_dp_parameter
from paperlib.bounds.one_run.tails import sharp_p_value
from paperlib.reproduction.validity import mechanisms


@pytest.mark.parametrize(
    ("shown", "right", "m_delta"),
    [(3, 3, 0.3), (4, 3, 0.3), (4, 3, 0.6), (6, 4, 0.3), (6, 6, 0.3), (2, 1, 0.3)],
)
@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_a_burst_has_exactly_the_delta_it_claims(shown, right, m_delta, epsilon):
    """Chance of every output: examples shown, and which answers are right; bits drop out by
    symmetry.
    """
    m, q = 6, expit(epsilon)
    burst = mechanisms.Burst(epsilon, m_delta, shown, right)
    assert burst.chance < 1
    plain = mechanisms.right_counts(epsilon, shown)
    factor = mechanisms.with_bursts(plain, right, burst.chance) / plain
    law, sets = {}, list(combinations(range(m), shown))
    for places, answers in product(sets, product([0, 1], repeat=m)):
        chance = np.prod(np.where(answers, q, 1 - q)) / len(sets)
        law[places, answers] = chance * factor[sum(answers[i] for i in places)]
    assert sum(law.values()) == pytest.approx(1)
    # Hockey-stick divergence for a change of the first bit, which turns right about it into wrong.
    flipped = {
        (places, answers): law[places, (1 - answers[0], *answers[1:])] for places, answers in law
    }
    excess = sum(max(0.0, law[output] - np.exp(epsilon) * flipped[output]) for output in law)
    assert excess == pytest.approx(m_delta / m, rel=1e-9)


@pytest.mark.parametrize(("shown", "right"), [(6, 5), (10, 8)])
def test_simulated_bursts_follow_their_law(shown, right):
    burst, rng, m, draws = (
        mechanisms.Burst(1.0, 2.0, shown, right),
        np.random.default_rng(1),
        40,
        4_000,
    )
    mechanism = burst.mechanism(m)
    assert mechanism.delta == pytest.approx(2.0 / m)
    counts = np.zeros(shown + 1)
    for _ in range(draws):
        scores = mechanism.draw(rng, m)
        values, bits = scores.pooled()
        sure = np.abs(values) > 1.5
        assert sure.sum() == shown
        counts[((values > 0) == bits)[sure].sum()] += 1
    law = mechanisms.with_bursts(
        binom.pmf(np.arange(shown + 1), shown, expit(1.0)), right, burst.chance
    )
    seen = law * draws > 5
    expected = np.append(law[seen], law[~seen].sum()) * draws
    assert chisquare(np.append(counts[seen], counts[~seen].sum()), expected).pvalue > 1e-4


def test_the_linear_program_finds_the_worst_burst_and_the_law_is_binomial():
    assert mechanisms.binomial_law(37, 0.3) == pytest.approx(binom.pmf(np.arange(38), 37, 0.3))
    assert mechanisms.binomial_law(3, 1.0) == pytest.approx([0, 0, 0, 1])
    # A fixed number of guesses, where the worst law is known: it attains the sharp p-value.
    for right in (4, 6):
        worst = worst_of_all(
            6, 1.0, 0.3, lambda patterns, v=right: (patterns.sum(axis=1) >= v) * 1.0
        )
        assert worst == pytest.approx(float(sharp_p_value(right, 6, 1.0, 0.3)), rel=1e-6)


def test_the_strongest_burst_is_the_smallest_that_refutes():
    """A toy search that is wrong from ten sure answers on: of the sizes tried, 6, 8, 11 and
    more.
    """

    def bound(scores):
        values, bits = scores.pooled()
        sure = np.abs(values) > 1.5
        return float(sure.sum() >= 10 and ((values > 0) == bits)[sure].all())

    found = mechanisms.strongest_burst(bound, 1.0, 60, pilots=5, seed=0)
    sizes = sorted({int(size) for size in np.geomspace(6, 48, 12)})
    assert found.examples == found.right == min(size for size in sizes if size >= 10)


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
@pytest.mark.parametrize(("m", "shown"), [(40, 40), (120, 60), (120, 24)])
def test_sharp_term_is_the_price_of_the_worst_burst(epsilon, m, shown):
    """Exact: the sharp bound keeps its level and reaches it up to one count; the blind twin
    fails.
    """
    counts, m_delta = np.arange(shown + 1), 1.0
    options = {"total": m, "delta": m_delta / m}
    law = mechanisms.right_counts(epsilon, shown)

    def error(bounds):
        first = mechanisms.first_refuting(bounds, epsilon)
        attacked = mechanisms.with_bursts(law, first, mechanisms.burst_chance(law, first, m_delta))
        return attacked[bounds > epsilon].sum(), first

    sharp, first = error(one_run_epsilon(counts, shown, delta_term="sharp", **options))
    assert sharp == pytest.approx(float(sharp_p_value(first, shown, epsilon, m_delta)), rel=1e-6)
    assert sharp <= 0.05
    assert float(sharp_p_value(first - 1, shown, epsilon, m_delta)) > 0.05
    made = np.full(shown + 1, shown)
    curve = f_dp_parameter(counts, made, family="approximate", **options)
    assert error(curve)[0] <= 0.05
    assert error(one_run_epsilon(counts, shown))[0] > 0.05


def crossing(epsilon, burst_shown, burst_right, chance, refuting):
    """Exact chance that a search over the first r guesses is wrong; bursts are about the first
    guesses.

    ``refuting`` says for every (r, k) whether it refutes. The law of the first ``burst_shown``
    answers given their number is that of randomized response, so the walk is conditioned through
    its end point there.
    """
    q, steps = expit(epsilon), refuting.shape[0] - 1
    law = mechanisms.right_counts(epsilon, burst_shown)
    weights = mechanisms.with_bursts(law, burst_right, chance) / law
    alive, lost = (
        np.zeros(steps + 1),
        np.zeros(steps + 1),
    )  # by the number right, not yet and already refuted
    alive[0] = 1.0
    for r in range(1, steps + 1):
        alive, lost = (
            np.append(x * (1 - q), 0)[:-1] + np.append(0, x[:-1] * q) for x in (alive, lost)
        )
        lost, alive = lost + np.where(refuting[r], alive, 0), np.where(refuting[r], 0, alive)
        if r == burst_shown:
            alive, lost = (x * np.append(weights, np.ones(steps - r)) for x in (alive, lost))
    return lost.sum()


def refuting_table(epsilon, steps, level, failures):
    r, k = np.arange(steps + 1)[:, None], np.arange(steps + 1)[None, :]
    right = np.clip(k - failures, 0, r)
    with np.errstate(divide="ignore", invalid="ignore"):
        evidence = anytime.log_mixture(right, r, epsilon, anytime.sharp_share(steps))
        return (k <= r) & (r > 0) & (evidence >= anytime.log_threshold(level))


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
@pytest.mark.parametrize("m_delta", [0.3, 1.0])
def test_anytime_search_survives_every_burst_exactly(epsilon, m_delta):
    """All sizes of bursts of right answers at the front; every path by dynamic programming."""
    steps = 160
    level, failures = anytime.failure_budget(anytime.mean_failures(epsilon, m_delta), 0.05)
    tables = (
        refuting_table(epsilon, steps, level, failures),
        refuting_table(epsilon, steps, 0.05, 0),
    )
    worst = [0.0, 0.0]
    for shown in range(6, steps, 7):
        for right in {shown, shown - shown // 10}:
            chance = mechanisms.burst_chance(
                mechanisms.right_counts(epsilon, shown), right, m_delta
            )
            for i, table in enumerate(tables):
                worst[i] = max(worst[i], crossing(epsilon, shown, right, chance, table))
    assert 0.003 < worst[0] <= 0.05
    assert worst[1] > 0.05


def test_the_refuting_table_is_that_of_the_search():
    rng = np.random.default_rng(3)
    level, failures = anytime.failure_budget(anytime.mean_failures(0.5, 0.3), 0.05)
    table, guesses = refuting_table(0.5, 60, level, failures), np.arange(1, 61)
    refuted = 0
    for accuracy in rng.uniform(0.5, 1.0, 40):
        k = np.cumsum(rng.random(60) < accuracy)
        bound, _ = anytime.AnytimeCounts(level, most=60).best(np.maximum(k - failures, 0), guesses)
        assert (bound > 0.5) == table[guesses, k].any()
        refuted += bound > 0.5
    assert 0 < refuted < 40


def worst_of_all(m, epsilon, m_delta, refuting):
    """Largest chance of a set of answer patterns over all laws of them that are (epsilon,
    delta)-DP.

    A linear program over the law's ratio to randomized response on {0, 1}^m, delta summed over
    examples (a random assignment of examples to places makes each one's delta the mean).
    """
    patterns = np.array(list(product([0, 1], repeat=m)))
    plain = np.prod(np.where(patterns == 1, expit(epsilon), 1 - expit(epsilon)), axis=1)
    right, bit = np.nonzero(patterns)
    wrong, pairs, none = right - 2 ** (m - 1 - bit), np.arange(right.size), np.zeros(right.size)
    # plain[right] (h[right] - h[wrong]) <= slack of the pair; the slacks add up to m_delta.
    ratio, shape = plain[right], (pairs.size, plain.size)
    change = coo_array((ratio, (pairs, right)), shape) - coo_array((ratio, (pairs, wrong)), shape)
    slacks = np.append(0 * plain, none + 1)[None, :]
    found = linprog(
        -np.append(plain * refuting(patterns), none),
        A_ub=vstack([hstack([change, -eye_array(pairs.size)]), slacks]),
        b_ub=np.append(none, m_delta),
        A_eq=np.append(plain, none)[None, :],
        b_eq=[1.0],
        method="highs",
    )
    assert found.success
    return -found.fun


@pytest.mark.parametrize(
    ("epsilon", "m_delta"), [(0.0, 0.02), (0.0, 0.06), (0.0, 0.3), (0.3, 0.02)]
)
def test_anytime_search_is_valid_for_the_worst_of_all_mechanisms(epsilon, m_delta):
    """Every law of nine answers, by linear programming; the search blind to delta fails."""
    guesses = np.arange(1, 10)

    def worst(test):
        def wrong(patterns):
            return np.array(
                [test.best(np.cumsum(one), guesses)[0] > epsilon for one in patterns], float
            )

        return worst_of_all(9, epsilon, m_delta, wrong)

    aware = worst(anytime.AnytimeCounts(0.05, m_delta, most=9))
    assert aware <= 0.05
    assert aware > 0.01 or m_delta > 0.1  # so few guesses refute nothing at a large delta
    if (epsilon, m_delta) == (0.0, 0.3):
        assert worst(anytime.AnytimeCounts(0.05, most=9)) > 0.06
