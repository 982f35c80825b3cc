"""The built book as a reader sees it, in Chromium, from files, without a network."""

import pytest

# Browsers let no script read files, so on file:// the search page lists results without excerpts.
NO_CONSOLE = {"search.html"}
# Text against the first background behind it that is not transparent: the contrast ratio of WCAG.
CONTRAST = """selector => {
  const parse = color => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = node => {
    for (; node; node = node.parentElement) {
      const color = parse(getComputedStyle(node).backgroundColor);
      if (color.length === 3 || color[3] > 0.5) return color;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll(selector)].filter(n => n.innerText?.trim()).map(node => {
    const [a, b] = [light(parse(getComputedStyle(node).color)), light(ground(node))].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), node.innerText.slice(0, 40)];
  });
}"""

pytestmark = pytest.mark.browser


def test_page_loads_offline_without_errors_and_shows_its_formulas(visit, page):
    tab = visit(page)
    assert tab.outside == []
    if page.name not in NO_CONSOLE:
        assert tab.errors == []
    formulas = tab.locator(".math").count()
    assert tab.locator(".math mjx-container").count() >= formulas
    assert tab.locator("mjx-merror").count() == 0
    broken = tab.evaluate("[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.alt)")
    assert broken == []


def test_page_fits_a_phone(visit, page):
    tab = visit(page, screen="phone")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_long_table_scrolls_under_its_header(visit, book):
    tab = visit(book / "index.html")
    frame = tab.locator(".pst-scrollable-table-container").first
    frame.evaluate(
        """frame => { const body = frame.querySelector("tbody"), row = body.querySelector("tr");
        for (let i = 0; i < 90; i++) body.append(row.cloneNode(true)); }"""
    )
    assert frame.evaluate("f => f.scrollHeight > f.clientHeight && f.clientHeight <= innerHeight")
    frame.evaluate("f => f.scrollTo(0, 900)")
    below = "f => f.querySelector('th').getBoundingClientRect().top - f.getBoundingClientRect().top"
    assert -1 <= frame.evaluate(below) <= 2
    tab.wait_for_function("f => f.tabIndex === 0", arg=frame.element_handle())  # for the arrow keys


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_is_legible(visit, page, scheme):
    tab = visit(page, scheme=scheme)
    assert tab.evaluate("document.documentElement.dataset.theme") == scheme
    text = ".bd-article :is(h1, h2, h3, p, li, td, th, dt, dd, figcaption, caption, code, pre span)"
    faint = [found for found in tab.evaluate(CONTRAST, text) if found[0] < 4.5]
    assert faint == []


def test_the_contrast_measure_sees_faint_text(visit, tmp_path):
    page = tmp_path / "faint.html"
    page.write_text("<p style='color: #999; background: #888'>x</p><p>y</p>")
    (faint, _), (clear, _) = visit(page).evaluate(CONTRAST, "p")
    assert faint < 1.5
    assert clear > 20


def test_a_request_and_an_error_are_seen(visit, tmp_path):
    page = tmp_path / "loud.html"
    page.write_text("<img src='http://127.0.0.1:9/x.png' alt='x'><script>throw Error('loud')</script>")
    tab = visit(page)
    assert tab.outside == ["http://127.0.0.1:9/x.png"]
    assert any("loud" in text for text in tab.errors)
