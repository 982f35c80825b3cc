"""What the finished units of a sweep say: a table with one row each, and outcomes by setting."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paperlib.io import RunResult
from paperlib.running.book import outcomes, pooled_outcomes
from paperlib.running.sweep import Unit


def write_table(path: Path, units: Sequence[Unit], errors: Mapping[Unit, str]) -> None:
    """Write a CSV with one row per unit: parameters, state, seconds, error, folder, and outcomes by itself.

    Args:
        path: The CSV.
        units: All units of the sweep.
        errors: Failed unit to its error.

    Raises:
        OutputError: It cannot be written.
    """
    import pandas as pd

    from paperlib.io import write_text

    write_text(path, pd.DataFrame([_row(unit, errors.get(unit, "")) for unit in units]).to_csv(index=False))


def _row(unit: Unit, error: str) -> dict[str, Any]:
    result = unit.result()
    state = "failed" if error else "not yet" if result is None else "finished"
    seconds = None if result is None else result.provenance["seconds"]
    values = {name: _cell(value) for name, value in unit.parameters.items()}
    said = {} if result is None else outcomes(result)
    return {**values, "state": state, "seconds": seconds, "error": error, "folder": unit.mark, **said}


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value


def pooled_by_setting(units: Sequence[Unit]) -> dict[str, tuple[int, dict[str, str]]]:
    """Setting, in words, to the number of its finished seeds and the pooled outcome of each target.

    Units of one setting differ in the seed alone.
    """
    groups: dict[str, list[RunResult]] = {}
    for unit in units:
        found = groups.setdefault(setting(unit), [])
        if (result := unit.result()) is not None:
            found.append(result)
    return {words: (len(results), pooled_outcomes(results)) for words, results in groups.items()}


def setting(unit: Unit) -> str:
    """Values of the parameters that a sweep was given, but the seed, in words."""
    return unit.words(tuple(name for name in unit.swept if name != "seed"))
