"""What an audit of one's own data found, kept in the result file of the run, and printed when it ends."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from paperlib.core import AuditResult
from paperlib.io import RunResult
from paperlib.report.display import RECORDS_FILE, keep_line

_KEY = "answer"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The main number of an audit, with what must stand beside it.

    Attributes:
        about: What was audited.
        epsilon: The number, nats; None for a result that is no epsilon.
        headline: The number in words.
        claim: The sentence it supports.
        condition: The assumption that must stand beside it; may be empty.
        warnings: What weakens it.
        report: Path of the HTML report; empty where none was written.
    """

    about: str
    epsilon: float | None
    headline: str
    claim: str
    condition: str = ""
    warnings: tuple[str, ...] = ()
    report: str = ""

    def words(self, where: Path | None = None) -> str:
        """The answer as lines of text; the report's path is seen from the folder ``where``."""
        lines = [self.headline, f"({self.condition})" if self.condition else "", self.claim]
        lines += [f"Warning: {text}" for text in self.warnings]
        shown = [f"  {line}" for line in lines if line]
        if self.report:
            shown.append(f"Report: {(where or Path()) / self.report}")
        return "\n".join([self.about, *shown])

    def __str__(self) -> str:
        return self.words()


def answer_of(
    result: AuditResult, *, about: str, warnings: Sequence[str] = (), report: str | Path | None = None
) -> Answer:
    """The answer that a result gives.

    Args:
        result: Result of the audit.
        about: What was audited.
        warnings: Further warnings, before the result's own.
        report: Path of the HTML report, if there is one.
    """
    return Answer(
        about=about,
        epsilon=result.epsilon,
        headline=result.headline,
        claim=result.claim,
        condition=result.condition,
        warnings=tuple(dict.fromkeys((*warnings, *result.warnings))),
        report=str(report or ""),
    )


def record_answer(
    result: AuditResult, *, about: str, warnings: Sequence[str] = (), report: str | Path | None = None
) -> Answer:
    """Keep the answer of an audit in the result file; the run prints it at its end. Arguments: `answer_of`.

    Outside a run nothing is written.
    """
    answer = answer_of(result, about=about, warnings=warnings, report=report)
    keep_line(RECORDS_FILE, {_KEY: asdict(answer)})
    return answer


def answers_in(result: RunResult) -> list[Answer]:
    """The answers in a result file, in their order."""
    found = [record[_KEY] for record in result.records if _KEY in record]
    return [Answer(**{**one, "warnings": tuple(one["warnings"])}) for one in found]


def evidence_records(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The records that are about a table or figure of a paper."""
    return [record for record in records if _KEY not in record]
