"""Which code a notebook depends on, and the fingerprint that tells whether a run is still
current.
"""

import os
import re
import sys
from collections import Counter
from collections.abc import Mapping
from glob import glob
from pathlib import Path
from typing import Any

from paperlib.data.files import made_up
from paperlib.io import code_tag, config_hash, file_sha256, imported_names, source_files
from paperlib.io.sources import Known
from paperlib.report.provenance import PACKAGES, package_version
from paperlib.running.parameters import read_notebook
from paperlib.running.project import Project

PACKAGE = Path(__file__).parents[1]
OUTPUTS = ("report",)
"""Parameters that name a file which the notebook writes: no data of a run, and no reason to repeat
one.
"""
_FUNCTION = re.compile(r"\.py:\w+$")
_MADE_UP = "paperlib.data.made_up.folder"


def fingerprint(
    project: Project,
    stem: str,
    profile: str,
    parameters: Mapping[str, Any],
    code: Mapping[str, Any] | None = None,
    *,
    where: Path | None = None,
    known: Known | None = None,
) -> str:
    """A hash of all that a run's values depend on; ``code``, for many runs, is what `notebook_code`
    says.
    """
    about: dict[str, Any] = {"parameters": parameters, "data": parameter_files(parameters, where)}
    about |= _folders(parameters, where, {} if known is None else known)
    return config_hash({**(code or notebook_code(project, stem, profile, known)), **about})


def notebook_code(
    project: Project, stem: str, profile: str, known: Known | None = None
) -> dict[str, Any]:
    """What all runs of a notebook in a profile depend on, whatever their parameters; see
    `source_files`.
    """
    path = project.notebook(stem)
    lock, sources = project.root / "requirements.lock", notebook_sources(path, known)
    shows = PACKAGE / "papers" / "measured.py" in sources  # committed tables
    tables = sorted(project.measured.glob("*.csv")) if shows else []
    return {
        "notebook": file_sha256(path),
        "profile": profile,
        "sources": {str(p.relative_to(PACKAGE)): file_sha256(p) for p in sources},
        "lock": file_sha256(lock) if lock.is_file() else "",
        "python": sys.version_info[:2],
        "packages": [package_version(name) for name in PACKAGES],  # not always those of the lock
        "measured": {table.name: file_sha256(table) for table in tables},
        "made up": code_tag(_MADE_UP) if project.made_up(profile) else made_up(),
    }


def parameter_files(parameters: Mapping[str, Any], where: Path | None = None) -> dict[str, str]:
    """Name (its text, if two files share one) to SHA-256 of each file or FILE.py:FUNCTION of a
    parameter.
    """
    found = {text: path for text, path in _named(parameters, where).items() if os.path.isfile(path)}
    names = Counter(path.name for path in found.values())
    return {
        (path.name if names[path.name] == 1 else text): file_sha256(path)
        for text, path in found.items()
    }


def _named(parameters: Mapping[str, Any], where: Path | None) -> dict[str, Path]:
    """Texts that may name a file or folder to read, each with its path."""
    given = [value for name, value in parameters.items() if name not in OUTPUTS]
    every = [
        one for value in given for one in (value if isinstance(value, list | tuple) else [value])
    ]
    texts = [one.strip() for one in every if isinstance(one, str) and one.strip()]
    return {text: (where or Path.cwd()) / _FUNCTION.sub(".py", text) for text in texts}


def _folders(parameters: Mapping[str, Any], where: Path | None, known: Known) -> dict[str, Any]:
    """Hashes of folders that parameters name, and of what is beside a function or in a folder
    there.
    """
    named = [(text, path.resolve()) for text, path in _named(parameters, where).items()]
    places = [(path, "**") for _, path in named if os.path.isdir(path)]
    own = [path.parent for text, path in named if _FUNCTION.search(text) and os.path.isfile(path)]
    written = {"runs", "__pycache__", *(Path(str(parameters.get(name))).name for name in OUTPUTS)}
    found: dict[str, Any] = {}
    for folder, pattern in [*places, *((one, each) for one in own for each in ("*", "*/*"))]:
        if (key := str(folder / pattern)) not in known:
            names = glob(pattern, root_dir=folder, recursive=True)  # none that is hidden
            kept = (
                one
                for one in names
                if written.isdisjoint(Path(one).parts) and (folder / one).is_file()
            )
            stats = {one: (folder / one).stat() for one in kept}
            marks = {one: (s.st_size, s.st_mtime_ns, s.st_ctime_ns) for one, s in stats.items()}
            known[key] = [
                config_hash(marks)
            ]  # the last one as unpacking and copying may keep the others
        found[key] = known[key]
    return {"folders": found} if found else {}


def notebook_sources(path: Path, known: Known | None = None) -> list[Path]:
    """Files of this package that a notebook's imports can reach, their settings, and the run's own
    code.
    """
    cells = [cell.source for cell in read_notebook(path).cells if cell.cell_type == "code"]
    # Line magics are no Python.
    plain = [re.sub(r"(?m)^\s*[%!].*$", "", cell) for cell in cells]
    names = {name for code in plain for name in imported_names(code)}
    ours = sorted(name for name in names if name.partition(".")[0] == PACKAGE.name)
    files = set(source_files([*ours, "paperlib.running.execute"], known))
    if any(PACKAGE / "report" in file.parents for file in files):
        files |= set((PACKAGE / "report" / "printed_tables").rglob("*.csv"))
    return sorted(files)
