"""Real tables with raw columns, one of them the label."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import pandas as pd

from paperlib.core import check_choice
from paperlib.data.tables import adult, randhie

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
    """A real table.

    Args:
        dataset: "randhie": one person-year drawn of each of 2,760 patterns of features (rows of one person
            or family repeat the features), from a file of statsmodels. "adult": both official parts, 48,842
            rows.
        label: "visits" to a doctor in a year (0 to 10, and more) for randhie; "occupation" or "income"
            (the paper's) for adult.
    """
    check_choice("dataset", dataset, LABELS)
    check_choice("label", label, LABELS[dataset])
    rows = _randhie() if dataset == "randhie" else _adult()
    classes = tuple(sorted(set(rows[label].astype(str)), key=lambda name: (len(name) * name.isdigit(), name)))
    digest = hashlib.sha256(rows.to_csv(index=False).encode()).hexdigest()
    return LabelledTable(rows=rows, label=label, classes=classes, sha256=digest)


def _randhie() -> pd.DataFrame:
    shuffled = randhie.read_table().sample(frac=1, random_state=0)
    one_of_each = shuffled[~shuffled.duplicated(list(randhie.COLUMNS[1:]))].reset_index(drop=True)
    visits = one_of_each.pop("mdvis").clip(upper=MOST_VISITS).astype(int)
    return one_of_each.assign(visits=visits)


def _adult() -> pd.DataFrame:
    train, test = adult.read_parts()
    table = pd.DataFrame(train + test, columns=list(adult.COLUMNS))
    return table.astype(dict.fromkeys(adult.NUMERIC, "int64"))
