"""Records of text from a file: JSON lines, or plain text with one record a line."""

import gzip
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from paperlib.attacks.language.completions import LearnedText
from paperlib.audits.language.chat_templates import ChatTemplate, On, is_chat
from paperlib.core.checks import did_you_mean
from paperlib.core.record_columns import OF_TEXTS, check_columns
from paperlib.reading.limits import TEXT_BYTES, read_limit
from paperlib.reading.tables import check_json, decoded, json_row, named, open_source

_JSON = (".jsonl", ".ndjson", ".json")
_CHAT_FIELDS = ("messages", "conversations", "prompt", "completion")


def read_records(
    path: str,
    *,
    text_field: str = "text",
    id_field: str = "",
    date_field: str = "",
    template: ChatTemplate | None = None,
    on: On = "all",
) -> pd.DataFrame:
    """The records of a file, one row each, with the columns text and name and, where there is one,
    date; on completions also learned, the text with what training took its loss from. The column
    fields has what else stands beside each text, by field: single values, but for chats.

    Args:
        path: JSON lines (.jsonl, .ndjson, .json) or one record a line (.txt), also with .gz.
        text_field, id_field, date_field: Fields of JSON lines. Without names "id" and "date" are
            taken where every record has them; a record without an id is called by file and row. A
            line of a .txt is its own id where one is named.
        template: Writes rows that hold a chat in place of a text; None refuses them.
        on: What training took its loss from; "completions" takes chats alone, and needs a template.

    Raises:
        ValueError: Another kind of file, a row without text, a chat that cannot be written, or a
            field that was named and is missing.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "notes.txt"
    >>> _ = path.write_text("first\\nsecond\\n")
    >>> read_records(str(path))["text"].tolist()
    ['first', 'second']
    """
    source = open_source(path)
    with named(source):
        suffix = "." + source.name.lower().removesuffix(".gz").rpartition(".")[2]
        if suffix not in (*_JSON, ".txt"):
            raise ValueError(f"expected a file ending in {', '.join(_JSON)} or .txt, also with .gz")
        text = decoded(source.data).removesuffix("\n")
        if suffix in _JSON:
            check_json(text)
        lines = text.split("\n")
        rows: list[dict[str, Any]] = []
        learned: list[LearnedText | None] = []
        beside: list[dict[str, Any]] = []
        for number, line in enumerate(lines, 1):
            row = _row(line.removesuffix("\r"), number, text_field, suffix)
            beside.append(_single_values(row, text_field))
            row, learned_text = _written(row, number, text_field, template, on)
            _check_text(row, number, text_field)
            rows.append(row)
            learned.append(learned_text)
        if suffix == ".txt" and id_field:  # of coins for a list, whose lines are the ids
            rows = [{**row, id_field: row[text_field].strip()} for row in rows]
        columns: dict[str, list[Any]] = {"text": [row[text_field] for row in rows]}
        columns["fields"] = beside
        if on == "completions":
            columns["learned"] = learned
        names = _field(rows, id_field, "id", partly_is_error=False)
        dates = _field(rows, date_field, "date", partly_is_error=True)
        if names is not None:
            columns["name"] = list(map(str, names))
        if dates is not None:
            columns["date"] = dates
        columns.setdefault("name", [f"{path} row {number}" for number in range(1, len(rows) + 1)])
    return pd.DataFrame(columns)


def _field(
    rows: list[dict[str, Any]], named_field: str, usual: str, *, partly_is_error: bool
) -> list[Any] | None:
    """The values of a field, one for each record; None where none was named and no record, or not
    every one, has the usual field.

    Args:
        named_field: The field that somebody named; "" for the usual one.
        partly_is_error: Whether it is an error that some records have the usual field and some do
            not.

    Raises:
        ValueError: A record without the field that was named, or such a usual one; it names the
            row, from 1.
    """
    field = named_field or usual
    values = [row.get(field) for row in rows]
    if None not in values:
        return values
    if not named_field and (not partly_is_error or {*values} == {None}):
        return None
    row = values.index(None)
    fields = [] if field in rows[row] else list(rows[row])
    raise ValueError(f"row {row + 1} has no {field!r}{did_you_mean(field, fields)}")


def chat_documents(
    corpus: str, template: ChatTemplate, *, on: On = "all"
) -> list[str] | list[LearnedText] | None:
    """The chats of a file of JSON lines as texts, which are held in memory, on completions with
    what training took its loss from; None where the first line holds no chat, or ``corpus`` is not
    the path of such a file.

    Raises:
        ValueError: A chat that the template cannot write, or a row without one.
    """
    name = corpus.lower()
    if not Path(corpus).is_file() or not name.removesuffix(".gz").endswith(_JSON):
        return None
    opened = gzip.open if name.endswith(".gz") else open
    try:
        with opened(corpus, "rb") as file:
            row = json_row(decoded(file.readline(read_limit() // TEXT_BYTES)), 1)
    except (OSError, ValueError):
        return None
    if not is_chat(row, "text"):
        return None
    records = read_records(corpus, template=template, on=on)
    return records["text" if on == "all" else "learned"].tolist()


def check_fields(
    members: pd.DataFrame, nonmembers: pd.DataFrame, *, groups: Sequence[str] = ()
) -> None:
    """Refuse (ValueError) a field beside the texts that names authors, or other units, of several
    texts, or texts of both sides.

    Args:
        members, nonmembers: Records of `read_records`.
        groups: Fields of which each text is a record of its own.
    """
    rows = pd.concat([members, nonmembers], ignore_index=True)
    named: dict[str, None] = {}
    for row in rows["fields"]:
        named |= dict.fromkeys(row)
    lengths = "length of the text"  # authors differ in it
    columns: dict[str, list[Any]] = {lengths: rows["text"].str.len().tolist()}
    for field in named:
        cells = [row.get(field) for row in rows["fields"]]
        if cells != rows["name"].tolist():
            columns[field] = cells
    member = np.arange(len(rows)) < len(members)
    check_columns(columns, member, groups=[lengths, *groups], ways=OF_TEXTS)


def _row(line: str, number: int, text_field: str, suffix: str) -> dict[str, Any]:
    """The record in a line, by field: the JSON of a row, or the line itself as ``text_field``.

    ``number`` is that of the row, from 1, for errors; a ``suffix`` such as ".jsonl" says what the
    line is.
    """
    return json_row(line, number) if suffix in _JSON else {text_field: line}


def _single_values(row: Mapping[str, Any], text_field: str) -> dict[str, Any]:
    """The fields of a record that hold single values and no text of a chat."""
    fields: dict[str, Any] = {}
    for field, value in row.items():
        is_text = field in (text_field, *_CHAT_FIELDS)
        if isinstance(value, str | int | float) and not is_text:
            fields[field] = value
    return fields


def _written(
    row: dict[str, Any], number: int, text_field: str, template: ChatTemplate | None, on: On
) -> tuple[dict[str, Any], LearnedText | None]:
    """A record with its chat, if it holds one, as text in ``text_field``; and on completions that
    text with what training took its loss from, else None. Without a template it stays as it is.

    Raises:
        ValueError: A chat that cannot be written; it names the row, ``number`` from 1.
    """
    if template is None:
        return row, None
    try:
        if on == "completions":
            chat = dict(row)
            if isinstance(row.get(text_field), str):
                del chat[text_field]  # a text beside a chat says nothing of its turns
            learned = template.learned(chat, text_field)
            return {**row, text_field: learned.text}, learned
        if is_chat(row, text_field):
            return {**row, text_field: template.text(row, text_field)}, None
    except ValueError as error:
        raise ValueError(f"row {number} {error}") from error
    return row, None


def _check_text(row: dict[str, Any], number: int, text_field: str) -> None:
    """Refuse (ValueError) a record, row ``number`` from 1, without text in ``text_field``, and one
    whose text is empty or cannot be written as UTF-8.
    """
    if not isinstance(row.get(text_field), str):
        raise ValueError(
            f"row {number} has no text {text_field!r}, only {[*row]}; name one with --text-field"
        )
    if re.search("[\ud800-\udfff]", row[text_field]):
        raise ValueError(
            f"row {number} holds half of a character, such as a cut emoji; drop that half"
        )
    if not row[text_field].strip():
        raise ValueError(f"row {number} has an empty text; leave it out")
