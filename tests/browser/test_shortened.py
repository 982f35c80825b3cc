"""On a phone long code and tables show their beginning, and the rest on demand; elsewhere all of them."""

import pytest

pytestmark = pytest.mark.browser

HEIGHT = "document.querySelector('.bd-article').getBoundingClientRect().height"
HIDDEN = """() => [...document.querySelectorAll(".bd-article pre, .bd-article tbody > tr")].filter(
  n => n.closest("details:not([open])") === null && (!n.clientHeight || n.scrollHeight > n.clientHeight + 2)
).length"""


def test_a_phone_shows_the_beginning_and_the_rest_on_demand(visit, book):
    tab = visit(book / "notebooks" / "paper_checks.html", screen="phone")
    buttons, short = tab.locator("button.show-all:visible"), tab.evaluate(HEIGHT)
    assert {text.split()[-1] for text in buttons.all_inner_texts()} == {"lines", "rows"}
    assert tab.evaluate(HIDDEN) > 0
    while buttons.count():
        buttons.first.focus()
        tab.keyboard.press("Enter")
    assert tab.evaluate(HIDDEN) == 0
    assert tab.evaluate(HEIGHT) > 1.5 * short


def test_a_wide_screen_and_paper_show_all(visit, book):
    page = book / "notebooks" / "paper_checks.html"
    assert visit(page).locator("button.show-all").count() == 0
    tab = visit(page, screen="phone")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.locator("button.show-all").count() == 0
