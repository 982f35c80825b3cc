"""What an audit of your own data says: its numbers as JSON, as a page, and as one number for a gate."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

from paperlib.audits.panoramia.brought import PanoramiaAudit
from paperlib.audits.panoramia.yours.null import LIMIT
from paperlib.core import RESULT_SCHEMA_VERSION, ScoreAudit, json_ready, score_measures
from paperlib.io import write_text
from paperlib.report import About, Verdict, audit_report, plain_verdict


def audits_of(audit: PanoramiaAudit) -> tuple[ScoreAudit, ...]:
    """The numbers of an audit, the main one first: a lower bound where there is one, else the measurement."""
    own = ScoreAudit(
        title="PANORAMIA, generated non-members",
        kind="measurement" if audit.result.epsilon is None else "lower bound",
        purpose="Known members against generated points.",
        result=audit.result,
    )
    if audit.real is None:
        return (own,)
    real = ScoreAudit(
        title="Real non-members (RM;RN)",
        kind="lower bound",
        purpose="The same attack on real examples the model was not trained on.",
        result=audit.real,
    )
    return (real, own) if audit.result.epsilon is None else (own, real)


def verdict_of(audit: PanoramiaAudit, *, claimed_epsilon: float | None = None) -> Verdict:
    """The verdict in plain words: of the lower bound, if there is one, else of the measurement.

    Args:
        audit: The audit.
        claimed_epsilon: Epsilon that somebody claims for the training, nats; None for no claim.
    """
    main = audits_of(audit)[0]
    return plain_verdict(
        main.result or audit.result,
        claimed_epsilon=claimed_epsilon,
        warnings=audit.result.warnings,
        kind=main.kind,
    )


def content_of(audit: PanoramiaAudit) -> dict[str, Any]:
    """The whole audit as JSON-ready values.

    ``epsilon`` and what stands beside it are those of the main number, and null where that is a measurement;
    ``epsilon_tilde`` is PANORAMIA's measurement.
    """
    audits = audits_of(audit)
    result = audits[0].result or audit.result
    null = None if audit.null is None else {**asdict(audit.null), "passes": audit.null.passes}
    names = ("epsilon", "headline", "claim", "condition", "assumptions", "warnings")
    return json_ready(
        {
            "schema_version": RESULT_SCHEMA_VERSION,
            **{name: getattr(result, name) for name in names},
            "epsilon_tilde": audit.result.epsilon_tilde,
            "delta": audit.result.delta,
            "confidence": audit.result.confidence,
            "kind": audits[0].kind,
            "design": "game",
            "null": null,
            "measures": score_measures(audit.scores, confidence=audit.result.confidence).to_dict(),
            "audits": [one.to_dict() for one in audits],
        }
    )


def write_report(
    path: str | PathLike[str],
    audit: PanoramiaAudit,
    facts: Mapping[str, str],
    *,
    verdict: Verdict | None = None,
    about: About | None = None,
    data: Mapping[str, Any] | None = None,
    warnings: Sequence[str] = (),
) -> None:
    """One HTML page with the verdict, the numbers, their sentences, their assumptions and figures.

    Args:
        path: The page.
        audit: The audit.
        facts: Where the numbers come from: heading to text.
        verdict: Verdict to show; None for that of `verdict_of`.
        about: The model in its owner's words.
        data: Content of the machine-readable block; None for `content_of`.
        warnings: Further warnings.

    Raises:
        OutputError: It cannot be written.
    """
    page = audit_report(
        audit.scores,
        audits_of(audit),
        title="Privacy audit with generated non-members",
        facts=facts,
        verdict=verdict or verdict_of(audit),
        measures=score_measures(audit.scores, confidence=audit.result.confidence),
        about=about,
        data=content_of(audit) if data is None else data,
        warnings=warnings,
    )
    write_text(Path(path), page)


def gate_numbers(audit: PanoramiaAudit) -> list[tuple[float | None, float]]:
    """For each number of `audits_of`: what a limit on epsilon judges, and the most that could be shown, nats.

    A lower bound is judged, or a measurement; None where the null shows the attack to be weaker than the
    baseline, so that a small measurement means nothing.
    """
    result, null = audit.result, audit.null
    weak = null is not None and not null.passes and null.mean < -LIMIT
    measured = None if weak else result.epsilon_tilde
    most = result.ceiling - (result.c_lb if result.known_c is None else result.known_c)
    own = (measured if result.epsilon is None else result.epsilon, max(0.0, most))
    real = [] if audit.real is None else [(audit.real.epsilon, audit.real.ceiling)]
    return [*real, own] if result.epsilon is None else [own, *real]
