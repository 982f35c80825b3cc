"""Made-up people of UCI Adult and shoppers of Purchase-100, in the official files."""

import gzip
import io
import tarfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from paperlib.reproduction.data.tables import adult, purchase

_SMALL_ADULT = (1_400, 700)  # people of the training and of the test part
_SMALL_PURCHASE = 1_500  # shoppers
_WORDS = {
    "workclass": "Private Self-emp-not-inc Local-gov State-gov ?",
    "education": "HS-grad Some-college Bachelors Masters 11th Doctorate",
    "marital_status": "Married-civ-spouse Never-married Divorced Widowed",
    "occupation": "Prof-specialty Craft-repair Exec-managerial Adm-clerical Sales Other-service ?",
    "relationship": "Husband Not-in-family Own-child Unmarried Wife",
    "race": "White Black Asian-Pac-Islander Other",
    "sex": "Male Female",
    "native_country": "United-States Mexico Germany Philippines ?",
}
_RANGES = {
    "age": (17, 90),
    "fnlwgt": (12_000, 900_000),
    "education_num": (1, 16),
    "capital_gain": (0, 20_000),
    "capital_loss": (0, 2_500),
    "hours_per_week": (10, 80),
}


def write(folder: Path) -> None:
    """Write ``adult.data``, ``adult.test`` and ``dataset_purchase.tgz`` into a data folder."""
    rng = np.random.default_rng(0)
    for portion, rows, end in zip((adult.TRAIN, adult.TEST), _SMALL_ADULT, ("", "."), strict=True):
        head = "|1x3 Cross validator\n" if end else ""
        (folder / portion.files[1]).write_text(head + _people(rows, end, rng), encoding="utf-8")
    _write_purchase(folder / purchase.ARCHIVE)


def _write_purchase(path: Path) -> None:
    """Write the archive of shoppers."""
    shoppers = purchase.generate_purchase100_like(n_train=_SMALL_PURCHASE - 1, n_test=1, seed=1)
    x = np.concatenate([shoppers.train_x, shoppers.test_x]).astype(np.uint8)
    y = np.concatenate([shoppers.train_y, shoppers.test_y]) + 1
    # The characters of each row behind its label: a comma and a digit for each feature.
    cells = np.empty((_SMALL_PURCHASE, 2 * purchase.FEATURES), dtype=np.uint8)
    cells[:, 0::2] = ord(",")
    cells[:, 1::2] = x + ord("0")
    lines = [str(label).encode() + row.tobytes() for label, row in zip(y, cells, strict=True)]
    text = b"\n".join(lines)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        item = tarfile.TarInfo(purchase.MEMBER)
        item.size = len(text)
        archive.addfile(item, io.BytesIO(text))
    # Without the time of writing, so that the same data give the same checksum.
    path.write_bytes(gzip.compress(packed.getvalue(), compresslevel=1, mtime=0))


def _people(rows: int, end: str, rng: np.random.Generator) -> str:
    """Rows in UCI's form, whose label ``end`` closes; incomes depend on every column, so that there
    is something to learn.
    """
    wealth = np.zeros(rows)  # a sum over the columns, with a random weight each
    columns: dict[str, NDArray[np.str_]] = {}
    for name in adult.COLUMNS[:-1]:
        share = rng.beta(2, 4, rows)  # small values are likelier, as in the census
        wealth += rng.normal() * share
        if name in _RANGES:
            low, high = _RANGES[name]
            is_zero = name.startswith("capital") & (rng.random(rows) < 0.9)
            values = np.where(is_zero, 0, low + share * (high - low))
            columns[name] = values.astype(int).astype(str)
        else:
            words = np.array(_WORDS[name].split())
            columns[name] = words[(share * len(words)).astype(int)]
    is_rich = wealth + rng.normal(0, 0.1, rows) > np.quantile(wealth, 0.75)
    columns["income"] = np.where(is_rich, adult.LABELS[1] + end, adult.LABELS[0] + end)
    return "".join(", ".join(row) + "\n" for row in zip(*columns.values(), strict=True))
