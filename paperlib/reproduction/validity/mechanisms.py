"""Mechanisms whose epsilon is known, as sources of audit scores."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, expit, xlog1py, xlogy

from paperlib.bounds.many_runs.gaussian_dp import gaussian_dp_epsilon
from paperlib.bounds.one_run.fair_coins import IMPLAUSIBLE, fair_coin_p_value
from paperlib.bounds.ranks.p_values import rank_success_probability
from paperlib.core import FloatArray, IntArray, MembershipScores

Draw = Callable[[np.random.Generator, int], MembershipScores]
"""From a generator and a number of examples, m, to their scores."""
Game = tuple[FloatArray, FloatArray, IntArray]
"""Scores of a baseline, scores of an attack, and membership (1 for a member), shape (m,) each."""


@dataclass(frozen=True)
class Mechanism:
    """A mechanism applied to m independent fair-coin bits, one score each."""

    name: str  # in tables
    epsilon: float  # its smallest epsilon at ``delta``, nats
    delta: float  # delta of (epsilon, delta)-DP, in [0, 1)
    draw: Draw  # function from a generator and m to scores; membership by fair coins


def fair_bits(rng: np.random.Generator, m: int) -> IntArray:
    """Fair coins, 1 for a member, shape (m,), tossed again in the one case in a million that an
    audit refuses as implausible.
    """
    while True:
        bits = rng.integers(0, 2, m)
        if fair_coin_p_value(int(bits.sum()), m - int(bits.sum())) >= IMPLAUSIBLE:
            return bits


def no_leakage() -> Mechanism:
    """Scores that do not depend on membership: epsilon 0."""
    return Mechanism("no leakage", 0.0, 0.0, of_bits(lambda rng, bits: rng.normal(size=bits.size)))


def randomized_response(epsilon: float) -> Mechanism:
    """The true bit with probability e^eps/(1+e^eps), eps in nats; a little noise breaks ties."""
    draw = of_bits(lambda rng, bits: _answers(rng, bits, epsilon))
    return Mechanism(f"randomized response, ε = {epsilon:g}", epsilon, 0.0, draw)


def of_bits(scores: Callable[[np.random.Generator, IntArray], ArrayLike]) -> Draw:
    """Fair coins first, shape (m,), then the ``scores`` of these bits, shape (m,)."""

    def draw(rng: np.random.Generator, m: int) -> MembershipScores:
        bits = fair_bits(rng, m)
        return MembershipScores.from_labels(scores(rng, bits), bits)

    return draw


def _answers(rng: np.random.Generator, bits: IntArray, epsilon: float) -> FloatArray:
    """Randomized response, with a little noise."""
    is_true = rng.random(bits.size) < expit(epsilon)
    answers = np.where(is_true, bits, 1 - bits)
    return answers + 0.1 * rng.random(bits.size)


def laplace(epsilon: float) -> Mechanism:
    """The bit plus Laplace noise of scale 1/epsilon, epsilon in nats."""
    draw = of_bits(lambda rng, bits: bits + rng.laplace(scale=1 / epsilon, size=bits.size))
    return Mechanism(f"Laplace, ε = {epsilon:g}", epsilon, 0.0, draw)


def gaussian(mu: float, delta: float) -> Mechanism:
    """The bit times mu plus standard normal noise: mu-Gaussian DP."""
    draw = of_bits(lambda rng, bits: mu * bits + rng.normal(size=bits.size))
    return Mechanism(f"Gaussian, μ = {mu:g}", float(gaussian_dp_epsilon(mu, delta)), delta, draw)


def sparing_response(epsilon: float, share: float) -> Mechanism:
    """Randomized response of ``epsilon``, nats, for a share of the examples, nothing of the others:
    a trade-off with one step.
    """

    def scores(rng: np.random.Generator, bits: IntArray) -> FloatArray:
        answered = rng.random(bits.size) < share
        answers = 2 * _answers(rng, bits, epsilon) - 1
        return np.where(answered, answers, 0.1 * rng.normal(size=bits.size))

    return Mechanism(f"{share:g} answered, ε = {epsilon:g}", epsilon, 0.0, of_bits(scores))


def unbalanced(members: int, nonmembers: int) -> Mechanism:
    """No leakage, but fixed numbers of members and non-members in place of fair coins."""

    def draw(rng: np.random.Generator, m: int) -> MembershipScores:
        return MembershipScores(rng.normal(size=members), rng.normal(size=nonmembers))

    return Mechanism(f"no leakage, {members} members and {nonmembers} others", 0.0, 0.0, draw)


def close_generator(
    rng: np.random.Generator, m: int, c: float, epsilon: float, gamma: float = 0.0
) -> Game:
    """Baseline scores, attack scores and membership, shape (m,) each: a c-close generator and an
    epsilon-DP model.

    Real points are Laplace(0, 1), generated ones Laplace(c, 1): their density ratio, the baseline's
    score, tops out at e^c. With probability gamma a real point is never generated. The model
    answers at random.
    """
    bits = fair_bits(rng, m)
    points = rng.laplace(size=m) + np.where(bits == 1, 0.0, c)
    # Log of real over generated density; a little noise breaks ties.
    log_ratio = np.abs(points - c) - np.abs(points) + 1e-6 * rng.random(m)
    log_ratio[(rng.random(m) < gamma) & (bits == 1)] += 100.0
    answer = np.where(rng.random(m) < expit(epsilon), bits, 1 - bits)
    # The model's answer moves the log odds by epsilon, up or down.
    return log_ratio, log_ratio + 2 * epsilon * (answer - 0.5), bits


def ranked_sets(
    rng: np.random.Generator, sets: int, size: int, top: int, epsilon: float, informed: float = 1.0
) -> tuple[IntArray, FloatArray]:
    """Ranks and margins of subset selection (at top = 1: randomized response), shapes (sets,): the
    rank of the true candidate among ``size``, 1 for the first, is at most ``top`` with the largest
    chance that epsilon allows.

    A share ``informed`` of the sets, of ``size`` candidates each, is answered at ``epsilon``, nats,
    and has the larger margins; the rest is answered at 0.
    """
    is_informed = rng.random(sets) < informed
    chance = np.where(is_informed, rank_success_probability(size, epsilon, top=top), top / size)
    is_hit = rng.random(sets) < chance
    ranks_of_hits = rng.integers(1, top + 1, sets)
    ranks_of_misses = rng.integers(top + 1, size + 1, sets)
    margins = is_informed + 0.5 * rng.random(sets)
    return np.where(is_hit, ranks_of_hits, ranks_of_misses), margins


def binomial_law(n: int, chance: float) -> FloatArray:
    """Law of Binomial(n, chance), shape (n + 1,)."""
    k = np.arange(n + 1)
    # In logs, since binomial coefficients of large n are no floating-point numbers: the
    # coefficient is 1 / ((n + 1) B(k + 1, n - k + 1)).
    log_coefficient = -betaln(k + 1, n - k + 1) - np.log1p(n)
    log_chances = xlogy(k, chance) + xlog1py(n - k, -chance)
    return np.asarray(np.exp(log_coefficient + log_chances))


def right_counts(epsilon: float, examples: int) -> FloatArray:
    """Law of the number of right answers of randomized response of ``epsilon``, nats, on so many
    examples, shape (examples + 1,).
    """
    return binomial_law(examples, float(expit(epsilon)))


def burst_chance(law: FloatArray, right: int, m_delta: float, leak: float = 1.0) -> float:
    """Chance of a burst of ``right`` right answers or more, which costs ``leak`` times less
    delta.

    ``law`` has the chance of each number of right answers, shape (m + 1,); ``m_delta`` is delta
    times m.
    """
    # The worst case of delta. Changing one bit moves the number K of right answers by one, so a
    # burst, in the place of a run with chance c, gives away an example only where K is exactly
    # ``right``: delta = c (right / m) P[K = right] / P[K >= right].
    return float(min(1.0, leak * m_delta / right * law[right:].sum() / law[right]))


def with_bursts(law: FloatArray, right: int, chance: float) -> FloatArray:
    """Law of the number of right answers, shape (m + 1,), when a burst takes the place of a run
    with this chance: the same law, given that ``right`` answers or more are right.
    """
    burst = np.where(np.arange(law.size) >= right, law, 0.0) / law[right:].sum()
    return (1 - chance) * law + chance * burst


@dataclass(frozen=True)
class Burst:
    """Randomized response with bursts on some random examples, which are answered the most
    confidently.
    """

    epsilon: float  # epsilon of the randomized response, nats, at least 0
    m_delta: float  # delta times the number of examples, at least 0
    examples: int  # that a burst is about, at least 1
    right: int  # right answers of a burst, at least, 1 to ``examples``

    @property
    def chance(self) -> float:
        """Chance of a burst."""
        return burst_chance(right_counts(self.epsilon, self.examples), self.right, self.m_delta)

    def mechanism(self, m: int, *, certain: bool = False) -> Mechanism:
        """The mechanism on m examples; ``certain`` bursts happen in every run, at no delta
        below 1.
        """
        law = right_counts(self.epsilon, self.examples)
        counts = with_bursts(law, self.right, 1.0 if certain else self.chance)

        def scores(rng: np.random.Generator, bits: IntArray) -> FloatArray:
            """Scores of a draw in which a burst tells some records, or tells none."""
            in_burst = rng.permutation(bits.size)[: self.examples]
            is_right = rng.random(bits.size) < expit(self.epsilon)
            # So many random ones of the burst's examples are answered rightly.
            order = rng.permutation(self.examples)
            is_right[in_burst] = order < rng.choice(law.size, p=counts / counts.sum())
            sureness = np.ones(bits.size)
            sureness[in_burst] = 2.0
            sureness += 0.1 * rng.random(bits.size)
            says_member = is_right == (bits == 1)
            return np.where(says_member, 1.0, -1.0) * sureness

        name = f"bursts of {self.right} in {self.examples}, else ε = {self.epsilon:g}"
        return Mechanism(name, self.epsilon, self.m_delta / m, of_bits(scores))


def first_refuting(bounds: FloatArray, epsilon: float) -> int:
    """Smallest count whose bound exceeds epsilon, nats; the largest count if there is none.

    ``bounds`` has the bound at each count from 0 on, nats, shape (counts,).
    """
    refuting = np.flatnonzero(bounds > epsilon)
    return int(refuting[0]) if refuting.size else bounds.size - 1


def strongest_burst(
    bound: Callable[[MembershipScores], float], m_delta: float, m: int, *, pilots: int, seed: int
) -> Burst:
    """The burst of right answers alone, at epsilon 0, that makes a search wrong most often.

    Each of 12 sizes is tried in ``pilots`` audits in which the burst surely happens; the share of
    bounds above 0 counts times the burst's chance.

    Args:
        bound: From scores of m examples to the bound of the search, nats.
        m_delta: Delta times m.
    """
    rng = np.random.default_rng([seed, m])

    def harm(burst: Burst) -> float:
        draws = (burst.mechanism(m, certain=True).draw(rng, m) for _ in range(pilots))
        return burst.chance * sum(bound(scores) > 0.0 for scores in draws) / pilots

    # A search is harmed most where every other guess is a fair coin, at an epsilon of 0. Sizes from
    # 6 to four fifths of all; chosen.
    sizes = sorted({int(size) for size in np.geomspace(6, 4 * m // 5, 12)})
    return max((Burst(0.0, m_delta, size, size) for size in sizes), key=harm)
