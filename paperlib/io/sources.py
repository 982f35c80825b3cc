"""Which source files a module reaches by its imports, and a checksum of them."""

import ast
import hashlib
import importlib.util
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from threading import RLock

from paperlib.io.files import file_sha256

Known = dict[str | Path, list[str | Path]]
_OWN = "paperlib"
_BESIDE = (".yaml", ".json", ".mplstyle")  # endings of a module's settings, in a file of its name
_TAGS: dict[
    tuple[str, ...], tuple[dict[Path, tuple[int, int]], str]
] = {}  # with the files they are of
_PARSING = RLock()  # Python 3.11 raises SystemError now and then where two threads parse at once


def code_tag(*modules: str) -> str:
    """A checksum of the `source_files` of modules, such as ``__name__``."""
    stamps, tag = _TAGS.get(modules, ({}, ""))
    if not stamps or any(_stamp(file) != stamp for file, stamp in stamps.items()):
        stamps, digest = {file: _stamp(file) for file in source_files(modules)}, hashlib.sha256()
        for file in stamps:
            digest.update(f"{file.parent.name}/{file.name} {file_sha256(file)}\n".encode())
        tag = digest.hexdigest()[:16]
        if all(
            name.partition(".")[0] == _OWN for name in modules
        ):  # the user's files may change any moment
            _TAGS[modules] = stamps, tag
    return tag


def _stamp(file: Path) -> tuple[int, int]:
    about = file.stat()
    return about.st_mtime_ns, about.st_size


def source_files(names: Iterable[str], known: Known | None = None) -> list[Path]:
    """Source files that modules, or names that they define, reach by their imports, with their own,
    sorted.

    Imports are followed into the package of each module and into this one, those inside functions
    included, those for type checkers alone left out. A package whose ``__init__`` only passes names
    on is passed
    through: an imported name leads to the module that defines it, and to no other. A module's
        settings, in a
    file of its name, count with it. Calls between which no file changes may share ``known``.
    """
    given, seen, known = list(names), set[str | Path](), {} if known is None else known
    own = {_OWN, *(name.partition(".")[0] for name in given)}
    for name in given:
        _top(name.partition(".")[0], name)
    waiting: list[str | Path] = [*given]
    while waiting:
        if (one := waiting.pop()) in seen:
            continue
        seen.add(one)
        if one not in known:
            known[one] = _imports(one) if isinstance(one, Path) else _reached(one)
        more = known[one]
        if isinstance(one, Path):
            more = [
                name for name in more if isinstance(name, str) and name.partition(".")[0] in own
            ]
        waiting += more
    files = {one for one in seen if isinstance(one, Path)}
    beside = {file.with_suffix(ending) for file in files for ending in _BESIDE}
    return sorted(files | {file for file in beside if file.is_file()})


def _imports(file: Path) -> list[str | Path]:
    """Names that a file imports."""
    package, folder = "", file.parent
    while (folder / "__init__.py").is_file():
        package, folder = f"{folder.name}.{package}".rstrip("."), folder.parent
    return [*imported_names(file.read_text(encoding="utf-8"), package)]


@lru_cache(maxsize=4096)
def imported_names(source: str, package: str = "") -> tuple[str, ...]:
    """Dotted names that a source imports, those inside functions included: ``from a import b``
    gives ``a.b``.

    Relative imports start from ``package``.

    >>> imported_names("import numpy as np\\nfrom paperlib.core import FloatArray")
    ('numpy', 'paperlib.core.FloatArray')
    """
    names, waiting = list[str](), list[ast.AST](_parsed(source).body)
    for node in waiting:  # statements alone: an expression imports nothing
        checked = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for part in (
            ("orelse",) if checked else ("body", "handlers", "cases", "orelse", "finalbody")
        ):
            waiting += getattr(node, part, ())
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            names += [f"{base}.{alias.name}" for alias in node.names]
    return tuple(names)


def _reached(name: str) -> list[str | Path]:
    """Files that using ``name`` runs, and the names that stand for it where a package passes it
    on.
    """
    top, *parts = name.split(".")
    place = _top(top, name)
    files: set[Path] = set()
    if place.name != "__init__.py":
        return [place]
    package = top
    while True:
        stub = place.with_suffix(".pyi")
        passed_on = _passed_on(
            (stub if stub.is_file() else place).read_text(encoding="utf-8"), package
        )
        if passed_on is None:
            files.add(place)
        if not parts:
            return [*files, *passed_on.values()] if passed_on else [*files, place]
        folder, part = place.parent, parts[0]
        if (folder / part / "__init__.py").is_file():
            place, package = folder / part / "__init__.py", f"{package}.{part}"
        elif (folder / f"{part}.py").is_file():
            return [*files, folder / f"{part}.py"]
        elif passed_on and part in passed_on:
            return [*files, passed_on[part]]
        else:
            return [*files, place]
        parts = parts[1:]


def _parsed(source: str) -> ast.Module:
    with _PARSING:
        return ast.parse(source)


@lru_cache(maxsize=256)
def _passed_on(source: str, package: str) -> dict[str, str] | None:
    """Names that an ``__init__`` passes on, with their origins; None if it does more than that."""
    names: dict[str, str] = {}
    for node in _parsed(source).body:
        if isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            names |= {alias.asname or alias.name: f"{base}.{alias.name}" for alias in node.names}
            continue
        # A docstring, a list of names, or (in a stub) the type of a name holds no code.
        targets = node.targets if isinstance(node, ast.Assign) else [None]
        says_nothing = (
            (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            or (isinstance(node, ast.AnnAssign) and node.value is None)
            or all(isinstance(one, ast.Name) and one.id == "__all__" for one in targets)
        )
        if not says_nothing:
            return None
    return names


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    base = parts[: len(parts) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def _top(package: str, name: str) -> Path:
    """The file of a top-level package or module."""
    try:
        spec = importlib.util.find_spec(package)
    except ValueError:
        spec = None  # such as __main__
    if (
        spec is None
        or not spec.has_location
        or spec.origin is None
        or not spec.origin.endswith(".py")
    ):
        raise ValueError(f"modules: no module {name!r} with a source file")
    return Path(spec.origin)
