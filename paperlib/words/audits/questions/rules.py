"""What an audit shows of a question, and what is missing: one function of the facts for each kind
of question. No rule says that a duty is met; each can say that something is not shown.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from paperlib.core.results import round_down, round_up
from paperlib.words.audits.questions.facts import AuditFacts

NOT_SHOWN = "Not shown"
NOTHING = "–"  # a cell that has nothing to say

_TESTED = {
    "randomized": "Whether a record was trained on, by coins tossed before training",
    "game": "Whether a record was trained on, by coins that this audit tossed",
    "played": "Whether a record was shown, by coins tossed after training",
    "forget": "Whether a forgotten record is still known, by coins tossed before training",
    "candidates": "Which of several like strings was trained on",
    "marks": "Which of several versions of a text was used, by a draw before publication",
}
"""What each design tests."""

_NEIGHBOURS = {
    "add/remove": "one record that is there or not",
    "replace": "one record in another's place",
    "label": "one label in another's place",
}
"""What two neighbouring sets of training data differ in."""

_BEFORE = ("randomized", "forget", "marks")  # designs whose coins fell before training


@dataclass(frozen=True)
class Shown:
    """What an audit shows of a question, and what is missing; NOTHING where nothing is."""

    shows: str
    missing: str = NOTHING


def leak(facts: AuditFacts) -> Shown:
    """The lower bound."""
    if facts.bound is None:
        return _unanswered(facts)
    if round_down(facts.bound) > 0:
        return Shown(f"A leak: {_number(facts)}.")
    return Shown(f"No leak was found at {_level(facts)}; {_ceiling(facts)}.", _without_most(facts))


def membership(facts: AuditFacts) -> Shown:
    """What was tested, and whether a leak was found."""
    if facts.bound is None:
        return _unanswered(facts)
    tested = _TESTED.get(facts.design or "", "Whether a record was trained on")
    found = "a leak was found" if round_down(facts.bound) > 0 else "no leak was found"
    missing = NOTHING
    if facts.design not in _BEFORE:
        missing = "Coins tossed before training (`paperlib coins`)."
    elif facts.design == "randomized" and not facts.coins:
        missing = "The file of coins (`--coins`): the caller's word alone says that they fell."
    return Shown(f"{tested}: {found} at {_level(facts)}.", missing)


def guessing(facts: AuditFacts) -> Shown:
    """How many guesses were right, and whether that is more than chance."""
    if facts.bound is None:
        return _unanswered(facts)
    if facts.guesses is None or facts.correct is None:
        counts, missing = "No guesses are counted", "The number of guesses, and of right ones."
    else:
        counts, missing = f"{facts.correct:,} of {facts.guesses:,} guesses were right", NOTHING
    better = "better than guessing" if round_down(facts.bound) > 0 else "not shown to beat guessing"
    return Shown(f"{counts}: {better} at {_level(facts)}.", missing)


def extraction(facts: AuditFacts) -> Shown:
    """Whether true strings stand out among like ones."""
    if facts.design != "candidates":
        return Shown(
            f"{NOT_SHOWN}: this audit reads scores and draws no content out of the {facts.what}.",
            "An audit of identifiers (`paperlib audit-lm` or `audit-chat`).",
        )
    if facts.bound is None:
        return _unanswered(facts)
    found = "No true string stands out"
    if round_down(facts.bound) > 0:
        found = "True strings stand out"
    return Shown(
        f"{found} among like ones: {_number(facts)}.",
        "Content without a known form, such as names and sentences.",
    )


def attribute(facts: AuditFacts) -> Shown:
    """Whether labels were guessed."""
    if facts.adjacency != "label":
        return Shown(
            f"{NOT_SHOWN}: no attribute of a record was guessed.",
            "An audit of labels (`audit_labels` in Python).",
        )
    if facts.bound is None:
        return _unanswered(facts)
    return Shown(f"Labels were guessed: {_number(facts)}.", "Attributes other than the label.")


def sample(facts: AuditFacts) -> Shown:
    """How many records and guesses the number rests on."""
    if facts.total is None:
        return Shown(f"{NOT_SHOWN}: the result counts no records.", "The number of records.")
    if facts.guesses is None:
        return Shown(f"One {facts.what}, {facts.total:,} records.", "The number of guesses.")
    return Shown(f"One {facts.what}, {facts.total:,} records, {facts.guesses:,} guesses.")


def level(facts: AuditFacts) -> Shown:
    """The confidence at which the number holds."""
    if facts.bound is None:
        return _unanswered(facts)
    if facts.confidence is None:
        return Shown(f"{NOT_SHOWN}: the number has no level.", "A confidence level.")
    wrong = 1 - facts.confidence
    return Shown(f"At most {100 * wrong:.3g} % of such audits show a number that is too high.")


def power(facts: AuditFacts) -> Shown:
    """The most that so many records could have shown."""
    if facts.most is None or not math.isfinite(facts.most):
        return Shown(f"{NOT_SHOWN}: a limit of detection is not known.", _without_most(facts))
    return Shown(f"{_ceiling(facts).capitalize()}.")


def unit(facts: AuditFacts) -> Shown:
    """What one record is."""
    if not facts.has_result:
        return _unanswered(facts)
    if not facts.unit:
        return Shown(
            "One row is one record.",
            "A unit (`--unit`), where a person has several rows.",
        )
    return Shown(f"One record is what one value of “{facts.unit}” names.")


def neighbours(facts: AuditFacts) -> Shown:
    """What two neighbouring sets of training data differ in."""
    if not facts.adjacency:
        return Shown(f"{NOT_SHOWN}: the number speaks of no neighbours.", "An adjacency.")
    return Shown(f"They differ in {_NEIGHBOURS[facts.adjacency]} ({facts.adjacency}).")


def copies(facts: AuditFacts) -> Shown:
    """How many copies of a record come and go together."""
    if not facts.has_result:
        return _unanswered(facts)
    if facts.copies > 1:
        return Shown(
            f"{facts.copies:,} copies of a record come and go together; the number counts them all."
        )
    missing = NOTHING if facts.unit else "The largest number of rows of one person."
    return Shown("One copy of a record comes and goes.", missing)


def delta(facts: AuditFacts) -> Shown:
    """The delta of the guarantee that is tested."""
    if facts.bound is None:
        return _unanswered(facts)
    if facts.delta == 0:
        return Shown("Delta is 0: pure epsilon is tested.", "The claim's delta, if it has one.")
    return Shown(f"Delta is {facts.delta:g}.")


def comparable(facts: AuditFacts) -> Shown:
    """With which guarantees the number can be compared."""
    if facts.bound is None:
        return _unanswered(facts)
    record = f"“{facts.unit}”" if facts.unit else "one row"
    alike = f"delta {facts.delta:g}, {facts.adjacency or 'no adjacency'}, {record} as unit"
    missing = NOTHING if facts.unit else "A unit (`--unit`), where a person has several rows."
    return Shown(f"Only where these are the same: {alike}.", missing)


def parameters(facts: AuditFacts) -> Shown:
    """Whether the claim's own parameters were tested."""
    if facts.is_curve_tested:
        return Shown("The whole curve of the claimed mechanism was tested beside the main number.")
    return Shown(
        f"{NOT_SHOWN}: one pair of epsilon and delta at most was looked at.",
        "The mechanism as claimed (`--claimed`), such as its noise, rate and steps.",
    )


def claim(facts: AuditFacts) -> Shown:
    """Whether the claimed epsilon is refuted."""
    if facts.claimed_epsilon is None:
        return Shown(
            f"{NOT_SHOWN}: no epsilon was claimed.", "The claimed epsilon (`--claimed-epsilon`)."
        )
    claimed = f"The claimed epsilon of {facts.claimed_epsilon:g}"
    if facts.refuted is None:
        return Shown(f"{NOT_SHOWN}: {claimed.lower()} was not judged.", "A lower bound.")
    if facts.refuted:
        return Shown(f"{claimed} is refuted at {_level(facts)}.")
    return Shown(f"{claimed} is not refuted, which does not confirm it.", _without_most(facts))


def plan(facts: AuditFacts) -> Shown:
    """Whether a sealed plan was followed."""
    if not facts.plan:
        return Shown(f"{NOT_SHOWN}: no plan was sealed.", "A sealed plan (`paperlib seal`).")
    return Shown(f"A sealed plan was followed; its SHA-256 begins {facts.plan[:12]}.")


def coins(facts: AuditFacts) -> Shown:
    """Whether membership follows from coins with a published hash."""
    if not facts.coins:
        return Shown(f"{NOT_SHOWN}: no file of coins was given.", "Coins (`paperlib coins`).")
    return Shown(f"Coins told membership; their SHA-256 begins {facts.coins[:12]}.")


def checkable(facts: AuditFacts) -> Shown:
    """Whether somebody else can compute the audit again."""
    if facts.plan and facts.coins:
        return Shown("Whoever has this page can compute it again (`paperlib verify`).")
    missing = "A sealed plan" if facts.coins else "Coins, and a plan sealed before training"
    return Shown(f"{NOT_SHOWN}: only with the input files can it be computed again.", f"{missing}.")


def documentation(facts: AuditFacts) -> Shown:
    """Which parts of the documentation of this test are there."""
    gaps: list[str] = []
    if facts.bound is None:
        gaps.append("an answer")
    if not facts.unit:
        gaps.append("a unit")
    if not facts.plan:
        gaps.append("a sealed plan")
    if not facts.is_described:
        gaps.append("a description (`--about`)")
    missing = f"In this report: {', '.join(gaps)}." if gaps else NOTHING
    test = "One test without an answer" if facts.bound is None else "One test"
    return Shown(f"{test}, with its options, assumptions, versions and checksums.", missing)


def description(facts: AuditFacts) -> Shown:
    """Whether somebody described the model."""
    if not facts.is_described:
        return Shown(f"{NOT_SHOWN}: nobody described the {facts.what}.", "A file of `--about`.")
    return Shown("What its owner says stands under “About the model”.")


def marks(facts: AuditFacts) -> Shown:
    """Whether the use of marked texts can be told."""
    if facts.design != "marks":
        return Shown(f"{NOT_SHOWN}: no marked texts were audited.", "Marks (`paperlib mark`).")
    if facts.bound is None:
        return _unanswered(facts)
    used = "is shown" if round_down(facts.bound) > 0 else "is not shown"
    return Shown(f"Texts were marked; their use {used} at {_level(facts)}.")


def release(facts: AuditFacts) -> Shown:
    """What a synthetic release tells of its records."""
    if facts.what != "release":
        return Shown(
            f"{NOT_SHOWN}: no release was audited.",
            "An audit of the release, if there is one (`paperlib audit-release`).",
        )
    return leak(facts)


def nothing(facts: AuditFacts) -> Shown:
    """A question that no audit of scores speaks of, whatever it found."""
    return Shown(f"{NOT_SHOWN}: this audit of a {facts.what} does not look at it.")


def _unanswered(facts: AuditFacts) -> Shown:
    """Why there is no number to speak of."""
    if not facts.has_result:
        return Shown(f"{NOT_SHOWN}: the audit was not possible.", "A result: see the verdict.")
    if facts.refusals:
        code = facts.refusals[0].replace("_", " ")
        return Shown(
            f"{NOT_SHOWN}: the number is no answer ({code}).", "What the verdict asks for."
        )
    return Shown(
        f"{NOT_SHOWN}: the main number is a measurement, which holds at no level.",
        "A lower bound.",
    )


def _number(facts: AuditFacts) -> str:
    """The lower bound with its delta and its level."""
    bound = 0.0 if facts.bound is None else facts.bound
    return f"epsilon is at least {round_down(bound):.3f} at delta {facts.delta:g}, {_level(facts)}"


def _level(facts: AuditFacts) -> str:
    return "no level" if facts.confidence is None else f"confidence {facts.confidence:g}"


def _ceiling(facts: AuditFacts) -> str:
    """The most, nats, that so many records could have shown, as a clause."""
    if facts.most is None or not math.isfinite(facts.most):
        return "how much could have been found is not known"
    return f"so many records could show epsilon up to {round_up(facts.most):.3f}"


def _without_most(facts: AuditFacts) -> str:
    """What is missing where the most that could have been found is not known."""
    if facts.most is None or not math.isfinite(facts.most):
        return "The most that so many records could have shown."
    return NOTHING


RULES: dict[str, Callable[[AuditFacts], Shown]] = {
    rule.__name__: rule
    for rule in (
        leak,
        membership,
        guessing,
        extraction,
        attribute,
        sample,
        level,
        power,
        unit,
        neighbours,
        copies,
        delta,
        comparable,
        parameters,
        claim,
        plan,
        coins,
        checkable,
        documentation,
        description,
        marks,
        release,
        nothing,
    )
}
"""The rules by the names that the files of questions use."""
