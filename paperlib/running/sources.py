"""Which code a notebook depends on, and the fingerprint that tells whether a run is still current."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paperlib.io import code_tag, config_hash, file_sha256, imported_names, source_files
from paperlib.running.parameters import read_notebook
from paperlib.running.project import Project

PACKAGE = Path(__file__).parents[1]
_MADE_UP = "paperlib.data.made_up.folder"


def fingerprint(
    project: Project,
    stem: str,
    profile: str,
    parameters: Mapping[str, Any],
    code: Mapping[str, Any] | None = None,
) -> str:
    """A hash of everything a run's values depend on.

    Covers the notebook, its parameters, every module of this package it can reach, the papers'
    numbers, the locked versions, the Python version, and files that parameters name. ``code`` is what
    `notebook_code` says, for the fingerprints of many runs.
    """
    about = {"parameters": parameters, "data": parameter_files(parameters)}
    return config_hash({**(code or notebook_code(project, stem, profile)), **about})


def notebook_code(project: Project, stem: str, profile: str) -> dict[str, Any]:
    """What all runs of a notebook in a profile depend on, whatever their parameters."""
    path = project.notebook(stem)
    lock = project.root / "requirements.lock"
    return {
        "notebook": file_sha256(path),
        "profile": profile,
        "sources": {str(p.relative_to(PACKAGE)): file_sha256(p) for p in notebook_sources(path)},
        "lock": file_sha256(lock) if lock.is_file() else "",
        "python": sys.version_info[:2],
        "made up": code_tag(_MADE_UP) if project.made_up(profile) else "",
    }


def parameter_files(parameters: Mapping[str, Any]) -> dict[str, str]:
    """File name to SHA-256, for parameters whose text names an existing file."""
    texts = [value for value in parameters.values() if isinstance(value, str) and 0 < len(value) < 4096]
    return {Path(text).name: file_sha256(text) for text in texts if Path(text).is_file()}


def notebook_sources(path: Path) -> list[Path]:
    """Files of this package that a notebook's imports can reach, with the run's own code."""
    cells = [cell.source for cell in read_notebook(path).cells if cell.cell_type == "code"]
    names = {name for source in cells for name in imported_names(_without_magics(source))}
    ours = sorted(name for name in names if name.partition(".")[0] == PACKAGE.name)
    files = set(source_files([*ours, "paperlib.running.execute"]))
    if any(PACKAGE / "report" in file.parents for file in files):
        files |= set((PACKAGE / "report" / "printed_tables").rglob("*.csv"))
    return sorted(files)


def _without_magics(source: str) -> str:
    """The code of a cell without its line magics, which are no Python."""
    return "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines())
