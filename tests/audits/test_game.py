"""The game and its audits, on pools of numbers whose truth is known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from paperlib.attacks.learned import BoostedTrees
from paperlib.attacks.learned.interface import AttackInputs, LossScore
from paperlib.audits.panoramia import pools as pools_module
from paperlib.audits.panoramia.game import AuditConfig, GameSplit, TestPartError, smallest_pool
from paperlib.audits.panoramia.pools import (
    SYNTHETIC,
    Pool,
    Pools,
    Target,
    add_helpers,
    cached_pools,
    pools_of,
)
from paperlib.audits.panoramia.run import audit_pools, baseline_by_helper, over_training_size
from tests.audits.samples import Examples
from tests.refusals import refused

TREES = (BoostedTrees(rounds=20, smallest_leaf=10),)
SMALL = AuditConfig(train=200, validation=100, test=400, attacks=TREES, restarts=2, repetitions=2)


def gaussian_pools(size=700, *, leak=2.0, shift=0.0, seed=0, helper=True):
    """Real examples N(0, 1), generated N(shift, 1); the leaky target's loss is lower on members."""
    rng = np.random.default_rng(seed)

    def pool(mean, lower):
        x = rng.normal(mean, 1, (size, 1))
        noise = rng.normal(size=(2, size, 1))
        targets = {"leaky": noise[0] - lower, "null": noise[1]}
        return Pool(x, {"synthetic": x**2} if helper else {}, targets)

    helpers = (SYNTHETIC,) if helper else ()
    targets = Target("leaky", "trained", 9), Target("null", "null", 9)
    return Pools(pool(0, leak), pool(shift, 0), pool(0, 0), targets, helpers)


@pytest.fixture(scope="module")
def audits():
    return audit_pools(gaussian_pools(), SMALL)


def values(audits, audit, target, search="union"):
    summary = audits.summary().set_index(["audit", "target", "search"])
    return summary.loc[(audit, target, search)]


def test_a_leak_is_seen_by_all_three_audits_and_the_null_shows_none_under_the_ceiling(audits):
    for audit in ("panoramia", "rm_rn", "o1"):
        assert values(audits, audit, "leaky")["value"] > 1
        assert values(audits, audit, "null")["value"] == 0
    assert values(audits, "panoramia", "leaky")["c_lb"] < 0.2
    table = audits.table
    assert (table[["c_plus_eps_lb", "eps"]].max(axis=1) <= table["ceiling"] + 1e-9).all()
    assert set(table.loc[table["target"] == "null", "null"]) == {True}
    assert len(table) == 2 * 2 * 3 * 2  # targets, games, audits, searches


def test_a_poor_generator_shows_as_c_more_so_with_helpers_which_the_paper_form_keeps_from_attacks():
    pools = replace(gaussian_pools(shift=3.0), nonmembers=None)
    audits = audit_pools(pools, replace(SMALL, repetitions=1))
    assert set(audits.table["audit"]) == {"panoramia"}
    null = values(audits, "panoramia", "null")
    assert null["c_lb"] > 1
    assert null["value"] < 0.3
    pools = gaussian_pools(leak=0.0)
    telling = {"synthetic": pools.generated.helpers["synthetic"] + 9}
    pools = replace(pools, generated=replace(pools.generated, helpers=telling))
    frame = baseline_by_helper(pools, replace(SMALL, searches=("union",), repetitions=1)).set_index(
        "helper"
    )
    assert frame.loc["synthetic", "c_lb"] > 2 > frame.loc["none", "c_lb"]
    # The helper's column alone tells members; only the form that shows it to the attack sees it.
    pools = gaussian_pools(leak=0.0)
    telling = replace(
        pools.members, helpers={"synthetic": pools.members.helpers["synthetic"] + 100.0}
    )
    pools = replace(pools, members=telling)
    once = replace(SMALL, repetitions=1, searches=("union",))
    paper = audit_pools(pools, replace(once, form="paper"), targets=["null"], audits=["panoramia"])
    both = audit_pools(pools, once, targets=["null"], audits=["panoramia"])
    assert paper.table["c_lb"].item() == both.table["c_lb"].item() > 2
    assert paper.table["c_plus_eps_lb"].item() < 0.5 < 2 < both.table["c_plus_eps_lb"].item()


def test_bounds_grow_with_the_test_part_and_curves_reach_the_bound_of_their_game(audits):
    sizes = audits.over_test_size([50, 400])
    grown = (
        sizes[(sizes["audit"] == "rm_rn") & (sizes["target"] == "leaky")].groupby("m")["eps"].mean()
    )
    assert grown[400] > grown[50]
    whole = audits.table.query("search == 'union'")
    assert audits.over_test_size([400])["eps_tilde"].max() == whole["eps_tilde"].max()
    refused(r"size: expected a number in \[2, 400\]", audits.over_test_size, [401])
    frame = over_training_size(
        gaussian_pools(), replace(SMALL, repetitions=1), [40, 200], targets=["leaky"]
    )
    assert sorted(frame["train"].unique()) == [40, 200]
    curve = audits.curves(target="leaky", seed=1)
    bound = whole.query("target == 'leaky' and seed == 1 and audit == 'panoramia'")
    assert curve.query("test == 'mia'")["bound"].max() == pytest.approx(
        bound["c_plus_eps_lb"].item()
    )
    refused("no game", audits.curves, target="nobody")


def views_of(count=300):
    numbers = np.arange(count)[:, None]
    return tuple(AttackInputs(one, np.zeros((count, 1))) for one in (numbers, -1 - numbers))


def test_no_test_example_is_handed_out_for_training_and_after_judging_nothing_is():
    game = GameSplit({"a": views_of()}, train=100, validation=60, test=200, seed=3)
    train, validation = (
        set(part("a").inputs.examples[:, 0]) for part in (game.train, game.validation)
    )
    scores, membership = game.judge({"a": Examples()})
    np.testing.assert_array_equal(scores["a"] >= 0, membership)
    test = set(scores["a"])
    assert (len(train), len(validation), len(test)) == (100, 60, 200)
    assert not train & validation
    assert not test & (train | validation)
    for method, given in (
        (game.train, "a"),
        (game.validation, "a"),
        (game.judge, {"a": LossScore()}),
    ):
        with pytest.raises(TestPartError):
            method(given)


def test_each_place_is_filled_by_its_own_fair_coin_and_the_smallest_pool_serves_every_game():
    """Mean and variance of the number of members over seeds; a balanced split would have no
    variance.
    """
    sizes = {"train": 2, "validation": 2, "test": 100}
    games = (GameSplit({"a": views_of()}, **sizes, seed=seed) for seed in range(400))
    counts = [game.judge({"a": LossScore()})[1].sum() for game in games]
    assert abs(np.mean(counts) - 50) < 5 * 5 / 20
    assert 0.6 < np.var(counts) / 25 < 1.5
    for seed in range(50):
        size = smallest_pool(10, 10, 60)
        GameSplit({"a": views_of(size)}, train=10, validation=10, test=60, seed=seed)


def test_sizes_that_cannot_be_had_are_refused():
    for changes, words in (
        ({"train": 400, "test": 200}, "too few for train=400"),
        ({"train": 3}, "train: expected an even number"),
        ({"validation": 0}, "validation: expected an even number"),
        ({"test": 1}, "test: expected 2"),
    ):
        sizes = {"train": 2, "validation": 2, "test": 2, **changes}
        refused(words, GameSplit, {"a": views_of()}, **sizes, seed=0)


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """The folder of the cache, and a function that reads pools from it, or builds them."""
    monkeypatch.setattr(pools_module, "user_cache_folder", lambda: tmp_path)
    return tmp_path, lambda build=gaussian_pools: cached_pools(
        {"n": 1}, build, code="paperlib.core"
    )


def test_a_kind_without_examples_or_without_outputs_of_a_model_is_named():
    table = np.zeros((4, 1))
    outputs = {"members": table, "generated": table}
    two_kinds = {"members": table, "generated": table}
    assert pools_of(two_kinds, {Target("leaky"): outputs}, {SYNTHETIC: outputs}).nonmembers is None
    only_members = {"members": table}
    cases = (
        ("examples: expected generated", only_members, {}, {}),
        ("leaky: expected outputs on generated", two_kinds, {Target("leaky"): only_members}, {}),
        ("synthetic: expected outputs on generated", two_kinds, {}, {SYNTHETIC: only_members}),
    )
    for message, examples, targets, helpers in cases:
        with pytest.raises(ValueError, match=message):
            pools_of(examples, targets, helpers)
    with pytest.raises(ValueError, match="synthetic: expected outputs on generated"):
        add_helpers(gaussian_pools(4, helper=False), {SYNTHETIC: only_members}, learned=0, about="")


def test_cached_pools_are_read_back_and_not_built_again(cached):
    builds = []

    def build():
        builds.append(1)
        return replace(gaussian_pools(20), warnings=("beware",))

    first, again = (cached[1](build) for _ in range(2))
    assert len(builds) == 1
    assert again.key == first.key != ""
    assert again.warnings == ("beware",)
    pd.testing.assert_frame_equal(again.table, gaussian_pools(20).table, check_dtype=False)
    np.testing.assert_array_equal(
        again.members.targets["leaky"], gaussian_pools(20).members.targets["leaky"]
    )


def test_games_on_cached_pools_are_cached_but_not_those_of_an_attack_of_your_own(
    cached, monkeypatch
):
    folder, pools = cached[0], cached[1]()
    options = {"targets": ["leaky"], "audits": ["panoramia"]}
    once = replace(SMALL, repetitions=1, restarts=1)
    first = audit_pools(pools, once, **options)
    files = sorted(folder.rglob("*.cache"))
    pd.testing.assert_frame_equal(first.table, audit_pools(pools, replace(once), **options).table)
    assert sorted(folder.rglob("*.cache")) == files
    monkeypatch.setattr("paperlib.audits.panoramia.run.version", lambda name: f"another {name}")
    audit_pools(pools, once, **options)
    assert len(sorted(folder.rglob("*.cache"))) == len(files) + 1, (
        "trees of another version are grown anew"
    )
    owned = (replace(once, attacks=(own_attack(sign),)) for sign in (1.0, -1.0))
    plus, minus = (audit_pools(pools, one, **options).judged[0].attack for one in owned)
    np.testing.assert_array_equal(plus, -minus)


def own_attack(sign):
    """Two versions of a class that share their name and their repr."""

    class Own(LossScore):
        def scores(self, views):
            return sign * (views.losses[:, 0] if views.losses.shape[1] else np.zeros(len(views)))

    Own.__module__ = "a_notebook"
    return Own("mine")


def test_pools_name_the_same_models_and_a_target_that_returns_nan():
    missing = {"f": np.array([[0.0], [1.0], [np.nan]])}
    refused(
        r"target 'f': losses: 1 of 3 rows hold NaN .*first at row 2",
        Pool,
        np.zeros((3, 1)),
        {},
        missing,
    )
    pools = gaussian_pools(20)
    other = replace(pools.nonmembers, targets={})
    refused("nonmembers: expected the targets", replace, pools, nonmembers=other)


def test_games_on_one_test_part_differ_in_what_attacks_learn_from_alone():
    def game(seed, test_seed):
        sizes = {"train": 20, "validation": 10, "test": 40}
        played = GameSplit({"a": views_of(60)}, **sizes, seed=seed, test_seed=test_seed)
        parts = [part("a").inputs.examples[:, 0] for part in (played.train, played.validation)]
        shown, coins = played.judge({"a": Examples()})
        return parts, shown["a"], coins

    (first, tested, coins), (again, same, tossed) = game(1, 7), game(2, 7)
    assert (tested == same).all()
    assert (coins == tossed).all()
    assert set(first[0]) != set(again[0])
    for parts in (first, again):
        seen = np.concatenate([*parts, tested])
        assert len(np.unique(seen)) == len(seen)
    assert not (game(1, 8)[1] == tested).all()
    assert not (game(1, None)[1] == game(2, None)[1]).all()


def test_twins_never_tell_on_each_other_and_each_pair_has_its_own_coin():
    """Over 200 games; pairs that are learned from are not judged. Unrelated examples may show
    both.
    """
    twins = AttackInputs(np.arange(60.0)[:, None], np.zeros((60, 1)))

    def play(seed, **options):
        options = {"train": 20, "validation": 10, "test": 45, "twins": True, **options}
        game = GameSplit({"a": (twins, twins)}, **options, seed=seed)
        learned = [part("a").inputs.examples[:, 0] for part in (game.train, game.validation)]
        shown, coins = game.judge({"a": Examples()})
        return np.concatenate(learned), shown["a"], coins

    counts = []
    for seed in range(200):
        learned, shown, coins = play(seed)
        assert len(np.unique(shown)) == 45
        assert not set(shown) & set(learned)
        counts.append(coins.sum())
    assert abs(np.mean(counts) - 22.5) < 5 * np.sqrt(45 / 4 / 200)
    _, shown, _ = play(1, train=2, validation=2, twins=False)
    assert len(np.unique(shown)) < 45
    refused("members: 60 are too few", play, 0, validation=12)
    sizes, uneven = {"train": 2, "validation": 2, "test": 4}, {"a": (twins, views_of(50)[0])}
    refused("twins: expected as many", GameSplit, uneven, **sizes, seed=0, twins=True)


def test_audits_on_one_test_part_are_kept_apart_by_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    pools = replace(gaussian_pools(), key="some pools")
    tossed = {}
    for seed in (
        0,
        1,
    ):  # the second game of the first audit has the seed of the first game of the second one
        config = replace(SMALL, same_test=True, seed=seed, restarts=1)
        audits = audit_pools(pools, config, audits=["panoramia"], targets=["leaky"])
        tossed[seed] = [one.membership for one in audits.select("panoramia")]
        assert (tossed[seed][0] == tossed[seed][1]).all()
    assert not (tossed[0][1] == tossed[1][0]).all()
