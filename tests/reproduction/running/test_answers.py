"""The answer of an audit of one's own data is in the result file, and printed when the run ends."""

import json
import os
from pathlib import Path

import numpy as np

from paperlib.bounds import audit_one_run
from paperlib.core import MembershipScores
from paperlib.io import read_result
from paperlib.report.display import RECORDS_FILE, RESULTS_VARIABLE
from paperlib.reproduction import running
from paperlib.reproduction.cli import notebooks
from paperlib.reproduction.running.book import copy_whole, kept_folder
from tests.reproduction.running.toys import GOOD, make_project

BODY = """import numpy as np
from paperlib.bounds import audit_one_run
from paperlib.core import MembershipScores
from paperlib.reproduction.running import record_answer
rng = np.random.default_rng(seed)
scores = MembershipScores(rng.normal(2, 1, 200), rng.normal(0, 1, 200))
result = audit_one_run(scores, design="game")
record_answer(result, about="a toy", warnings=["mind this"], report="page.html")"""


def test_an_answer_is_returned_and_in_a_run_a_line_holds_it(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    scores = MembershipScores(rng.normal(2, 1, 200), rng.normal(0, 1, 200))
    result = audit_one_run(scores, design="game")
    monkeypatch.delenv(RESULTS_VARIABLE, raising=False)
    answer = running.record_answer(result, about="a toy", warnings=["mind this"])
    assert answer.epsilon == result.epsilon > 0
    assert answer.report == ""
    assert "Report" not in str(answer)
    monkeypatch.setenv(RESULTS_VARIABLE, str(tmp_path))
    answer = running.record_answer(
        result, about="a toy", warnings=["mind this"] * 2, report="page.html"
    )
    kept = json.loads((tmp_path / RECORDS_FILE).read_text())["answer"]
    assert kept["epsilon"] == answer.epsilon
    assert kept["warnings"][0] == "mind this"
    assert kept["warnings"].count("mind this") == 1
    words = answer.words(Path("/where"))
    told = (
        answer.headline,
        answer.condition,
        answer.claim,
        "Warning: mind this",
        "Report: /where/page.html",
    )
    assert all(text and text in words for text in told)


def test_a_run_prints_the_answer_beside_the_outcomes_and_it_is_no_evidence(
    tmp_path, monkeypatch, capsys
):
    project = make_project(tmp_path, toy=f"{BODY}\n{GOOD}")
    monkeypatch.chdir(tmp_path)
    notebooks.run("toy", ["m=4"], profile="smoke", every=False, jobs=1, book=False)
    said = capsys.readouterr().out
    (folder,) = (project.runs / "toy").iterdir()
    kept = read_result(folder / "result.json")
    (answer,) = running.answers_in(kept)
    assert f"a toy\n  {answer.headline}\n  ({answer.condition})\n  {answer.claim}" in said
    assert "Warning: mind this" in said
    assert f"Report: {tmp_path / 'page.html'}" in said
    assert list(running.outcomes(kept)) == ["output-sets-figure-05"]
    assert "output-sets-figure-05: carries over" in said
    job = running.plan(project, "toy", profile="smoke", given={"m": 4})
    copy_whole(folder, kept_folder(job))
    running.show_run(job)
    running.write_status(project, "smoke")  # which the answer does not disturb
    assert running.current_result(job) == kept


def test_parameters_of_make_arrive_whole_and_paths_are_seen_from_its_folder(tmp_path, monkeypatch):
    project = make_project(tmp_path / "checkout", toy="assert open(file).read() == 'rows'")
    user = tmp_path / "my data"
    user.mkdir()
    (user / "my $1 rows.csv").write_text("rows")
    monkeypatch.chdir(project.root)
    monkeypatch.setenv("PAPERLIB_P", "file='my $1 rows.csv' m=7")
    monkeypatch.setenv("PAPERLIB_FROM", str(user))
    notebooks.run("toy", [], profile="smoke", every=False, jobs=1, book=False)
    (folder,) = (project.runs / "toy").iterdir()
    kept = read_result(folder / "result.json")
    assert kept.parameters == {"m": 7, "file": "my $1 rows.csv", "seed": 0}
    assert set(kept.provenance["data"]) == {"my $1 rows.csv"}
    assert not {"PAPERLIB_P", "PAPERLIB_FROM"} & set(os.environ), (
        "left for the notebooks that a run starts"
    )
