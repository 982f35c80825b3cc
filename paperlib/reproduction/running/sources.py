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
from paperlib.io.files import config_hash, file_sha256
from paperlib.io.sources import Known, code_tag, imported_names, source_files
from paperlib.report.provenance import PACKAGES, package_version
from paperlib.reproduction.running.parameters import read_notebook
from paperlib.reproduction.running.project import Project

PACKAGE = Path(__file__).parents[2]
OUTPUTS = ("report",)
"""Parameters that name a file which the notebook writes: no data of a run, and no reason to repeat
one.
"""
_FUNCTION = re.compile(r"\.py:\w+$")
_MADE_UP = "paperlib.reproduction.made_up.folder"


def fingerprint(
    project: Project,
    stem: str,
    profile: str,
    parameters: Mapping[str, Any],
    code: Mapping[str, Any] | None = None,
    *,
    where: Path | None = None,
    memo: Known | None = None,
) -> str:
    """A hash of all that a run's values depend on: code, parameters, the files they name, packages.

    ``code``, for many runs, is what `notebook_code` returns; ``where`` is the folder from which
    relative paths are seen, ``memo`` what calls share between which no file changes. A ValueError
    where there is no such notebook or profile.
    """
    hashed = dict(code or notebook_code(project, stem, profile, memo))
    hashed["parameters"] = parameters
    hashed["data"] = parameter_files(parameters, where)
    folders = _folders(parameters, where, {} if memo is None else memo)
    if folders:
        hashed["folders"] = folders
    return config_hash(hashed)


def notebook_code(
    project: Project, stem: str, profile: str, memo: Known | None = None
) -> dict[str, Any]:
    """What all runs of a notebook in a profile depend on, whatever their parameters: names to
    hashes and versions, as JSON holds them.

    ``memo`` is the ``known`` of `source_files`. Raises ValueError where there is no such notebook
    or profile.
    """
    path = project.notebook(stem)
    lock = project.root / "requirements.lock"
    sources = notebook_sources(path, memo)
    shows_tables = PACKAGE / "reproduction" / "papers" / "measured.py" in sources  # committed ones
    tables = sorted(project.measured.glob("*.csv")) if shows_tables else []
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
    """SHA-256 of each file that a parameter names, as FILE or FILE.py:FUNCTION, by the name of the
    file; where two files share a name, by the text of the parameter. Relative paths are seen from
    ``where``, None for the current folder.
    """
    paths = _named_paths(parameters, where)
    files = {text: path for text, path in paths.items() if os.path.isfile(path)}
    names = Counter(path.name for path in files.values())
    return {
        (path.name if names[path.name] == 1 else text): file_sha256(path)
        for text, path in files.items()
    }


def _named_paths(parameters: Mapping[str, Any], where: Path | None) -> dict[str, Path]:
    """Texts of the parameters that may name a file or folder to read, each with the path that it
    would be; parameters that name an output are left out.
    """
    values: list[Any] = []
    for name, value in parameters.items():
        if name not in OUTPUTS:
            values += value if isinstance(value, list | tuple) else [value]
    texts = [value.strip() for value in values if isinstance(value, str) and value.strip()]
    return {text: (where or Path.cwd()) / _FUNCTION.sub(".py", text) for text in texts}


def _folders(parameters: Mapping[str, Any], where: Path | None, memo: Known) -> dict[str, Any]:
    """Hashes of the state of files, by their pattern: of all below a folder that a parameter names,
    and, for FILE.py:FUNCTION, of those in the folder of FILE.py and in the folders there, which
    the function may read.

    A hash that ``memo`` holds is not computed again.
    """
    # Folders with the pattern of their files.
    patterns: list[tuple[Path, str]] = []
    beside_functions: list[tuple[Path, str]] = []
    for text, path in _named_paths(parameters, where).items():
        resolved = path.resolve()
        if os.path.isdir(resolved):
            patterns.append((resolved, "**"))
        elif _FUNCTION.search(text) and os.path.isfile(resolved):
            beside_functions += [(resolved.parent, "*"), (resolved.parent, "*/*")]
    # Names of what runs write there themselves.
    written = {"runs", "__pycache__", *(Path(str(parameters.get(name))).name for name in OUTPUTS)}
    hashes: dict[str, Any] = {}
    for folder, pattern in patterns + beside_functions:
        key = str(folder / pattern)
        if key not in memo:
            memo[key] = [_state_of_files(folder, pattern, written)]
        hashes[key] = memo[key]
    return hashes


def _state_of_files(folder: Path, pattern: str, without: set[str]) -> str:
    """A hash of names, sizes and times of the files of a pattern, without hidden ones and what has
    one of the names ``without`` in its path.
    """
    states: dict[str, tuple[int, int, int]] = {}
    for name in glob(pattern, root_dir=folder, recursive=True):
        path = folder / name
        if without.isdisjoint(Path(name).parts) and path.is_file():
            status = path.stat()
            # The time of the last change too: unpacking and copying may keep size and other time.
            states[name] = (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return config_hash(states)


def notebook_sources(path: Path, memo: Known | None = None) -> list[Path]:
    """Files of this package that a run depends on, sorted: the modules that the notebook's imports
    reach and what they read, those that run it, and the papers' tables where it shows results.
    """
    cells = [cell.source for cell in read_notebook(path).cells if cell.cell_type == "code"]
    names: set[str] = set()
    for cell in cells:
        without_magics = re.sub(r"(?m)^\s*[%!].*$", "", cell)  # which are no Python
        names |= set(imported_names(without_magics))
    ours = sorted(name for name in names if name.partition(".")[0] == PACKAGE.name)
    files = set(source_files([*ours, "paperlib.reproduction.running.execute"], memo))
    if any(PACKAGE / "report" in file.parents for file in files):
        printed = PACKAGE / "reproduction" / "exhibits" / "printed_tables"
        files |= set(printed.rglob("*.csv"))
    return sorted(files)
