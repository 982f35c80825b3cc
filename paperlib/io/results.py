"""Result files: what one run of one notebook found, and under which conditions."""

import json
from dataclasses import dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import Any

from paperlib.io.files import write_json

SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The content of a result file.

    Attributes:
        records: One mapping per paper table or figure: its evidence and scale, as `record` keeps them.
        data: Names of the CSVs written beside it.
        provenance: Date, commit, versions, hardware, wall time, checksums.
    """

    notebook: str
    profile: str
    parameters: dict[str, Any] = field(default_factory=dict)
    records: list[dict[str, Any]] = field(default_factory=list)
    data: list[str] = field(default_factory=list)
    provenance: dict[str, Any] = field(default_factory=dict)


def write_result(path: str | PathLike[str], result: RunResult) -> None:
    """Write a result file in one piece, or not at all with an OutputError."""
    write_json(path, {"schema": SCHEMA, **vars(result)})


def read_result(path: str | PathLike[str]) -> RunResult:
    """Read a result file; a ValueError for other text, another schema and a missing key."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not a result file ({error})") from None
    schema = content.get("schema") if isinstance(content, dict) else None
    if schema != SCHEMA:
        raise ValueError(f"{path}: expected a result file of schema {SCHEMA}, got {schema!r}")
    keys = [field.name for field in fields(RunResult)]
    if missing := [key for key in keys if key not in content]:
        raise ValueError(f"{path}: the result file lacks {', '.join(missing)}")
    return RunResult(**{key: content[key] for key in keys})
