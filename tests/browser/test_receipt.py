"""The receipt of a planned audit in Chromium, opened as a file: in the report, and in a form of the
book.
"""

import re

import numpy as np
import pytest

from paperlib.audits import audit_losses, seal_plan
from paperlib.core import toss_coins
from tests.browser.looks import faint

pytestmark = pytest.mark.browser

SHOWN = "form.receipt [role=status]"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report, one in which a score was changed, and the published hashes."""
    coins = toss_coins(300, seed=0)
    plan = seal_plan(
        {"coins": coins.commitment, "score": "loss", "direction": "lower", "mechanism": "x" * 300}
    )
    losses = np.random.default_rng(1).normal(0, 1, 300) - 3 * coins.included
    html = audit_losses(dict(enumerate(losses)), coins=coins, plan=plan).document().html()
    none = audit_losses(dict(enumerate(-losses)), coins=coins, plan=plan).document().html()
    folder = tmp_path_factory.mktemp("receipts")
    (folder / "none.html").write_text(none, encoding="utf-8")
    (folder / "whole.html").write_text(html, encoding="utf-8")
    (folder / "changed.html").write_text(
        html.replace(repr(float(losses.min())), "9.5"), encoding="utf-8"
    )
    return folder, {"plan": plan.hash, "coins": coins.commitment}


def verify(tab, hashes: dict[str, str]) -> str:
    for name, text in hashes.items():
        tab.fill(f"form.receipt [name={name}]", text)
    tab.click("form.receipt button")
    tab.wait_for_selector(f"{SHOWN} li")
    assert (tab.outside, tab.errors) == ([], [])
    return tab.inner_text(SHOWN)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_button_of_a_report_verifies_it(visit, report, scheme):
    folder, hashes = report
    tab = visit(folder / "whole.html", width=390, scheme=scheme)
    text = verify(tab, hashes)
    assert text.startswith("Every check passed.")
    assert text.count("The published hash of the") == 2
    bound = re.search(r"computed again is (ε ≥ \d\.\d{3}) .* prints (ε ≥ \d\.\d{3}) ", text)
    assert bound is not None
    assert bound[1] == bound[2]
    assert "The published hash of the plan is another one" in verify(tab, {"plan": hashes["coins"]})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert faint(tab) == []


def test_a_changed_score_is_shown_from_the_keyboard(visit, report):
    tab = visit(report[0] / "changed.html")
    tab.focus("form.receipt [name=coins]")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(f"{SHOWN} li")
    text = tab.inner_text(SHOWN)
    assert text.startswith("2 checks failed.")
    assert "Changed: the hash of the scores" in text
    assert "Changed: the bound computed again" in text


def test_a_receipt_without_an_answer_and_a_second_number_are_seen(visit, report):
    (folder, hashes), false = (
        report,
        "ε ≥ 0.000 (δ = 0, confidence 0.95; 0 of 0 guesses right, 300 examples)",
    )
    text = verify(visit(folder / "none.html"), hashes)
    assert text.startswith("No answer: the page agrees with its receipt")
    assert "probably reversed" in text
    html = (folder / "whole.html").read_text(encoding="utf-8")
    page = html.replace("</main>", f"<p data-headline>{false}</p></main>")
    (folder / "two.html").write_text(page, encoding="utf-8")
    assert "the report prints several numbers" in verify(visit(folder / "two.html"), hashes)


def test_the_book_verifies_a_report_that_the_reader_chooses(visit, report, book):
    tab = visit(book / "plan_to_receipt.html", screen="phone")
    assert "Choose the report of a planned audit" in verify(tab, {})
    for name, words in {
        "whole": "Page, plan, coins, scores and bound agree.",
        "changed": "2 checks failed.",
    }.items():
        tab.set_input_files("#receipt-file", report[0] / f"{name}.html")
        tab.click("form.receipt button")
        tab.wait_for_function(f"document.querySelector('{SHOWN}').innerText.startsWith('{words}')")
        assert faint(tab) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
