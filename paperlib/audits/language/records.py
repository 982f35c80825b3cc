"""Records of text from a file: JSON lines, or plain text with one record a line."""

import gzip
import re
from pathlib import Path
from typing import Any

import pandas as pd

from paperlib.audits.language.chat_templates import ChatTemplate, is_chat
from paperlib.core import did_you_mean
from paperlib.core.reading.tables import decoded, json_row, named, open_source

_JSON = (".jsonl", ".ndjson", ".json")


def read_records(
    path: str,
    *,
    text_field: str = "text",
    id_field: str = "",
    date_field: str = "",
    template: ChatTemplate | None = None,
) -> pd.DataFrame:
    """The records of a file, one row each, with the columns text and name and, where there is one,
    date.

    Args:
        path: JSON lines (.jsonl, .ndjson, .json) or one record a line (.txt), also with .gz.
        text_field, id_field, date_field: Fields of JSON lines. Without names "id" and "date" are
            taken where every record has them; a record without an id is called by file and row. A
            line of a .txt is its own id where one is named.
        template: Writes rows that hold a chat in place of a text; None refuses them.

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
        lines = decoded(source.data).removesuffix("\n").split("\n")
        rows = [
            _row(line.removesuffix("\r"), number, text_field, suffix, template)
            for number, line in enumerate(lines, 1)
        ]
        if suffix == ".txt" and id_field:  # of coins for a list, whose lines are the ids
            rows = [{**row, id_field: row[text_field].strip()} for row in rows]
        columns: dict[str, list[Any]] = {"text": [row[text_field] for row in rows]}
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
    """The values of the field that was named, or of the usual one; None where no record needs it.

    A record without the field that was named is an error; so is one without the usual field where
    others have it and ``partly_is_error``.
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


def chat_documents(corpus: str, template: ChatTemplate) -> list[str] | None:
    """The chats of a file of JSON lines as texts, which are held in memory; None where the first
    line holds no chat, or the corpus is anything else.
    """
    name = corpus.lower()
    if not Path(corpus).is_file() or not name.removesuffix(".gz").endswith(_JSON):
        return None
    opened = gzip.open if name.endswith(".gz") else open
    try:
        with opened(corpus, "rb") as file:
            row = json_row(decoded(file.readline()), 1)
    except (OSError, ValueError):
        return None
    if not is_chat(row, "text"):
        return None
    return read_records(corpus, template=template)["text"].tolist()


def _row(
    line: str, number: int, text_field: str, suffix: str, template: ChatTemplate | None
) -> dict[str, Any]:
    """The record in a line, whose text can be written as UTF-8 and is not empty."""
    row = json_row(line, number) if suffix in _JSON else {text_field: line}
    if template is not None and is_chat(row, text_field):
        row = {**row, text_field: _chat_text(row, number, text_field, template)}
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
    return row


def _chat_text(row: dict[str, Any], number: int, text_field: str, template: ChatTemplate) -> str:
    """The chat of a row as text; an error names the row."""
    try:
        return template.text(row, text_field)
    except ValueError as error:
        raise ValueError(f"row {number} {error}") from error
