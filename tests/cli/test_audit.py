"""``paperlib audit``: what it says, writes and refuses, its gate, and the page about gates."""

import io
import json
import os
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import yaml

from paperlib.bounds import audit_one_run
from paperlib.bounds.one_run.fair_coins import game_size
from paperlib.cli import gate, guard, seal
from paperlib.core import MembershipScores
from paperlib.io.files import file_sha256
from tests.cli.conftest import BOOK, blocks, in_order

SEEN = "this audit would have shown a leak in 80 % of cases"


@pytest.fixture
def audit(here, command):
    """The command in a folder with the losses of a leaky model."""
    leaky(0).to_csv("own.csv", index=False)
    return command.of("audit")


def leaky(seed, *, size=800, gap=2.0):
    rng = np.random.default_rng(seed)
    member = rng.integers(0, 2, size)
    return pd.DataFrame({"loss": rng.normal(0, 1, size) - gap * member, "member": member})


def block(report):
    page = report.read_text(encoding="utf-8")
    return json.loads(
        re.findall(r"id=[\"']audit-result[\"'][^>]*>(.*?)</script>", page, re.DOTALL)[0]
    )


def test_the_terminal_shows_answer_condition_and_numbers_in_this_order_on_one_screen(audit):
    code, out, err = audit("own.csv")
    table = pd.read_csv("own.csv")
    member = table["member"] == 1
    main = audit_one_run(
        MembershipScores.from_labels(table["loss"], member, higher_means_member=False)
    )
    assert (code, err, main.epsilon > 0.5, main.condition != "") == (0, "", True, True)
    in_order(
        out,
        "own.csv",
        "read as losses (lower values point to members)",
        f"{member.sum()} members",
        "is right in at least",
        main.headline,
        main.condition,
        main.claim,
        f"members been ranked above all other records and nothing else leaked, {SEEN}",
        "AUC 0.9",
        "TPR at 0.1 % FPR",
        "TPR at 1 % FPR",
        "optimal output set",
        "Epsilon*",
        "Next:",
        "Report: own-audit.html",
    )
    page = Path("own-audit.html").read_text(encoding="utf-8")
    sentences = (main.claim, main.condition, SEEN)
    for words in (file_sha256("own.csv"), "paperlib audit own.csv", *sentences):
        assert words in page
    assert len(out.splitlines()) <= 40, "more than one screen"
    table.groupby("member").head(300).to_csv("own.csv", index=False)
    out = audit("own.csv")[1]
    assert "game" in out.partition("Other audits")[0], "equal counts are a warning"
    assert "Report: own-audit-2.html (own-audit.html is the report of other data)" in out


def test_json_is_one_document_with_the_answer_at_the_top_and_the_fields_that_the_page_names(audit):
    content = audit.document("own.csv --delta 1e-5 --guess members --claimed-epsilon 0.1")
    main = content["audits"][0]["result"]
    assert content["schema_version"] == 2
    assert content["epsilon"] == main["epsilon"] > 0.1
    for name in ("claim", "condition", "assumptions", "delta"):
        assert content[name] == main[name]
    assert content["delta"] == 1e-5
    assert content["inputs"] == {"own.csv": file_sha256("own.csv")}
    assert content["verdict"]["refuted"] is True
    assert content["measures"]["auc"] > 0.9
    assert [path.name for path in Path().iterdir()] == ["own.csv"]
    Path("mine.html").write_text("old")
    printed = audit.document("own.csv --output mine.html")
    assert block(Path("mine.html")) == printed, "the report holds the very JSON"
    assert "refuted" not in " ".join(printed["verdict"]["sentences"])
    assert sorted(field for row in rows("tbl-audit-json") for field in row) == sorted(printed)


@pytest.mark.parametrize("words", ["own.csv --kind scores", "flipped.csv"])
def test_a_reversed_score_or_membership_is_named_everywhere_and_passes_no_gate(audit, words):
    table = leaky(0)
    table.assign(member=1 - table["member"]).to_csv("flipped.csv", index=False)
    code, out, err = audit.line(f"{words} --output report.html --junit audit.xml")
    assert (code, err, "ε ≥" in out) == (0, "", False)
    in_order(out, "\nNot an answer yet", "probably reversed")
    right = audit.document("own.csv --losses")
    page = Path("report.html").read_text(encoding="utf-8")
    assert "probably reversed" in page
    assert right["headline"].partition(" (")[0] not in page
    assert ElementTree.parse("audit.xml").find(".//skipped") is not None
    content = audit.document(f"{words} --fail-above 100", code=3)
    for texts in (content["warnings"], content["verdict"]["sentences"][:1]):
        assert any("probably reversed" in text for text in texts)
    assert content["epsilon"] is content["claim"] is None
    main, *others = content["audits"]
    assert main["result"] is not None
    assert [one["result"] for one in others] == [None] * len(others)
    assert len(others) == len(right["audits"]) - (2 if "scores" in words else 1)


def test_the_gate_decides_the_exit_code_and_speaks_on_stderr_alone(audit):
    for limit, code, said in (
        ("1", 3, "is above 1"),
        ("4.5", 0, "is not above"),
        ("50", 3, "show at most"),
    ):
        found, out, err = audit("own.csv", "--fail-above", limit, "--junit", "audit.xml", "--json")
        assert (found, err.count("\n"), said in err) == (code, 1, True)
        assert json.loads(out)["epsilon"] > 1
        case = ElementTree.parse("audit.xml").find(".//testcase")
        assert (case.find("failure") is not None) is (code == 3)


def test_standard_input_is_read(audit, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("own.csv").read_bytes())))
    code, out, _ = audit("-")
    assert (code, "Report: stdin-audit.html" in out) == (0, True)
    assert list(block(Path("stdin-audit.html"))["inputs"].values()) == [file_sha256("own.csv")]


@pytest.mark.parametrize("words", ["values.csv --score-column value", "in.npy out.npy"])
def test_a_name_that_does_not_tell_the_direction_asks_for_it(audit, words):
    leaky(0).rename(columns={"loss": "value"}).to_csv("values.csv", index=False)
    np.save("in.npy", np.arange(50.0))
    np.save("out.npy", np.arange(50.0) + 0.5)
    audit.refuses(words, "(--kind scores).*(--kind losses)")
    Path("deep").mkdir()
    code, out, _ = audit.line(f"{words} --kind losses --output deep/report.html")
    assert (code, "50 members, 50 non-members" in out) == (0, "npy" in words)
    assert Path("deep/report.html").is_file()


def test_facts_about_the_model_ids_and_groups_stand_in_the_report(audit):
    table = leaky(0)
    table["who"] = [f"patient-{at}" for at in range(len(table))]
    table["ward"] = np.where(np.arange(len(table)) % 2, "ward north", "ward south")
    table.to_csv("people.csv", index=False)
    Path("audit.yaml").write_text("model: A forest of 500 trees\nowner: The audit team\n")
    words = "people.csv --id-column who --group-column ward --about audit.yaml --claimed-epsilon 50"
    code, out, _ = audit.line(words)
    assert (code, "is not refuted" in out) == (0, True)
    page = Path("people-audit.html").read_text(encoding="utf-8")
    most = table[table["member"] == 1].sort_values("loss")["who"].iloc[0]
    for words in ("A forest of 500 trees", "ward north", "ward south", most):
        assert words in page


def test_a_wrong_option_or_file_is_one_line_and_exit_code_2(audit):
    Path("uneven.csv").write_text("score,member\n" + "0.5,1\n" * 900 + "0.5,0\n" * 100)
    Path("typo.yaml").write_text("modl: x\n")
    Path("deep").mkdir()
    audit.refuses("none.csv", "none.csv: there is no such file")
    audit.refuses("own.csv --delta=-0.1", "delta: expected a number in [0, 1), got -0.1")
    audit.refuses("own.csv --confidence high", "'--confidence'.*valid number")
    audit.refuses(
        "own.csv --confidence 1e-320", "confidence: expected a number in (1e-15, 1), got 1e-320"
    )
    audit.refuses("own.csv --seed -1", "'--seed'.*0")
    audit.refuses("own.csv --fail-above=-1", "--fail-above.*0 or more, got -1")
    audit.refuses("own.csv --claimed-epsilon inf", "--claimed-epsilon.*0 or more, got inf")
    audit.refuses("own.csv --guess none", "'--guess'")
    audit.refuses("own.csv --kind logits", "'--kind'")
    audit.refuses("own.csv --losses --kind scores", "--losses: contradicts")
    audit.refuses("own.csv --score-column los", "no column 'los'.*did you mean 'loss'")
    audit.refuses("own.csv --about none.yaml", "none.yaml")
    audit.refuses("own.csv --about typo.yaml", "did you mean 'model'")
    audit.refuses("own.csv --output deep/../own.csv", "--output: .* is the input")
    audit.refuses("own.csv --junit ./own.csv", "--junit: own.csv is the input")
    audit.refuses("own.csv --output x --junit ./x", "--junit: x is the input, or another output")
    audit.refuses("own.csv --wrong", "--wrong")
    audit.refuses("uneven.csv", "cannot come from fair coins")
    audit.refuses("", "Missing argument")


def test_coins_tossed_after_training_or_by_the_audit_bound_replacement(audit):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"score": rng.normal(size=1000), "member": rng.integers(0, 2, 1000)})
    frame.to_parquet("even.parquet")
    main = audit.document("even.parquet --design played")["audits"][0]["result"]
    assert (main["total"], "replacing one example" in main["claim"]) == (1000, True)
    assert "after training" in main["assumptions"][0]
    frame.assign(member=[1] * 900 + [0] * 100).to_parquet("uneven.parquet")
    main = audit.document("uneven.parquet --design game")["audits"][0]["result"]
    assert (main["total"], main["epsilon"]) == (game_size(100), 0)


def test_a_report_that_cannot_be_written_says_why(audit, monkeypatch):
    audit("own.csv")
    before = Path("own-audit.html").read_bytes()

    def refuse(*_):
        raise PermissionError(30, os.strerror(30))

    monkeypatch.setattr(os, "replace", refuse)
    code, _, err = audit("own.csv")
    assert (code, "cannot write own-audit.html: the disk is read-only" in err) == (2, True)
    assert Path("own-audit.html").read_bytes() == before


def rows(name):
    """First cells of a table of the page about gates, each as the names in it."""
    page = (BOOK / "gate.md").read_text(encoding="utf-8")
    table = page.partition(f":name: {name}")[2].partition("````")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")][2:]
    return [re.findall(r"[\w-]+", line.split("|")[1]) for line in lines]


def test_the_examples_of_the_page_run_its_test_can_fail_and_its_exit_codes_are_all(audit):
    names: dict[str, object] = {}
    (code,) = blocks("gate.md", "python")
    exec(code, names)
    check = names["test_the_model_is_not_shown_to_leak_more_than_the_limit"]
    check()
    names["LIMIT"] = 0.0
    with pytest.raises(AssertionError, match="differentially private"):
        check()
    known = (
        guard.INTERNAL_ERROR,
        guard.USAGE_ERROR,
        gate.FAILED_GATE,
        guard.INTERRUPTED,
        guard.BROKEN_PIPE,
        seal.OTHER_VERSION,
    )
    assert {int(code) for (code,) in rows("tbl-exit-codes")} == {0, *known}
    leaky(0, size=2000, gap=0.5).to_csv("scores.csv", index=False)
    for text in blocks("gate.md", "yaml"):
        (words,) = re.findall(r"paperlib audit ([^\"]*)", json.dumps(yaml.safe_load(text)))
        assert audit.line(words)[0] == 0
        assert Path("audit.html").is_file()
        assert Path("audit.xml").is_file()
