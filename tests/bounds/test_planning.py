"""Plans before training agree with what the audits then show."""

import math
import re
from functools import partial

import numpy as np
import pytest
from scipy.special import ndtri

from paperlib.bounds import audit_one_run, plan_audit
from paperlib.bounds.one_run import forecast, planning
from paperlib.bounds.one_run.forecast import perfect_epsilon
from paperlib.bounds.one_run.pilot import AttackLaw, Block, laws_of_pilot
from paperlib.core import MembershipScores
from paperlib.reproduction.validity.one_run_cases import searched_epsilon
from paperlib.reproduction.validity.power import plan_misses, planned
from tests.refusals import refused


def normal_scores(rng, m, *, shift=1.0, spread=1.0, memorised=0.0):
    """Scores of m examples with fair coins: members N(shift, spread), of whom a share scores 5
    more.
    """
    members = int(rng.binomial(m, 0.5))
    member = rng.normal(shift, spread, members) + 5 * (rng.random(members) < memorised)
    return MembershipScores(member, rng.normal(0, 1, m - members))


@pytest.fixture
def short_walk(monkeypatch):
    """Laws of a pilot by a shorter walk, where how well they are drawn is not what is tested."""
    monkeypatch.setattr("paperlib.bounds.one_run.pilot._BURN_IN", 1_000)
    monkeypatch.setattr("paperlib.bounds.one_run.pilot._STEPS", 3_000)


def resampled(pilot, m, seed):
    """The rule that must not come back: a small pilot's scores are drawn with replacement."""
    rng = np.random.default_rng(seed)
    drawn = (
        [rng.choice(side, m // 2) for side in (pilot.member, pilot.nonmember)] for _ in range(4)
    )
    shown = [audit_one_run(MembershipScores(*sides)).epsilon for sides in drawn]
    return float(np.mean(shown)), *np.quantile(shown, [0.1, 0.9, 0.2])


def test_a_small_pilot_plans_what_audits_show_and_resampling_does_not():
    """On a few pairs; the page on validity has twenty of every size in the profile `paper`."""
    miss, inside, reached = plan_misses(partial(planned, simulations=20), 100, 1_000, pairs=2)
    assert abs(miss) < 0.8
    assert min(inside, reached) > 0
    miss, inside, reached = plan_misses(resampled, 100, 3_000, pairs=2)
    assert miss > 1.5
    assert inside == reached == 0


def test_laws_recover_what_a_large_pilot_shows():
    rng = np.random.default_rng(0)
    laws = laws_of_pilot(normal_scores(rng, 5_000, spread=2.0), 50, seed=0)
    assert np.mean([law.shift for law in laws]) == pytest.approx(1, abs=0.15)
    assert np.mean([law.spread for law in laws]) == pytest.approx(2, abs=0.15)
    laws = laws_of_pilot(normal_scores(rng, 5_000, shift=0.0, memorised=0.1), 50, seed=0)
    assert np.mean([law.top.member for law in laws]) == pytest.approx(0.1, abs=0.02)
    assert np.mean([law.top.nonmember for law in laws]) < 0.005
    assert all(abs(law.shift) < 0.3 for law in laws)


def test_laws_follow_ranks_alone_and_turn_with_the_scores(short_walk):
    pilot = normal_scores(np.random.default_rng(1), 200)
    bent = MembershipScores(
        -np.exp(pilot.member), -np.exp(pilot.nonmember), higher_means_member=False
    )
    turned = MembershipScores(-pilot.nonmember, -pilot.member)
    first, same = (laws_of_pilot(scores, 20, seed=0) for scores in (pilot, bent))
    assert [law.shift for law in same] == [law.shift for law in first]
    forth, back = (
        plan_audit(500, attack=attack, simulations=15).expected for attack in (pilot, turned)
    )
    assert back == pytest.approx(forth, abs=0.25)


def test_scores_drawn_from_a_law_follow_it():
    law = AttackLaw(1.0, 1.5, Block(0.1, 0.01), Block(0.002, 0.05))
    scores = law.draw(100_000, 100_000, np.random.default_rng(0))
    values, labels = scores.pooled()
    ranks = np.array([0.001, 0.02, 0.3, 0.7, 0.97, 0.999])
    below = [(values[labels] < rank).mean() for rank in ranks]
    np.testing.assert_allclose(law.members_below(ranks), below, atol=0.004)


def test_ties_of_the_pilot_stay_ties(short_walk):
    rng = np.random.default_rng(0)
    pilot = MembershipScores(rng.integers(0, 2, 200), np.zeros(200))
    plan = plan_audit(2_000, attack=pilot, simulations=20)
    law = laws_of_pilot(pilot, 1, seed=0)[0]
    assert np.unique(law.draw(500, 500, rng).pooled()[0]).size == 2
    real = audit_one_run(MembershipScores(rng.integers(0, 2, 1_000), np.zeros(1_000))).epsilon
    assert plan.expected == pytest.approx(real, abs=1.0)


@pytest.mark.parametrize("delta", [0.0, 1e-4])
def test_no_audit_beats_the_ceiling(delta):
    plan = plan_audit(200, delta)
    perfect = MembershipScores(np.arange(100) + 100.0, np.arange(100.0))
    assert audit_one_run(perfect, delta=delta).epsilon <= plan.perfect + 1e-6
    assert perfect_epsilon(200, delta) == plan.perfect == plan.curve.perfect.max()
    assert "every member above every non-member" in plan.assumptions[-1]
    guessed = audit_one_run(perfect, delta=delta, guess="both").epsilon
    assert guessed == pytest.approx(plan.perfect, abs=1e-6)


@pytest.mark.parametrize("guess", ["both", "members", "nonmembers", "grid"])
def test_every_way_to_guess_has_its_ceiling_and_can_be_planned(guess):
    members = 88 if guess == "nonmembers" else 112
    perfect = MembershipScores(np.arange(members) + 200.0, np.arange(200.0 - members))
    ceiling = plan_audit(200, guess=guess).perfect
    assert ceiling - 0.5 < audit_one_run(perfect, guess=guess).epsilon <= ceiling + 1e-6
    plan = plan_audit(300, attack=0.9, guess=guess, simulations=5)
    assert 0.5 < plan.expected < plan.perfect
    assert plan_audit(epsilon=1.0, attack=0.9, guess=guess, simulations=2).total < 300


def test_attack_is_planned_from_auc_or_pilot():
    rng = np.random.default_rng(0)
    pilot = MembershipScores(rng.normal(1, 1, 5_000), rng.normal(0, 1, 5_000))
    by_auc = plan_audit(1_000, attack=pilot.auc(), simulations=10)
    lent = plan_audit(1_000, attack=pilot, simulations=10)
    assert "without repeats" in lent.assumptions[-1]
    assert lent.warnings == ()
    turned = MembershipScores(pilot.member, pilot.nonmember, higher_means_member=False)
    assert "probably reversed" in plan_audit(1_000, attack=turned, simulations=2).warnings[0]
    assert lent.expected == pytest.approx(by_auc.expected, abs=0.25)
    assert by_auc.low <= by_auc.expected <= by_auc.high < by_auc.perfect
    assert plan_audit(1_000, attack=0.5, simulations=5).expected < 0.2


def test_a_tail_that_the_pilot_hardly_saw_is_named(short_walk):
    pilot = normal_scores(np.random.default_rng(0), 100)
    (warning,) = plan_audit(10_000, attack=pilot, simulations=3).warnings
    assert "the fitted tail carries this number" in warning
    (enough,) = map(int, re.findall(r"a pilot of (\d+) would see it", warning))
    assert 300 < enough < 10_000
    larger = normal_scores(np.random.default_rng(0), 3 * enough)
    assert plan_audit(10_000, attack=larger, simulations=3).warnings == ()
    faultless = MembershipScores(np.arange(100) + 100.0, np.arange(100.0))
    (warning,) = plan_audit(1_000, attack=faultless, simulations=2).warnings
    assert "0.0 wrong guesses" in warning


def share_reached(plan, draw, *, guess):
    """Share of 100 fresh audits of the planned size that show the planned epsilon."""
    games = (draw(np.random.default_rng([7, i]), plan.total) for i in range(100))
    return np.mean([searched_epsilon(scores, guess=guess) >= plan.target for scores in games])


@pytest.mark.parametrize(
    ("attack", "guess", "target"),
    [(0.9, "members", 1.0), (0.9, "adaptive", 2.0), (0.7, "members", 0.2)],
)
def test_the_examples_show_the_epsilon_in_four_of_five_audits(attack, guess, target):
    """About half of the audits did when the smallest size was that of the mean."""
    plan = plan_audit(epsilon=target, attack=attack, guess=guess)
    draw = partial(normal_scores, shift=math.sqrt(2) * ndtri(attack))
    assert 0.7 < share_reached(plan, draw, guess=guess) < 0.9
    assert plan.headline.startswith(
        f"ε = {target:g} needs about {plan.total} examples (reached in 80 % of"
    )
    assert plan.reached >= target
    assert plan.low < plan.reached < plan.expected


@pytest.mark.parametrize("guess", ["members", "adaptive"])
def test_a_perfect_attack_needs_more_examples_than_the_ceiling(guess):
    plan = plan_audit(epsilon=2.0, guess=guess, simulations=100)
    assert 0.7 < share_reached(plan, partial(normal_scores, shift=100.0), guess=guess) <= 0.95
    assert plan.expected < plan.perfect
    assert "; a perfect attack would show" in plan.headline


@pytest.mark.parametrize("examples", [60, 6_000])
def test_pilots_plan_for_four_of_five_audits(examples, short_walk):
    """A small pilot, whose laws are drawn, and one that lends its scores."""
    pilot = normal_scores(np.random.default_rng(3), examples, shift=1.5)
    plan = plan_audit(epsilon=0.6, attack=pilot, guess="members")
    assert ("without repeats" in plan.assumptions[-1]) == (examples == 6_000)
    again = {"attack": pilot, "guess": "members", "simulations": 200, "seed": 1}
    fresh = plan_audit(plan.total, power=0.72, **again)
    assert fresh.low < 0.6 <= fresh.reached  # what nine of ten show, and 72 %


def test_more_power_needs_more_examples_and_promises_less():
    options = {"attack": 0.8, "guess": "members", "simulations": 200}
    sure, even = (plan_audit(epsilon=0.7, power=power, **options).total for power in (0.95, 0.5))
    assert sure > 1.5 * even
    plans = [plan_audit(500, power=power, **options) for power in (0.5, 0.8, 0.9)]
    half, most, nearly = (plan.reached for plan in plans)
    assert half > most > nearly == plans[0].low
    assert "this attack would show at least" in plans[1].headline
    real = np.random.default_rng(0)
    shift = math.sqrt(2) * ndtri(0.8)
    audits = [
        audit_one_run(normal_scores(real, 500, shift=shift), guess="members") for _ in range(200)
    ]
    assert 0.7 < np.mean([audit.epsilon >= most for audit in audits]) < 0.9


def test_large_audits_are_planned_from_smaller_ones(monkeypatch):
    real = plan_audit(40_000, attack=0.76, simulations=6)
    monkeypatch.setattr(forecast, "LARGEST_SIMULATED", 4_000)
    monkeypatch.setattr(planning, "LARGEST_SIMULATED", 4_000)
    assert (
        "audits of 4000 examples" in plan_audit(40_000, attack=0.76, simulations=2).assumptions[-1]
    )
    assert plan_audit(40_000, attack=0.76, simulations=12).expected == pytest.approx(
        real.expected, abs=0.15
    )
    assert plan_audit(4_000, attack=0.76, simulations=5).expected < real.expected - 0.3


def memorising_pilot(seed, *, examples=400):
    """Scores of a pilot of which 5 % of the members stand 6 standard deviations apart."""
    rng = np.random.default_rng(seed)
    member, nonmember = rng.normal(size=(2, examples // 2))
    return MembershipScores(member + 6 * (rng.random(examples // 2) < 0.05), nonmember)


def planned_by(laws, monkeypatch, **options):
    """The plan of epsilon = 1 by a pilot of 400 that leaves these attacks open."""
    monkeypatch.setattr(forecast, "laws_of_pilot", lambda *_args, **_options: laws)
    return plan_audit(epsilon=1.0, attack=memorising_pilot(0), **options)


def test_a_pilot_that_cannot_tell_is_named_with_its_numbers_and_the_attack_is_not_blamed(
    monkeypatch,
):
    """Under a strong law any epsilon of this size is shown, under a weak one none at any size."""
    strong = AttackLaw(0.0, top=Block(0.1, 0.001))
    weak = AttackLaw(0.0)
    by_laws = partial(planned_by, monkeypatch=monkeypatch)
    with pytest.raises(forecast.PilotCannotTellError) as caught:
        by_laws([strong] * 60 + [weak] * 40)
    assert (caught.value.share, caught.value.power, caught.value.examples) == (0.6, 0.8, (200, 200))
    said = refused("cannot tell", by_laws, [strong] * 60 + [weak] * 40)
    for words in ("200 members and 200 non-members", "60% show it", "or for a smaller power"):
        assert words in said
    assert "better attack" not in said
    assert "smaller power" not in refused("cannot tell", by_laws, [strong] * 30 + [weak] * 70)
    said = refused("no audit of up to", by_laws, [strong] * 10 + [weak] * 90)
    assert "10% show it" in said, "as sure as was asked for, the attack is too weak"
    assert by_laws([strong] * 60 + [weak] * 40, power=0.5, simulations=25).total < 2_000
    assert by_laws([strong] * 100, simulations=25).total < 2_000


def test_bad_plans_are_refused_in_one_line():
    for m, options in (
        (1, {}),
        (10, {"delta": 2}),
        (10, {"attack": 1.0}),
        (10, {"attack": 0.4}),
        (10**8, {}),
        (None, {}),
        (10, {"epsilon": 1.0}),
        (None, {"epsilon": 0.0}),
        (None, {"epsilon": 30.0}),
        (None, {"epsilon": 1.0, "attack": 0.9, "power": 0.3}),
        (10, {"power": 1.0}),
        (None, {"epsilon": 1.0, "attack": 0.5, "simulations": 1}),
        (10, {"attack": 0.6, "simulations": 0}),
        (10, {"attack": MembershipScores(np.arange(30.0), np.arange(19.0))}),
    ):
        refused(
            r"^(m|m, epsilon|epsilon|power|delta|attack|simulations): [^\n]+$",
            plan_audit,
            m,
            **options,
        )
