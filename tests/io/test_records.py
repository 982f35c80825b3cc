"""Records of files and folders: what they hold, and parts that are written as they stood."""

import gzip

import numpy as np
import pandas as pd

from paperlib.io import open_records
from paperlib.io.records import MADE_ID
from paperlib.reading.folders import LINKS_VARIABLE
from tests.refusals import refused

CSV = 'id,age, text\n7,1," a, ""b""\nc"\n\n8,  2,d\n9,3,é\n'


def part(path, keep, ids=None):
    """The text of a part of a file."""
    target = path.with_name(f"part-{path.name}")
    open_records(str(path)).write(target, np.array(keep), ids)
    data = target.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


LINES = ['{"tokens": [1, 2], "x": 1.50}', '{"x": {"y": null}}']


def test_rows_of_text_are_written_as_they_stood(tmp_path):
    for name, content, columns, keep, ids, expected in (
        ("a.csv", CSV, "id age text", "101", None, 'id,age, text\n7,1," a, ""b""\nc"\n9,3,é\n'),
        ("a.csv.gz", CSV, "id age text", "010", "xyz", f"{MADE_ID},id,age, text\ny,8,  2,d\n"),
        (
            "a.tsv",
            "a\tb\r\n1\t2,5\r\n3\t4\r\n",
            "a b",
            "11",
            "xy",
            f"{MADE_ID}\ta\tb\nx\t1\t2,5\ny\t3\t4\n",
        ),
        ("a.csv", '\ntext\n"a\nb"\n\nc\n', "text", "011", None, "text\n\nc\n"),
        ("a.jsonl", "\n\n".join(LINES), "tokens x", "10", None, f"{LINES[0]}\n"),
        (
            "a.jsonl",
            "\n\n".join(LINES),
            "tokens x",
            "01",
            "pq",
            f'{{"{MADE_ID}": "q", {LINES[1][1:]}\n',
        ),
    ):
        data = content.encode("utf-16" if name == "a.tsv" else "utf-8")
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        records = open_records(str(tmp_path / name))
        assert (records.ending, records.columns) == (name[1:], tuple(columns.split()))
        assert part(tmp_path / name, [one == "1" for one in keep], ids and [*ids]) == expected


def test_cells_are_read_by_their_column(tmp_path):
    (tmp_path / "a.csv").write_text(CSV)
    records = open_records(str(tmp_path / "a.csv"))
    assert (records.id_column(), records.cells("age")) == ("id", ["1", "2", "3"])
    (tmp_path / "a.csv").write_text('\ntext\n"a\nb"\n\nc\n')
    assert open_records(str(tmp_path / "a.csv")).cells("text") == ["a\nb", "", "c"]


def test_parquet_keeps_its_types(tmp_path):
    frame = pd.DataFrame({"n": np.array([1, 2, 3], dtype="int8"), "v": [[1.0], [2.0, 3.0], []]})
    frame.to_parquet(tmp_path / "a.parquet")
    records = open_records(str(tmp_path / "a.parquet"))
    records.write(tmp_path / "b.parquet", np.array([True, False, True]), ["p", "q", "r"])
    again = pd.read_parquet(tmp_path / "b.parquet")
    assert (again[MADE_ID].tolist(), again["n"].tolist(), again["n"].dtype) == (
        ["p", "r"],
        [1, 3],
        np.int8,
    )
    assert again["v"].map(list).tolist() == [[1.0], []]


def test_a_hash_is_of_what_a_record_holds_without_row_numbers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(",user,__index_level_0__,x\n0,a,7,1\n1,a,8, 1\n2,b,9,1\n")
    one, same, other = open_records(str(path)).digests()
    assert one == same != other
    assert len(set(open_records(str(path)).digests("user"))) == 1


def test_further_records_are_written_in_the_form_of_the_others_in_any_order(tmp_path):
    (tmp_path / "a.csv").write_text("id;says;n\n1;x;2,5\n2;y;3\n")
    more = open_records(str(tmp_path / "a.csv")).added([{"id": "3", "says": 'a; "b"', "n": "7"}])
    more.write(tmp_path / "b.csv", np.array([2, 0, 2]), None)
    assert (
        tmp_path / "b.csv"
    ).read_text() == 'id;says;n\n3;"a; ""b""";7\n1;x;2,5\n3;"a; ""b""";7\n'
    (tmp_path / "u.csv").write_text("id,,\n1,2,3\n")
    unnamed = open_records(str(tmp_path / "u.csv"))
    refused("several columns have no name", unnamed.added, [{"id": "2", "": "4"}])
    pd.DataFrame({"n": np.array([1, 2], dtype="int8")}).to_parquet(tmp_path / "a.parquet")
    typed = open_records(str(tmp_path / "a.parquet"))
    refused("a column cannot hold what is put there", typed.added, [{"n": "word"}])


def test_files_of_a_folder_and_lines_of_a_list_are_records(tmp_path):
    for name in ("cat/1.png", "dog/1.PNG", "dog/2.jpg", ".cache/3.txt"):
        (tmp_path / "all" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "all" / name).write_text(name[-5])
    records = open_records(str(tmp_path / "all"))
    assert records.names == ["cat/1.png", "dog/1.PNG", "dog/2.jpg"]
    one, same, other = records.digests()
    assert one == same != other
    records.write(tmp_path / "some", np.array([True, False, True]), None)
    found = sorted(
        p.relative_to(tmp_path / "some").as_posix() for p in (tmp_path / "some").rglob("*.*")
    )
    assert found == ["cat/1.png", "dog/2.jpg"]
    (tmp_path / "two.csv").write_text("id,record_id\n1,2\n")
    refused("choose one with --id", open_records(str(tmp_path / "two.csv")).id_column)
    (tmp_path / "ids.txt").write_text("a\n\n b\n")
    assert open_records(str(tmp_path / "ids.txt")).names == ["a", "b"]
    assert part(tmp_path / "ids.txt", [False, True]) == " b\n"


def test_other_files_are_refused_in_one_line(tmp_path):
    for name, text, message in (
        ("a.npz", "", "expected a folder or a file ending in .csv"),
        ("a.parquet.gz", "", "expected a folder or a file ending in .csv"),
        ("a.csv", "a,b\n", "there are no rows"),
        ("a.csv", "a,b\n1\n", "row 1 has 1 cells"),
        ("a.jsonl", '{"a": 1}\n[2]\n', "row 2 is not a JSON object"),
        ("a.txt", "id\n7\n", "its first line is 'id'"),
        ("a.parquet", "abc", "cannot be read: Parquet"),
    ):
        (tmp_path / name).write_text(text)
        assert name in refused(message, open_records, str(tmp_path / name))


def test_a_folder_of_several_kinds_of_files_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv(LINKS_VARIABLE, "1")
    refused("there are no files", open_records, str(tmp_path))
    (tmp_path / "elsewhere" / "cat").mkdir(parents=True)
    (tmp_path / "elsewhere" / "cat" / "1.png").write_text("1")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "cat").symlink_to(tmp_path / "elsewhere" / "cat")
    loops = {"itself": "linked", "above": ".", "cat/more": "elsewhere", "cat/back": "linked"}
    for name, place in loops.items():
        (tmp_path / "linked" / name).symlink_to((tmp_path / place).resolve())
    assert open_records(str(tmp_path / "linked")).names == ["cat/1.png"]
    for name in ("1.png", "labels.csv"):
        (tmp_path / name).write_text(name)
    refused(
        r"several kinds \(.csv, .png\), each of which would be a record",
        open_records,
        str(tmp_path),
    )
