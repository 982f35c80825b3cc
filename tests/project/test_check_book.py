"""The book checker accepts a good page and sees each fault it exists for."""

import pytest
from check_book import check, main

GOOD = """<html><head><link rel="stylesheet" href="style.css"><link rel="canonical" href="https://x.org/a">
</head><body><h1 id="top-of-page">Title</h1><a href="https://example.org">out</a>
<a data-pdf hidden href="not-printed.pdf">PDF</a>
<a href="#top-of-page">up</a><a href="b%20c.html#there">other</a>
<img src="x.png" alt="a line"><p>-0.01, 10-0, -0.001, <code>-0</code></p>
</body></html>"""


@pytest.fixture
def book(tmp_path):
    (tmp_path / "style.css").write_text("body { background: url(image.png) }")
    (tmp_path / "b c.html").write_text("<p id='there'>x</p>")
    (tmp_path / "index.html").write_text(GOOD)
    return tmp_path


def test_a_good_book_has_no_problem_but_an_empty_one_and_a_stylesheet_that_loads(book, tmp_path):
    assert check(book) == []
    assert main([str(book)]) == 0
    (tmp_path / "empty").mkdir()
    assert check(tmp_path / "empty")
    (book / "style.css").write_text("@font-face { src: url(https://example.org/f.woff2) }")
    assert [text for _, text in check(book)] == [
        "loads https://example.org/f.woff2 from the network"
    ]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("<script src='https://cdn.example.org/x.js'></script>", "<script> loads"),
        ("<script src='//cdn.example.org/x.js'></script>", "<script> loads"),
        ("<img src='http://example.org/x.png' alt='x'>", "<img> loads"),
        ("<link rel='stylesheet' href='https://example.org/x.css'>", "<link> loads"),
        ("<iframe src='https://example.org'></iframe>", "<iframe> loads"),
        ("<style>@import 'https://example.org/x.css'</style>", "a style loads"),
        ("<p style='background: url(https://example.org/x.png)'>x</p>", "a style loads"),
        ("<a href='missing.html'>x</a>", "missing file: missing.html"),
        ("<a data-pdf href='not-printed.pdf'>PDF</a>", "missing file: not-printed.pdf"),
        ("<a href='#nowhere'>x</a>", "missing anchor: #nowhere"),
        ("<a href='b%20c.html#nowhere'>x</a>", "missing anchor: b%20c.html#nowhere"),
        ("<img src='x.png'>", "image without alt text"),
        ("<p>values (_Buffer | complex)</p>", "spells out a type"),
        ("<img src='x.png' alt=' '>", "image without alt text"),
        ("<p>a gain of -0.00 nats, −0</p>", "zero with a minus: a gain of -0.00"),
        ("<p>/home/someone/data.csv</p>", "path of the building machine"),
    ],
)
def test_a_fault_is_seen(book, capsys, fault, said):
    (book / "index.html").write_text(GOOD.replace("</body>", fault + "</body>"))
    assert main([str(book)]) == 1
    out = capsys.readouterr().out
    assert said in out
    assert "1 problems on 2 pages" in out
