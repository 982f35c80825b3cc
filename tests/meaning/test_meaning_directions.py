"""A direction that chance explains in some sound audits is doubted, a clearly reversed one is
refused: by every audit of scores, and by the gate alike.
"""

import subprocess
import sys

import numpy as np
import pytest

from paperlib import audits, bounds
from paperlib.bounds.claims.audit import audit_curve
from paperlib.bounds.claims.curves import ClaimedCurve, gaussian_profile
from paperlib.core import MembershipScores
from paperlib.core import direction as directions
from paperlib.core.direction import REFUSED_LEVEL, REVERSED_LEVEL, reversed_direction
from paperlib.core.facts import Doubt, RefusalCode

CURVE = ClaimedCurve("gaussian(mu=4)", gaussian_profile(4.0))


def turned(shift: float, seed: int, size: int = 200) -> MembershipScores:
    """Scores that are lower for members, by so many standard deviations."""
    rng = np.random.default_rng(seed)
    return MembershipScores(rng.normal(-shift, 1, size), rng.normal(0, 1, size))


def doubtful() -> MembershipScores:
    """The first scores of no leak whose direction is doubted and not refused."""
    for seed in range(2_000):
        reversal = reversed_direction(turned(0.0, seed))
        if reversal is not None and not reversal.is_refused:
            return turned(0.0, seed)
    raise AssertionError("no doubt in 2,000 draws at a level of 1 %")


DOUBTFUL, CLEAR = doubtful(), turned(0.8, 0)


def panoramia(scores):
    values, flags = scores.pooled()
    return bounds.audit_panoramia(np.zeros(values.size), values, flags, known_c=0.0)


def of_losses(scores):
    return audits.audit_losses(-scores.member, -scores.nonmember, design="game").headline


AUDITS = {
    "one run": bounds.audit_one_run,
    "game": lambda scores: bounds.audit_one_run(scores, design="game"),
    "f-DP": bounds.audit_f_dp,
    "curve": lambda scores: audit_curve(scores, CURVE),
    "output set": lambda scores: bounds.audit_output_set(*scores.split(seed=1)),
    "Clopper-Pearson": bounds.audit_clopper_pearson,
    "Gaussian DP": lambda scores: bounds.audit_gaussian_dp(scores, delta=1e-5),
    "Bayesian": bounds.audit_bayesian,
    "Epsilon*": lambda scores: bounds.epsilon_star(-scores.member, -scores.nonmember).trusted,
    "PANORAMIA": panoramia,
    "all of scores": lambda scores: audits.audit_scores(scores).headline,
    "all of losses": of_losses,
    "one of several runs": lambda scores: bounds.combine_runs([scores]),
}


@pytest.mark.parametrize("audit", AUDITS.values(), ids=AUDITS)
def test_a_doubtful_direction_is_a_warning_and_a_clear_one_a_refusal(audit, monkeypatch):
    doubted, refused = audit(DOUBTFUL), audit(CLEAR)
    assert doubted.refusals == ()
    assert [doubt.code for doubt in doubted.doubts] == [RefusalCode.REVERSED]
    assert doubted.doubts[0].sentence == doubted.warnings[0]
    assert [refusal.code for refusal in refused.refusals] == [RefusalCode.REVERSED]
    assert refused.doubts == ()
    monkeypatch.setattr(directions, "REFUSED_LEVEL", REVERSED_LEVEL)  # one level for both
    assert audit(DOUBTFUL).refusals


def test_ranks_doubt_and_refuse_at_the_same_levels():
    rng, doubts = np.random.default_rng(0), 0
    for _ in range(2_000):
        result = bounds.audit_ranks(rng.integers(1, 11, 50), 10)
        assert result.refusals == () or doubts
        doubts += bool(result.doubts)
    assert 2 <= doubts <= 40, "one in a hundred, or a little fewer"
    assert bounds.audit_ranks(rng.integers(6, 11, 50), 10).refusals


def test_a_doubt_stays_one_where_it_is_given_again():
    result = bounds.audit_one_run(DOUBTFUL)
    (doubt,) = result.doubts
    assert isinstance(doubt, Doubt)
    again = type(result)(**{name: getattr(result, name) for name in result.__dataclass_fields__})
    assert (again.doubts, again.refusals) == ((doubt,), ())
    assert again.warnings.count(doubt.sentence) == 1


@pytest.mark.parametrize(("scores", "code"), [(DOUBTFUL, 0), (CLEAR, 3)], ids=["doubtful", "clear"])
def test_the_gate_judges_the_number_of_a_doubtful_direction(scores, code, tmp_path):
    file = tmp_path / "scores.csv"
    values, flags = scores.pooled()
    rows = [f"{value:.17g},{int(flag)}" for value, flag in zip(values, flags, strict=True)]
    file.write_text("\n".join(["score,member", *rows]), encoding="utf-8")
    arguments = ["audit", str(file), "--design", "game", "--fail-above", "1", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "paperlib", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert "reversed" in done.stdout


def test_the_levels_let_one_sound_audit_in_a_thousand_be_refused():
    assert 2 * REFUSED_LEVEL <= 1e-3, "two checks are made of one audit"
    refused = sum(
        reversal is not None and reversal.is_refused
        for reversal in (reversed_direction(turned(0.0, seed, 60)) for seed in range(4_000))
    )
    assert refused <= 10, "2 are expected, more than 10 in one of 100,000 such tests"
