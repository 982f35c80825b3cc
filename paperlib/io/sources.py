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
"""A file or name to what it leads to: the names it imports, or the files and names behind it."""
_OWN = "paperlib"
_SETTINGS = (".yaml", ".json", ".mplstyle")  # endings of a module's settings, in a file of its name
_BLOCKS = ("body", "handlers", "cases", "orelse", "finalbody")  # of a statement, in `ast`
_TAGS: dict[tuple[str, ...], tuple[dict[Path, tuple[int, int]], str]] = {}
"""Checksums by the modules they are of, with the files that they were computed from."""
_PARSING = RLock()  # Python 3.11 raises SystemError now and then where two threads parse at once


def code_tag(*modules: str) -> str:
    """A checksum, 16 hexadecimal digits, of all source files that modules reach by their imports.

    ``modules`` are dotted names, such as ``__name__``; a ValueError for one without a source file.
    """
    # Kept from an earlier call as long as no file was changed since.
    stamps, tag = _TAGS.get(modules, ({}, ""))
    if stamps and all(_stamp(file) == stamp for file, stamp in stamps.items()):
        return tag
    stamps = {file: _stamp(file) for file in source_files(modules)}
    digest = hashlib.sha256()
    for file in stamps:
        digest.update(f"{file.parent.name}/{file.name} {file_sha256(file)}\n".encode())
    tag = digest.hexdigest()[:16]
    # Only for this package: the user's files may import others at any moment.
    if all(_package_of(name) == _OWN for name in modules):
        _TAGS[modules] = stamps, tag
    return tag


def _stamp(file: Path) -> tuple[int, int]:
    """Time of the last change, ns, and size of a file, by which a change of it is noticed."""
    status = file.stat()
    return status.st_mtime_ns, status.st_size


def _package_of(name: str) -> str:
    return name.partition(".")[0]


def source_files(names: Iterable[str], known: Known | None = None) -> list[Path]:
    """Source files that modules, or names that they define, reach by their imports, with their own,
    sorted.

    Imports are followed into the package of each module and into this one, those inside functions
    included, those for type checkers alone left out. A package whose ``__init__`` only passes names
    on is passed through: an imported name leads to the module that defines it, and to no other. A
    module's settings, in a file of its name, count with it. Calls between which no file changes may
    share ``known``.

    Raises:
        ValueError: A name whose top-level package or module has no file of Python source.
    """
    names = list(names)
    for name in names:
        _top(_package_of(name), name)  # for its error alone, which names the module
    packages = {_OWN, *map(_package_of, names)}
    files = _files_reached(names, packages, {} if known is None else known)
    settings = {file.with_suffix(ending) for file in files for ending in _SETTINGS}
    return sorted(files | {file for file in settings if file.is_file()})


def _files_reached(names: Iterable[str], packages: set[str], memo: Known) -> set[Path]:
    """Files that dotted names lead to, directly and by imports from ``packages``; ``memo`` keeps
    what was found of each file and name.
    """
    seen: set[str | Path] = set()
    waiting: list[str | Path] = [*names]
    while waiting:
        source = waiting.pop()
        if source not in seen:
            seen.add(source)
            waiting += _leads_to(source, packages, memo)
    return {source for source in seen if isinstance(source, Path)}


def _leads_to(source: str | Path, packages: set[str], memo: Known) -> list[str | Path]:
    """Names that a file imports from ``packages``, or files and names that a dotted name stands
    for; ``memo`` keeps the answers.
    """
    if source not in memo:
        memo[source] = _imports(source) if isinstance(source, Path) else _reached(source)
    if not isinstance(source, Path):
        return memo[source]
    names = [name for name in memo[source] if isinstance(name, str)]
    return [name for name in names if _package_of(name) in packages]


def _imports(file: Path) -> list[str | Path]:
    """Dotted names that a file of Python imports, relative ones in full."""
    package = ""  # that the file is in, found by the folders with an __init__.py around it
    folder = file.parent
    while (folder / "__init__.py").is_file():
        package = f"{folder.name}.{package}".rstrip(".")
        folder = folder.parent
    return [*imported_names(file.read_text(encoding="utf-8"), package)]


@lru_cache(maxsize=4096)
def imported_names(source: str, package: str = "") -> tuple[str, ...]:
    """Dotted names that a source imports, those inside functions included: ``from a import b``
    gives ``a.b``.

    Relative imports start from ``package``.

    >>> imported_names("import numpy as np\\nfrom paperlib.core import FloatArray")
    ('numpy', 'paperlib.core.FloatArray')
    """
    names: list[str] = []
    statements = list[ast.AST](_parsed(source).body)
    for node in statements:  # which grows by the statements inside of each
        statements += _statements_inside(node)
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            names += [f"{base}.{alias.name}" for alias in node.names]
    return tuple(names)


def _statements_inside(node: ast.AST) -> list[ast.AST]:
    """Statements in the blocks of a statement, but for those that only type checkers read.

    Statements alone, since an expression imports nothing.
    """
    for_checkers = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
    blocks = ("orelse",) if for_checkers else _BLOCKS
    return [statement for block in blocks for statement in getattr(node, block, ())]


def _reached(name: str) -> list[str | Path]:
    """Files that using a dotted ``name`` runs, and the names that stand for it where a package
    passes it on; a ValueError where its top-level package has no source file.
    """
    # From package to package along the name: `init` is the file of the one that was reached, and
    # `rest` is what is left of the name.
    package, *rest = name.split(".")
    init = _top(package, name)
    if init.name != "__init__.py":  # a single module
        return [init]
    files: set[Path] = set()  # of the packages on the way that do more than pass names on
    while True:
        stub = init.with_suffix(".pyi")  # where names are loaded when asked for, it lists them
        read = stub if stub.is_file() else init
        passed_on = _passed_on(read.read_text(encoding="utf-8"), package)
        if passed_on is None:
            files.add(init)
        if not rest:  # the name is a package
            return [*files, *passed_on.values()] if passed_on else [*files, init]
        inner = init.parent / rest[0] / "__init__.py"
        if not inner.is_file():
            return [*files, _in_package(init, rest[0], passed_on)]
        init = inner
        package = f"{package}.{rest[0]}"
        rest = rest[1:]


def _in_package(init: Path, name: str, passed_on: dict[str, str] | None) -> str | Path:
    """The module ``name`` of a package, or the origin of a name that the package passes on, or else
    the package's own file.
    """
    module = init.parent / f"{name}.py"
    if module.is_file():
        return module
    if passed_on and name in passed_on:
        return passed_on[name]
    return init


def _parsed(source: str) -> ast.Module:
    with _PARSING:
        return ast.parse(source)


@lru_cache(maxsize=256)
def _passed_on(source: str, package: str) -> dict[str, str] | None:
    """Names that the source of an ``__init__`` passes on, with the dotted names of their origins;
    None if it does more than that. Relative imports start from ``package``.
    """
    names: dict[str, str] = {}
    for node in _parsed(source).body:
        if isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            names |= {alias.asname or alias.name: f"{base}.{alias.name}" for alias in node.names}
        elif not _holds_no_code(node):
            return None
    return names


def _holds_no_code(node: ast.stmt) -> bool:
    """Whether a statement is a docstring, ``__all__``, or (in a stub) the type of a name."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.AnnAssign):
        return node.value is None
    if isinstance(node, ast.Assign):
        return all(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        )
    return False


def _absolute(node: ast.ImportFrom, package: str) -> str:
    """The full name of the module that ``from … import`` in a module of ``package`` names."""
    if not node.level:  # no dots in front
        return node.module or ""
    levels = package.split(".")
    base = levels[: len(levels) - node.level + 1]
    if node.module:
        base.append(node.module)
    return ".".join(base)


def _top(package: str, name: str) -> Path:
    """The file of a top-level package or module; a ValueError with ``name``, which was asked for,
    where it has none.
    """
    try:
        spec = importlib.util.find_spec(package)
    except ValueError:
        spec = None  # such as __main__
    origin = spec.origin if spec is not None and spec.has_location else None
    if origin is None or not origin.endswith(".py"):
        raise ValueError(f"modules: no module {name!r} with a source file")
    return Path(origin)
