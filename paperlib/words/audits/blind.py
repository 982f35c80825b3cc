"""What is said of members and non-members that differ without the model, and of texts that the
model does not know.
"""

from collections.abc import Sequence

ToldApart = tuple[str, float, float, float, float]
"""What tells the sides apart: name of the signal, AUC, ends of its interval, p-value."""


def sides_differ(signals: Sequence[ToldApart], level: float) -> str:
    """Why no bound is given, on one line.

    Args:
        signals: One or more signals that tell members from non-members without the model.
        level: Chance, at most, that sides chosen by fair coins are said to differ.
    """
    reasons = "; ".join(map(_told_apart, signals))
    return (
        f"{reasons}: scores of the model would show that as well (fair coins give this in at most "
        f"{100 * level:g} % of audits); take members and non-members of one source, chosen by coins"
    )


def sides_may_differ(signal: ToldApart, level: float) -> str:
    """The warning about a signal that chance may explain, as it does in ``level`` of sound
    audits.
    """
    return (
        f"{_told_apart(signal)}, which fair coins give in at most {100 * level:g} % of audits; "
        "scores of the model would show a real difference as well: were members and non-members "
        "chosen by coins, from one source?"
    )


def _told_apart(signal: ToldApart) -> str:
    """That a signal tells the sides apart, with its numbers."""
    name, auc, low, high, p_value = signal
    return (
        f"{name} alone tells members from non-members (AUC {auc:.3f} [{low:.3f}, {high:.3f}], "
        f"p = {p_value:.2g})"
    )


def look_alikes(count: int) -> str:
    """The warning that so many texts stand on both sides, but for how they are written."""
    return (
        f"{count} texts stand on both sides, but for spaces, upper case or "
        "Unicode form: a copy hides what was learned; leave copies out"
    )


GUESSED = (
    "model: most losses are those of guessed tokens; were its weights loaded, and is the tokenizer "
    "its own?"
)
"""Of a language model that predicts no better than a guess."""


def unknown(name: str, guess: float) -> str:
    """The warning that most losses under the model called ``name`` are above ``guess``, that of a
    guess among all tokens, nats.
    """
    return (
        f"{name}: most losses are above {guess:.3g}, that of guessed tokens; is the tokenizer "
        "its own?"
    )
