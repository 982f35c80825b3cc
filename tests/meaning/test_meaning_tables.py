"""Tables of every type: generated rows are of the members' types, and a file's form changes
nothing.
"""

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest

from paperlib.generators.tabular import ChowLiuTree, IndependentColumns
from paperlib.reading import read_frames

TRIALS = 200  # of each property
ROWS = 40
WORDS = ["low", "mid", "high", "top", "never"]


def column(rng):
    """A column of some type that pandas knows."""
    numbers, places = rng.normal(size=ROWS).round(3), rng.integers(0, 4, ROWS)
    days = pd.Timestamp("2024-02-28") + pd.to_timedelta(rng.integers(0, 90, ROWS), unit="D")
    makers = [
        lambda: numbers,
        lambda: numbers.astype(np.float32),
        lambda: places.astype(np.int8),
        lambda: places > 1,
        lambda: pd.Series((places > 1).tolist(), dtype=object),
        lambda: pd.Series([[1, 2.5, "other", True][at] for at in places], dtype=object),
        lambda: pd.Series([[1, "1", True, 0][at] for at in places], dtype=object),
        lambda: pd.Series([decimal.Decimal(int(at)) for at in places], dtype=object),
        lambda: pd.Series([day.date() for day in days], dtype=object),
        lambda: pd.Series(days),
        lambda: pd.Series(days).dt.tz_localize("Europe/Paris"),
        lambda: pd.Series(pd.to_timedelta(places, unit="h")),
        lambda: pd.Categorical([WORDS[at] for at in places], categories=WORDS, ordered=True),
        lambda: pd.Categorical(10 * places, categories=[30, 20, 10, 0, 50]),
        lambda: pd.array(places, dtype="Int64"),
        lambda: pd.array(places > 1, dtype="boolean"),
        lambda: pd.array(numbers, dtype="Float64"),
        lambda: pd.array([f"00{at}" for at in places], dtype="string"),
        lambda: [["NA", "0012", "nan", "é"][at] for at in places],
        lambda: [datetime.time(int(at)) for at in places],
    ]
    return makers[rng.integers(len(makers))]()


def table(rng):
    width = int(rng.integers(2, 6))
    names = list(range(width)) if rng.random() < 0.5 else [f"c{at}" for at in range(width)]
    return pd.DataFrame({name: column(rng) for name in names})


def elements(frame):
    """The values of each column, each with its type."""
    return [{(type(value).__name__, value) for value in frame[name]} for name in frame]


def tree(frame, seed):
    return ChowLiuTree(bins=5).fit(frame).sample(30, seed)


def independent(frame, seed):
    return IndependentColumns().fit(frame).sample(30, seed)


def as_text(frame, seed):
    """Writes the columns that hold no numbers as text, and all names."""
    drawn = independent(frame, seed)
    words = [name for name in drawn if drawn[name].dtype == object]
    return drawn.astype(dict.fromkeys(words, str)).rename(columns=str)


def wrong_rows(draw, trials):
    """Tables whose generated rows have another name, type or value than the members."""
    wrong = 0
    for seed in range(trials):
        frame = table(np.random.default_rng([seed, 13]))
        drawn = draw(frame, seed)
        same = list(drawn.columns) == list(frame.columns) and list(drawn.dtypes) == list(
            frame.dtypes
        )
        pairs = zip(elements(drawn), elements(frame), strict=True) if same else []
        wrong += not (same and all(few <= many for few, many in pairs))
    return wrong


@pytest.mark.parametrize("draw", [tree, independent])
def test_generated_rows_have_the_members_names_types_and_values(draw):
    assert wrong_rows(draw, TRIALS) == 0
    assert wrong_rows(as_text, 20) > 5


TEXTS = ["red", "blue", "NA-1", "0012", "+33 1", "é"]


def written(rng):
    """A table of numbers and words, as a file may hold it."""
    words = [
        TEXTS,
        ["true", "false", "maybe"],
        ["000123", "000007"],
        ["1e5x", "2024-01-31"],
        ["NA", "DE"],
    ]
    return pd.DataFrame(
        {
            "number": rng.normal(size=ROWS).round(3),
            "count": rng.integers(-5, 2_000, ROWS),
            "word": rng.choice(words[rng.integers(len(words))], ROWS),
            "code": [f"{at:06d}" for at in rng.permutation(9_000)[:ROWS]],
        }
    )


def stored(frame, folder, form):
    """The same table in one of six forms."""
    path = folder / ["a.csv", "a.CSV", "a.tsv", "a.parquet", "a.PQ", "a.csv.gz"][form]
    if form in (3, 4):
        frame.to_parquet(path, index=False)
    elif form == 1:
        frame.to_csv(path, index=False, sep=";", decimal=",", encoding="utf-16")
    else:
        frame.to_csv(path, index=False, sep="\t" if form == 2 else ",")
    return str(path)


def changed_tables(read, trials, folder):
    """Tables that come back with another type or value."""
    wrong = 0
    for seed in range(trials):
        rng = np.random.default_rng([seed, 17])
        frame = written(rng)
        try:
            got = read(stored(frame, folder, int(rng.integers(6))))
        except UnicodeDecodeError:  # pandas refuses another encoding
            continue
        same = list(got.columns) == list(frame.columns)
        wrong += not (same and all(list(got[name]) == list(frame[name]) for name in frame))
    return wrong


def by_pandas(path):
    """Guesses types file by file."""
    return pd.read_parquet(path) if path.lower().endswith(("parquet", "pq")) else pd.read_csv(path)


def by_us(path):
    return read_frames([path])[0]


def test_a_table_is_the_same_in_every_form_of_file(tmp_path):
    assert changed_tables(by_us, TRIALS, tmp_path) == 0
    frame = written(np.random.default_rng(3))
    assert all(by_us(stored(frame, tmp_path, form)).shape == frame.shape for form in range(6)), (
        "not refused"
    )
    assert changed_tables(by_pandas, 20, tmp_path) > 5
