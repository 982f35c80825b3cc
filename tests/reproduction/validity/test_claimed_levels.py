"""The level of the test of a claimed curve, as the book has it: counts, page, and profiles."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paperlib.core.intervals import share_interval
from paperlib.reproduction.running import find_project
from paperlib.reproduction.validity.claimed_levels import (
    ERROR,
    EXAMPLES,
    FIRST,
    MECHANISMS,
    SIMULATIONS,
    refuted_audits,
)

HERE = find_project(Path(__file__).parent)
TABLE = pd.read_csv(HERE.measured / "estimates" / "claimed_levels.csv")


def test_no_mechanism_is_refuted_more_often_than_stated():
    assert list(TABLE["mechanism"].unique()) == list(MECHANISMS)
    assert len(TABLE) == len(MECHANISMS) * len(EXAMPLES)
    assert (TABLE["audits"] == SIMULATIONS).all()
    assert (TABLE["high"] <= ERROR).all()
    for row in TABLE.to_dict("records"):
        ends = share_interval(int(row["refuted"]), int(row["audits"]))
        assert (row["low"], row["high"]) == tuple(round(end, 4) for end in ends)


@pytest.mark.parametrize("name", ["Laplace, epsilon 1", "randomized response, epsilon 1"])
def test_the_first_audits_simulated_again_are_those_of_the_table(name):
    row = TABLE[(TABLE["mechanism"] == name) & (TABLE["examples"] == EXAMPLES[0])].iloc[0]
    again = int(refuted_audits(name, EXAMPLES[0], FIRST).sum())
    assert again == row["refuted_of_first_50"] > 0


def test_the_page_shows_the_table():
    page = (HERE.root / "book" / "whole_curve.md").read_text(encoding="utf-8")
    for row in TABLE.to_dict("records"):
        assert f"{row['refuted']} [{100 * row['low']:.2f}, {100 * row['high']:.2f}]" in page
        assert f"| {row['mechanism']} |" in page


def test_the_profile_of_sampled_noise_is_that_of_its_densities():
    sigma, rate = 0.5, 0.3
    x = np.linspace(-8, 9, 100_001)
    without = np.exp(-((x / sigma) ** 2) / 2)
    without /= np.trapezoid(without, x)
    drawn = np.exp(-(((x - 1) / sigma) ** 2) / 2)
    drawn /= np.trapezoid(drawn, x)
    included = (1 - rate) * without + rate * drawn
    profile = MECHANISMS["sampled Gaussian, sigma = 0.5, q = 0.3"].profile
    for epsilon in (0.0, 0.2, 1.0, 2.0):
        odds = np.exp(epsilon)
        both = [(included, without), (without, included)]
        exact = max(np.trapezoid(np.maximum(0, a - odds * b), x) for a, b in both)
        assert profile(np.array([epsilon]))[0] == pytest.approx(exact, abs=1e-6)
