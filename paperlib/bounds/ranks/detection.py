"""How few exposed identifiers an audit from ranks would have shown."""

import numpy as np
from numpy.typing import ArrayLike

from paperlib.bounds.one_run.detection import DetectionLimit, fewest, often_enough
from paperlib.bounds.ranks.audit import audit_ranks
from paperlib.core import IntArray, check_counts, check_in, check_nonnegative


def rank_limit_of_detection(
    set_sizes: ArrayLike,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    epsilon: float = 0.0,
    power: float = 0.8,
    simulations: int = 100,
    seed: int = 0,
) -> DetectionLimit:
    """How few identifiers at the first place of their set `audit_ranks` would have shown, at top 1.

    Ranks are simulated: those of the exposed identifiers are 1, all others uniform in their sets.

    Args:
        set_sizes: Candidates per set with the true one, shape (m,), at least 2.
        delta, confidence: As in `audit_ranks`.
        epsilon, power, simulations: As in `limit_of_detection`.

    Raises:
        ValueError: A value out of range.

    >>> rank_limit_of_detection([64] * 500).records
    8
    """
    sizes = np.atleast_1d(check_counts("set_sizes", set_sizes, minimum=2))
    epsilon, power = check_nonnegative("epsilon", epsilon), check_in("(0, 1)", "power", power)
    check_counts("simulations", simulations, minimum=1)

    def ranks(exposed: int, at: int) -> IntArray:
        rng = np.random.default_rng([seed, at])
        places, chosen = rng.integers(1, sizes + 1), rng.permutation(sizes.size)[:exposed]
        places[chosen] = 1
        return places

    def shown(exposed: int, at: int) -> bool:
        result = audit_ranks(ranks(exposed, at), sizes, delta=delta, confidence=confidence)
        return result.epsilon > epsilon

    records = fewest(
        lambda exposed: often_enough(power, simulations, lambda at: shown(exposed, at)), sizes.size
    )
    exposed = "identifiers been ranked first among all their candidates"
    return DetectionLimit(records=records, of=sizes.size, exposed=exposed, epsilon=epsilon, power=power)
