"""``paperlib audit --claimed``: the outcome, its JSON and its page, and what is refused."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

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
    assert re.search(rf"{TITLE} \(test\): gaussian\(sigma=10\): refuted \(p ≤ 0\.\d+", out)
    assert TITLE in Path("own-audit.html").read_text(encoding="utf-8")
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
