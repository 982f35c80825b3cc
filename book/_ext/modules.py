"""The directives ``names`` and ``modules``: a table of what a page documents, then everything in
full.
"""

import importlib.util
import inspect
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

LONGEST_VALUE = 60
"""Characters of the longest value of a constant that is shown."""


class Reference(SphinxDirective):
    """What both directives share: a table of two columns, and parsing what was written for
    autodoc.
    """

    def row(self, link: str, thing: Any) -> str:
        """A row of the table: a link, and the first sentence of a docstring, treated as autodoc
        treats it.
        """
        lines = first_sentence(thing).splitlines()
        self.env.app.emit("autodoc-process-docstring", "function", link, thing, None, lines)
        return f"   * - {link}\n     - {' '.join(lines)}\n"

    def parsed(self, rows: list[str], text: str) -> list[nodes.Node]:
        """The nodes of a table and of the directives after it."""
        lines = f".. list-table::\n   :widths: auto\n\n{''.join(rows)}\n{text}".splitlines()
        container = nodes.Element()
        self.state.nested_parse(
            StringList(lines, source="reference"), self.content_offset, container
        )
        return container.children


class Names(Reference):
    """``.. names:: package``, then one name a line.

    A name that the package does not export stands behind its module, such as ``audit.Result``.
    """

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Make the table and the directives."""
        (package,) = self.arguments
        rows = list[str]()
        in_detail = list[str]()
        for line in self.content:
            if not line:
                continue
            path, _, name = f"{package}.{line}".rpartition(".")
            thing = getattr(importlib.import_module(path), name)
            rows.append(self.row(f":py:obj:`{name} <{path}.{name}>`", thing))
            in_detail.append(in_full(path, name))
        return self.parsed(rows, "".join(in_detail))


class Modules(Reference):
    """``.. modules:: package``, so that a new module cannot be forgotten.

    ``:internal:`` leaves out what the package, or the one it names, offers, and what stands on
    another page by ``names``. ``:without:`` leaves
    out modules and packages in it that have another page, and ``:only:`` makes that page.
    """

    required_arguments = 1
    option_spec = {  # noqa: RUF012
        "internal": directives.unchanged,
        "without": directives.unchanged_required,
        "only": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """Make the table and the directives."""
        package = self.arguments[0]
        chosen = (self.options.get("without", "").split(), self.options.get("only", "").split())
        names = below(package, *chosen)
        shown(self.env)[self.env.docname] = (package, chosen, names)
        modules = [importlib.import_module(name) for name in names]
        rows: list[str] = []
        for name, module in zip(names, modules, strict=True):
            short_name = name.removeprefix(package)[1:]
            rows.append(self.row(f":py:mod:`{short_name} <{name}>`", module))
        internal = self.options.get("internal")
        if internal is None:
            return self.parsed(rows, "".join(module_in_full(name, []) for name in names))
        offered = dir(importlib.import_module(internal or package))
        pages = [
            page.read_text(encoding="utf-8") for page in Path(self.env.srcdir).rglob("api/**/*.md")
        ]
        in_detail = [module_in_full(name, offered + named(pages, name)) for name in names]
        return self.parsed(rows, "".join(in_detail))


NAMES = re.compile(r"^\.\. names:: (\S+)\n\n((?:   [\w.]+\n)+)", re.MULTILINE)


def named(pages: Iterable[str], module: str) -> list[str]:
    """Names of a module that pages document by ``names``.

    >>> named([".. names:: paperlib\\n\\n   losses\\n   core.Coins\\n"], "paperlib.core")
    ['Coins']
    """
    found = list[str]()
    for page in pages:
        for package, lines in NAMES.findall(page):
            for line in lines.split():
                path, _, name = f"{package}.{line}".rpartition(".")
                if path == module:
                    found.append(name)
    return sorted(found)


def in_full(package: str, name: str) -> str:
    """The autodoc directive of a name.

    >>> print(in_full("paperlib.bounds", "exposure").rstrip())
    .. autofunction:: paperlib.bounds.exposure
    """
    thing = getattr(importlib.import_module(package), name)
    if inspect.isclass(thing):
        kind = "exception" if issubclass(thing, Exception) else "class"
        return f".. auto{kind}:: {package}.{name}\n   :members:\n\n"
    return f".. autofunction:: {package}.{name}\n\n"


def module_in_full(name: str, but: list[str]) -> str:
    """The heading and the autodoc directive of a module, some of its members left out."""
    excluded = f"   :exclude-members: {', '.join(but)}\n" if but else ""
    return f".. rubric:: {name}\n\n.. automodule:: {name}\n   :members:\n{excluded}\n"


def below(package: str, without: Collection[str] = (), only: Collection[str] = ()) -> list[str]:
    """Names of the modules of a package and of its packages, read from its files: none is imported.

    An empty ``only`` keeps all.

    >>> below("paperlib.core")[:2]
    ['paperlib.core.checks', 'paperlib.core.coins']
    >>> below("paperlib.attacks", ["language", "learned"])[:2]
    ['paperlib.attacks.dataset_inference', 'paperlib.attacks.gradients']
    >>> below("paperlib.attacks", only=["gradients"])
    ['paperlib.attacks.gradients']
    """
    top, *rest = package.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None or spec.origin is None:
        raise ValueError(f"modules: no package {top!r}")
    folder = Path(spec.origin).parent.joinpath(*rest)
    names: list[str] = []
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).with_suffix("").parts
        is_chosen = parts[0] not in without and (not only or parts[0] in only)
        if is_chosen and parts[-1] != "__init__":
            names.append(".".join([package, *parts]))
    return sorted(names)


def first_sentence(thing: Any) -> str:
    """The first paragraph of a docstring.

    >>> first_sentence(first_sentence)
    'The first paragraph of a docstring.'
    """
    return (inspect.getdoc(thing) or "").partition("\n\n")[0]


def shown(env: BuildEnvironment) -> dict[str, tuple[str, tuple[list[str], list[str]], list[str]]]:
    """Page to its package, what it leaves out and keeps, and the modules that it had; kept between
    builds.
    """
    return vars(env).setdefault("modules_shown", {})


def outdated(app: Sphinx, env: BuildEnvironment, *_: object) -> list[str]:
    """Pages of packages that have gained or lost a module."""
    return [
        page
        for page, (package, chosen, names) in shown(env).items()
        if below(package, *chosen) != names
    ]


def hide_long_value(app: Sphinx, domain: str, kind: str, content: addnodes.desc_content) -> None:
    """Leave out the value of a constant that would fill lines."""
    for note in list(content.parent.findall(addnodes.desc_annotation)):
        if note.astext().startswith(" = ") and len(note.astext()) > LONGEST_VALUE:
            note.parent.remove(note)


def shorten_signatures(app: Sphinx, config: Config) -> None:
    """Names without their module, and one argument a line where a signature is long."""
    config.add_module_names = False
    config.maximum_signature_line_length = 45


def setup(app: Sphinx) -> dict[str, bool | int]:
    """Register with Sphinx."""
    app.add_directive("names", Names)
    app.add_directive("modules", Modules)
    app.connect("config-inited", shorten_signatures)
    app.connect("object-description-transform", hide_long_value)
    app.connect("env-get-outdated", outdated)
    return {"env_version": 5, "parallel_read_safe": False, "parallel_write_safe": True}
