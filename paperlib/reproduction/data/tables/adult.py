"""UCI Adult (Census Income): the official two parts, checked row by row against a pinned
checksum.
"""

import csv
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paperlib.data.dataset import Dataset, TableEncoder
from paperlib.data.files import made_up, unavailable
from paperlib.io import data_folder
from paperlib.io.files import DownloadError, fetch, write_text

SOURCE = (
    "Becker and Kohavi (1996), Adult, UCI Machine Learning Repository, "
    "https://archive.ics.uci.edu/dataset/2"
)
LICENCE = "CC BY 4.0"
DESCRIPTION = (
    "Census income: 32,561 training and 16,281 other people, the official parts. Label 1: income "
    "above 50,000 dollars. Six numbers scaled to mean 0 and deviation 1, eight words one-hot (108 "
    "features), both fitted on the training part alone. '?' (unknown workclass, occupation or "
    "country) is a value of its own; no row is dropped, repeated rows stay."
)

NUMERIC = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")
COLUMNS: tuple[str, ...] = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
)
WORDS = tuple(name for name in COLUMNS[:-1] if name not in NUMERIC)
LABELS = ("<=50K", ">50K")


@dataclass(frozen=True)
class Part:
    """One official part: the names it goes by, and what it must hold."""

    files: tuple[str, str]  # the first one as this package would write it, the second UCI's own
    rows: int  # number of people
    sha256: str  # of its rows in the form of `plain_text`, independent of the file's own form
    uci_sha256: str  # of UCI's own file


TRAIN = Part(
    ("adult_train.csv", "adult.data"),
    32_561,
    "3b8a6abd697a6623ef2ccbffc3e2802e167e7fdaa853003d3bd557b0ce7f5d2a",
    "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
)
TEST = Part(
    ("adult_test.csv", "adult.test"),
    16_281,
    "eb6e9f02496bed4137b1a069b8af64b90eb534ba46143948667034dddef9abd9",
    "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
)
SHA256S = {"adult.data": TRAIN.uci_sha256, "adult.test": TEST.uci_sha256}
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/"
OPENML = (
    "https://www.openml.org/data/get_csv/1595261/phpMawTba"  # data set 1590: both parts in one file
)

Row = tuple[str, ...]


def load_adult() -> Dataset:
    """The official parts of Adult, from the data folder or fetched from UCI or OpenML, and
    checked.

    Raises:
        DataUnavailableError: The files are not there and cannot be fetched.
        ValueError: A file with other rows.
    """
    train_rows, test_rows = read_parts()
    train = dict(zip(COLUMNS, np.array(train_rows).T, strict=True))
    test = dict(zip(COLUMNS, np.array(test_rows).T, strict=True))
    encoder = TableEncoder.fit(train, numeric=NUMERIC, words=WORDS)
    return Dataset(
        train_x=encoder.transform(train),
        train_y=(train["income"] == LABELS[1]).astype(np.int64),
        test_x=encoder.transform(test),
        test_y=(test["income"] == LABELS[1]).astype(np.int64),
        name="adult",
        source=SOURCE,
        licence=LICENCE,
        sha256s={
            TRAIN.files[0]: _digest(train_rows),
            TEST.files[0]: _digest(test_rows),
        },
        description=DESCRIPTION,
        features=encoder.names,
    )


def read_parts() -> list[list[Row]]:
    """The checked rows, 15 texts each, of the training and of the test part; errors as of
    `load_adult`.
    """
    portions: list[list[Row]] = []
    for portion in (TRAIN, TEST):
        path = _file_of(portion, data_folder())
        rows = _read_rows(path)
        if not made_up():
            _check_official(portion, rows, path)
        portions.append(rows)
    return portions


def _file_of(portion: Part, folder: Path) -> Path:
    """The file of one part: one in the folder, else UCI's, else cut out of OpenML's copy; both are
    fetched into the folder. Raises DataUnavailableError where none can be had.
    """
    for name in portion.files:
        if (folder / name).is_file():
            return folder / name
    path = folder / portion.files[1]
    try:
        fetch(UCI + portion.files[1], path, sha256=portion.uci_sha256)
        return path
    except DownloadError as uci_error:
        try:
            return _fetch_openml(folder) / portion.files[0]
        except (DownloadError, ValueError) as openml_error:
            errors = [str(uci_error), str(openml_error)]
            names = " and no ".join(portion.files)
            raise unavailable("UCI Adult", names, folder, UCI, errors) from None


def _check_official(portion: Part, rows: list[Row], path: Path) -> None:
    """Refuse (ValueError) other rows than those of the official part, by their number and checksum;
    ``path`` is the file that they were read from.
    """
    if len(rows) != portion.rows:
        raise ValueError(
            f"{path}: expected {portion.rows} rows, got {len(rows)}; the file is not whole"
        )
    digest = _digest(rows)
    if digest != portion.sha256:
        raise ValueError(
            f"{path}: these are not the rows of UCI Adult (expected SHA-256 {portion.sha256} of "
            f"the plain rows, got {digest}); remove the file to fetch it again"
        )


def _read_rows(path: Path) -> list[Row]:
    """The rows of a file, as `parse_rows` gives them; a ValueError, which begins with the file's
    name, for what that refuses and for bytes that are no text.
    """
    try:
        return parse_rows(path.read_text(encoding="utf-8").splitlines())
    except ValueError as error:  # bytes that are no text among them
        raise ValueError(f"{path}: {error}") from None


def parse_rows(lines: Iterable[str]) -> list[Row]:
    """Rows of a CSV with a header or of UCI's own form, without its comment, blanks and final full
    stops.

    Raises:
        ValueError: A line of another number of columns, or with values that the data do not have.
    """
    rows: list[Row] = []
    for number, cells in enumerate(csv.reader(lines, skipinitialspace=True), 1):
        if not cells or cells[0].startswith("|1x3"):
            continue
        row = tuple(cell.strip() for cell in cells)
        if number > 1 or row[0].lower() != "age":
            rows.append(_checked_row(row, number))
    return rows


def _checked_row(row: Row, number: int) -> Row:
    """The row of the line of this number, its income without a final full stop; a ValueError where
    it has other columns or values than Adult.
    """
    if len(row) != len(COLUMNS):
        raise ValueError(f"line {number}: expected {len(COLUMNS)} columns, got {len(row)}")
    label = row[-1].removesuffix(".")
    if label not in LABELS:
        raise ValueError(
            f"line {number}: expected the income {' or '.join(LABELS)}, got {row[-1]!r}"
        )
    for name, cell in zip(COLUMNS, row, strict=True):
        if name in NUMERIC and not cell.isdecimal():
            raise ValueError(f"line {number}: expected a whole number for {name}, got {cell!r}")
    return (*row[:-1], label)


def plain_text(rows: Iterable[Row]) -> str:
    """Rows as CSV with a header, commas without blanks: the form whose checksum is pinned."""
    return "".join(",".join(row) + "\n" for row in [COLUMNS, *rows])


def _digest(rows: Iterable[Row]) -> str:
    return hashlib.sha256(plain_text(rows).encode("utf-8")).hexdigest()


def _fetch_openml(folder: Path) -> Path:
    """Fetch OpenML's copy, which joins both parts, and write each part into the folder, which is
    returned; the pinned checksums tell which part comes first.

    Raises:
        DownloadError: The copy cannot be fetched.
        ValueError: Its rows are not those of the two parts.
    """
    joined = folder / "adult_openml.csv"
    fetch(OPENML, joined)
    rows = _read_rows(joined)
    for cut, order in ((TRAIN.rows, (TRAIN, TEST)), (TEST.rows, (TEST, TRAIN))):
        portions = dict(zip(order, (rows[:cut], rows[cut:]), strict=True))
        if all(_digest(part_rows) == portion.sha256 for portion, part_rows in portions.items()):
            for portion, part_rows in portions.items():
                write_text(folder / portion.files[0], plain_text(part_rows))
            return folder
    raise ValueError(f"{joined}: OpenML's rows are not the two official parts, one after the other")
