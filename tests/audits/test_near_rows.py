"""Rows near to each other in several features that share a coin are named; leaks are not."""

import numpy as np
import pytest

from paperlib.audits import audit_features
from paperlib.audits.features import near_rows_warnings
from paperlib.core import near_rows


def rows_of_users(seed, spread, features):
    """Features without a leak of 100 users with 10 rows each, nearly equal, and a coin each."""
    rng = np.random.default_rng([seed, 11])
    users = np.repeat(rng.normal(size=(100, features)), 10, axis=0)
    rows = users + spread * rng.normal(size=users.shape)
    return rows, np.repeat(rng.random(100) < 0.5, 10)


@pytest.mark.parametrize(
    ("spread", "features", "fewest"), [(0.05, 2, 9), (0.05, 8, 9), (0.3, 3, 8), (0.3, 8, 9)]
)
def test_near_copies_are_a_warning(spread, features, fewest):
    """Once 29 of 32 such audits of users without a leak claimed one without a word."""
    seen = 0
    for seed in range(10):
        seen += bool(near_rows_warnings("features", *rows_of_users(seed, spread, features)))
    assert seen >= fewest


def test_audit_features_asks_whether_each_row_has_its_coin_unless_units_are_named():
    rows, member = rows_of_users(0, 0.3, 3)
    text = " ".join(audit_features(rows, member).warnings)
    assert "rows that are near to each other" in text
    assert "does each row have its own coin?" in text
    units = np.repeat(np.arange(100), 10)
    assert "own coin?" not in " ".join(audit_features(rows, member, unit=units).warnings)


def epochs(rng, member):
    """Losses of each record at six epochs; those of members fall faster."""
    first, fall = rng.gamma(2, 1, member.size), rng.normal(0.3, 0.1, member.size) * (1 + member)
    steps = np.exp(-np.outer(fall, np.arange(6)))
    return -(first[:, None] * steps + 0.02 * rng.normal(size=steps.shape))


def memorised(rng, member):
    """A tight corner of members that were memorised."""
    rows = rng.normal(size=(member.size, 4))
    corner = member & (rng.random(member.size) < 0.3)
    rows[corner] = 4 + 0.1 * rng.normal(size=(corner.sum(), 4))
    return rows


LEAKS = {
    "none": lambda rng, member: rng.normal(size=(member.size, 3)),
    "a shift": lambda rng, member: rng.normal(size=(member.size, 3)) + 1.5 * member[:, None],
    "another width": lambda rng, member: (
        rng.normal(size=(member.size, 3)) * np.where(member, 0.4, 1.0)[:, None]
    ),
    "counts": lambda rng, member: rng.poisson(5 + 3 * member[:, None], (member.size, 3)) * 1.0,
    "epochs": epochs,
    "memorised": memorised,
}


def false_warnings(leak, files=12):
    warned = 0
    for seed in range(files):
        rng = np.random.default_rng([seed, 12])
        member = rng.random(int(rng.choice([100, 500]))) < rng.choice([0.3, 0.5, 0.7])
        warned += bool(near_rows_warnings("features", LEAKS[leak](rng, member), member))
    return warned


@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_is_not_taken_for_shared_coins(leak):
    assert false_warnings(leak) == 0


def test_a_check_that_takes_one_chance_for_all_rows_is_caught(monkeypatch):
    """The twin that fits no chance warns of a shift."""
    monkeypatch.setattr(near_rows, "_local_weights", lambda space, ring: np.zeros(ring.shape))
    monkeypatch.setattr(
        "paperlib.audits.features.AdditiveModel.predict_proba",
        lambda self, rows: np.full((len(rows), 2), 0.5),
    )
    assert false_warnings("a shift") > 6


def test_the_order_of_the_rows_and_equal_rows_tell_nothing():
    rng = np.random.default_rng(3)
    member = rng.random(600) < 0.5
    rows = rng.integers(0, 3, (600, 3)).astype(float)
    for order in (np.arange(600), np.argsort(member), np.lexsort([member, *rows.T])):
        assert near_rows_warnings("features", rows[order], member[order]) == ()
