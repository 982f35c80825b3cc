"""Every audit that a file of membership scores allows, each with what it can and cannot say."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pandas as pd

from paperlib.bounds import (
    audit_clopper_pearson,
    audit_one_run,
    audit_output_set,
    epsilon_star,
    game_spread,
)
from paperlib.core import AuditResult, Design, Guess, MembershipScores, ScoreAudit, table


@dataclass(frozen=True, eq=False)
class Audits:
    """All audits of one set of scores, the main one first.

    Each number holds at its own confidence. The main audit was chosen before looking; no claim covers the
    largest of several numbers chosen afterwards.

    Attributes:
        scores: The audited scores.
        audits: One or more audits; the first one has a result.
    """

    scores: MembershipScores
    audits: tuple[ScoreAudit, ...]

    @property
    def headline(self) -> AuditResult:
        """Result of the main audit."""
        result = self.audits[0].result
        assert result is not None, "audit_scores raises where the main audit is not possible"
        return result

    def __iter__(self) -> Iterator[ScoreAudit]:
        return iter(self.audits)

    def __len__(self) -> int:
        return len(self.audits)

    def __str__(self) -> str:
        return "\n\n".join(str(audit) for audit in self.audits)

    def _repr_html_(self) -> str:
        return self.headline._repr_html_() + self.to_frame().to_html(index=False)

    def to_frame(self) -> pd.DataFrame:
        """One row per audit: audit, kind, epsilon (nats) and note (purpose, or why not possible)."""
        return table(
            {
                "audit": [one.title for one in self.audits],
                "kind": [one.kind for one in self.audits],
                "epsilon": [one.result.epsilon if one.result else None for one in self.audits],
                "note": [
                    one.purpose if one.result else f"not possible: {one.refused}" for one in self.audits
                ],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values: ``audits``, a list with one entry per audit."""
        return {"audits": [audit.to_dict() for audit in self.audits]}


def audit_scores(
    scores: MembershipScores,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    guess: Guess = "adaptive",
    design: Design = "randomized",
    seed: int = 0,
) -> Audits:
    """Run every score-based audit of one set of scores.

    Each number holds at its own confidence. The first one is the answer to "how much does this
    training leak at least?"; no claim covers the largest number, chosen after looking.

    Args:
        scores: Scores or losses of members and non-members of one trained model.
        delta: Delta of the (epsilon, delta)-DP that the lower bounds test, in [0, 1).
        confidence: Confidence level of every number, in (0, 1).
        guess: Guesses of the one-run audit, as in `audit_one_run`.
        design: "randomized" if fair coins decided membership before training; "game" draws a
            fair-coin subsample, and the notes say what ten other draws give; "played" if fair coins
            decided after training who is shown.
        seed: Seed of every random split, 0 or more.

    Returns:
        The audits, the main one first. Epsilon* needs losses and is left out for scores.

    Raises:
        ValueError: The main audit is not possible: its message says what to do.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> scores = MembershipScores(rng.normal(3, 1, 500), rng.normal(0, 1, 500))
    >>> audits = audit_scores(scores)
    >>> [audit.kind for audit in audits]
    ['lower bound', 'lower bound', 'baseline']
    >>> print(audits.headline.headline)
    ε ≥ 4.161 (δ = 0, confidence 0.95; 430 of 431 guesses right, 1000 examples)

    """
    audit = partial(audit_one_run, scores, delta=delta, confidence=confidence, guess=guess)
    main = audit(design=design, seed=seed)
    if design == "game":
        main = replace(main, notes=(*main.notes, f"{game_spread(audit, seed=seed)}."))
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
                lambda: epsilon_star(scores.member, scores.nonmember, confidence=confidence).trusted,
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
    return Audits(scores, tuple(audits))


def _tried(title: str, kind: str, purpose: str, audit: Callable[[], AuditResult]) -> ScoreAudit:
    """A side audit that these scores do not allow is reported with its reason, not hidden."""
    try:
        return ScoreAudit(title=title, kind=kind, purpose=purpose, result=audit())
    except ValueError as error:
        return ScoreAudit(title=title, kind=kind, purpose=purpose, result=None, refused=str(error))
