"""Scores files of every kind are read alike, and a bad one is refused in words."""

import gzip
import hashlib
import io
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paperlib.io import read_scores

SCORE = [0.9, 0.1, 0.8, 0.3]
MEMBER = [1, 0, 1, 0]


def write(folder: Path, name: str, frame: pd.DataFrame) -> Path:
    path = folder / name
    arrays = {column: frame[column].to_numpy() for column in frame}
    if name.endswith((".parquet", ".pq")):
        frame.to_parquet(path)
    elif name.endswith(".npz"):
        np.savez(path, allow_pickle=False, **arrays)
    elif name.endswith(".npy"):
        np.save(path, frame.to_records(index=False))
    elif name.endswith((".pt", ".pth")):
        torch = pytest.importorskip("torch")
        torch.save({column: torch.tensor(values) for column, values in arrays.items()}, path)
    elif name.endswith(".safetensors"):
        numpy = pytest.importorskip("safetensors.numpy")
        numpy.save_file(arrays, path)
    elif name.endswith(".jsonl"):
        frame.to_json(path, orient="records", lines=True)
    elif name.endswith(".jsonl.gz"):
        path.write_bytes(gzip.compress(frame.to_json(orient="records", lines=True).encode()))
    elif name.endswith(".gz"):
        path.write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    else:
        frame.to_csv(path, index=False, sep="\t" if name.endswith(".tsv") else ",")
    return path


NAMES = [
    "a.csv",
    "a.tsv",
    "a.txt",
    "a.CSV",
    "a.csv.gz",
    "a.jsonl",
    "a.ndjson.jsonl",
    "a.jsonl.gz",
    "a.parquet",
]
NAMES += ["a.npz", "a.npy", "a.pt", "a.pth", "a.safetensors"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "member", [MEMBER, [True, False, True, False], [1.0, 0.0, 1.0, 0.0], [1, -1, 1, -1]], ids=str
)
def test_every_format_gives_the_same_scores(tmp_path: Path, name: str, member: list[float]) -> None:
    found = read_scores(write(tmp_path, name, pd.DataFrame({"score": SCORE, "member": member})))
    np.testing.assert_array_equal(found.scores.member, [0.9, 0.8])
    np.testing.assert_array_equal(found.scores.nonmember, [0.1, 0.3])
    assert found.kind == "scores"
    assert found.scores.higher_means_member


WORDS = [("in", "out"), ("Member", "nonmember"), ("TRUE", "False"), ("train", "test"), ("y", "N"), ("t", "f")]
WORDS += [("yes", "no"), ("1", "-1"), ("+1", "-1"), ("training", "validation"), ("trained", "holdout")]
WORDS += [("train", "held-out"), ("train", "heldout"), ("seen", "unseen"), ("member", "non_member")]
WORDS += [("member", "non-member"), ("train", "dev"), ("train", "eval"), ("train", "val"), ("train", "valid")]
WORDS += [("member", "population"), ("1.0", "0.0")]


@pytest.mark.parametrize("words", WORDS, ids=lambda pair: "-".join(pair))
@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl", "a.npz"])
def test_membership_may_be_a_word(tmp_path: Path, words: tuple[str, str], name: str) -> None:
    member = np.array([words[1 - flag] for flag in MEMBER])
    path = tmp_path / name
    if name.endswith(".npz"):
        np.savez(path, score=SCORE, member=member)
    else:
        write(tmp_path, name, pd.DataFrame({"score": SCORE, "member": member}))
    np.testing.assert_array_equal(read_scores(path).scores.member, [0.9, 0.8])


@pytest.mark.parametrize("name", ["a.csv", "a.npz", "a.jsonl"])
def test_0_and_minus_1_are_not_both_non_members(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name, pd.DataFrame({"score": SCORE, "member": [1, 0, 1, -1]}))
    with pytest.raises(ValueError, match="'member' holds both 0 and -1"):
        read_scores(path)


def test_columns_can_be_named(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": list("abcd"), "val_loss": SCORE, "score": 0, "in_train": MEMBER})
    path = write(tmp_path, "a.csv", frame)
    found = read_scores(path, score_column="val_loss", member_column="in_train")
    assert found.kind == "losses"
    np.testing.assert_array_equal(found.scores.member, [0.9, 0.8])


@pytest.mark.parametrize("names", [("a.csv", "b.csv"), ("a.parquet", "b.npz"), ("a.npz", "b.jsonl")])
def test_two_files_may_differ_in_format_and_length(tmp_path: Path, names: tuple[str, str]) -> None:
    first = write(tmp_path, names[0], pd.DataFrame({"loss": [1.0, 2.0]}))
    second = write(tmp_path, names[1], pd.DataFrame({"loss": [3.0, 4.0, 5.0]}))
    found = read_scores(first, second)
    assert (found.scores.member.size, found.scores.nonmember.size, found.kind) == (2, 3, "losses")
    assert found.source == f"members {names[0]}, non-members {names[1]}"


def test_one_array_of_a_tensor_file_can_be_a_class(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save(
        torch.tensor(SCORE, dtype=torch.bfloat16, requires_grad=True).reshape(-1, 1), tmp_path / "a.pt"
    )
    np.save(tmp_path / "b.npy", np.array(SCORE)[:, None])
    found = read_scores(tmp_path / "a.pt", tmp_path / "b.npy", kind="losses")
    np.testing.assert_array_equal(found.scores.member, torch.tensor(SCORE).bfloat16().double().numpy())
    np.testing.assert_array_equal(found.scores.nonmember, SCORE)


def test_half_floats_of_safetensors_are_exact(tmp_path: Path) -> None:
    torch, safetensors = pytest.importorskip("torch"), pytest.importorskip("safetensors.torch")
    losses = torch.tensor([1.5, -0.1, 3e9, 7e-20]).bfloat16()
    content = {"loss": losses, "member": torch.tensor([True, True, False, False])}
    safetensors.save_file(content, tmp_path / "a.safetensors")
    found = read_scores(tmp_path / "a.safetensors").scores
    np.testing.assert_array_equal(found.pooled()[0], losses.double().numpy())


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (("member", "nonmember"), None),
        (("members", "nonmembers"), None),
        (("member", "non_member"), None),
        (("train", "test"), None),
        (("in", "out"), None),
        (("member_losses", "nonmember_losses"), "losses"),
        (("scores_in", "scores_out"), "scores"),
        (("train_x", "test_x"), None),
    ],
)
def test_two_arrays_of_one_file_are_the_two_classes(
    tmp_path: Path, names: tuple[str, str], kind: str | None
) -> None:
    np.savez(tmp_path / "a.npz", **{names[0]: np.array(SCORE)[:, None], names[1]: np.array(SCORE[:2])})
    if kind is None:
        with pytest.raises(ValueError, match=f"arrays '{names[0]}' and '{names[1]}' point to a member"):
            read_scores(tmp_path / "a.npz")
    found = read_scores(tmp_path / "a.npz", kind=kind or "losses")
    assert found.kind == (kind or "losses")
    assert (found.scores.member.tolist(), found.scores.nonmember.tolist()) == (SCORE, SCORE[:2])


def test_flags_of_train_and_test_are_not_taken_for_scores(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", pd.DataFrame({"loss": SCORE, "train": MEMBER, "test": [0, 1, 0, 1]}))
    assert read_scores(path).source == "a.csv, columns 'loss' and 'train'"


def test_one_array_alone_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", SCORE)
    with pytest.raises(ValueError, match="an array alone does not tell who is a member; give a second file"):
        read_scores(tmp_path / "a.npy", kind="losses")
    with pytest.raises(ValueError, match="it can hold the members or the non-members, not both"):
        read_scores(tmp_path / "a.npy", tmp_path / "a.npy", kind="losses")


# ---------------------------------------------------------------- what comes with the scores


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_identifiers_and_groups_follow_their_scores_members_first(tmp_path: Path, name: str) -> None:
    frame = pd.DataFrame({"id": [7, 8, 9, 10], "score": SCORE, "kind of record": ["x", "y", "y", "x"]})
    path = write(tmp_path, name, frame.assign(member=MEMBER))
    found = read_scores(path, group_column="kind of record")
    assert found.ids is not None
    assert found.groups is not None
    assert found.ids.tolist() == ["7", "9", "8", "10"]
    assert found.groups.tolist() == ["x", "y", "y", "x"]
    np.testing.assert_array_equal(found.scores.pooled()[0], [0.9, 0.8, 0.1, 0.3])


def test_identifiers_and_groups_of_two_files(tmp_path: Path) -> None:
    first = write(tmp_path, "a.csv", pd.DataFrame({"loss": [1.0, 2.0], "name": ["a", "b"], "g": ["x", ""]}))
    second = write(tmp_path, "b.csv", pd.DataFrame({"loss": [3.0], "name": ["c"], "g": ["y"]}))
    found = read_scores(first, second, id_column="name", group_column="g")
    assert found.ids is not None
    assert found.groups is not None
    assert (found.ids.tolist(), found.groups.tolist()) == (["a", "b", "c"], ["x", "(missing)", "y"])
    assert read_scores(first, second).ids is None


def test_without_one_identifier_column_there_are_no_identifiers(tmp_path: Path) -> None:
    frame = pd.DataFrame({"score": SCORE, "member": MEMBER})
    assert read_scores(write(tmp_path, "a.csv", frame)).ids is None
    assert read_scores(write(tmp_path, "a.csv", frame.assign(id=1, record_id=2))).ids is None
    with pytest.raises(ValueError, match=r"no column 'idd'; did you mean 'id'\?"):
        read_scores(write(tmp_path, "a.csv", frame.assign(id=1)), id_column="idd")


def test_identifiers_can_be_written_as_utf_8(tmp_path: Path) -> None:
    lines = '{"loss": 1, "member": 1, "id": "\\ud800"}\n{"loss": 2, "member": 0, "id": "é"}'
    (tmp_path / "a.jsonl").write_text(lines, encoding="utf-8")
    ids = read_scores(tmp_path / "a.jsonl").ids
    assert ids is not None
    assert [name.encode().decode() for name in ids] == ["?", "é"]


def test_checksums_are_of_what_was_read(tmp_path: Path) -> None:
    for folder in ("in", "out"):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "a.npy", SCORE)
    first, second = tmp_path / "in" / "a.npy", tmp_path / "out" / "a.npy"
    found = read_scores(first, second, kind="losses")
    assert found.checksums == {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in (first, second)
    }


@pytest.mark.parametrize(
    "text",
    ["loss,member\n1,1\n2,0\n", '\n {"loss": 1, "member": true}\n{"loss": 2, "member": false}'],
    ids=["csv", "json"],
)
@pytest.mark.parametrize("compress", [False, True])
def test_standard_input_is_a_table_or_json_lines(monkeypatch, text: str, compress: bool) -> None:
    data = gzip.compress(text.encode()) if compress else text.encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    found = read_scores("-")
    assert found.scores.member.tolist() == [1.0]
    assert found.source == "standard input, columns 'loss' and 'member'"
    assert found.checksums == {"standard input": hashlib.sha256(data).hexdigest()}


@pytest.mark.parametrize(
    ("text", "message"), [("", "the file is empty"), ("loss\n1\n", "no membership column")]
)
def test_bad_standard_input_is_named(monkeypatch, text: str, message: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    with pytest.raises(ValueError, match=f"^standard input: {message}"):
        read_scores(Path("-"))


# ---------------------------------------------------------------- refusals

BAD = {
    "": "the file is empty",
    " \n": "the file is empty",
    "score,member\n": "there are no rows",
    "score,member\n1,1\nabc,0\n": "column 'score' holds 'abc', not a number, in row 2",
    "score,member\n1,1\n,0\n,1\n": r"'score' has 2 empty cells \(first in row 2\); fill or drop these rows",
    "score,member\n1,\n,0\n": r"'score' has 1 empty cell \(first in row 2\), column 'member' has 1 empty",
    "score,member\n1,1\nnan,0\n": r"column 'score' has 1 missing value \(first in row 2\)",
    "score,member\n1,1\n-inf,0\n": r"column 'score' has 1 infinite value \(first in row 2\)",
    "score,member\n1,1\n1e999,0\n": "1 infinite value",
    "score,member\n1,1\n1_0,0\n": "holds '1_0', not a number, in row 2",
    "score,member\n1,1\n٣,0\n": "not a number, in row 2",
    "score,member\n1,1\n2,1\n": "both classes are needed, got 2 members only",
    "score,member\n1,0\n2,0\n": "both classes are needed, got 2 non-members only",
    "score,member\n1,1\n2,perhaps\n": "column 'member' holds 'perhaps' in row 2; use 1/0",
    "score,member\n1,1\n2\n": "row 2 has 1 cells, but the first line names 2 columns",
    "score,member\n1,1\n2,0,5\n": "row 2 has 3 cells, but the first line names 2 columns",
    "score,member,x\n1,1,1\n2,0\n": "row 2 has 2 cells, but the first line names 3 columns",
    'score,member\n1,1\n2,"0\n': "row 2 cannot be read",
    "0.5,1\n0.6,0\n": "the first line holds the number 0.5, not a name",
    "score,loss,member\n1,2,1\n": "'score' and 'loss' could each hold the score; choose one",
    "score,score,member\n1,2,1\n": "two columns have the same name, 'score'",
    "score\n1\n": "no membership column with a known name",
    "score;a,member\n1;2,1\n": "the first line has as many commas and semicolons",
}


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_a_bad_csv_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=BAD[text]) as caught:
        read_scores(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert str(caught.value).count(str(path)) == 1
    assert "\n" not in str(caught.value)


BAD_LINES = {
    '{"loss": 1, "member": 1}\n{"loss": null, "member": 0}': r"'loss' has 1 empty cell \(first in row 2\)",
    '{"loss": 1, "member": 1}\n{"member": 0}': r"'loss' has 1 empty cell \(first in row 2\)",
    '{"loss": 1, "member": 1}\n{"loss": NaN, "member": 0}': r"'loss' has 1 missing value \(first in row 2\)",
    '{"loss": 1, "member": 1}\n{"loss": [2], "member": 0}': "column 'loss' holds a list in row 2",
    '{"loss": 1, "member": 1}\n{"loss": true, "member": 0}': "holds true or false, not a number, in row 2",
    '{"loss": 1, "member": 1}\n{"loss": 2, "member": 0': "row 2 is not JSON",
    '{"loss": 1, "member": 1} {"loss": 2, "member": 0}': "row 1 is not JSON: more follows",
    '{"loss": 1, "loss": 2, "member": 1}': "row 1 is not JSON: it names a column twice",
    '[{"loss": 1, "member": 1}]': "row 1 is not a JSON object",
    '{"loss": 1%s, "member": 1}\n{"loss": 2, "member": 0}' % ("0" * 400): "1 infinite value",
}


@pytest.mark.parametrize("text", BAD_LINES, ids=range(len(BAD_LINES)))
def test_bad_json_lines_are_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=BAD_LINES[text]) as caught:
        read_scores(path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    "data", [b"", b"\x1f\x8bjunk", b"PK\x03\x04junk", b"PAR1junk", b"\x93NUMPY\x01\x00junk"]
)
@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_file_is_refused(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=f"{name}: ") as caught:
        read_scores(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_other_mistakes_are_named(tmp_path: Path) -> None:
    good = write(tmp_path, "a.csv", pd.DataFrame({"score": SCORE, "member": MEMBER}))
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_scores(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="this is a folder"):
        read_scores(tmp_path)
    with pytest.raises(ValueError, match="expected a file ending in"):
        read_scores(write(tmp_path, "a.xlsx", pd.DataFrame({"score": SCORE})))
    with pytest.raises(ValueError, match="no column 'x'; the columns are 'score', 'member'"):
        read_scores(good, score_column="x")
    with pytest.raises(
        ValueError, match=r"no column 'scor'; did you mean 'score'\? The columns are 'score', 'mem"
    ):
        read_scores(good, score_column="scor")
    with pytest.raises(ValueError, match="cannot both be column"):
        read_scores(good, score_column="member", member_column="member", kind="scores")
    with pytest.raises(ValueError, match="kind: expected one of"):
        read_scores(good, kind="loss")
    losses = write(tmp_path, "b.csv", pd.DataFrame({"loss": SCORE}))
    scores = write(tmp_path, "c.csv", pd.DataFrame({"score": SCORE}))
    with pytest.raises(ValueError, match=r"holds scores but .* holds losses"):
        read_scores(scores, losses)


def test_a_table_that_says_otherwise_is_not_a_file_of_one_class(tmp_path: Path) -> None:
    good = write(tmp_path, "a.csv", pd.DataFrame({"score": SCORE, "member": MEMBER}))
    other = write(tmp_path, "b.csv", pd.DataFrame({"score": SCORE}))
    with pytest.raises(
        ValueError, match="the file of the members, but column 'member' says non-member in row 2"
    ):
        read_scores(good, other)
    with pytest.raises(
        ValueError, match="the file of the non-members, but column 'member' says member in row 1"
    ):
        read_scores(other, good)
    members = write(tmp_path, "c.csv", pd.DataFrame({"score": SCORE, "member": 1}))
    assert len(read_scores(members, other).scores) == 8


def test_arrays_of_other_shapes_or_kinds_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", score=np.zeros((2, 2)), member=[1, 0])
    with pytest.raises(ValueError, match=r"array 'score' has shape \(2, 2\)"):
        read_scores(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", score=np.zeros(3), member=[1, 0])
    with pytest.raises(ValueError, match="array 'member' has 2 values but array 'score' has 3"):
        read_scores(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", score=np.array([object()]), member=[1], allow_pickle=True)
    with pytest.raises(ValueError, match=r"array 'score': cannot be read: it holds Python objects"):
        read_scores(tmp_path / "c.npz")
    np.savez(tmp_path / "e.npz", score=np.array(["a", "b"]), member=[1, 0])
    with pytest.raises(ValueError, match="array 'score' holds <U1 values, not numbers"):
        read_scores(tmp_path / "e.npz")
    pd.DataFrame({"score": [0.1, None], "member": [1, 0]}).to_parquet(tmp_path / "d.parquet")
    with pytest.raises(ValueError, match="column 'score' has 1 missing value"):
        read_scores(tmp_path / "d.parquet")


def test_a_pytorch_file_is_never_run(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"loss": print}, tmp_path / "a.pt")
    with pytest.raises(ValueError, match=r"cannot be read with weights_only=True \(UnpicklingError\)"):
        read_scores(tmp_path / "a.pt")
    torch.save({"loss": [0.5]}, tmp_path / "b.pt")
    with pytest.raises(ValueError, match="expected one tensor, or a dictionary of tensors"):
        read_scores(tmp_path / "b.pt")


@pytest.mark.parametrize(
    ("name", "package"), [("a.parquet", "pyarrow"), ("a.pt", "torch"), ("a.safetensors", "safetensors")]
)
def test_a_package_that_is_missing_is_named(tmp_path: Path, monkeypatch, name: str, package: str) -> None:
    def no_module(wanted: str) -> None:
        raise ModuleNotFoundError(wanted)

    (tmp_path / name).write_bytes(b"something")
    monkeypatch.setattr("paperlib.io.scores.arrays.import_module", no_module)
    with pytest.raises(ValueError, match=f"needs {package}, which is not installed: pip install {package}$"):
        read_scores(tmp_path / name)
