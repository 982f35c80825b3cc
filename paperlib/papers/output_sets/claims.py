"""Proposition 4.1 as an audit, and what else Section 5.2 says, judged by intervals."""

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import logit

from paperlib.bounds import audit_one_run
from paperlib.bounds.one_run.audit import one_run_epsilon
from paperlib.bounds.output_sets.level_sets import count_guesses
from paperlib.bounds.output_sets.selection import selection_of
from paperlib.core import FloatArray, MembershipScores
from paperlib.papers.output_sets.gain import (
    CHOOSE,
    HIGHEST,
    RIVALS,
    GainConfig,
    draw_trial,
    interval,
    jackknifed,
    paired,
)

AUDITS = ("exact_test", "proposition", "whole_search", "adaptive_order")
"""Audits beside Proposition 4.1: two of a set chosen on half of the scores, two that need no half."""
CLOSE = 0.1
"""Nats within which bounds match."""


def proposition_41(correct: ArrayLike, guesses: ArrayLike, *, confidence: float = 0.95) -> FloatArray:
    """Proposition 4.1's bound, with the share of right guesses in the place of the unknown accuracy."""
    # For one fixed set it is too high with probability (beta / 2)^4 at most, beta = 1 - confidence: two
    # deviations of half of beta each are subtracted, and the test needs one (Hoeffding).
    count = np.maximum(np.asarray(guesses, float), 1.0)
    error = np.sqrt(2 * math.log(2 / (1 - confidence)) / count)
    return np.maximum(logit(np.clip(np.asarray(correct, float) / count - error, 0.5, 1.0)), 0.0)


def most_sets(confidence: float = 0.95) -> int:
    """Number of fixed sets, each wrong with (beta / 2)^4, that Proposition 4.1 may search with error beta."""
    return math.floor(16 / (1 - confidence) ** 3 * (1 + 1e-9))


def search_whole(scores: MembershipScores, *, confidence: float = 0.95) -> float:
    """Proposition 4.1 at the best of all numbers of top and bottom scores, no scores set aside."""
    # Sound with fair coins, search included: the sets are ranks, fixed beforehand, and not too many.
    values, member = scores.oriented().pooled()
    if np.unique(values).size < values.size:
        raise ValueError("scores: expected no ties")
    member = member[np.argsort(-values, kind="stable")]
    sets = (values.size + 1) * (values.size + 2) // 2
    if sets > most_sets(confidence):
        raise ValueError(f"scores: {values.size} have {sets} tops and bottoms, above {most_sets(confidence)}")
    top = np.append(0, np.cumsum(member))
    bottom = np.append(0, np.cumsum(~member[::-1]))
    sizes = np.arange(values.size + 1)
    guesses = sizes[:, None] + sizes[None, :]
    bounds = proposition_41(top[:, None] + bottom[None, :], guesses, confidence=confidence)
    return float(np.where(guesses <= values.size, bounds, 0.0).max())


def proposition_rows(config: GainConfig) -> pd.DataFrame:
    """Bounds of `AUDITS` on the trials of `gain`: mechanism, scale, m, trial and a column for each audit."""
    rows: list[dict[str, Any]] = []
    for mechanism, scale, m, trial in config.settings():
        first, second = draw_trial(config.seed, mechanism, scale, m, trial)
        chosen = selection_of(first, HIGHEST, total=2 * m, delta=0.0, confidence=config.confidence)
        counts = count_guesses(CHOOSE["printed"](chosen), second)
        together = MembershipScores(
            np.concatenate([first.member, second.member]), np.concatenate([first.nonmember, second.nonmember])
        )
        bounds = {
            "exact_test": one_run_epsilon(*counts, confidence=config.confidence),
            "proposition": proposition_41(*counts, confidence=config.confidence),
            "whole_search": search_whole(together, confidence=config.confidence),
            "adaptive_order": audit_one_run(together, confidence=config.confidence).epsilon,
        }
        about = {"mechanism": mechanism, "scale": scale, "m": m, "trial": trial}
        rows.append(about | {name: float(bound) for name, bound in bounds.items()})
    return pd.DataFrame(rows)


def proposition_means(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over trials, and what Proposition 4.1 costs against the exact test, with its t-interval."""
    costs = rows.assign(cost=rows["exact_test"] - rows["proposition"])
    return pd.DataFrame(
        {
            **dict(zip(("mechanism", "scale"), place, strict=True)),
            **part[[*AUDITS, "cost"]].mean(),
            **{f"cost_{end}": interval(part["cost"].to_numpy())[end] for end in ("low", "high")},
        }
        for place, part in costs.groupby(["mechanism", "scale"], sort=False)
    )


def section_52(over_epsilon: pd.DataFrame, over_sizes: pd.DataFrame, exact: float) -> pd.DataFrame:
    """What Section 5.2 says beside the order of the methods, by intervals of Algorithm 1 as printed."""
    largest = over_sizes[over_sizes["m"] == over_sizes["m"].max()]
    laplace, gaussian = (largest[largest["mechanism"] == name] for name in ("laplace", "gaussian"))
    compared = laplace[laplace["method"].isin(("printed", *RIVALS))].groupby("method")["epsilon"]
    claims = {
        f"Laplace, largest m: all bounds within {CLOSE:g} of the exact epsilon": (
            [bounds.to_numpy() - exact for _, bounds in compared],
            -CLOSE,
            CLOSE,
        ),
        "Gaussian, largest m: gain over each rival above 0": (
            [one - other for _, one, other in paired(gaussian, "printed")],
            0.0,
            math.inf,
        ),
        "standard deviation below that of each rival": (
            [jackknifed(one, other) for _, one, other in paired(over_epsilon, "printed")],
            -math.inf,
            0.0,
        ),
    }
    rows: list[dict[str, Any]] = []
    for claim, (samples, low, high) in claims.items():
        ends = [interval(values, 1 - 0.05 / len(samples)) for values in samples]
        holds = sum(low <= one["low"] and one["high"] <= high for one in ends)
        fails = sum(one["high"] < low or one["low"] > high for one in ends)
        outcome = "fails" if fails else "holds" if holds == len(ends) else "undecided"
        rows.append(
            {"claim": claim, "comparisons": len(ends), "hold": holds, "fail": fails, "outcome": outcome}
        )
    return pd.DataFrame(rows)
