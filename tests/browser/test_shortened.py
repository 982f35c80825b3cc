"""On a phone long code and tables show their beginning, long pages their headings; elsewhere all of
it.
"""

import pytest

pytestmark = pytest.mark.browser

HEIGHT = "document.querySelector('.bd-article').getBoundingClientRect().height"
HIDDEN = """() => [...document.querySelectorAll(".bd-article pre, .bd-article tbody > tr")].filter(
  n => n.closest("details:not([open])") === null
    && (!n.clientHeight || n.scrollHeight > n.clientHeight + 2)
).length"""


def test_a_phone_shows_the_beginning_and_the_rest_on_demand(visit, book):
    tab = visit(book / "notebooks" / "paper_checks.html", screen="phone")
    buttons, short = tab.locator("button.show-all:visible"), tab.evaluate(HEIGHT)
    assert buttons.first.inner_text().startswith("Open all ")
    buttons.first.press("Enter")
    assert {text.split()[-1] for text in buttons.all_inner_texts()} == {"lines", "rows"}
    assert tab.evaluate(HIDDEN) > 0
    while buttons.count():
        buttons.first.focus()
        tab.keyboard.press("Enter")
    assert tab.evaluate(HIDDEN) == 0
    assert tab.evaluate(HEIGHT) > 1.5 * short


def test_a_wide_screen_and_paper_show_all(visit, book):
    page = book / "notebooks" / "paper_checks.html"
    assert visit(page).locator("button.show-all, details.part").count() == 0
    tab = visit(page, screen="phone")
    assert tab.locator("details.part:not([open])").count() > 3
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.locator("button.show-all:visible, details.part:not([open])").count() == 0


WIDER_THAN_ITS_BOX = """() => [...document.querySelectorAll(
  ".bd-article .pst-scrollable-table-container > table")].filter(
  table => table.scrollWidth > table.parentElement.clientWidth + 1).length"""


@pytest.mark.parametrize("page_of_outcomes", ["index", "results", "what_a_number_means"])
def test_a_table_of_words_fits_a_phone_and_each_cell_names_its_column(
    visit, book, page_of_outcomes
):
    page = book / f"{page_of_outcomes}.html"
    tab = visit(page, screen="phone")
    tab.evaluate("document.querySelectorAll('details.part').forEach(part => (part.open = true))")
    assert tab.evaluate(WIDER_THAN_ITS_BOX) == 0
    stacked = tab.locator("table.stacked").first
    names = stacked.locator("thead th").all_text_contents()
    shown = (
        stacked.locator("tbody tr")
        .first.locator("td")
        .evaluate_all("cells => cells.map(cell => cell.dataset.column)")
    )
    assert [name.strip().rstrip("?:") for name in names] == [name.rstrip("?:") for name in shown]
    assert visit(page).locator("table.stacked").count() == 0


def test_every_door_of_the_first_page_looks_like_one(visit, book):
    tab = visit(book / "index.html")
    links = tab.locator("div.doors a")
    assert links.evaluate_all("all => all.filter(a => !a.closest('.door')).length") == 0


@pytest.mark.parametrize(
    ("long_page", "place"),
    [
        ("notebooks/panoramia_images", "verdict-panoramia-figure-15-panoramia-images"),
        ("api/report", "paperlib.reproduction.exhibits.dots_plot"),
    ],
)
def test_a_link_to_a_place_of_a_long_page_opens_its_part(visit, book, long_page, place):
    tab = visit(book / f"{long_page}.html", screen="phone", query=f"#{place}")
    part = f"document.getElementById('{place}').closest('details.part, section')"
    shown = f"{part}.matches('[open], :has(> [open])')"
    assert tab.evaluate(shown)
    assert (
        -5 < tab.evaluate(f"document.getElementById('{place}').getBoundingClientRect().top") < 400
    )
    tab.evaluate("document.querySelectorAll('details.part').forEach(part => (part.open = false))")
    tab.evaluate("location.hash = ''")
    tab.evaluate(f"location.hash = '{place}'")
    tab.wait_for_function(shown)
