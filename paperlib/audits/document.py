"""One audit as it is shown everywhere: as text, as JSON, as a page, and as a number that a limit
judges.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from paperlib.core import (
    AuditResult,
    MembershipScores,
    ScoreAudit,
    ScoreMeasures,
    json_ready,
    score_measures,
)
from paperlib.core.facts import Refusal
from paperlib.io.files import config_hash, file_sha256, visible_files, write_text
from paperlib.report.audit.about import About
from paperlib.report.audit.tables import Names, TableSection
from paperlib.report.provenance import report_conditions
from paperlib.words.verdict import Verdict, audit_verdict


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A number of an audit, with what must stand beside it."""

    about: str  # what was audited
    epsilon: float | None  # nats; None for a result that is no epsilon
    headline: str
    claim: str
    condition: str = ""
    warnings: tuple[str, ...] = ()
    report: str = ""  # path of the HTML report

    def words(self, where: Path | None = None) -> str:
        """The answer as lines of text; the report's path is seen from the folder ``where``."""
        lines = [self.headline, f"({self.condition})" if self.condition else "", self.claim]
        lines += [f"Warning: {text}" for text in self.warnings]
        shown = [f"  {line}" for line in lines if line]
        if self.report:
            shown.append(f"Report: {(where or Path()) / self.report}")
        return "\n".join([self.about, *shown])

    __str__ = words


def answer_of(
    result: AuditResult,
    *,
    about: str,
    warnings: Sequence[str] = (),
    report: str | Path | None = None,
) -> Answer:
    """The answer that a result gives: its refusals first, further ``warnings``, then its own;
    ``report`` is an HTML file.
    """
    refused = [refusal.sentence for refusal in result.refusals]
    return Answer(
        about=about,
        epsilon=result.epsilon,
        headline=result.headline,
        claim=result.claim,
        condition=result.condition,
        warnings=tuple(dict.fromkeys((*refused, *warnings, *result.warnings))),
        report=str(report or ""),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditDocument:
    """An audit with its verdict and its provenance."""

    title: str = "Privacy audit"
    what: str = "model"  #: that was published, as the verdict calls it
    scores: MembershipScores
    audits: tuple[ScoreAudit, ...]  #: one or more, the main one first
    answers: tuple[Answer, ...]  #: to the question of the audit, that of the main one first
    #: For each answer what a limit on epsilon judges (None for no answer) and the largest epsilon
    #: that could have been shown (None where it is not known), nats.
    limits: tuple[tuple[float | None, float | None], ...]
    design: str | None  #: where coins were tossed, as in ``result.schema.json``
    warnings: tuple[str, ...] = ()  #: of the whole audit, beside those of the main result
    facts: Mapping[str, str] = field(
        default_factory=dict
    )  #: heading to where the numbers come from
    inputs: Mapping[str, str] = field(default_factory=dict)  #: name of a file to its SHA-256
    about: About = field(default_factory=About)
    claimed_epsilon: float | None = None  #: nats
    ids: Names | None = None
    groups: Names | None = None
    sections: tuple[TableSection, ...] = ()  #: further ones of the page
    more: Mapping[str, Any] = field(default_factory=dict)  #: further or other fields of the JSON
    receipt: Mapping[str, str] | None = (
        None  #: sealed texts of plan and coins, and scores, as for the page
    )

    @cached_property
    def measures(self) -> ScoreMeasures:
        """Area under the ROC curve and true-positive rates, at the confidence of the main audit."""
        return score_measures(self.scores, confidence=confidence_of(self.audits[0]))

    @cached_property
    def verdict(self) -> Verdict:
        """What the main number means, in plain words."""
        results = [audit.result for audit in self.audits[: len(self.answers)] if audit.result]
        own = [text for result in results for text in result.warnings]
        return audit_verdict(
            self.audits[0],
            (*self.warnings, *own),
            self.claimed_epsilon,
            self.what,
            self.refusals,
        )

    @cached_property
    def refusals(self) -> tuple[Refusal, ...]:
        """Why no number of this audit is an answer, each reason once; empty where one is."""
        results = [audit.result for audit in self.audits[: len(self.answers)] if audit.result]
        return tuple(dict.fromkeys(reason for result in results for reason in result.refusals))

    @property
    def further_warnings(self) -> tuple[str, ...]:
        """The warnings of every answer but the reason that the verdict opens with."""
        opening = {refusal.sentence for refusal in self.refusals[:1]}
        return tuple(text for text in self.answer_warnings if text not in opening)

    @cached_property
    def answer_warnings(self) -> tuple[str, ...]:
        """The warnings of every answer, each once."""
        return tuple(dict.fromkeys(text for one in self.answers for text in one.warnings))

    def judged(self, limit: float | None) -> tuple[Answer, float | None, float | None]:
        """The answer that a limit judges (the first above it, or the main one), its number, its
        ceiling.
        """
        if self.refusals:
            return self.answers[0], None, self.limits[0][1]
        numbers = [(answer, *pair) for answer, pair in zip(self.answers, self.limits, strict=True)]
        above = [
            one for one in numbers if limit is not None and one[1] is not None and one[1] > limit
        ]
        return (above or numbers)[0]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values, as ``result.schema.json`` describes them."""
        from paperlib.report.audit.page import audit_content

        content = audit_content(
            self.audits,
            self.verdict,
            self.measures,
            self.about,
            self.answer_warnings,
            self.facts,
            self.refusals,
        )
        own = {
            "design": self.design,
            "inputs": self.inputs,
            "claimed_epsilon": self.claimed_epsilon,
        }
        return json_ready({**content, **own, **self.more})

    def html(self) -> str:
        """One page that needs nothing else to be read."""
        from paperlib.report import audit_report

        return audit_report(
            self.scores,
            self.audits,
            title=self.title,
            facts=self.facts,
            verdict=self.verdict,
            measures=self.measures,
            about=self.about,
            ids=self.ids,
            groups=self.groups,
            data=self.to_dict(),
            warnings=self.warnings,
            refusals=self.refusals,
            more=self.sections,
            receipt=self.receipt,
        )

    def write(self, path: str | PathLike[str]) -> None:
        """Write the page, else an `OutputError`."""
        write_text(Path(path), self.html())


def confidence_of(audit: ScoreAudit) -> float:
    """The confidence of an audit's result; 0.95 where it has none."""
    if audit.result is None or audit.result.confidence is None:
        return 0.95
    return audit.result.confidence


def report_facts(files: Mapping[str, str], **facts: object) -> dict[str, str]:
    """Where a report's numbers come from: the files with their checksums, date, versions and
    hardware.
    """
    named = {name: path for name, path in files.items() if path}
    return {
        **named,
        **{f"SHA-256 of {name}": digest for name, digest in checksums(named.values()).items()},
        **{name.replace("_", " ").capitalize(): str(value) for name, value in facts.items()},
        **report_conditions("paperlib", "numpy", "scipy", "scikit-learn", "torch"),
    }


def checksums(paths: Iterable[str]) -> dict[str, str]:
    """Name to SHA-256 of each file or folder; FILE.py:FUNCTION stands for its file, others are left
    out.
    """
    sums: dict[str, str] = {}
    for path in filter(None, paths):
        file, colon, _ = path.rpartition(":")
        place = Path(file if colon and file.endswith(".py") else path)
        if place.is_dir():
            sums[Path(path).name] = config_hash(
                {str(one): file_sha256(place / one) for one in visible_files(place)}
            )
        elif place.exists():
            sums[Path(path).name] = file_sha256(place)
    return sums
