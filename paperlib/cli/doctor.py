"""``paperlib doctor``: what is installed, and where files are read and written."""

import os
import shutil
import sys
from pathlib import Path

import paperlib
from paperlib.cli.install import install_command
from paperlib.io import data_folder
from paperlib.report.provenance import gpu_name, hardware, package_version

_PACKAGE_FOLDER = Path(paperlib.__file__).resolve().parents[1]
"""The folder that this package is imported from, which may be a checkout."""


def doctor() -> None:
    """Print versions, hardware, the data folder, and which folders can be written."""
    machine = hardware()
    print(
        f"Python {sys.version.split()[0]} on {machine['system']}, {machine['cpu']}, "
        f"{machine['cores']} cores"
    )
    print(f"GPU: {gpu_name() or 'none found'}")
    for name, extra in _PACKAGES.items():
        missing = f"not installed ({install_command(extra)})"
        print(f"  {name:16} {package_version(name) or missing}")
    browsers = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    browser = next(filter(None, browsers), None)
    print(f"Chromium (make check, make pdf): {browser or 'not found'}")
    data = data_folder()
    if os.environ.get("PAPERLIB_DATA"):
        reason = "PAPERLIB_DATA"
    else:
        reason = "the default; set PAPERLIB_DATA to change it"
    print(f"Data is looked for in {data} ({reason}): {_writable(data)}")
    root = _notebooks_root()
    if root is None:
        print("No checkout here: `paperlib audit` works, `paperlib run` needs one")
        return
    is_around = Path.cwd().is_relative_to(root)
    for name in _WRITTEN:
        shown = name if is_around else root / name
        print(f"{shown}/: {_writable(root / name)}")


def _notebooks_root() -> Path | None:
    """The checkout whose notebooks `paperlib run` would run: that around the current folder, or
    else the one that this package lies in; None where there is neither.
    """
    here = Path.cwd()
    for folder in (here, *here.parents, _PACKAGE_FOLDER):
        if (folder / "notebooks" / "profiles").is_dir():
            return folder
    return None


_WRITTEN = ("runs", "book/_generated")
"""Folders of a checkout that runs of its notebooks write."""
_PACKAGES = {  # name to its extra
    "paperlib": "",
    "numpy": "",
    "scipy": "",
    "pandas": "",
    "matplotlib": "",
    "pyarrow": "run",
    "papermill": "run",
    "ipykernel": "run",
    "torch": "train",
    "torchvision": "train",
    "scikit-learn": "features",
    "transformers": "language",
    "jupyter-book": "book",
    "pytest": "dev",
}


def _writable(folder: Path) -> str:
    """Whether a folder can be written, or made, in words."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not (existing.is_dir() and os.access(existing, os.W_OK)):
        return "NOT writable"
    return "writable" if existing == folder else "can be made"
