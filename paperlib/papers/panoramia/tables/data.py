"""Real tables for PANORAMIA: raw columns, and disjoint parts of their rows."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paperlib.core import IntArray, check_choice
from paperlib.data import adult, randhie
from paperlib.data.encoding import TableEncoder
from paperlib.io import data_folder

DATASETS = ("randhie", "adult")
LABELS: Mapping[str, tuple[str, ...]] = {"randhie": ("visits",), "adult": ("occupation", "income")}
MOST_VISITS = 11
"""Numbers of visits from here on are one class."""


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Rows whose label is one of their columns.

    Attributes:
        rows: Numbers and words, the label among them.
        label: Name of the label's column.
        classes: Its values, whether or not a part of the rows has them all.
        sha256: Checksum of the rows.
    """

    rows: pd.DataFrame
    label: str
    classes: tuple[str, ...]
    sha256: str


@lru_cache(maxsize=4)
def load_table(dataset: str, label: str) -> LabelledTable:
    """A real table.

    Args:
        dataset: "randhie": one person-year drawn of each of 2,760 patterns of features (rows of one person
            or family repeat the features), from a file of statsmodels. "adult": both official parts, 48,842
            rows.
        label: "visits" to a doctor in a year (0 to 10, and more) for randhie; "occupation" or "income"
            (the paper's) for adult.

    Raises:
        ValueError: Unknown names.
        DataUnavailableError: Adult is not there and cannot be fetched.
    """
    check_choice("dataset", dataset, DATASETS)
    check_choice("label", label, LABELS[dataset])
    rows = _randhie() if dataset == "randhie" else _adult()
    classes = tuple(sorted(set(rows[label].astype(str)), key=lambda name: (len(name) * name.isdigit(), name)))
    digest = hashlib.sha256(rows.to_csv(index=False).encode()).hexdigest()
    return LabelledTable(rows=rows, label=label, classes=classes, sha256=digest)


def _randhie() -> pd.DataFrame:
    from statsmodels.datasets import randhie as source  # slow to import and needed only here

    randhie.load_randhie()  # checks the values
    loaded: Any = source.load_pandas()
    raw: pd.DataFrame = loaded.data
    shuffled = raw.sample(frac=1, random_state=0)
    one_of_each = shuffled[~shuffled.duplicated(list(randhie.COLUMNS[1:]))].reset_index(drop=True)
    visits = one_of_each.pop("mdvis").clip(upper=MOST_VISITS).astype(int)
    return one_of_each.assign(visits=visits)


def _adult() -> pd.DataFrame:
    adult.load_adult()  # fetches where needed, and checks the rows
    folder = data_folder()
    rows: list[adult.Row] = []
    for part in (adult.TRAIN, adult.TEST):
        path = next(folder / name for name in part.files if (folder / name).is_file())
        rows += adult.read_rows(path)
    table = pd.DataFrame(rows, columns=list(adult.COLUMNS))
    return table.astype(dict.fromkeys(adult.NUMERIC, "int64"))


@dataclass(frozen=True, kw_only=True)
class PartSizes:
    """Rows of each part; the parts share no row.

    Attributes:
        generator: D_G: the generator, the discriminator and the real-data helper learn from these.
        members: D_in: targets train on these.
        null: Other real rows, which targets that are not to see the members train on.
        nonmembers: Real rows that nothing is trained on.

    Raises:
        ValueError: A part of less than 10 rows.
    """

    generator: int
    members: int
    null: int
    nonmembers: int

    def __post_init__(self) -> None:
        for name, size in vars(self).items():
            if size < 10:
                raise ValueError(f"{name}: expected 10 rows or more, got {size}")


def split_table(table: pd.DataFrame, sizes: PartSizes, seed: int) -> dict[str, pd.DataFrame]:
    """Disjoint parts in random order, by the names of `PartSizes`.

    Raises:
        ValueError: The parts together ask for more rows than there are.

    >>> parts = split_table(pd.DataFrame({"a": range(40)}), PartSizes(
    ...     generator=10, members=10, null=10, nonmembers=10), seed=0)
    >>> len(set().union(*(part["a"] for part in parts.values())))
    40
    """
    wanted = vars(sizes)
    if sum(wanted.values()) > len(table):
        raise ValueError(
            f"sizes: {' + '.join(f'{size} {name}' for name, size in wanted.items())} are "
            f"{sum(wanted.values())} rows, and the table has {len(table)}"
        )
    order = np.random.default_rng(seed).permutation(len(table))
    ends = np.cumsum(list(wanted.values()))
    parts = np.split(order[: ends[-1]], ends[:-1])
    return {name: table.iloc[rows].reset_index(drop=True) for name, rows in zip(wanted, parts, strict=True)}


@dataclass(frozen=True, eq=False)
class RowEncoder:
    """Rows as what an MLP takes: features and class numbers.

    Fitted on D_G alone: a target that never saw the members knows nothing of them through the scaling either.

    Attributes:
        features: Numbers scaled, words one-hot.
        label: Name of the label's column.
        classes: Its values.
    """

    features: TableEncoder
    label: str
    classes: tuple[str, ...]

    @classmethod
    def fit(cls, rows: pd.DataFrame, label: str, classes: tuple[str, ...]) -> "RowEncoder":
        """Learn means, deviations and words from ``rows``."""
        columns = {str(name): values.to_numpy() for name, values in rows.items()}
        numeric = [name for name, values in columns.items() if name != label and values.dtype.kind in "biuf"]
        words = [name for name in columns if name != label and name not in numeric]
        return cls(TableEncoder.fit(columns, numeric=numeric, words=words), label, classes)

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.features.names)

    def __call__(self, rows: pd.DataFrame) -> tuple[NDArray[np.float32], IntArray]:
        """Features (n, width), float32, and class numbers (n,).

        Raises:
            ValueError: A label that is none of the classes.
        """
        place = {name: at for at, name in enumerate(self.classes)}
        labels = rows[self.label].astype(str)
        if unknown := sorted(set(labels) - set(place)):
            raise ValueError(f"rows: expected labels of {', '.join(self.classes)}, got {', '.join(unknown)}")
        x = self.features.transform({str(name): rows[name].to_numpy() for name in rows})
        return x, np.array([place[value] for value in labels], dtype=np.int64)
