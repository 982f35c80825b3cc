"""Files that are small on the disk and would fill the memory: refused by their sizes."""

import gzip
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paperlib.io import read_scores
from paperlib.reading.limits import READ_LIMIT_VARIABLE, TooLargeError
from tests.security.parquet_files import Fields, changed, groups

ROWS = 10_000_000
LIMIT = 50 * 10**6
"""Bytes that a reading may take here: a column of ROWS numbers alone is larger."""
PIECE = 100_000


def arrays(members: int) -> Path:
    """Ten million scores beside an array of so many members."""
    path = Path("zeros.npz")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, size in (("scores", ROWS), ("member", members)):
            with archive.open(f"{name}.npy", "w") as file:
                header = {"descr": "<f8", "fortran_order": False, "shape": (size,)}
                np.lib.format.write_array_header_1_0(file, header)
                for start in range(0, size, PIECE):
                    file.write(bytes(8 * min(PIECE, size - start)))
    return path


def packed_table() -> Path:
    path = Path("zeros.csv.gz")
    with gzip.open(path, "wb") as file:
        file.write(b"member,score\n")
        for _ in range(ROWS // PIECE):
            file.write(b"1,0.00000000\n" * PIECE)
    return path


def packed_lines() -> Path:
    path = Path("zeros.jsonl.gz")
    with gzip.open(path, "wb") as file:
        for _ in range(ROWS // PIECE):
            file.write(b'{"member": 1, "score": 0}\n' * PIECE)
    return path


def packed_line() -> Path:
    """One line of 200 MB."""
    path = Path("line.csv.gz")
    with gzip.open(path, "wb") as file:
        file.write(b"member,score\n1,")
        for _ in range(200):
            file.write(b"0" * 10**6)
    return path


def parquet() -> Path:
    path = Path("zeros.parquet")
    columns = {"member": np.zeros(ROWS, dtype=np.int8), "score": np.zeros(ROWS)}
    pq.write_table(pa.table(columns), path, compression="zstd")
    return path


def folded_parquet(kind: str) -> Path:
    """Few rows with a long text in each, which is stored once, or by what differs."""
    path = Path(f"{kind}.parquet")
    rows = 20_000
    if kind == "deltas":
        options = {"use_dictionary": False, "column_encoding": {"note": "DELTA_BYTE_ARRAY"}}
    else:
        options = {"use_dictionary": ["note"], "store_schema": False}
    note: pa.Array = pa.array(["a" * 5_000] * rows)
    if kind == "blocks":
        note = pa.array([b"a" * 5_000] * rows, pa.binary(5_000))
    elif kind == "lists":
        note = pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), note)
        options["use_dictionary"] = True
    columns = {"member": np.arange(rows) % 2, "score": np.zeros(rows), "note": note}
    pq.write_table(pa.table(columns), path, compression="zstd", **options)
    return path


def lying_parquet(kind: str) -> Path:
    """As `folded_parquet`, with metadata by which each column has one byte when unpacked."""
    path = folded_parquet(kind)

    def one_byte(fields: Fields) -> None:
        for group in groups(fields):
            for chunk in group[1][1][1]:
                chunk[3][1][6][1] = 1

    path.write_bytes(changed(path.read_bytes(), one_byte))
    return path


BOMBS: dict[str, Callable[[], Path]] = {
    "arrays": lambda: arrays(ROWS),
    "arrays of two lengths": lambda: arrays(4),
    "a packed table": packed_table,
    "packed lines": packed_lines,
    "a packed line": packed_line,
    "parquet": parquet,
    "parquet with a dictionary": lambda: folded_parquet("dictionary"),
    "parquet with a dictionary of blocks": lambda: folded_parquet("blocks"),
    "parquet with a dictionary of lists": lambda: folded_parquet("lists"),
    "parquet with deltas": lambda: folded_parquet("deltas"),
    "parquet with a dictionary that lies": lambda: lying_parquet("dictionary"),
    "parquet with deltas that lie": lambda: lying_parquet("deltas"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_swells_is_refused_before_it_is_read(here, monkeypatch, name):
    """The memory that Python and pyarrow take meanwhile stays below the limit of the message."""
    monkeypatch.setenv(READ_LIMIT_VARIABLE, str(LIMIT))
    path = BOMBS[name]()
    assert path.stat().st_size < LIMIT / 40
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    usual = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError) as caught:
            read_scores(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)
    assert str(path) in str(caught.value)
    is_uneven = name == "arrays of two lengths"
    assert is_uneven or isinstance(caught.value, TooLargeError)
    assert ("has 4 values" if is_uneven else "--read-limit") in str(caught.value)
    assert peak + pool.max_memory() < LIMIT


@pytest.mark.parametrize("kind", ["dictionary", "blocks", "deltas"])
def test_texts_that_are_stored_once_are_read_within_the_limit(here, monkeypatch, kind):
    monkeypatch.setenv(READ_LIMIT_VARIABLE, "1GB")
    path = folded_parquet(kind)
    found = read_scores(path).scores
    assert (found.member.size, found.nonmember.size) == (10_000, 10_000)


def test_a_file_within_the_limit_is_read(here, monkeypatch):
    monkeypatch.setenv(READ_LIMIT_VARIABLE, str(LIMIT))
    rows = [f"{number % 2},{number / 1000}\n" for number in range(2_000)]
    with gzip.open("small.csv.gz", "wt") as file:
        file.write("member,score\n" + "".join(rows))
    found = read_scores("small.csv.gz").scores
    assert (found.member.size, found.nonmember.size) == (1_000, 1_000)
