"""The form of the page "Audit a file in the browser" in Chromium, from a file and without a
network.
"""

import json
import re
from pathlib import Path

import numpy as np
import pydata_sphinx_theme
import pytest

from paperlib.audits import audit
from tests.browser.looks import broken_rules, faint, misplaced

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2] / "book"
NAMES = ("one_run", "receipt", "calculator", "read_scores", "audit_in_browser")
OURS = [ROOT / "_static" / f"{name}.js" for name in NAMES]
THEME = (
    Path(str(pydata_sphinx_theme.__file__)).parent
    / "theme"
    / "pydata_sphinx_theme"
    / "static"
    / "styles"
)
STYLES = [THEME / "pydata-sphinx-theme.css", ROOT / "_static" / "calculator.css"]
RESULT = "#audit-file [role=status]"
DROP = """text => { const transfer = new DataTransfer();
  transfer.items.add(new File([text], "dropped.csv"));
  const drop = new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true });
  document.querySelector(".calc-drop").dispatchEvent(drop); }"""
SMALL = """[...document.querySelectorAll("#audit-file :is(input, select, a)")]
  .filter(node => node.getBoundingClientRect().height < 44).map(node => node.outerHTML)"""


@pytest.fixture
def form(visit, tmp_path):
    """Open the form alone, with the book's style."""

    def opened(scheme: str = "light", **screen: str):
        source = (ROOT / "audit_in_browser.md").read_text(encoding="utf-8")
        fragment = re.search("<form.*?</form>", source, re.DOTALL)
        assert fragment is not None
        links = "".join(f"<link rel='stylesheet' href='{path.as_uri()}'>" for path in STYLES)
        scripts = "".join(f"<script src='{path.as_uri()}'></script>" for path in OURS)
        page = (
            "<!doctype html><html lang='en' "
            f"data-theme='{scheme}'><head><title>Audit</title>{links}</head>"
        )
        page += f"<body><main><h1>Audit</h1>{fragment[0]}</main>{scripts}</body></html>"
        (tmp_path / "page.html").write_text(page, encoding="utf-8")
        return visit(tmp_path / "page.html", scheme=scheme, **screen)

    return opened


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    member = rng.random(500) < 0.5
    rows = [
        f"r{i},{value!r},{int(one)},x"
        for i, (value, one) in enumerate(
            zip((rng.normal(0, 1, 500) - 3 * member).tolist(), member, strict=True)
        )
    ]
    (tmp_path / "scores.csv").write_text(
        "\n".join(["id,loss,member,note", *rows, ""]), encoding="utf-8"
    )
    return tmp_path / "scores.csv"


@pytest.mark.parametrize(("scheme", "screen"), [("light", "wide"), ("dark", "phone")])
def test_a_chosen_file_gives_the_number_the_sentence_and_a_json(form, table, scheme, screen):
    tab, main = form(scheme, screen=screen), audit(table).headline
    tab.set_input_files("#audit-file-file", table)
    with tab.expect_download() as download:
        tab.click(f"{RESULT} a")
    saved = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert download.value.suggested_filename == "scores-audit.json"
    assert saved["epsilon"] == pytest.approx(main.epsilon, rel=0, abs=1e-9)
    text = tab.inner_text(RESULT)
    said = [main.headline, main.condition, main.claim, *main.notes, *main.assumptions]
    said += [
        "500 rows of scores.csv, columns 'loss' and 'member'",
        "Skipped: unused columns 'note'.",
    ]
    assert [one for one in said if one not in text] == []
    assert (tab.outside, tab.errors) == ([], [])
    assert tab.get_attribute(RESULT, "aria-live") == "polite"
    assert (tab.evaluate(SMALL), misplaced(tab), faint(tab)) == ([], [], [])
    assert broken_rules(tab) == []


def test_a_dropped_file_is_audited_and_the_keyboard_changes_the_audit(form, table):
    tab = form(screen="phone")
    tab.evaluate(DROP, table.read_text(encoding="utf-8"))
    tab.wait_for_selector(f"{RESULT} a")
    assert "500 rows of dropped.csv" in tab.inner_text(RESULT)
    tab.focus("#audit-file-design")
    tab.keyboard.press("ArrowDown")
    for entry in ("1e-5", "0.99"):
        tab.keyboard.press("Tab")
        tab.keyboard.type(entry)
    tab.keyboard.press("Enter")
    main = audit(table, design="played", delta=1e-5, confidence=0.99).headline
    tab.wait_for_function(
        "([at, text]) => document.querySelector(at).innerText.includes(text)",
        arg=[RESULT, main.headline],
    )
    assert main.claim in tab.inner_text(RESULT)


def test_equal_values_are_no_answer(form, tmp_path):
    (tmp_path / "equal.csv").write_text("loss,member\n" + "0,1\n0,0\n" * 50, encoding="utf-8")
    tab = form()
    tab.set_input_files("#audit-file-file", tmp_path / "equal.csv")
    tab.wait_for_selector(f"{RESULT} .receipt-bad")
    text = tab.inner_text(RESULT)
    assert text.startswith("No answer: see the warnings.")
    assert "Warning: all scores are 0, so they say nothing of membership" in text
    assert "ε ≥" not in text


def test_a_doubt_is_one_line_and_a_wrong_entry_is_marked(form, table):
    tab = form()
    tab.set_input_files("#audit-file-file", table)
    tab.select_option("#audit-file-design", "game")
    tab.wait_for_selector(f"{RESULT} .receipt-bad")
    line = "Refused: this page tosses no coins: use `paperlib audit FILE --design game`"
    assert tab.inner_text(RESULT) == line
    tab.fill("#audit-file-delta", "2")
    tab.keyboard.press("Tab")
    tab.wait_for_selector("#audit-file-delta[aria-invalid=true]")
    assert tab.inner_text(RESULT) == "Correct the marked fields."
    assert "below 1" in tab.inner_text("#audit-file-delta-error")
