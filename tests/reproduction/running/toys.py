"""Small notebooks in a checkout of their own."""

import signal
import subprocess
import sys
from pathlib import Path

import nbformat

from paperlib.reproduction.running import Project

GOOD = """import pandas as pd
from paperlib.reproduction.papers.verdict import Estimate, Evidence, Scale, record
from paperlib.report import show_table
show_table(pd.DataFrame({"m": [m]}), name="sizes", caption="Sizes")
evidence = Evidence("output-sets-figure-05", "exact", {"asymmetric": Estimate(m / 3)})
record(evidence, scale=Scale("substitute", "toy"))"""


def make_project(root: Path, **bodies: str) -> Project:
    """A checkout with one notebook per keyword; each has the parameters m, file and seed."""
    project = Project(root)
    (project.notebooks / "profiles").mkdir(parents=True)
    for profile in ("smoke", "default"):
        (project.notebooks / "profiles" / f"{profile}.yaml").write_text("")
    for stem, body in bodies.items():
        write_notebook(project, stem, body)
    return project


def paperlib_process(folder: Path, *words: str) -> "subprocess.Popen[str]":
    """The command in a folder and a session of its own, which an interrupt reaches."""
    return subprocess.Popen(
        [sys.executable, "-m", "paperlib", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # background shells ignore it
    )


def write_notebook(project: Project, stem: str, body: str) -> None:
    cell = nbformat.v4.new_code_cell(
        'm = 3  # how many\nfile = ""  # a file\nseed = 0  # of all draws'
    )
    cell.metadata["tags"] = ["parameters"]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell("# A toy"), cell, nbformat.v4.new_code_cell(body)],
        metadata={
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}
        },
    )
    nbformat.write(notebook, project.notebooks / f"{stem}.ipynb")
