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


def test_each_committed_picture_is_known():
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a checkout of git")
    names = [name for name in listed.stdout.split("\0") if (ROOT / name).is_file()]
    assert of_pixels(names) == set(SHOWN)


def test_no_page_and_no_notebook_carries_a_picture_in_its_text():
    folders = [ROOT / "book", ROOT / "notebooks"]
    for path in sorted(file for folder in folders for file in folder.rglob("*")):
        if path.suffix in {".md", ".ipynb"} and "_build" not in path.parts:
            assert "data:image/" not in path.read_text(encoding="utf-8"), path.name
