"""Tables that the package ships: the papers' numbers, and one heading for each name of a column."""

import ast
import json
import re
from importlib import resources
from pathlib import Path

import pandas as pd
import pytest

from paperlib.report.tables import known_columns
from paperlib.reproduction.exhibits import paper_table, paper_tables, targets
from paperlib.reproduction.exhibits.printed import PAPERS


def test_every_table_can_be_read_in_both_ways_targets_are_fifty_and_headings_unique():
    for name in paper_tables():
        numbers, printed = paper_table(name), paper_table(name, as_printed=True)
        assert numbers.shape == printed.shape
        assert not numbers.empty
    assert paper_table("panoramia_table03", as_printed=True)["c_lb_pm"].iloc[0] == "0.190"
    with pytest.raises(ValueError, match="epsilon_star_text"):
        paper_table("epsilon_star_table01")
    table = targets()
    assert table["item"].str.startswith("Table").sum() == 20
    assert table["item"].str.startswith("Figure").sum() == 30
    assert table["id"].is_unique
    assert set(table["paper"]) == set(PAPERS)
    assert (table[["headline", "source", "claim", "notebook"]] != "").all().all()
    with resources.files("paperlib.report").joinpath("columns.csv").open(encoding="utf-8") as file:
        rows = pd.read_csv(file, dtype=str, keep_default_na=False)
    assert rows["name"].tolist() == sorted(set(rows["name"]))
    assert rows["heading"].is_unique
    assert set(rows["lower_bound"]) <= {"", "yes"}


PRINTED = [f"panoramia-table-{at}" for at in ("01", "02", "03", "06", "08", "09", "11")]
PRINTED += [f"nid-table-{at}" for at in ("01", "04", "05", "06", "10")]


@pytest.mark.parametrize("target", [*PRINTED, "epsilon-star-figure-01"])
def test_headline_decimals_stand_in_the_paper_s_own_table(target):
    headline = targets().set_index("id").loc[target, "headline"]
    table = target.replace("-table-", "_table") if target in PRINTED else "epsilon_star_text"
    printed = paper_table(table, as_printed=True)
    known = set(
        pd.to_numeric(printed.drop(columns=["section"], errors="ignore").stack(), errors="coerce")
    )
    # O(1) and RM;RN values stand in another column that holds rounded values.
    known |= set(paper_table(table).select_dtypes("number").stack().round(2))
    assert {float(number) for number in re.findall(r"\d+\.\d+", headline)} <= known


def headings_elsewhere(source):
    """Names of ``columns.csv`` that a call gives a heading of its own."""
    calls = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.Call)]
    tables = [call for call in calls if getattr(call.func, "id", "") == "show_table"]
    given = [word.value for call in tables for word in call.keywords if word.arg == "columns"]
    keys = [key for one in given if isinstance(one, ast.Dict) for key in one.keys]
    return {key.value for key in keys if isinstance(key, ast.Constant)} & known_columns().keys()


def test_notebooks_give_no_known_column_another_heading():
    assert headings_elsewhere('show_table(frame, columns={"eps_tilde": "difference"})')
    for path in sorted((Path(__file__).parents[3] / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text())["cells"]:
            assert cell["cell_type"] != "code" or not headings_elsewhere("".join(cell["source"])), (
                path.stem
            )
