"""The PDF has bookmarks, opens what is folded, leaves the reference out, and is linked once it is
there.
"""

import html
import os
import re
import shutil
from pathlib import Path

import pikepdf
import pytest
from print_book import NAME, every_item, main

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="no Chromium on the PATH"),
]

PRINTED = """<html lang="en"><head><title>Book</title></head><body><section><h1>Book</h1>
<li class="toctree-l1"><a href="#document-api/core">In the reference</a></li>
<span id="document-one"></span><section><h2>First page</h2>
<details><summary>More</summary><h3>Folded part</h3></details></section>
<span id="document-api/core"></span><section><h2>Left out</h2></section>
</section></body></html>"""


def test_the_pdf_has_bookmarks_and_its_link_is_shown(tmp_path):
    page, book = tmp_path / "single.html", tmp_path / "html"
    page.write_text(PRINTED)
    book.mkdir()
    (book / "index.html").write_text("<a class='door' data-pdf hidden href='paperlib.pdf'>PDF</a>")
    assert main([str(page), str(book)]) == 0
    assert bookmarks(book / NAME) == ["Book", "First page", "Folded part"]
    assert (
        book / "index.html"
    ).read_text() == "<a class='door' data-pdf href='paperlib.pdf'>PDF</a>"


def titles(book: Path) -> list[str]:
    """First headings of the pages that are printed."""
    pages = [page for page in book.rglob("*.html") if not {"api", "_static"} & set(page.parts)]
    found = (
        re.search(r"<h1>((?:(?!<h1>).)*?)<a class=.headerlink", page.read_text("utf-8"), re.DOTALL)
        for page in pages
    )
    return [html.unescape(re.sub(r"<[^>]+>", "", match[1])) for match in found if match]


def bookmarks(path: Path) -> list[str]:
    """The titles of all bookmarks."""
    with pikepdf.open(path) as pdf, pdf.open_outline() as outline:
        return [item.title.replace("\xa0", " ") for item in every_item(outline.root)]


def test_the_printed_book_is_small_has_bookmarks_and_is_linked(book):
    pdf = book / NAME
    if not pdf.is_file() and os.environ.get("CI") != "true":
        pytest.skip("no PDF: make pdf prints it")
    assert pdf.stat().st_size < 20_000_000
    assert len(names := titles(book)) > 10
    assert sorted(set(names) - set(bookmarks(pdf))) == []
    first = (book / "index.html").read_text(encoding="utf-8")
    assert re.search(rf"<a\b(?![^>]*\bhidden\b)[^>]*href=.{re.escape(NAME)}.", first)
