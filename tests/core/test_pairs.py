"""Coins for pairs of records: one of the two is trained on and forgotten, the other never seen."""

import numpy as np
import pytest

from paperlib.core import Coins, toss_coins
from paperlib.core.coins import toss_pairs
from tests.refusals import refused

CLASSES = [number % 3 for number in range(100)]


def test_pairs_are_alike_and_one_of_each_is_trained_on_and_forgotten():
    coins = toss_pairs(100, alike=CLASSES, seed=0)
    assert (len(coins.ids), coins.records, coins.forget) == (98, 100, True)  # 34, 33, 33
    classes = np.array([CLASSES[int(name)] for name in coins.ids])
    assert (classes[::2] == classes[1::2]).all()
    assert (coins.included[::2] != coins.included[1::2]).all()
    assert len(set(coins.ids)) == 98
    training, forgotten = coins.training(range(100)), coins.forgotten(range(100))
    assert (int(training.sum()), int(forgotten.sum())) == (51, 49)
    assert (training | ~forgotten).all()
    by_id = dict(zip(coins.ids, coins.included.tolist(), strict=True))
    assert [by_id.get(str(row), False) for row in range(100)] == forgotten.tolist()


def fair(tosses: list[Coins]) -> bool:
    """Whether every coin and every pair of neighbours falls as fair, independent coins do."""
    heads = np.array([coins.included[::2] for coins in tosses])
    number = len(tosses)
    most = 4.5 * np.sqrt(number) / 2
    equal = (heads[:, 1:] == heads[:, :-1]).sum(axis=0)
    by_name = np.zeros(40)
    for coins in tosses:
        by_name[[int(name) for name in np.array(coins.ids)[coins.included]]] += 1
    counts = np.concatenate([heads.sum(axis=0), equal, by_name])
    return bool((np.abs(counts - number / 2) < most).all())


def test_the_coins_of_pairs_are_fair_and_a_biased_one_is_seen():
    tosses = [toss_pairs(40, seed=seed) for seed in range(1000)]
    assert fair(tosses)
    for coins in tosses:
        first = [int(name) for name in coins.ids[::2]]
        second = [int(name) for name in coins.ids[1::2]]
        coins.included.flags.writeable = True
        coins.included[::2] = np.array(first) < np.array(second)  # the earlier row is trained on
        coins.included[1::2] = ~coins.included[::2]
    assert not fair(tosses)


def test_a_share_of_the_records_is_drawn_and_the_rest_is_trained_on():
    coins = toss_pairs(100, fraction=0.2, seed=3)
    assert (len(coins.ids), int(coins.training(range(100)).sum())) == (20, 90)
    assert toss_pairs(8).included.sum() == 4


def test_a_sealed_file_of_pairs_comes_back_and_a_changed_one_is_refused(tmp_path):
    coins = toss_pairs([f"r{number}" for number in range(20)], seed=1, column="record")
    coins.save(tmp_path / "coins.json")
    loaded = Coins.load(tmp_path / "coins.json")
    assert (loaded.commitment, loaded.forget, loaded.ids) == (coins.commitment, True, coins.ids)
    assert "10 coins for 20 records, a coin for each pair" in loaded.seal
    text = (tmp_path / "coins.json").read_text().replace('"forget": true', '"forget": false')
    (tmp_path / "changed.json").write_text(text)
    refused("was changed after it was sealed", Coins.load, tmp_path / "changed.json")
    content = {**vars(coins)}
    content.pop("commitment", None)
    refused("of each pair one", Coins, **{**content, "included": np.ones(20, dtype=bool)})


def test_files_of_single_records_are_sealed_as_before():
    assert "forget" not in toss_coins(4, seed=0).text


def test_bad_input_is_refused():
    refused("100 ids", toss_pairs, [*range(100), 3])
    refused("are empty", toss_pairs, ["a", None])
    refused("alike: expected a value for each of 4", toss_pairs, 4, alike=[1, 2])
    refused("hold no pair", toss_pairs, 4, alike=[1, 2, 3, 4])
    refused("hold no pair", toss_pairs, 1)
    refused("fraction", toss_pairs, 10, fraction=1.5)
    refused("nothing is forgotten", toss_coins(4, seed=0).forgotten, range(4))
    refused("which record of each pair", toss_pairs(4).check_alone, "randomized", None)
    refused("records with a coin are missing", toss_pairs(4).forgotten, range(2))


@pytest.mark.parametrize("fraction", [0.1, 0.5, 1.0])
def test_names_do_not_move_the_coins(fraction):
    numbers = toss_pairs(30, seed=4, fraction=fraction)
    letters = toss_pairs([f"x{row}" for row in range(30)], seed=4, fraction=fraction)
    assert [f"x{name}" for name in numbers.ids] == list(letters.ids)
    assert numbers.included.tolist() == letters.included.tolist()
