"""However many looks there are, a claim that holds on its limit is called wrong in at most 5 %
of all procedures.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import binomtest, t

from paperlib.reproduction.papers.verdict.contrasts import Compared, Joined, contrast_of
from paperlib.reproduction.papers.verdict.evidence import Term, error_of_look, rules

SIZES = (5, 10, 20, 40, 80, 160)  # repetitions at each look
TRIALS = 20_000
TERM = Term(name="on the limit", role="claimed", at_least=0.0, at_most=float("inf"), measure="")


@cache
def statistics() -> np.ndarray:
    """t statistics against the true mean at each look, shape (trials, looks); later looks keep the
    repetitions of earlier ones.
    """
    draws = np.random.default_rng(0).standard_normal((TRIALS, SIZES[-1]))
    by_look = []
    for size in SIZES:
        sample = draws[:, :size]
        by_look.append(sample.mean(1) / (sample.std(1, ddof=1) / np.sqrt(size)))
    return np.stack(by_look, axis=1)


def called_wrong(looks: int, error_at: Callable[[int], float]) -> tuple[float, float]:
    """Clopper-Pearson interval, at 99 %, of the share of procedures whose two-sided interval misses
    the true mean at any of their looks.
    """
    quantiles = [t.isf(error_at(look) / 2, size - 1) for look, size in enumerate(SIZES[:looks], 1)]
    wrong = (np.abs(statistics()[:, :looks]) > quantiles).any(axis=1).sum()
    interval = binomtest(int(wrong), TRIALS).proportion_ci(0.99)
    return interval.low, interval.high


@pytest.mark.parametrize("looks", range(1, 7))
def test_all_looks_together_spend_at_most_5_percent(looks):
    assert called_wrong(looks, error_of_look)[1] < 0.05


@pytest.mark.parametrize("looks", range(2, 7))
def test_5_percent_at_each_look_and_a_share_of_the_looks_so_far_spend_more(looks):
    assert called_wrong(looks, lambda look: 0.05)[0] > 0.05
    assert called_wrong(looks, lambda look: 0.05 / look)[0] > 0.05


def test_the_interval_of_a_look_is_the_one_that_was_simulated():
    values = np.random.default_rng(1).standard_normal(20)
    for look in range(1, 7):
        contrast = contrast_of(Compared(TERM, "", values.tolist()), error_of_look(look))
        half = t.isf(error_of_look(look) / 2, 19) * values.std(ddof=1) / np.sqrt(20)
        assert (contrast.high - contrast.low) / 2 == pytest.approx(half)


def test_a_rule_spends_the_share_of_its_look_and_rows_of_the_same_runs_have_as_many():
    for rule in rules().values():
        assert rule.error == 0.05 / 2**rule.looks
    together = ("table-07", "table-08", "table-10", "figure-05")
    assert {rules()[f"panoramia-{item}"].looks for item in together} == {2}
    # One public model has all the identifiers that there are, so that no look can follow.
    public = rules()["nid-table-01"].on("paper's scale")
    assert (public.error, public.runs) == (0.05, 1)


LARGEST = replace(TERM, at_least=float("-inf"), at_most=1.0, how="largest")


def missed(strategies: int, models: int, *, simultaneous: bool) -> float:
    """How often the interval of the largest of equal means lies beyond it."""
    rng, wrong, trials = np.random.default_rng(0), 0, 25
    for _ in range(trials):
        values = rng.standard_normal((strategies, models))
        case = Compared(LARGEST, "", Joined([list(row) for row in values]))
        contrast = contrast_of(case, 0.05)
        low, high = contrast.low, contrast.high
        if not simultaneous:  # the broken twin: bootstrap quantiles of the largest mean itself
            drawn = rng.integers(0, models, (400, strategies, models))
            means = np.take_along_axis(values[None], drawn, 2).mean(2).max(1)
            low, high = np.quantile(means, [0.025, 0.975])
        wrong += low > 0 or high < 0
    return wrong / trials


def test_the_interval_of_the_largest_mean_holds_where_all_means_are_equal():
    assert missed(12, 5, simultaneous=True) <= 0.05
    assert missed(12, 5, simultaneous=False) > 0.9


def test_the_largest_mean_is_decided_by_one_interval():
    low, high = [0.5, 0.6, 0.55, 0.4, 0.5], [2.0, 2.1, 1.9, 2.0, 2.05]
    for samples, inside, outside in (
        ([low, low], True, False),
        ([low, high], False, True),
        ([[0.9, 1.2], low], False, False),
        ([[0.9], low], False, False),
        ([[], low], False, False),
    ):
        contrast = contrast_of(Compared(LARGEST, "", Joined(samples)), 0.025)
        assert (contrast.inside, contrast.outside) == (inside, outside), samples
