"""Records of text from a file: JSON lines, or plain text with one record a line."""

import json
from typing import Any

import pandas as pd

from paperlib.core import did_you_mean
from paperlib.core.reading.tables import decoded, named, open_source

_JSON, _PLAIN = (".jsonl", ".ndjson", ".json"), (".txt", ".text")


def read_records(
    path: str, *, text_field: str = "text", id_field: str = "", date_field: str = ""
) -> pd.DataFrame:
    """The records of a file, one row each, with the columns text and name and, where there is one, date.

    Args:
        path: File that ends in .jsonl, .ndjson or .json, one object a line, or in .txt, one record a line,
            also with .gz.
        text_field, id_field, date_field: Fields of JSON lines. Without names "id" and "date" are taken where
            every record has them; a record without an id is called by file and row.

    Raises:
        ValueError: Another kind of file, a row without text, or a field that was named and is missing.
        FileNotFoundError: There is no such file.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "notes.txt"
    >>> _ = path.write_text("first\\nsecond\\n")
    >>> read_records(str(path)).to_dict("list")
    {'text': ['first', 'second'], 'name': ['notes.txt row 1', 'notes.txt row 2']}
    """
    source = open_source(path)
    with named(source):
        suffix = "." + source.name.lower().removesuffix(".gz").rpartition(".")[2]
        if suffix not in (*_JSON, *_PLAIN):
            raise ValueError(f"expected a file ending in {', '.join((*_JSON, *_PLAIN))}, also with .gz")
        lines = decoded(source.data).removesuffix("\n").split("\n")
        rows = [_row(line.removesuffix("\r"), at, text_field, suffix) for at, line in enumerate(lines, 1)]
        columns: dict[str, list[Any]] = {"text": [row[text_field] for row in rows]}
        for name, field, usual in (("name", id_field, "id"), ("date", date_field, "date")):
            values = [row.get(field or usual) for row in rows]
            if None not in values:
                columns[name] = values
            elif field:
                at = values.index(None) + 1
                raise ValueError(f"row {at} has no {field!r}{did_you_mean(field, list(rows[at - 1]))}")
        names = columns.get("name", [f"{source.name} row {at}" for at in range(1, len(rows) + 1)])
    return pd.DataFrame({**columns, "name": [str(one) for one in names]})


def _row(line: str, at: int, text_field: str, suffix: str) -> dict[str, Any]:
    row: Any = {text_field: line}
    if suffix in _JSON:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"row {at} is not JSON: {error}; write one object a line") from None
    if not isinstance(row, dict) or not isinstance(row.get(text_field), str):
        fields = f"; its fields are {', '.join(map(repr, row))}" if isinstance(row, dict) else ""
        raise ValueError(
            f"row {at} has no text in the field {text_field!r}{fields}; name it with --text-field"
        )
    if not row[text_field].strip():
        raise ValueError(f"row {at} has an empty text; leave it out")
    return row
