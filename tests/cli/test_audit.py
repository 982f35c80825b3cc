"""``paperlib audit``: what it says, writes and refuses, and the exit code of its gate."""

import io
import json
import math
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pandas as pd
import pytest

from paperlib.bounds import audit_one_run
from paperlib.bounds.one_run.fair_coins import game_size
from paperlib.core import MembershipScores
from paperlib.io import OutputError, file_sha256
from paperlib.report import result_schema
from tests.cli.test_cli import _same_signals, call  # noqa: F401

Audit = Callable[..., tuple[int, str, str]]


@pytest.fixture
def audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Audit:
    """The command in a folder with the losses of a leaky model: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)
    leaky(0).to_csv("own.csv", index=False)

    def run(*words: str) -> tuple[int, str, str]:
        code = call(monkeypatch, "audit", *words)
        return code, *capsys.readouterr()

    return run


def leaky(seed: int, *, size: int = 800, gap: float = 2.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    member = rng.integers(0, 2, size)
    return pd.DataFrame({"loss": rng.normal(0, 1, size) - gap * member, "member": member})


def document(audit: Audit, *words: str, code: int = 0) -> dict[str, Any]:
    """The JSON of an audit, checked by the schema."""
    found, out, _ = audit(*words, "--json")
    assert found == code
    content = json.loads(out)
    jsonschema.validate(content, result_schema())
    return content


def block(report: Path) -> dict[str, Any]:
    page = report.read_text(encoding="utf-8")
    found = re.search(r"<script[^>]*id=[\"']audit-result[\"'][^>]*>(.*?)</script>", page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_the_terminal_shows_the_answer_its_condition_and_the_numbers_in_this_order(audit: Audit) -> None:
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
        "right up to", main.headline, main.condition, main.claim, "AUC 0.9", "TPR at 0.1 % FPR",
        "TPR at 1 % FPR", "optimal output set", "Epsilon*", "Next:", "Report: own-audit.html",
    ]  # fmt: skip
    assert main.condition
    positions = [out.find(words) for words in places]
    assert -1 not in positions, places[positions.index(-1)]
    assert positions == sorted(positions)
    page = Path("own-audit.html").read_text(encoding="utf-8")
    for words in (file_sha256("own.csv"), "paperlib audit own.csv", main.claim, main.condition):
        assert words in page


def test_the_output_fits_one_screen_of_lines(audit: Audit) -> None:
    _, out, _ = audit("own.csv")
    assert len(out.splitlines()) <= 40


def test_json_is_one_document_with_the_answer_at_the_top(audit: Audit) -> None:
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


def test_the_report_holds_the_very_json(audit: Audit) -> None:
    printed = document(audit, "own.csv", "--output", "report.html")
    held = block(Path("report.html"))
    assert held == printed


def test_losses_read_as_scores_are_another_audit(audit: Audit) -> None:
    losses = document(audit, "own.csv", "--losses")
    scores = document(audit, "own.csv", "--kind", "scores")
    assert losses["epsilon"] > 0.5
    assert scores["epsilon"] is scores["claim"] is None
    assert [one["result"] is None for one in scores["audits"]] == [False, True]
    assert len(scores["audits"]) == len(losses["audits"]) - 1


@pytest.mark.parametrize("words", [["own.csv", "--kind", "scores"], ["flipped.csv"]])
def test_a_reversed_score_or_membership_is_named_everywhere(audit: Audit, words: list[str]) -> None:
    table = leaky(0)
    table.assign(member=1 - table["member"]).to_csv("flipped.csv", index=False)
    code, out, _ = audit(*words, "--output", "report.html", "--junit", "audit.xml")
    assert code == 0
    assert "\nNot an answer yet" in out
    assert "probably reversed" in out
    assert "ε ≥" not in out
    right = document(audit, "own.csv")["headline"].partition(" (")[0]
    page = Path("report.html").read_text(encoding="utf-8")
    assert "probably reversed" in page
    assert right not in page
    content = document(audit, *words)
    assert any("probably reversed" in text for text in content["warnings"])
    assert "probably reversed" in content["verdict"]["sentences"][0]
    assert ElementTree.parse("audit.xml").find(".//skipped") is not None


def test_equal_scores_are_an_audit_that_shows_nothing(audit: Audit) -> None:
    leaky(0).assign(loss=0.5).to_csv("tied.csv", index=False)
    assert document(audit, "tied.csv")["epsilon"] == 0
    assert "AUC 0.5000" in audit("tied.csv")[1]


@pytest.mark.parametrize("limit", ["0", "3", "100"])
def test_a_gate_does_not_pass_a_reversed_audit(audit: Audit, limit: str) -> None:
    code, _, err = audit("own.csv", "--kind", "scores", "--fail-above", limit)
    assert code == 3
    assert err == "gate failed: the audit gives no answer; see its warnings\n"


@pytest.mark.parametrize(
    ("limit", "code", "said"),
    [
        ("0", 3, "is above 0"),
        ("1", 3, "is above 1"),
        ("4.5", 0, "is not above 4.5"),
        ("50", 3, "can show at most"),
    ],
)
def test_the_gate_decides_the_exit_code(audit: Audit, limit: str, code: int, said: str) -> None:
    found, out, err = audit("own.csv", "--fail-above", limit, "--junit", "audit.xml")
    assert (found, err.count("\n")) == (code, 1)
    assert said in err
    assert "ε ≥" in out
    case = ElementTree.parse("audit.xml").find(".//testcase")
    assert case is not None
    assert (case.find("failure") is not None) is (code == 3)
    assert Path("own-audit.html").is_file()


def test_with_json_the_gate_speaks_on_stderr_alone(audit: Audit) -> None:
    document(audit, "own.csv", "--fail-above", "0", code=3)


def test_two_files_of_one_name_keep_two_reports(audit: Audit) -> None:
    for seed in (1, 2):
        Path(f"model{seed}").mkdir()
        leaky(seed).to_csv(f"model{seed}/own.csv", index=False)
    first, second = (audit(f"model{seed}/own.csv")[1] for seed in (1, 2))
    assert first.splitlines()[-1] == "Report: own-audit.html"
    assert "Report: own-audit-2.html (own-audit.html is the report of other data)" in second
    assert "Report: own-audit.html" in audit("model1/own.csv", "--delta", "1e-5")[1]
    assert "Report: own-audit-2.html" in audit("model2/own.csv")[1]
    assert {path.name for path in Path().glob("*.html")} == {"own-audit.html", "own-audit-2.html"}
    assert block(Path("own-audit.html"))["delta"] == 1e-5


def test_versions_in_a_name_keep_their_own_reports(audit: Audit) -> None:
    for version in ("v2", "v3"):
        Path("own.csv").rename(f"my.model.{version}.csv")
        assert f"Report: my.model.{version}-audit.html" in audit(f"my.model.{version}.csv")[1]
        Path(f"my.model.{version}.csv").rename("own.csv")


def test_an_explicit_output_is_written_as_asked(audit: Audit) -> None:
    Path("mine.html").write_text("old")
    assert "Report: mine.html\n" in audit("own.csv", "--output", "mine.html")[1]
    assert block(Path("mine.html"))["inputs"] == {"own.csv": file_sha256("own.csv")}


def test_standard_input_is_read(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    data = Path("own.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    code, out, _ = audit("-")
    assert code == 0
    assert "Report: stdin-audit.html" in out
    assert list(block(Path("stdin-audit.html"))["inputs"].values()) == [file_sha256("own.csv")]


@pytest.mark.parametrize("words", [["values.csv"], ["in.npy", "out.npy"]])
def test_a_name_that_does_not_tell_the_direction_asks_for_it(audit: Audit, words: list[str]) -> None:
    leaky(0).rename(columns={"loss": "value"}).to_csv("values.csv", index=False)
    np.save("in.npy", np.arange(50.0))
    np.save("out.npy", np.arange(50.0) + 0.5)
    extra = ["--score-column", "value"] if words == ["values.csv"] else []
    code, out, err = audit(*words, *extra)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--kind losses" in err
    assert "--kind scores" in err
    assert audit(*words, *extra, "--kind", "losses")[0] == 0


@pytest.mark.parametrize("name", ["nll", "cross_entropy", "perplexity"])
def test_usual_names_of_losses_are_read_as_losses(audit: Audit, name: str) -> None:
    leaky(0).rename(columns={"loss": name, "member": "is_train"}).to_csv("named.csv", index=False)
    assert document(audit, "named.csv")["epsilon"] == document(audit, "own.csv")["epsilon"]


def test_equal_counts_name_the_game(audit: Audit) -> None:
    table = leaky(0, size=2000).groupby("member").head(400)
    table.to_csv("split.csv", index=False)
    _, out, _ = audit("split.csv")
    assert "400 members, 400 non-members" in out
    assert "game" in out.partition("Other audits")[0]


def test_a_result_of_zero_says_what_it_could_have_shown(audit: Audit) -> None:
    leaky(0, size=40, gap=0.0).to_csv("noise.csv", index=False)
    content = document(audit, "noise.csv")
    ceiling = content["audits"][0]["result"]["ceiling"]
    _, out, _ = audit("noise.csv")
    assert content["epsilon"] == 0
    assert 0 < ceiling < 10
    assert f"{math.ceil(1000 * ceiling) / 1000:.3f}" in out.partition("AUC")[0]


def test_a_claimed_epsilon_is_judged(audit: Audit) -> None:
    assert "refuted" not in audit("own.csv")[1]
    assert re.search(r"claimed epsilon.*is refuted", audit("own.csv", "--claimed-epsilon", "0.5")[1])
    assert re.search(r"claimed epsilon.*is not refuted", audit("own.csv", "--claimed-epsilon", "50")[1])


def test_facts_about_the_model_stand_in_the_report(audit: Audit) -> None:
    Path("audit.yaml").write_text("model: A forest of 500 trees\nowner: The audit team\n")
    audit("own.csv")
    assert "500 trees" not in Path("own-audit.html").read_text(encoding="utf-8")
    audit("own.csv", "--about", "audit.yaml")
    assert "A forest of 500 trees" in Path("own-audit.html").read_text(encoding="utf-8")
    Path("audit.yaml").write_text("modl: x\n")
    code, _, err = audit("own.csv", "--about", "audit.yaml")
    assert (code, err.count("\n")) == (2, 1)
    assert "did you mean 'model'" in err


def test_ids_and_groups_reach_the_report(audit: Audit) -> None:
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
        (["own.csv", "--confidence", "1"], r"confidence: expected a number in \(0, 1\)"),
        (["own.csv", "--confidence", "nan"], "confidence: expected"),
        (["own.csv", "--confidence", "high"], "'--confidence'.*valid number"),
        (["own.csv", "--kind", "logits"], "'--kind'"),
        (["own.csv", "--losses", "--kind", "scores"], "--losses: contradicts"),
        (["own.csv", "--guess", "none"], "'--guess'"),
        (["own.csv", "--score-column", "los"], "no column 'los'.*did you mean 'loss'"),
        (["own.csv", "--id-column", "who"], "no column 'who'"),
        (["own.csv", "--fail-above=-1"], "--fail-above.*0 or more, got -1"),
        (["own.csv", "--fail-above", "nan"], "--fail-above.*0 or more, got nan"),
        (["own.csv", "--claimed-epsilon", "inf"], "--claimed-epsilon.*0 or more, got inf"),
        (["own.csv", "--about", "none.yaml"], "none.yaml"),
        (["own.csv", "--output", "../{folder}/own.csv"], "--output: .* is the input"),
        (["own.csv", "--junit", "./own.csv"], "--junit: own.csv is the input"),
        (["own.csv", "--wrong"], "--wrong"),
        ([], "Missing argument"),
    ],
)
def test_a_wrong_option_is_one_line_and_exit_code_2(audit: Audit, words: list[str], message: str) -> None:
    code, out, err = audit(*(word.format(folder=Path.cwd().name) for word in words))
    assert (code, out) == (2, "")
    assert err.startswith("paperlib: ")
    assert err.count("\n") == 1
    assert re.search(message, err), err
    assert [path.name for path in Path().iterdir()] == ["own.csv"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["nan,1", "1,0"], "1 missing value (first in row 1)"),
        (["inf,1", "1,0"], "infinite"),
        (["1,1", "2,1"], "both classes are needed"),
        (["one,1", "2,0"], "'one'"),
        ([], "there are no rows"),
        (["0.5,1"] * 900 + ["0.5,0"] * 100, "cannot come from fair coins"),
    ],
)
def test_a_file_that_cannot_be_audited_is_one_line_and_exit_code_2(
    audit: Audit, rows: list[str], message: str
) -> None:
    Path("a.csv").write_text("\n".join(["score,member", *rows]) + "\n")
    code, _, err = audit("a.csv")
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
    assert not Path("a-audit.html").exists()


def test_coins_tossed_after_training_bound_replacement(audit: Audit) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"score": rng.normal(size=1000), "member": rng.integers(0, 2, 1000)})
    frame.to_parquet("a.parquet")
    main = document(audit, "a.parquet", "--design", "played")["audits"][0]["result"]
    assert main["total"] == 1000
    assert "replacing one example" in main["claim"]
    assert "after training" in main["assumptions"][0]


def test_unbalanced_classes_can_be_audited_as_a_game(audit: Audit) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"score": rng.normal(size=1000), "member": [1] * 900 + [0] * 100})
    frame.to_parquet("a.parquet")
    main = document(audit, "a.parquet", "--design", "game")["audits"][0]["result"]
    assert main["total"] == game_size(100)
    assert main["epsilon"] == 0


def test_two_files_are_members_and_nonmembers(audit: Audit) -> None:
    np.save("in.npy", np.arange(50.0) + 100)
    np.save("out.npy", np.arange(50.0))
    code, out, _ = audit("in.npy", "out.npy", "--kind", "scores", "--output", "deep/report.html")
    assert code == 0
    assert "50 members, 50 non-members" in out
    assert Path("deep/report.html").is_file()


def test_a_report_that_cannot_be_written_says_why(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    audit("own.csv")
    before = Path("own-audit.html").read_bytes()

    def refuse(*_: object) -> None:
        raise PermissionError(30, os.strerror(30))

    monkeypatch.setattr(os, "replace", refuse)
    code, _, err = audit("own.csv")
    assert code == 2
    assert "cannot write own-audit.html: the disk is read-only" in err
    assert Path("own-audit.html").read_bytes() == before
    assert issubclass(OutputError, OSError)
