"""The facts of an audit that answer a question: fields alone, no sentence."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from paperlib.core.facts import Adjacency, Refusal, RefusalCode, Sided
from paperlib.core.results import ScoreAudit


@dataclass(frozen=True, kw_only=True)
class AuditFacts:
    """What an audit found and under which options, as in the fields of its document.

    Attributes:
        what: What was published: "model" or "release".
        kind: Kind of the main number: "lower bound", "measurement", "test" or "baseline".
        has_result: Whether the main audit was possible.
        refusals: Codes of the reasons why no number is an answer; empty for an answer.
        epsilon, most, claimed_epsilon: Nats; the main number, the largest that so many records
            could have shown, and what somebody claims. None where there is none.
        refuted: Whether the claimed epsilon is; None where that was not judged.
        delta, confidence, sided, adjacency, unit, copies, design, total, guesses, correct, coins,
            plan: As for `AuditResult`.
        is_curve_tested: Whether a whole claimed curve was tested as well.
        is_described: Whether somebody described the model.
    """

    what: str = "model"
    kind: str = "lower bound"
    has_result: bool = True
    refusals: tuple[RefusalCode, ...] = ()
    epsilon: float | None = None
    most: float | None = None
    claimed_epsilon: float | None = None
    refuted: bool | None = None
    delta: float = 0.0
    confidence: float | None = None
    sided: Sided = "one"
    adjacency: Adjacency = ""
    unit: str = ""
    copies: int = 1
    design: str | None = None
    total: int | None = None
    guesses: int | None = None
    correct: int | None = None
    coins: str = ""
    plan: str = ""
    is_curve_tested: bool = False
    is_described: bool = False

    @property
    def bound(self) -> float | None:
        """The main number, nats, where it is a lower bound and an answer; else None."""
        is_answer = self.has_result and not self.refusals and self.kind == "lower bound"
        return self.epsilon if is_answer else None


def facts_of(
    audits: Sequence[ScoreAudit],
    *,
    what: str,
    design: str | None,
    refusals: Sequence[Refusal],
    claimed_epsilon: float | None,
    refuted: bool | None,
    is_described: bool,
) -> AuditFacts:
    """The facts of one or more audits, the main one first; other arguments are the fields of
    `AuditFacts` with these names.
    """
    main = audits[0]
    whole = AuditFacts(
        what=what,
        kind=main.kind,
        has_result=main.result is not None,
        refusals=tuple(refusal.code for refusal in refusals),
        claimed_epsilon=claimed_epsilon,
        refuted=refuted,
        design=design,
        is_curve_tested=any(audit.kind == "test" and audit.result for audit in audits),
        is_described=is_described,
    )
    result = main.result
    if result is None:
        return whole
    return replace(
        whole,
        epsilon=result.epsilon,
        most=result.most,
        delta=result.delta,
        confidence=result.confidence,
        sided=result.sided,
        adjacency=result.adjacency,
        unit=result.unit,
        copies=result.copies,
        total=result.total,
        guesses=result.guesses,
        correct=result.correct,
        coins=result.coins,
        plan=result.plan,
    )
