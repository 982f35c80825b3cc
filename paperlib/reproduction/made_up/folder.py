"""The folder of made-up data, written once, with a manifest that tells it from real data."""

import json
import shutil
from pathlib import Path

from paperlib.data.files import MANIFEST
from paperlib.io.files import DATA_VARIABLE, file_sha256, user_cache_folder, write_text
from paperlib.io.sources import code_tag
from paperlib.io.temporary import temporary_folder

HUB = "hub"


def made_up_folder() -> Path:
    """A folder that plays the part of the data folder, with made-up files in the official layouts.

    It is written when it is first asked for, and again when the code that writes it has changed.
    """
    folder = user_cache_folder() / "made-up" / f"small-{code_tag(__name__)}"
    if not (folder / MANIFEST).is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(folder.parent, "tmp-") as unfinished:
            _write_all(unfinished)
            _remove_older(folder)
            _move(unfinished, folder)
    return folder


def _write_all(folder: Path) -> None:
    """Write all made-up files, and then the manifest with their checksums."""
    from paperlib.reproduction.made_up import images, models, tables, texts

    for kind in (images, tables, texts, models):
        kind.write(folder)
    sums: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        # Weights are large, and no loader of ours compares their checksums.
        if path.is_file() and HUB not in path.parts:
            sums[path.relative_to(folder).as_posix()] = file_sha256(path)
    write_text(folder / MANIFEST, json.dumps({"made up": True, "sha256": sums}, indent=1))


def _remove_older(folder: Path) -> None:
    """Remove what earlier versions of the code wrote beside the folder."""
    for other in folder.parent.glob("small-*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)


def _move(written: Path, folder: Path) -> None:
    """Give a temporary folder its name, unless another process was faster."""
    try:
        written.rename(folder)
    except OSError:
        if not (folder / MANIFEST).is_file():
            raise


def made_up_variables(folder: Path) -> dict[str, str]:
    """Environment variables with which loaders find data and hub models in ``folder``, and no
    others.
    """
    return {DATA_VARIABLE: str(folder), "HF_HOME": str(folder / HUB), "HF_HUB_OFFLINE": "1"}
