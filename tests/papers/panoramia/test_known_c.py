"""Where c is known: the toy world's limits, and the identifiers' bounds."""

import numpy as np
import pytest

from paperlib.audits.candidates import CandidateScores
from paperlib.papers.panoramia.known_c import ToyWorld, bounds_side_by_side, identifier_pools, weaken_baseline


@pytest.mark.parametrize("weakness", [0.0, 0.2, 0.5])
def test_what_the_baseline_sees_is_the_log_ratio_of_marks_counted(weakness):
    world = ToyWorld(m=400_000)
    seen, _, _, member = world.play(weakness, np.random.default_rng(1))
    counted = np.log(seen[member].mean() / seen[~member].mean())
    assert world.seen_c(weakness) == pytest.approx(counted, abs=0.02)


def test_what_the_models_answer_adds_is_epsilon_and_a_weak_baseline_turns_c_into_leak():
    """The best attack's highest score: marked points with a yes. Counted odds are c + epsilon."""
    world = ToyWorld(m=400_000)
    _, more, _, member = world.play(0.3, np.random.default_rng(2))
    top = member[more == more.max()]
    assert np.log(top.sum() / (~top).sum()) == pytest.approx(world.c + world.epsilon, abs=0.03)
    found = weaken_baseline(ToyWorld(), (0.0, 0.5), repetitions=10)
    means = found.groupby(["attack", "weakness"]).mean()
    assert means.loc[("sees more", 0.5), "eps_tilde"] > 1.0 > means.loc[("sees more", 0.0), "eps_tilde"] - 0.1
    assert means.loc[("sees the same", 0.5), "eps_tilde"] < 1.0
    assert (found["known_c"] <= 1.0).mean() > 0.9


def test_worlds_that_cannot_be_are_refused():
    for options, words in (({"mark": 1.0}, "mark"), ({"c": -1.0}, "c"), ({"m": 1}, "m: expected 2")):
        with pytest.raises(ValueError, match=words):
            ToyWorld(**options)
    with pytest.raises(ValueError, match="weakness"):  # worse than guessing
        ToyWorld().seen_c(0.6)


def made_up_scores(leak, seed=0):
    """160 trained and 80 held-out identifiers, 7 alternatives; two attacks, of which "loss" is the second."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(240, 8, 2))
    values[:160, 0] += leak
    return CandidateScores(values, ("min_k", "loss"), np.array([2] * 160 + [0] * 80))


def test_all_six_bounds_see_a_leak_and_the_target_shows_its_loss_first():
    bounds = bounds_side_by_side(made_up_scores(3.0), repetitions=2)
    assert (bounds["epsilon"] > 0.5).all()
    assert (bounds["null"] < 0.3).all()  # each may exceed 0 in one audit of twenty
    assert len(bounds) == 6
    assert (bounds_side_by_side(made_up_scores(0.0), repetitions=2)["epsilon"] == 0).all()
    scores = made_up_scores(3.0)
    pools = identifier_pools(scores)
    np.testing.assert_array_equal(pools.members.targets["trained"][:, 0], -scores.of("loss")[:160, 0])
    np.testing.assert_array_equal(pools.generated.targets["trained"][:, 1], scores.of("min_k")[:160, 1])
