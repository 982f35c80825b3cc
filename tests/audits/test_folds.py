"""Helpers that learn members out of fold: nobody is asked about what it learned, and c_lb stays a
bound.
"""

from dataclasses import replace

import numpy as np

from paperlib.attacks.learned import BoostedTrees
from paperlib.attacks.learned.interface import AttackInputs, LossScore
from paperlib.audits.panoramia.folds import out_of_fold
from paperlib.audits.panoramia.game import AuditConfig, GameSplit
from paperlib.audits.panoramia.pools import (
    FOLDS,
    PLACEBO,
    SYNTHETIC,
    Pool,
    Pools,
    Target,
    add_helpers,
)
from paperlib.audits.panoramia.run import audit_pools
from tests.audits.samples import Examples
from tests.refusals import refused

SIZES = {"members": 300, "generated": 300}
LEARNED = 180
GAME = AuditConfig(
    train=240,
    validation=80,
    test=180,
    attacks=(BoostedTrees(rounds=15, smallest_leaf=10),),
    searches=("anytime",),
    restarts=1,
    repetitions=1,
)


def knows(rows, fold):
    """A model that answers 0 for the members it learned, and noise for everything else."""
    rng = np.random.default_rng([fold, rows.size])

    def asked_of(kind, asked):
        learned = np.isin(asked, rows) if kind == "members" else np.zeros(asked.size, dtype=bool)
        return np.where(learned, 0.0, 5 + rng.normal(size=asked.size))[:, None]

    return asked_of


def test_each_model_learns_all_other_folds_no_judged_member_and_is_asked_of_nothing_it_learned():
    for folds in (2, 3, 7):
        outputs = out_of_fold(knows, SIZES, learned=LEARNED, folds=folds, seed=0)
        assert {kind: values.shape for kind, values in outputs.items()} == dict.fromkeys(
            SIZES, (300, 1)
        )
        assert min(values.min() for values in outputs.values()) > 0
    for most, count in ((None, 135), (50, 50)):
        learned = []

        def train(rows, fold, learned=learned):
            learned.append(rows)
            return knows(rows, fold)

        out_of_fold(train, SIZES, learned=LEARNED, folds=4, most=most, seed=1)
        assert [rows.size for rows in learned] == [count] * 4
        every = np.unique(np.concatenate(learned))
        assert every.max() < LEARNED
        assert most or every.size == LEARNED


def test_a_document_is_learned_as_a_whole_or_not_at_all():
    groups = np.sort(np.random.default_rng(0).integers(0, 20, LEARNED))
    seen = []

    def train(rows, fold):
        seen.append(rows)
        return knows(rows, fold)

    out_of_fold(train, SIZES, learned=LEARNED, folds=4, groups=groups, seed=0)
    for rows in seen:
        assert not set(groups[rows]) & set(groups[np.setdiff1d(np.arange(LEARNED), rows)])
        assert 0.65 * LEARNED < rows.size < 0.85 * LEARNED


def test_the_folds_say_nothing_about_the_kind_and_each_training_moves_a_bar(monkeypatch, capsys):
    """A model that answers with its fold's number gives every kind the same shares."""
    monkeypatch.delenv("PAPERLIB_PROGRESS", raising=False)

    def train(rows, fold):
        return lambda kind, asked: np.full((asked.size, 1), fold)

    outputs = out_of_fold(train, SIZES, learned=LEARNED, folds=4, seed=2, label="training it")
    assert "training it" in capsys.readouterr().err
    counts = [np.bincount(values.ravel().astype(int)) for values in outputs.values()]
    assert all(abs(count - 75).max() <= 1 for count in counts)


def test_settings_out_of_range_are_named():
    for changes, words in (
        ({"folds": 1}, "folds: expected 2 or more"),
        ({"learned": 301}, r"learned: expected a number in \[2, 300\], got 301"),
        ({"most": -1}, "most: expected 0 or more"),
    ):
        refused(
            words,
            out_of_fold,
            knows,
            SIZES,
            **{"learned": LEARNED, "folds": 2, "seed": 0, **changes},
        )
    pool = Pool(np.zeros((4, 1)), {FOLDS.name: np.zeros((4, 1))}, {"target": np.zeros((4, 1))})
    said = "learned: expected 1 or more with the helper 'out of fold'"
    refused(said, Pools, pool, pool, None, (Target("target"),), (FOLDS,))


def test_games_train_on_learned_members_and_judge_the_others():
    members = AttackInputs(np.arange(300.0)[:, None], np.zeros((300, 1)))
    others = AttackInputs(1000 + np.arange(300.0)[:, None], np.zeros((300, 1)))
    sizes = {"train": 240, "validation": 80, "test": 180}
    for seed in range(5):
        game = GameSplit({"a": (members, others)}, **sizes, seed=seed, learned=LEARNED)
        learned = np.concatenate(
            [part("a").inputs.examples[:, 0] for part in (game.train, game.validation)]
        )
        shown, coins = game.judge({"a": Examples()})
        assert (learned[learned < 1000] < LEARNED).all()
        assert (shown["a"][coins] >= LEARNED).all()
        every = np.concatenate([learned, shown["a"]])
        assert len(np.unique(every)) == every.size
    for learned, twins, words in (
        (150, False, "learned: 150 are too few"),
        (250, False, "members: 300 are too few"),
        (LEARNED, True, "learned: expected 0 with twins"),
    ):
        refused(
            words,
            GameSplit,
            {"a": (members, others)},
            **sizes,
            seed=0,
            learned=learned,
            twins=twins,
        )


def c_lb(train, seed):
    """The baseline's bound where members and generated points are of one distribution: c is 0."""
    rng = np.random.default_rng(seed)
    pools = [
        Pool(rng.normal(size=(300, 1)), {}, {"target": rng.normal(size=(300, 1))}) for _ in range(2)
    ]
    outputs = out_of_fold(train, SIZES, learned=LEARNED, folds=3, seed=seed)
    bare = Pools(*pools, None, (Target("target", "null"),))
    pools = add_helpers(bare, {FOLDS: outputs}, learned=LEARNED, about=seed)
    return float(audit_pools(pools, replace(GAME, seed=seed)).table["c_lb"].iloc[0])


def test_the_baselines_bound_on_c_holds_and_a_helper_that_learned_the_test_breaks_it():
    """The models of the twin learn every member and are asked about them."""
    assert (
        sum(c_lb(knows, seed) > 0 for seed in range(40)) <= 7
    )  # nominal 2.5 %: 8 of 40 has p < 1e-5
    assert min(c_lb(lambda rows, fold: knows(np.arange(300), fold), seed) for seed in range(3)) > 1


def test_the_baseline_asks_the_placebo_where_the_attack_asks_the_target():
    seen = []

    class Spy:
        name = "spy"

        def fit(self, train, validation, *, seeds):
            seen.append(train.inputs.losses[0].tolist())
            return [LossScore() for _ in seeds]

    def constant(value):
        return {kind: np.full((size, 1), value) for kind, size in SIZES.items()}

    x = np.zeros((300, 1))
    pools = [Pool(x, {"synthetic": x + 1.0}, {"target": x + 9.0}) for _ in range(2)]
    bare = Pools(*pools, None, (Target("target"),), (SYNTHETIC,))
    full = add_helpers(
        bare, {FOLDS: constant(2.0), PLACEBO: constant(3.0)}, learned=LEARNED, about=0
    )
    for form, columns in (
        ("helpers", [[3.0, 1.0, 2.0], [9.0, 1.0, 2.0]]),
        ("paper", [[1.0], [9.0]]),
    ):
        seen.clear()
        audit_pools(full, replace(GAME, attacks=(Spy(),), form=form), audits=["panoramia"])
        assert seen == columns
