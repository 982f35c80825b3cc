"""Real tables with raw columns, one of them the label."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import pandas as pd

from paperlib.core.checks import check_choice
from paperlib.reproduction.data.tables import adult, randhie

LABELS: Mapping[str, tuple[str, ...]] = {"randhie": ("visits",), "adult": ("occupation", "income")}

MOST_VISITS = 11  # numbers of visits from here on are one class


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Rows whose label is one of their columns."""

    rows: pd.DataFrame  # numbers and words, the label among them
    label: str  # name of its column
    classes: tuple[str, ...]  # all values of the label; a part of the rows may lack some
    sha256: str  # of the rows


@lru_cache(maxsize=4)
def load_table(dataset: str, label: str) -> LabelledTable:
    """RAND HIE, one person-year of each of 2,760 patterns of features, or both parts of Adult.

    Raises:
        ValueError: A data set or label that ``LABELS`` does not name, or damaged files.
        DataUnavailableError: The files are not there and cannot be fetched.
    """
    check_choice("dataset", dataset, LABELS)
    check_choice("label", label, LABELS[dataset])
    if dataset == "randhie":
        shuffled = randhie.read_table().sample(frac=1, random_state=0)
        # The first of each pattern in a random order is a random one of it.
        is_repeated = shuffled.duplicated(list(randhie.COLUMNS[1:]))
        rows = shuffled[~is_repeated].reset_index(drop=True)
        visits = rows.pop("mdvis").clip(upper=MOST_VISITS).astype(int)
        rows = rows.assign(visits=visits)
    else:
        train, test = adult.read_parts()
        rows = pd.DataFrame(train + test, columns=list(adult.COLUMNS))
        rows = rows.astype(dict.fromkeys(adult.NUMERIC, "int64"))
    classes = sorted(set(rows[label].astype(str)), key=_class_order)
    digest = hashlib.sha256(rows.to_csv(index=False).encode()).hexdigest()
    return LabelledTable(rows=rows, label=label, classes=tuple(classes), sha256=digest)


def _class_order(name: str) -> tuple[int, str]:
    """A key that sorts words by the alphabet and, behind them, whole numbers by their value."""
    return (len(name) if name.isdigit() else 0, name)
