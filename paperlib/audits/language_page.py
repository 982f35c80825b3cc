"""What an audit of a language model says: its numbers as JSON, and as a page."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from paperlib.audits.language import LanguageModelAudit
from paperlib.core import RESULT_SCHEMA_VERSION, ScoreAudit, json_ready, score_measures
from paperlib.io import write_text
from paperlib.report import About, Verdict, audit_report, plain_verdict
from paperlib.report.audit.tables import TableSection


def audits_of(audit: LanguageModelAudit) -> tuple[ScoreAudit, ...]:
    """The lower bound from ranks, and the test of the whole set."""
    return (
        ScoreAudit(
            title=f"Ranks of identifiers by {audit.rank_attack}",
            kind="lower bound",
            purpose="How often the model prefers an identifier to all alternatives from the same source.",
            result=audit.rank_audit,
        ),
        ScoreAudit(
            title="Dataset inference",
            kind="measurement",
            purpose="Was the model trained on this set? All scores together, by a rank test.",
            result=audit.inference,
        ),
    )


def verdict_of(audit: LanguageModelAudit, *, claimed_epsilon: float | None = None) -> Verdict:
    """The verdict in plain words; ``claimed_epsilon`` in nats is what somebody claims, None for no claim."""
    return plain_verdict(audit.rank_audit, claimed_epsilon=claimed_epsilon)


def content_of(audit: LanguageModelAudit) -> dict[str, Any]:
    """The whole audit as JSON-ready values, with every identifier, the best known first."""
    result, audits = audit.rank_audit, audits_of(audit)
    names = ("epsilon", "headline", "claim", "condition", "assumptions", "warnings", "delta", "confidence")
    return json_ready(
        {
            "schema_version": RESULT_SCHEMA_VERSION,
            **{name: getattr(result, name) for name in names},
            "kind": audits[0].kind,
            "design": "candidates",
            "measures": score_measures(audit.pooled, confidence=result.confidence).to_dict(),
            "audits": [one.to_dict() for one in audits],
            "attacks": audit.quality.to_dict("records"),
            "identifiers": audit.table.to_dict("records"),
        }
    )


def write_report(
    path: str | PathLike[str],
    audit: LanguageModelAudit,
    facts: Mapping[str, str],
    *,
    verdict: Verdict | None = None,
    about: About | None = None,
    data: Mapping[str, Any] | None = None,
    count: int = 20,
) -> None:
    """One HTML page with the verdict, the bound, the attacks and the best-known identifiers.

    Args:
        path: The page.
        audit: The audit.
        facts: Where the numbers come from: heading to text.
        verdict: Verdict to show; None for that of `verdict_of`.
        about: The model in its owner's words.
        data: Content of the machine-readable block; None for `content_of`.
        count: Identifiers in the table of the best known, 1 or more.

    Raises:
        OutputError: It cannot be written.
    """
    names, kinds = audit.pooled_names, audit.pooled_kinds
    page = audit_report(
        audit.pooled,
        audits_of(audit),
        title="Privacy audit of a language model",
        facts=facts,
        verdict=verdict or verdict_of(audit),
        measures=score_measures(audit.pooled, confidence=audit.rank_audit.confidence),
        about=about,
        ids=names,
        groups=kinds if len(set(kinds)) > 1 else None,
        data=content_of(audit) if data is None else data,
        more=(_best_known(audit, count), _attacks(audit)),
    )
    write_text(Path(path), page)


def _best_known(audit: LanguageModelAudit, count: int) -> TableSection:
    """The identifiers that stand first among their alternatives."""
    size = audit.scores.values.shape[1]
    rows = [
        (str(row["value"]), str(row["kind"]), f"{row['occurrences']:,}", f"{row['rank']} of {size}",
         f"{row['exposure']:.2f}")
        for row in audit.table.head(count).to_dict("records")
    ]  # fmt: skip
    return TableSection(
        title="Best-known identifiers",
        text=f"The place of each identifier among its {size} candidates by {audit.rank_attack}, and its "
        f"exposure. One in {size} stands first where the model knows nothing: a single first place can be "
        "luck.",
        headings=("Identifier", "Kind", "Occurrences", "Rank", "Exposure (bits)"),
        rows=rows,
    )


def _attacks(audit: LanguageModelAudit) -> TableSection:
    def percent(row: Mapping[Any, Any], name: str) -> str:
        low, high = row[f"{name}_low"], row[f"{name}_high"]
        return f"{100 * row[name]:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"

    return TableSection(
        title="Scores",
        text="How well each score tells identifiers from alternatives: no bounds; 50 % is guessing.",
        headings=("Score", "AUC [interval]", "TPR at 1 % FPR [at this threshold]"),
        rows=[
            (str(row["attack"]), percent(row, "auc"), percent(row, "tpr"))
            for row in audit.quality.to_dict("records")
        ],
    )
