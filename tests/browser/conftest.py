"""Chromium, the built book, and pages opened as a reader would: from files, without a network."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

BOOK = Path(
    os.environ.get("PAPERLIB_BOOK", Path(__file__).parents[2] / "book" / "_build" / "html")
).resolve()
PAGES = [page for page in sorted(BOOK.rglob("*.html")) if page.parent.name != "_static"]
CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDTHS = {"wide": (1280, 900), "phone": (390, 844)}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with an argument ``page`` sees every page of the book."""
    if "page" in metafunc.fixturenames:
        metafunc.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(BOOK)))


@pytest.fixture(scope="session")
def book() -> Path:
    """The folder of the built book."""
    if not PAGES:
        pytest.skip("no built book: run make book first")
    return BOOK


@pytest.fixture(scope="module")
def browser():
    """Chromium; closed after each module, since a process can run Playwright only once at a time.

    All tabs are of one context, as a page of the same process opens in half the time, and store
    nothing.
    """
    if CHROMIUM is None:
        pytest.skip("no Chromium on the PATH")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        context = chromium.new_context()
        context.add_init_script("localStorage.clear()")
        yield context
        chromium.close()


def new_tab(browser: Any, size: tuple[int, int], scheme: str) -> Any:
    """An empty tab, which keeps what its pages ask of the network, and their errors."""
    tab = browser.new_page()
    tab.set_viewport_size({"width": size[0], "height": size[1]})
    tab.emulate_media(color_scheme=scheme)
    tab.outside, tab.errors = [], []
    tab.on(
        "request",
        lambda r: r.url.startswith(("file:", "data:", "blob:")) or tab.outside.append(r.url),
    )
    tab.on("console", lambda message: message.type == "error" and tab.errors.append(message.text))
    tab.on("pageerror", lambda error: tab.errors.append(str(error)))
    return tab


def turn_to(tab: Any, address: str) -> None:
    """Show a page, and wait for its formulas."""
    tab.goto(address, wait_until="load")
    tab.wait_for_function("!window.MathJax?.startup || window.MathJax.startup.promise")
    tab.evaluate("() => window.MathJax?.startup?.promise")


@pytest.fixture
def visit(browser) -> Iterator[Callable]:
    """Open a page on a screen and in a colour scheme, in a new tab."""
    tabs = []

    def opened(
        page: Path,
        *,
        screen: str = "wide",
        width: int | None = None,
        scheme: str = "light",
        media: str = "screen",
        query: str = "",
    ):
        tabs.append(new_tab(browser, (width or WIDTHS[screen][0], WIDTHS[screen][1]), scheme))
        tabs[-1].emulate_media(media=media)
        turn_to(tabs[-1], page.as_uri() + query)
        return tabs[-1]

    yield opened
    for tab in tabs:
        tab.close()
