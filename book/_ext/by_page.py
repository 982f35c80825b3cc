"""Tables and figures numbered by page: Table 12.3 is the third on the twelfth page after the first."""

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def pages_in_order(includes: dict[str, list[str]], page: str) -> list[str]:
    """Pages in the order of the table of contents, from ``page`` on.

    >>> pages_in_order({"index": ["a", "c"], "a": ["b"]}, "index")
    ['index', 'a', 'b', 'c']
    """
    return [page, *(one for below in includes.get(page, []) for one in pages_in_order(includes, below))]


def renumber(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Number anew on each page, after Sphinx has numbered through the book; the pages that changed."""
    order = pages_in_order(env.toctree_includes, env.config.root_doc)
    plain, last, anew = env.toc_fignumbers, vars(env).get("page_fignumbers", {}), {}
    for page, kinds in plain.items():
        place = (order.index(page),)[: page != env.config.root_doc]
        anew[page] = {kind: {one: (*place, n) for n, one in enumerate(ids, 1)} for kind, ids in kinds.items()}
    env.toc_fignumbers = anew
    vars(env).update(plain_fignumbers=plain, page_fignumbers=anew)
    return [page for page, numbers in anew.items() if numbers != last.get(page)]


def restore(app: Sphinx, env: BuildEnvironment, *_: object) -> None:
    """Give Sphinx back its own numbers of the last build, with which it compares the new ones."""
    env.toc_fignumbers = vars(env).get("plain_fignumbers", {})


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("env-before-read-docs", restore)
    app.connect("env-get-updated", renumber, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
