"""Coins are fair, independent and sealed, and scores are joined to them by id."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from paperlib.core import Coins, MembershipScores, toss_coins
from paperlib.core.coins import toss_pairs
from paperlib.io import open_records
from paperlib.reading import read_scores
from paperlib.words.coins import one_example, seed_warnings
from tests.refusals import refused


def odd_shares(included, chosen, fraction):
    """What fair coins and a uniform choice seldom show: a share more than 5 standard deviations
    off.

    ``included`` and ``chosen`` have shape (tosses, records); a coin counts where its record was
    chosen.
    """
    wrong = []

    def check(what, hits, of, chance):
        if (np.abs(hits - of * chance) > 5 * np.sqrt(of * chance * (1 - chance)) + 1e-9).any():
            wrong.append(what)

    heads = included & chosen
    check("a coin", heads.sum(), chosen.sum(), 0.5)
    check("the coin of a record", heads.sum(0), chosen.sum(0), 0.5)
    both = chosen[:, 1:] & chosen[:, :-1]
    check(
        "a coin and the next",
        (both & (included[:, 1:] == included[:, :-1])).sum(0),
        both.sum(0),
        0.5,
    )
    if fraction < 1:
        check("which records have a coin", chosen.sum(0), len(chosen), fraction)
        check("which records have a coin, by the coin", heads.sum(0), len(chosen), fraction / 2)
    return wrong


def tosses(fraction, seeds=1500, records=40):
    included = np.zeros((seeds, records), dtype=bool)
    chosen = np.zeros((seeds, records), dtype=bool)
    for seed in range(seeds):
        coins = toss_coins(records, seed=seed, fraction=fraction)
        at = [int(one) for one in coins.ids]
        included[seed, at], chosen[seed, at] = coins.included, True
    return included, chosen


@pytest.mark.parametrize("fraction", [1.0, 0.3])
def test_coins_are_fair_and_independent_of_records_neighbours_and_choice(fraction):
    included, chosen = tosses(fraction)
    assert (chosen.sum(1) == round(fraction * chosen.shape[1])).all()  # exact, not on average
    assert odd_shares(included, chosen, fraction) == []


def test_a_biased_coin_an_alternating_one_and_a_choice_by_order_or_by_coin_are_seen():
    rng = np.random.default_rng(0)
    fair, everyone = rng.random((1500, 40)) < 0.5, np.ones((1500, 40), dtype=bool)
    assert odd_shares(fair, everyone, 1.0) == []
    assert "a coin" in odd_shares(fair & (rng.random(fair.shape) < 0.9), everyone, 1.0)
    alternate = (rng.integers(0, 2, (1500, 1)) + np.arange(40)) % 2 == 1
    assert odd_shares(alternate, everyone, 1.0) == ["a coin and the next"]
    first = np.broadcast_to(np.arange(40) < 12, fair.shape)
    assert odd_shares(fair, first, 0.3)[0] == "which records have a coin"
    keys = rng.random(fair.shape) - 0.1 * fair
    assert "a coin" in odd_shares(fair, np.argsort(np.argsort(keys, axis=1), axis=1) < 12, 0.3)


def test_the_names_of_records_do_not_move_their_coins_and_the_system_s_randomness_does(monkeypatch):
    one, other = toss_coins(["x", "y", "z"], seed=7), toss_coins([30, 10, 20], seed=7)
    assert one.included.tolist() == other.included.tolist()
    words = np.array([2, 7, 1, 6], dtype="<u8").tobytes()
    monkeypatch.setattr("secrets.token_bytes", lambda size: words[:size])
    assert toss_coins([*"abcd"]).included.tolist() == [False, True, True, False]
    monkeypatch.undo()
    first, second = toss_coins(np.int64(256)), toss_coins(256)
    assert first.included.tolist() != second.included.tolist()
    assert (first.seed, seed_warnings(first)) == (None, ())
    assert "whoever knows the seed knows the coins" in seed_warnings(toss_coins(3, seed=5))[0]


def test_a_unit_has_one_coin_and_what_has_none_is_trained_on():
    users = ["a", "b", "a", "c", "b", "d", "e", "f"]
    coins = toss_coins(users, unit="user", fraction=0.5, seed=1)
    assert (len(coins.ids), coins.records, coins.column) == (3, 6, "user")
    training = coins.training(users)
    by_id = dict(zip(coins.ids, coins.included, strict=True))
    assert training.tolist() == [by_id.get(user, True) for user in users]
    assert 0 < training.sum() < len(users)
    refused("of 3 records with a coin are missing, such as", coins.training, ["x", "y"])


def test_scores_are_joined_by_id_and_never_by_position():
    rng = np.random.default_rng(0)
    coins = toss_coins([f"r{at}" for at in range(300)], seed=3)
    scores = rng.normal(coins.included * 1.0, 1)
    order = rng.permutation(300)
    expected = MembershipScores.from_labels(scores, coins.included, higher_means_member=True)
    ids = [coins.ids[at] for at in order]
    frame = pd.DataFrame({"score": scores[order], "id": ids})
    for by_id in (dict(zip(ids, scores[order], strict=True)), frame, pd.concat([frame, frame[:5]])):
        joined = coins.scores(by_id, kind="scores")
        assert joined.member.tolist() == expected.member.tolist()
        assert joined.nonmember.tolist() == expected.nonmember.tolist()
    assert not coins.scores(frame, kind="losses").higher_means_member
    pairs = coins.join(ids, np.column_stack([scores[order], order]))
    assert pairs[:, 1].tolist() == list(range(300))


def test_the_values_of_a_unit_are_averaged():
    coins = toss_coins(["a", "b", "c"], unit="user", seed=2)
    frame = pd.DataFrame({"user": ["c", "a", "b", "a"], "loss": [7.0, 1.0, 5.0, 3.0]})
    assert coins.values(frame).tolist() == [2.0, 5.0, 7.0]


COINS = toss_coins(["a", "b", "c", "d"], seed=0)


def test_scores_that_do_not_fit_the_coins_are_refused():
    for by_id, message in (
        (
            {"a": 1, "b": 2, "c": 3},
            "1 of 4 records with a coin are missing, such as 'd'; an audit that",
        ),
        ({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6}, "2 of 6 ids have no coin, such as 'e'"),
        ({"a": 1, "b": 2, "c": 3, "d": float("nan")}, "values: 1 of 4 values are NaN"),
        ({"a": 1, "b": 2, "c": 3, "": 4}, "ids: 1 are empty"),
        (
            pd.DataFrame({"id": [*"abcda"], "s": [1, 2, 3, 4, 5]}),
            "1 values are a second, different one of",
        ),
        (pd.DataFrame({"name": [*"abcd"], "s": [1, 2, 3, 4]}), "a DataFrame with column 'id'"),
        (pd.DataFrame({"id": [*"abcd"], "s": 1, "t": 2}), "expected one score for each id"),
        (
            pd.DataFrame({"id": [*"abcd"], "s": 1, "member": 1}),
            "by_id: 'member' says who is a member",
        ),
        (pd.DataFrame({"id": [*"abcd"], "s": [*"wxyz"]}), "by_id: expected numbers"),
        ({"a": 1, "b": 2, "c": 3, "d": 1j}, "values: expected numbers, a row"),
        ({"a": 1, "b": 2, "c": 3, "d": pd.NA}, "values: expected numbers, a row"),
        ({"a": "1", "b": "2", "c": "3", "d": ""}, "values: expected numbers, a row"),
        ({"a": 1, "b": 2, "c": 3, "d": 10**400}, r"values: expected numbers up to 1\.8e\+308"),
        ([1, 2, 3, 4], "expected a mapping from ids"),
    ):
        refused(message, COINS.scores, by_id, kind="scores")


def test_what_has_no_coin_of_its_own_is_refused():
    refused(
        "3 records have 2 ids; two rows of one record must share a coin",
        toss_coins,
        ["a", "b", "a"],
    )
    refused("1 are empty .first in row 2", toss_coins, ["a", None])
    refused("1 are empty .first in row 2", toss_coins, pd.Series(["a", pd.NA], dtype="string"))
    for ids, given in (
        (pd.DataFrame({"id": ["a"]}), "DataFrame"),
        ("data", "str"),
        ({"a", "b"}, "set"),
    ):
        refused(f"list of names, or a table's column, got a {given}", toss_coins, ids)
    refused("2 of 4 values are NaN", COINS.join, [*"abcd"], np.ma.masked_greater([1.0, 2, 3, 4], 2))
    refused("there are no records", toss_coins, [])
    refused("expected a number in", toss_coins, 3, fraction=0.0)
    refused("0.1 of 3 records is none", toss_coins, 3, fraction=0.1)
    refused("copies", toss_coins, 3, copies=-1)


def test_infinite_scores_keep_their_place():
    coins = toss_coins([*"abcd"], seed=0)
    assert coins.join([*"badc"], [np.inf, 1.0, -np.inf, 2.0]).tolist() == [1, np.inf, 2, -np.inf]
    scores = coins.scores({"a": 1.0, "b": np.inf, "c": 2.0, "d": -np.inf}, kind="scores")
    assert sorted([*scores.member, *scores.nonmember]) == [-np.inf, 1, 2, np.inf]
    units = toss_coins([*"aabb"], seed=0, unit="user")
    assert units.join([*"aabb"], [1.0, np.inf, 2.0, 4.0]).tolist() == [np.inf, 3.0]
    refused("hold values of inf and of -inf", units.join, [*"aabb"], [-np.inf, np.inf, 2.0, 4.0])
    refused("1 of 4 values are NaN", coins.join, [*"abcd"], [1.0, np.nan, np.inf, 4.0])


def test_coins_of_canaries_say_how_many_records_one_example_is(tmp_path):
    assert one_example(toss_coins(3)) == ""
    assert "copies" not in toss_coins(3)._content()  # files of records have the hash that they had
    coins = toss_coins(3, copies=4, seed=0)
    assert "4 records that come and go together" in one_example(coins)
    assert "3 coins for 3 canaries" in coins.seal
    coins.save(tmp_path / "a.json")
    assert one_example(Coins.load(tmp_path / "a.json")) == one_example(coins)
    text = (tmp_path / "a.json").read_text()
    (tmp_path / "b.json").write_text(text.replace('"copies": 4', '"copies": 1'))
    refused("was changed after it was sealed", Coins.load, tmp_path / "b.json")


def test_a_sealed_file_is_read_back_and_never_overwritten(tmp_path):
    path = tmp_path / "train.coins.json"
    coins = toss_coins(["a", "é", "c"], unit="user", fraction=0.7, seed=4)
    coins.save(path)
    assert path.stat().st_mode & 0o077 == 0
    for again in (Coins.load(path), Coins.load(path)):  # opened twice is harmless
        assert again.commitment == coins.commitment == json.loads(path.read_text())["hash"]
        assert (again.ids, again.included.tolist()) == (coins.ids, coins.included.tolist())
        assert (again.unit, again.records, again.seed) == ("user", 3, 4)
    refused(r"train\.coins\.json: exists already", coins.save, path)


def test_a_coins_file_that_was_edited_is_refused(tmp_path):
    path = tmp_path / "a.json"
    COINS.save(path)
    content = json.loads(path.read_text())
    said = {"version": "has version 2; this paperlib reads 1", "format": "is no coins file"}
    changes = {
        "coins": "0000",
        "ids": [*"abcx"],
        "salt": "0",
        "sealed": "2001-01-01",
        "seed": 1,
        "more": 1,
    }
    for name, value in {**changes, "hash": "0", "version": 2, "format": "other"}.items():
        path.write_text(json.dumps({**content, name: value}))
        refused(said.get(name, "was changed after it was sealed"), Coins.load, path)
    path.write_text("id,score\n1,2\n")
    refused("is no coins file", Coins.load, path)


def test_the_commitment_binds_ids_and_coins_and_without_the_salt_tells_nothing():
    one, other = toss_coins(["a", "b"], seed=0), toss_coins(["a", "b"], seed=0)
    assert one.salt != other.salt
    assert (
        one.commitment != other.commitment
    )  # of the same coins: guessing them does not find the hash
    assert len(bytes.fromhex(one.salt)) == 32
    assert one.salt not in repr(one)


def scored(tmp_path, **columns):
    pd.DataFrame(columns).to_csv(tmp_path / "scores.csv", index=False)
    return tmp_path / "scores.csv"


def test_a_file_of_scores_is_joined_to_coins(tmp_path):
    ids, loss = [*"dbca"], [4.0, 2.0, 3.0, 1.0]
    expected = COINS.scores(dict(zip(ids, loss, strict=True)), kind="losses")
    member = [dict(zip(COINS.ids, COINS.included, strict=True))[one] for one in ids]
    for more in ({}, {"member": member}, {"group": [*"ggff"]}):
        path = scored(tmp_path, loss=loss, id=ids, **more)
        read = read_scores(path, coins=COINS, group_column="group" if "group" in more else None)
        assert read.scores.member.tolist() == expected.member.tolist()
        names = np.array([*"abcd"])
        assert read.ids.tolist() == [*names[COINS.included], *names[~COINS.included]]
        assert COINS.seal in read.source
    groups = dict(zip(read.ids, read.groups, strict=True))
    assert groups == {"d": "g", "b": "g", "c": "f", "a": "f"}


def test_a_file_of_scores_that_contradicts_the_coins_is_refused(tmp_path):
    for columns, options, message in (
        (
            {"id": [*"abc"], "loss": [1, 2, 3]},
            {},
            "of 4 records with a coin are missing, such as 'd'",
        ),
        (
            {"name": [*"abcd"], "loss": range(4)},
            {},
            "no column 'id'; the coins need the id of each score",
        ),
        (
            {"id": [*"abcd"], "loss": range(4), "member": 1},
            {},
            "fell on the other side, but column 'member'",
        ),
        (
            {"id": [*"abcd"], "loss": range(4), "in_train": 1, "split": "train"},
            {},
            "but column 'in_train'",
        ),
        (
            {"id": [*"abcd"], "loss": range(4)},
            {"unit_column": "id"},
            "coins: they tell who is a member and",
        ),
    ):
        refused(message, read_scores, scored(tmp_path, **columns), coins=COINS, **options)


def test_ids_of_other_types_in_parquet_are_joined_as_they_were_tossed(tmp_path):
    days = pd.date_range("2026-01-01", periods=30, tz="UTC")
    for ids in (
        pd.array(range(30), pd.ArrowDtype(pa.decimal128(38, 0))),
        days,
        pd.array(range(30), "Int64"),
    ):
        pd.DataFrame({"id": ids, "loss": np.arange(30.0)}).to_parquet(tmp_path / "a.parquet")
        coins = toss_coins(open_records(str(tmp_path / "a.parquet")).cells("id"), seed=0)
        assert len(read_scores(tmp_path / "a.parquet", coins=coins).scores) == 30


def test_chats_of_one_content_with_keys_in_another_order_are_one_record():
    turn = {"role": "user", "content": "Where is it?"}
    chats = [{"messages": [turn]}, {"messages": [{"role": "user", "content": "Here."}]}]
    again = {"messages": [dict(reversed(turn.items()))]}
    for toss in (toss_coins, toss_pairs):
        refused("ids: two records hold the same with keys in another order", toss, [*chats, again])
    coins = toss_coins(chats, seed=0)
    # No score of it is taken for another record's: it has no coin.
    refused("ids have no coin", coins.join, [again, chats[1]], [0.0, 1.0])
    assert coins.join(chats[::-1], [0.0, 1.0]).tolist() == [1.0, 0.0]
