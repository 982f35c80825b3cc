"""Tables and figures numbered by page: Table 12.3 is the third on the twelfth page after the
first.
"""

from typing import cast

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.domains.std import StandardDomain
from sphinx.environment import BuildEnvironment
from sphinx.environment.collectors.toctree import TocTreeCollector


def pages_in_order(includes: dict[str, list[str]], page: str) -> list[str]:
    """Pages in the order of the table of contents, from ``page`` on.

    >>> pages_in_order({"index": ["a", "c"], "a": ["b"]}, "index")
    ['index', 'a', 'b', 'c']
    """
    pages = [page]
    for below in includes.get(page, []):
        pages += pages_in_order(includes, below)
    return pages


def enumerated(env: BuildEnvironment, page: str) -> dict[str, list[str]]:
    """Kind to the identifiers of what Sphinx numbers on a page, in their order."""
    identifiers: dict[str, list[str]] = {}
    for node in env.get_doctree(page).findall(nodes.Element):
        if not node["ids"] or isinstance(node, nodes.section):
            continue
        kind = kind_of(env, node)
        if kind:
            identifiers.setdefault(kind, []).append(node["ids"][0])
    return identifiers


def kind_of(env: BuildEnvironment, node: nodes.Element) -> str | None:
    """What a node counts as, such as ``table``; None where it has no number, as without a
    caption.
    """
    standard = cast(StandardDomain, env.get_domain("std"))
    for domain in env.domains.values():
        if domain is standard and not standard.get_numfig_title(node):
            continue
        kind = domain.get_enumerable_node_type(node)
        if kind:
            return kind
    return None


def kept(env: BuildEnvironment) -> dict[str, dict[str, list[str]]]:
    """Page to its `enumerated`, kept between builds."""
    return vars(env).setdefault("enumerated_on_page", {})


def forget(app: Sphinx, env: BuildEnvironment, page: str) -> None:
    """Leave out a page that is read anew, or is gone."""
    kept(env).pop(page, None)


def number(self: TocTreeCollector, env: BuildEnvironment) -> list[str]:
    """Number each page by itself; the pages whose numbers changed."""
    before = env.toc_fignumbers
    root = env.config.root_doc
    env.toc_fignumbers = {}
    for index, page in enumerate(pages_in_order(env.toctree_includes, root)):
        if page not in kept(env):
            kept(env)[page] = enumerated(env, page)
        prefix = () if page == root else (index,)
        env.toc_fignumbers[page] = {
            kind: numbered(identifiers, prefix) for kind, identifiers in kept(env)[page].items()
        }
    return [page for page, numbers in env.toc_fignumbers.items() if numbers != before.get(page, {})]


def numbered(identifiers: list[str], prefix: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Identifiers with their numbers, from 1 on after the prefix.

    >>> numbered(["a", "b"], (12,))
    {'a': (12, 1), 'b': (12, 2)}
    """
    return {name: (*prefix, number) for number, name in enumerate(identifiers, 1)}


def setup(app: Sphinx) -> dict[str, bool | int]:
    """Register with Sphinx."""
    # Sphinx would number through the book, and for that read all pages from disk in every build.
    TocTreeCollector.assign_figure_numbers = number
    app.connect("env-purge-doc", forget)
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
