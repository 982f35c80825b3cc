"""The order of rows says nothing: every public function that takes rows gives the same answer for
each order, or answers of the same law where a seed plays a game.

Orders that know the truth, within tied values above all, must not help: an audit that may stop
inside a block of equal values would read membership off the order. Entries whose ties are broken
by place are the broken twins, which the same orders must catch.
"""

import inspect

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from paperlib import audits, bounds, core
from tests.audits.ordered_rows import ENTRIES, NO_ROWS, STEP, Case, Entry, plain

EXACT = [name for name, entry in ENTRIES.items() if not entry.plays]
PLAYING = [name for name, entry in ENTRIES.items() if entry.plays]
WITH_TWIN = [name for name in EXACT if ENTRIES[name].has_twin]
PLAYING_WITH_TWIN = [name for name in PLAYING if ENTRIES[name].has_twin]
SELDOM = 1e-3
"""Chance that a sound entry fails, were its audits independent; the seeds are fixed."""


def orders(case: Case) -> dict[str, NDArray[np.int64]]:
    """Orders of the rows: two know the truth, two know it among equal values alone."""
    by_truth = np.argsort(~case.truth, kind="stable")
    return {
        "true first": by_truth,
        "true last": by_truth[::-1],
        "shuffled": np.random.default_rng(1).permutation(by_truth.size),
        "by value, true first among equal ones": np.lexsort((~case.truth, case.values)),
        "by value, true last among equal ones": np.lexsort((case.truth, case.values)),
    }


def answers(case: Case) -> list[str]:
    """All that an entry says in each order, that of the draw first."""
    as_drawn = np.arange(case.truth.size)
    return [repr(plain(case.audit(order))) for order in (as_drawn, *orders(case).values())]


KNOWING = ("true first", "by value, true first among equal ones", "true last")


def claims(entry: Entry, step: float, seeds: int, names: tuple[str, ...]) -> list[bool]:
    """Whether audits without a leak claim one, in orders of these names."""
    assert entry.bound is not None
    claimed: list[bool] = []
    for seed in range(seeds):
        case = entry.draw(seed, False, step)
        case_orders = orders(case)
        for name in names:
            bound = entry.bound(case.audit(case_orders[name]))
            claimed.append(bound > 0)
    return claimed


def most_by_chance(audits_made: int) -> int:
    """Claims at level 0.05 that so many independent audits exceed with probability `SELDOM`."""
    return int(binom.isf(SELDOM, audits_made, 0.05))


def public_functions() -> set[str]:
    """The functions of the two facades that audit, and of tossing coins."""
    names = {"toss_coins"}
    for facade in (audits, bounds):
        names |= {name for name in dir(facade) if inspect.isfunction(getattr(facade, name))}
    assert inspect.isfunction(core.toss_coins)
    return names


def without_an_entry(entries: set[str]) -> set[str]:
    """Public functions that neither an entry nor the list of those without rows names."""
    named = {name.partition(",")[0] for name in entries} | set(NO_ROWS)
    return public_functions() - named


def test_every_public_function_that_takes_rows_is_an_entry():
    assert not without_an_entry(set(ENTRIES))
    assert not {name.partition(",")[0] for name in ENTRIES} & set(NO_ROWS)
    assert without_an_entry(set(ENTRIES) - {"audit_release"}) == {"audit_release"}


@pytest.mark.parametrize("name", list(ENTRIES))
def test_half_of_the_values_are_tied(name):
    values = ENTRIES[name].draw(0, False, 0.0).values
    _, times = np.unique(values, return_counts=True)
    assert 2 * times[times > 1].sum() >= values.size - 1


@pytest.mark.parametrize("name", EXACT)
def test_no_order_of_the_rows_changes_an_answer(name):
    entry = ENTRIES[name]
    leaking = entry.draw(0, True, 0.0)
    assert len(set(answers(leaking))) == 1
    if entry.bound is not None:  # or saying nothing would pass
        assert entry.bound(leaking.audit(np.arange(leaking.truth.size))) > 0
    if not entry.is_slow:
        assert len(set(answers(entry.draw(0, False, 0.0)))) == 1


@pytest.mark.parametrize("name", WITH_TWIN)
def test_ties_that_are_broken_by_place_change_an_answer(name):
    assert len(set(answers(ENTRIES[name].draw(0, True, STEP)))) > 1


@pytest.mark.parametrize("name", PLAYING)
def test_orders_that_know_the_truth_claim_no_leak(name):
    entry = ENTRIES[name]
    claimed = claims(entry, 0.0, entry.seeds, KNOWING)
    assert sum(claimed) <= most_by_chance(len(claimed))
    leaking = entry.draw(0, True, 0.0)
    assert entry.bound is not None
    assert entry.bound(leaking.audit(orders(leaking)["shuffled"])) > 0


@pytest.mark.parametrize("name", PLAYING_WITH_TWIN)
def test_ties_that_are_broken_by_place_claim_a_leak(name):
    claimed = claims(ENTRIES[name], STEP, 3, KNOWING[:2])
    assert sum(claimed) > most_by_chance(len(claimed))
