"""Purchase-100: the official archive, and a generator of data of the same shape, under a name of
its own.
"""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from paperlib.core.checks import check_at_least, check_in
from paperlib.data.dataset import Dataset
from paperlib.data.files import contents, made_up, unavailable
from paperlib.io import data_folder
from paperlib.io.files import DownloadError, fetch, file_sha256

FEATURES = 600
CLASSES = 100
ARCHIVE = "dataset_purchase.tgz"
MEMBER = "dataset_purchase"
ADDRESSES = (
    "https://www.comp.nus.edu.sg/~reza/files/dataset_purchase.tgz",
    "https://github.com/privacytrustlab/datasets/raw/master/dataset_purchase.tgz",
)
OFFICIAL_ROWS = 197_324
TEST_SHARE = 0.33

SOURCE = (
    "Shokri, Stronati, Song and Shmatikov (2017), simplified from Kaggle's Acquire Valued "
    "Shoppers Challenge"
)
LICENCE = "none stated; made for research, the competition's rules apply"
LIKE_SOURCE = "generated here; no shopper's record"
LIKE_LICENCE = "MIT, as this package"
_CHUNK = 4_096
# A class, and what was bought.
_SHOPPER = re.compile(rb"([1-9][0-9]?|100)((?:,[01]){%d})" % FEATURES)


def load_purchase100(*, seed: int = 0, rows: int | None = OFFICIAL_ROWS) -> Dataset:
    """The official Purchase-100 archive, split at random into 67 % to train on and 33 % others.

    Of each shopper it holds which of 600 products were bought, 0 or 1 as float32, shape (n, 600),
    and the class, 0 to 99 as int64, shape (n,).

    Args:
        seed: Of the split.
        rows: Number of rows that the file must have (one of all customers, as in the paper, has
            311,540); None accepts any. In a data folder of
            made-up data, which counts as no result, any number passes.

    Raises:
        DataUnavailableError: The archive is not there and cannot be fetched.
        ValueError: A damaged file, or another number of rows.
    """
    path = _file(data_folder())
    x, y = _parsed(path)
    if rows is not None and len(y) != rows and not made_up():
        raise ValueError(
            f"{path}: expected {rows} rows, got {len(y)}; pass rows={len(y)} if that is meant"
        )
    cut = int(np.ceil(TEST_SHARE * len(y)))
    order = np.random.default_rng(seed).permutation(len(y))
    test, train = order[:cut], order[cut:]
    return Dataset(
        train_x=x[train].astype(np.float32),
        train_y=y[train],
        test_x=x[test].astype(np.float32),
        test_y=y[test],
        name="purchase100",
        source=SOURCE,
        licence=LICENCE,
        sha256s={path.name: file_sha256(path)},
        description=f"Shoppers: {len(train)} to train on and {len(test)} others, {FEATURES} "
        f"products bought or not (1 or 0), {CLASSES} clusters of purchase habits as classes; "
        f"random split, seed {seed}.",
    )


def _file(folder: Path) -> Path:
    """The archive or its unpacked file in the folder; fetched if neither is there, a
    DataUnavailableError where it cannot be.
    """
    for name in (ARCHIVE, MEMBER):
        if (folder / name).is_file():
            return folder / name
    errors: list[str] = []
    for address in ADDRESSES:
        try:
            fetch(address, folder / ARCHIVE)
            return folder / ARCHIVE
        except DownloadError as error:
            errors.append(str(error))
    files = f"{ARCHIVE} and no {MEMBER}"
    raise unavailable("Purchase-100", files, folder, ADDRESSES[0], errors)


def _parsed(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """What each shopper bought, 0 or 1, shape (n, 600), and the classes from 0, shape (n,); a
    ValueError for an empty file and for a line of another form.
    """
    text = path.read_bytes() if path.name == MEMBER else dict(contents(path, [MEMBER]))[MEMBER]
    lines = text.split()
    if not lines:
        raise ValueError(f"{path}: the file is empty")
    y = np.empty(len(lines), dtype=np.int64)
    cells: list[bytes] = []
    for index, line in enumerate(lines):
        match = _SHOPPER.fullmatch(line)
        if match is None:
            start = line[:20].decode("ascii", errors="replace") + ("…" if len(line) > 20 else "")
            raise ValueError(
                f"{path}: line {index + 1}: expected a class from 1 to {CLASSES} and {FEATURES} "
                f"times 0 or 1, separated by commas; got {line.count(b',') + 1} columns: {start}"
            )
        y[index] = int(match[1]) - 1
        cells.append(match[2])
    # The cells of a row are a comma and a digit for each product.
    signs = np.frombuffer(b"".join(cells), dtype=np.uint8).reshape(len(lines), 2 * FEATURES)
    return signs[:, 1::2] - ord("0"), y


def generate_purchase100_like(
    *, n_train: int = 20_000, n_test: int = 20_000, seed: int = 0, mixing: float = 0.35
) -> Dataset:
    """Invented shoppers in the shape of Purchase-100; not Purchase-100.

    A shopper of class c buys product j with chance
    ``mixing * class[c, j] + (1 - mixing) * base[j]``, independently; chances are uniform on [0, 1],
    and classes equally likely. Small ``mixing``, in (0, 1], makes classes hard to tell apart, so
    that a network that fits its training rows must memorise them.

    Raises:
        ValueError: Fewer than 1 shopper on a side, or ``mixing`` out of range.
    """
    check_at_least(1, n_train=n_train, n_test=n_test)
    check_in("(0, 1]", "mixing", mixing)
    rng = np.random.default_rng(seed)
    base = rng.random(FEATURES, dtype=np.float32)
    chances = mixing * rng.random((CLASSES, FEATURES), dtype=np.float32) + (1 - mixing) * base
    labels = rng.integers(0, CLASSES, n_train + n_test)
    bought = np.empty((len(labels), FEATURES), dtype=np.float32)
    for start in range(0, len(labels), _CHUNK):
        rows = slice(start, start + _CHUNK)
        bought[rows] = rng.random(bought[rows].shape, dtype=np.float32) < chances[labels[rows]]
    return Dataset(
        train_x=bought[:n_train],
        train_y=labels[:n_train],
        test_x=bought[n_train:],
        test_y=labels[n_train:],
        name="purchase100_like",
        source=LIKE_SOURCE,
        licence=LIKE_LICENCE,
        sha256s={},
        description=f"Generated, not Purchase-100: {n_train} shoppers to train on and {n_test} "
        f"others, {FEATURES} products bought or not, {CLASSES} classes whose habits have weight "
        f"{mixing:g} against a common base; seed {seed}.",
    )
