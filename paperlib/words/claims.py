"""What the number of an audit supports, in the exact sentence that may be quoted."""

from paperlib.core.facts import Adjacency
from paperlib.core.results import round_down, round_up

NEIGHBOURS: dict[Adjacency, str] = {
    "add/remove": "adding or removing one example",
    "replace": "replacing one example by another",
    "label": "replacing the label of one example",
}
"""What two neighbouring training sets differ in, in words."""


def lower_bound_claim(
    epsilon: float,
    delta: float,
    confidence: float,
    adjacency: Adjacency,
    *,
    ceiling: float | None = None,
) -> str:
    """The sentence that a valid lower bound on epsilon supports.

    Args:
        epsilon, delta, confidence: The bound, nats, and what it holds at.
        adjacency: What two neighbouring training sets differ in.
        ceiling: The most that the audit could have shown, nats; None where a note says it.
    """
    neighbours = NEIGHBOURS[adjacency]
    if epsilon > 0:
        return (
            f"With confidence {confidence:g}, the training procedure is not (epsilon, {delta:g})-"
            f"differentially private under {neighbours} for any epsilon below "
            f"{round_down(epsilon):.3f}."
        )
    if ceiling is not None and ceiling <= 0:
        return (
            f"So few examples cannot refute any epsilon under {neighbours} (delta = {delta:g}, "
            f"confidence {confidence:g}), however good the attack: nothing is learned from this "
            "audit."
        )
    most = "" if ceiling is None else f", and could have refuted at most {round_up(ceiling):.3f}"
    return (
        f"At confidence {confidence:g} this audit refutes no epsilon{most}: it is consistent with "
        f"perfect privacy under {neighbours} (delta = {delta:g}). It does not show that training "
        "is private."
    )


def ceiling_note(total: int, ceiling: float, what: str = "examples") -> str:
    """The most that an audit of ``total`` examples can show, in one sentence."""
    return f"{total} {what} can show at most {round_up(ceiling):.3f}, with every guess right."


def unit_sentence(unit: str) -> str:
    """What one example is, where the rows of a unit are averaged."""
    return f"One example is one unit of {unit}: all its rows, their values averaged."
