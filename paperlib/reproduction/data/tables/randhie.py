"""RAND Health Insurance Experiment: ships inside statsmodels, so the default profile needs no
download.
"""

import hashlib
from typing import Literal

import numpy as np
import pandas as pd

from paperlib.core.checks import check_choice, check_in
from paperlib.core.packages import optional_package
from paperlib.data.dataset import Dataset, TableEncoder

ROWS = 20_190
COLUMNS = (
    "mdvis",
    "lncoins",
    "idp",
    "lpi",
    "fmde",
    "physlm",
    "disea",
    "hlthg",
    "hlthf",
    "hlthp",
)
SHA256 = "08a4b4e0b848c29e696f2fa2ac9b619ca133f1c4996e35f1c09adf2b2f718ef2"
SHA256S = {"randhie (values)": SHA256}
SOURCE = (
    "RAND Health Insurance Experiment, as in Cameron and Trivedi (2005), through "
    "statsmodels.datasets.randhie"
)
LICENCE = "public domain"

Group = Literal["pattern", "row", "distinct"]


def load_randhie(*, test_share: float = 0.5, seed: int = 0, group: Group = "pattern") -> Dataset:
    """Did a person see a doctor this year? 20,190 person-years, 9 features, from a file of
    statsmodels.

    There are only 2,760 different feature rows, "patterns". ``group`` "pattern" puts all rows with
    equal features on the same side: membership is decided for whole groups of rows, which no audit
    of single rows allows. "row" splits row by row: audits of rows are sound, but most test rows
    have twins among the training rows. "distinct" keeps one row, drawn at random, of each pattern.

    Raises:
        ValueError: An unknown group, or a share that leaves one side without rows.
        ModuleNotFoundError: statsmodels is not installed.
    """
    check_choice("group", group, ("pattern", "row", "distinct"))
    check_in("(0, 1)", "test_share", test_share)
    rng = np.random.default_rng(seed)
    values = read_table().to_numpy(dtype=np.float64)
    if group == "distinct":  # the first row of each pattern, in a random order of rows
        values = values[rng.permutation(len(values))]
        _, first = np.unique(values[:, 1:], axis=0, return_index=True)
        values = values[np.sort(first)]
    # What falls on one side together: rows, or patterns of rows, by number.
    unit_of_row = np.arange(len(values))
    if group == "pattern":
        unit_of_row = np.unique(values[:, 1:], axis=0, return_inverse=True)[1].ravel()
    units = int(unit_of_row.max()) + 1
    test_units = rng.permutation(units)[: round(test_share * units)]
    test = np.isin(unit_of_row, test_units)
    if test.all() or not test.any():
        raise ValueError(f"test_share: {test_share} leaves one part without rows")
    train_columns = {name: values[~test, index] for index, name in enumerate(COLUMNS)}
    test_columns = {name: values[test, index] for index, name in enumerate(COLUMNS)}
    encoder = TableEncoder.fit(train_columns, numeric=COLUMNS[1:], words=())
    labels = (values[:, 0] > 0).astype(np.int64)
    return Dataset(
        train_x=encoder.transform(train_columns),
        train_y=labels[~test],
        test_x=encoder.transform(test_columns),
        test_y=labels[test],
        name="randhie",
        source=SOURCE,
        licence=LICENCE,
        sha256s=SHA256S,
        description=f"RAND Health Insurance Experiment: {(~test).sum()} person-years to train on "
        f"and {test.sum()} others, split by {group} (seed {seed}). Label 1: any visit to a doctor "
        "that year. Nine features scaled on the training part.",
        features=encoder.names,
    )


def read_table() -> pd.DataFrame:
    """All rows, as statsmodels has them, with the columns ``COLUMNS``.

    Raises:
        ValueError: A file of statsmodels with other rows.
        ModuleNotFoundError: statsmodels is not installed.
    """
    source = optional_package("statsmodels.datasets.randhie", "data", "the randhie data set")
    table: pd.DataFrame = source.load_pandas().data
    if tuple(table.columns) != COLUMNS or len(table) != ROWS:
        raise ValueError(
            f"randhie: expected {ROWS} rows of {', '.join(COLUMNS)}, got {table.shape}"
        )
    values = np.ascontiguousarray(table.to_numpy(dtype=np.float64))
    digest = hashlib.sha256(values.tobytes()).hexdigest()
    if digest != SHA256:
        raise ValueError(f"randhie: expected values with SHA-256 {SHA256}, got {digest}")
    return table
