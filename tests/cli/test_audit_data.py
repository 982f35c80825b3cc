"""`paperlib audit-data`: a model, its training data from files, the answer on the terminal, and a
report.
"""

from pathlib import Path

import pytest

from tests.audits.samples import table

MODEL = """import pandas as pd
KNOWN = set(map(tuple, pd.read_csv("my rows.csv").to_numpy()))
def losses(rows):
    return [-(tuple(row) in KNOWN) - 0.1 * row[0] for row in rows.to_numpy()]
def blind(rows):
    return -0.1 * rows["size"]
"""
QUICK = "--generated made.csv --repetitions 1 --restarts 1"
TARGET = "'my rows.csv' --target model.py:losses"


@pytest.fixture
def audit(here, command):
    """The command in a folder with members, generated rows, real non-members and a model."""
    for name, seed in (("my rows", 0), ("made", 5), ("real", 6)):
        table(seed=seed).to_csv(f"{name}.csv", index=False)
    Path("model.py").write_text(MODEL)
    return command.of("audit-data")


def test_the_answer_its_condition_the_gate_and_a_report_that_keeps_those_of_other_models(audit):
    """The last audit could not fail its gate, and so does not pass it."""
    for target, limit, code in (
        ("losses", "0.2 --delta 0.01", 3),
        ("blind", "2", 0),
        ("blind", "90", 3),
    ):
        words = (
            f"'my rows.csv' --target model.py:{target} {QUICK} --junit audit.xml --fail-above "
            f"{limit}"
        )
        found, out, err = audit.line(words)
        assert found == code
        assert (
            ("gate failed" in err) is ("<failure" in Path("audit.xml").read_text()) is (code == 3)
        )
        for text in ("ε~ = ", "a measurement", "null not checked", "Warning: without a label"):
            assert text in out
        assert ("δ = 0.01" in out and "delta = 0.01" in out) is ("delta" in limit)
    names = sorted(path.name for path in Path().glob("*.html"))
    assert names == ["my rows-audit-2.html", "my rows-audit.html"]
    page = Path("my rows-audit.html").read_text()
    assert "paperlib audit-data &#39;my rows.csv&#39;" in page
    assert "not a lower bound on epsilon" in page
    for heading in ("What the model adds", "AUC of the baseline"):
        assert heading in page


def test_json_is_one_document_and_real_nonmembers_make_it_a_lower_bound(audit):
    content = audit.document(
        f"{TARGET} --nonmembers real.csv --claimed-epsilon 0.1 --delta 0.01 {QUICK}"
    )
    assert content["epsilon"] == content["audits"][0]["result"]["epsilon"] > 0.3
    assert "replacing one example" in content["claim"]
    assert "coins tossed by this audit" in content["condition"]
    assert {one["result"]["delta"] for one in content["audits"]} == {0.01}
    assert content["verdict"]["refuted"] is True
    gain = content["auc_gain"]
    assert gain["attack"] == pytest.approx(content["measures"]["auc"])
    assert 0 < gain["low"] < gain["attack"] - gain["baseline"] < gain["high"]
    assert set(content["inputs"]) == {
        "my rows.csv",
        "model.py:losses",
        "made.csv",
        "real.csv",
        "target",
    }
    assert not list(Path().glob("*.html"))


def test_a_mistake_is_one_line_and_exit_code_2(audit):
    audit.refuses("", "Missing argument 'MEMBERS'")
    audit.refuses("'my rows.csv'", "Missing option '--target'")
    assert "notebook panoramia_your_data" in " ".join(audit("-h")[1].split())
    audit.refuses("none.csv --target model.py:losses", "none.csv: there is no such file")
    audit.refuses(f"{TARGET} --label lable", "did you mean 'label'")
    audit.refuses(f"{TARGET} --repetitions 0", "'--repetitions'")
    audit.refuses(f"{TARGET} --kind sound", "'--kind'")


def test_a_column_of_units_of_real_nonmembers_is_refused(audit):
    """Once rows of customers with a coin each passed for rows with a coin each."""
    for first, name in ((0, "my rows"), (9_000, "made"), (500, "real")):
        rows = table(seed=first)
        rows["kennung"] = [(first + at // 3) * 7919 % 99991 for at in range(len(rows))]
        rows.to_csv(f"{name}.csv", index=False)
    words = f"{TARGET} --nonmembers real.csv {QUICK}"
    audit.refuses(words, "column 'kennung' names units: .* say --unit kennung .*--group-column")
    audit.refuses(f"{words} --group-column nobody", "group column: expected one of the columns")
