"""What the folder of a model may name: files of its own."""

import json
from pathlib import Path
from typing import Any

from paperlib.reading.files import read_file
from paperlib.reading.folders import visible_files


def check_model_folder(name: str | Path) -> None:
    """Refuse a folder that leads to files outside of it, by a link or by its list of weights.

    A name on the hub passes: its files are in the cache of the caller. Those of a snapshot of that
    cache lead to its blobs.

    Raises:
        ValueError: What leads out, in one line.
    """
    folder = Path(name)
    if not folder.is_dir():
        return
    visible_files(folder)
    for index in sorted(folder.glob("*.index.json")):
        for weights in _named_in(index):
            path = Path(weights)
            if path.is_absolute() or ".." in path.parts or "\\" in weights:
                raise ValueError(
                    f"{index}: names weights outside of its folder, {weights!r}; save the model "
                    "again with save_pretrained"
                )


def _named_in(index: Path) -> list[str]:
    """The files of weights that an index names; of one that is no index its reader tells."""
    try:
        content: Any = json.loads(read_file(index))
        return sorted(set(map(str, content["weight_map"].values())))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []
