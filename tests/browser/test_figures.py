"""Figures fill the screen when they are chosen, and nothing stays folded on paper."""

import re

import pytest

pytestmark = pytest.mark.browser

SIZES = """() => {
  const dialog = document.querySelector("dialog.enlarged"), image = dialog.querySelector("img");
  return [image.getBoundingClientRect().width, image.naturalWidth, dialog.clientWidth];
}"""


@pytest.fixture
def figures(visit, book):
    """Open the first page with a line drawing and folded code, and find the buttons around its
    figures.
    """

    def opened(**screen: str):
        pages = sorted(book.rglob("*.html"))
        marks = r"<figure class=[^>]*\bthemed\b", "<details class=.admonition hide"
        page = next(
            page
            for page in pages
            if all(re.search(mark, page.read_text("utf-8")) for mark in marks)
        )
        tab = visit(page, **screen)
        return tab, tab.locator(".bd-article figure button.enlarge")

    return opened


@pytest.mark.parametrize(
    ("screen", "scheme"), [("wide", "light"), ("wide", "dark"), ("phone", "dark")]
)
def test_a_figure_fills_the_screen_and_closes_again(figures, screen, scheme):
    tab, buttons = figures(screen=screen, scheme=scheme)
    assert buttons.count() == tab.locator(".bd-article figure img").count()
    alt = buttons.first.locator("img").get_attribute("alt")
    assert buttons.first.get_attribute("aria-label") == f"Enlarge: {alt}"
    buttons.first.click()
    dialog = tab.locator("dialog.enlarged")
    assert dialog.locator("img").get_attribute("alt") == alt
    dialog.locator("img").evaluate("image => image.decode()")
    wide, natural, room = tab.evaluate(SIZES)
    expected = max(natural, room) if screen == "phone" else room
    assert abs(wide - expected) <= 1
    filtered = dialog.locator("img").evaluate("image => getComputedStyle(image).filter")
    assert (filtered != "none") is (scheme == "dark")
    dialog.click()
    assert not dialog.is_visible()
    assert tab.errors == []


@pytest.mark.parametrize("key", ["Escape", "Enter"])
def test_a_figure_is_enlarged_and_closed_from_the_keyboard(figures, key):
    tab, buttons = figures()
    buttons.first.focus()
    tab.keyboard.press("Enter")
    dialog = tab.locator("dialog.enlarged")
    assert dialog.is_visible()
    assert tab.evaluate("document.activeElement.innerText") == "Close"
    tab.keyboard.press(key)
    assert not dialog.is_visible()
    assert buttons.first.evaluate("button => button === document.activeElement")


def test_nothing_is_folded_on_paper(figures):
    tab, _ = figures()
    closed = "document.querySelectorAll('details:not([open])').length"
    before = tab.evaluate(closed)
    tab.evaluate(f"addEventListener('beforeprint', () => {{ window.folded = {closed}; }})")
    tab.pdf()
    assert before > 0
    assert tab.evaluate("window.folded") == 0
    assert tab.evaluate(closed) == before
