"""Files are written whole or not at all."""

import errno
import os
from pathlib import Path

import pytest

from paperlib.io import OutputError, atomic_file, config_hash, file_sha256, write_json, write_text
from paperlib.io.files import canonical_json


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
