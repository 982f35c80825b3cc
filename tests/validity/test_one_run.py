"""Every one-run bound keeps its error rate on mechanisms of known epsilon; broken twins do not."""

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy.special import expit
from scipy.stats import binom

from paperlib.bounds import audit_one_run, one_run_epsilon
from paperlib.bounds.many_runs.gaussian_dp import gaussian_dp_epsilon
from paperlib.bounds.one_run.anytime import anytime_from_counts, anytime_with_failures, log_mixture
from paperlib.bounds.one_run.guesses import member_path
from paperlib.core import MembershipScores
from tests.validity.coverage import assert_rate_at_most

EPSILONS = (0.0, 0.3, 1.0, 3.0)


def exact_failure_rate(m, epsilon, delta, confidence):
    """Chance that the bound exceeds epsilon when each example reveals its membership with
    probability delta and answers by randomized response otherwise: exact, over all outcomes."""
    right = delta + (1 - delta) * expit(epsilon)
    bounds = one_run_epsilon(np.arange(m + 1), m, total=m, delta=delta, confidence=confidence)
    return binom.pmf(np.arange(m + 1), m, right)[bounds > epsilon].sum()


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.05])
@pytest.mark.parametrize("m", [1, 2, 7, 40, 200])
def test_count_bound_is_valid_exactly(m, epsilon, delta):
    assert exact_failure_rate(m, epsilon, delta, 0.95) <= 0.05 + 1e-12


def worst_failure_rate(m, epsilon, delta, paid):
    """Chance that a bound paying for ``paid`` exceeds epsilon under the worst (epsilon, delta)-DP
    mechanism: randomized response that, as often as delta allows, shows a refuting count. Exact."""
    bounds = one_run_epsilon(np.arange(m + 1), m, total=m, delta=paid, delta_term="sharp")
    if not (bounds > epsilon).any():
        return 0.0
    first = int(np.argmax(bounds > epsilon))
    plain = binom.pmf(np.arange(m + 1), m, expit(epsilon))
    tail = plain[first:].sum()
    return tail + (1 - tail) * min(1.0, delta * m / first * tail / plain[first])


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("m", [2, 7, 40, 200])
@pytest.mark.parametrize("delta", [1e-4, 1e-2])
def test_sharp_delta_term_is_valid_for_its_worst_mechanism(m, epsilon, delta):
    assert worst_failure_rate(m, epsilon, delta, paid=delta) <= 0.05 + 1e-12


def test_sharp_delta_term_at_a_tenth_of_its_price_is_caught():
    assert worst_failure_rate(200, 1.0, 1e-2, paid=1e-3) > 0.05


def shouting_first(rng, m, epsilon, delta):
    """Guesses in order of confidence: examples that reveal their membership first, all right."""
    revealed = rng.binomial(m, delta)
    rest = rng.random(m - revealed) < expit(epsilon)
    return np.append(np.ones(revealed, dtype=np.int64), rest)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.01), (1.0, 0.02), (2.0, 1e-3)])
def test_anytime_search_at_delta_is_valid_and_one_blind_to_delta_is_caught(epsilon, delta):
    rng, m, trials = np.random.default_rng(17), 400, 400
    hits, blind = 0, 0
    for _ in range(trials):
        k, r = np.cumsum(shouting_first(rng, m, epsilon, delta)), np.arange(1, m + 1)
        hits += anytime_with_failures(k, r, error=0.05, m_delta=m * delta).epsilon > epsilon
        blind += anytime_from_counts(k, r, level=0.05).epsilon > epsilon
    assert_rate_at_most(0.05, hits, trials)
    if delta >= 0.01:
        with pytest.raises(AssertionError, match="allows"):
            assert_rate_at_most(0.05, blind, trials)


def bursts(rng, m, epsilon, delta, share):
    """All or nothing: a random share of the examples is revealed together, each with chance delta."""
    count = int(share * m)
    hits = rng.random(m) < expit(epsilon)
    if rng.random() < min(1.0, delta * m / count):
        hits[:count] = True
    return hits.astype(np.int64)


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
def test_anytime_search_at_delta_survives_correlated_failures(share):
    """The worst case for Markov's inequality: failures come in bursts."""
    rng, m, trials, epsilon, delta = np.random.default_rng(18), 400, 300, 1.0, 5e-3
    hits = 0
    for _ in range(trials):
        k, r = np.cumsum(bursts(rng, m, epsilon, delta, share)), np.arange(1, m + 1)
        hits += anytime_with_failures(k, r, error=0.05, m_delta=m * delta).epsilon > epsilon
    assert_rate_at_most(0.05, hits, trials)


def test_a_bound_that_ignores_delta_or_its_level_is_caught():
    m, right = 200, 0.05 + 0.95 * expit(1.0)
    bounds = one_run_epsilon(np.arange(m + 1), m, confidence=0.95)
    assert binom.pmf(np.arange(m + 1), m, right)[bounds > 1.0].sum() > 0.05
    assert exact_failure_rate(200, 1.0, 0.0, 0.8) > 0.05


def crossing_chance(epsilon, steps, refutes):
    """Exact chance that a walk of Bernoulli(q) guesses is ever refuted, by dynamic programming."""
    q = expit(epsilon)
    alive, lost = np.array([1.0]), 0.0
    for r in range(1, steps + 1):
        alive = np.append(alive * (1 - q), 0.0) + np.append(0.0, alive * q)
        out = refutes(np.arange(r + 1), np.full(r + 1, r))
        lost, alive = lost + alive[out].sum(), np.where(out, 0.0, alive)
    return lost


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_anytime_search_is_valid_exactly(epsilon):
    """All guess counts up to 1,500 at once, every path enumerated."""
    chance = crossing_chance(epsilon, 1_500, lambda k, r: log_mixture(k, r, epsilon) >= np.log(20))
    assert 0.005 < chance <= 0.05


def test_uncorrected_search_is_caught_exactly():
    chance = crossing_chance(1.0, 300, lambda k, r: one_run_epsilon(k, r) > 1.0)
    assert chance > 0.2


def laplace(rng, m):
    coins = rng.integers(0, 2, m)
    return coins, coins + rng.laplace(0, 1, m)


def null(rng, m):
    return rng.integers(0, 2, m), rng.normal(size=m)


def randomized_response(rng, m):
    """Binary scores: all ties."""
    coins = rng.integers(0, 2, m)
    return coins, np.where(rng.random(m) < expit(1.0), coins, 1 - coins).astype(float)


def gaussian(rng, m):
    coins = rng.integers(0, 2, m)
    return coins, rng.normal(coins, 1.0)


def subsampled_gaussian(rng, m):
    coins = rng.integers(0, 2, m)
    return coins, rng.normal(coins * (rng.random(m) < 0.3), 0.5)


def revealing(rng, m):
    """(1, 0.01)-DP: a hundredth of the examples shout their membership, the rest answer at random."""
    coins, answers = randomized_response(rng, m)
    return coins, np.where(rng.random(m) < 0.01, 4.0 * coins - 2.0, answers)


def subsampled_gaussian_epsilon(delta):
    """The larger epsilon of adding and removing, from an independent accountant."""
    pld = privacy_loss_distribution.from_gaussian_mechanism(
        0.5, sampling_prob=0.3, value_discretization_interval=1e-4
    )
    return pld.get_epsilon_for_delta(delta)


MECHANISMS = {
    "null": (null, 0.0, 0.0),
    "laplace": (laplace, 0.0, 1.0),
    "randomized response": (randomized_response, 0.0, 1.0),
    "gaussian": (gaussian, 1e-2, float(gaussian_dp_epsilon(1.0, 1e-2))),
    "subsampled gaussian": (subsampled_gaussian, 1e-2, subsampled_gaussian_epsilon(1e-2)),
    "revealing": (revealing, 1e-2, 1.0),
}
STRATEGIES = [
    ("both", "anytime"),
    ("members", "anytime"),
    ("both", "dyadic"),
    ("members", "bonferroni"),
    ("both", "split"),
    ("both", 0.5),
    ("grid", None),
]


def failures(bound, mechanism, epsilon, trials, m, seed):
    rng = np.random.default_rng(seed)
    draws = (mechanism(rng, m) for _ in range(trials))
    return sum(bound(MembershipScores.from_labels(values, coins)) > epsilon for coins, values in draws)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize(("guess", "search"), STRATEGIES)
def test_every_search_is_valid_in_simulation(name, guess, search):
    mechanism, delta, epsilon = MECHANISMS[name]

    def bound(scores):
        return audit_one_run(scores, guess=guess, thresholds=search, delta=delta).epsilon

    assert_rate_at_most(0.05, failures(bound, mechanism, epsilon, 150, 120, seed=11), 150)


@pytest.mark.parametrize("name", ["null", "laplace"])
def test_best_threshold_without_correction_is_caught(name):
    mechanism, _, epsilon = MECHANISMS[name]

    def uncorrected(scores):
        path = member_path(scores)
        return one_run_epsilon(path.correct, path.guesses).max()

    hits = failures(uncorrected, mechanism, epsilon, 400, 300, seed=12)
    with pytest.raises(AssertionError, match="allows"):
        assert_rate_at_most(0.05, hits, 400)


def test_the_game_removes_the_pull_of_unbalanced_classes():
    """900 members, 100 non-members, no signal: the game holds its level, skipping it does not."""
    rng = np.random.default_rng(13)
    draws = [MembershipScores(rng.normal(size=900), rng.normal(size=100)) for _ in range(150)]
    played = sum(audit_one_run(s, design="game", seed=i).epsilon > 0 for i, s in enumerate(draws))
    assert_rate_at_most(0.05, played, 150)
    unchecked = 0
    for scores in draws:
        path = member_path(scores)
        unchecked += one_run_epsilon(path.correct[500], path.guesses[500]) > 0
    with pytest.raises(AssertionError, match="allows"):
        assert_rate_at_most(0.05, unchecked, 150)
