"""Text as people save it: encodings, separators, quotes, decimal commas."""

import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paperlib.io import read_scores

PLAIN = "score,member,größe\n0.9,1,é\n0.1,0,x\n"


def read(folder: Path, text: str | bytes, name: str = "a.csv", **options: str):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_scores(path, **options)


@pytest.mark.parametrize(
    "text",
    [
        " score , member \n 0.9 , 1 \n 0.1 , 0 \n",
        "\ufeffscore;member\n0.9;1\n0.1;0\n",
        '"score","member"\r\n"0.9","1"\r\n"0.1","0"\r\n',
        '"score", "member"\n"0.9", "1"\n"0.1", "0"\n',
        "score,member\n9e-1,1\n1e-1,0",
        "score,member\r0.9,1\r0.1,0\r",
        "\n\nscore,member\n0.9,1\n\n0.1,0\n\n\n",
        'score,note,member\n0.9,"two\nlines, and ""quotes""",1\n0.1,,0\n',
        ",score,member,\n0,0.9,1,\n1,0.1,0,\n",
        "member\tscore\tnote\n1\t0.9\ta, b; c\n0\t0.1\t\n",
        "score;member\n+.9;1\n1E-1;0\n",
    ],
    ids=[
        "spaces",
        "mark",
        "quotes",
        "spaced-quotes",
        "no-end",
        "old-mac",
        "blank",
        "lines",
        "index",
        "tabs",
        "signs",
    ],
)
def test_csv_habits_are_understood(tmp_path: Path, text: str) -> None:
    found = read(tmp_path, text).scores
    np.testing.assert_array_equal((found.member, found.nonmember), ([0.9], [0.1]))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_unicode_with_a_mark_is_read(tmp_path: Path, encoding: str) -> None:
    assert read(tmp_path, PLAIN.encode(encoding), group_column="größe").groups.tolist() == ["é", "x"]


def test_utf_16_of_either_order_is_read(tmp_path: Path) -> None:
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        assert read(tmp_path, mark + PLAIN.encode(encoding)).scores.member.tolist() == [0.9]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (PLAIN.encode("cp1252"), r"is not UTF-8 text \(byte 0xf6 in line 1\); save it as UTF-8"),
        ("score,member\n1,1\n2,0 é\n".encode("latin-1"), r"is not UTF-8 text \(byte 0xe9 in line 3\)"),
        ("score,member\n1,1\n2,0\n".encode("utf-16-le"), "UTF-16 without a byte-order mark"),
        (PLAIN.encode("utf-16")[:-1], "is not UTF-16 text"),
    ],
)
def test_other_encodings_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(tmp_path, data)


# ---------------------------------------------------------------- decimal commas and thousands


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas_are_read_where_they_do_not_separate(tmp_path: Path, separator: str) -> None:
    rows = ["loss;member", "0,9;1,0", "-1,5e-3;0,0", "12,125;1", "3;0"]
    found = read(tmp_path, "\n".join(rows).replace(";", separator)).scores
    np.testing.assert_array_equal(found.member, [0.9, 12.125])
    np.testing.assert_array_equal(found.nonmember, [-1.5e-3, 3])


def test_a_table_that_pandas_writes_with_decimal_commas_is_read_back(tmp_path: Path) -> None:
    frame = pd.DataFrame({"loss": np.random.default_rng(0).normal(size=50), "member": [1.0, 0.0] * 25})
    frame.to_csv(tmp_path / "a.csv", sep=";", decimal=",", index=False)
    np.testing.assert_array_equal(read_scores(tmp_path / "a.csv").scores.member, frame["loss"][::2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "loss;member\n1.234,5;1\n2,5;0\n",
            r"mixes decimal commas \(first in row 1\) and points \(first in row 1\)",
        ),
        (
            "loss;member\n0,5;1\n2.5;0\n",
            r"mixes decimal commas \(first in row 1\) and points \(first in row 2\)",
        ),
        (
            "loss;member\n1,234;1\n17;0\n",
            "holds '1,234' in row 1, and no cell tells whether its mark stands for",
        ),
        (
            "loss;member\n17;1\n-2.345;0\n",
            "holds '-2.345' in row 2, and no cell tells whether its mark stands for",
        ),
        ("loss;member\n1,234,567;1\n0,5;0\n", "holds '1,234,567', not a number, in row 1"),
        (
            'loss,member\n"0,9",1\n2,0\n',
            "holds '0,9', not a number, in row 1; decimal commas need semicolons or tabs",
        ),
        ("loss;member\n1 234;1\n2;0\n", "holds '1 234', not a number, in row 1"),
    ],
)
def test_numbers_that_can_be_read_in_two_ways_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(tmp_path, text)


@pytest.mark.parametrize("cell", ["1,234", "1.234"])
def test_one_other_cell_settles_what_the_mark_means(tmp_path: Path, cell: str) -> None:
    other = cell.replace("1", "0")
    found = read(tmp_path, f"loss;member\n{cell};1\n{other};0\n").scores
    assert (found.member.tolist(), found.nonmember.tolist()) == ([1.234], [0.234])


def test_points_between_commas_are_decimal(tmp_path: Path) -> None:
    assert read(tmp_path, "loss,member\n1.234,1\n2.345,0\n").scores.member.tolist() == [1.234]


# ---------------------------------------------------------------- wide and long tables


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("more", [0, 200])
def test_wide_and_quoted_tables_are_read_like_narrow_ones(tmp_path: Path, quote: str, more: int) -> None:
    names = [f"{at}" for at in range(more)] + ["loss", "member"]
    rows = [names, *([f"{at + row}" for at in range(more)] + [f"0.{row}", f"{row % 2}"] for row in range(9))]
    text = "\n".join(",".join(f"{quote}{cell}{quote}" for cell in row) for row in rows)
    found = read(tmp_path, text).scores
    np.testing.assert_array_equal(found.nonmember, [0.0, 0.2, 0.4, 0.6, 0.8])


def test_an_empty_cell_of_a_lone_column_is_not_a_blank_line(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("loss\n1\n")
    for gap in ("", '""'):
        (tmp_path / "a.csv").write_text(f"loss\n1\n{gap}\n2\n\n")
        with pytest.raises(ValueError, match=r"column 'loss' has 1 empty cell \(first in row 2\)"):
            read_scores(tmp_path / "a.csv", tmp_path / "b.csv")


def test_a_row_that_fills_up_another_is_not_hidden(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="row 1 has 1 cells"):
        read(tmp_path, "loss,member\n1\n2,0,1\n")


def test_many_columns_are_listed_in_part(tmp_path: Path) -> None:
    names = ",".join(f"column{at}" for at in range(500))
    with pytest.raises(ValueError, match="and 470 more") as caught:
        read(tmp_path, f"{names}\n{names}\n")
    assert len(str(caught.value)) < 900


@pytest.mark.parametrize("rows", [200_000])
def test_a_long_table_takes_a_few_times_what_pandas_takes(tmp_path: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"loss": rng.normal(size=rows), "member": rng.integers(0, 2, rows)})
    frame.to_csv(tmp_path / "a.csv", index=False)
    took = {"pandas": [], "here": []}
    for _ in range(3):
        for name, run in (("pandas", lambda: pd.read_csv(tmp_path / "a.csv", dtype=str)), ("here", None)):
            start = time.process_time()
            found = run() if run else read_scores(tmp_path / "a.csv")
            took[name].append(time.process_time() - start)
    np.testing.assert_array_equal(found.scores.member, frame["loss"][frame["member"] == 1])
    assert min(took["here"]) < 8 * min(took["pandas"])
