"""``paperlib plan``: the numbers of `plan_audit`, and one line for every mistake."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paperlib.bounds import plan_audit
from paperlib.core import MembershipScores
from tests.cli.test_cli import _same_signals, call  # noqa: F401


@pytest.fixture
def pilot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MembershipScores:
    """A pilot in three files: a table of losses, and one file per class."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    member = rng.integers(0, 2, 200)
    loss = rng.normal(0, 1, 200) - 1.5 * member
    pd.DataFrame({"nll": loss, "member": member}).to_csv("pilot.csv", index=False)
    np.save("members.npy", loss[member == 1])
    np.save("others.npy", loss[member == 0])
    return MembershipScores(loss[member == 1], loss[member == 0], higher_means_member=False)


def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert call(monkeypatch, "plan", *words) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_the_ceiling_is_printed_with_its_claim(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_audit(1000, 1e-5)
    assert said(monkeypatch, capsys, "--m", "1000", "--delta", "1e-5") == f"{plan}\n"
    assert "5.573" in plan.headline


def test_examples_for_an_epsilon(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--epsilon", "2", "--auc", "0.9", "--simulations", "20", "--json")
    printed = json.loads(said(monkeypatch, capsys, *words))
    plan = plan_audit(epsilon=2.0, attack=0.9, simulations=20)
    assert printed["total"] == plan.total
    assert printed["headline"] == plan.headline


def test_a_pilot_is_read_as_the_audit_reads_it(
    pilot: MembershipScores, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_audit(500, attack=pilot, simulations=10)
    words = ("--m", "500", "--simulations", "10")
    table = ("--pilot", "pilot.csv", "--score-column", "nll", "--losses")
    pair = ("--pilot", "members.npy", "--nonmembers", "others.npy", "--kind", "losses")
    for files in (table, pair):
        assert said(monkeypatch, capsys, *words, *files) == f"{plan}\n"
    turned = said(monkeypatch, capsys, *words, *table[:-1], "--kind", "scores")
    assert turned != f"{plan}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give --m"),
        (("--m", "10", "--epsilon", "1"), "--epsilon: contradicts --m"),
        (("--m", "10", "--auc", "0.7", "--pilot", "pilot.csv"), "--auc: contradicts --pilot"),
        (("--m", "10", "--auc", "1.5"), "--auc: expected a number in [0.5, 1)"),
        (("--m", "10", "--losses"), "--pilot: is missing"),
        (("--m", "10", "--pilot", "none.csv"), "none.csv"),
        (("--m", "10", "--pilot", "pilot.csv", "--score-column", "xyz"), "no column 'xyz'"),
        (("--m", "10", "--pilot", "pilot.csv", "--kind", "scores", "--losses"), "contradicts --kind scores"),
        (("--m", "1"), "m: "),
        (("--epsilon", "40"), "no audit of up to 10000000 examples shows 40"),
        (("--m", "ten"), "--m"),
    ],
)
def test_a_mistake_is_one_line(
    words: tuple[str, ...],
    message: str,
    pilot: MembershipScores,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call(monkeypatch, "plan", *words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("paperlib: ")
    assert message in err
    assert err.count("\n") == 1


def test_help_shows_how_to_ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(monkeypatch, capsys, "--help")
    for words in ("paperlib plan --epsilon 2 --auc 0.7", "--pilot", "--losses", "fewest examples"):
        assert words in " ".join(text.split())
