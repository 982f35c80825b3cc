"""No page of the built book is long: words in its HTML, read without a browser."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

MOST_WORDS = 2_500
NOT_COUNTED = "pre, td, th, script, style, .headerlink, .expanded"
"""Code, cells of tables, marks that lead to a heading, and the second label of a switch that shows
code.
"""
BLOCKS = ["caption", "dd", "div", "dt", "figcaption", "h1", "h2", "h3", "h4", "li", "p", "summary"]
FREE = {"changelog.html", "genindex.html", "search.html"}
"""The list of all changes, which grows with each release, and what Sphinx generates."""


def words(html: str) -> int:
    """Words of the article, folded ones and signatures of the reference included; a formula counts
    as one.
    """
    article = BeautifulSoup(html, "html.parser").select_one("article.bd-article")
    if article is None:
        return 0
    for tag in article.select(NOT_COUNTED):
        tag.decompose()
    for formula in article.select(".math"):
        formula.string = "x"
    for block in article.find_all(BLOCKS):
        block.append(
            " "
        )  # words of two blocks are two, also where no space stands between the tags
    return sum(any(letter.isalnum() for letter in word) for word in article.get_text().split())


def test_no_page_has_more_words_than_a_reader_takes_at_once(page: Path, book: Path):
    if str(page.relative_to(book)) in FREE:
        pytest.skip("a list that grows by itself")
    count = words(page.read_text(encoding="utf-8"))
    assert count <= MOST_WORDS, (
        f"{page.relative_to(book)} has {count:,} words, of at most {MOST_WORDS:,}"
    )


def test_what_counts_as_a_word():
    text = (
        "<p>Six words of <b>prose</b>,<span> and – one</span></p><details><p>folded</p></details>"
        '<h2>title<a class="headerlink">#</a></h2><div class="math">\\(a + '
        "b\\)</div><dl><dt>f(x)</dt></dl>"
    )
    code = (
        "<pre>not counted</pre><table><caption>counted</caption>"
        "<tr><th>no</th><td>1</td></tr></table>"
    )
    html = f'<p>outside</p><article class="bd-article">{text}{code}</article>'
    assert words(html) == 11
    assert words("<article><p>of another theme</p></article>") == 0
