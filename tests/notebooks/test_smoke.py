"""Every notebook runs in the smoke profile, states all its targets, and describes its figures."""

import json
import re
from pathlib import Path

import pytest

from paperlib.io import read_result
from paperlib.report import targets
from paperlib.running import find_project, keep_run, outcomes, plan
from paperlib.running.execute import PAGE, RESULT

HERE = find_project(Path(__file__).parent)


# No other data set may stand in for the one that these are about.
NEED_REAL_DATA = {"epsilon-star-figure-02"}


def targets_of(stem: str) -> set[str]:
    rows = targets().to_dict("records")
    return {str(row["id"]) for row in rows if stem in str(row["notebook"]).split("; ")}


@pytest.mark.parametrize("stem", HERE.stems())
def test_notebook_runs_in_the_smoke_profile(stem: str) -> None:
    """The run is kept, so that `make book PROFILE=smoke` need not repeat it; the book's pages stay."""
    folder = keep_run(plan(HERE, stem, profile="smoke"))
    result = read_result(folder / RESULT)
    text = (folder / PAGE).read_text()
    csvs = {path.name for path in folder.glob("*.csv")}
    recorded = {record["target"] for record in result.records if "answer" not in record}
    assert targets_of(stem) - NEED_REAL_DATA <= recorded <= targets_of(stem)
    assert set(outcomes(result)) == recorded
    assert set(result.data) == csvs
    assert str(HERE.root) not in text
    markdown = [
        "".join(output["data"]["text/markdown"])
        for cell in json.loads(text)["cells"]
        if cell["cell_type"] == "code"
        for output in cell["outputs"]
        if "text/markdown" in output.get("data", {})
    ]
    for figure in (part for part in markdown if part.startswith("````{figure}")):
        assert re.search(r'^:alt: "(.{30,})"$', figure, re.MULTILINE), figure[-600:]


@pytest.mark.parametrize("profile", ["smoke", "default", "paper"])
def test_every_profile_names_every_notebook_and_no_other(profile: str) -> None:
    assert sorted(HERE.profile(profile)) == HERE.stems()


def test_every_notebook_that_a_target_names_is_here_or_not_yet() -> None:
    named = {name for names in targets()["notebook"] for name in names.split("; ")}
    extra = set(HERE.stems()) - named
    ours = {"audit_your_model", "audit_your_language_model", "panoramia_your_data", "panoramia_known_c"}
    ours |= {"compare_audits"}
    assert extra <= ours | {"panoramia_null", "validity", "your_own_parts", "paper_checks"}, (
        "a notebook that reproduces nothing"
    )
