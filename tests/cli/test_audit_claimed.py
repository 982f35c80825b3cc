"""``paperlib audit --claimed``: the outcome, its JSON and its page, and what is refused."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paperlib.audits import seal_plan
from paperlib.audits.claimed import claimed_curve
from paperlib.audits.planned.sealed_plan import SealedPlan
from paperlib.bounds.claims.curves import gaussian_profile
from paperlib.bounds.claims.runs import audit_curve_of_runs
from paperlib.core import MembershipScores, toss_coins
from tests.cli.conftest import Command

TITLE = "The claimed trade-off curve"


@pytest.fixture
def audit(here: Path, command: Command) -> Command:
    """The command in a folder with the scores of a Gaussian leak of mu = 1."""
    rng = np.random.default_rng(0)
    member = rng.random(600) < 0.5
    scores = member + rng.standard_normal(600)
    pd.DataFrame({"score": scores, "member": member.astype(int)}).to_csv("own.csv", index=False)
    Path("curve.csv").write_text("epsilon,delta\n0,0.05\n1,1e-5\n")
    return command.of("audit")


def test_a_claim_is_refuted_or_not_beside_the_main_number(audit):
    _, out, _ = audit("own.csv", "--claimed", "gaussian(sigma=10)")
    assert re.search(rf"{TITLE} \(test\): gaussian\(sigma=10\): refuted \(p ≤ [\d.e-]+,", out)
    assert TITLE in Path("own-audit.html").read_text(encoding="utf-8")
    assert re.search(r"\n    With a noise [\d.]+ times smaller than claimed", out)
    _, out, _ = audit("own.csv", "--claimed", "gaussian(sigma=1)")
    assert "gaussian(sigma=1): not refuted (p ≤ " in out


def test_a_table_is_a_claim_and_an_input(audit):
    content = audit.document("own.csv --claimed-curve curve.csv")
    (tested,) = (entry for entry in content["audits"] if entry["kind"] == "test")
    assert (tested["title"], tested["result"]["claimed"]) == (TITLE, "curve.csv")
    assert (tested["result"]["refuted"], tested["result"]["epsilon"]) == (True, None)
    assert tested["result"]["p_value"] <= 0.05
    assert "curve.csv" in content["inputs"]
    plain = audit.document("own.csv")
    assert [entry["kind"] for entry in plain["audits"]] == ["lower bound", "lower bound"]


def test_claims_that_cannot_be_tested_are_refused(audit):
    audit.refuses("own.csv --claimed laplace", "expected gaussian(sigma=1.0")
    audit.refuses("own.csv --claimed 'gaussian(mu=1)' --claimed-curve curve.csv", "not both")
    audit.refuses("own.csv --claimed 'gaussian(sigma=1)' --design game", "replacing one")
    audit.refuses("own.csv --claimed-curve own.csv", "epsilon and delta")


CURVE = "gaussian(sigma=10)"


@pytest.fixture
def planned(here: Path, command: Command) -> Command:
    """The command beside coins, losses and a plan that names a curve."""
    coins = toss_coins([f"r{at}" for at in range(300)], seed=3)
    coins.save("train.coins.json")
    fields = {"coins": coins.commitment, "score": "loss", "direction": "lower", "claimed": CURVE}
    seal_plan(fields).save("plan.sealed.json")
    losses = np.random.default_rng(0).normal(0, 1, 300) - coins.included
    pd.DataFrame({"id": coins.ids, "loss": losses}).to_csv("scores.csv", index=False)
    return command


AS_PLANNED = "audit scores.csv --coins train.coins.json --plan plan.sealed.json"


def test_the_curve_of_a_plan_is_tested_and_verified(planned):
    _, out, _ = planned.line(f"{AS_PLANNED} --output page.html")
    tested = re.search(rf"{re.escape(CURVE)}: refuted .*", out)
    assert tested
    _, out, _ = planned("verify", "page.html")
    assert tested.group() in out
    assert f"claimed: {CURVE}" in out
    assert "as printed. It follows" in out
    page = Path("page.html").read_text(encoding="utf-8")
    Path("page.html").write_text(page.replace(": refuted (p", ": not refuted (p"), encoding="utf-8")
    code, _, error = planned("verify", "page.html")
    assert (code, "is not the report of the planned audit" in error) == (2, True)


def test_another_curve_than_planned_is_refused(planned):
    Path("curve.csv").write_text("epsilon,delta\n0,0.05\n")
    for option, line in (
        ("--claimed 'gaussian(sigma=9)'", f"--claimed: planned {CURVE}, given gaussian(sigma=9)"),
        ("--claimed-curve curve.csv", f"--claimed: planned {CURVE}, given points(0.0:0.05)"),
    ):
        code, out, error = planned.line(f"{AS_PLANNED} {option}")
        assert (code, out, error.splitlines()[1:]) == (2, "", [f"  {line}"])
    plan = {"coins": "0" * 64, "score": "loss", "direction": "lower"}
    with pytest.raises(ValueError, match=r"\n  claimed: expected gaussian"):
        seal_plan({**plan, "claimed": "laplace"})


def test_a_plan_holds_the_pairs_of_a_table(planned):
    epsilons = np.linspace(0, 4, 60)
    table = pd.DataFrame({"epsilon": epsilons, "delta": gaussian_profile(0.1)(epsilons)})
    table.to_csv("curve.csv", index=False)
    table.iloc[::-1].to_csv("other_order.csv", index=False)
    content = SealedPlan.load("plan.sealed.json").to_dict()
    chosen = {name: content[name] for name in ("coins", "score", "direction")}
    Path("plan.sealed.json").unlink()
    seal_plan({**chosen, "claimed_curve": "curve.csv"}).save("plan.sealed.json")
    Path("curve.csv").unlink()  # the plan holds what was in it
    _, out, _ = planned.line(f"{AS_PLANNED} --output page.html")
    assert re.search(r"points\(0\.0:0\.039\d+, \.\.\., 4\.0:[\de.-]+\) of 60 pairs: refuted", out)
    _, out, _ = planned("verify", "page.html")
    assert "as printed. It follows" in out
    code, _, _ = planned.line(f"{AS_PLANNED} --claimed-curve other_order.csv --output same.html")
    assert code == 0
    _, out, _ = planned("verify", "same.html")
    assert "as printed. It follows" in out
    table.assign(delta=table["delta"] * 2).to_csv("other.csv", index=False)
    code, _, error = planned.line(f"{AS_PLANNED} --claimed-curve other.csv")
    assert (code, "--claimed: planned points(" in error) == (2, True)
    assert max(len(line) for line in error.splitlines()) < 250
    for plan, message in (
        ({**chosen, "claimed_curve": "other.csv", "claimed": CURVE}, "not both"),
        ({**chosen, "claimed_curve": "scores.csv"}, "got no epsilon"),
        ({**chosen, "claimed": "points(0:0.3, 2)"}, "expected gaussian"),
        ({**chosen, "claimed": "points(0:1.5)"}, "from 0 to 1"),
    ):
        with pytest.raises(ValueError, match=message):
            seal_plan(plan)


def test_a_plan_without_a_curve_is_sealed_as_before():
    plan = seal_plan({"coins": "0" * 64, "score": "loss", "direction": "lower"})
    assert '"claimed":' not in plan.text
    assert "claimed" not in plan.to_dict()
    assert SealedPlan.load({**plan._content(), "hash": plan.hash}).hash == plan.hash


def test_several_runs_test_a_curve(here, command):
    files = [f"run{number}.csv" for number in range(3)]
    rng = np.random.default_rng(0)
    for file in files:
        member = rng.integers(0, 2, 200)
        frame = pd.DataFrame({"score": rng.normal(1.5 * member), "member": member})
        frame.to_csv(file, index=False)
    runs = [MembershipScores.from_file(file) for file in files]
    for more, planned in (("", None), (" --planned 900", 900)):
        content = command.document(f"combine {' '.join(files)} --claimed {CURVE!r}{more}")
        (test,) = (entry for entry in content["audits"] if entry["kind"] == "test")
        expected = audit_curve_of_runs(runs, claimed_curve(CURVE), planned=planned)
        assert test["result"]["p_value"] == expected.p_value < 0.05
        assert (test["result"]["runs"], test["title"]) == (3, TITLE)
