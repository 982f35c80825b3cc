"""The directive ``modules``: document every module of a package, so that a new one cannot be forgotten."""

import importlib
import pkgutil

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective


def source(package: str) -> str:
    """The automodule directives for all modules below ``package``, those of its packages included.

    >>> print(source("paperlib.core").splitlines()[0])
    .. automodule:: paperlib.core.checks
    """
    blocks = []
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        blocks.append(f".. automodule:: {module.name}\n   :members:\n\n")
    return "".join(blocks)


class Modules(SphinxDirective):
    """``.. modules:: package``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Parse the generated directives in place."""
        (package,) = self.arguments
        text = source(package)
        shown(self.env)[self.env.docname] = (package, text)
        container = nodes.Element()
        lines = StringList(text.splitlines(), source=package)
        self.state.nested_parse(lines, self.content_offset, container)
        return container.children


def shown(env: BuildEnvironment) -> dict[str, tuple[str, str]]:
    """Page to the package it shows and the directives made for it; kept between builds."""
    return vars(env).setdefault("modules_shown", {})


def outdated(app: Sphinx, env: BuildEnvironment, *_: object) -> list[str]:
    """Pages of packages that have gained or lost a module."""
    return [page for page, (package, text) in shown(env).items() if source(package) != text]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("modules", Modules)
    app.connect("env-get-outdated", outdated)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
