"""The table of times that CI keeps: every step has a row, and none fails by its time."""

import csv
import re
import sys
from pathlib import Path

import pytest
import times
import yaml

ROOT = Path(__file__).parents[2]


@pytest.fixture
def table(tmp_path, monkeypatch):
    path = tmp_path / "build" / "times.csv"
    monkeypatch.setattr(times, "TABLE", path)
    return path


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_step_has_its_row_its_cpu_time_and_its_exit_code(table, capfd):
    assert times.main(["new"]) == 0
    work = "sum(range(30_000_000)); raise SystemExit(3)"
    assert times.main(["step", "some work", sys.executable, "-c", work]) == 3
    loop, step = rows(table)
    assert loop["step"] == "a loop of 5,000,000 rounds"
    assert (step["step"], step["exit code"]) == ("some work", "3")
    assert float(step["CPU seconds"]) > 0
    assert times.main(["show"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["step", "a", "some"]
    assert times.main(["new"]) == 0
    assert len(rows(table)) == 1


def test_what_is_no_call_says_how_to_call_and_writes_nothing(table, capfd):
    for words in ([], ["step", "name"], ["later"], ["new", "table"]):
        assert times.main(words) == 2
    assert "python3 .ci/times.py show" in capfd.readouterr().err
    assert not table.exists()


def test_every_step_of_ci_is_timed_and_the_table_is_kept():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.findall(r"step (\w+) make (\w+)", script) == [
        (name, name) for name in ("setup", "book", "pdf", "test", "check")
    ]
    calls = re.findall(r"^\s*(?!step)\w*\s*make \w+", script, re.MULTILINE)
    assert calls == []
    assert "times.py commands" in script
    steps = yaml.safe_load((ROOT / ".github" / "workflows" / "book.yml").read_text("utf-8"))
    steps = steps["jobs"]["book"]["steps"]
    assert [step for step in steps if step.get("with", {}).get("path") == "build/times.csv"]
    assert not [step for step in steps if step.get("run", "").startswith("make")]
