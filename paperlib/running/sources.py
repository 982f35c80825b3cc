"""Which code a notebook depends on, and the fingerprint that tells whether a run is still current."""

import ast
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import paperlib
from paperlib.io import config_hash, file_sha256
from paperlib.running.parameters import read_notebook
from paperlib.running.project import Project

PACKAGE = Path(paperlib.__file__).parent


def fingerprint(project: Project, stem: str, profile: str, parameters: Mapping[str, Any]) -> str:
    """A hash of everything a run's values depend on.

    Covers the notebook, its parameters, every module of this package it can reach, the papers'
    numbers, the locked versions, the Python version, and files that parameters name.
    """
    path = project.notebook(stem)
    lock = project.root / "requirements.lock"
    return config_hash(
        {
            "notebook": file_sha256(path),
            "profile": profile,
            "parameters": parameters,
            "sources": {str(p.relative_to(PACKAGE)): file_sha256(p) for p in notebook_sources(path)},
            "lock": file_sha256(lock) if lock.is_file() else "",
            "python": sys.version_info[:2],
            "data": parameter_files(parameters),
        }
    )


def parameter_files(parameters: Mapping[str, Any]) -> dict[str, str]:
    """File name to SHA-256, for parameters whose text names an existing file."""
    texts = [value for value in parameters.values() if isinstance(value, str) and 0 < len(value) < 4096]
    return {Path(text).name: file_sha256(text) for text in texts if Path(text).is_file()}


def notebook_sources(path: Path) -> list[Path]:
    """Files of this package that a notebook's imports can reach, with the run's own code."""
    code = [cell.source for cell in read_notebook(path).cells if cell.cell_type == "code"]
    wanted = [name for source in code for name in _imports(source)]
    files = _closure([*wanted, "paperlib.running.execute"])
    if any(PACKAGE / "report" in file.parents for file in files):
        files |= set((PACKAGE / "report" / "papers").glob("*.csv"))
    return sorted(files)


def _closure(names: Iterable[str]) -> set[Path]:
    waiting, found = list(names), set[Path]()
    while waiting:
        for file in _module_files(waiting.pop()):
            if file not in found:
                found.add(file)
                waiting += _file_imports(file)
    return found


def _file_imports(file: Path) -> list[str]:
    return _imports(file.read_text(encoding="utf-8"))


@cache
def _imports(source: str) -> list[str]:
    """Dotted names below paperlib that a source imports, each imported name included."""
    # A line magic is no Python; the cell may still import something.
    plain = "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines())
    names: list[str] = []
    for node in ast.walk(ast.parse(plain)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in names if name.split(".")[0] == "paperlib"]


def _module_files(name: str) -> list[Path]:
    """Files that importing ``name`` runs: the module, and the ``__init__`` of every package above it."""
    files, folder = [PACKAGE / "__init__.py"], PACKAGE
    for part in name.split(".")[1:]:
        module, package = folder / f"{part}.py", folder / part / "__init__.py"
        if package.is_file():
            files.append(package)
        elif module.is_file():
            files.append(module)
        else:
            break
        folder = folder / part
    return files
