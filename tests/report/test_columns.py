"""One table names the columns: each name has one heading, and no heading has two names."""

import ast
import json
from importlib import resources
from pathlib import Path

import pandas as pd

from paperlib.report.tables import known_columns

ROOT = Path(__file__).parents[2]


def test_names_are_sorted_and_no_two_share_a_heading():
    with resources.files("paperlib.report").joinpath("columns.csv").open(encoding="utf-8") as file:
        rows = pd.read_csv(file, dtype=str, keep_default_na=False)
    assert rows["name"].tolist() == sorted(set(rows["name"]), key=str)
    assert rows["heading"][rows["heading"].duplicated()].tolist() == []
    assert set(rows["lower_bound"]) <= {"", "yes"}


def headings_elsewhere(source: str) -> dict[str, str]:
    """Names of ``columns.csv`` that a call gives a heading of its own."""
    found = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "show_table":
            given = [word.value for word in node.keywords if word.arg == "columns"]
            for pairs in [one for one in given if isinstance(one, ast.Dict)]:
                both = zip(pairs.keys, pairs.values, strict=True)
                texts = {
                    k.value: v.value
                    for k, v in both
                    if isinstance(k, ast.Constant) and isinstance(v, ast.Constant)
                }
                found |= {name: text for name, text in texts.items() if name in known_columns()}
    return found


def test_notebooks_give_no_known_column_another_heading():
    assert headings_elsewhere('show_table(frame, columns={"eps_tilde": "difference"})')
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
        for cell in cells:
            assert headings_elsewhere("".join(cell["source"])) == {}, path.stem
