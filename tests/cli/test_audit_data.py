"""`paperlib audit-data`: a model, its training data from files, the answer on the terminal, and a report."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

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
QUICK = ("--generated", "made.csv", "--repetitions", "1", "--restarts", "1")


@pytest.fixture
def audit(tmp_path, monkeypatch, command):
    """The command in a folder with members, generated rows, real non-members and a model."""
    monkeypatch.chdir(tmp_path)
    for name, seed in (("my rows", 0), ("made", 5), ("real", 6)):
        table(seed=seed).to_csv(f"{name}.csv", index=False)
    Path("model.py").write_text(MODEL)
    return lambda *words: command("audit-data", *words)


def test_it_prints_the_answer_with_its_condition_and_writes_the_report(audit):
    code, out, _ = audit("my rows.csv", "--target", "model.py:losses", "--delta", "0.01", *QUICK)
    assert code == 0
    for text in (
        "ε~ = ",
        "a measurement",
        "null not checked",
        "δ = 0.01",
        "delta = 0.01",
        "Warning: without a label",
        "Report: my rows-audit.html",
    ):
        assert text in out
    page = Path("my rows-audit.html").read_text()
    assert "paperlib audit-data &#39;my rows.csv&#39;" in page
    assert "not a lower bound on epsilon" in page


def test_json_is_one_document_and_real_nonmembers_make_it_a_lower_bound(audit):
    real = ("--nonmembers", "real.csv", "--claimed-epsilon", "0.1", "--json", "--delta", "0.01")
    code, out, _ = audit("my rows.csv", "--target", "model.py:losses", *real, *QUICK)
    assert code == 0
    content = json.loads(out)
    assert content["epsilon"] == content["audits"][0]["result"]["epsilon"] > 0.3
    assert "replacing one example" in content["claim"]
    assert "coins tossed by this audit" in content["condition"]
    assert {one["result"]["delta"] for one in content["audits"]} == {0.01}
    assert content["verdict"]["refuted"] is True
    jsonschema.validate(content, result_schema())
    assert set(content["inputs"]) == {"my rows.csv", "model.py:losses", "made.csv", "real.csv", "target"}
    assert not list(Path().glob("*.html"))


def test_the_gate_judges_the_number_and_a_report_of_another_model_is_not_replaced(audit):
    """The last audit could not fail its gate, and so does not pass it."""
    for target, limit, code in (("losses", "0.2", 3), ("blind", "2", 0), ("blind", "90", 3)):
        words = ("my rows.csv", "--target", f"model.py:{target}", *QUICK, "--junit", "audit.xml")
        found, _, err = audit(*words, "--fail-above", limit)
        assert found == code
        assert ("gate failed" in err) is ("<failure" in Path("audit.xml").read_text()) is (code == 3)
    names = sorted(path.name for path in Path().glob("*.html"))
    assert names == ["my rows-audit-2.html", "my rows-audit.html"]


TARGET = ["my rows.csv", "--target", "model.py:losses"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "MEMBERS: name what .* the notebook panoramia_your_data shows a demonstration"),
        (["my rows.csv"], "--target: name what"),
        (["none.csv", "--target", "model.py:losses"], "none.csv: there is no such file"),
        (["my rows.csv", "--target", "model.py:loses"], "no function 'loses'; did you mean 'losses'"),
        ([*TARGET, "--label", "lable"], "did you mean 'label'"),
        ([*TARGET, "--repetitions", "0"], "'--repetitions'"),
        ([*TARGET, "--delta", "1"], "delta: expected a number in"),
        ([*TARGET, "--confidence", "1"], "confidence: expected"),
        ([*TARGET, "--kind", "sound"], "'--kind'"),
        (["holes.csv", "--target", "model.py:losses"], r"'size' \(1\), 'word' \(2\)"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(audit, words, message):
    holes = table()
    holes.loc[0, "size"], holes.loc[1:2, "word"] = None, None
    holes.to_csv("holes.csv", index=False)
    code, out, err = audit(*words)
    assert (code, out) == (2, "")
    assert re.search(message, err), err
    assert err.splitlines()[-1].startswith("paperlib: ")
    assert not list(Path().glob("*.html"))
