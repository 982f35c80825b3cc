"""The folder of made-up data, written once, with a manifest that tells it from real data."""

import json
import shutil
import tempfile
from pathlib import Path

from paperlib.data.files import MANIFEST
from paperlib.io import code_tag, file_sha256, write_text
from paperlib.io.files import DATA_VARIABLE, user_cache_folder

HUB = "hub"


def made_up_folder() -> Path:
    """A folder that plays the part of the data folder, with made-up files in the official layouts.

    It is written when it is first asked for, and again when the code that writes it has changed.
    """
    from paperlib.data.made_up import images, models, tables, texts

    folder = user_cache_folder() / "made-up" / f"small-{code_tag(__name__)}"
    if not (folder / MANIFEST).is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as name:
            written = Path(name)
            for kind in (images, tables, texts, models):
                kind.write(written)
            # Weights are large, and no loader of ours compares their checksums.
            files = (
                path
                for path in sorted(written.rglob("*"))
                if path.is_file() and HUB not in path.parts
            )
            sums = {path.relative_to(written).as_posix(): file_sha256(path) for path in files}
            write_text(written / MANIFEST, json.dumps({"made up": True, "sha256": sums}, indent=1))
            for old in folder.parent.glob("small-*"):
                if old != folder:
                    shutil.rmtree(old, ignore_errors=True)
            try:
                written.rename(folder)
            except OSError:
                if not (folder / MANIFEST).is_file():  # else another process was faster
                    raise
            else:
                written.mkdir()  # for the end of the temporary folder
    return folder


def made_up_variables(folder: Path) -> dict[str, str]:
    """Environment variables with which loaders find data and hub models in ``folder``, and no
    others.
    """
    return {DATA_VARIABLE: str(folder), "HF_HOME": str(folder / HUB), "HF_HUB_OFFLINE": "1"}
