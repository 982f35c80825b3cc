"""Parquet files whose metadata say what is not so: the scores that are there, or one line."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paperlib.data.text.corpora import read_documents
from paperlib.io import open_records, read_scores
from tests.security.parquet_files import (
    IN_GROUP,
    ROWS,
    changed,
    column,
    entry,
    groups,
    sound_file,
    with_page,
)

PLAIN = {"use_dictionary": False, "compression": "none"}
WRONG = (-1, -(2**62), 0, 1, 2**20, 2**31 - 1, 2**62)
"""Numbers that stand in place of a right one."""
COUNTS = (0, 1, 3, 2**27, 2**32 - 1)
SCORE = (4, 1, 1, 0, 1, 1, 1, 2, 3, 1)  # the column of scores in the first group of rows
OF_METADATA = {
    "rows of the file": (3,),
    "rows of a group": (4, 1, 1, 1, 3),
    "bytes of a group": (4, 1, 1, 1, 2),
    "values of a column": (*SCORE, 5),
    "size of a column when unpacked": (*SCORE, 6),
    "size of a column": (*SCORE, 7),
    "place of a column": (*SCORE, 9),
    "missing values of a column": (*SCORE, 12, 1, 3),
}
OF_PAGE = {"size when unpacked": (2,), "size": (3,), "values": (5, 1, 1)}
LISTS = {"groups": (4, 1), "entries of the schema": (2, 1), "columns": (4, 1, 1, 0, 1, 1)}


def put(path, value):
    """A change of metadata: a value in place of that of an entry."""
    return lambda fields: entry(fields, path).__setitem__(1, value)


def stated(path, count):
    """A change of metadata: a list that is said to have so many items."""
    return lambda fields: entry(fields, path).append(count)


def many_times(fields):
    groups(fields).extend(groups(fields)[:1] * 20_000)
    fields[3][1] += 20_000 * IN_GROUP


def elsewhere(fields):
    column(fields, 2).update({name: column(fields, 1)[name] for name in (7, 9)})


OTHER = {
    "a group left out": lambda fields: groups(fields).pop(),
    "a group twice": lambda fields: groups(fields).append(groups(fields)[0]),
    "a group in place of another": lambda fields: groups(fields).__setitem__(1, groups(fields)[0]),
    "a group 20,000 times": many_times,
    "a column in the place of another": elsewhere,
    "the largest value": put((*SCORE, 12, 1, 5), np.float64(99).tobytes()),
}


def lies():
    """Files of 200 scores in which one thing is not so."""
    data = sound_file()
    files = {name: changed(data, change) for name, change in OTHER.items()}
    for value in WRONG:
        for what, path in OF_METADATA.items():
            files[f"{what}: {value}"] = changed(data, put(path, value))
        for kind, options in (("packed", {}), ("plain", PLAIN)):
            for what, path in OF_PAGE.items():
                name = f"{what} of a {kind} page: {value}"
                files[name] = with_page(sound_file(**options), 2, put(path, value))
    for count in COUNTS:
        for what, path in LISTS.items():
            files[f"{what}: {count}"] = changed(data, stated(path, count))
        files[f"bytes of the metadata: {count}"] = data[:-8] + count.to_bytes(4, "little") + b"PAR1"
    return files


LIES = lies()


@pytest.mark.parametrize("name", LIES)
def test_metadata_that_lie_give_the_scores_that_are_there_or_one_line(here, name):
    Path("sound.parquet").write_bytes(sound_file())
    Path("lying.parquet").write_bytes(LIES[name])
    sound = read_scores("sound.parquet").scores
    refusal = ""
    scores = None
    try:
        scores = read_scores("lying.parquet").scores
    except ValueError as error:
        refusal = str(error)
    if scores is None:
        assert refusal.startswith("lying.parquet: ")
        assert "\n" not in refusal
    else:
        assert len(scores.member) + len(scores.nonmember) == ROWS
        assert np.array_equal(scores.member, sound.member)
        assert np.array_equal(scores.nonmember, sound.nonmember)


@pytest.mark.parametrize("value", [-1, 1, 2**20])
def test_no_reader_leaves_rows_out_without_a_word(here, command, value):
    """Of a group that is said to have fewer rows, pyarrow reads so many."""
    lying = changed(sound_file(), put(OF_METADATA["rows of a group"], value))
    Path("lying.parquet").write_bytes(lying)
    with pytest.raises(ValueError, match="said to have 200"):
        open_records("lying.parquet")
    code, _, errors = command("coins", "lying.parquet", "--out", "train.parquet")
    assert (code, len(errors.splitlines())) == (2, 1)
    Path("corpus").mkdir()
    buffer = pa.BufferOutputStream()
    texts = [f"the text of number {row}" for row in range(ROWS)]
    pq.write_table(pa.table({"text": texts}), buffer, row_group_size=IN_GROUP)
    shorter = changed(buffer.getvalue().to_pybytes(), put(OF_METADATA["rows of a group"], value))
    Path("corpus/lying.parquet").write_bytes(shorter)
    with pytest.raises(ValueError, match=r"were not read .*said to have 200"):
        list(read_documents("corpus"))
