"""Records of text from a file: JSON lines, or plain text with one record a line."""

import re
from typing import Any

import pandas as pd

from paperlib.core import did_you_mean
from paperlib.core.reading.tables import decoded, json_row, named, open_source

_JSON = (".jsonl", ".ndjson", ".json")


def read_records(
    path: str, *, text_field: str = "text", id_field: str = "", date_field: str = ""
) -> pd.DataFrame:
    """The records of a file, one row each, with the columns text and name and, where there is one,
    date.

    Args:
        path: JSON lines (.jsonl, .ndjson, .json) or one record a line (.txt), also with .gz.
        text_field, id_field, date_field: Fields of JSON lines. Without names "id" and "date" are
            taken where every record has them; a record without an id is called by file and row. A
            line of a .txt is its own id where one is named.

    Raises:
        ValueError: Another kind of file, a row without text, or a field that was named and is
            missing.

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
            _row(line.removesuffix("\r"), at, text_field, suffix)
            for at, line in enumerate(lines, 1)
        ]
        if suffix == ".txt" and id_field:  # of coins for a list, whose lines are the ids
            rows = [{**row, id_field: row[text_field].strip()} for row in rows]
        columns: dict[str, list[Any]] = {"text": [row[text_field] for row in rows]}
        for name, field, usual in (("name", id_field, "id"), ("date", date_field, "date")):
            values = [row.get(field or usual) for row in rows]
            if None not in values:
                columns[name] = values
            elif field or (name == "date" and {*values} != {None}):
                at, field = values.index(None) + 1, field or usual
                known = [] if field in rows[at - 1] else list(rows[at - 1])
                raise ValueError(f"row {at} has no {field!r}{did_you_mean(field, known)}")
        names = columns.get("name", [f"{path} row {at}" for at in range(1, len(rows) + 1)])
    return pd.DataFrame({**columns, "name": [str(one) for one in names]})


def _row(line: str, at: int, text_field: str, suffix: str) -> dict[str, Any]:
    row = json_row(line, at) if suffix in _JSON else {text_field: line}
    if not isinstance(row.get(text_field), str):
        raise ValueError(
            f"row {at} has no text {text_field!r}, only {[*row]}; name one with --text-field"
        )
    if re.search("[\ud800-\udfff]", row[text_field]):
        raise ValueError(f"row {at} holds half of a character, such as a cut emoji; drop that half")
    if not row[text_field].strip():
        raise ValueError(f"row {at} has an empty text; leave it out")
    return row
