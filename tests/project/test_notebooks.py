"""Every notebook is stored without outputs and opens with a cell of literal parameters."""

import ast
import json
from itertools import pairwise
from pathlib import Path

import pytest

from paperlib.reproduction.running.parameters import parse_parameters

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
WIDTH = 76
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(path: Path) -> list[dict]:
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


def parameters(path: Path) -> dict[str, object]:
    (cell,) = [c for c in code_cells(path) if "parameters" in c["metadata"].get("tags", [])]
    body = ast.parse("".join(cell["source"])).body
    assert all(isinstance(line, ast.Assign) for line in body), (
        "only name = literal belongs in this cell"
    )
    return {line.targets[0].id: ast.literal_eval(line.value) for line in body}


@every_notebook
def test_notebook_is_stored_without_outputs_and_no_statement_follows_itself(path):
    for cell in code_cells(path):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
    for cell in code_cells(path):
        said = [ast.dump(line) for line in ast.parse("".join(cell["source"])).body]
        assert [one for one, then in pairwise(said) if one == then] == []


@every_notebook
def test_first_code_cell_holds_literal_parameters_with_a_comment_each(path):
    assert parameters(path)
    first = code_cells(path)[0]
    assert "parameters" in first["metadata"].get("tags", [])
    for parameter in parse_parameters("".join(first["source"]), path.name):
        assert parameter.comment, f"say what this parameter means: {parameter.name}"


@every_notebook
def test_code_fits_the_width_of_a_page(path):
    """At 1,280 pixels a page shows 76 columns; a longer line wraps in mid-argument."""
    lines = [line for cell in code_cells(path) for line in "".join(cell["source"]).splitlines()]
    assert [line for line in lines if len(line) > WIDTH] == []


@every_notebook
def test_the_first_code_shown_is_whole_and_leaves_parameters_alone(path):
    """A reader can copy it: it has its own imports, and it changes no parameter of the page."""
    shown = next(cell for cell in code_cells(path) if not cell["metadata"].get("tags"))
    tree = ast.parse("".join(shown["source"]))
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    stored = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    assert not stored & set(parameters(path))
    own = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    assert not ({node.id for node in names if isinstance(node.ctx, ast.Load)} - own) & set(
        parameters(path)
    )
    assert any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(tree))
