"""The text of every page in one script, from which the search page shows excerpts without a
network.

Browsers let no script read files, so Sphinx's own excerpts fail where a book is opened from a
folder.
"""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

from sphinx.application import Sphinx

MOST = 100_000  # characters of one page
HEAD, TAIL = "const PAGE_TEXTS = ", ";\n"
SILENT = {"script", "style", "button", "svg"}
DISPLAYED = re.compile(r"\\\[.*?\\\]")  # formulas on lines of their own, as LaTeX
BLOCKS = {
    "p",
    "h1",
    "h2",
    "h3",
    "li",
    "td",
    "th",
    "dt",
    "dd",
    "pre",
    "figcaption",
    "caption",
    "summary",
}
SYMBOLS = {r"\(": "", r"\)": "", r"\varepsilon": "ε", r"\delta": "δ", r"\le ": "≤ ", r"\ge ": "≥ "}


class ArticleText(HTMLParser):
    """Collects the words of a page's article, without what no reader reads."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._inside = False  # of the article
        self._silent = 0  # number of open elements that no reader reads

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside |= tag == "article" and "bd-article" in (dict(attrs).get("class") or "")
        self._silent += tag in SILENT

    def handle_endtag(self, tag: str) -> None:
        self._inside &= tag != "article"
        self._silent -= tag in SILENT
        if tag in BLOCKS:
            self.words.append(" ")

    def handle_data(self, data: str) -> None:
        if self._inside and not self._silent and data != "#":
            self.words.append(data)


def article_text(html: str) -> str:
    r"""The words of a page on one line, at most ``MOST`` characters.

    >>> page = r'<nav>x</nav><article class="bd-article"><h1>On<a>#</a></h1>\(\delta\)</article>'
    >>> article_text(page)
    'On δ'
    """
    parser = ArticleText()
    parser.feed(html)
    text = " ".join("".join(parser.words).split())
    text = DISPLAYED.sub("…", text)
    for written, symbol in SYMBOLS.items():
        text = text.replace(written, symbol)
    return text[:MOST]


def write_texts(app: Sphinx, error: Exception | None) -> None:
    """Write the texts of all pages beside the scripts."""
    if error or app.builder.name != "html":
        return
    out = Path(app.outdir)
    script = out / "_static" / "page_texts.js"
    before, since = kept_texts(script)
    texts: dict[str, str] = {}
    for page in sorted(app.env.found_docs):
        path = out / f"{page}.html"
        if not path.is_file():
            continue
        if page in before and path.stat().st_mtime_ns < since:
            texts[page] = before[page]
        else:
            texts[page] = article_text(path.read_text("utf-8"))
    written = json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
    script.write_text(f"{HEAD}{written}{TAIL}", encoding="utf-8")


def kept_texts(script: Path) -> tuple[dict[str, str], int]:
    """The texts of the last build, and the time in ns when they were written; none if this file is
    newer.
    """
    if not script.is_file():
        return {}, 0
    since = script.stat().st_mtime_ns
    if since <= Path(__file__).stat().st_mtime_ns:
        return {}, 0
    texts = script.read_text("utf-8").removeprefix(HEAD).removesuffix(TAIL)
    try:
        return json.loads(texts), since
    except ValueError:  # of a build that was killed
        return {}, 0


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("build-finished", write_texts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
