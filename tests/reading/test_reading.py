"""Files of scores of every kind are read alike, a bad one is refused, and no direction is
guessed.
"""

import gzip
import hashlib
import io
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from paperlib.core.column_names import kind_of_name, tells_membership
from paperlib.io import read_scores
from paperlib.reading import read_frames
from tests.refusals import refused

SCORE, MEMBER = [0.9, 0.1, 0.8, 0.3], [1, 0, 1, 0]
NAMES = [
    "a.csv",
    "a.tsv",
    "a.txt",
    "a.CSV",
    "a.csv.gz",
    "a.jsonl",
    "a.ndjson",
    "a.jsonl.gz",
    "a.parquet",
]
NAMES += ["a.npz", "a.npy", "a.pt", "a.pth", "a.safetensors"]


def write(path, frame):
    frame = pd.DataFrame(frame)
    arrays = {column: frame[column].to_numpy() for column in frame}
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".npz":
        np.savez(path, allow_pickle=False, **arrays)
    elif path.suffix == ".npy":
        np.save(path, frame.to_records(index=False))
    elif path.suffix in (".pt", ".pth"):
        torch = pytest.importorskip("torch")
        torch.save({column: torch.tensor(values) for column, values in arrays.items()}, path)
    elif path.suffix == ".safetensors":
        pytest.importorskip("safetensors.numpy").save_file(arrays, path)
    else:
        text = frame.to_csv(index=False, sep="\t" if path.suffix == ".tsv" else ",")
        if "json" in path.name:
            text = frame.to_json(orient="records", lines=True)
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


@pytest.fixture
def file(tmp_path):
    """Writes a table by the name of its file, or the content of a file."""

    def written(content, name="a.csv"):
        path = tmp_path / name
        path.unlink(missing_ok=True)  # which is faster than to overwrite it
        if isinstance(content, str | bytes):
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        else:
            write(path, content)
        return path

    return written


def sides(found):
    return found.scores.member.tolist(), found.scores.nonmember.tolist()


def refusal(*paths, **options):
    return refused(".", read_scores, *paths, **options)


@pytest.mark.parametrize("name", NAMES)
def test_every_format_gives_the_same_scores(file, name):
    for member in (MEMBER, [True, False, True, False], [1.0, 0.0, 1.0, 0.0], [1, -1, 1, -1]):
        found = read_scores(file({"score": SCORE, "member": member}, name))
        assert (found.kind, *sides(found)) == ("scores", [0.9, 0.8], [0.1, 0.3])


WORDS = [
    ("in", "out"),
    ("Member", "nonmember"),
    ("TRUE", "False"),
    ("train", "test"),
    ("y", "N"),
    ("t", "f"),
]
WORDS += [
    ("yes", "no"),
    ("1", "-1"),
    ("+1", "-1"),
    ("training", "validation"),
    ("trained", "holdout"),
]
WORDS += [("train", "held-out"), ("train", "heldout"), ("seen", "unseen"), ("member", "non_member")]
WORDS += [
    ("member", "non-member"),
    ("train", "dev"),
    ("train", "eval"),
    ("train", "val"),
    ("train", "valid"),
]
WORDS += [("member", "population"), ("1.0", "0.0"), ("1", "0")]


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl", "a.npz"])
def test_membership_may_be_a_word(file, tmp_path, name):
    for words in WORDS:
        member = np.array([words[1 - flag] for flag in MEMBER])
        if name == "a.npz":
            np.savez(tmp_path / name, score=SCORE, member=member.astype("S"))
        else:
            file({"score": SCORE, "member": member}, name)
        assert read_scores(tmp_path / name).scores.member.tolist() == [0.9, 0.8]
    assert "'member' holds both 0 and -1" in refusal(
        file({"score": SCORE, "member": [1, 0, 1, -1]}, name)
    )


def test_columns_can_be_named_and_flags_of_train_and_test_are_no_scores(file):
    path = file({"id": list("abcd"), "val_loss": SCORE, "score": 0, "in_train": MEMBER})
    found = read_scores(path, score_column="val_loss", member_column="in_train")
    assert (found.kind, *sides(found)) == ("losses", [0.9, 0.8], [0.1, 0.3])
    path = file({"loss": SCORE, "train": MEMBER, "test": [0, 1, 0, 1]})
    assert read_scores(path).source == "a.csv, columns 'loss' and 'train'"


@pytest.mark.parametrize(
    "names", [("a.csv", "b.csv"), ("a.parquet", "b.npz"), ("a.npz", "b.jsonl")]
)
def test_two_files_may_differ_in_format_and_length(file, names):
    found = read_scores(
        file({"loss": [1.0, 2.0]}, names[0]), file({"loss": [3.0, 4.0, 5.0]}, names[1])
    )
    assert (found.kind, *sides(found)) == ("losses", [1, 2], [3, 4, 5])
    assert found.source == f"members {names[0]}, non-members {names[1]}"


def test_a_bare_array_can_be_a_class_and_half_floats_are_exact_or_refused(tmp_path):
    torch = pytest.importorskip("torch")
    half = torch.tensor([*SCORE, 0.0], dtype=torch.bfloat16, requires_grad=True)
    torch.save(half.reshape(-1, 1), tmp_path / "a.pt")
    np.save(tmp_path / "b.npy", np.array(SCORE)[:, None])
    found = read_scores(tmp_path / "a.pt", tmp_path / "b.npy", kind="losses")
    assert sides(found) == (half.double().tolist(), SCORE)
    assert "a high value of the array point to a member" in refusal(
        tmp_path / "a.pt", tmp_path / "b.npy"
    )
    assert "an array alone does not tell who is a member; give a second" in refusal(
        tmp_path / "b.npy"
    )
    assert "it can hold the members or the non-members, not both" in refusal(
        *[tmp_path / "b.npy"] * 2
    )
    safetensors = pytest.importorskip("safetensors.torch")
    losses = torch.tensor([1.5, -0.1, 3e4, 7e-6])
    flags = torch.tensor([True, True, False, False])
    safetensors.save_file({"loss": losses.half(), "member": flags}, tmp_path / "a.safetensors")
    found = read_scores(tmp_path / "a.safetensors").scores.pooled()[0]
    assert found.tolist() == losses.half().double().tolist()
    safetensors.save_file({"loss": losses.bfloat16(), "member": flags}, tmp_path / "a.safetensors")
    assert "it holds BF16 values; convert them to float32" in refusal(tmp_path / "a.safetensors")


def test_two_arrays_of_one_file_are_the_two_classes(tmp_path):
    for names, kind in (
        (("members", "nonmembers"), None),
        (("member", "non_member"), None),
        (("train", "test"), None),
        (("in", "out"), None),
        (("member_losses", "nonmember_losses"), "losses"),
        (("scores_in", "scores_out"), "scores"),
        (("train_x", "test_x"), None),
    ):
        path = tmp_path / "a.npz"
        np.savez(path, **{names[0]: np.array(SCORE)[:, None], names[1]: np.array(SCORE[:2])})
        if kind is None:
            assert f"arrays '{names[0]}' and '{names[1]}' point to a member" in refusal(path)
        found = read_scores(path, kind=kind or "losses")
        assert (found.kind, *sides(found)) == (kind or "losses", SCORE, SCORE[:2])
        assert found.source == f"a.npz, arrays '{names[0]}' and '{names[1]}'"
        assert "hold no identifiers and no groups" in refusal(path, kind="losses", unit_column="x")


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_identifiers_and_groups_follow_their_scores_members_first(file, name):
    frame = {
        "id": [7, 8, 9, 10],
        "score": SCORE,
        "kind of record": ["x", "y", "y", "x"],
        "member": MEMBER,
    }
    refused(
        "leave it or unit_column out",
        read_scores,
        file(frame, name),
        group_column="a",
        unit_column="b",
    )
    found = read_scores(file(frame, name), group_column="kind of record")
    assert found.ids.tolist() == ["7", "9", "8", "10"]
    assert found.groups.tolist() == ["x", "y", "y", "x"]
    assert sides(found) == ([0.9, 0.8], [0.1, 0.3])
    frame["record_id"] = 2
    assert read_scores(file(frame, name)).ids is None, "two columns could hold the identifiers"
    assert "no column 'idd'; the columns are" in refusal(file(frame, name), id_column="idd")


def test_identifiers_and_groups_of_two_files_can_be_written_as_utf_8(file):
    first = file({"loss": [1.0, 2.0], "name": ["a", "b"], "g": ["x", ""]})
    second = file({"loss": [3.0], "name": ["c"], "g": ["y"]}, "b.csv")
    found = read_scores(first, second, id_column="name", group_column="g")
    assert (found.ids.tolist(), found.groups.tolist()) == (["a", "b", "c"], ["x", "(missing)", "y"])
    assert read_scores(first, second).ids is None
    lines = '{"loss": 1, "member": 1, "id": "\\ud800"}\n{"loss": 2, "member": 0, "id": "é"}'
    ids = read_scores(file(lines, "a.jsonl")).ids
    assert [name.encode().decode() for name in ids] == ["?", "é"]


def test_rows_of_one_unit_are_averaged(file):
    frame = {"who": ["a", "a", "b", "c"], "loss": SCORE, "member": [1, 1, 0, 0]}
    found = read_scores(file(frame), unit_column="who")
    assert (*sides(found), found.ids.tolist()) == ([0.5], [0.8, 0.3], ["a", "b", "c"])
    assert "4 rows hold 3 records" in refusal(file(frame), id_column="who")
    assert "1 rows name no unit" in refusal(
        file({**frame, "who": ["a", "a", "", "c"]}), unit_column="who"
    )
    shared = file({**frame, "who": ["a", "b", "b", "c"]})
    assert "among both the members and the non-members: 1" in refusal(shared, unit_column="who")


def test_checksums_are_of_what_was_read(tmp_path):
    paths = [tmp_path / folder / "a.npy" for folder in ("in", "out")]
    for path in paths:
        path.parent.mkdir()
        np.save(path, SCORE)
    found = read_scores(*paths, kind="losses")
    assert found.checksums == {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths
    }


ROWS = ["loss,member\n1,1\n2,0\n", '\n {"loss": 1, "member": true}\n{"loss": 2, "member": false}']


@pytest.mark.parametrize("text", ROWS)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_is_a_table_or_json_lines(monkeypatch, text, pack):
    data = pack(text.encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    found = read_scores("-")
    assert sides(found) == ([1], [2])
    assert found.source == "standard input, columns 'loss' and 'member'"
    assert found.checksums == {"standard input": hashlib.sha256(data).hexdigest()}


WIDE = ",".join(map(str, range(200)))
HABITS = {
    "spaces": " score , member \n 0.9 , 1 \n 0.1 , 0 \n",
    "mark": "\ufeffscore;member\n0.9;1\n0.1;0\n",
    "quotes": '"score","member"\r\n"0.9","1"\r\n"0.1","0"\r\n',
    "spaced-quotes": '"score", "member"\n"0.9", "1"\n"0.1", "0"\n',
    "no-end": "score,member\n9e-1,1\n1e-1,0",
    "old-mac": "score,member\r0.9,1\r0.1,0\r",
    "blank": "\n\nscore,member\n0.9,1\n\n0.1,0\n\n\n",
    "lines": 'score,note,member\n0.9,"two\nlines, and ""quotes""",1\n0.1,,0\n',
    "index": ",score,member,\n0,0.9,1,\n1,0.1,0,\n",
    "tabs": "member\tscore\tnote\n1\t0.9\ta, b; c\n0\t0.1\t\n",
    "signs": "score;member\n+.9;1\n1E-1;0\n",
    "decimal commas": "score;member\n0,9;1,0\n1,0e-1;0,0\n",
    "decimal commas and tabs": "score\tmember\n+0,9\t1\n0,1\t0\n",
    "a cell that settles the mark": "score;member\n0.900;1\n0.100;0\n",
    "wide": "\n".join(f"{WIDE},{rest}" for rest in ("score,member", "0.9,1", "0.1,0")),
}


@pytest.mark.parametrize("habit", HABITS)
def test_csv_habits_are_understood(file, habit):
    assert sides(read_scores(file(HABITS[habit]))) == ([0.9], [0.1])


PLAIN = "score,member,größe\n0.9,1,é\n0.1,0,x\n"


def test_utf_8_utf_16_with_a_mark_and_decimal_commas_of_pandas_are_read(file, tmp_path):
    big = b"\xfe\xff" + PLAIN.encode("utf-16-be")
    for data in (*map(PLAIN.encode, ("utf-8", "utf-8-sig", "utf-16")), big):
        assert read_scores(file(data), group_column="größe").groups.tolist() == ["é", "x"]
    frame = pd.DataFrame(
        {"loss": np.random.default_rng(0).normal(size=50), "member": [1.0, 0.0] * 25}
    )
    frame.to_csv(tmp_path / "a.csv", sep=";", decimal=",", index=False)
    np.testing.assert_array_equal(read_scores(tmp_path / "a.csv").scores.member, frame["loss"][::2])


BAD = {
    PLAIN.encode("cp1252"): "is not UTF-8 text (byte 0xf6 in line 1); save it as UTF-8",
    "score,member\n1,1\n2,0 é\n".encode("latin-1"): "is not UTF-8 text (byte 0xe9 in line 3)",
    "loss,member\n1,1\n".encode(
        "utf-16-le"
    ): "UTF-16 without a byte-order mark do; save it as UTF-8 text",
    PLAIN.encode("utf-32"): "holds zero bytes, as UTF-32 and",
    b"\0\0\xfe\xff" + PLAIN.encode("utf-32-be"): "save it as UTF-8",
    PLAIN.encode("utf-16")[:-1]: "is not UTF-16 text",
    "version https://git-lfs.github.com/spec/v1\n": "run git lfs pull",
    " \n": "the file is empty",
    "score,member\n": "there are no rows",
    "score,member\n1,1\nabc,0\n": "column 'score' holds 'abc', not a number, in row 2",
    "score,member\n1,1\n,0\n,1\n": (
        "'score' has 2 empty cells (first in row 2); fill or drop these rows"
    ),
    "score,member\n1,\n,0\n": (
        "'score' has 1 empty cell (first in row 2), column 'member' has 1 empty"
    ),
    "score,member\n1,1\nnan,0\n": "column 'score' has 1 missing value (first in row 2)",
    "score,member\n1,1\n2,1\n": "both classes are needed, got 2 members only",
    "score,member\n1,1\n2,perhaps\n": "column 'member' holds 'perhaps' in row 2; use 1/0",
    "score,member\n1,1\n2\n": "row 2 has 1 cells, but the first line names 2 columns",
    "score,member\n1,1\n2,0,5\n": "row 2 has 3 cells, but the first line names 2 columns",
    'score,member\n1,1\n2,"0\n': "row 2 cannot be read",
    "0.5,1\n0.6,0\n": "the first line holds the number 0.5, not a name",
    "score,loss,member\n1,2,1\n": "'score' and 'loss' could each hold the score; choose one",
    "score,score,member\n1,2,1\n": "two columns have the same name, 'score'",
    "score\n1\n": "no membership column with a known name",
    "score;a,member\n1;2,1\n": "the first line has as many commas and semicolons",
    "loss;member\n1.234,5;1\n2,5;0\n": (
        "decimal commas (first in row 1) and points (first in row 1)"
    ),
    "loss;member\n0,5;1\n2.5;0\n": (
        "mixes decimal commas (first in row 1) and points (first in row 2)"
    ),
    "loss;member\n1,234;1\n17;0\n": (
        "holds '1,234' in row 1, and no cell tells whether its mark stands for"
    ),
    "loss;member\n1,234,567;1\n0,5;0\n": "holds '1,234,567', not a number, in row 1",
    'loss,member\n"0,9",1\n2,0\n': (
        "holds '0,9', not a number, in row 1; decimal commas need semicolons"
    ),
    "loss;member\n1 234;1\n2;0\n": "holds '1 234', not a number, in row 1",
}
BAD_LINES = {
    '{"loss": 1, "member": 1}\n{"loss": null, "member": 0}': (
        "'loss' has 1 empty cell (first in row 2)"
    ),
    '{"loss": 1, "member": 1}\n{"member": 0}': "'loss' has 1 empty cell (first in row 2)",
    '{"loss": 1, "member": 1}\n{"loss": [2], "member": 0}': "column 'loss' holds a list in row 2",
    '{"loss": 1, "member": 1}\n{"loss": true, "member": 0}': "holds True, not a number, in row 2",
    '{"loss": 1, "member": 1}\n{"loss": 2, "member": 0': "row 2 is not JSON",
    '{"loss": 1, "member": 1} {"loss": 2, "member": 0}': "row 1 is not JSON: Extra data",
    '{"loss": 1, "loss": 2, "member": 1}': "row 1 is not JSON: it names a column twice",
    '[{"loss": 1, "member": 1}]': "row 1 is not a JSON object",
    '{"loss": NaN, "member": 1}\n{"loss": 2, "member": 0}': "'loss' has 1 missing value",
}


@pytest.mark.parametrize(("texts", "name"), [(BAD, "a.csv"), (BAD_LINES, "a.jsonl")])
def test_a_bad_text_is_refused_in_one_line(file, monkeypatch, texts, name):
    for text, words in texts.items():
        path = file(text, name)
        message = refusal(path)
        assert words in message
        assert message.startswith(f"{path}: ")
        assert message.count(str(path)) == 1
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
        assert name != "a.csv" or refusal("-") == message.replace(str(path), "standard input")


def test_a_lone_empty_cell_is_no_blank_line_nor_a_table_that_says_otherwise_of_one_class(file):
    other = file("loss\n1\n", "b.csv")
    for gap in ("", '""'):
        message = refusal(file(f"loss\n1\n{gap}\n2\n\n"), other)
        assert "column 'loss' has 1 empty cell (first in row 2)" in message
    names = ",".join(f"column{at}" for at in range(500))
    assert "and 470 more" in refusal(file(f"{names}\n{names}\n"))
    good, other = file({"score": SCORE, "member": MEMBER}), file({"score": SCORE}, "b.csv")
    assert "the file of the members, but column 'member' says non-member in row 2" in refusal(
        good, other
    )
    assert "the file of the non-members, but column 'member' says member in row 1" in refusal(
        other, good
    )
    members = file({"score": SCORE, "member": 1}, "c.csv")
    assert len(read_scores(members, other).scores) == 8


def test_a_damaged_file_and_other_mistakes_are_named(file, tmp_path):
    for data in (b"", b"\x1f\x8bjunk", b"PK\x03\x04junk", b"PAR1junk", b"\x93NUMPY\x01\x00junk"):
        for name in NAMES:
            assert f"{name}: " in refusal(file(data, name))
    good = file({"score": SCORE, "member": MEMBER})
    refused("no such file", read_scores, tmp_path / "none.csv", error=FileNotFoundError)
    assert "this is a folder" in refusal(tmp_path)
    assert "expected a file ending in" in refusal(file({"score": SCORE}, "a.xlsx"))
    assert "no column 'x'; the columns are 'score', 'member'" in refusal(good, score_column="x")
    assert refusal(good, score_column="scor").endswith("'score', 'member'; did you mean 'score'?")
    twice = {"score_column": "member", "member_column": "member", "kind": "scores"}
    assert "cannot both be column" in refusal(good, **twice)
    assert "kind: expected one of" in refusal(good, kind="loss")
    losses, scores = file({"loss": SCORE}, "b.csv"), file({"score": SCORE}, "c.csv")
    assert f"{scores} holds scores but {losses} holds losses" in refusal(scores, losses)


def test_arrays_and_parquet_of_other_shapes_or_kinds_are_refused(tmp_path, file):
    for arrays, message in (
        ({"score": np.zeros((2, 2))}, "array 'score' has shape (2, 2)"),
        ({"score": np.zeros(3)}, "array 'member' has 2 values but array 'score' has 3"),
        ({"score": np.array([object()])}, "array 'score': cannot be read: it holds Python objects"),
        ({"score": np.array(["a", "b"])}, "array 'score' holds 'a', not a number, in row 1"),
        ({"score": np.array([1, 2], "M8[ns]")}, "array 'score' holds datetime64[ns] values"),
        ({"score": np.array([1, 2j])}, "array 'score' holds complex128 values"),
        ({"score": np.array([0.5, np.nan])}, "array 'score' has 1 missing value (first in row 2)"),
    ):
        np.savez(tmp_path / "a.npz", member=[1, 0], **arrays)
        assert message in refusal(tmp_path / "a.npz")
    for values, message in (
        ([0.1, None], "column 'score' has 1 missing value"),
        ([True, False], "holds True, not a number"),
        (pd.to_datetime(["2020-01-01", "2020-01-02"]), "holds '2020-01-01"),
        ([b"1", b"2"], "column 'score' holds a bytes in row 1"),
    ):
        assert message in refusal(file({"score": values, "member": [1, 0]}, "a.parquet"))
    decimals, texts = [Decimal("0.5"), Decimal("2.25")], ["0.5", "2.25"]
    for values in (decimals, pd.Categorical(texts), np.float16([0.5, 2.25])):
        assert sides(read_scores(file({"score": values, "member": [1, 0]}, "a.parquet"))) == (
            [0.5],
            [2.25],
        )


def test_a_pytorch_file_is_never_run(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"loss": print}, tmp_path / "a.pt")
    assert "cannot be read with weights_only=True (UnpicklingError)" in refusal(tmp_path / "a.pt")
    torch.save({"loss": [0.5]}, tmp_path / "b.pt")
    assert "expected one tensor, or a dictionary of tensors" in refusal(tmp_path / "b.pt")


def test_a_package_that_is_missing_is_named(file, monkeypatch):
    for name, package in (
        ("a.parquet", "pyarrow"),
        ("a.pt", "torch"),
        ("a.safetensors", "safetensors"),
    ):
        for module in (package, f"{package}.numpy", f"{package}.parquet"):
            monkeypatch.setitem(sys.modules, module, None)
        message = refusal(file(b"something", name))
        assert message.endswith(f"needs {package}, which is not installed: pip install {package}")


def test_a_table_with_semicolons_keeps_codes_and_refuses_a_comma_that_may_stand_for_thousands(file):
    for rows, values in (
        (["1,5;x", "2,25;1,234"], [[1.5, "x"], [2.25, "1,234"]]),
        (["1,5;x", "1.234,5;y"], [["1,5", "x"], ["1.234,5", "y"]]),
        (
            ["1,234;x", "2,345;y"],
            r"column 'a' holds '1,234' in row 1, and no cell tells whether its mark",
        ),
    ):
        path = file("\n".join(["a;b", *rows]))
        if isinstance(values, str):
            refused(values, read_frames, [str(path)])
        else:
            assert read_frames([str(path)])[0].to_numpy().tolist() == values


LOSSES = (
    "loss",
    "losses",
    "LOSS",
    "nll",
    "NLLs",
    "cross_entropy",
    "crossEntropy",
    "crossentropy",
    "ce",
    "CE loss",
    "perplexity",
    "ppl",
    "neg_log_likelihood",
    "negative log-likelihood",
    "val_loss",
    "loss_target",
    "train-loss",
    "loss_epoch_10",
    "loss_2",
    "per_example_loss",
    "mean_squared_error",
    "log_loss",
    "xent",
    "nll_loss",
)
SCORES = (
    "score",
    "scores",
    "Score",
    "logprob",
    "log_prob",
    "log-probs",
    "log_likelihood",
    "loglik",
    "confidence",
    "mia_score",
    "membership_score",
    "logit",
    "logits",
    "likelihood",
    "lira_score",
    "true_label_confidence",
    "membership_probability",
)
DOUBTFUL = (
    "neg_loss",
    "minus_loss",
    "loss_negated",
    "inverted_loss",
    "-loss",
    "1-loss",
    "1 - confidence",
    "loss - ref_loss",
    "loss/zlib",
    "exp(-loss)",
    "loss_ratio",
    "loss_diff",
    "ref_loss",
    "loss_score",
    "nll2",
    "value",
    "values",
    "x",
    "entropy",
    "probability",
    "prob",
    "anomaly_score",
    "z_score",
    "nonmember_score",
    "neg_score",
    "score_neg",
    "log_likelihood_ratio",
    "confidence_interval",
    "logit_3",
    "glossary",
    "closs",
    "scored",
    "0",
    "",
    "perplexities ratio",
    "losses_in",
)
MEMBERS = (
    "member",
    "Membership",
    "is_member",
    "isMember",
    "is_train",
    "in_train",
    "train",
    "split",
    "in_training",
    "trained",
    "In Train",
    "in-train",
    "seen",
)
NO_MEMBERS = ("label", "y", "target", "nonmember", "is_test", "members of staff", "-member")


@pytest.fixture
def table(tmp_path):
    """Writes two losses and their membership."""

    def written(score="loss", member="member", flags=(1, 0)):
        path = tmp_path / "a.csv"
        path.write_text(
            f'"{score}","{member}"\n0.5,{flags[0]}\n0.25,{flags[1]}\n', encoding="utf-8"
        )
        return path

    return written


def test_a_known_name_tells_direction_or_membership_and_a_doubtful_one_nothing(table):
    for kind, names in {"losses": LOSSES, "scores": SCORES, None: DOUBTFUL}.items():
        assert {name: kind_of_name(name) for name in names} == dict.fromkeys(names, kind)
    with pytest.raises(ValueError, match="does a high value of column 'nll2' point to a member"):
        read_scores(table("nll2"), score_column="nll2")
    for name in MEMBERS:
        assert read_scores(table(member=name, flags=("train", "test"))).scores.member.tolist() == [
            0.5
        ]
    for name in NO_MEMBERS:
        assert not tells_membership(name)
        refused("no membership column with a known name", read_scores, table(member=name))
    assert read_scores(table(member="label"), member_column="label").scores.member.tolist() == [0.5]


@pytest.mark.parametrize("kind", ["scores", "losses"])
@pytest.mark.parametrize(
    ("name", "meaning"), [("nll2", None), ("loss", "losses"), ("score", "scores")]
)
def test_a_given_kind_decides(table, name, meaning, kind):
    found = read_scores(table(name), kind=kind)
    assert (found.kind, found.scores.higher_means_member) == (kind, kind == "scores")
    expected = (
        f"column '{name}' was read as {kind}, as --kind says, although its name points to {meaning}"
    )
    assert found.warnings == (() if meaning in (None, kind) else (expected,))


def test_a_lone_column_is_taken_only_with_a_kind_and_files_of_one_class_may_name_it(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(",id,what,member\n0,a,0.5,1\n1,b,0.25,0\n")
    assert read_scores(path, kind="losses").source == "a.csv, columns 'what' and 'member'"
    path.write_text("first,second,member\n1,0.5,1\n2,0.25,0\n")
    message = r"no score column .* 'first', 'second', 'member' .* with --score-column"
    refused(message, read_scores, path, kind="losses")
    path.write_text("loss,member,split\n1,1,test\n2,0,train\n")
    refused("'member' and 'split' could each hold the membership; choose", read_scores, path)
    (tmp_path / "a.csv").write_text("losses_in\n1\n")
    (tmp_path / "b.csv").write_text("losses_out\n2\n")
    found = read_scores(tmp_path / "a.csv", tmp_path / "b.csv")
    assert (found.kind, found.warnings) == ("losses", ())
    (tmp_path / "b.csv").write_text("perplexity\n2\n")
    (warning,) = read_scores(tmp_path / "a.csv", tmp_path / "b.csv").warnings
    assert warning.startswith(
        "a.csv holds 'losses_in' and b.csv holds 'perplexity'; check that both"
    )


@pytest.mark.parametrize("flags", [(1, 0), ("true", "false"), ("no", "yes"), (1, -1)], ids=str)
def test_a_1_may_mean_something_else(table, flags):
    for name in ("nonmember", "is_test", "holdout", "Is Out"):
        with pytest.raises(
            ValueError, match=rf"'{name}' seems to hold 1 \(or true\) for non-members"
        ):
            read_scores(table(member=name, flags=flags), member_column=name)
        words = table(member=name, flags=("member", "nonmember"))
        assert read_scores(words, member_column=name).scores.member.tolist() == [0.5]
    path = table(member="split", flags=flags)
    refused("any part of the data; write the words train and test", read_scores, path)
    assert len(read_scores(path, member_column="split").scores) == 2


def test_infinite_scores_are_read_as_they_are_written(file):
    inf = float("inf")
    for name, content in (
        ("a.csv", "score,member\ninf,1\n-Infinity,0\n1e999,1\n2,0\n"),
        (
            "a.jsonl",
            '{"score": Infinity, "member": 1}\n{"score": -Infinity, "member": 0}\n'
            '{"score": 1e999, "member": 1}\n{"score": 2, "member": 0}',
        ),
    ):
        scores = read_scores(file(content, name)).scores
        assert (scores.member.tolist(), scores.nonmember.tolist()) == ([inf, inf], [-inf, 2.0])


def test_a_path_in_the_users_own_folder_is_read_and_a_file_called_so_is_taken_as_it_is(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.csv").write_text("score,member\n3,1\n2,1\n1,0\n0,0\n", encoding="utf-8")
    assert len(read_scores("~/w.csv").scores) == 4
    (tmp_path / "~").mkdir()
    (tmp_path / "~" / "w.csv").write_text("score,member\n3,1\n0,0\n", encoding="utf-8")
    assert len(read_scores("~/w.csv").scores) == 2
    for path in ("~/absent.csv", "~no_such_user_here/w.csv"):
        with pytest.raises(FileNotFoundError, match="there is no such file"):
            read_scores(path)
