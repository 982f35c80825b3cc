"""``paperlib seal`` and ``paperlib audit --plan``: what was planned is done, a line for each
difference.
"""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paperlib.audits import audit, audit_features, audit_losses, audit_scores, seal_plan
from paperlib.audits.planned.sealed_plan import SealedPlan
from paperlib.core import toss_coins
from paperlib.reading.sealed import write_sealed
from paperlib.words.coins import plan_assumption, seed_warnings
from tests.refusals import refused

COINS = toss_coins([f"r{at}" for at in range(400)], seed=3)
PLAN = {
    "coins": COINS.commitment,
    "score": "loss",
    "direction": "lower",
    "delta": "1e-5",
    "confidence": "0.9",
    "limit": "1",
    "claimed_epsilon": "2",
    "mechanism": "DP-SGD, clipping 1: noise 0.8",
}
AUDIT = "audit scores.csv --coins train.coins.json --plan plan.sealed.json"


def write_plan(path: str = "plan.yaml", **changes: str) -> None:
    Path(path).write_text("".join(f"{key}: '{value}'\n" for key, value in (PLAN | changes).items()))


@pytest.fixture
def planned(here, command):
    """Coins, losses that show the membership, and a sealed plan."""
    COINS.save("train.coins.json")
    write_plan()
    assert command("seal", "plan.yaml")[0] == 0
    losses = np.random.default_rng(0).normal(0, 1, 400) - 3 * COINS.included
    frame = pd.DataFrame({"id": COINS.ids, "loss": losses, "other": losses})
    frame.sample(frac=1, random_state=0).to_csv("scores.csv", index=False)
    return frame


def test_an_audit_runs_as_planned_and_names_the_plan(planned, command):
    plan = SealedPlan.load("plan.sealed.json")
    content = command.document(f"{AUDIT} --delta 1e-5 --losses --output page.html", code=3)
    scores = COINS.scores(planned[["id", "loss"]], kind="losses")
    result = audit_scores(scores, delta=1e-5, confidence=0.9, coins=COINS, plan=plan).headline
    assert (content["delta"], content["confidence"], content["claimed_epsilon"]) == (1e-5, 0.9, 2)
    assert content["epsilon"] == result.epsilon > 1
    assert content["plan"] == plan.to_dict()
    assert set(content["inputs"]) == {"scores.csv", "train.coins.json", "plan.sealed.json"}
    for place in (
        content["provenance"]["Plan"],
        str(content["assumptions"]),
        Path("page.html").read_text(),
    ):
        assert f"the plan sealed on {plan.sealed}, SHA-256 {plan.hash}" in place
    _, out, error = command.line(AUDIT)
    assert (plan.hash in out, "is above 1" in error) == (True, True)
    code, out, error = command("verify", "page.html")
    assert (code, "as printed. It follows" in out, "is above 1" in error) == (3, True, True)


@pytest.mark.parametrize(
    ("slope", "reason"), [(3, "AUC 0.3"), (0, "All scores are 0, so they say nothing")]
)
def test_no_answer_is_verified_as_none(planned, command, slope, reason):
    planned.assign(loss=slope * COINS.included + np.arange(400) * slope / 100).to_csv(
        "scores.csv", index=False
    )
    assert command.line(f"{AUDIT} --output page.html")[0] == 3
    published = SealedPlan.load("plan.sealed.json").hash, COINS.commitment
    code, out, error = command(
        "verify", "page.html", "--plan", published[0], "--coins", published[1]
    )
    assert (code, "ε ≥" in out, "perfect privacy" in out) == (3, False, False)
    assert error == "gate failed: the audit gives no answer; see its warnings\n"
    assert out.startswith(f"Not an answer yet. {reason}")
    assert "as printed: no answer." in out
    assert re.findall("Warning: .*", out) == [f"Warning: {seed_warnings(COINS)[0]}"]


def test_python_follows_a_plan_as_the_command_does(planned):
    plan = SealedPlan.load("plan.sealed.json")
    by_file = audit("scores.csv", coins=COINS, plan=plan)
    by_id = audit_losses(
        dict(zip(planned["id"], planned["loss"], strict=True)), coins=COINS, plan=plan
    )
    assert by_file.headline.epsilon == by_id.headline.epsilon
    assert by_id.headline.delta == by_id.plan.delta == 1e-5
    assert by_id.document().claimed_epsilon == 2
    scores = COINS.scores(planned[["id", "loss"]], kind="losses")
    assert audit(scores, coins=COINS, plan=plan).headline.epsilon == by_id.headline.epsilon
    with pytest.raises(
        ValueError, match=r"\n  delta: planned 1e-05, given 0\n  confidence: planned 0.9"
    ):
        audit_scores(scores, coins=COINS, plan=plan)
    with pytest.raises(ValueError, match=r"\n  kind: planned losses, given scores"):
        audit("scores.csv", kind="scores", coins=COINS, plan=plan)
    refused("plan: it names coins", audit_scores, scores, delta=1e-5, confidence=0.9, plan=plan)


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ("--delta 0", ["--delta: planned 1e-05, given 0"]),
        ("--confidence 0.95", ["--confidence: planned 0.9, given 0.95"]),
        (
            "--guess members --design game",
            [
                "--guess: planned adaptive, given members",
                "--design: planned randomized, given game",
            ],
        ),
        ("--kind scores", ["--kind: planned losses, given scores"]),
        ("--score-column other", ["--score-column: planned loss, given other"]),
        (
            "--fail-above 3 --claimed-epsilon 9",
            ["--claimed-epsilon: planned 2, given 9", "--fail-above: planned 1, given 3"],
        ),
    ],
)
def test_each_difference_from_the_plan_is_a_line(planned, command, options, lines):
    code, out, error = command.line(f"{AUDIT} {options}")
    assert (code, out) == (2, "")
    assert sorted(error.splitlines()[1:]) == sorted(f"  {line}" for line in lines)
    assert not list(Path().glob("*.html"))


def test_other_coins_files_and_units_are_refused(planned, command):
    toss_coins(COINS.ids, seed=4).save("other.json")
    for name, changes in {
        "unit": {"unit": "user"},
        "file": {"scores": "late.csv", "confidence": ""},
    }.items():
        write_plan(f"{name}.yaml", **changes)
        assert command("seal", f"{name}.yaml")[0] == 0
    text = Path("plan.sealed.json").read_text()
    Path("edited.json").write_text(text.replace('"limit": 1.0', '"limit": 9.0'))
    for coins, plan, message in (
        ("other", "plan.sealed.json", f"it names the coins {COINS.commitment}, and"),
        ("train.coins", "edited.json", "edited.json: was changed after it was sealed"),
        ("train.coins", "plan.yaml", "plan.yaml: is no sealed plan file"),
        ("train.coins", "unit.sealed.json", "its unit is 'user', and what has a coin"),
        ("train.coins", "file.sealed.json", "FILE: planned late.csv, given scores.csv"),
        ("train.coins", "none.json", "none.json: no such file"),
        ("", "plan.sealed.json", "plan: it names coins; give their file"),
    ):
        words = f"audit scores.csv --plan {plan}" + (f" --coins {coins}.json" if coins else "")
        code, out, error = command.line(words)
        assert (code, out, message in error) == (2, "", True), error
    words = "audit scores.csv --coins train.coins.json --score-column loss"
    assert command.line(words)[0] == 0, "without a plan the same audit is one"


def test_a_plan_is_sealed_once_and_before_there_are_scores(planned, command):
    before = Path("plan.sealed.json").read_bytes()
    code, _, error = command("seal", "plan.yaml")
    assert (code, error.count("\n"), SealedPlan.load("plan.sealed.json").hash in error) == (
        2,
        1,
        True,
    )
    write_plan(confidence="0.99", notes="new")
    code, _, error = command("seal", "plan.yaml")
    assert (code, error.splitlines()[1:]) == (
        2,
        ["  confidence: 0.9 is sealed, 0.99 is new", "  notes: none is sealed, new is new"],
    )
    assert Path("plan.sealed.json").read_bytes() == before
    write_plan("late.yaml", scores="scores.csv")
    assert (
        "scores.csv exists; a plan is sealed before there are scores"
        in command("seal", "late.yaml")[2]
    )
    assert not Path("late.sealed.json").exists()


def test_each_mistake_of_a_plan_is_a_line(here, command):
    wrong = {
        "coins": "ab",
        "guess": "grid",
        "design": "game",
        "adjacency": "replacement",
        "confidence": "95",
        "limit": "-1",
        "delta": "small",
        "scores": "a/b.csv",
        "notes": "x" * 3000,
        "epsilon": "1",
        "directoin": "lower",
    }
    Path("plan.yaml").write_text("".join(f"{key}: {value}\n" for key, value in wrong.items()))
    code, out, error = command("seal", "plan.yaml")
    assert (code, out) == (2, "")
    names = re.findall(r"^  (\w+): ", error, re.MULTILINE)
    assert sorted(names) == sorted([*wrong, "score", "direction"])
    assert "did you mean 'direction'?" in error
    assert len(error.splitlines()) == len(names) + 1
    assert not Path("plan.sealed.json").exists()
    with pytest.raises(ValueError, match="expected text, got 3"):
        seal_plan(PLAN | {"score": 3})


def test_the_hash_is_of_every_field_and_tells_nothing_of_the_plan(tmp_path):
    one, two = seal_plan(PLAN), seal_plan(PLAN)
    assert one.hash != two.hash  # whoever guesses the plan does not know the salt
    one.save(tmp_path / "plan.json")
    assert SealedPlan.load(tmp_path / "plan.json") == one
    assert SealedPlan.load(tmp_path / "plan.json").hash == one.hash
    content = json.loads((tmp_path / "plan.json").read_text())
    for name in set(content) - {"hash", "format", "version"}:
        (tmp_path / "changed.json").write_text(json.dumps(content | {name: "other"}))
        refused("was changed after it was sealed", SealedPlan.load, tmp_path / "changed.json")
    write_sealed(
        tmp_path / "by_hand.json", {k: v for k, v in content.items() if k not in ("hash", "notes")}
    )
    refused("is not as `paperlib seal` writes it", SealedPlan.load, tmp_path / "by_hand.json")


def test_an_audit_of_features_follows_a_plan():
    coins = toss_coins(300, seed=3)
    early = np.random.default_rng(0).normal(coins.included)
    frame = pd.DataFrame({"id": coins.ids, "late": early + 3 * coins.included, "early": early})
    higher = {"coins": coins.commitment, "score": "late, early", "direction": "higher"}
    plan = seal_plan(higher)
    result = audit_features(frame, coins, plan=plan)
    assert result.epsilon == audit_features(frame, coins).epsilon > 1
    assert result.assumptions[-1] == plan_assumption(plan)
    lower = seal_plan(higher | {"direction": "lower"})
    members = seal_plan(higher | {"guess": "members"})
    curve = seal_plan(higher | {"claimed": "gaussian(mu=0.4)"})
    given = {"delta": 1e-5, "confidence": 0.9}
    for features, options, message in (
        (frame, given, "delta: planned 0, given 1e-05\n  confidence: planned 0.95"),
        (frame[["id", "early"]], {}, "score_column: planned late, early, given early"),
        (frame, {"seed": 1}, "plan: it settles neither a seed nor a model"),
        (frame, {"plan": lower}, "kind: planned losses"),
        (frame, {"plan": members}, "guess: "),
        (frame, {"plan": curve, "claimed": "gaussian(mu=0.5)"}, "claimed: planned gaussian"),
        (frame, {"claimed": "gaussian(mu=0.5)"}, "claimed: planned none"),
    ):
        with pytest.raises(ValueError, match=message):
            audit_features(features, coins, **{"plan": plan, **options})
    tested = audit_features(frame, coins, plan=curve)
    assert tested.epsilon == result.epsilon
    assert tested.claim_test.refuted
    assert tested.claim_test.plan == curve.hash
    assert tested.claim_test.p_value < 1e-3
    assert json.loads(json.dumps(tested.to_dict()))["claim_test"]["refuted"]
    assert result.claim_test is None
    with pytest.raises(ValueError, match="plan: it names coins; give their file"):
        audit_features(frame[["late", "early"]], coins.included, plan=plan)


def few(command, **changes: str) -> None:
    """A plan for these coins whose limit the audit passes."""
    Path("plan.sealed.json").unlink()
    write_plan(**{"limit": "4.5", "claimed_epsilon": "", **changes})
    assert command("seal", "plan.yaml")[0] == 0


def test_verify_says_which_version_wrote_a_page_and_has_an_exit_code_for_it(
    planned, command, monkeypatch
):
    few(command)
    with monkeypatch.context() as patched:
        patched.setattr("paperlib.audits.report_words.versions", lambda: "paperlib 9.9")
        assert command.line(f"{AUDIT} --output page.html")[0] == 0
    whole = Path("page.html").read_text(encoding="utf-8")
    Path("page.html").write_text(whole.replace("<h2>Verdict", "<h2>Private"), encoding="utf-8")
    code, out, error = command("verify", "page.html", "--output", "anew.html")
    assert (code, "as printed" in out, "gate passed" in error) == (4, False, True)
    assert "Not compared: the page was written by paperlib 9.9; here are paperlib " in out
    anew = Path("anew.html").read_text(encoding="utf-8")
    assert ("computed again" in anew, "Private" in anew) == (True, False)
    assert command("verify", "anew.html")[0] == 0


def test_a_page_that_differs_is_refused_with_its_places(planned, command):
    few(command)
    assert command.line(f"{AUDIT} --output page.html")[0] == 0
    whole = Path("page.html").read_text(encoding="utf-8")
    Path("page.html").write_text(whole.replace("<main>", "<main hidden>"), encoding="utf-8")
    code, out, error = command("verify", "page.html")
    assert (code, out) == (2, "")
    assert "page.html: is not the report of the planned audit:\n  at the top of the page: " in error
    assert "the page has “<main hidden>”, the report “<main>”" in error
    assert "\n  computed here from its plan, coins and scores: ε ≥ " in error


def test_texts_of_a_stranger_cannot_steer_the_terminal(planned, command):
    few(command)
    content = json.loads(Path("plan.sealed.json").read_text())
    del content["hash"]
    content["notes"] = "\x1b[2J\x1b[1;1Hepsilon = 0.001, gate passed\x1b[8m\u202e"
    Path("plan.sealed.json").unlink()
    write_sealed("plan.sealed.json", content)
    Path("about.yaml").write_text('owner: "\\e[8mnobody"\n')
    assert command.line(f"{AUDIT} --about about.yaml --output page.html")[0] == 0
    code, out, error = command("verify", "page.html")
    assert (code, "\x1b" in out + error, "\u202e" in out) == (0, False, False)
    assert "  notes: \\x1b[2J\\x1b[1;1Hepsilon = 0.001, gate passed\\x1b[8m\\u202e\n" in out
    assert "  owner: \\x1b[8mnobody\n" in out
