"""The command, as somebody uses it who installed the package and has no checkout."""

import json
import re
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import paperlib

DISTRIBUTION = "leakbound"
SOURCES = Path(paperlib.__file__).parents[1]
IN_CHECKOUT = (SOURCES / "pyproject.toml").is_file()
REFUSED = 2
GATE_FAILED = 3


def paperlib_command(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder."""
    command = [sys.executable, "-m", "paperlib", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, encoding="utf-8")


def succeeded(*words: str, folder: Path) -> str:
    """What a command prints that must succeed."""
    done = paperlib_command(*words, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(*words: str, folder: Path) -> str:
    """The one line of a command that must be refused."""
    done = paperlib_command(*words, folder=folder)
    assert done.returncode == REFUSED, done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    return line


@pytest.fixture
def losses(tmp_path):
    """A file of losses of 200 members and others, of which every one leaks."""
    rng = np.random.default_rng(0)
    member = rng.integers(0, 2, 200)
    pd.DataFrame({"loss": rng.normal(-4.0 * member), "member": member}).to_csv(
        tmp_path / "losses.csv", index=False
    )
    return tmp_path


def test_the_version_is_that_of_the_distribution(tmp_path):
    printed = succeeded("--version", folder=tmp_path)
    assert printed == f"paperlib {metadata.version(DISTRIBUTION)}\n"
    assert paperlib.__version__ == metadata.version(DISTRIBUTION)
    assert f"paperlib         {paperlib.__version__}\n" in succeeded("doctor", folder=tmp_path)


def test_an_audit_writes_json_and_a_report_and_its_gate_fails(losses):
    done = paperlib_command(
        "audit", "losses.csv", "--json", "--output", "report.html", folder=losses
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["epsilon"] > 2
    assert "<!DOCTYPE html>" in (losses / "report.html").read_text(encoding="utf-8")
    gate = paperlib_command("audit", "losses.csv", "--fail-above", "1", folder=losses)
    assert gate.returncode == GATE_FAILED


def test_a_receipt_is_verified_and_an_altered_one_is_not(tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"id": range(200), "value": rng.random(200)})
    rows.to_csv(tmp_path / "data.csv", index=False)
    tossed = succeeded("coins", "data.csv", "--id", "id", "--out", "train.csv", folder=tmp_path)
    (coins,) = set(re.findall(r"\b[0-9a-f]{64}\b", tossed))
    (tmp_path / "plan.yaml").write_text(
        f"coins: {coins}\nscore: loss\ndirection: lower\nlimit: 3\n", encoding="utf-8"
    )
    plan = re.findall(r"\b[0-9a-f]{64}\b", succeeded("seal", "plan.yaml", folder=tmp_path))[0]
    trained_on = rows["id"].isin(pd.read_csv(tmp_path / "train.csv")["id"])
    losses = rng.normal(size=200) - trained_on
    pd.DataFrame({"id": rows["id"], "loss": losses}).to_csv(tmp_path / "scores.csv", index=False)
    sealed = ["--coins", "train.coins.json", "--plan", "plan.sealed.json"]
    succeeded("audit", "scores.csv", *sealed, "--output", "receipt.html", folder=tmp_path)
    published = ["--plan", plan, "--coins", coins]
    succeeded("verify", "receipt.html", *published, folder=tmp_path)
    page = (tmp_path / "receipt.html").read_text(encoding="utf-8")
    altered = re.sub(r"<h1>.*?</h1>", "<h1>Perfect privacy</h1>", page, count=1, flags=re.DOTALL)
    assert altered != page
    (tmp_path / "altered.html").write_text(altered, encoding="utf-8")
    done = paperlib_command("verify", "altered.html", *published, folder=tmp_path)
    assert done.returncode == REFUSED, done.stdout
    other = paperlib_command("verify", "receipt.html", "--plan", "0" * 64, folder=tmp_path)
    assert other.returncode == REFUSED, other.stdout


@pytest.mark.parametrize(
    ("module", "extra", "words"),
    [
        ("torch", "language", ["audit-lm", "a_model", "text.txt"]),
        ("sklearn", "features", ["audit-release", "a.csv", "b.csv", "c.csv"]),
    ],
)
def test_a_missing_package_is_one_line_that_names_its_extra(tmp_path, module, extra, words):
    if find_spec(module):
        pytest.skip(f"{module} is installed")
    (tmp_path / "text.txt").write_text("A text.\n", encoding="utf-8")
    for offset, name in enumerate(("a.csv", "b.csv", "c.csv")):
        rows = np.random.default_rng(offset).normal(size=(200, 3))
        pd.DataFrame(rows, columns=list("xyz")).to_csv(tmp_path / name, index=False)
    line = refusal(*words, folder=tmp_path)
    assert line.endswith(f"pip install '{DISTRIBUTION}[{extra}]'")


@pytest.mark.skipif(IN_CHECKOUT, reason="this is a checkout, which has the notebooks")
@pytest.mark.parametrize(
    "words",
    [["run", "output_set_gain", "--profile", "smoke"], ["list"], ["sweep", "a", "-p", "b=1"]],
)
def test_what_runs_notebooks_says_that_it_needs_a_checkout(tmp_path, words):
    assert "checkout" in refusal(*words, folder=tmp_path)
