"""Fills each ``div`` of the class used-in: names of the reference, each with the pages whose code
uses it.

A ``div`` with the classes of-bounds and of-core lists the names of these packages.

sphinx-codeautolink links the other way, from code to the reference, and found one name of two here.
"""

import ast
import json
import re
from collections.abc import Iterable
from contextlib import suppress
from itertools import chain
from pathlib import Path

from docutils import nodes
from sphinx.application import ENV_PICKLE_FILENAME, Sphinx
from sphinx.domains.python import ObjectEntry
from sphinx.environment import BuildEnvironment
from sphinx.util.logging import getLogger
from sphinx.util.nodes import make_refnode

LOGGER = getLogger(__name__)

ROOMS = {
    "attacks",
    "audits",
    "bounds",
    "core",
    "data",
    "generators",
    "models",
    "report",
    "validity",
}
KINDS = {"function", "class", "exception", "data"}
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def trees_of(path: Path) -> list[ast.Module]:
    """The code cells of a notebook, or the Python blocks of a page, but those that are no plain
    Python.
    """
    text = path.read_text(encoding="utf-8")
    cells = json.loads(text)["cells"] if path.suffix == ".ipynb" else []
    if cells:
        blocks = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    else:
        blocks = BLOCK.findall(text)
    trees: list[ast.Module] = []
    for block in blocks:
        with suppress(SyntaxError):
            trees.append(ast.parse(block))
    return trees


def names_used(trees: list[ast.Module]) -> set[tuple[str, str]]:
    """Module and name of what code imports from paperlib, asks of a room, or calls without making
    it.

    >>> code = "from paperlib import losses as f; audits.audit_text(x); coins(1); game = game(2)"
    >>> sorted(names_used([ast.parse(code)]))
    [('paperlib', 'coins'), ('paperlib', 'losses'), ('paperlib.audits', 'audit_text')]
    """
    used: set[tuple[str, str]] = set()
    called: set[str] = set()
    made: set[str] = set()  # names that the code itself imports or defines
    for node in chain.from_iterable(map(ast.walk, trees)):
        match node:
            case ast.ImportFrom(module=str(module), names=aliases):
                used |= {(module, alias.name) for alias in aliases}
                made |= {alias.asname or alias.name for alias in aliases}
            case ast.Attribute(value=ast.Name(id=room), attr=name) if room in ROOMS:
                used.add((f"paperlib.{room}", name))
            case ast.Call(func=ast.Name(id=name)):
                called.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.FunctionDef(name=name):
                made.add(name)
    ours = {(module, name) for module, name in used if module.startswith("paperlib")}
    return ours | {("paperlib", name) for name in called - made}


def documented(names: Iterable[str], module: str, name: str) -> str | None:
    """Of full names the one that ``name`` of a module or room stands for: the nearest to the
    package.

    >>> names = ["paperlib.audits.deep.audit", "paperlib.audits.audit", "paperlib.core.Coins"]
    >>> [documented(names, module, "audit") for module in ("paperlib", "paperlib.words")]
    ['paperlib.audits.audit', None]
    """
    inside = [full for full in names if full.startswith(f"{module}.") and full.endswith(f".{name}")]
    return min(inside, key=lambda full: (full.count("."), full), default=None)


def fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the lists in their places: a name, then links to pages."""
    containers = [box for box in doctree.findall(nodes.container) if "used-in" in box["classes"]]
    if not containers:
        return
    offered: dict[str, ObjectEntry] = {
        name: entry
        for name, entry in app.env.domains["py"].data["objects"].items()
        if entry.objtype in KINDS
    }
    pages = pages_by_name(app, offered)
    for container in containers:
        packages = {name.removeprefix("of-") for name in container["classes"]}
        names = [name for name in pages if package_of(name) in packages]
        listed = nodes.bullet_list()
        for name in sorted(names, key=lambda name: name.rpartition(".")[2].casefold()):
            listed += entry_of(app, docname, name, offered[name], pages.pop(name))
        container[:] = [listed] if names else [nodes.paragraph(text="None.")]
    if pages:
        LOGGER.warning("used-in: no list has the packages of %s", ", ".join(sorted(pages)))


def package_of(name: str) -> str:
    """The package of a full name: bounds of paperlib.bounds.audit_one_run."""
    return name.split(".")[1]


def entry_of(
    app: Sphinx, docname: str, name: str, entry: ObjectEntry, pages: list[str]
) -> nodes.list_item:
    """A name that the reference documents, by its last part, and its pages, with links from
    ``docname``.
    """
    label = nodes.literal(text=name.split(".")[-1])
    words = nodes.paragraph()
    words += make_refnode(app.builder, docname, entry.docname, entry.node_id, label)
    for index, page in enumerate(pages):
        words += nodes.Text(", " if index else ": ")
        title = nodes.Text(app.env.titles[page].astext())
        words += make_refnode(app.builder, docname, page, "", title)
    return nodes.list_item("", words)


def pages_by_name(app: Sphinx, offered: Iterable[str]) -> dict[str, list[str]]:
    """Each full name that some page's code uses to these pages, sorted."""
    ending: dict[str, list[str]] = {}
    for name in offered:
        ending.setdefault(name.rpartition(".")[2], []).append(name)
    pages: dict[str, list[str]] = {}
    for page in sorted(app.env.found_docs):
        used = names_used(trees_of(Path(app.env.doc2path(page))))
        full_names = {documented(ending.get(name, ()), module, name) for module, name in used}
        for full_name in full_names - {None}:
            pages.setdefault(str(full_name), []).append(page)
    return pages


def note_reading(app: Sphinx, env: BuildEnvironment, pages: list[str]) -> None:
    """Keep for `outdated` whether this build reads any page."""
    vars(app)["reads_pages"] = bool(pages)


def outdated(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """The page with the list, where a page was read now, or in a build that ended before it was
    written.
    """
    listing = [page for page in env.found_docs if page.endswith("used_in")]
    saved = Path(app.doctreedir) / ENV_PICKLE_FILENAME
    return [page for page in listing if vars(app)["reads_pages"] or not newer(app, page, saved)]


def newer(app: Sphinx, page: str, saved: Path) -> bool:
    """Whether a page was written after what Sphinx saved of the last reading."""
    written = Path(app.outdir) / f"{page}.html"
    named = app.builder.name == "html" and written.is_file()
    return named and written.stat().st_mtime_ns >= saved.stat().st_mtime_ns


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("doctree-resolved", fill)
    app.connect("env-before-read-docs", note_reading)
    app.connect("env-get-updated", outdated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
