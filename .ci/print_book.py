"""Print the book to a PDF with bookmarks, and show its link on the first page.

Usage: python .ci/print_book.py book/_build/singlehtml/index.html book/_build/html
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pikepdf
from playwright.sync_api import sync_playwright

NAME = "paperlib.pdf"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# The reference is for the screen: its pages go, with the links to them. Everything folded is
# opened.
PREPARE = """printed => {
  for (const mark of document.querySelectorAll("[id^='document-api/']")) {
    if (mark.nextElementSibling?.matches("section")) mark.nextElementSibling.remove();
    mark.remove();
  }
  for (const mark of document.querySelectorAll("[id^='document-']")) {
    mark.nextElementSibling?.classList.add("chapter");
  }
  for (const link of document.querySelectorAll("a.chip[href*='.html#']")) {
    link.setAttribute("href", link.getAttribute("href").replace(/^[^#]*/, ""));
    // raw HTML names the page
  }
  for (const link of document.querySelectorAll("a[href^='#']")) {
    const target = decodeURIComponent(link.getAttribute("href").slice(1));
    if (!target || document.getElementById(target)) continue;
    const item = link.closest("li.toctree-l1, li.toctree-l2");
    item && target.startsWith("document-api/")
      ? item.remove()
      : link.replaceWith(...link.childNodes);
  }
  document.querySelectorAll("[data-pdf]").forEach(link => link.remove());
  document.querySelectorAll("details").forEach(one => { one.open = true; });
  document.querySelectorAll(".toggle-hidden").forEach(one => one.classList.remove("toggle-hidden"));
  // Where a heading wraps, its bookmark would lose the space.
  for (const heading of document.querySelectorAll("h1, h2, h3, h4")) {
    const walker = document.createTreeWalker(heading, NodeFilter.SHOW_TEXT), texts = [];
    while (walker.nextNode()) texts.push(walker.currentNode);
    for (const text of texts) {
      const words = text.data.split(/\\s+/);
      const kept = (word, at) => at ? ["\\u00a0", document.createElement("wbr"), word] : [word];
      text.replaceWith(...words.flatMap(kept));
    }
  }
  const note = document.createElement("p");
  note.textContent = printed;
  document.querySelector("h1")?.after(note);
}"""


# What is too wide for the page gets a page on its side, and what is too wide for that breaks its
# words.
FIT = """() => {
  for (const table of document.querySelectorAll(".pst-scrollable-table-container > table")) {
    const box = table.parentElement, room = box.clientWidth;
    if (table.offsetWidth <= room + 1) continue;
    box.classList.add("wide");
    if (table.offsetWidth > 1.5 * room) box.classList.add("tight");
  }
}"""
PAPER = {"width": 672, "height": 980}  # A4 within the margins of print.css, in CSS pixels


def print_pdf(page: Path, pdf: Path) -> None:
    """Print one HTML page, its formulas ready and its dropdowns open."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        tab = browser.new_page(color_scheme="light", viewport=PAPER)
        tab.set_default_timeout(300_000)
        tab.goto(page.resolve().as_uri(), wait_until="load")
        tab.evaluate("() => window.MathJax?.startup?.promise")
        tab.evaluate(
            PREPARE, f"Printed on {datetime.now(UTC):%d %B %Y}{commit()}, without the reference."
        )
        tab.emulate_media(media="print")
        tab.evaluate(FIT)
        tab.pdf(path=pdf, format="A4", outline=True, tagged=True, prefer_css_page_size=True)
        browser.close()
    packed(pdf)


def packed(path: Path) -> None:
    """Compress the tags, which Chromium writes as plain text, and name each bookmark once.

    Chromium writes a heading twice in its bookmark where it moves the heading to the next page.
    """
    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        with pdf.open_outline() as outline:
            for item in every_item(outline.root):
                item.title = undoubled(item.title)
        pdf.save(path, object_stream_mode=pikepdf.ObjectStreamMode.generate)


def every_item(items: Sequence[pikepdf.OutlineItem]) -> Iterator[pikepdf.OutlineItem]:
    """Bookmarks and those below them."""
    for item in items:
        yield item
        yield from every_item(item.children)


def undoubled(title: str) -> str:
    """A title that is written twice, once.

    >>> undoubled("The ideaThe idea"), undoubled("Here")
    ('The idea', 'Here')
    """
    half = title[: len(title) // 2]
    return half if half and title == 2 * half else title


def chromium() -> str:
    """The installed browser.

    Raises:
        SystemExit: There is none.
    """
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    raise SystemExit("the PDF is printed by Chromium, and there is none on the PATH")


def commit() -> str:
    """The commit of this checkout in words; nothing outside of one."""
    command = ["git", "describe", "--always", "--dirty"]
    described = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    return f" from commit {described.stdout.strip()}" if described.returncode == 0 else ""


def show_link(html: str) -> str:
    """The page with its link to the PDF no longer hidden.

    >>> show_link('<a class="door" data-pdf hidden href="paperlib.pdf">PDF</a>')
    '<a class="door" data-pdf href="paperlib.pdf">PDF</a>'
    """
    return re.sub(r'(<a\b[^>]*\bdata-pdf\b[^>]*?)\shidden(?:="[^"]*")?(?=[\s>])', r"\1", html)


def main(argv: list[str]) -> int:
    """Print the PDF into the folder of the HTML book and return the exit status."""
    if len(argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    page, book = map(Path, argv)
    print_pdf(page, book / NAME)
    first = book / "index.html"
    first.write_text(show_link(first.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"The PDF is ready: {book / NAME}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
