"""What an audit of marked texts supports, takes for granted and advises."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from paperlib.core.facts import Refusal, RefusalCode
from paperlib.core.results import round_down

if TYPE_CHECKING:
    from paperlib.bounds.ranks.marks import MarksResult
    from paperlib.core.results import AuditResult

TITLE = "Published versions among their like versions"
PURPOSE = (
    "The main number: whether the published versions fit better than their like versions, and a "
    "lower bound on the epsilon under their replacement."
)
"""Title and purpose of the main number."""

CONDITION = (
    "assumes that the published version of each text was drawn by the sealed coins, each version "
    "with the same probability, and that the model could learn of the draws by the published texts "
    "alone"
)
"""What must stand beside the number."""

ASSUMPTIONS = (
    "the published version of each text was drawn uniformly among its versions, independently of "
    "everything else, and the other versions were kept secret until the scores were computed",
    "the score of a version depends on its text and the model, not on which version was published",
    "which texts and which score are audited was fixed before the scores were seen",
    "the epsilon speaks of replacing the published version of one text, with all its copies, by "
    "another version",
)
"""Conditions of the p-value and of the bound."""

LEVELS = "The p-value and the epsilon hold each at its own level."
"""What the note beside both numbers says."""


def p_text(p_value: float) -> str:
    """A p-value, rounded up to two digits.

    >>> [p_text(p) for p in (0.0412, 1.234e-09, 1.0, 1e-300)]
    ['0.042', '1.3e-09', '1', '1e-300']
    """
    from decimal import ROUND_CEILING, Context, Decimal

    return f"{float(Context(prec=2, rounding=ROUND_CEILING).plus(Decimal(repr(p_value)))):.2g}"


def headline(result: "MarksResult") -> str:
    """The p-value and the bound on epsilon, nats, on one line, with whether use is shown."""
    state = "texts were used" if result.used else "no use shown"
    return (
        f"{state}: p ≤ {p_text(result.p_value)}; ε ≥ {round_down(result.epsilon):.3f} "
        f"(replacement of a version, δ = {result.delta:g}, confidence {result.confidence:g}; "
        f"{result.correct} of {result.sets} published versions first among {result.set_size[1]})"
    )


def claim(p_value: float, used: bool, epsilon: float, delta: float, confidence: float) -> str:
    """The sentences that the p-value and the bound, nats, support; ``used`` says whether use is
    shown with an error of 1 - confidence.
    """
    chance = (
        "If the texts had not been used, published versions would fit as well as here with "
        f"probability at most {p_text(p_value)}"
    )
    outcome = "so this audit does not show that they were used"
    if used:
        outcome = f"so they were used, at an error of {1 - confidence:.2g}"
    bound = "no lower bound on epsilon above 0 is shown"
    if epsilon > 0:
        bound = (
            f"with confidence {confidence:g} the training is not (epsilon, {delta:g})-"
            "differentially private under replacement of the published version of one text for "
            f"any epsilon below {round_down(epsilon):.3f}"
        )
    return f"{chance}, {outcome}; {bound}."


def meaning(result: "AuditResult") -> Iterator[str]:
    """What the result means for the owner of the texts, most important first."""
    marks = cast("MarksResult", result)
    if marks.used:
        yield (
            "The texts were used: the model fits their published versions better than like versions"
            " that nobody else saw. Without use, this would happen with probability at most "
            f"{p_text(marks.p_value)}."
        )
        yield (
            "This shows that the texts, or copies of them, went into this model as a set. It does "
            "not show which of them, who took them from where, or whether that was allowed."
        )
        return
    yield (
        "This audit does not show that the texts were used: their published versions fit no better "
        f"than chance allows (p ≤ {p_text(marks.p_value)})."
    )
    yield (
        "That does not show that they were not used: few texts, a paraphrase that removes the "
        "marks, or a model that learns little of each text hide a use."
    )


def steps(result: "AuditResult") -> Iterator[str]:
    """What to do first after an audit of marks."""
    if cast("MarksResult", result).used:
        yield (
            "Keep the sealed file, the versions and the scores: with the hash that was published "
            "before, they let anyone repeat this test."
        )
        return
    yield (
        "Mark more texts, or choose a score fixed in advance that compares with a reference model, "
        "before you rely on this. Do not try several scores and report the best."
    )


def equal_scores(texts: int) -> Refusal:
    """The refusal where all versions of every text have one score."""
    sentence = (
        f"All versions of each of the {texts} texts have the same score: the scores cannot tell "
        "versions apart, so this is no answer."
    )
    steps = ("Score each version by itself, with all its digits.",)
    return Refusal(code=RefusalCode.EQUAL_SCORES, sentence=sentence, steps=steps)


def unfair(signals: Sequence[tuple[str, float]], level: float) -> Refusal:
    """The refusal where published versions stand apart without the model, by these signals with
    their p-values; drawn versions do so with probability ``level`` at most.
    """
    named = ", ".join(f"{name} (p = {p_text(p_value)})" for name, p_value in signals)
    sentence = (
        f"The published versions stand apart from the others without the model, by {named}; drawn "
        f"versions do so in {level:.0%} of audits at most. They were not drawn, or texts were left "
        "out after the draw."
    )
    step = "Publish the drawn version of every text of `paperlib mark`, and audit all of them."
    return Refusal(code=RefusalCode.UNFAIR_DRAW, sentence=sentence, steps=(step,))
