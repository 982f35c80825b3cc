"""What an audit would have seen: the sentence of a limit of detection."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paperlib.bounds.one_run.detection import DetectionLimit

RANKED_FIRST = "identifiers been ranked first among all their candidates"
"""What exposed identifiers are; the end of "had k of n ..."."""

RANKED_FIRST_BY_MARGIN = f"{RANKED_FIRST}, with the largest margins"
"""The same where sets are guessed in the order of their margins."""


def sentence(limit: "DetectionLimit") -> str:
    """What the audit would have seen, and what that does not cover; a limit without ``records`` is
    that of an audit that would not have seen even a leak of all of them.
    """
    leak = "a leak" if limit.epsilon == 0 else f"more than epsilon = {limit.epsilon:g}"
    if limit.records is None:
        return f"Had all {limit.of} {limit.exposed}, this audit would still not have shown {leak}."
    return (
        f"Had {limit.records} of {limit.of} {limit.exposed} and nothing else leaked, this audit "
        f"would have shown {leak} in {100 * limit.power:g} % of cases. What another attack "
        "exposes is not covered."
    )


def ranked(*, above: bool) -> str:
    """Exposed records: members above all others, or non-members below them."""
    return f"{_side(above)} been ranked {_direction(above)} all other records"


def ranked_in_run(*, above: bool) -> str:
    """Exposed records of several runs: members above all others of their run, or non-members below
    them.
    """
    return f"{ranked(above=above)} of their run"


def ranked_mostly(share: float, *, above: bool) -> str:
    """Exposed records of which only this share are members above all others, or non-members
    below.
    """
    return f"records been ranked {_direction(above)} all others, {share:.0%} of them {_side(above)}"


def _side(above: bool) -> str:
    return "members" if above else "non-members"


def _direction(above: bool) -> str:
    return "above" if above else "below"
