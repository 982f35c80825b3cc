"""Tables measured on another occasion."""

import json
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

from paperlib.io import read_result
from paperlib.io.files import RunResult, file_sha256, write_result
from paperlib.reproduction import running
from paperlib.reproduction.papers.measured import measured_table
from paperlib.reproduction.papers.verdict.evidence import from_dict
from paperlib.reproduction.running import Project
from paperlib.reproduction.running.book import measured_results
from tests.refusals import refused

MEASURED = Path(__file__).parents[3] / "book" / "measured"
TABLES = sorted(MEASURED.glob("*.csv"))
ORIGIN = {
    "date": "2026-01-02 03:04:05 UTC",
    "cpu": "some CPU",
    "cores": 2,
    "gpu": None,
    "seconds": 600.0,
}


@pytest.mark.parametrize(("gpu", "place"), [(None, "some CPU, 2 cores"), ("some GPU", "some GPU")])
def test_a_measured_table_comes_with_its_origin(tmp_path, monkeypatch, gpu, place):
    (tmp_path / "book").mkdir()
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    pd.DataFrame({"subset": ["null"], "total": [3]}).to_csv(
        tmp_path / "book" / "a.csv", index=False
    )
    files = {"a.csv": file_sha256(tmp_path / "book" / "a.csv")}
    origin = {**ORIGIN, "gpu": gpu, "files": files}
    result = RunResult(notebook="n", profile="paper", provenance=origin)
    write_result(tmp_path / "book" / "a.json", result)
    table, text = measured_table("book/a.csv")
    assert table.to_dict("list") == {"subset": ["null"], "total": [3]}
    assert text == f"measured 2026-01-02 on {place}, in 10 minutes"
    result.provenance["earlier_seconds"] = 300  # a run that was resumed
    write_result(tmp_path / "book" / "a.json", result)
    assert measured_table("book/a.csv")[1].endswith("in 15 minutes")


def test_a_table_without_its_result_file_is_refused_and_no_path_gives_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert measured_table("") is None
    refused(r"measured: no 'a\.csv'", measured_table, "a.csv")
    (tmp_path / "a.csv").write_text("x\n1\n")
    refused(r"with its \.json", measured_table, "a.csv")


def other_digit(text):
    """The text with a digit raised by one, 9 to 0: the last that follows a point, if there is one,
    so that no rounding hides it.
    """
    digits = list(re.finditer(r"\.(\d)", text)) or list(re.finditer(r"(\d)", text))
    last = digits[-1]
    return f"{text[: last.start(1)]}{(int(last[1]) + 1) % 10}{text[last.end(1) :]}"


def test_a_changed_digit_of_each_committed_record_is_seen(tmp_path):
    """In each record of each file, and in a table that is shown."""
    judged = 0
    for path in sorted(MEASURED.rglob("*.json")):
        content = json.loads(path.read_text())
        for index, record in enumerate(content["records"]):
            changed = json.loads(other_digit(json.dumps(record)))
            records = [*content["records"]]
            records[index] = changed
            (tmp_path / "a.json").write_text(json.dumps({**content, "records": records}))
            refused("records were changed after the run", read_result, tmp_path / "a.json")
            judged += 1
    assert judged > 200
    for path in TABLES:
        (tmp_path / "a.json").write_bytes(path.with_suffix(".json").read_bytes())
        (tmp_path / "a.csv").write_text(other_digit(path.read_text()))
        refused("a.csv is not the table of the run", measured_table, str(tmp_path / "a.csv"))


# Tables of runs that draw their records and read no data.
DRAWN = {"dp-sound"}


def test_committed_runs_can_be_repeated_and_judged_and_adult_has_every_target():
    for path in TABLES:
        table, _ = measured_table(str(path))
        result = read_result(path.with_suffix(".json"))
        assert len(table) > 0, path
        assert path.name in result.data
        assert result.provenance["dirty"] is False
        assert len(result.provenance["commit"]) == 40
        assert bool(result.provenance["data"]) != (path.stem in DRAWN)
    for path in sorted((MEASURED / "seeds").rglob("*.json")):
        result = read_result(path)
        assert result.notebook == path.stem
        assert str(result.parameters["seed"]) == path.parent.name
        assert result.provenance["command"].startswith(f"make run NB={path.stem} ")
        assert [from_dict(one)[0].target for one in result.records]
    table, _ = measured_table(str(next(path for path in TABLES if path.stem == "panoramia_adult")))
    ours = table[table["source"] == "ours"]
    assert set(ours["label"]) == {"income", "occupation"}
    assert ours.groupby("label")["target"].nunique().tolist() == [4, 4]
    assert not ours[["eps_tilde", "rm_rn", "o1"]].isna().any(axis=None)
    assert set(table["source"]) == {"ours", "paper"}


def test_the_command_of_a_committed_run_still_gives_its_parameters():
    here, checked = running.find_project(Path(__file__).parent), 0
    for path in sorted((here.root / "book" / "measured").rglob("*.json")):
        run = read_result(path)
        words = shlex.split(run.provenance["command"])
        if words[:2] != ["make", "run"]:
            continue  # of the command line, with every parameter in it
        made = dict(word.split("=", 1) for word in words[2:])
        given = running.parse_assignments(running.split_assignments(made.get("P", "")))
        planned = running.plan(
            here, run.notebook, profile=made["PROFILE"], given=given, where=here.root
        )
        # What a page shows of other runs has changed since, and so have names of parameters.
        same = {
            key: value for key, value in run.parameters.items() if not key.startswith("measured")
        }
        assert {key: planned.parameters.get(key, value) for key, value in same.items()} == same, (
            path
        )
        checked += 1
    assert checked > 60


def test_runs_of_a_plan_are_not_judged_before_all_its_seeds_are_there(tmp_path):
    (tmp_path / "book" / "measured" / "unfinished").mkdir(parents=True)
    for folder in (tmp_path / "book" / "measured", tmp_path / "book" / "measured" / "unfinished"):
        write_result(
            folder / "a.json", RunResult(notebook=folder.name, profile="paper", provenance=ORIGIN)
        )
    assert [one.notebook for one in measured_results(Project(tmp_path))] == ["measured"]


def test_unfinished_plans_lack_a_seed_and_their_runs_are_as_planned():
    book = Path(__file__).parents[3] / "book"
    runs = [read_result(path) for path in sorted((book / "measured" / "unfinished").glob("*.json"))]
    for _, plan in pd.read_csv(book / "planned_runs.csv").iterrows():
        mine = [
            one
            for one in runs
            if one.notebook == plan["notebook"] and one.profile == plan["profile"]
        ]
        planned, seeds = json.loads(plan["parameters"]), set(str(plan["seeds"]).split())
        mine = [one for one in mine if planned.items() <= one.parameters.items()]
        mine = [one for one in mine if str(one.parameters["seed"]) in seeds]
        assert len(mine) < len(seeds), f"all of {plan['targets']} are there: move them"
        runs = [one for one in runs if one not in mine]
    assert runs == []
