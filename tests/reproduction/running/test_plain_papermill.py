"""The page *Run a notebook*: papermill alone, without this package's command."""

import re
import shlex
from pathlib import Path

import nbformat
import papermill

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "book" / "run_a_notebook.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(line)
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.replace("\\\n", "").splitlines()
]


def test_papermill_fills_the_parameters_that_the_page_gives(tmp_path):
    (command,) = (words for words in COMMANDS if "shapes.ipynb" in words)
    program, notebook, output, *options = command
    assert (program, options[::3]) == (".venv/bin/papermill", ["-p", "-p"])
    given = dict(zip(options[1::3], map(int, options[2::3]), strict=True))
    known = papermill.inspect_notebook(ROOT / notebook)
    assert set(given) <= set(known)
    filled = papermill.execute_notebook(
        ROOT / notebook, tmp_path / output, given, prepare_only=True, progress_bar=False
    )
    tags = [cell.metadata.get("tags", []) for cell in filled.cells if cell.cell_type == "code"]
    assert tags[:2] == [["parameters"], ["injected-parameters"]]


def test_papermill_alone_writes_the_tables_into_the_folder_that_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PAPERLIB_RESULTS", str(tmp_path))
    executed = tmp_path / "executed.ipynb"
    papermill.execute_notebook(
        ROOT / "notebooks" / "nid_randomized_response.ipynb",
        executed,
        {"points": 3, "delta_points": 3},
        progress_bar=False,
    )
    outputs = [cell.outputs for cell in nbformat.read(executed, 4).cells if "outputs" in cell]
    assert any(outputs)
    names = {path.name for path in tmp_path.glob("*.csv")}
    assert "nid-tight-bound.csv" in names


def test_every_notebook_has_one_cell_of_parameters_for_papermill():
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = nbformat.read(notebook, 4).cells
        tagged = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
        assert len(tagged) == 1, notebook.name
