"""Files are written whole or not at all, and result files are read back as written."""

import errno
import json
import os
from pathlib import Path

import pytest

from paperlib.io import (
    OutputError,
    RunResult,
    atomic_file,
    canonical_json,
    config_hash,
    data_folder,
    file_sha256,
    read_result,
    write_json,
    write_result,
    write_text,
)


def test_a_file_is_replaced_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    target = tmp_path / "new" / "result.json"
    write_text(target, "old")
    write_text(target, "new")
    assert target.read_text() == "new"
    assert [path.name for path in target.parent.iterdir()] == ["result.json"]


def test_an_exception_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "a"
    write_text(target, "old")

    def write_half() -> None:
        with atomic_file(target) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        ("fsync", errno.ENOSPC, "the disk is full"),
        ("fsync", errno.EROFS, "the disk is read-only"),
        ("replace", errno.EACCES, "no permission"),
    ],
)
def test_a_full_disk_or_a_read_only_folder_is_named_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int, words: str
) -> None:
    target = tmp_path / "a"
    write_text(target, "old")

    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OutputError, match=words) as caught:
        write_text(target, "new")
    assert str(target) in str(caught.value)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_files_get_the_usual_permissions_and_no_folder_in_a_file_is_made(tmp_path: Path) -> None:
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    write_text(tmp_path / "ours", "x")
    assert (tmp_path / "ours").stat().st_mode == ordinary.stat().st_mode
    with pytest.raises(OutputError, match=r"is a file, not a folder|File exists"):
        write_text(ordinary / "a", "x")


def test_json_has_sorted_keys_spells_infinities_and_refuses_what_it_has_no_word_for(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": float("-inf"), "a": [1]})
    assert (tmp_path / "a.json").read_text().split() == ["{", '"a":', "[", "1", "],", '"b":', '"-inf"', "}"]
    with pytest.raises(ValueError, match="value: expected"):
        canonical_json({"a": {1, 2}})


def test_the_hash_changes_with_every_value_and_not_with_the_order() -> None:
    base = {"m": 100, "seed": 0, "delta": 1e-5}
    assert config_hash(base) == config_hash(dict(reversed(base.items())))
    others = [{**base, name: 7} for name in base] + [{**base, "more": 1}, {**base, "seed": 0.0}]
    hashes = {config_hash(config) for config in [base, *others]}
    assert len(hashes) == 1 + len(others)


def test_the_checksum_is_that_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert file_sha256(tmp_path / "a").startswith("ba7816bf8f01cfea")


def test_a_result_comes_back_as_written(tmp_path: Path) -> None:
    result = RunResult(notebook="demo", profile="smoke", parameters={"m": 3}, records=[{"target": "x"}])
    write_result(tmp_path / "a.json", result)
    assert read_result(tmp_path / "a.json") == result
    keys = list(json.loads((tmp_path / "a.json").read_text()))
    assert keys == ["data", "notebook", "parameters", "profile", "provenance", "records", "schema"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a result file"),
        ('{"schema": 1', "not a result file"),
        ("[]", "expected a result file of schema 1"),
        ('{"schema": 2}', "got 2"),
        ('{"schema": 1, "notebook": "a"}', "lacks profile"),
    ],
)
def test_anything_else_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ValueError, match=words):
        read_result(tmp_path / "a.json")


def test_data_is_looked_for_where_the_variable_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPERLIB_DATA", "/some/where")
    assert data_folder() == Path("/some/where")
    monkeypatch.delenv("PAPERLIB_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert data_folder() == Path("/cache/paperlib/data")
