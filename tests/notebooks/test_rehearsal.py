"""The quick part of `make rehearsal`: the paper profile on made-up data, by the loaders of the true
data.
"""

from pathlib import Path

import pytest

from paperlib.io import read_result
from paperlib.reproduction.running import find_project, keep_run, outcomes, plan
from paperlib.reproduction.running.execute import RESULT

HERE = find_project(Path(__file__).parent)
QUICK = (
    "epsilon_star_fit",
    "nid_dataset_inference",
)  # Adult's files; a Pythia and the Pile in their layouts


@pytest.mark.slow
@pytest.mark.parametrize("stem", QUICK)
def test_the_rehearsal_reaches_its_last_cell_and_decides_nothing(stem: str) -> None:
    result = read_result(keep_run(plan(HERE, stem, profile="rehearsal")) / RESULT)
    assert {record["level"] for record in result.records} == {"made-up data"}
    assert all("made-up data decide nothing" in said for said in outcomes(result).values())
