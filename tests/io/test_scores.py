"""Scores files of every kind are read alike, and a bad one is refused in words."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paperlib.io import read_scores

SCORE = [0.9, 0.1, 0.8, 0.3]
MEMBER = [1, 0, 1, 0]


def write(folder: Path, name: str, frame: pd.DataFrame) -> Path:
    path = folder / name
    if name.endswith((".parquet", ".pq")):
        frame.to_parquet(path)
    elif name.endswith(".npz"):
        np.savez(path, allow_pickle=False, **{column: frame[column].to_numpy() for column in frame})
    elif name.endswith(".npy"):
        np.save(path, frame.to_records(index=False))
    elif name.endswith(".gz"):
        path.write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    else:
        frame.to_csv(path, index=False, sep="\t" if name.endswith(".tsv") else ",")
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz", "a.parquet", "a.npz", "a.npy"])
@pytest.mark.parametrize(
    "member", [MEMBER, [True, False, True, False], [1.0, 0.0, 1.0, 0.0]], ids=["int", "bool", "float"]
)
def test_every_format_gives_the_same_scores(tmp_path: Path, name: str, member: list[float]) -> None:
    found = read_scores(write(tmp_path, name, pd.DataFrame({"score": SCORE, "member": member})))
    np.testing.assert_array_equal(found.scores.member, [0.9, 0.8])
    np.testing.assert_array_equal(found.scores.nonmember, [0.1, 0.3])
    assert found.kind == "scores"
    assert found.scores.higher_means_member


@pytest.mark.parametrize(
    "words", [["in", "out"], ["Member", "nonmember"], ["TRUE", "False"], ["train", "test"]]
)
@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_membership_may_be_a_word(tmp_path: Path, words: list[str], name: str) -> None:
    member = [words[1 - flag] for flag in MEMBER]
    found = read_scores(write(tmp_path, name, pd.DataFrame({"score": SCORE, "member": member})))
    np.testing.assert_array_equal(found.scores.member, [0.9, 0.8])


@pytest.mark.parametrize(
    ("column", "kind", "higher"),
    [("loss", None, False), ("score", None, True), ("score", "losses", False), ("loss", "scores", True)],
)
def test_a_loss_column_means_that_lower_points_to_members(
    tmp_path: Path, column: str, kind: str | None, higher: bool
) -> None:
    path = write(tmp_path, "a.csv", pd.DataFrame({column: SCORE, "member": MEMBER}))
    assert read_scores(path, kind=kind).scores.higher_means_member is higher


def test_columns_can_be_named(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": list("abcd"), "val_loss": SCORE, "score": 0, "in_train": MEMBER})
    path = write(tmp_path, "a.csv", frame)
    found = read_scores(path, score_column="val_loss", member_column="in_train")
    assert found.kind == "losses"
    np.testing.assert_array_equal(found.scores.member, [0.9, 0.8])


@pytest.mark.parametrize("names", [("a.csv", "b.csv"), ("a.parquet", "b.npz"), ("a.npz", "b.csv")])
def test_two_files_may_differ_in_format_and_length(tmp_path: Path, names: tuple[str, str]) -> None:
    first = write(tmp_path, names[0], pd.DataFrame({"loss": [1.0, 2.0]}))
    second = write(tmp_path, names[1], pd.DataFrame({"loss": [3.0, 4.0, 5.0]}))
    found = read_scores(first, second)
    assert (found.scores.member.size, found.scores.nonmember.size, found.kind) == (2, 3, "losses")


def test_plain_arrays_can_be_two_files_or_one_npz(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", SCORE)
    np.save(tmp_path / "n.npy", SCORE[:2])
    assert len(read_scores(tmp_path / "m.npy", tmp_path / "n.npy").scores) == 6
    np.savez(tmp_path / "both.npz", member=SCORE, nonmember=SCORE[:2])
    assert len(read_scores(tmp_path / "both.npz", kind="losses").scores) == 6


@pytest.mark.parametrize(
    "text",
    [
        " score , member \n 0.9 , 1 \n 0.1 , 0 \n",
        "\ufeffscore;member\n0.9;1\n0.1;0\n",
        '"score","member"\r\n"0.9","1"\r\n"0.1","0"\r\n',
        "score,member\n9e-1,1\n1e-1,0",
    ],
    ids=["spaces", "byte-order-mark", "quotes", "no-last-newline"],
)
def test_csv_habits_are_understood(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    found = read_scores(tmp_path / "a.csv")
    np.testing.assert_array_equal(found.scores.member, [0.9])


BAD = {
    "": "the file is empty",
    "score,member\n": "there are no rows",
    "score,member\n1,1\nabc,0\n": "column 'score' holds 'abc', not a number, in row 2",
    "score,member\n1,1\n,0\n": "column 'score' holds nothing, not a number, in row 2",
    "score,member\n1,1\nnan,0\n": "1 of 2 values are NaN",
    "score,member\n1,1\n-inf,0\n": "1 of 2 values are infinite",
    "score,member\n1,1\n2,1\n": "both classes are needed, got 2 members only",
    "score,member\n1,0\n2,0\n": "both classes are needed, got 2 non-members only",
    "score,member\n1,1\n2,perhaps\n": "column 'member' holds 'perhaps'",
    "score,member\n1,1\n2\n": "Expected 2 columns, got 1",
    "0.5,1\n0.6,0\n": "the first line of a CSV must name them",
    "score,loss,member\n1,2,1\n": "'score' and 'loss' could each hold the score; choose one",
    "score,score,member\n1,2,1\n": "two columns have the same name",
    "score\n1\n": "no membership column named",
}


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_a_bad_csv_is_refused_in_words(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=BAD[text]) as caught:
        read_scores(path)
    assert str(caught.value).startswith(str(path))
    assert str(caught.value).count(str(path)) == 1


@pytest.mark.parametrize("name", ["a.parquet", "a.npz", "a.npy", "a.csv.gz"])
def test_a_damaged_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\x1f\x8bjunk")
    with pytest.raises((ValueError, OSError), match=name):
        read_scores(tmp_path / name)


def test_other_mistakes_are_named(tmp_path: Path) -> None:
    good = write(tmp_path, "a.csv", pd.DataFrame({"score": SCORE, "member": MEMBER}))
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_scores(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="expected a file ending in"):
        read_scores(write(tmp_path, "a.xlsx", pd.DataFrame({"score": SCORE})))
    with pytest.raises(ValueError, match="no column 'x'; the columns are 'score', 'member'"):
        read_scores(good, score_column="x")
    with pytest.raises(ValueError, match="cannot both be column"):
        read_scores(good, score_column="member")
    with pytest.raises(ValueError, match="kind: expected one of"):
        read_scores(good, kind="loss")
    losses = write(tmp_path, "b.csv", pd.DataFrame({"loss": SCORE}))
    with pytest.raises(ValueError, match=r"holds scores but .* holds losses"):
        read_scores(good, losses)


def test_arrays_of_other_shapes_or_kinds_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", score=np.zeros((2, 2)), member=[1, 0])
    with pytest.raises(ValueError, match=r"score has shape \(2, 2\)"):
        read_scores(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", score=np.zeros(3), member=[1, 0])
    with pytest.raises(ValueError, match="expected 3 values like scores"):
        read_scores(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", score=np.array([object()]), member=[1], allow_pickle=True)
    with pytest.raises(ValueError, match=r"holds Python objects"):
        read_scores(tmp_path / "c.npz")
    pd.DataFrame({"score": [0.1, None], "member": [1, 0]}).to_parquet(tmp_path / "d.parquet")
    with pytest.raises(ValueError, match=r"1 empty cells|NaN"):
        read_scores(tmp_path / "d.parquet")
