"""Tables measured on another occasion and kept with the book, with a line on where and when."""

from pathlib import Path

import pandas as pd

from paperlib.io import read_result
from paperlib.io.files import file_sha256


def measured_table(path: str) -> tuple[pd.DataFrame, str] | None:
    """A table that a run measured, and its origin in words; None for an empty path.

    Raises ValueError where `kept_file` finds none, and where the table is not as its result file
    says.
    """
    if not path:
        return None
    file = kept_file(path)
    run = read_result(file.with_suffix(".json")).provenance
    if file_sha256(file) not in run.get("files", {}).values():
        raise ValueError(
            f"measured: {file} is not the table of the run in {file.with_suffix('.json').name}, or "
            "was changed after it"
        )
    device = run.get("gpu") or f"{run['cpu']}, {run['cores']} cores"
    minutes = (run["seconds"] + run.get("earlier_seconds", 0)) / 60
    table = pd.read_csv(file, keep_default_na=False, na_values=[""])  # "null" is a word here
    return table, f"measured {run['date'][:10]} on {device}, in {minutes:.0f} minutes"


def kept_file(path: str) -> Path:
    """The table of a measured run in this folder or above, with its result file beside it.

    Raises ValueError where the nearest has no result file, or there is none.
    """
    here = Path.cwd()
    candidates = [folder / path for folder in (here, *here.parents)]
    file = next((candidate for candidate in candidates if candidate.is_file()), None)
    if file is None or not file.with_suffix(".json").is_file():
        raise ValueError(
            f"measured: no {path!r} with its .json in {here} or above; pass an empty text for none"
        )
    return file
