"""Sides whose tokens are alike and stand in another order are told apart; sides of one law are
not.
"""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binom, mannwhitneyu

from paperlib.audits.language.blind import BLIND_LEVEL, blind_table, sides_p_value
from paperlib.audits.language.token_order import frame_tokens, order_features

ORDER = "the order of tokens"
MEMBER = np.arange(120) < 60
COLON, LINE_END, OPENS, CLOSES = 20, 21, 22, 23  # tokens that every text has


def values(rng, most):
    """One to ``most`` tokens of a field, of numbers from 100 on."""
    return rng.integers(100, 180, rng.integers(1, most + 1)).tolist()


def fields(rng, keys, most=4):
    """A text of fields: each key, a colon, its values and the end of a line."""
    text = []
    for key in keys:
        text += [key, COLON, *values(rng, most), LINE_END]
    return text


def turns(rng, roles):
    """A chat: the mark of each role, and what it says."""
    text = []
    for role in roles:
        text += [OPENS, role, CLOSES, *values(rng, 20)]
    return text


# What makes a text of a side, and the numbers of keys or roles of each side, in its order.
FORMS = {
    "fields": (fields, (1, 2, 3), (2, 1, 3)),
    "keys in the middle": (fields, (1, 2, 3, 4, 5, 6), (1, 2, 4, 3, 5, 6)),
    "turns": (turns, (1, 2, 3, 2, 3), (2, 1, 3, 2, 3)),
    "templates": (turns, (1, 2, 3, 4), (1, 3, 2, 4)),
}


def both_sides(make, of_members, of_others, seed):
    rng = np.random.default_rng(seed)
    return [make(rng, of_members if is_member else of_others) for is_member in MEMBER]


@pytest.mark.parametrize(("make", "order", "other"), FORMS.values(), ids=FORMS)
def test_another_order_of_the_same_tokens_sets_the_sides_apart(make, order, other):
    table = blind_table(both_sides(make, order, other, 0), MEMBER, {}).set_index("signal")
    assert table.index[table["apart"]].tolist() == [ORDER]
    assert table.loc[ORDER, "auc"] > 0.95
    alike = blind_table(both_sides(make, order, order, 0), MEMBER, {})
    assert not alike["apart"].any()


def test_the_test_of_order_keeps_its_level_on_sides_of_one_law():
    trials, alarms = 24, 0
    for seed in range(trials):
        make, order, other = list(FORMS.values())[seed % len(FORMS)]
        rng = np.random.default_rng(seed)
        texts = [make(rng, order if rng.random() < 0.5 else other) for _ in MEMBER]
        alarms += blind_table(texts, MEMBER, {}, seed=seed)["apart"].any()
    assert alarms <= binom.isf(1e-6, trials, BLIND_LEVEL)


def test_a_few_texts_of_one_side_that_stand_out_are_seen_where_ranks_hardly_move():
    rng = np.random.default_rng(0)
    numbers = rng.random(200)
    member = np.arange(200) % 2 == 0
    numbers[member & (np.arange(200) < 32)] = 2.0
    ranks = mannwhitneyu(numbers[member], numbers[~member]).pvalue
    assert sides_p_value(numbers, member) < 1e-3 < 1e-2 < ranks
    assert sides_p_value(-numbers, member) == pytest.approx(sides_p_value(numbers, member))
    assert sides_p_value(np.ones(200), member) == 1
    assert sides_p_value(np.arange(6.0), np.arange(6) < 3) <= 0.2 + 1e-12


@pytest.mark.parametrize("equal", [1, 15])
def test_p_values_are_small_as_seldom_as_they_say_on_sides_by_chance(equal):
    rng, trials = np.random.default_rng(equal), 600
    numbers = np.sort(rng.random(90)) // (equal / 90)  # blocks of about so many equal ones
    p_values = [sides_p_value(numbers, rng.permutation(90) < 40) for _ in range(trials)]
    for level in (0.01, 0.05, 0.2):
        assert np.sum(np.array(p_values) <= level) <= binom.isf(1e-6, trials, level)


def test_features_are_those_of_a_text_whatever_the_others_but_for_the_frame():
    texts = [["a", "b", 7, "c"], ["a", "b", 8, "c"], ["b", 9, "a", "c"], ["x"]]
    assert frame_tokens(texts) == {"a", "b", "c"}
    dense = order_features(texts).toarray().astype(bool)
    assert (dense[:, dense.all(axis=0)].shape[1], dense.sum(axis=0).min()) == (1, 2)
    np.testing.assert_array_equal(dense[0], dense[1])
    shared = [int((dense[i] & dense[j]).sum()) for i, j in combinations(range(4), 2)]
    assert shared[0] > shared[1] > shared[2] == 1
    distinct = [[number] for number in range(40)]
    assert order_features(distinct).shape == (40, 1)
    assert not blind_table(distinct, np.arange(40) < 20, {})["apart"].any()
