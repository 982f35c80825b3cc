"""How few exposed identifiers an audit from ranks would have shown."""

import numpy as np
from numpy.typing import ArrayLike

from paperlib.bounds.one_run.detection import DetectionLimit, fewest_shown
from paperlib.bounds.ranks.audit import audit_ranks
from paperlib.core.checks import IntArray, check_counts, check_in, check_nonnegative, check_vector
from paperlib.words import detection as words


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
        margins: Confidence of the attack in each set, shape (m,), of which the order alone counts;
            None where every set is guessed.
        delta, confidence: Of the audit: in [0, 1), and in (0, 1).
        epsilon: What the bound must exceed to count as shown, nats.
        power: Share of the audits that must show it, in (0, 1).
        simulations: Audits simulated for each number of identifiers tried.
        seed: Of the simulated audits.

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
    places_of_margins = None if margins is None else _places_of_margins(margins, sizes.size)
    # In one order, so that the order of the rows changes no simulated audit.
    order = np.argsort(sizes, kind="stable")
    if places_of_margins is not None:
        order = np.lexsort((places_of_margins, sizes))
        places_of_margins = places_of_margins[order]
    sizes = sizes[order]

    def shown(count: int, simulation: int) -> bool:
        """Whether a simulated audit with so many exposed identifiers shows more than epsilon."""
        rng = np.random.default_rng([seed, simulation])
        ranks = rng.integers(1, sizes + 1)
        exposed = rng.permutation(sizes.size)[:count]
        ranks[exposed] = 1
        simulated_margins = places_of_margins
        if places_of_margins is not None:
            simulated_margins = places_of_margins.copy()
            simulated_margins[exposed] = sizes.size  # above all others
        result = audit_ranks(
            ranks, sizes, delta=delta, confidence=confidence, margins=simulated_margins
        )
        return result.epsilon > epsilon

    records = fewest_shown(shown, sizes.size, power, simulations)
    exposed = words.RANKED_FIRST if margins is None else words.RANKED_FIRST_BY_MARGIN
    return DetectionLimit(
        records=records, of=sizes.size, exposed=exposed, epsilon=epsilon, power=power
    )


def _places_of_margins(margins: ArrayLike, sets: int) -> IntArray:
    """The place of each margin among the different ones, from 0, since their order alone counts."""
    values = check_vector("margins", margins)
    if values.size != sets:
        raise ValueError(f"margins: expected {sets} values like set_sizes, got {values.size}")
    return np.unique(values, return_inverse=True)[1].astype(np.int64)
