"""The built book as a reader sees it, in Chromium, from files, without a network."""

import pytest

from tests.browser.conftest import WIDTHS, new_tab, turn_to
from tests.browser.looks import broken_rules, faint, misplaced, raw_markup

pytestmark = pytest.mark.browser

SCREENS = "(document.querySelector('.bd-article')?.offsetHeight ?? 0) / innerHeight"


@pytest.fixture(scope="module")
def tab(browser):
    """A tab in which one page after the other is shown: half the time of new ones."""
    return new_tab(browser, WIDTHS["phone"], "dark")


def test_page_is_in_order(tab, book, page):
    tab.outside.clear(), tab.errors.clear()
    show_on(
        tab, "phone", "dark"
    )  # once loaded, as loading takes longest, it is also shown on a wide screen
    turn_to(tab, page.as_uri())
    if page.name != "genindex.html":  # a list that Sphinx writes
        assert tab.evaluate(SCREENS) <= 12
    tab.evaluate("document.querySelectorAll('details.part').forEach(part => (part.open = true))")
    assert tab.locator(".math mjx-container").count() >= tab.locator(".math").count()
    assert tab.locator("mjx-merror").count() == 0
    broken = tab.evaluate(
        "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.alt)"
    )
    assert broken == []
    assert raw_markup(tab) == []
    reference = page.parent != book and "api" in page.relative_to(book).parts
    for screen, scheme in (("phone", "dark"), ("wide", "light")):
        show_on(tab, screen, scheme)
        tab.wait_for_function(f"document.documentElement.dataset.theme === '{scheme}'")
        assert misplaced(tab, code_may_scroll=reference) == []
        assert faint(tab) == []
        if screen == (
            "wide" if reference else "phone"
        ):  # once: here with both sidebars, there tables scroll
            assert broken_rules(tab) == []
    assert (tab.outside, tab.errors) == ([], [])


def show_on(tab, screen, scheme):
    width, height = WIDTHS[screen]
    tab.set_viewport_size({"width": width, "height": height})
    tab.emulate_media(color_scheme=scheme, reduced_motion="reduce")


@pytest.fixture
def shown(visit, tmp_path):
    """Show a small page with a fault."""

    def opened(body: str, **screen: str):
        (tmp_path / "page.html").write_text(
            "<!doctype html><html "
            f"lang='en'><head><title>Page</title></head><body>{body}</body></html>"
        )
        return visit(tmp_path / "page.html", **screen)

    return opened


def test_a_good_page_has_no_fault_and_faint_text_requests_and_errors_are_seen(shown):
    tab = shown(
        "<main><h1>Bounds</h1><p>A <b>lower bound</b> of <code>**</code>.</p><pre>code</pre></main>"
    )
    assert (misplaced(tab), raw_markup(tab), faint(tab), broken_rules(tab)) == ([], [], [], [])
    hidden = "<p style='color: #fff; visibility: hidden'>z</p>"
    tab = shown(
        "<p style='color: #999; background: #888'>x</p><p>y <a style='color: "
        f"#999'>w</a></p>{hidden}"
    )
    assert [text.split(": ")[1] for text in faint(tab)] == ["x", "w"]
    tab = shown("<img src='http://127.0.0.1:9/x.png' alt='x'><script>throw Error('loud')</script>")
    assert tab.outside == ["http://127.0.0.1:9/x.png"]
    assert any("loud" in text for text in tab.errors)


TABLE = f"<table><tr><td>{'w' * 200}</td></tr></table>"


@pytest.mark.parametrize(
    ("style", "body", "fault"),
    [
        ("", "<p style='width: 500px'>x</p>", "the page scrolls sideways"),
        ("", f"<pre style='overflow: auto'>{'word ' * 60}</pre>", "is wider than its box, pre"),
        ("overflow: hidden", TABLE, "is wider than the page, table"),
        ("height: 99px; overflow: auto", "<p>x</p>" * 9, "scrolls down inside the page, div"),
        ("overflow-x: auto; overflow-y: hidden", TABLE, None),
    ],
)
def test_what_is_misplaced_is_seen(shown, style, body, fault):
    found = misplaced(shown(f"<main><div style='{style}'>{body}</div></main>", screen="phone"))
    assert any(fault in one for one in found) if fault else found == []


@pytest.mark.parametrize(
    "text",
    ["```{table} A", "see {numref}`x`", ":name: tbl-x", "**bold**", "{py:func}`f`", "[a](b)"],
)
def test_raw_markup_is_seen(shown, text):
    assert raw_markup(shown(f"<p>{text}</p><p>clear</p>")) == [text]


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("<main><h1>A</h1></main><main><h2>B</h2></main>", "landmark-no-duplicate-main"),
        ("<main><h1>A</h1><button></button></main>", "button-name"),
        ("<main><h1>A</h1></main><p>Outside</p>", "region"),
        ("<main><h1>A</h1><input></main>", "label"),
    ],
)
def test_a_broken_rule_of_axe_is_seen(shown, body, rule):
    assert any(found.startswith(rule) for found in broken_rules(shown(body)))
