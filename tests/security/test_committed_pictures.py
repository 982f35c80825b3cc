"""Pictures and arrays in the repository show no data whose licence is not stated."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Each file with what it shows; a new one needs a line here, and a look at whose pixels it holds.
SHOWN = {
    "book/_static/book.png": "the first page of this book",
    "book/measured/panoramia_cifar10.png": "images that our generators drew",
    "tests/report/earlier_receipt.html.gz": "a report of made-up scores by an earlier version",
}
PICTURES = {
    ".png",
    ".jpg",
    ".jpeg",
    ".gif",
    ".webp",
    ".bmp",
    ".tif",
    ".tiff",
    ".svg",
    ".ico",
    ".pdf",
}
ARRAYS = {
    ".npy",
    ".npz",
    ".pt",
    ".pth",
    ".bin",
    ".pkl",
    ".safetensors",
    ".parquet",
    ".arrow",
    ".h5",
}
ARCHIVES = {".zip", ".gz", ".xz", ".bz2", ".tar"}


def of_pixels(names: list[str]) -> set[str]:
    """The files that may hold images or records of others: pictures, arrays, weights, archives."""
    return {name for name in names if Path(name).suffix.lower() in PICTURES | ARRAYS | ARCHIVES}


def test_a_new_picture_is_seen():
    assert of_pixels(["a/b.PNG", "c.md", "d.npz"]) == {"a/b.PNG", "d.npz"}


@pytest.fixture(scope="module")
def committed() -> list[str]:
    """Paths of the files that git keeps; a built page beside them holds the figures of its run."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a checkout of git")
    return [name for name in listed.stdout.split("\0") if (ROOT / name).is_file()]


def test_each_committed_picture_is_known(committed: list[str]):
    assert of_pixels(committed) == set(SHOWN)


def test_no_page_and_no_notebook_carries_a_picture_in_its_text(committed: list[str]):
    pages = [
        ROOT / name
        for name in committed
        if name.startswith(("book/", "notebooks/")) and name.endswith((".md", ".ipynb"))
    ]
    assert len(pages) > 50
    assert [page.name for page in pages if "data:image/" in page.read_text("utf-8")] == []
