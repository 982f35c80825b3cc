"""``paperlib audit``: what it says, writes and refuses, and the exit code of its gate."""

import io
import json
import os
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pandas as pd
import pytest

from paperlib.bounds import audit_one_run
from paperlib.bounds.one_run.fair_coins import game_size
from paperlib.core import MembershipScores
from paperlib.io import file_sha256
from paperlib.report import result_schema


@pytest.fixture
def audit(tmp_path, monkeypatch, command):
    """The command in a folder with the losses of a leaky model: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)
    leaky(0).to_csv("own.csv", index=False)
    return lambda *words: command("audit", *words)


def leaky(seed, *, size=800, gap=2.0):
    rng = np.random.default_rng(seed)
    member = rng.integers(0, 2, size)
    return pd.DataFrame({"loss": rng.normal(0, 1, size) - gap * member, "member": member})


def document(audit, *words, code=0):
    """The JSON of an audit, checked by the schema."""
    found, out, _ = audit(*words, "--json")
    assert found == code
    content = json.loads(out)
    jsonschema.validate(content, result_schema())
    return content


def block(report):
    page = report.read_text(encoding="utf-8")
    found = re.search(r"<script[^>]*id=[\"']audit-result[\"'][^>]*>(.*?)</script>", page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_the_terminal_shows_answer_condition_and_numbers_in_this_order_on_one_screen(audit):
    code, out, err = audit("own.csv")
    table = pd.read_csv("own.csv")
    member = table["member"] == 1
    main = audit_one_run(
        MembershipScores(table.loc[member, "loss"], table.loc[~member, "loss"], higher_means_member=False)
    )
    assert (code, err) == (0, "")
    assert main.epsilon > 0.5
    places = [
        "own.csv", "read as losses (lower values point to members)", f"{member.sum()} members",
        "right in up to", main.headline, main.condition, main.claim, "AUC 0.9", "TPR at 0.1 % FPR",
        "TPR at 1 % FPR", "optimal output set", "Epsilon*", "Next:", "Report: own-audit.html",
    ]  # fmt: skip
    assert main.condition
    positions = [out.find(words) for words in places]
    assert -1 not in positions, places[positions.index(-1)]
    assert positions == sorted(positions)
    page = Path("own-audit.html").read_text(encoding="utf-8")
    for words in (file_sha256("own.csv"), "paperlib audit own.csv", main.claim, main.condition):
        assert words in page
    assert len(out.splitlines()) <= 40, "more than one screen"
    table.groupby("member").head(300).to_csv("split.csv", index=False)
    assert "game" in audit("split.csv")[1].partition("Other audits")[0], "equal counts are a warning"


def test_json_is_one_document_with_the_answer_at_the_top(audit):
    content = document(audit, "own.csv", "--delta", "1e-5", "--guess", "members", "--claimed-epsilon", "0.1")
    main = content["audits"][0]["result"]
    assert content["schema_version"] == 1
    assert content["epsilon"] == main["epsilon"] > 0.1
    assert (content["claim"], content["condition"]) == (main["claim"], main["condition"])
    assert content["assumptions"] == main["assumptions"]
    assert content["delta"] == main["delta"] == 1e-5
    assert content["inputs"] == {"own.csv": file_sha256("own.csv")}
    assert content["verdict"]["refuted"] is True
    assert content["measures"]["auc"] > 0.9
    assert [path.name for path in Path().iterdir()] == ["own.csv"]
    Path("mine.html").write_text("old")
    printed = document(audit, "own.csv", "--output", "mine.html")
    assert block(Path("mine.html")) == printed, "the report holds the very JSON"


@pytest.mark.parametrize("words", [["own.csv", "--kind", "scores"], ["flipped.csv"]])
def test_a_reversed_score_or_membership_is_named_everywhere_and_passes_no_gate(audit, words):
    table = leaky(0)
    table.assign(member=1 - table["member"]).to_csv("flipped.csv", index=False)
    code, out, err = audit(*words, "--output", "report.html", "--junit", "audit.xml")
    assert (code, err) == (0, "")
    assert "\nNot an answer yet" in out
    assert "probably reversed" in out
    assert "ε ≥" not in out
    right = document(audit, "own.csv", "--losses")
    page = Path("report.html").read_text(encoding="utf-8")
    assert "probably reversed" in page
    assert right["headline"].partition(" (")[0] not in page
    assert ElementTree.parse("audit.xml").find(".//skipped") is not None
    content = document(audit, *words, "--fail-above", "100", code=3)
    assert any("probably reversed" in text for text in content["warnings"])
    assert "probably reversed" in content["verdict"]["sentences"][0]
    assert content["epsilon"] is content["claim"] is None
    main, *others = content["audits"]
    assert main["result"] is not None
    assert [one["result"] for one in others] == [None] * len(others)
    assert len(others) == len(right["audits"]) - (2 if "scores" in words else 1)


def test_the_gate_decides_the_exit_code_and_speaks_on_stderr_alone(audit):
    for limit, code, said in (("1", 3, "is above 1"), ("4.5", 0, "is not above"), ("50", 3, "show at most")):
        found, out, err = audit("own.csv", "--fail-above", limit, "--junit", "audit.xml", "--json")
        assert (found, err.count("\n")) == (code, 1)
        assert said in err
        assert json.loads(out)["epsilon"] > 1
        case = ElementTree.parse("audit.xml").find(".//testcase")
        assert (case.find("failure") is not None) is (code == 3)


def test_two_files_of_one_name_keep_two_reports(audit):
    for seed in (1, 2):
        Path(f"model{seed}").mkdir()
        leaky(seed).to_csv(f"model{seed}/own.csv", index=False)
    assert audit("model1/own.csv")[1].splitlines()[-1] == "Report: own-audit.html"
    second = "Report: own-audit-2.html (own-audit.html is the report of other data)"
    assert second in audit("model2/own.csv")[1]
    assert "Report: own-audit.html" in audit("model1/own.csv", "--delta", "1e-5")[1]
    assert {path.name for path in Path().glob("*.html")} == {"own-audit.html", "own-audit-2.html"}
    assert block(Path("own-audit.html"))["delta"] == 1e-5


def test_standard_input_is_read(audit, monkeypatch):
    data = Path("own.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    code, out, _ = audit("-")
    assert code == 0
    assert "Report: stdin-audit.html" in out
    assert list(block(Path("stdin-audit.html"))["inputs"].values()) == [file_sha256("own.csv")]


@pytest.mark.parametrize("words", [["values.csv"], ["in.npy", "out.npy"]])
def test_a_name_that_does_not_tell_the_direction_asks_for_it(audit, words):
    leaky(0).rename(columns={"loss": "value"}).to_csv("values.csv", index=False)
    np.save("in.npy", np.arange(50.0))
    np.save("out.npy", np.arange(50.0) + 0.5)
    extra = ["--score-column", "value"] if words == ["values.csv"] else []
    code, out, err = audit(*words, *extra)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--kind losses" in err
    assert "--kind scores" in err
    code, out, _ = audit(*words, *extra, "--kind", "losses", "--output", "deep/report.html")
    assert code == 0
    assert ("50 members, 50 non-members" in out) is (len(words) == 2)
    assert Path("deep/report.html").is_file()


def test_a_claimed_epsilon_is_judged_and_facts_about_the_model_stand_in_the_report(audit):
    for words, said in (((), None), (("0.5",), r"is refuted"), (("50",), r"is not refuted")):
        options = ["--claimed-epsilon", *words] if words else []
        sentences = " ".join(document(audit, "own.csv", *options)["verdict"]["sentences"])
        assert re.search(rf"claimed epsilon.*{said}", sentences) if said else "refuted" not in sentences
    Path("audit.yaml").write_text("model: A forest of 500 trees\nowner: The audit team\n")
    audit("own.csv", "--about", "audit.yaml")
    assert "A forest of 500 trees" in Path("own-audit.html").read_text(encoding="utf-8")
    Path("audit.yaml").write_text("modl: x\n")
    code, _, err = audit("own.csv", "--about", "audit.yaml")
    assert (code, err.count("\n")) == (2, 1)
    assert "did you mean 'model'" in err


def test_ids_and_groups_reach_the_report(audit):
    table = leaky(0)
    table["who"] = [f"patient-{at}" for at in range(len(table))]
    table["ward"] = np.where(np.arange(len(table)) % 2, "ward north", "ward south")
    table.to_csv("people.csv", index=False)
    assert audit("people.csv", "--id-column", "who", "--group-column", "ward")[0] == 0
    page = Path("people-audit.html").read_text(encoding="utf-8")
    most = table[table["member"] == 1].sort_values("loss")["who"].iloc[0]
    for words in ("ward north", "ward south", most):
        assert words in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.csv"], "none.csv: there is no such file"),
        (["own.csv", "--delta", "1"], r"delta: expected a number in \[0, 1\), got 1"),
        (["own.csv", "--delta=-0.1"], "delta: expected"),
        (["own.csv", "--confidence", "nan"], "confidence: expected"),
        (["own.csv", "--fail-above", "nan"], "--fail-above.*0 or more, got nan"),
        (["own.csv", "--guess", "none"], "'--guess'"),
        (["own.csv", "--id-column", "who"], "no column 'who'"),
        (["own.csv", "--confidence", "1"], r"confidence: expected a number in \(0, 1\)"),
        (["own.csv", "--confidence", "high"], "'--confidence'.*valid number"),
        (["own.csv", "--kind", "logits"], "'--kind'"),
        (["own.csv", "--losses", "--kind", "scores"], "--losses: contradicts"),
        (["own.csv", "--score-column", "los"], "no column 'los'.*did you mean 'loss'"),
        (["own.csv", "--fail-above=-1"], "--fail-above.*0 or more, got -1"),
        (["own.csv", "--claimed-epsilon", "inf"], "--claimed-epsilon.*0 or more, got inf"),
        (["own.csv", "--about", "none.yaml"], "none.yaml"),
        (["own.csv", "--output", "../{folder}/own.csv"], "--output: .* is the input"),
        (["own.csv", "--junit", "./own.csv"], "--junit: own.csv is the input"),
        (["own.csv", "--wrong"], "--wrong"),
        (["bad.csv"], r"1 missing value \(first in row 1\)"),
        (["uneven.csv"], "cannot come from fair coins"),
        ([], "Missing argument"),
    ],
)
def test_a_wrong_option_or_file_is_one_line_and_exit_code_2(audit, words, message):
    for name, rows in {"bad": ["nan,1", "1,0"], "uneven": ["0.5,1"] * 900 + ["0.5,0"] * 100}.items():
        Path(f"{name}.csv").write_text("\n".join(["score,member", *rows]) + "\n")
    before = sorted(Path().iterdir())
    code, out, err = audit(*(word.format(folder=Path.cwd().name) for word in words))
    assert (code, out) == (2, "")
    assert err.startswith("paperlib: ")
    assert err.count("\n") == 1
    assert re.search(message, err), err
    assert sorted(Path().iterdir()) == before


def test_coins_tossed_after_training_or_by_the_audit_bound_replacement(audit):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"score": rng.normal(size=1000), "member": rng.integers(0, 2, 1000)})
    frame.to_parquet("even.parquet")
    main = document(audit, "even.parquet", "--design", "played")["audits"][0]["result"]
    assert main["total"] == 1000
    assert "replacing one example" in main["claim"]
    assert "after training" in main["assumptions"][0]
    frame.assign(member=[1] * 900 + [0] * 100).to_parquet("uneven.parquet")
    main = document(audit, "uneven.parquet", "--design", "game")["audits"][0]["result"]
    assert (main["total"], main["epsilon"]) == (game_size(100), 0)


def test_a_report_that_cannot_be_written_says_why(audit, monkeypatch):
    audit("own.csv")
    before = Path("own-audit.html").read_bytes()

    def refuse(*_):
        raise PermissionError(30, os.strerror(30))

    monkeypatch.setattr(os, "replace", refuse)
    code, _, err = audit("own.csv")
    assert code == 2
    assert "cannot write own-audit.html: the disk is read-only" in err
    assert Path("own-audit.html").read_bytes() == before
