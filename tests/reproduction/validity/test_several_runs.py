"""Bounds from several runs: every outcome of two runs of eight coins, reading after each run, and
delta.

Randomized response is the worst case: of each run it says "member" about the highest scores, some
number of them, and each label agrees with what is said with probability e^eps/(1+e^eps).
"""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit

from paperlib.bounds import combine_runs, one_run_epsilon
from paperlib.bounds.one_run.combine import ENDS, paths_in_turn, rank_scores, search_runs
from paperlib.bounds.one_run.guesses import GuessPath, guess_path
from paperlib.bounds.one_run.search import Hypothesis, every_count
from paperlib.core import MembershipScores
from paperlib.reproduction.validity.mechanisms import Mechanism, of_bits, randomized_response
from paperlib.reproduction.validity.one_run_cases import searched_epsilon
from tests.refusals import refused
from tests.reproduction.validity.coverage import assert_rate_at_most

M, ERROR = 8, 0.2  # a nominal rate that two runs of eight coins can use up
EPSILONS = (0.0, 0.2, 0.6, 1.5)
COINS = np.array(list(product([0, 1], repeat=M)))
BOTH = COINS.any(axis=1) & ~COINS.all(axis=1)  # what a run of both classes shows
VALUES = {
    "all differ": (np.arange(M, 0, -1.0),) * 2,
    "ties": (np.repeat([3.0, 2.0, 1.0], [2, 5, 1]), np.arange(M, 0, -1.0) // 2),
}


def two_runs(values, labels):
    return [
        MembershipScores.from_labels(*pair)
        for pair in zip(values, np.split(labels, 2), strict=True)
    ]


def merged(guess):
    return lambda runs: [guess_path(rank_scores(runs), guess)]


def in_turn(runs):
    return [path for path, _ in paths_in_turn(runs, 2 * M)]


def refuted_by(paths_of, values, error, epsilon):
    """Whether all 2^16 outcomes, shape (256, 256), refute epsilon: right guesses are linear in the
    labels.
    """
    base = np.tile([1, 0], M)
    starts = paths_of(two_runs(values, base))
    slopes = [[] for _ in starts]
    for coin in range(2 * M):
        labels = np.where(np.arange(2 * M) == coin, 1 - base, base)
        for slope, start, path in zip(
            slopes, starts, paths_of(two_runs(values, labels)), strict=True
        ):
            slope.append((path.correct - start.correct) * (1 - 2 * base[coin]))
    table = np.zeros((2 * M + 1, 2 * M + 1), dtype=bool)
    for made, right in zip(*np.tril_indices(2 * M + 1), strict=True):
        if right > made / 2:
            one, v = np.array([made]), np.array([right])
            path = GuessPath(one, 0 * one, v, 0 * one, np.zeros(1), np.zeros(1), 2 * M)
            table[made, right] = every_count(path, Hypothesis(0.0, error), 2).epsilon > epsilon
    refuted = np.zeros((COINS.shape[0],) * 2, dtype=bool)
    for slope, start in zip(slopes, starts, strict=True):
        first, second = (COINS @ np.array(part) for part in (slope[:M], slope[M:]))
        zero = start.correct - base @ np.array(slope)
        for at, made in enumerate(start.guesses):
            refuted |= table[made][first[:, None, at] + second[None, :, at] + zero[at]]
    return refuted


def worst_error(refuted, epsilon):
    """The largest chance of a refutation over what randomized response says of each run."""
    said = np.arange(M) < np.arange(M + 1)[:, None]
    agree = (COINS[None] == said[:, None]).sum(axis=2)
    chance = BOTH * expit(epsilon) ** agree * expit(-epsilon) ** (M - agree)
    return float((chance @ refuted @ chance.T).max())


def worst(paths_of, values, error):
    return max(worst_error(refuted_by(paths_of, values, error, one), one) for one in EPSILONS)


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("guess", ["both", "members", "in turn"])
def test_two_runs_of_eight_coins_keep_their_level_exactly(guess, values):
    """In turn the error is that of any of the bounds after the first and after the second run."""
    if guess == "in turn":
        assert 1e-4 < worst(in_turn, VALUES[values], ERROR / len(ENDS)) <= ERROR
        # The same search without its correction.
        assert values == "ties" or worst(in_turn, VALUES[values], ERROR) > ERROR
    else:
        assert 0.005 < worst(merged(guess), VALUES[values], ERROR) <= ERROR


def test_the_best_of_two_runs_is_caught_exactly():
    """The better of two fixed counts at the whole error; shared between them it is kept."""

    def error(level):
        found = one_run_epsilon(COINS.sum(axis=1), M, confidence=1 - level)
        truth = np.unique(found)[-2] - 1e-9  # where seven right guesses of eight just refute
        refuted = found > truth
        return worst_error(refuted[:, None] | refuted[None], truth)

    assert error(ERROR) > ERROR
    assert error(ERROR / 2) <= ERROR


@pytest.mark.parametrize("planned", [None, 2 * M])
def test_what_is_enumerated_is_what_the_search_finds(planned):
    paths_of = merged("both") if planned is None else in_turn
    error = ERROR / (1 if planned is None else len(ENDS))
    for values in VALUES.values():
        refuted = refuted_by(paths_of, values, error, 0.2)
        for outcome in np.random.default_rng(0).choice(np.flatnonzero(np.outer(BOTH, BOTH)), 40):
            one, other = divmod(int(outcome), COINS.shape[0])
            runs = two_runs(values, np.append(COINS[one], COINS[other]))
            found = search_runs(runs, planned, Hypothesis(0.0, ERROR), guess="both").epsilon
            assert (found > 0.2) == refuted[one, other]


def test_the_default_order_of_two_runs_is_valid_exactly():
    """It learns from the coins of both runs; every outcome of five coins each."""
    m, coins = 5, np.array(list(product([0, 1], repeat=5)))[1:-1]
    found = np.zeros((len(coins),) * 2)
    for i, j in np.ndindex(found.shape):
        runs = [MembershipScores.from_labels(np.arange(m, 0, -1.0), coins[one]) for one in (i, j)]
        found[i, j] = search_runs(runs, None, Hypothesis(0.0, ERROR)).epsilon
    errors = []
    for said in np.arange(m) < np.arange(m + 1)[:, None]:
        agree = (coins == said).sum(axis=1)
        for epsilon in EPSILONS:
            chance = expit(epsilon) ** agree * expit(-epsilon) ** (m - agree)
            errors.append(chance @ (found > epsilon) @ chance)
    assert 0.001 < max(errors) <= ERROR


def wrong(mechanism, planned, delta=0.0, *, runs=6, m=40, trials=150):
    """In how many trials the bound, at the nominal 5 %, exceeds the mechanism's epsilon."""
    rng, hypothesis = np.random.default_rng(0), Hypothesis(delta, 0.05)
    drawn = ([mechanism.draw(rng, m) for _ in range(runs)] for _ in range(trials))
    return sum(search_runs(one, planned, hypothesis).epsilon > mechanism.epsilon for one in drawn)


def test_who_reads_after_each_run_and_stops_at_the_first_success_keeps_the_level():
    """The bound after the last run is the largest of all (tests/bounds)."""
    mechanism, rng = randomized_response(1.0), np.random.default_rng(0)
    assert_rate_at_most(0.05, wrong(mechanism, 6 * 40, trials=100), 100)
    assert_rate_at_most(0.05, wrong(mechanism, None, trials=100), 100)

    # The bound of the first run that shows more than it should, each run by itself.
    def alone() -> bool:
        return searched_epsilon(mechanism.draw(rng, 60), guess="both") > mechanism.epsilon

    stopped = sum(any(alone() for _ in range(12)) for _ in range(100))
    refused("allows", assert_rate_at_most, 0.05, stopped, 100, error=AssertionError)


def test_a_run_that_tells_all_with_chance_delta_is_paid_for():
    """Each run shows every coin with chance delta, and nothing otherwise: (0, delta)-DP."""
    delta = 0.12

    def scores(rng, bits):
        return (2.0 * bits if rng.random() < delta else 0.0) + rng.random(bits.size)

    mechanism = Mechanism("tells all", 0.0, delta, of_bits(scores))
    for planned in (None, 2 * 40):
        assert_rate_at_most(0.05, wrong(mechanism, planned, delta, runs=2), 150)
        with pytest.raises(AssertionError, match="allows"):
            assert_rate_at_most(0.05, wrong(mechanism, planned, runs=2), 150)


def test_models_of_one_split_are_one_run():
    """Scores that tell how hard an example is, and nothing of membership: the same luck counts five
    times.
    """
    rng, found, runs = np.random.default_rng(0), 0, []
    for _ in range(100):
        coins, hard = rng.permutation(40) < 20, rng.normal(size=40)
        runs = [
            MembershipScores.from_labels(hard + 0.1 * rng.normal(size=40), coins) for _ in range(5)
        ]
        found += search_runs(runs, None, Hypothesis(0.0, 0.05), guess="both").epsilon > 0
    refused("allows", assert_rate_at_most, 0.05, found, 100, error=AssertionError)
    assert any("if that is one split" in text for text in combine_runs(runs).warnings)
