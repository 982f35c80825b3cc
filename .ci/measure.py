"""What ``make lint`` holds of readability, and the price list that it prints.

Three things are limited: the cognitive complexity of a function, the number of its parameters, and
the number of public names of a facade. The files in ``limits`` hold today's exceptions. They
only lose rows: a row that is new in the history of its file, or a value that rose, is a fault, and
so is a row that is no longer needed. Nothing here limits lines, which are no measure of what a
reader pays.
"""

import ast
import csv
import io
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import complexipy

ROOT = Path(__file__).resolve().parent.parent
LIMITS = Path(__file__).resolve().parent / "limits"
MOST_COMPLEXITY = 15
MOST_PARAMETERS = 8
MOST_NAMES = 0  # of a facade: each one has a row, so that each count only falls
SOURCES = {  # what else somebody has to read
    "JavaScript": ("*.js",),
    "YAML and TOML": ("*.yaml", "*.yml", "*.toml"),
    "templates and styles": ("*.j2", "*.css"),
}
Measured = dict[str, int]
"""What is measured ("file.py: function", or a facade) to its value."""


def modules(package: Path) -> list[Path]:
    """Every module of the package."""
    return sorted(package.rglob("*.py"))


def key(path: Path, name: str) -> str:
    """A function's name in the tables: without its folder, so that it may move between rooms."""
    return f"{path.name}: {name}"


def complexities(package: Path) -> Measured:
    """Cognitive complexity of each function; the largest where two have one key."""
    found: Measured = {}
    for path in modules(package):
        for function in complexipy.file_complexity(str(path)).functions:
            name = key(path, function.name.replace("::", "."))
            found[name] = max(function.complexity, found.get(name, 0))
    return found


def public_names(package: Path) -> dict[str, list[str]]:
    """The names that each facade (a folder with an ``__init__.pyi``) exports."""
    found: dict[str, list[str]] = {}
    for stub in sorted(package.rglob("__init__.pyi")):
        imports = [
            node for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ImportFrom)
        ]
        facade = stub.parent.relative_to(package.parent).as_posix()
        found[facade] = [alias.asname or alias.name for node in imports for alias in node.names]
    return found


def parameters(package: Path) -> Measured:
    """Number of parameters of each function that has more than one.

    Keyword-only options are left out where a facade exports the function, or it is a command.
    """
    exported = {name for names in public_names(package).values() for name in names}
    found: Measured = {}
    for path in modules(package):
        for owner, node in functions(ast.parse(path.read_text()).body):
            given = node.args.posonlyargs + node.args.args
            method = owner and not any(_is_static(mark) for mark in node.decorator_list)
            count = len(given) - bool(method)
            if not (node.name in exported or "cli" in path.relative_to(package).parts):
                count += len(node.args.kwonlyargs)
            name = key(path, f"{owner}.{node.name}" if owner else node.name)
            found[name] = max(count, found.get(name, 0))
    return found


def functions(body: Iterable[ast.stmt], owner: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Each function with the class that holds it, or ""; functions inside functions are theirs."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from functions(node.body, node.name)
        elif isinstance(node, ast.FunctionDef):
            yield owner, node


def _is_static(mark: ast.expr) -> bool:
    return isinstance(mark, ast.Name) and mark.id == "staticmethod"


def above(measured: Measured, limit: int) -> Measured:
    """What is above the limit, largest first."""
    return {name: value for name, value in ranked(measured) if value > limit}


def ranked(measured: Measured) -> list[tuple[str, int]]:
    """Names with their values, largest first and then by name."""
    return sorted(measured.items(), key=lambda item: (-item[1], item[0]))


def read(text: str) -> Measured:
    """The rows of a table of exceptions."""
    return {row["name"]: int(row["value"]) for row in csv.DictReader(io.StringIO(text))}


def written(measured: Measured) -> str:
    """A table of exceptions as text."""
    lines = io.StringIO()
    table = csv.writer(lines, lineterminator="\n")
    table.writerows([("name", "value"), *ranked(measured)])
    return lines.getvalue()


def faults(measured: Measured, allowed: Measured, limit: int) -> list[str]:
    """What is above the limit and no exception, or more than it; exceptions no longer needed.

    >>> faults({"a.py: f": 19, "a.py: g": 18}, {"a.py: g": 20, "a.py: h": 16}, 15)
    ['a.py: f is 19, above 15', 'a.py: g is 18: lower its row from 20', 'a.py: h: remove its row']
    """
    texts: list[str] = []
    for name, value in above(measured, limit).items():
        if value > allowed.get(name, limit):
            texts.append(f"{name} is {value}, above {allowed.get(name, limit)}")
        elif value < allowed[name]:
            texts.append(f"{name} is {value}: lower its row from {allowed[name]}")
    gone = [name for name in allowed if measured.get(name, 0) <= limit]
    return texts + [f"{name}: remove its row" for name in gone]


def risen(now: Measured, earlier: Measured) -> list[str]:
    """Rows of a table of exceptions that an earlier version of it lacks, or has with a lower value.

    >>> risen({"a.py: f": 17, "a.py: g": 20}, {"a.py: g": 18})
    ['a.py: f is new', 'a.py: g rose from 18 to 20']
    """
    new = [f"{name} is new" for name in now if name not in earlier]
    return new + [
        f"{name} rose from {earlier[name]} to {value}"
        for name, value in now.items()
        if value > earlier.get(name, value)
    ]


def earlier_versions(table: Path) -> list[Measured]:
    """The table in every commit that changed it; nothing where there is no history."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(table.parent), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    commits = git("log", "--format=%H", "--", table.name).split()
    return [read(git("show", f"{commit}:./{table.name}")) for commit in commits]


def limited(package: Path) -> dict[str, tuple[Measured, int]]:
    """Name of each table of exceptions to what is measured and the limit."""
    names = {
        facade: len(names)
        for facade, names in public_names(package).items()
        if not facade.startswith("paperlib/reproduction")  # which nobody installs
    }
    return {
        "complexity": (complexities(package), MOST_COMPLEXITY),
        "parameters": (parameters(package), MOST_PARAMETERS),
        "public_names": (names, MOST_NAMES),
    }


def price_list(root: Path) -> list[str]:
    """Syntax nodes (statements and expressions) by room, and lines of every other source."""
    package = root / "paperlib"
    nodes: Counter[str] = Counter()
    for path in modules(package):
        room = path.relative_to(package).parts[0]
        tree = ast.walk(ast.parse(path.read_text()))
        nodes[room] += sum(isinstance(node, ast.stmt | ast.expr) for node in tree)
    rows = [f"{room:<24}{count:>8,}" for room, count in ranked(nodes)]
    total = f"{'paperlib':<24}{sum(nodes.values()):>8,}"
    return ["syntax nodes of each room", *rows, total, "", *_other_sources(root)]


def _other_sources(root: Path) -> Iterator[str]:
    tracked = subprocess.run(
        ["git", "-C", str(root), "ls-files", "paperlib", "book", "notebooks"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    yield "lines of other sources"
    for kind, patterns in SOURCES.items():
        files = [root / name for name in tracked if any(Path(name).match(p) for p in patterns)]
        yield f"{kind:<24}{sum(len(path.read_text().splitlines()) for path in files):>8,}"


def main() -> int:
    """Print the price list, then the faults; with ``--update`` lower the tables of exceptions."""
    found: list[str] = []
    for name, (measured, limit) in limited(ROOT / "paperlib").items():
        table = LIMITS / f"{name}.csv"
        if "--update" in sys.argv:
            allowed = read(table.read_text())
            rows = {
                row: min(value, allowed[row])
                for row, value in above(measured, limit).items()
                if row in allowed
            }
            table.write_text(written(rows))
        allowed = read(table.read_text())
        found += [f"{name}: {text}" for text in faults(measured, allowed, limit)]
        for earlier in earlier_versions(table):
            found += [f"{name}: {text}" for text in risen(allowed, earlier)]
    print("\n".join(price_list(ROOT)))
    for text in dict.fromkeys(found):
        print(text, file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
