"""Every audit that a file of membership scores allows, each with what it can and cannot say."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from paperlib.bounds import audit_clopper_pearson, audit_one_run, audit_output_set, epsilon_star
from paperlib.core import AuditResult, MembershipScores

Guess = Literal["both", "members", "grid"]
Design = Literal["randomized", "game"]


@dataclass(frozen=True, kw_only=True)
class ScoreAudit:
    """One audit of the scores, or the reason why it could not be made.

    Attributes:
        title: Its name.
        kind: "lower bound", "measurement" or "baseline".
        purpose: What it is good for, in one sentence.
        result: The number with its claim, or None.
        refused: Why there is no result; empty otherwise.
    """

    title: str
    kind: str
    purpose: str
    result: AuditResult | None
    refused: str = ""


def audit_scores(
    scores: MembershipScores,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    guess: Guess = "both",
    design: Design = "randomized",
    seed: int = 0,
) -> list[ScoreAudit]:
    """Run every score-based audit.

    Each number holds at its own confidence. The first one is the answer to "how much does this
    training leak at least?"; choosing the largest after looking would need a price of its own.

    Args:
        scores: Scores or losses of members and non-members of one trained model.
        delta: Of the (epsilon, delta)-DP that the lower bounds test, in [0, 1).
        confidence: Of every number, in (0, 1).
        guess: Where the one-run audit guesses.
        design: "randomized" if fair coins decided membership before training; "game" draws a
            fair-coin subsample.
        seed: Of every random split.

    Returns:
        The audits, the main one first. Epsilon* needs losses and is left out for scores.

    Raises:
        ValueError: The main audit is not possible: its message says what to do.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> scores = MembershipScores(rng.normal(3, 1, 500), rng.normal(0, 1, 500))
    >>> [audit.kind for audit in audit_scores(scores)]
    ['lower bound', 'lower bound', 'baseline']
    """
    main = audit_one_run(scores, delta=delta, confidence=confidence, guess=guess, design=design, seed=seed)
    audits = [
        ScoreAudit(
            title="One training run, every threshold",
            kind="lower bound",
            purpose="The main number: a lower bound on epsilon of the training procedure, from one model.",
            result=main,
        ),
        _tried(
            "One training run, optimal output set",
            "lower bound",
            "Where to guess is learned on one half of the scores and tested on the other; strong when "
            "members sit in the middle or in several places.",
            lambda: audit_output_set(
                *scores.split(seed=seed), delta=delta, confidence=confidence, design=design, seed=seed
            ),
        ),
    ]
    if not scores.higher_means_member:
        audits.append(
            _tried(
                "Epsilon*",
                "measurement",
                "How well one threshold on the loss tells this model's training records from others.",
                lambda: epsilon_star(scores.member, scores.nonmember, confidence=confidence),
            )
        )
    audits.append(
        _tried(
            "Error rates with Clopper-Pearson intervals",
            "baseline",
            "The classical audit of many training runs; the scores of one model are not independent runs, "
            "so it is shown for comparison only.",
            lambda: audit_clopper_pearson(scores.oriented(), delta=delta, confidence=confidence, seed=seed),
        )
    )
    return audits


def _tried(title: str, kind: str, purpose: str, audit: Callable[[], AuditResult]) -> ScoreAudit:
    """A side audit that these scores do not allow is reported with its reason, not hidden."""
    try:
        return ScoreAudit(title=title, kind=kind, purpose=purpose, result=audit())
    except ValueError as error:
        return ScoreAudit(title=title, kind=kind, purpose=purpose, result=None, refused=str(error))
