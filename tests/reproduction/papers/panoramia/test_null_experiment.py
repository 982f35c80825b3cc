"""The null experiment, and where c is known: the toy world's limits and the identifiers' bounds."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from paperlib.attacks.learned import BoostedTrees
from paperlib.audits.candidates import CandidateScores
from paperlib.audits.panoramia import pools as pools_module
from paperlib.audits.panoramia.game import AuditConfig
from paperlib.audits.panoramia.pools import REAL, SYNTHETIC, Pool, Pools, Target
from paperlib.reproduction.papers.panoramia.known_c import (
    ToyWorld,
    bounds_side_by_side,
    identifier_pools,
    weaken_baseline,
)
from paperlib.reproduction.papers.panoramia.null import experiment
from paperlib.reproduction.papers.panoramia.null.worlds import DATA, SIZES, WorldSizes, world_of
from tests.refusals import refused

LEARNED, JUDGED = 800, 300
TREES = BoostedTrees(rounds=40, leaves=4, smallest_leaf=20)
GAMES = {"searches": ("anytime",), "restarts": 1, "repetitions": 3}
AUDIT = AuditConfig(train=600, validation=200, test=480, attacks=(TREES,), **GAMES)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(pools_module, "user_cache_folder", lambda: tmp_path)


def taught(truth, count, rng):
    """What a model says that learned so many real examples: the truth, and noise that shrinks with
    them.
    """
    return truth + 20 / np.sqrt(count) * rng.normal(size=truth.shape)


def toy(seed, *, calls=None, fail_at=None):
    """Generated points a little off; targets know the density ratio as well as their real data
    allow.
    """
    rng = np.random.default_rng(seed)
    size = LEARNED + JUDGED
    truth = {
        kind: 1.5 * rng.normal(mean, 1, (size, 1))
        for kind, mean in (("members", 0.75), ("generated", -0.75))
    }

    def pool(kind):
        helpers = {
            name: taught(truth[kind], count, rng)
            for name, count in (("synthetic", 4), ("real", 100))
        }
        null, leaky = (taught(truth[kind], size, rng) for _ in range(2))
        return Pool(
            np.zeros((size, 1)), helpers, {"leaky": leaky + 3 * (kind == "members"), "null": null}
        )

    targets, name = (Target("leaky"), Target("null", "null")), f"toy {seed}"
    pools = Pools(pool("members"), pool("generated"), None, targets, (SYNTHETIC, REAL), key=name)

    def train(members, salt):
        if calls is not None:
            calls.append(members.size)
            if len(calls) == fail_at:
                raise KeyboardInterrupt
        own = np.random.default_rng([seed, salt])
        noisy = {kind: taught(values, members.size, own) for kind, values in truth.items()}
        return lambda kind, asked: noisy[kind][asked]

    code = "paperlib.reproduction.papers.panoramia.null.experiment"
    about = {
        "judged": JUDGED,
        "audit": AUDIT,
        "depends_on": name,
        "code": code,
        "seed": 1000 * seed,
    }
    return experiment.World(pools=pools, train=train, **about)


def test_a_null_falls_to_0_as_helpers_learn_more_and_a_leak_stays():
    table = experiment.over_worlds(experiment.run_matched("toy", toy, [0.2, 2], worlds=range(3)))
    null = table[table["null"]].set_index("ratio")["eps_tilde"]
    leak = table[~table["null"]].set_index("ratio")["eps_tilde"]
    assert null[0.2] > 0.3
    assert abs(null[2.0]) < 0.25
    assert leak[2.0] > 1
    assert list(table["games"]) == [9] * 6


def test_models_learn_as_many_members_as_asked_for_and_both_ways_judge_the_same():
    calls: list[int] = []
    world = toy(0, calls=calls)
    matched, plain = experiment.matched_pools(world, 1.5, folds=4), experiment.plain_pools(world)
    assert calls == [450] * 8
    assert matched.learned == plain.learned == LEARNED
    assert plain.helper_names == ("synthetic", "real")
    assert matched.helper_names == ("synthetic", "out of fold", "placebo")
    refused(
        r"ratio: expected a number in \(0, 2\], got 2.5",
        experiment.matched_pools,
        toy(0),
        2.5,
        folds=4,
    )


def test_a_run_that_was_stopped_goes_on_where_a_helper_was_finished():
    calls: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        experiment.matched_pools(toy(0, calls=calls, fail_at=6), 2.0, folds=4)
    found = experiment.matched_pools(toy(0, calls=calls), 2.0, folds=4)
    assert len(calls) == 6 + 4  # the placebo's models; those of the first helper were kept
    again = experiment.matched_pools(toy(0, calls=calls), 2.0, folds=4)
    assert len(calls) == 10
    assert (found.members.helpers["placebo"] == again.members.helpers["placebo"]).all()


def test_a_world_counts_with_the_mean_of_its_games_and_an_alarm_is_an_interval_above_the_margin():
    games = pd.DataFrame({"world": [0, 0, 1, 1], "c_lb": 1.0, "difference": [0.1, 0.3, 0.2, 0.4]})
    found = experiment.over_worlds(
        games.assign(data="x", helpers="h", ratio=1.0, target="t", null=True)
    )
    numbers = found[["eps_tilde", "low", "high", "worlds", "games"]].to_numpy()
    np.testing.assert_allclose(numbers, [[0.25, -0.385, 0.885, 2, 4]], atol=1e-3)
    difference = np.tile([-1, 0, 0.1, 0.2, 1], 20)
    quiet = pd.DataFrame({"world": np.repeat(np.arange(20), 5), "difference": difference})
    loud = quiet.assign(difference=quiet["difference"] / 10 + 0.5)
    frame = pd.concat([quiet.assign(helpers=experiment.TODAY), loud.assign(helpers="out of fold")])
    table = experiment.false_alarms(frame.assign(data="x", ratio=np.nan, null=True)).set_index(
        "helpers"
    )
    assert table["worlds"].to_dict() == {experiment.TODAY: 20, "out of fold": 20}
    assert table["alarms"].to_dict() == {experiment.TODAY: 0, "out of fold": 20}
    assert table["high"][experiment.TODAY] == pytest.approx(1 - 0.025 ** (1 / 20))


@pytest.mark.parametrize("data", DATA)
def test_each_kind_of_data_makes_worlds_with_a_target_and_a_null(data):
    small = SIZES["smoke"][data]
    world = world_of(data, replace(small, source=small.source or "help_topics"), games=1, seed=0)
    assert experiment.plain_pools(world).helper_names == ("synthetic", "real")
    games = experiment.run_matched(data, lambda _: world, [1.5], worlds=[0], folds=2)
    assert games.groupby("helpers").size().to_dict() == {experiment.TODAY: 2, "out of fold": 2}
    assert set(games["null"]) == {True, False}


def test_large_worlds_have_real_data_for_the_largest_ratio():
    for sizes in SIZES["large"].values():
        assert sizes.learned * 4 // 5 >= 8 * sizes.judged
        assert sizes.games(10)["train"] + sizes.games(10)["validation"] <= 2 * sizes.learned
    refused(
        "judged: expected 40 or more", WorldSizes, generator=10, learned=50, judged=10, epochs=1
    )


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
    assert (
        means.loc[("sees more", 0.5), "eps_tilde"]
        > 1.0
        > means.loc[("sees more", 0.0), "eps_tilde"] - 0.1
    )
    assert means.loc[("sees the same", 0.5), "eps_tilde"] < 1.0
    assert (found["known_c"] <= 1.0).mean() > 0.9


def test_worlds_that_cannot_be_are_refused():
    for options, words in (
        ({"mark": 1.0}, "mark"),
        ({"c": -1.0}, "c"),
        ({"m": 1}, "m: expected 2"),
    ):
        refused(words, ToyWorld, **options)
    with pytest.raises(ValueError, match="weakness"):  # worse than guessing
        ToyWorld().seen_c(0.6)


def made_up_scores(leak, seed=0):
    """160 trained and 80 held-out identifiers, 7 alternatives; two attacks, of which "loss" is the
    second.
    """
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
    np.testing.assert_array_equal(
        pools.members.targets["trained"][:, 0], -scores.of("loss")[:160, 0]
    )
    np.testing.assert_array_equal(
        pools.generated.targets["trained"][:, 1], scores.of("min_k")[:160, 1]
    )
