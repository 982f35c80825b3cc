"""The audit report as a reader sees it in Chromium: wide, on a phone, in the dark, and on paper."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from paperlib.audits import audit_scores
from paperlib.core import MembershipScores
from paperlib.report import About, audit_report, plain_verdict

PDF_TEXT, PDF_IMAGES = shutil.which("pdftotext"), shutil.which("pdftoppm")
PAPER = {"A4": (794, 1123), "Letter": (816, 1056)}  # CSS pixels
# Contrast of each text with the first background behind it, as WCAG counts it; those below 4.5 are returned.
FAINT = """() => {
  const parse = color => color.match(/[\\d.]+/g).map(Number);
  const light = color => {
    const [x, y, z] = parse(color).slice(0, 3).map(v => v / 255).map(
      v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = node => {
    for (; node; node = node.parentElement) {
      const color = getComputedStyle(node).backgroundColor, parts = parse(color);
      if (parts.length === 3 || parts[3] > 0.5) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const texts = document.querySelectorAll("h1, h2, h3, p, li, th, td, dt, dd, figcaption, a, .kind");
  return [...texts].map(node => {
    const [a, b] = [light(getComputedStyle(node).color), light(ground(node))].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), node.innerText.slice(0, 40)];
  }).filter(([ratio]) => ratio < 4.5);
}"""
SMALLEST = """() => Math.min(...[...document.querySelectorAll("p, li, th, td, dt, dd, figcaption")]
  .map(node => parseFloat(getComputedStyle(node).fontSize)))"""
# What sticks out of the page and cannot be scrolled to.
CUT = """() => [...document.querySelectorAll("main *")].filter(node => !node.closest(".scroll")
  && node.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(n => n.outerHTML)"""
LARGEST = """() => Object.fromEntries([".lead", ".main .number", ".audit .figure", ".baseline"].map(
  name => [name, Math.max(...[...document.querySelectorAll(name + ", " + name + " *")].map(
    node => parseFloat(getComputedStyle(node).fontSize)))]))"""

pytestmark = pytest.mark.browser


def report(*, turned: bool = False) -> str:
    """A report with everything in it: long names, groups, an owner, a claim."""
    rng = np.random.default_rng(0)
    scores = MembershipScores(rng.normal(-2, 1, 1000), rng.normal(0, 1, 1010), higher_means_member=turned)
    audits = audit_scores(scores, design="game")
    names = [f"record_with_a_long_name_and_no_space_in_it_{at:06d}" for at in range(len(scores))]
    groups = np.array(["first", "a group with quite a long name", "x" * 60])[np.arange(len(scores)) % 3]
    return audit_report(
        scores, tuple(audits), title="Privacy audit of a_file_with_a_long_name_and_no_space_in_it.csv",
        facts={"SHA-256 of scores.csv": "0123456789abcdef" * 4, "Command": "paperlib audit " + "x" * 200},
        verdict=plain_verdict(audits.headline, claimed_epsilon=1),
        about=About(model="m" * 80, contact="https://example.org/" + "path/" * 20, notes="One.\nTwo."),
        ids=names, groups=groups,
    )  # fmt: skip


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for name, text in {"plain": report(), "reversed": report(turned=True)}.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def visit(browser, pages):
    contexts = []

    def opened(name: str = "plain", *, width: int = 1280, scheme: str = "light", media: str = "screen"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        tab = context.new_page()
        tab.outside, tab.errors = [], []
        tab.on("request", lambda r: r.url.startswith(("file:", "data:")) or tab.outside.append(r.url))
        tab.on("console", lambda message: tab.errors.append(message.text))
        tab.on("pageerror", lambda error: tab.errors.append(str(error)))
        tab.emulate_media(media=media, color_scheme=scheme)
        tab.goto((pages / f"{name}.html").as_uri(), wait_until="load")
        return tab

    yield opened
    for context in contexts:
        context.close()


@pytest.mark.parametrize("name", ["plain", "reversed"])
def test_the_report_loads_alone_without_errors(visit, name):
    tab = visit(name)
    assert (tab.outside, tab.errors) == ([], [])
    broken = tab.evaluate("[...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.alt)")
    assert broken == []
    assert tab.evaluate("JSON.parse(document.getElementById('audit-result').textContent).schema_version") == 1


@pytest.mark.parametrize("name", ["plain", "reversed"])
@pytest.mark.parametrize("width", [390, 768, 1280])
def test_nothing_sticks_out_of_the_page(visit, name, width):
    tab = visit(name, width=width)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate(CUT) == []


@pytest.mark.parametrize("name", ["plain", "reversed"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_report_is_legible(visit, name, scheme, width):
    tab = visit(name, scheme=scheme, width=width)
    assert tab.evaluate(FAINT) == []
    assert tab.evaluate(SMALLEST) >= 12
    (red, green, blue) = map(
        int, re.findall(r"\d+", tab.evaluate("getComputedStyle(document.body).backgroundColor"))
    )
    assert (red + green + blue < 150) is (scheme == "dark")


def test_faint_and_small_text_is_seen(visit):
    tab = visit()
    tab.add_style_tag(content=".soft { color: #bbbbbb !important; } dd { font-size: 9px !important; }")
    assert tab.evaluate(FAINT)
    assert tab.evaluate(SMALLEST) == 9


@pytest.mark.parametrize("media", ["screen", "print"])
def test_the_verdict_is_largest_and_the_baseline_smallest(visit, media):
    size = visit(media=media).evaluate(LARGEST)
    assert size[".lead"] > size[".main .number"] > size[".audit .figure"] > size[".baseline"]


@pytest.mark.parametrize("paper", list(PAPER))
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_paper_nothing_is_dark_cut_or_too_tall(visit, paper, scheme):
    wide, high = PAPER[paper]
    margin = 2 * 15 / 25.4 * 96
    tab = visit(width=int(wide - margin), scheme=scheme, media="print")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.evaluate("getComputedStyle(document.images[0]).filter") == "none"
    assert tab.evaluate(FAINT) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= wide - margin
    assert tab.evaluate(
        "[...document.querySelectorAll('.scroll')].every(n => n.scrollWidth <= n.clientWidth + 1)"
    )
    kept = "[...document.querySelectorAll('.verdict, .main, .steps, .short, .audit, figure')]"
    assert tab.evaluate(f"{kept}.every(n => getComputedStyle(n).breakInside === 'avoid')")
    assert tab.evaluate(f"Math.max(...{kept}.map(n => n.getBoundingClientRect().height))") < high - 130


@pytest.mark.skipif(PDF_TEXT is None, reason="no pdftotext on the PATH")
@pytest.mark.parametrize("paper", list(PAPER))
def test_the_pdf_holds_the_whole_report(visit, tmp_path, paper):
    tab, path = visit(media="print"), tmp_path / "report.pdf"
    tab.pdf(path=path, format=paper)
    shown = subprocess.run(
        [str(PDF_TEXT), "-raw", str(path), "-"], capture_output=True, text=True, check=True
    ).stdout
    pages = shown.count("\f")
    words = "".join(shown.split())
    assert 4 <= pages <= 12
    headings = tab.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(n => n.innerText)")
    cells = tab.evaluate("[...document.querySelectorAll('td, th, li, p')].map(n => n.innerText)")
    missing = [text for text in (*headings, *cells) if "".join(text.split()) not in words]
    assert missing == []
    assert "https://example.org/" in words


@pytest.mark.skipif(PDF_IMAGES is None, reason="no pdftoppm on the PATH")
def test_the_printed_edges_are_white(visit, tmp_path):
    from PIL import Image

    visit(scheme="dark", media="print").pdf(path=tmp_path / "report.pdf", format="A4", print_background=True)
    subprocess.run(
        [str(PDF_IMAGES), "-r", "40", "-png", str(tmp_path / "report.pdf"), str(tmp_path / "p")], check=True
    )
    found = sorted(Path(tmp_path).glob("p*.png"))
    assert found
    for one in found:
        pixels = np.asarray(Image.open(one).convert("L"))
        frame = np.concatenate(
            [pixels[:12].ravel(), pixels[-12:].ravel(), pixels[:, :12].ravel(), pixels[:, -12:].ravel()]
        )
        assert frame.min() > 240, one.name
        assert np.median(pixels) == 255
