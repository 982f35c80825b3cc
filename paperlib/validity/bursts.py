"""Bursts, the worst case of delta: many right answers are shown together, as often as delta allows.

Randomized response on ``shown`` random examples of m has K ~ Binomial(shown, e^eps/(1+e^eps)) right answers.
With probability c a burst takes its place: the answers of a run with at least ``right`` right ones. Changing
one bit moves K by one, so a burst gives away an example only where K is exactly ``right`` and the example is
one of those answered rightly:

    delta = c (shown / m) P[K = right and it is answered rightly] / P[K >= right]
          = c (right / m) P[K = right] / P[K >= right].

Solved for c this is `burst_chance`: the mechanism is (epsilon, delta)-DP, and for no smaller delta.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, expit, xlog1py, xlogy

from paperlib.core import FloatArray, IntArray, MembershipScores
from paperlib.validity.mechanisms import Mechanism, of_bits


def binomial_law(n: int, chance: float) -> FloatArray:
    """Law of Binomial(n, chance), shape (n + 1,)."""
    k = np.arange(n + 1)
    ways = -betaln(k + 1, n - k + 1) - np.log1p(n)
    return np.asarray(np.exp(ways + xlogy(k, chance) + xlog1py(n - k, -chance)))


def right_counts(epsilon: float, shown: int) -> FloatArray:
    """Law of the number of right answers of randomized response on ``shown`` examples, shape (shown + 1,)."""
    return binomial_law(shown, float(expit(epsilon)))


def burst_chance(law: FloatArray, right: int, m_delta: float, leak: float = 1.0) -> float:
    """Chance of a burst of ``right`` right answers or more, which costs ``leak`` times less delta."""
    return float(min(1.0, leak * m_delta / right * law[right:].sum() / law[right]))


def with_bursts(law: FloatArray, right: int, chance: float) -> FloatArray:
    """Law of the number of right answers when a burst takes the place of a run with this chance."""
    burst = np.where(np.arange(law.size) >= right, law, 0.0) / law[right:].sum()
    return (1 - chance) * law + chance * burst


@dataclass(frozen=True)
class Burst:
    """Randomized response with bursts on some random examples, which are answered the most confidently."""

    epsilon: float  # epsilon of the randomized response, nats, at least 0
    m_delta: float  # delta times the number of examples, at least 0
    shown: int  # examples that a burst is about, at least 1
    right: int  # right answers of a burst, at least, 1 to ``shown``

    @property
    def chance(self) -> float:
        """Chance of a burst."""
        return burst_chance(right_counts(self.epsilon, self.shown), self.right, self.m_delta)

    def mechanism(self, m: int, *, certain: bool = False) -> Mechanism:
        """The mechanism on m examples; ``certain`` bursts happen in every run, at no delta below 1."""
        law = right_counts(self.epsilon, self.shown)
        counts = with_bursts(law, self.right, 1.0 if certain else self.chance)

        def scores(rng: np.random.Generator, bits: IntArray) -> FloatArray:
            first = rng.permutation(bits.size)[: self.shown]
            correct = rng.random(bits.size) < expit(self.epsilon)
            correct[first] = rng.permutation(self.shown) < rng.choice(law.size, p=counts / counts.sum())
            sure = np.ones(bits.size)
            sure[first] = 2.0
            return np.where(correct == (bits == 1), 1.0, -1.0) * (sure + 0.1 * rng.random(bits.size))

        name = f"bursts of {self.right} in {self.shown}, else ε = {self.epsilon:g}"
        return Mechanism(name, self.epsilon, self.m_delta / m, of_bits(scores))


def first_refuting(bounds: FloatArray, epsilon: float) -> int:
    """Smallest count whose bound exceeds epsilon; the largest count if there is none."""
    refuting = np.flatnonzero(bounds > epsilon)
    return int(refuting[0]) if refuting.size else bounds.size - 1


def strongest_burst(
    bound: Callable[[MembershipScores], float],
    epsilon: float,
    m_delta: float,
    m: int,
    *,
    sizes: Iterable[int],
    pilots: int,
    seed: int,
) -> Burst:
    """The burst of all right answers that makes a search wrong most often, by pilot audits of sure bursts."""
    rng = np.random.default_rng([seed, m])

    def harm(burst: Burst) -> float:
        draws = (burst.mechanism(m, certain=True).draw(rng, m) for _ in range(pilots))
        return burst.chance * sum(bound(scores) > epsilon for scores in draws) / pilots

    return max((Burst(epsilon, m_delta, size, size) for size in sizes), key=harm)
