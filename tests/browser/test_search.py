"""The search page, opened as a file: excerpts, prose before the reference, no errors."""

import json

import pytest

pytestmark = pytest.mark.browser

RESULTS = """() => [...document.querySelectorAll("ul.search > li")].map(item => ({
  address: item.querySelector("a").getAttribute("href"),
  symbol: Boolean(item.querySelector("span")),
  excerpt: item.querySelector("p.context")?.innerText ?? "",
  hit: item.querySelector("mark")?.innerText ?? "",
}))"""


def results(tab) -> list[dict]:
    tab.wait_for_function(
        "document.querySelector('.search-summary')?.innerText.startsWith('Search finished')"
    )
    tab.wait_for_function(
        "document.querySelectorAll('ul.search > li:not([data-excerpt])').length === 0"
    )
    return tab.evaluate(RESULTS)


@pytest.mark.parametrize("query", ["privacy", "lower bound", "audit_one_run"])
@pytest.mark.parametrize(("screen", "scheme"), [("wide", "light"), ("phone", "dark")])
def test_results_have_excerpts_and_prose_comes_first(visit, book, query, screen, scheme):
    tab = visit(book / "search.html", query=f"?q={query}", screen=screen, scheme=scheme)
    found = results(tab)
    assert (tab.outside, tab.errors) == ([], [])
    reference = [one["symbol"] or one["address"].startswith("api/") for one in found]
    assert not reference[0]
    assert reference == sorted(reference)
    first = found[0]
    assert first["hit"].lower() in (query, *query.split())
    assert first["hit"] in first["excerpt"]
    assert sum(bool(one["excerpt"]) for one in found) > 0.8 * len(found)
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_query_without_a_result_says_so(visit, book):
    tab = visit(book / "search.html", query="?q=xyzzyx")
    tab.wait_for_function(
        "document.querySelector('.search-summary')?.innerText.includes('did not match')"
    )
    assert tab.evaluate(RESULTS) == []


def test_the_texts_of_the_pages_are_small(book):
    script = (book / "_static" / "page_texts.js").read_text(encoding="utf-8")
    assert len(script.encode()) < 1_500_000
    texts = json.loads(script[script.index("{") : script.rindex(";")])
    assert len(texts) > 20
    assert all(texts.values())
