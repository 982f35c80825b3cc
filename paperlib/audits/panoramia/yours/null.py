"""The null check: what the audit gives for a target that never saw the members it is asked about."""

from dataclasses import dataclass
from math import ceil, inf, sqrt

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from paperlib.audits.panoramia.pools import Target
from paperlib.core import FloatArray, round_down

NULL = Target("null", "null")
LIMIT = 0.1
"""Nats: a null passes where the whole interval of its mean lies within this much of 0."""


@dataclass(frozen=True)
class NullCheck:
    """Epsilon~ of a null target: one trained like the target, but never on the example it is asked about.

    Attributes:
        mean: Mean of c_plus_eps_lb - c_lb over games, not clipped, nats.
        low: Lower end of the 95 % t-interval of this mean; minus infinity after one game.
        high: Upper end of it. The games share one null target: other trainings could differ by more.
        games: Number of games.
    """

    mean: float
    low: float
    high: float
    games: int

    @property
    def passes(self) -> bool:
        """Whether the interval lies within `LIMIT` of 0."""
        return self.low >= -LIMIT and self.high <= LIMIT

    def __str__(self) -> str:
        if self.games < 2:
            return "null not checked enough: one game"
        mean = round(self.mean, 2) + 0.0  # no minus before a zero
        shown = f"null: {mean:.2f} [{round_down(self.low, 2):.2f}, {ceil(100 * self.high) / 100:.2f}]"
        if self.passes:
            return f"{shown}, passes"
        if abs(self.mean) <= LIMIT:
            return f"{shown}, not shown to pass: more games would tell"
        if self.mean > 0:
            return f"{shown}, FAILS: so much of ε~ may be no leakage"
        return f"{shown}, FAILS: the attack is weaker than the baseline, and ε~ may be too small"


def null_check(differences: FloatArray) -> NullCheck:
    """The check from c_plus_eps_lb - c_lb of the null target in each game, one or more, nats.

    >>> print(null_check(np.array([0.0, 0.02, 0.04])))
    null: 0.02 [-0.03, 0.07], passes
    """
    games = differences.size
    mean, half = float(differences.mean()), inf
    if games > 1:
        half = float(stdtrit(games - 1, 0.975) * differences.std(ddof=1) / sqrt(games))
    return NullCheck(mean, mean - half, mean + half, games)


def null_of_games(games: pd.DataFrame) -> NullCheck | None:
    """The check from a table as `TargetAudits.table` has; None without a null target in it."""
    rows = games[games["null"] & (games["audit"] == "panoramia")]
    if rows.empty:
        return None
    return null_check((rows["c_plus_eps_lb"] - rows["c_lb"]).to_numpy(dtype=np.float64))


def beside_headline(null: NullCheck | None, known_c: float | None) -> str:
    """What the headline of an audit says of its null: nothing where c is known, as no null is needed then."""
    if known_c is not None:
        return ""
    return "null not checked" if null is None else str(null)
