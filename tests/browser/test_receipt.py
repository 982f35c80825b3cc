"""The form of the book that computes a receipt, in Chromium, from a file and without a network."""

import re
from pathlib import Path

import numpy as np
import pytest

from paperlib.audits import audit_losses, seal_plan
from paperlib.core import toss_coins
from tests.browser.looks import faint
from tests.browser.test_audit_in_browser import OURS, ROOT, STYLES
from tests.report.altered_receipts import Altered

pytestmark = pytest.mark.browser

SHOWN = "form.receipt [role=status]"
LARGE = """node => parseFloat(getComputedStyle(document.querySelector(node)).fontSize)
  / parseFloat(getComputedStyle(document.querySelector("form.receipt label")).fontSize)"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory) -> tuple[Path, dict[str, str], str, str]:
    """A folder of reports, the published hashes, and headline and claim of the honest one."""
    coins = toss_coins(300, seed=0)
    mechanism = "x" * 300 + "</td><script>alert(1)</script>"
    fields = {"score": "loss", "direction": "lower", "mechanism": mechanism, "limit": 3}
    plan = seal_plan({"coins": coins.commitment, **fields})
    losses = np.random.default_rng(1).normal(0, 1, 300) - 3 * coins.included
    audits = audit_losses(dict(enumerate(losses)), coins=coins, plan=plan)
    reversed_audits = audit_losses(dict(enumerate(-losses)), coins=coins, plan=plan)
    folder = tmp_path_factory.mktemp("receipts")
    html = audits.document().html()
    pages = {f"altered {at}": text for at, text in enumerate(Altered(html).seen().values())}
    pages |= {"whole": html, "none": reversed_audits.document().html(), "empty": ""}
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    published = {"plan": plan.hash, "coins": coins.commitment}
    return folder, published, audits.headline.headline, audits.headline.claim


@pytest.fixture
def form(visit, tmp_path):
    """Open the form of the page alone, with the book's style."""

    def opened(scheme: str = "light", **screen: str):
        source = (ROOT / "plan_to_receipt.md").read_text(encoding="utf-8")
        fragment = re.search("<form.*?</form>", source, re.DOTALL)
        assert fragment is not None
        links = "".join(f"<link rel='stylesheet' href='{path.as_uri()}'>" for path in STYLES)
        scripts = "".join(f"<script src='{path.as_uri()}'></script>" for path in OURS)
        head = f"<html lang='en' data-theme='{scheme}'><head><meta charset='utf-8'>{links}</head>"
        body = f"<body><main><h1>Receipt</h1>{fragment[0]}</main>{scripts}</body></html>"
        (tmp_path / "page.html").write_text(f"<!doctype html>{head}{body}", encoding="utf-8")
        return visit(tmp_path / "page.html", scheme=scheme, **screen)

    return opened


def computed(tab, report: Path, hashes: dict[str, str]) -> str:
    """What the form shows of a report."""
    for name, text in hashes.items():
        tab.fill(f"form.receipt [name={name}]", text)
    tab.set_input_files("#receipt-file", report)
    tab.focus("form.receipt [name=coins]")
    tab.keyboard.press("Enter")
    tab.wait_for_function(f"!document.querySelector('{SHOWN}').innerText.startsWith('Computing')")
    assert (tab.outside, tab.errors) == ([], [])
    return tab.inner_text(SHOWN)


@pytest.mark.parametrize(("scheme", "screen"), [("light", "wide"), ("dark", "phone")])
def test_the_form_shows_number_claim_plan_and_limit_large(form, reports, scheme, screen):
    folder, hashes, headline, claim = reports
    tab = form(scheme, screen=screen)
    text = computed(tab, folder / "whole.html", hashes)
    assert text.startswith(f"{headline}\n\n{claim}\n\nThe planned limit is 3: failed, as epsilon")
    assert text.count("is that of this receipt.") == 2
    for words in ("score\tloss", "</td><script>alert(1)</script>", hashes["plan"]):
        assert words in text
    assert tab.evaluate(LARGE, f"{SHOWN} .receipt-number") >= 1.3
    assert tab.evaluate(LARGE, f"{SHOWN} .receipt-large") >= 1.1
    assert faint(tab) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= tab.viewport_size["width"]


def test_it_says_the_same_of_every_altered_page_and_nothing_of_the_page(form, reports):
    folder, hashes, _, _ = reports
    tab = form()
    right = computed(tab, folder / "whole.html", hashes)
    altered = sorted(folder.glob("altered *.html"))
    assert [computed(tab, path, hashes) for path in altered] == [right] * 12
    assert "What else the report says was not read" in right
    assert not re.search("check passed|as printed|agree", right)


def test_another_hash_no_answer_and_no_receipt_are_told(form, reports):
    folder, hashes, _, _ = reports
    tab = form()
    other = computed(tab, folder / "whole.html", {"plan": hashes["coins"], "coins": ""})
    assert "The published hash of the plan is another one." in other
    assert "Not compared: no published hash of the coins was entered." in other
    none = computed(tab, folder / "none.html", hashes)
    assert none.startswith("No answer\n\nThe planned limit is 3: failed, as there is no answer.")
    assert "probably reversed" in none
    assert "ε ≥" not in none
    assert computed(tab, folder / "empty.html", {}) == (
        "No number: this is no report of a planned audit: it holds no receipt."
    )


def test_a_report_has_no_form_and_no_script(visit, reports):
    tab = visit(reports[0] / "whole.html", width=390)
    assert tab.evaluate("document.querySelectorAll('form, button, input, script[src]').length") == 0
    assert tab.evaluate("[...document.scripts].map(one => one.type)") == ["application/json"] * 2
    assert (tab.outside, tab.errors) == ([], [])


def test_the_book_has_the_form_and_its_scripts(visit, reports, book):
    folder, hashes, headline, _ = reports
    tab = visit(book / "plan_to_receipt.html", screen="phone")
    assert computed(tab, folder / "whole.html", hashes).startswith(headline)
    assert faint(tab) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
