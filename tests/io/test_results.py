"""Result files are read back as written, and nothing else is read as one."""

import json
from pathlib import Path

import pytest

from paperlib.io import RunResult, data_folder, read_result, write_result


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
