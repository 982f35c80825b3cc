"""Fills a ``div`` of the class used-in: names of the reference, each with the pages whose code uses
it.
"""

import ast
import json
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from docutils import nodes
from sphinx.application import ENV_PICKLE_FILENAME, Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

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
    text, trees = path.read_text(encoding="utf-8"), list[ast.Module]()
    cells = json.loads(text)["cells"] if path.suffix == ".ipynb" else []
    blocks = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    for block in blocks if cells else BLOCK.findall(text):
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
    used, called, made = set[tuple[str, str]](), set[str](), set[str]()
    for node in (node for tree in trees for node in ast.walk(tree)):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                used |= {(module, one.name) for one in names}
                made |= {one.asname or one.name for one in names}
            case ast.Attribute(value=ast.Name(id=room), attr=name) if room in ROOMS:
                used.add((f"paperlib.{room}", name))
            case ast.Call(func=ast.Name(id=name)):
                called.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.FunctionDef(name=name):
                made.add(name)
    return {one for one in used if one[0].startswith("paperlib")} | {
        ("paperlib", n) for n in called - made
    }


def documented(names: Iterable[str], module: str, name: str) -> str | None:
    """Of full names the one that ``name`` of a module or room stands for: the nearest to the
    package.

    >>> names = ["paperlib.audits.deep.audit", "paperlib.audits.audit", "paperlib.core.Coins"]
    >>> [documented(names, module, "audit") for module in ("paperlib", "paperlib.papers")]
    ['paperlib.audits.audit', None]
    """
    own = [one for one in names if one.startswith(f"{module}.") and one.endswith(f".{name}")]
    return min(own, key=lambda one: (one.count("."), one), default=None)


def fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the list in its place: a name, then links to pages."""
    for place in [one for one in doctree.findall(nodes.container) if "used-in" in one["classes"]]:
        listed, pages = nodes.bullet_list(), dict[str, list[str]]()
        offered = {
            name: one
            for name, one in app.env.domains["py"].data["objects"].items()
            if one[2] in KINDS
        }
        ending = dict[str, list[str]]()
        for name in offered:
            ending.setdefault(name.rpartition(".")[2], []).append(name)
        for page in sorted(app.env.found_docs):
            used = names_used(trees_of(Path(app.env.doc2path(page))))
            for name in {documented(ending.get(one[1], ()), *one) for one in used} - {None}:
                pages.setdefault(str(name), []).append(page)
        for name in sorted(pages, key=lambda one: one.rpartition(".")[2].casefold()):
            links = [(offered[name][0], offered[name][1], nodes.literal(text=name.split(".")[-1]))]
            links += [(page, "", nodes.Text(app.env.titles[page].astext())) for page in pages[name]]
            words = nodes.paragraph()
            for at, link in enumerate(links):
                words += [
                    nodes.Text(("", ": ", ", ")[min(at, 2)]),
                    make_refnode(app.builder, docname, *link),
                ]
            listed += nodes.list_item("", words)
        place[:] = [listed]


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
