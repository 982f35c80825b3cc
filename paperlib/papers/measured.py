"""Tables measured on another occasion and kept with the book, with a line on where and when."""

from pathlib import Path

import pandas as pd

from paperlib.io import read_result


def measured_table(path: str) -> tuple[pd.DataFrame, str] | None:
    """A table that a run measured, and its origin in words."""
    if not path:
        return None
    file = kept_file(path)
    origin = read_result(file.with_suffix(".json")).provenance
    place = origin.get("gpu") or f"{origin['cpu']}, {origin['cores']} cores"
    minutes = (origin["seconds"] + origin.get("earlier_seconds", 0)) / 60
    table = pd.read_csv(file, keep_default_na=False, na_values=[""])  # "null" is a word here
    return table, f"measured {origin['date'][:10]} on {place}, in {minutes:.0f} minutes"


def kept_file(path: str) -> Path:
    """The table of a measured run in this folder or above, with its result file beside it."""
    here = Path.cwd()
    file = next(
        (folder / path for folder in (here, *here.parents) if (folder / path).is_file()), None
    )
    if file is None or not file.with_suffix(".json").is_file():
        raise ValueError(
            f"measured: no {path!r} with its .json in {here} or above; pass an empty text for none"
        )
    return file
