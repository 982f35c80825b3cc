"""The tables of a report that answer the questions of public texts."""

from collections.abc import Sequence
from itertools import groupby

from paperlib.report.audit.tables import TableSection
from paperlib.words.audits.questions.texts import (
    HEADINGS,
    NO_ADVICE,
    QuestionRow,
    heading,
    question_text,
)


def questions_sections(rows: Sequence[QuestionRow]) -> list[TableSection]:
    """A table for each text whose questions are among ``rows``, which stand text by text."""
    sections: list[TableSection] = []
    for name, of_text in groupby(rows, key=lambda row: row.text):
        text = question_text(name)
        sections.append(
            TableSection(
                title=heading(text),
                text=NO_ADVICE,
                remark=f"{text.version}: {text.address}",
                headings=HEADINGS,
                rows=[
                    (f"{row.place}: {row.question}", row.shows, row.cannot_show, row.missing)
                    for row in of_text
                ],
                wide=True,
                note=text.read,
            )
        )
    return sections
