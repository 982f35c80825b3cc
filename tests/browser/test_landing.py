"""The first page: a chip for each table and figure, counts that fit, doors, all of it from the
keyboard.
"""

from collections import Counter

import pytest

pytestmark = pytest.mark.browser

TARGETS = 50  # tables and figures of the four papers
OUTCOMES = [
    "agrees",
    "disagrees",
    "undecided",
    "carries-over",
    "does-not-carry-over",
    "shown",
    "not-yet",
]
CHIPS = """outcomes => [...document.querySelectorAll("a.chip")].map(chip =>
  [chip.getAttribute("href"), outcomes.filter(name => chip.classList.contains(name)).join(" ")])"""
COUNTS = """() => [...document.querySelectorAll(".chip-legend [data-count]")].map(node =>
  [node.dataset.outcome, Number(node.dataset.count), node.innerText])"""


def miscounted(tab) -> list[str]:
    """Outcomes whose count in the legend is not the number of their chips."""
    chips = Counter(outcome for _, outcome in tab.evaluate(CHIPS, OUTCOMES))
    told = {outcome: count for outcome, count, _ in tab.evaluate(COUNTS)}
    return sorted(name for name in chips.keys() | told.keys() if chips[name] != told.get(name, 0))


def test_every_target_has_a_chip_and_is_counted(visit, book):
    tab = visit(book / "index.html")
    chips, counts = tab.evaluate(CHIPS, OUTCOMES), tab.evaluate(COUNTS)
    assert len(chips) == len({href for href, _ in chips}) == TARGETS
    assert sum(count for _, count, _ in counts) == TARGETS
    assert miscounted(tab) == []
    assert all(str(count) in text for _, count, text in counts)


def test_a_chip_too_many_is_seen(visit, book):
    tab = visit(book / "index.html")
    tab.evaluate(
        "document.querySelector('a.chip').after(document.querySelector('a.chip').cloneNode(true))"
    )
    assert len(miscounted(tab)) == 1


def tab_to(tab, selector: str, most: int = 80) -> int:
    """Press Tab until an element has the focus; the number of presses."""
    for pressed in range(1, most + 1):
        tab.keyboard.press("Tab")
        if tab.evaluate("selector => document.activeElement.matches(selector)", selector):
            return pressed
    raise AssertionError(f"{most} presses of Tab do not reach {selector}")


def test_doors_and_chips_are_reached_from_the_keyboard(visit, book):
    tab = visit(book / "index.html")
    assert tab_to(tab, "#pst-skip-link a, a.skip-link, a[href='#main-content']") == 1
    tab.keyboard.press("Enter")
    assert tab_to(tab, "a.door") < 20
    assert tab_to(tab, "a.chip") < 60
    outline = tab.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/results/*.html#*")
    assert tab.evaluate(
        "document.getElementById(decodeURIComponent(location.hash.slice(1))) !== null"
    )


def test_what_tab_does_not_reach_is_seen(visit, tmp_path):
    (tmp_path / "page.html").write_text("<a href='#a'>a</a><span class='door'>door</span>")
    with pytest.raises(AssertionError, match="do not reach"):
        tab_to(visit(tmp_path / "page.html"), ".door", 5)
