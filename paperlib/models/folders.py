"""What the folder of a model may name: files of its own."""

import json
from pathlib import Path
from typing import Any

from paperlib.reading.files import read_file
from paperlib.reading.folders import visible_files

ADAPTER = "adapter_config.json"
"""File that makes a folder that of an adapter: it names the base model."""


def check_model_folder(name: str | Path) -> None:
    """Refuse a folder that leads to files outside of it, by a link or by its list of weights.

    A name on the hub passes: its files are in the cache of the caller. Those of a snapshot of that
    cache lead to its blobs. The base model of an adapter is asked the same where it is a folder.

    Raises:
        ValueError: What leads out, in one line, or an adapter whose base is an adapter or missing.
    """
    folder = Path(name)
    if not folder.is_dir():
        return
    _check_own_files(folder)
    base = base_of_adapter(folder)
    if base is None and (folder / ADAPTER).is_file():
        raise ValueError(
            f"{folder / ADAPTER}: names no base model; save the adapter again with peft"
        )
    if base is not None and base.is_dir():
        if base_of_adapter(base) is not None:
            raise ValueError(
                f"{folder / ADAPTER}: its base model, {str(base)!r}, is an adapter too; merge that "
                "into its own base first"
            )
        _check_own_files(base)


def _check_own_files(folder: Path) -> None:
    """Refuse (ValueError) links and lists of weights that lead out of this folder."""
    visible_files(folder)
    for index in sorted(folder.glob("*.index.json")):
        for weights in _named_in(index):
            path = Path(weights)
            if path.is_absolute() or ".." in path.parts or "\\" in weights:
                raise ValueError(
                    f"{index}: names weights outside of its folder, {weights!r}; save the model "
                    "again with save_pretrained"
                )


def base_of_adapter(folder: Path) -> Path | None:
    """The folder, or name on the hub, that a LoRA adapter names as its base; None for a folder that
    is no adapter's, or whose file names no base.
    """
    base = _adapter(folder).get("base_model_name_or_path")
    return Path(base) if isinstance(base, str) and base else None


def check_rank(folder: Path, width: int) -> None:
    """Refuse (ValueError) an adapter of a rank above the width of its model: peft takes memory for
    what the file says before it looks at the weights.
    """
    content = _adapter(folder)
    of_modules = content.get("rank_pattern")
    ranks = [content.get("r"), *(of_modules.values() if isinstance(of_modules, dict) else [])]
    largest = max((rank for rank in ranks if isinstance(rank, int)), default=0)
    if largest > width:
        raise ValueError(
            f"{folder / ADAPTER}: rank {largest:,} is above the width of its model, {width:,}; "
            "take the file that was saved with the adapter's weights"
        )


def _adapter(folder: Path) -> dict[str, Any]:
    """The content of an adapter's file, by name; empty for a folder without one that can be read,
    of which peft says what is wrong.
    """
    config = folder / ADAPTER
    if not config.is_file():
        return {}
    try:
        content: Any = json.loads(read_file(config))
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _named_in(index: Path) -> list[str]:
    """The files of weights that an index names, sorted; none for a file that is no index, of which
    transformers, which reads it, says what is wrong.
    """
    try:
        content: Any = json.loads(read_file(index))
        return sorted(set(map(str, content["weight_map"].values())))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []
