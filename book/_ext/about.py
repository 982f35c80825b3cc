"""What a page says of itself: tags to cite and to share it, and its footer with version and a way
to answer.

Two settings in _config.yml are empty by default: `html.baseurl`, the address of the published book,
and `answer_url`, where readers answer a page (``{page}`` in it is the page). What needs them is
then left out.
"""

import re
from functools import cache
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml
from docutils import nodes
from sphinx.application import Sphinx

CITATION = Path(__file__).parents[2] / "CITATION.cff"
SENTENCE_END = re.compile(r"(?<=[.?!])\s+(?=[A-Z])")


def first_sentence(doctree: nodes.document) -> str:
    """The first sentence of a page that is more than a label and holds no LaTeX; empty without one.

    >>> from docutils.core import publish_doctree
    >>> first_sentence(publish_doctree("Why?\\n\\nHow much does a\\nmodel reveal? We asked."))
    'How much does a model reveal?'
    """
    for paragraph in doctree.findall(nodes.paragraph):
        for sentence in SENTENCE_END.split(" ".join(paragraph.astext().split())):
            if sentence.count(" ") > 3 and "\\" not in sentence:  # "The question." opens many pages
                return sentence
    return ""


@cache
def citation() -> dict[str, Any]:
    """What CITATION.cff says; read once, as every page needs it."""
    return yaml.safe_load(CITATION.read_text(encoding="utf-8"))


def describe(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Add tags and footer to a page that has text; those of search and index have none."""
    if doctree is None:
        return
    cited = citation()
    base = app.config.html_baseurl.rstrip("/")
    title = app.env.titles[pagename].astext()
    description = first_sentence(doctree)
    address = f"{base}/{app.builder.get_target_uri(pagename)}" if base else ""
    tags = [
        ("name", "citation_title", title),
        ("name", "citation_inbook_title", app.config.html_title),
        *(("name", "citation_author", author["name"]) for author in cited["authors"]),
        ("name", "citation_publication_date", f"{cited['date-released']:%Y/%m/%d}"),
        ("name", "citation_public_url", address),
        ("name", "description", description),
        ("property", "og:title", title),
        ("property", "og:site_name", app.config.html_title),
        ("property", "og:type", "article"),
        ("property", "og:description", description),
        ("property", "og:url", address),
        ("property", "og:image", f"{base}/_static/book.png" if base else ""),
    ]
    written = [
        f'<meta {kind}="{name}" content="{escape(text)}">' for kind, name, text in tags if text
    ]
    context["metatags"] = "\n".join([context.get("metatags", ""), *written])
    footer = f'paperlib {cited["version"]}, <a href="{context["pathto"]("changelog")}">changes</a>'
    answer = app.config.answer_url.replace("{page}", quote(pagename, safe=""))
    if answer:
        footer += f' · <a href="{escape(answer)}">Answer this page</a>'
    context["theme_extra_footer"] = f"<p>{footer}</p>"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_config_value("answer_url", "", "html", [str])
    app.connect("html-page-context", describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
