"""Shared assertions of the coverage tests."""

from scipy.stats import binom

FALSE_FAILURE = 1e-6


def assert_rate_at_most(
    limit: float, hits: int, trials: int, false_failure: float = FALSE_FAILURE
) -> None:
    """Fail when ``hits`` of ``trials`` is too many for a true rate of ``limit``.

    A sound bound fails this with probability at most ``false_failure``.
    """
    allowed = binom.isf(false_failure, trials, limit)
    assert hits <= allowed, f"{hits}/{trials} hits; a rate of {limit:g} allows {allowed:.0f}"
