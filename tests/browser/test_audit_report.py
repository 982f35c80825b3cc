"""The audit report as a reader sees it in Chromium: wide, on a phone, in the dark, and on paper."""

import re
import shutil
import subprocess
from typing import Any

import numpy as np
import pytest

from paperlib.audits import audit_scores
from paperlib.core import MembershipScores
from paperlib.core.results import RESULT_SCHEMA_VERSION
from paperlib.report import audit_report
from paperlib.report.audit.about import About
from paperlib.words.verdict import plain_verdict
from tests.browser.looks import faint

PDF_TEXT, PDF_IMAGES = shutil.which("pdftotext"), shutil.which("pdftoppm")
PAPER = {"A4": (794, 1123), "Letter": (816, 1056)}  # CSS pixels
SMALLEST = """() => Math.min(...[...document.querySelectorAll("p, li, th, td, dt, dd, figcaption")]
  .map(node => parseFloat(getComputedStyle(node).fontSize)))"""
# What sticks out of the page and cannot be scrolled to.
CUT = """() => [...document.querySelectorAll("main *")].filter(node => !node.closest(".scroll")
  && node.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map(n => n.outerHTML)"""
LARGEST = """() => Object.fromEntries([".lead", ".main .number", ".audit .figure", ".baseline"].map(
  name => [name, Math.max(...[...document.querySelectorAll(name + ", " + name + " *")].map(
    node => parseFloat(getComputedStyle(node).fontSize)))]))"""

pytestmark = pytest.mark.browser


def report(*, turned: bool = False) -> str:
    """A report with everything in it: long names, groups, an owner, a claim."""
    rng = np.random.default_rng(0)
    scores = MembershipScores(
        rng.normal(-2, 1, 1000), rng.normal(0, 1, 1010), higher_means_member=turned
    )
    audits = audit_scores(scores, design="game")
    names = [f"record_with_a_long_name_and_no_space_in_it_{at:06d}" for at in range(len(scores))]
    groups = np.array(["first", "a group with quite a long name", "x" * 60])[
        np.arange(len(scores)) % 3
    ]
    return audit_report(
        scores,
        tuple(audits),
        title="Privacy audit of a_file_with_a_long_name_and_no_space_in_it.csv",
        facts={
            "SHA-256 of scores.csv": "0123456789abcdef" * 4,
            "Command": "paperlib audit " + "x" * 200,
        },
        verdict=plain_verdict(audits.headline, claimed_epsilon=1),
        about=About(
            model="m" * 80, contact="https://example.org/" + "path/" * 20, notes="One.\nTwo."
        ),
        ids=names,
        groups=groups,
    )


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for name, text in {"plain": report(), "reversed": report(turned=True)}.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def shown(visit, pages):
    def opened(name: str = "plain", **screen: Any):
        return visit(pages / f"{name}.html", **screen)

    return opened


@pytest.mark.parametrize("name", ["plain", "reversed"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 768, 1280])
def test_the_report_loads_alone_is_legible_and_nothing_sticks_out(shown, name, scheme, width):
    tab = shown(name, scheme=scheme, width=width)
    assert (tab.outside, tab.errors) == ([], [])
    broken = tab.evaluate(
        "[...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.alt)"
    )
    assert broken == []
    assert (
        tab.evaluate(
            "JSON.parse(document.getElementById('audit-result').textContent).schema_version"
        )
        == RESULT_SCHEMA_VERSION
    )
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate(CUT) == []
    assert faint(tab) == []
    assert tab.evaluate(SMALLEST) >= 12
    (red, green, blue) = map(
        int, re.findall(r"\d+", tab.evaluate("getComputedStyle(document.body).backgroundColor"))
    )
    assert (red + green + blue < 150) is (scheme == "dark")


def test_faint_and_small_text_is_seen(shown):
    tab = shown()
    tab.add_style_tag(
        content=".soft { color: #bbbbbb !important; } dd { font-size: 9px !important; }"
    )
    assert faint(tab)
    assert tab.evaluate(SMALLEST) == 9


@pytest.mark.parametrize("media", ["screen", "print"])
def test_the_verdict_is_largest_and_the_baseline_smallest(shown, media):
    size = shown(media=media).evaluate(LARGEST)
    assert size[".lead"] > size[".main .number"] > size[".audit .figure"] > size[".baseline"]


@pytest.mark.parametrize("paper", list(PAPER))
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_paper_nothing_is_dark_cut_or_too_tall(shown, paper, scheme):
    wide, high = PAPER[paper]
    margin = 2 * 15 / 25.4 * 96
    tab = shown(width=int(wide - margin), scheme=scheme, media="print")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.evaluate("getComputedStyle(document.images[0]).filter") == "none"
    assert faint(tab) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= wide - margin
    assert tab.evaluate(
        "[...document.querySelectorAll('.scroll')].every(n => n.scrollWidth <= n.clientWidth + 1)"
    )
    kept = "[...document.querySelectorAll('.verdict, .main, .steps, .short, .audit, figure')]"
    assert tab.evaluate(f"{kept}.every(n => getComputedStyle(n).breakInside === 'avoid')")
    assert (
        tab.evaluate(f"Math.max(...{kept}.map(n => n.getBoundingClientRect().height))") < high - 130
    )


@pytest.mark.skipif(PDF_TEXT is None, reason="no pdftotext on the PATH")
@pytest.mark.parametrize("paper", list(PAPER))
def test_the_pdf_holds_the_whole_report(shown, tmp_path, paper):
    tab, path = shown(media="print"), tmp_path / "report.pdf"
    tab.pdf(path=path, format=paper)
    text = subprocess.run(
        [str(PDF_TEXT), "-raw", path, "-"], capture_output=True, text=True, check=True
    ).stdout
    words = "".join(text.split())
    assert 4 <= text.count("\f") <= 12
    headings = tab.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(n => n.innerText)")
    cells = tab.evaluate("[...document.querySelectorAll('td, th, li, p')].map(n => n.innerText)")
    missing = [text for text in (*headings, *cells) if "".join(text.split()) not in words]
    assert missing == []
    assert "https://example.org/" in words


@pytest.mark.skipif(PDF_IMAGES is None, reason="no pdftoppm on the PATH")
def test_the_printed_edges_are_white(shown, tmp_path):
    from PIL import Image

    path = tmp_path / "report.pdf"
    shown(scheme="dark", media="print").pdf(path=path, format="A4", print_background=True)
    subprocess.run([str(PDF_IMAGES), "-r", "40", "-png", path, tmp_path / "p"], check=True)
    found = sorted(tmp_path.glob("p*.png"))
    assert found
    for one in found:
        pixels = np.asarray(Image.open(one).convert("L"))
        frame = np.concatenate(
            [
                pixels[:12].ravel(),
                pixels[-12:].ravel(),
                pixels[:, :12].ravel(),
                pixels[:, -12:].ravel(),
            ]
        )
        assert frame.min() > 240, one.name
        assert np.median(pixels) == 255
