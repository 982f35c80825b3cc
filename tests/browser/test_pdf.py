"""The PDF has bookmarks, opens what is folded, leaves the reference out, and is linked once it is there."""

import shutil

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
