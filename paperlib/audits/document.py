"""One audit as it is shown everywhere: as text, as JSON, as a page, and as a number that a limit
judges.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from paperlib.core import AuditResult, MembershipScores, ScoreAudit
from paperlib.core.facts import Refusal
from paperlib.core.intervals import ScoreMeasures, score_measures
from paperlib.core.options import Questions
from paperlib.core.results import json_ready
from paperlib.io.files import config_hash, file_sha256, write_text
from paperlib.reading.folders import visible_files
from paperlib.report.audit.about import About
from paperlib.report.audit.tables import Names, TableSection
from paperlib.report.provenance import report_conditions
from paperlib.words.audits.questions.facts import facts_of
from paperlib.words.audits.questions.texts import QuestionRow, chosen, question_rows
from paperlib.words.verdict import Verdict, audit_verdict


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A number of an audit, with what must stand beside it."""

    about: str  # what was audited, the first line; "" for none
    epsilon: float | None  # nats; None for a result that is no epsilon
    headline: str  # the number in a sentence
    claim: str  # what is shown, in a sentence
    condition: str = ""  # the assumption that must stand beside the number
    warnings: tuple[str, ...] = ()
    report: str = ""  # path of the HTML report

    def words(self, where: Path | None = None) -> str:
        """The answer as lines of text; the report's path is seen from the folder ``where``."""
        indented = [self.headline]
        if self.condition:
            indented.append(f"({self.condition})")
        indented.append(self.claim)
        indented += [f"Warning: {text}" for text in self.warnings]
        lines = [self.about]
        lines += [f"  {line}" for line in indented if line]
        if self.report:
            lines.append(f"Report: {(where or Path()) / self.report}")
        return "\n".join(lines)

    __str__ = words


def answer_of(
    result: AuditResult,
    *,
    about: str,
    warnings: Sequence[str] = (),
    report: str | Path | None = None,
) -> Answer:
    """The answer that a result gives, to print or to keep in a result file.

    Args:
        result: Its epsilon is in nats, None where it is no epsilon.
        about: What was audited, as the first line of the answer.
        warnings: Further ones; they stand after the result's refusals and before its warnings.
        report: Path of the HTML report, if one is written.
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
    #: heading to where the numbers come from
    facts: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)  #: name of a file to its SHA-256
    about: About = field(default_factory=About)
    claimed_epsilon: float | None = None  #: nats
    ids: Names | None = None
    groups: Names | None = None
    sections: tuple[TableSection, ...] = ()  #: further ones of the page
    more: Mapping[str, Any] = field(default_factory=dict)  #: further or other fields of the JSON
    #: sealed texts of plan and coins, and scores, as for the page
    receipt: Mapping[str, str] | None = None
    questions: tuple[Questions, ...] = ()  #: public texts whose questions the report answers

    def __post_init__(self) -> None:
        object.__setattr__(self, "questions", chosen(self.questions))

    @cached_property
    def measures(self) -> ScoreMeasures:
        """Area under the ROC curve and true-positive rates, at the confidence of the main audit."""
        return score_measures(self.scores, confidence=confidence_of(self.audits[0]))

    @cached_property
    def verdict(self) -> Verdict:
        """What the main number means, in plain words."""
        warnings = list(self.warnings)
        for result in self._answered:
            warnings += result.warnings
        return audit_verdict(
            self.audits[0],
            tuple(warnings),
            self.claimed_epsilon,
            self.what,
            self.refusals,
        )

    @cached_property
    def refusals(self) -> tuple[Refusal, ...]:
        """Why no number of this audit is an answer, each reason once; empty where one is."""
        refusals: list[Refusal] = []
        for result in self._answered:
            refusals += result.refusals
        return tuple(dict.fromkeys(refusals))

    @cached_property
    def question_rows(self) -> tuple[QuestionRow, ...]:
        """What the facts of the audit show of each question of the chosen texts, text by text."""
        facts = facts_of(
            self.audits,
            what=self.what,
            design=self.design,
            refusals=self.refusals,
            claimed_epsilon=self.claimed_epsilon,
            refuted=self.verdict.refuted,
            is_described=self.about != About(),
        )
        rows: list[QuestionRow] = []
        for name in self.questions:
            rows += question_rows(name, facts)
        return tuple(rows)

    @property
    def _answered(self) -> list[AuditResult]:
        """Results of the audits that have an answer."""
        audits = self.audits[: len(self.answers)]
        return [audit.result for audit in audits if audit.result is not None]

    @property
    def further_warnings(self) -> tuple[str, ...]:
        """The warnings of every answer but the reason that the verdict opens with."""
        opening = {refusal.sentence for refusal in self.refusals[:1]}
        return tuple(text for text in self.answer_warnings if text not in opening)

    @cached_property
    def answer_warnings(self) -> tuple[str, ...]:
        """The warnings of every answer, each once."""
        warnings: list[str] = []
        for answer in self.answers:
            warnings += answer.warnings
        return tuple(dict.fromkeys(warnings))

    def judged(self, limit: float | None) -> tuple[Answer, float | None, float | None]:
        """The answer that a limit judges, its number and its ceiling, nats.

        It is the first answer above the limit, or the main one where none is. The number is None
        where the audit is refused or gives none, the ceiling where it is not known.
        """
        main_number, main_ceiling = self.limits[0]
        if self.refusals:
            return self.answers[0], None, main_ceiling
        for answer, (number, ceiling) in zip(self.answers, self.limits, strict=True):
            if limit is not None and number is not None and number > limit:
                return answer, number, ceiling
        return self.answers[0], main_number, main_ceiling

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
        content["design"] = self.design
        content["inputs"] = self.inputs
        content["claimed_epsilon"] = self.claimed_epsilon
        if self.questions:
            content["questions"] = [row.to_dict() for row in self.question_rows]
        return json_ready({**content, **self.more})

    def html(self) -> str:
        """The audit as one page of HTML, which needs no other file to be read."""
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
            questions=self.question_rows,
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
    """Where a report's numbers come from, as heading to text: files, facts, versions and hardware.

    Args:
        files: Heading to the path of a file, which is listed with its SHA-256; "" for none.
        facts: Further headings, with underscores for spaces, to their values.
    """
    lines = {heading: path for heading, path in files.items() if path}
    for name, digest in checksums(lines.values()).items():
        lines[f"SHA-256 of {name}"] = digest
    for name, value in facts.items():
        lines[name.replace("_", " ").capitalize()] = str(value)
    lines.update(report_conditions("paperlib", "numpy", "scipy", "scikit-learn", "torch"))
    return lines


def checksums(paths: Iterable[str]) -> dict[str, str]:
    """Name to SHA-256 (hexadecimal) of each file or folder that exists.

    FILE.py:FUNCTION stands for its file; what does not exist, such as the name of a model, is left
    out.
    """
    sums: dict[str, str] = {}
    for text in filter(None, paths):
        file, colon, _ = text.rpartition(":")
        path = Path(file if colon and file.endswith(".py") else text)
        if path.is_dir():
            sums[Path(text).name] = _folder_checksum(path)
        elif path.exists():
            sums[Path(text).name] = file_sha256(path)
    return sums


def _folder_checksum(folder: Path) -> str:
    """SHA-256 of the names and checksums of a folder's visible files."""
    return config_hash({str(name): file_sha256(folder / name) for name in visible_files(folder)})
