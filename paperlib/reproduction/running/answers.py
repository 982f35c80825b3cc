"""What an audit of one's own data found, kept in the result file of the run, and printed when it
ends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from paperlib.audits.document import Answer
from paperlib.audits.document import answer_of as answer_of
from paperlib.core import AuditResult
from paperlib.io.files import RunResult
from paperlib.report.display import RECORDS_FILE, keep_line

_KEY = "answer"


def record_answer(
    result: AuditResult,
    *,
    about: str,
    warnings: Sequence[str] = (),
    report: str | Path | None = None,
) -> Answer:
    """Keep the answer of an audit, as `answer_of` gives it, in the result file of a run, which
    prints it.

    ``about`` says in words what was audited, ``report`` where its page is.
    """
    answer = answer_of(result, about=about, warnings=warnings, report=report)
    keep_line(RECORDS_FILE, {_KEY: asdict(answer)})
    return answer


def answers_in(result: RunResult) -> list[Answer]:
    """The answers in a result file, in their order."""
    answers: list[Answer] = []
    for record in result.records:
        if _KEY in record:
            fields = record[_KEY]
            answers.append(Answer(**{**fields, "warnings": tuple(fields["warnings"])}))
    return answers


def evidence_records(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The records that are about a table or figure of a paper."""
    return [record for record in records if _KEY not in record]
