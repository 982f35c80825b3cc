"""How the number of guesses was searched: what stands behind "threshold search:" in a result."""

EVERY_COUNT = "every guess count at once by a mixture supermartingale"
"""All guess counts in one test."""

SINGLE_COUNTS = {
    "bonferroni": "every guess count",
    "dyadic": "dyadic guess counts",
    "grid": "a fixed grid of pairs of counts",
}
"""Guess counts that are tested one by one, by the search over them."""

ONE_HALF = "threshold chosen on one random half, tested on the other; tests over 1"
"""One threshold, found on other scores."""


def fixed_threshold(threshold: float) -> str:
    """One threshold, in the unit of the oriented scores."""
    return f"threshold {threshold:g} fixed before looking; tests over 1"


def single_counts(search: str, tests: int, *, random: bool) -> str:
    """Guess counts that are tested one by one, of a name in `SINGLE_COUNTS`.

    ``tests`` is their number; ``random`` if ties make the counts random, which matters at a delta
    above 0.
    """
    counts = SINGLE_COUNTS[search]
    if random:
        counts += (
            " (random ones, since scores are tied: a mechanism that chooses ties can raise "
            "the error)"
        )
    return f"{counts}, Bonferroni over {tests}"


def merged_runs(search: str) -> str:
    """The search over the guesses of all runs together, ``search`` that over their number."""
    return f"guesses merged by their rank within each run, {search}"


def runs_in_turn(shares: int, ends: int) -> str:
    """The search over where each run is left: so many shares of its examples, and so many pairs of
    a share and the ends that are guessed.
    """
    return (
        f"run after run, each up to one of {shares} shares of its examples, at both ends or "
        f"at one; {EVERY_COUNT}, Bonferroni over {ends}"
    )
