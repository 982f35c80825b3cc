"""Plans before training agree with what the audits then show."""

import numpy as np
import pytest

from paperlib.bounds import audit_one_run, plan_audit
from paperlib.core import MembershipScores


@pytest.mark.parametrize("delta", [0.0, 1e-4])
def test_no_audit_beats_the_ceiling(delta):
    plan = plan_audit(200, delta)
    perfect = audit_one_run(
        MembershipScores(np.arange(100) + 100.0, np.arange(100.0)), delta=delta, guess="both"
    )
    assert perfect.epsilon == pytest.approx(plan.perfect, abs=1e-6)


def test_more_examples_show_more_and_delta_shows_less():
    ceilings = [plan_audit(m).perfect for m in (50, 500, 5_000)]
    assert ceilings == sorted(ceilings)
    assert plan_audit(500, 1e-3).perfect < ceilings[1]


def test_attack_is_planned_from_auc_or_pilot():
    rng = np.random.default_rng(0)
    pilot = MembershipScores(rng.normal(1, 1, 4_000), rng.normal(0, 1, 4_000))
    by_pilot = plan_audit(1_000, attack=pilot, simulations=40)
    by_auc = plan_audit(1_000, attack=pilot.auc(), simulations=40)
    assert by_pilot.expected == pytest.approx(by_auc.expected, abs=0.25)
    assert by_auc.low <= by_auc.expected <= by_auc.high < by_auc.perfect
    assert plan_audit(1_000, attack=0.5, simulations=20).expected < 0.2


def test_plan_without_attack_says_so():
    plan = plan_audit(100)
    assert "no attack" in plan.assumptions[-1]
    assert plan.to_dict()["expected"] == "nan"
    assert plan.curve.perfect.max() == plan.perfect


@pytest.mark.parametrize(("m", "options"), [(1, {}), (10.5, {}), (10, {"delta": 2}), (10, {"attack": 1.0})])
def test_bad_plans_are_refused(m, options):
    with pytest.raises(ValueError, match=r"m:|delta:|attack:"):
        plan_audit(m, **options)
