"""The PDF has bookmarks, opens what is folded, leaves the reference out, and is linked once it is there."""

import html
import os
import re
import shutil
from pathlib import Path

import pytest
from print_book import NAME, main

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
    pdf = (book / NAME).read_bytes()
    assert [title in pdf for title in (b"(First page)", b"(Folded part)", b"(Left out)")] == [
        True,
        True,
        False,
    ]
    assert (book / "index.html").read_text() == "<a class='door' data-pdf href='paperlib.pdf'>PDF</a>"


def titles(book: Path) -> list[str]:
    """First headings of the pages that are printed."""
    pages = [page for page in book.rglob("*.html") if not {"api", "_static"} & set(page.parts)]
    found = (
        re.search(r"<h1>((?:(?!<h1>).)*?)<a class=.headerlink", page.read_text("utf-8"), re.DOTALL)
        for page in pages
    )
    return [html.unescape(re.sub(r"<[^>]+>", "", match[1])) for match in found if match]


def unmarked(pdf: bytes, names: list[str]) -> list[str]:
    """Titles without a bookmark: Chromium writes them as text, or as UTF-16 in hexadecimal digits."""
    marks = set(re.findall(rb"/Title (\((?:[^()\\]|\\.)*\)|<[0-9A-F]+>)", pdf))
    plain = {
        re.sub(rb"\\(.)", rb"\1", mark[1:-1]).decode("latin-1") for mark in marks if mark.startswith(b"(")
    }
    wide = {bytes.fromhex(mark[1:-1].decode()).decode("utf-16") for mark in marks if mark.startswith(b"<")}
    return sorted(set(names) - {mark.replace("\xa0", " ") for mark in plain | wide})


def test_the_printed_book_is_small_has_bookmarks_and_is_linked(book):
    pdf = book / NAME
    if not pdf.is_file() and os.environ.get("CI") != "true":
        pytest.skip("no PDF: make pdf prints it")
    printed = pdf.read_bytes()
    assert len(printed) < 20_000_000
    assert b"/Outlines" in printed
    assert len(names := titles(book)) > 10
    assert unmarked(printed, names) == []
    first = (book / "index.html").read_text(encoding="utf-8")
    assert re.search(rf"<a\b(?![^>]*\bhidden\b)[^>]*href=.{re.escape(NAME)}.", first)


def test_a_title_without_a_bookmark_is_seen():
    pdf = b"/Title (On bounds \\(one run\\)) /Title <FEFF00450070007303B5>"
    assert unmarked(pdf, ["On bounds (one run)", "Epsε", "Left out"]) == ["Left out"]
