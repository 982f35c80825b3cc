"""The texts whose questions a report can answer, and the rows of that answer.

Each text is a file of this folder: which version was read and how, and for each question its place
in the text, the question in our words, the name of a rule, what no audit of this kind shows, and
what else is needed.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

from paperlib.core.checks import check_choice
from paperlib.core.options import Questions
from paperlib.words.audits.questions.facts import AuditFacts
from paperlib.words.audits.questions.rules import NOTHING, RULES

HEADINGS = ("Question", "What this audit shows", "What it cannot show", "What is missing")
NO_ADVICE = (
    "The questions are in our words, their places those of the text. This is no legal advice, and "
    "no row says that a duty is met: an audit shows that a leak is at least so large, never that "
    "there is none."
)


@dataclass(frozen=True)
class Question:
    """One question of a text.

    Attributes:
        place: Where it stands in the text.
        asks: The question, in our words.
        rule: Name of the rule that says what an audit shows of it.
        cannot: What no audit of this kind shows.
        needs: What else an answer needs; "" for nothing that is always missing.
    """

    place: str
    asks: str
    rule: str
    cannot: str
    needs: str = ""


@dataclass(frozen=True, kw_only=True)
class QuestionText:
    """A public text with its questions.

    Attributes:
        name: As the option calls it.
        title, version, address: The text, the version that was read, and where it is published.
        read: The day on which it was read, and from what.
    """

    name: str
    title: str
    version: str
    address: str
    read: str
    questions: tuple[Question, ...]


@dataclass(frozen=True, kw_only=True)
class QuestionRow:
    """A question, and what an audit shows of it, cannot show and lacks; every field is text."""

    text: str
    place: str
    question: str
    shows: str
    cannot_show: str
    missing: str

    def to_dict(self) -> dict[str, str]:
        """Every field by its name."""
        return asdict(self)


def heading(text: QuestionText) -> str:
    """What the section of a report is called that answers a text."""
    return f"Questions of {text.title}"


def chosen(names: "Iterable[str] | str") -> tuple[Questions, ...]:
    """The names of texts, each once, in their order; one name may stand alone.

    Raises:
        ValueError: A name of no text.
    """
    listed = (names,) if isinstance(names, str) else tuple(names)
    for name in listed:
        check_choice("questions", name, get_args(Questions))
    return tuple(dict.fromkeys(listed))  # pyright: ignore[reportReturnType]


@cache
def question_text(name: str) -> QuestionText:
    """The text of this name, from its file."""
    path = Path(__file__).with_name(f"{name}.json")
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    questions = tuple(Question(**question) for question in content.pop("questions"))
    return QuestionText(name=name, questions=questions, **content)


def question_rows(name: Questions, facts: AuditFacts) -> tuple[QuestionRow, ...]:
    """One row for each question of the text ``name``, in the order of the text, with what an audit
    of these facts shows of it; `NOTHING` stands where nothing is missing.
    """
    rows: list[QuestionRow] = []
    for question in question_text(name).questions:
        shown = RULES[question.rule](facts)
        lacks = [lack for lack in (shown.missing, question.needs) if lack not in ("", NOTHING)]
        rows.append(
            QuestionRow(
                text=name,
                place=question.place,
                question=question.asks,
                shows=shown.shows,
                cannot_show=question.cannot,
                missing=" ".join(lacks) or NOTHING,
            )
        )
    return tuple(rows)
