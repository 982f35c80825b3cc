"""Is the number leakage? Targets that never saw the members, and helpers that learn as much as
they.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from paperlib.attacks.learned import BoostedTrees
from paperlib.audits import audit_table
from paperlib.audits.panoramia.audit import AuditData, audit_model
from paperlib.audits.panoramia.folds import MOST, RATIO, shared_sizes, shares_of
from paperlib.audits.panoramia.pools import appended, columns, take
from paperlib.audits.panoramia.results import NullCheck
from tests.audits.samples import table
from tests.refusals import refused

QUICK = (BoostedTrees(rounds=20, smallest_leaf=10),)
SHIFT = 1.5
DIRECTIONS = 40


def world(members=1500, known=1500, seed=0):
    """Real rows are shifted along one of many directions; the mean of real rows tells a model
    which.
    """
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=DIRECTIONS)
    direction /= np.linalg.norm(direction)

    def real(count):
        return rng.normal(size=(count, DIRECTIONS)) + SHIFT * direction

    drawn = rng.normal(size=(members, DIRECTIONS))
    return real(members), drawn, real(known), real(members + known)


def train_mean(rows, seed):
    """A model that learned the mean of its rows: the loss of a row is lower the more it lies along
    it.
    """
    mean = rows.mean(axis=0)
    return lambda asked: -(asked @ mean)


def train_leaky(rows, seed):
    """The same, and the loss of its rows is lower still."""
    plain, known = train_mean(rows, seed), {row.tobytes() for row in rows}
    return lambda asked: plain(asked) - 6.0 * np.array([row.tobytes() in known for row in asked])


def data_of(members, drawn, known, **changes):
    """Data of a user, whose attacks see nothing of the examples themselves."""
    batches = {"members": (members,), "generated": (drawn,), "known": (known,)}
    return AuditData(
        **batches, attacks=QUICK, examples=lambda rows: np.zeros((len(rows), 1)), **changes
    )


OPTIONS = {"repetitions": 4, "restarts": 1}


def difference(audit):
    """Mean of c_plus_eps_lb - c_lb of the user's target."""
    rows = audit.games[~audit.games["null"]]
    return float((rows["c_plus_eps_lb"] - rows["c_lb"]).mean())


def test_a_target_that_learned_other_real_data_shows_leakage_only_to_helpers_that_know_nothing():
    members, drawn, known, others = world()
    target = train_mean(others, 0)
    ignorant = audit_model(target, data_of(members, drawn, known), **OPTIONS)
    assert difference(ignorant) > 0.8
    matched = audit_model(target, data_of(members, drawn, known, train=train_mean), **OPTIONS)
    assert difference(matched) < 0.25
    assert matched.result.c_lb > 0.5
    assert not matched.result.warnings or "times as many" not in " ".join(matched.result.warnings)


def test_a_leaky_target_is_still_found_and_its_null_passes():
    members, drawn, known, _ = world()
    target = train_leaky(np.concatenate([members, known]), 0)
    audit = audit_model(target, data_of(members, drawn, known), train_again=train_leaky, **OPTIONS)
    assert difference(audit) > 0.8
    assert abs(audit.null.mean) < 0.25
    assert audit.null.games == 4
    assert sorted(set(audit.games["target"])) == ["null", "yours"]
    assert audit.headline.split("; null")[1] == str(audit.null).removeprefix("null")
    assert str(audit).splitlines()[0] == audit.headline
    assert audit.result.claim in audit._repr_html_()


def test_the_null_finds_helpers_that_are_weaker_than_the_target():
    """Helpers learn nothing, and the null learns all: a broken twin of the default."""
    members, drawn, known, _ = world()
    calls = []

    def train(rows, seed):
        calls.append(seed)
        return train_mean(rows if len(calls) > 8 else np.zeros_like(rows), seed)

    audit = audit_model(
        train_mean(members, 0), data_of(members, drawn, known), train_again=train, **OPTIONS
    )
    assert len(calls) == 12
    assert not audit.null.passes
    assert audit.null.mean > 0.5
    assert "FAILS: so much of ε~ may be no leakage" in audit.headline


def test_no_helper_learns_a_member_of_the_tests_and_no_null_the_example_it_is_asked_about():
    members, drawn, known, _ = world(members=300, known=200)
    learned = []

    def train(rows, seed):
        seen = {row.tobytes() for row in rows}
        learned.append(seen)

        def model(asked):
            assert not any(row.tobytes() in seen for row in asked)
            return asked[:, 0]

        return model

    data = data_of(members, drawn, known, nonmembers=(drawn[:200],), train=train)
    pools = data.pools(lambda rows: rows[:, 0], null=True)
    judged = [row.tobytes() for row in members[pools.learned :]]
    helpers, nulls = learned[:8], learned[8:]
    assert len(judged) == data.shares.judged == 100
    assert not any(row in seen for seen in helpers for row in judged)
    assert all(sum(row in seen for seen in nulls) == 3 for row in judged)
    for seen in learned:
        assert {row.tobytes() for row in known} <= seen


def test_where_c_is_known_more_is_judged_and_nothing_is_said_of_a_null():
    members, drawn, known, _ = world(members=400, known=200)
    calls = []

    def train(rows, seed):
        calls.append(seed)
        return train_mean(rows, seed)

    data = data_of(members, drawn, known)
    audit = audit_model(train_mean(members, 0), data, train_again=train, known_c=9.0, **OPTIONS)
    assert (audit.null, len(calls)) == (None, 8)
    assert "null" not in audit.headline
    assert audit.config.test > MOST * 400
    assert not any("times as many" in text for text in audit.result.warnings)


def test_as_many_are_judged_as_leave_helpers_enough_but_not_too_few():
    for members in (30, 100, 600, 6_000, 50_000):
        shares = shares_of(members, pool=members, folds=4)
        assert shares.judged + shares.learned == members
        assert min(members // 3, 100) <= shares.judged <= MOST * members
        assert shares.ratio >= RATIO or shares.judged <= 100
        assert (shares.warnings == ()) == (shares.ratio >= RATIO)
        sizes = shared_sizes(shares, members)
        assert (sizes["train"] + sizes["validation"]) // 2 == shares.learned
        one_more = shares_of(members, pool=members, folds=4, judged=(shares.judged + 1) / members)
        assert one_more.ratio < RATIO or shares.judged == int(MOST * members)
    members, drawn, known, _ = world(members=300, known=100)
    data = data_of(members, drawn, known, train=train_mean)
    audit = audit_model(train_mean(members, 0), data, repetitions=1, restarts=1)
    words = "helpers learn 1.5 times as many members as the 100 that are judged"
    assert any(words in text for text in audit.result.warnings)


def test_bad_trainings_and_too_few_members_give_one_line():
    members, drawn, known, _ = world(members=100, known=100)
    data = data_of(members, drawn, known)
    name = r"train_again \(out of fold\)"
    few = replace(data, members=(members[:20],))
    target = train_mean(members, 0)
    for given, train, words in (
        (
            data,
            lambda rows, seed: None,
            f"{name}: expected a function that returns losses, got NoneType",
        ),
        (data, lambda rows, seed: lambda asked: [1.0], f"{name}: expected one loss for each of 26"),
        (few, train_mean, r"members: expected 30 or more.*got 20"),
        (replace(data, judged=1.5), train_mean, "judged"),
    ):
        refused(words, audit_model, target, given, train_again=train)
    refused("folds: expected 2 or more", replace, data, folds=1)
    refused("train: expected a function that trains the null target", data.pools, target, null=True)


def test_the_null_in_words():
    for values, words, passes in (
        ([0.02, 0.02, 0.02], "null: 0.02 [0.02, 0.02], passes", True),
        ([0.0, 0.02, 0.04], "null: 0.02 [-0.03, 0.07], passes", True),
        ([0.3, 0.31, 0.32], "FAILS: so much of ε~ may be no leakage", False),
        ([-0.3, -0.31, -0.32], "FAILS: the attack is weaker than the baseline", False),
        ([-0.3, 0.3], "not shown to pass: more games would tell", False),
        ([0.0], "null not checked enough: one game", False),
    ):
        check = NullCheck.of(np.array(values))
        assert words in str(check)
        assert check.passes == passes
    assert "[-0.02, 0.04]" in str(NullCheck(0.01, -0.0101, 0.0301, 3)), (
        "never narrower than the interval"
    )


def test_a_table_is_trained_again_without_a_label_or_generator():
    rows, drawn, shown = table(400), pd.concat([table(400, seed=9), table(400, seed=8)]), []

    def again(given, seed):
        shown.append(list(given.columns))
        return lambda asked: np.random.default_rng(seed).normal(size=len(asked))

    audit = audit_table(again(rows, 0), rows, generated=drawn, train_again=again, **OPTIONS)
    assert shown == [list(rows.columns)] * 13
    assert audit.null.games == 4
    assert not any("without a label" in text for text in audit.result.warnings)


def test_batches_of_tables_arrays_and_lists():
    batch = (pd.DataFrame({"a": [1, 2, 3]}), np.array([4, 5, 6]), ["x", "y", "z"])
    twice = appended(batch, take(batch, np.array([2, 0])))
    assert twice[0]["a"].tolist() == [1, 2, 3, 3, 1]
    assert list(twice[0].index) == [0, 1, 2, 3, 4]
    assert twice[1].tolist() == [4, 5, 6, 6, 4]
    assert twice[2] == ["x", "y", "z", "z", "x"]
    assert columns("target", [[1.0, 2.0], [3.0, 4.0]], 2).shape == (2, 2)
