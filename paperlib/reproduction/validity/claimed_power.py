"""What the test of a whole curve shows beside other bounds on the same scores: its power.

``python -m paperlib.reproduction.validity.claimed_power FILE`` writes the table of the book; it
takes a quarter of an hour on one core, and needs jax_privacy.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from paperlib.bounds import audit_f_dp, audit_one_run
from paperlib.core import MembershipScores
from paperlib.reproduction.validity.claimed_levels import MECHANISMS
from paperlib.reproduction.validity.power import SHAPES, Leak

DELTA = 1e-5
EXAMPLES = (300, 1_000, 10_000)
AUDITS = 20  # of each leak and size
FIRST = 2  # audits whose bounds stand beside the means, so that a test can compute them again

Bound = Callable[[MembershipScores], float]

LEAKS: dict[str, Leak] = {
    "members N(1, 1)": SHAPES["members N(1, 1)"],
    "10 % of members memorised": SHAPES["10 % of members memorised"],
    "3 % of members memorised": SHAPES["3 % of members memorised"],
    "10 % of non-members sure": SHAPES["10 % of non-members sure"],
    "Laplace, epsilon 1": lambda rng, bits: MECHANISMS["Laplace, epsilon 1"].draw(rng, bits == 1),
}


def peer_bound(scores: MembershipScores) -> float:
    """What the f-DP auditor of jax_privacy says of Gaussian DP, at its own level, which may be
    above 5 %; nats.
    """
    from jax_privacy.auditing import CanaryScoreAuditor

    auditor = CanaryScoreAuditor(scores.member, scores.nonmember)
    return max(0.0, float(auditor.epsilon_one_run_fdp(0.05, DELTA)))


BOUNDS: dict[str, Bound] = {
    "no curve": lambda scores: audit_one_run(scores, delta=DELTA).epsilon,
    "any order": lambda scores: audit_f_dp(scores, delta=DELTA).epsilon,
    "counts fixed": lambda scores: audit_f_dp(scores, delta=DELTA, guess="both").epsilon,
}
"""Ours, by the column of the table: (epsilon, delta) alone, the test of this page, and the counts
of guesses fixed in advance, as published; the last two for a Gaussian curve.
"""
PEER = "jax_privacy"


def drawn_audits(leak: str, examples: int, audits: int) -> list[MembershipScores]:
    """Scores of so many audits with one leak, each with coins of its own."""
    drawn: list[MembershipScores] = []
    for number in range(audits):
        rng = np.random.default_rng([number, examples, *leak.encode()])
        bits = rng.integers(0, 2, examples)
        drawn.append(MembershipScores.from_labels(LEAKS[leak](rng, bits), bits))
    return drawn


def _summary(column: str, bounds: Sequence[float]) -> dict[str, float]:
    """Mean of the bounds, its standard error, and the mean of the first ones, by column."""
    values = np.array(bounds)
    return {
        column: round(float(values.mean()), 3),
        f"{column}, standard error": round(float(values.std(ddof=1) / np.sqrt(values.size)), 3),
        f"{column}, first {FIRST}": round(float(values[:FIRST].mean()), 6),
    }


def power_row(leak: str, examples: int, audits: int, bounds: dict[str, Bound]) -> dict[str, object]:
    """One row of the table: mean lower bounds on epsilon, nats, on the same scores."""
    row: dict[str, object] = {"leak": leak, "examples": examples, "audits": audits}
    scores = drawn_audits(leak, examples, audits)
    for column, bound in bounds.items():
        row |= _summary(column, [bound(one) for one in scores])
    return row


def power_table(audits: int = AUDITS, sizes: tuple[int, ...] = EXAMPLES) -> pd.DataFrame:
    """A row for each leak and size, with our bounds and that of jax_privacy."""
    row_of = partial(power_row, audits=audits, bounds={**BOUNDS, PEER: peer_bound})
    return pd.DataFrame([row_of(leak, examples) for leak in LEAKS for examples in sizes])


if __name__ == "__main__":
    power_table().to_csv(Path(sys.argv[1]), index=False)
