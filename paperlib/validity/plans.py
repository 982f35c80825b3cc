"""Whether plans hold: what small pilots promise, against the audits that follow."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from paperlib.bounds import audit_one_run, plan_audit
from paperlib.core import MembershipScores
from paperlib.validity.mechanisms import Draw, gaussian

_SHIFTED = gaussian(1.0, 1e-5).draw  # unit normals one standard deviation apart
Plan = Callable[[MembershipScores, int, int], tuple[float, float, float]]


def planned(
    pilot: MembershipScores, m: int, seed: int, *, simulations: int = 60
) -> tuple[float, float, float]:
    """Mean bound of m examples and its 10 % and 90 % points, by `plan_audit`."""
    plan = plan_audit(m, attack=pilot, simulations=simulations, seed=seed)
    return plan.expected, plan.low, plan.high


def plan_misses(
    rule: Plan, pilot: int, m: int, pairs: int, *, draw: Draw = _SHIFTED, seed: int = 0
) -> tuple[float, float]:
    """Mean of the planned less the real bound, and the share of real bounds inside the planned interval."""
    rng = np.random.default_rng([seed, pilot, m])
    misses, inside = np.zeros(pairs), np.zeros(pairs, dtype=bool)
    for i in range(pairs):
        expected, low, high = rule(draw(rng, pilot), m, i)
        real = audit_one_run(draw(rng, m)).epsilon
        misses[i], inside[i] = expected - real, low <= real <= high
    return float(misses.mean()), float(inside.mean())


def plan_rows(pilots: Sequence[int], sizes: Sequence[int], pairs: int, *, seed: int = 0) -> pd.DataFrame:
    """`plan_misses` of `planned`, a row for each size of a pilot and of an audit."""
    rows = [(pilot, m, *plan_misses(planned, pilot, m, pairs, seed=seed)) for m in sizes for pilot in pilots]
    return pd.DataFrame(rows, columns=["pilot", "examples", "miss", "inside"])
