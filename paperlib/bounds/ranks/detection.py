"""How few exposed identifiers an audit from ranks would have shown."""

import numpy as np
from numpy.typing import ArrayLike

from paperlib.bounds.one_run.detection import DetectionLimit, fewest_shown
from paperlib.bounds.ranks.audit import audit_ranks
from paperlib.core import check_counts, check_in, check_nonnegative
from paperlib.core.checks import check_vector


def rank_limit_of_detection(
    set_sizes: ArrayLike,
    *,
    margins: ArrayLike | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    epsilon: float = 0.0,
    power: float = 0.8,
    simulations: int = 100,
    seed: int = 0,
) -> DetectionLimit:
    """How few identifiers at the first place of their set `audit_ranks` would have shown, at top 1.

    Ranks are simulated: those of the exposed identifiers are 1, all others uniform in their sets.
    With margins, those of the exposed are the largest.

    Args:
        set_sizes: Candidates per set with the true one, shape (m,), at least 2.
        margins, delta, confidence: As in `audit_ranks`.
        epsilon, power, simulations: As in `limit_of_detection`.

    Raises:
        ValueError: A value out of range, or not one margin for each set.

    >>> rank_limit_of_detection([64] * 500).records
    8
    >>> rank_limit_of_detection([64] * 500, margins=np.zeros(500)).records
    2
    """
    sizes = np.atleast_1d(check_counts("set_sizes", set_sizes, minimum=2))
    epsilon, power = check_nonnegative("epsilon", epsilon), check_in("(0, 1)", "power", power)
    check_counts("simulations", simulations, minimum=1)

    # Their order alone counts.
    surest = (
        None
        if margins is None
        else np.unique(check_vector("margins", margins), return_inverse=True)[1]
    )
    if surest is not None and surest.size != sizes.size:
        raise ValueError(f"margins: expected {sizes.size} values like set_sizes, got {surest.size}")

    def shown(exposed: int, at: int) -> bool:
        rng = np.random.default_rng([seed, at])
        places, chosen = rng.integers(1, sizes + 1), rng.permutation(sizes.size)[:exposed]
        places[chosen], sure = 1, surest
        if surest is not None:
            sure = np.where(np.isin(np.arange(sizes.size), chosen), sizes.size, surest)
        result = audit_ranks(places, sizes, delta=delta, confidence=confidence, margins=sure)
        return result.epsilon > epsilon

    records = fewest_shown(shown, sizes.size, power, simulations)
    exposed = "identifiers been ranked first among all their candidates"
    if surest is not None:
        exposed += ", with the largest margins"
    return DetectionLimit(
        records=records, of=sizes.size, exposed=exposed, epsilon=epsilon, power=power
    )
