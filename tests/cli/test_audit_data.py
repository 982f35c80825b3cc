"""`paperlib audit-data`: a model, its training data from files, the answer on the terminal, and a report."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from paperlib import cli
from paperlib.report import result_schema
from tests.audits.samples import table

MODEL = """import pandas as pd
KNOWN = set(map(tuple, pd.read_csv("my rows.csv").to_numpy()))
def losses(rows):
    return [-(tuple(row) in KNOWN) - 0.1 * row[0] for row in rows.to_numpy()]
def blind(rows):
    return -0.1 * rows["size"]
def train_again(rows, seed):
    return blind
"""
QUICK = ("--repetitions", "1", "--restarts", "1")


@pytest.fixture(autouse=True)
def _same_signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, with members, generated rows, real non-members and a model."""
    monkeypatch.chdir(tmp_path)
    for name, seed in (("my rows", 0), ("made", 5), ("real", 6)):
        table(seed=seed).to_csv(f"{name}.csv", index=False)
    Path("model.py").write_text(MODEL)
    return tmp_path


def call(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["paperlib", "audit-data", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert isinstance(stop.value.code, int)
    return stop.value.code


def test_it_prints_the_answer_with_its_condition_and_writes_the_report(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("my rows.csv", "--target", "model.py:losses", "--generated", "made.csv", "--delta", "0.01")
    assert call(monkeypatch, *words, *QUICK) == 0
    said = capsys.readouterr().out
    for text in (
        "ε~ = ",
        "a measurement",
        "null not checked",
        "δ = 0.01",
        "delta = 0.01",
        "Warning: without a label",
    ):
        assert text in said
    assert "Report: my rows-audit.html" in said
    page = (here / "my rows-audit.html").read_text()
    assert "paperlib audit-data &#39;my rows.csv&#39;" in page
    assert "not a lower bound on epsilon" in page


def test_json_is_one_document_and_real_nonmembers_make_it_a_lower_bound(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("my rows.csv", "--target", "model.py:losses", "--generated", "made.csv")
    real = ("--nonmembers", "real.csv", "--claimed-epsilon", "0.1")
    assert call(monkeypatch, *words, *real, *QUICK, "--json", "--delta", "0.01") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["epsilon"] > 0.3
    assert content["epsilon"] == content["audits"][0]["result"]["epsilon"]
    assert "replacing one example" in content["claim"]
    assert "coins tossed by this audit" in content["condition"]
    assert {one["result"]["delta"] for one in content["audits"]} == {0.01}
    assert content["verdict"]["refuted"] is True
    jsonschema.validate(content, result_schema())
    assert set(content["inputs"]) == {"my rows.csv", "model.py:losses", "made.csv", "real.csv", "target"}
    assert not list(here.glob("*.html"))


def test_the_gate_judges_the_number_and_writes_junit(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("my rows.csv", "--target", "model.py:losses", "--generated", "made.csv", *QUICK)
    assert call(monkeypatch, *words, "--fail-above", "0.2", "--junit", "audit.xml") == 3
    assert "<failure" in Path("audit.xml").read_text()
    passing = ("my rows.csv", "--target", "model.py:blind", "--generated", "made.csv", *QUICK)
    assert call(monkeypatch, *passing, "--fail-above", "2", "--output", "page.html") == 0
    assert Path("page.html").is_file()
    assert call(monkeypatch, *passing, "--fail-above", "90", "--output", "page.html") == 3, (
        "it could not fail"
    )
    assert "gate failed" in capsys.readouterr().err


def test_a_report_of_another_model_is_not_replaced(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for target in ("losses", "losses", "blind"):
        words = ("my rows.csv", "--target", f"model.py:{target}", "--generated", "made.csv", *QUICK)
        assert call(monkeypatch, *words) == 0
    assert sorted(path.name for path in here.glob("*.html")) == ["my rows-audit-2.html", "my rows-audit.html"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "MEMBERS: name what .* the notebook panoramia_your_data shows a demonstration"),
        (["my rows.csv"], "--target: name what"),
        (["none.csv", "--target", "model.py:losses"], "none.csv: there is no such file"),
        (["my rows.csv", "--target", "model.py:loses"], "no function 'loses'; did you mean 'losses'"),
        (["my rows.csv", "--target", "model.py:losses", "--label", "lable"], "did you mean 'label'"),
        (["my rows.csv", "--target", "model.py:losses", "--repetitions", "0"], "'--repetitions'"),
        (["my rows.csv", "--target", "model.py:losses", "--delta", "1"], "delta: expected a number in"),
        (["my rows.csv", "--target", "model.py:losses", "--confidence", "1"], "confidence: expected"),
        (["my rows.csv", "--target", "model.py:losses", "--kind", "sound"], "'--kind'"),
        (["holes.csv", "--target", "model.py:losses"], r"'size' \(1\), 'word' \(2\)"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    holes = table()
    holes.loc[0, "size"], holes.loc[1:2, "word"] = None, None
    holes.to_csv("holes.csv", index=False)
    assert call(monkeypatch, *words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert re.search(message, said.err), said.err
    assert said.err.splitlines()[-1].startswith("paperlib: ")
    assert not list(here.glob("*.html"))


def test_its_help_has_examples_and_loads_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; import paperlib.cli.audit_data as one, paperlib.cli.audit_lm as two; "
        "assert 'paperlib audit-data rows.csv' in one.EPILOG and 'paperlib audit-lm' in two.EPILOG; "
        "sys.exit(bool({'numpy', 'pandas', 'torch', 'matplotlib'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=dict(os.environ)).returncode == 0
