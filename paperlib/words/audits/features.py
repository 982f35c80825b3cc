"""What an audit of several signals says of its number, and what it takes for granted."""

from typing import TYPE_CHECKING

from paperlib.core.results import round_down

if TYPE_CHECKING:
    from paperlib.audits.features import FeaturesResult


def headline(result: "FeaturesResult") -> str:
    """The bound, nats, on one line, with its guesses and those of the learned order."""
    return (
        f"ε ≥ {round_down(result.epsilon):.3f} (δ = {result.delta:g}, confidence "
        f"{result.confidence:g}; {result.correct} of {result.guesses} guesses right, "
        f"{result.learned} in the learned order, {result.total} examples)"
    )


def learned_order(search: str) -> str:
    """What the order of guesses may depend on, and how their number was searched, in the words of
    ``search``.
    """
    return (
        "which example is guessed next, and which is only looked at, depends on nothing but "
        f"the features and the coins revealed before it; threshold search: {search}"
    )
