"""What a bound from independent training runs supports, and what it takes for granted."""

from typing import Literal

from paperlib.core.facts import Adjacency
from paperlib.core.results import round_down, round_up
from paperlib.words.claims import NEIGHBOURS

TestOrigin = Literal["counted", "threshold", "split"]
"""How the one test was settled: it came with its error counts, its threshold was given, or one
random half of the scores chose the threshold.
"""

JEFFREYS_PRIOR = "both error rates have Jeffreys' prior Beta(1/2, 1/2)"
GAUSSIAN_CURVE = "the mechanism's trade-off curve is that of mu-Gaussian DP"


def assumptions(
    origin: TestOrigin, seed: int, *, replaced: bool, method: str = ""
) -> tuple[str, ...]:
    """Conditions of a bound from the errors of one test.

    Args:
        origin: How the test was settled.
        seed: Seed of the random half that chose the threshold.
        replaced: Whether another record stood in the target's place in the runs without it.
        method: What the method of the bound assumes beside; "" for nothing.
    """
    instead = "with another record in its place" if replaced else "without it"
    runs = (
        "each score comes from its own training run, with the target record for members and "
        f"{instead} for non-members; scores of many records under one model are not independent "
        "runs"
    )
    settled = {
        "counted": "the test was fixed before its errors were counted",
        "threshold": "the threshold was fixed before looking at these scores",
        "split": (
            f"the threshold was chosen on a random half of the scores (seed {seed}), errors "
            "counted on the other"
        ),
    }
    conditions = [runs, settled[origin]]
    if method:
        conditions.append(method)
    return tuple(conditions)


def clopper_pearson_claim(
    epsilon: float, delta: float, confidence: float, adjacency: Adjacency
) -> str:
    """The sentence on a bound on epsilon, nats, from intervals on both error rates."""
    return (
        f"Lower bound on the mechanism: with confidence {confidence:g}, training is not "
        f"(epsilon, {delta:g})-DP for any epsilon below {round_down(epsilon):.3f}, under "
        f"{NEIGHBOURS[adjacency]}."
    )


def bayesian_claim(epsilon: float, delta: float, confidence: float, adjacency: Adjacency) -> str:
    """The sentence on a quantile of the posterior of epsilon, nats; the posterior probability that
    epsilon is at least that is ``confidence``.
    """
    return (
        f"Lower bound on the mechanism, Bayesian: with posterior probability {confidence:g} "
        f"training is not (epsilon, {delta:g})-DP for any epsilon below "
        f"{round_down(epsilon):.3f}, under {NEIGHBOURS[adjacency]}. Not a confidence bound."
    )


def gaussian_dp_claim(
    mu: float, epsilon: float, delta: float, confidence: float, adjacency: Adjacency
) -> str:
    """The sentence on a bound on mu of Gaussian DP, and on the epsilon, nats, that it has at
    ``delta``.
    """
    return (
        f"Lower bound on the mechanism: with confidence {confidence:g}, training is not mu-GDP "
        f"for any mu below {round_down(mu):.3f}; if its trade-off curve is Gaussian, it is not "
        f"(epsilon, {delta:g})-DP for any epsilon below {round_down(epsilon):.3f}, under "
        f"{NEIGHBOURS[adjacency]}."
    )


def clopper_pearson_headline(epsilon: float, delta: float, confidence: float) -> str:
    """A bound on epsilon, nats, from intervals on both error rates, on one line."""
    return f"ε ≥ {round_down(epsilon):.3f} (δ = {delta:g}, confidence {confidence:g})"


def bayesian_headline(
    epsilon: float, interval: tuple[float, float], delta: float, confidence: float
) -> str:
    """A quantile of the posterior of epsilon on one line, with its equal-tailed interval, nats."""
    low, high = interval
    return (
        f"ε ≥ {round_down(epsilon):.3f} with posterior probability {confidence:g} "
        f"(interval {low:.3f} to {high:.3f}; δ = {delta:g})"
    )


def gaussian_dp_headline(mu: float, epsilon: float, delta: float, confidence: float) -> str:
    """A bound on mu of Gaussian DP on one line, with its epsilon, nats."""
    return (
        f"mu ≥ {round_down(mu):.3f}, epsilon of that mu {round_down(epsilon):.3f} "
        f"(δ = {delta:g}, confidence {confidence:g})"
    )


def could_refute(members: int, nonmembers: int, ceiling: float) -> str:
    """The sentence after the claim of a bound of 0.

    Args:
        members, nonmembers: Numbers of runs with the target record and without it.
        ceiling: The bound that a test without an error would have given, nats.
    """
    runs = f"{members} runs with the target record and {nonmembers} without it"
    if ceiling <= 0:
        return f"{runs} cannot refute any epsilon, even without an error: nothing is learned."
    return (
        f"This refutes no epsilon; {runs} could have refuted at most {round_up(ceiling):.3f}, "
        "without an error."
    )
