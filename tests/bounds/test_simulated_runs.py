"""Audits of several runs that are simulated side by side show a leak where the search of all runs
does, one audit after the other.
"""

import numpy as np
import pytest

from paperlib.bounds.one_run.anytime import AnytimeCounts
from paperlib.bounds.one_run.combine import search_runs
from paperlib.bounds.one_run.search import Hypothesis
from paperlib.bounds.one_run.simulated_runs import SimulatedRuns

AUDITS = range(25)
ERROR = 0.05


def drawn_runs(sizes, digits):
    """Scores of runs of these sizes, highest first, rounded to so many digits."""
    rng = np.random.default_rng([*sizes, digits])
    return [-np.sort(-rng.normal(size=size).round(digits)) for size in sizes]


def shown(values, exposed, delta, *, together):
    """Which simulated audits show a leak: side by side, or as the search of all runs does."""
    total = sum(map(len, values))

    def is_leak(runs):
        return search_runs(runs, None, Hypothesis(delta, ERROR)).epsilon > 0

    test = AnytimeCounts(ERROR, total * delta, 2, total) if together else None
    audits = SimulatedRuns(values, 1, is_leak, test)
    flags = [audits.shown(exposed, range(number, number + 1)) for number in AUDITS]
    if together:  # however many are played at once
        assert audits.shown(exposed, AUDITS) == sum(flags)
    return flags


@pytest.mark.parametrize("digits", [12, 1, 0])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
@pytest.mark.parametrize(
    ("sizes", "exposed"), [((120, 120, 120), 14), ((40, 90, 130), 14), ((60,), 8)]
)
def test_side_by_side_the_same_audits_show_a_leak(sizes, exposed, delta, digits):
    values = drawn_runs(sizes, digits)
    flags = shown(values, exposed, delta, together=True)
    assert flags == shown(values, exposed, delta, together=False)
    if delta == 0:  # neither all audits are compared nor none
        assert 0 < sum(flags) < len(flags)


def test_audits_that_know_no_ties_are_caught():
    values = drawn_runs((120, 120, 120), 0)
    untied = [run - 1e-6 * np.arange(run.size) for run in values]
    expected = shown(values, 14, 0.0, together=False)
    assert shown(untied, 14, 0.0, together=True) != expected
