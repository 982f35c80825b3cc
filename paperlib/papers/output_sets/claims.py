"""Evidence on the figures of the paper, Proposition 4.1 as an audit, and what else Section 5.2
says.
"""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import logit

from paperlib.bounds import audit_one_run
from paperlib.bounds.one_run.audit import one_run_epsilon
from paperlib.bounds.output_sets.choices import selection_of
from paperlib.bounds.output_sets.level_sets import count_guesses
from paperlib.core import FloatArray, MembershipScores
from paperlib.papers.output_sets import gain
from paperlib.papers.output_sets.shapes import least_m_with_a_gap
from paperlib.papers.verdict import Estimate, Evidence


def shapes_evidence(table: pd.DataFrame, draws: int) -> list[Evidence]:
    """Figures 1, 4 and 5 from `shapes`: exact, but for the draws on which a top/bottom set was
    searched.
    """
    rows = table.set_index("pair")
    mixtures = rows.loc[["Laplace mixtures", "Gaussian mixtures"]]
    missed = (draws * mixtures["centre_missed_share"]).fillna(0).round().astype(int)
    first = {
        "Laplace intervals": Estimate(int(mixtures["intervals"].iloc[0])),
        "Gaussian intervals": Estimate(int(mixtures["intervals"].iloc[1])),
        "centre missed": {str(pair): [1.0] * n + [0.0] * (draws - n) for pair, n in missed.items()},
    }
    fourth = {
        "several intervals": _exact(rows, "intervals", "Cauchy", "F"),
        "asymmetric": _exact(rows, "asymmetric", "Cauchy", "F"),
    }
    fifth = {"asymmetric": _exact(rows, "asymmetric", "logistic", "non-central chi-squared")}
    first_worth, second_worth = (
        f"{row['top_bottom_objective']:z.3f} against {row['objective']:z.3f}"
        for row in mixtures.to_dict("records")
    )
    covered = "leaves the centre out" if mixtures["centre_missed"].all() else "covers the centre"
    note = (
        f"With known densities, the best top/bottom set {covered}: {first_worth} and "
        f"{second_worth} nats."
    )
    return [
        Evidence("output-sets-figure-01", "exact", first, note),
        Evidence("output-sets-figure-04", "exact", fourth, _whole(table, "figure04")),
        Evidence("output-sets-figure-05", "exact", fifth, _whole(table, "figure05")),
    ]


def _exact(rows: pd.DataFrame, column: str, *pairs: str) -> dict[str, Estimate]:
    return {pair: Estimate(float(rows[column][pair])) for pair in pairs}


def _whole(table: pd.DataFrame, figure: str) -> str:
    """From how many scores on the pairs of a figure have a gap where they are best guessed
    everywhere.
    """
    whole = table[(table["figure"] == figure) & (table["intervals"] == 1)]
    return " ".join(
        f"At m = {row['m']} the best set of the {row['pair']} pair is the whole support; a gap "
        f"appears from about m = {least_m_with_a_gap(row['pair'])} on."
        for row in whole.to_dict("records")
    )


def gain_evidence(over_epsilon: pd.DataFrame, over_sizes: pd.DataFrame) -> list[Evidence]:
    """Figure 2 from two tables of `gain`: readings of Algorithm 1 against its rivals, a value a
    trial.
    """
    found = []
    for method, reading in gain.READINGS.items():
        highest = dict[str, list[float]]()
        for about, one, other in (
            *gain.paired(over_epsilon, method),
            *gain.paired(over_sizes, method),
        ):
            setting = "{mechanism}, scale {scale:g}, m = {m:,}, ".format(**about)
            highest[setting + gain.NAMES[about["rival"]]] = (one - other).tolist()
        falls = dict[
            str, list[float]
        ]()  # of the gain over top/bottom, from the smaller half of sizes on
        for mechanism, part in over_sizes.groupby("mechanism", sort=False):
            wide = part.pivot(index=["m", "trial"], columns="method", values="epsilon")
            gains = (wide[method] - wide["top_bottom"]).unstack("m").to_numpy()
            half = gains.shape[1] // 2
            small, large = gains[:, :half], gains[:, gains.shape[1] - half :]
            falls[str(mechanism)] = (
                (small.mean(axis=1) - large.mean(axis=1)).tolist() if half else []
            )
        values = {"optimal highest": highest, "gain largest at small m": falls}
        found.append(Evidence("output-sets-figure-02", "draw", values, reading=reading))
    return found


def delta_evidence(frame: pd.DataFrame) -> Evidence:
    """Figure 6 from `over_delta`, methods of the paper, one value per trial; deltas share the
    scores.
    """
    falls, steps, below = (dict[str, list[float]]() for _ in range(3))
    methods = frame[frame["method"] != "optimal"]
    for (mechanism, method), part in methods.groupby(["mechanism", "method"], sort=False):
        about = f"{mechanism}, {gain.NAMES[str(method)]}, delta"
        wide = part.pivot(index="trial", columns="delta", values="epsilon")
        falls[f"{mechanism}, {gain.NAMES[str(method)]}"] = (
            wide.iloc[:, 0] - wide.iloc[:, -1]
        ).tolist()
        for small, large in pairwise(wide):
            steps[f"{about} {small:g} to {large:g}"] = (wide[small] - wide[large]).tolist()
        for delta, at in part[np.isfinite(part["exact_epsilon"])].groupby("delta"):
            below[f"{about} {delta:g}"] = (at["exact_epsilon"] - at["epsilon"]).tolist()
    values = {"falls with delta": falls, "no step rises": steps, "below theory": below}
    return Evidence("output-sets-figure-06", "draw", values)


def dpsgd_evidence(bounds: pd.DataFrame) -> Evidence:
    """Figure 3 from the bounds of `run_dpsgd`, Algorithm 1 as printed, one value per model."""
    wide = bounds.pivot(
        index=["panel", "epsilon", "seed"], columns="method", values="bound"
    ).reset_index()
    gained = wide.assign(gain=wide["printed"] - wide["top_bottom"])
    top = wide[wide["epsilon"] == wide["epsilon"].max()].set_index("seed")
    printed = {
        str(name): top.loc[top["panel"] == name, "printed"] for name in wide["panel"].unique()
    }
    few, *more = [name for name in bounds["panel"].unique() if name != "natural"]
    mean = gained.pivot_table(index="seed", columns="panel", values="gain")
    values = {
        "optimal at or above top/bottom": gained.groupby("seed")["gain"].mean().tolist(),
        "canaries above natural": {
            one: (printed[one] - printed["natural"]).tolist() for one in (few, *more)
        },
        "gain largest with few canaries": {
            f"{few} against {one}": (mean[few] - mean[one]).tolist() for one in more
        },
        "something found": top.groupby("seed")[["printed", "top_bottom"]]
        .max()
        .max(axis=1)
        .tolist(),
    }
    return Evidence("output-sets-figure-03", "model", values)


AUDITS = ("exact_test", "proposition", "whole_search", "adaptive_order")
"""Audits beside Proposition 4.1: two of a set chosen on half of the scores, two that need no half.
"""
CLOSE = 0.1
"""Nats within which bounds match."""


def proposition_41(
    correct: ArrayLike, guesses: ArrayLike, *, confidence: float = 0.95
) -> FloatArray:
    """Proposition 4.1's bound, with the share of right guesses in the place of the unknown
    accuracy.
    """
    # For one fixed set it is too high with probability (beta / 2)^4 at most, beta = 1 - confidence:
    # two deviations of half of beta each are subtracted, and the test needs one (Hoeffding).
    count = np.maximum(np.asarray(guesses, float), 1.0)
    error = np.sqrt(2 * math.log(2 / (1 - confidence)) / count)
    return np.maximum(logit(np.clip(np.asarray(correct, float) / count - error, 0.5, 1.0)), 0.0)


def most_sets(confidence: float = 0.95) -> int:
    """Number of fixed sets, each wrong with (beta / 2)^4, that Proposition 4.1 may search with
    error beta.
    """
    return math.floor(16 / (1 - confidence) ** 3 * (1 + 1e-9))


def search_whole(scores: MembershipScores, *, confidence: float = 0.95) -> float:
    """Proposition 4.1 at the best of all numbers of top and bottom scores, no scores set aside."""
    # Sound with fair coins, search included: the sets are ranks, fixed beforehand, and not too
    # many.
    values, member = scores.oriented().pooled()
    if np.unique(values).size < values.size:
        raise ValueError("scores: expected no ties")
    member = member[np.argsort(-values, kind="stable")]
    if (sets := (values.size + 1) * (values.size + 2) // 2) > most_sets(confidence):
        raise ValueError(
            f"scores: {values.size} have {sets} tops and bottoms, above {most_sets(confidence)}"
        )
    top = np.append(0, np.cumsum(member))
    bottom = np.append(0, np.cumsum(~member[::-1]))
    sizes = np.arange(values.size + 1)
    guesses = sizes[:, None] + sizes[None, :]
    bounds = proposition_41(top[:, None] + bottom[None, :], guesses, confidence=confidence)
    return float(np.where(guesses <= values.size, bounds, 0.0).max())


def proposition_rows(config: gain.GainConfig) -> pd.DataFrame:
    """Bounds of `AUDITS` on the trials of `gain`: mechanism, scale, m, trial and a column for each
    audit.
    """
    rows: list[dict[str, Any]] = []
    for mechanism, scale, m, trial in config.settings():
        first, second = gain.draw_trial(config.seed, mechanism, scale, m, trial)
        chosen = selection_of(
            first, gain.HIGHEST, total=2 * m, delta=0.0, confidence=config.confidence
        )
        counts = count_guesses(gain.CHOOSE["printed"](chosen), second)
        sides = ((one.member, one.nonmember) for one in (first, second))
        together = MembershipScores(*map(np.concatenate, zip(*sides, strict=True)))
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
    """Means over trials, and what Proposition 4.1 costs against the exact test, with its
    t-interval.
    """
    costs = rows.assign(cost=rows["exact_test"] - rows["proposition"])
    return pd.DataFrame(
        {
            **dict(zip(("mechanism", "scale"), place, strict=True)),
            **part[[*AUDITS, "cost"]].mean(),
            **{
                f"cost_{end}": gain.interval(part["cost"].to_numpy())[end]
                for end in ("low", "high")
            },
        }
        for place, part in costs.groupby(["mechanism", "scale"], sort=False)
    )


def section_52(over_epsilon: pd.DataFrame, over_sizes: pd.DataFrame, exact: float) -> pd.DataFrame:
    """What Section 5.2 says beside the order of the methods, by intervals of Algorithm 1 as
    printed.
    """
    largest = over_sizes[over_sizes["m"] == over_sizes["m"].max()]
    laplace, gaussian = (largest[largest["mechanism"] == name] for name in ("laplace", "gaussian"))
    compared = laplace[laplace["method"].isin(("printed", *gain.RIVALS))].groupby("method")[
        "epsilon"
    ]
    distances = [bounds.to_numpy() - exact for _, bounds in compared]
    gains = [one - other for _, one, other in gain.paired(gaussian, "printed")]
    spreads = [
        gain.jackknifed(one, other) for _, one, other in gain.paired(over_epsilon, "printed")
    ]
    claims = {
        f"Laplace, largest m: all bounds within {CLOSE:g} of the exact epsilon": (
            distances,
            -CLOSE,
            CLOSE,
        ),
        "Gaussian, largest m: gain over each rival above 0": (gains, 0.0, math.inf),
        "standard deviation below that of each rival": (spreads, -math.inf, 0.0),
    }
    rows: list[tuple[Any, ...]] = []
    for claim, (samples, low, high) in claims.items():
        ends = [gain.interval(values, 1 - 0.05 / len(samples)) for values in samples]
        holds = sum(low <= one["low"] and one["high"] <= high for one in ends)
        fails = sum(one["high"] < low or one["low"] > high for one in ends)
        outcome = "fails" if fails else "holds" if holds == len(ends) else "undecided"
        rows.append((claim, len(ends), holds, fails, outcome))
    return pd.DataFrame(rows, columns=["claim", "comparisons", "hold", "fail", "outcome"])
