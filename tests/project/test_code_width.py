"""Code on a page of the book, and in README, fits the width that a page shows."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WIDTH = 76
BLOCK = re.compile(r"^```+(?:\{code-block\} )?(?:python|sh|yaml|toml)\n(.*?)^```", re.S | re.M)
PAGES = {path.relative_to(ROOT / "book").as_posix(): path for path in (ROOT / "book").rglob("*.md")}
PAGES = {
    "README.md": ROOT / "README.md",
    **{name: path for name, path in PAGES.items() if not name.startswith(("_", "notebooks/"))},
}


def too_long(text: str) -> list[str]:
    return [line for code in BLOCK.findall(text) for line in code.splitlines() if len(line) > WIDTH]


def test_a_line_of_77_columns_is_found_in_code_alone():
    assert too_long(f"{77 * 'a'}\n\n```sh\n{77 * 'b'}\n{76 * 'c'}\n```\n") == [77 * "b"]


@pytest.mark.parametrize("page", sorted(PAGES))
def test_code_of_a_page_fits_its_width(page):
    assert not too_long(PAGES[page].read_text(encoding="utf-8"))
