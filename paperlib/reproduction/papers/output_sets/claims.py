"""Evidence on the figures of the paper, Proposition 4.1 as an audit, and what else Section 5.2
says.
"""

import math
from collections.abc import Sequence
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
from paperlib.reproduction.papers.output_sets import gain
from paperlib.reproduction.papers.output_sets.shapes import least_m_with_a_gap
from paperlib.reproduction.papers.verdict import Estimate, Evidence


def shapes_evidence(table: pd.DataFrame, draws: int) -> list[Evidence]:
    """Figures 1, 4 and 5 from `shapes`, a row per pair of densities: exact, but for the draws on
    which a top/bottom set was searched.

    ``draws`` is their number; of each the evidence says whether the set leaves out the centre.
    """
    rows = table.set_index("pair")
    mixtures = rows.loc[["Laplace mixtures", "Gaussian mixtures"]]
    missed = (draws * mixtures["centre_missed_share"]).fillna(0).round().astype(int)
    by_pair = {str(pair): [1.0] * count + [0.0] * (draws - count) for pair, count in missed.items()}
    first = {
        "Laplace intervals": Estimate(int(mixtures["intervals"].iloc[0])),
        "Gaussian intervals": Estimate(int(mixtures["intervals"].iloc[1])),
        "centre missed": by_pair,
    }
    fourth = {
        "several intervals": _exact(rows, "intervals", "Cauchy", "F"),
        "asymmetric": _exact(rows, "asymmetric", "Cauchy", "F"),
    }
    fifth = {"asymmetric": _exact(rows, "asymmetric", "logistic", "non-central chi-squared")}
    worth = [
        f"{row['top_bottom_objective']:z.3f} against {row['objective']:z.3f}"
        for row in mixtures.to_dict("records")
    ]
    covered = "leaves the centre out" if mixtures["centre_missed"].all() else "covers the centre"
    note = f"With known densities, the best top/bottom set {covered}: {' and '.join(worth)} nats."
    return [
        Evidence(target="output-sets-figure-01", unit="exact", values=first, note=note),
        Evidence(
            target="output-sets-figure-04",
            unit="exact",
            values=fourth,
            note=_whole(table, "figure04"),
        ),
        Evidence(
            target="output-sets-figure-05",
            unit="exact",
            values=fifth,
            note=_whole(table, "figure05"),
        ),
    ]


def _exact(rows: pd.DataFrame, column: str, *pairs: str) -> dict[str, Estimate]:
    """The number that a column has for each pair."""
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
    """Figure 2: each reading of Algorithm 1 against its rivals, nats, a value for each trial.

    Args:
        over_epsilon: Rows of `gain` at one m over scales of the noise.
        over_sizes: Rows of `gain` over sizes m.
    """
    return [
        Evidence(
            target="output-sets-figure-02",
            unit="draw",
            values={
                "optimal highest": _gains_by_setting(over_epsilon, over_sizes, method),
                "gain largest at small m": _falls_by_mechanism(over_sizes, method),
                "significant at large m": _gaussian_gains(over_sizes, method),
                "smaller deviation": _narrower(over_epsilon, method),
            },
            reading=reading,
        )
        for method, reading in gain.READINGS.items()
    ]


def _gains_by_setting(
    over_epsilon: pd.DataFrame, over_sizes: pd.DataFrame, method: str
) -> dict[str, list[float]]:
    """Gain of each trial over each rival, by mechanism, scale, m and rival."""
    gains: dict[str, list[float]] = {}
    for table in (over_epsilon, over_sizes):
        for setting, ours, rival in gain.paired(table, method):
            words = "{mechanism}, scale {scale:g}, m = {m:,}, ".format(**setting)
            gains[words + gain.NAMES[setting["rival"]]] = (ours - rival).tolist()
    return gains


def _gaussian_gains(over_sizes: pd.DataFrame, method: str) -> dict[str, list[float]]:
    """Gain of each trial over each rival with Gaussian noise at the largest m; no rival where there
    is one size.
    """
    gaussian = over_sizes[over_sizes["mechanism"] == "gaussian"]
    largest = gaussian[gaussian["m"] == gaussian["m"].max()]
    if gaussian["m"].nunique() < 2:
        return {}
    no_rows = largest.iloc[:0]
    return _gains_by_setting(largest, no_rows, method)


def _narrower(over_epsilon: pd.DataFrame, method: str) -> dict[str, list[float]]:
    """Jackknife values of the log of each rival's standard deviation over that of Algorithm 1; no
    setting where either hardly varies.
    """
    values: dict[str, list[float]] = {}
    for setting, ours, rival in gain.paired(over_epsilon, method):
        narrower = -gain.jackknifed(ours, rival)
        if np.isfinite(narrower).all():
            words = "{mechanism}, scale {scale:g}, m = {m:,}, ".format(**setting)
            values[words + gain.NAMES[setting["rival"]]] = narrower.tolist()
    return values


def _falls_by_mechanism(over_sizes: pd.DataFrame, method: str) -> dict[str, list[float]]:
    """By mechanism, how much more a method gains over top/bottom at small sizes than at large ones.

    Returns:
        A value per trial: the mean gain in nats over the smaller half of the sizes less that over
            the larger half; none where there is one size.
    """
    falls: dict[str, list[float]] = {}
    for mechanism, rows in over_sizes.groupby("mechanism", sort=False):
        wide = rows.pivot(index=["m", "trial"], columns="method", values="epsilon")
        gains = (wide[method] - wide["top_bottom"]).unstack("m").to_numpy()
        half = gains.shape[1] // 2
        fall: list[float] = []
        if half:
            small = gains[:, :half].mean(axis=1)
            large = gains[:, gains.shape[1] - half :].mean(axis=1)
            fall = (small - large).tolist()
        falls[str(mechanism)] = fall
    return falls


def delta_evidence(frame: pd.DataFrame) -> Evidence:
    """Figure 6 from the rows of `over_delta`, methods of the paper: differences of bounds, nats, a
    value for each trial, in which all deltas share the scores.
    """
    falls: dict[str, list[float]] = {}
    steps: dict[str, list[float]] = {}
    below: dict[str, list[float]] = {}
    methods = frame[frame["method"] != "optimal"]
    for (mechanism, method), rows in methods.groupby(["mechanism", "method"], sort=False):
        name = f"{mechanism}, {gain.NAMES[str(method)]}"
        wide = rows.pivot(index="trial", columns="delta", values="epsilon")
        falls[name] = (wide.iloc[:, 0] - wide.iloc[:, -1]).tolist()
        for small, large in pairwise(wide):
            steps[f"{name}, delta {small:g} to {large:g}"] = (wide[small] - wide[large]).tolist()
        with_exact = rows[np.isfinite(rows["exact_epsilon"])]
        for delta, trials in with_exact.groupby("delta"):
            room = trials["exact_epsilon"] - trials["epsilon"]
            below[f"{name}, delta {delta:g}"] = room.tolist()
    values = {"falls with delta": falls, "no step rises": steps, "below theory": below}
    return Evidence(target="output-sets-figure-06", unit="draw", values=values)


def dpsgd_evidence(bounds: pd.DataFrame, readings: pd.DataFrame | None = None) -> list[Evidence]:
    """Figure 3 from the bounds of `run_dpsgd`, one value per model.

    Algorithm 1 is judged as printed and, where ``readings`` holds the bounds of its other
    readings, in these; epsilon = infinity, which is no guarantee, is left out of means.
    """
    together = bounds if readings is None else pd.concat([bounds, readings], ignore_index=True)
    measured = set(together["method"])
    return [
        _dpsgd_in_reading(together, method, reading)
        for method, reading in gain.READINGS.items()
        if method in measured
    ]


def _dpsgd_in_reading(bounds: pd.DataFrame, method: str, reading: str) -> Evidence:
    """Figure 3 by one reading of Algorithm 1, which is the method of this name: differences of
    bounds, nats, a value for each model or, where models of all settings count, for each seed.
    """
    wide = bounds.pivot(
        index=["panel", "epsilon", "seed"], columns="method", values="bound"
    ).reset_index()
    gained = wide.assign(gain=wide[method] - wide["top_bottom"])
    gained = gained[np.isfinite(gained["epsilon"])]
    weakest = wide[wide["epsilon"] == wide["epsilon"].max()].set_index("seed")  # noise, or none
    ours = {
        str(panel): weakest.loc[weakest["panel"] == panel, method]
        for panel in wide["panel"].unique()
    }
    canaries = [name for name in bounds["panel"].unique() if name != "natural"]
    fewest, *others = canaries  # panels come in the order of their numbers of canaries
    mean = gained.pivot_table(index="seed", columns="panel", values="gain")
    largest = weakest.groupby("seed")[[method, "top_bottom"]].max().max(axis=1)
    falls: dict[str, list[float]] = {}
    for panel in others:
        fall = mean[fewest] - mean[panel] if len(mean) else pd.Series(dtype=float)
        falls[f"{fewest} against {panel}"] = fall.tolist()
    values = {
        "optimal at or above top/bottom": gained.groupby("seed")["gain"].mean().tolist(),
        "canaries above natural": {
            panel: (ours[panel] - ours["natural"]).tolist() for panel in canaries
        },
        "gain largest with few canaries": falls,
        "something found": largest.tolist(),
    }
    return Evidence(target="output-sets-figure-03", unit="model", values=values, reading=reading)


AUDITS = ("exact_test", "proposition", "whole_search", "adaptive_order")
"""Audits beside Proposition 4.1: two of a set chosen on half of the scores, two that need no half.
"""
CLOSE = 0.1
"""Nats within which bounds match."""


def proposition_41(
    correct: ArrayLike, guesses: ArrayLike, *, confidence: float = 0.95
) -> FloatArray:
    """Proposition 4.1's bound on epsilon, nats, with the share of right guesses in the place of the
    unknown accuracy; 0 without a guess.

    ``correct`` and ``guesses`` are right and all guesses, of shapes that go together; the bounds
    have their shape. ``confidence`` is in (0, 1).
    """
    # For one fixed set it is too high with probability (beta / 2)^4 at most, beta = 1 - confidence:
    # two deviations of half of beta each are subtracted, and the test needs one (Hoeffding).
    count = np.maximum(np.asarray(guesses, float), 1.0)
    error = np.sqrt(2 * math.log(2 / (1 - confidence)) / count)
    return np.maximum(logit(np.clip(np.asarray(correct, float) / count - error, 0.5, 1.0)), 0.0)


def most_sets(confidence: float = 0.95) -> int:
    """Number of fixed sets, each wrong with probability (beta / 2)^4, that Proposition 4.1 may
    search with error beta = 1 - confidence.
    """
    # n (beta / 2)^4 = beta. Without the last factor rounding would take one off a whole number.
    return math.floor(16 / (1 - confidence) ** 3 * (1 + 1e-9))


def search_whole(scores: MembershipScores, *, confidence: float = 0.95) -> float:
    """Proposition 4.1, nats, at the best of all numbers of top and bottom scores, no scores set
    aside.

    Guarantee:
        With fair coins, above epsilon with probability at most 1 - confidence, search included.

    Raises:
        ValueError: Ties, or more scores than Proposition 4.1 may search over; see `most_sets`.
    """
    # Sound with fair coins, search included: the sets are ranks, fixed beforehand, and not too
    # many.
    values, member = scores.oriented().pooled()
    if np.unique(values).size < values.size:
        raise ValueError("scores: expected no ties")
    member = member[np.argsort(-values, kind="stable")]
    sets = (values.size + 1) * (values.size + 2) // 2
    if sets > most_sets(confidence):
        raise ValueError(
            f"scores: {values.size} have {sets} tops and bottoms, above {most_sets(confidence)}"
        )
    # Right guesses among so many highest scores ("member") and lowest ones ("nonmember").
    top = np.append(0, np.cumsum(member))
    bottom = np.append(0, np.cumsum(~member[::-1]))
    sizes = np.arange(values.size + 1)
    # A row for each number of highest scores, a column for each number of lowest ones. Those that
    # overlap, above all scores together, do not count.
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
        selection = selection_of(
            first, gain.HIGHEST, total=2 * m, delta=0.0, confidence=config.confidence
        )
        counts = count_guesses(gain.CHOOSE["printed"](selection), second)
        together = MembershipScores(
            np.concatenate([first.member, second.member]),
            np.concatenate([first.nonmember, second.nonmember]),
        )
        bounds = {
            "exact_test": one_run_epsilon(*counts, confidence=config.confidence),
            "proposition": proposition_41(*counts, confidence=config.confidence),
            "whole_search": search_whole(together, confidence=config.confidence),
            "adaptive_order": audit_one_run(together, confidence=config.confidence).epsilon,
        }
        setting = {"mechanism": mechanism, "scale": scale, "m": m, "trial": trial}
        rows.append(setting | {name: float(bound) for name, bound in bounds.items()})
    return pd.DataFrame(rows)


def proposition_means(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over the trials of `proposition_rows`, nats, a row for each mechanism and scale: each
    of `AUDITS`, and the cost of Proposition 4.1 against the exact test, with its t-interval.
    """
    costs = rows.assign(cost=rows["exact_test"] - rows["proposition"])
    means: list[dict[str, Any]] = []
    for (mechanism, scale), trials in costs.groupby(["mechanism", "scale"], sort=False):
        ends = gain.interval(trials["cost"].to_numpy())
        means.append(
            {
                "mechanism": mechanism,
                "scale": scale,
                **trials[[*AUDITS, "cost"]].mean(),
                "cost_low": ends["low"],
                "cost_high": ends["high"],
            }
        )
    return pd.DataFrame(means)


def section_52(over_epsilon: pd.DataFrame, over_sizes: pd.DataFrame, exact: float) -> pd.DataFrame:
    """What Section 5.2 says beside the order of the methods, by intervals of Algorithm 1 as
    printed: a row per claim.

    Args:
        over_epsilon: Bounds at one m over scales of the noise, as `gain` returns them.
        over_sizes: The same over sizes m.
        exact: Epsilon of the Laplace mechanism, nats.
    """
    largest = over_sizes[over_sizes["m"] == over_sizes["m"].max()]
    laplace = largest[largest["mechanism"] == "laplace"]
    gaussian = largest[largest["mechanism"] == "gaussian"]
    of_the_paper = laplace[laplace["method"].isin(("printed", *gain.RIVALS))]
    by_method = of_the_paper.groupby("method")["epsilon"]
    distances = [bounds.to_numpy() - exact for _, bounds in by_method]
    gains = [ours - rival for _, ours, rival in gain.paired(gaussian, "printed")]
    spreads = [
        gain.jackknifed(ours, rival) for _, ours, rival in gain.paired(over_epsilon, "printed")
    ]
    rows = [
        _claim_row(
            f"Laplace, largest m: all bounds within {CLOSE:g} of the exact epsilon",
            distances,
            at_least=-CLOSE,
            at_most=CLOSE,
        ),
        _claim_row("Gaussian, largest m: gain over each rival above 0", gains, at_least=0.0),
        _claim_row("standard deviation below that of each rival", spreads, at_most=0.0),
    ]
    return pd.DataFrame(rows)


def _claim_row(
    claim: str,
    samples: Sequence[FloatArray],
    *,
    at_least: float = -math.inf,
    at_most: float = math.inf,
) -> dict[str, Any]:
    """A row on a claim: of how many samples the interval of the mean lies in the claimed range
    (hold), or outside it (fail), and the outcome.

    The intervals share an error of 5 percent. A claim fails where one is outside, and holds where
    all are inside.
    """
    intervals = [gain.interval(values, 1 - 0.05 / len(samples)) for values in samples]
    inside = [at_least <= ends["low"] and ends["high"] <= at_most for ends in intervals]
    outside = [ends["high"] < at_least or ends["low"] > at_most for ends in intervals]
    outcome = "undecided"
    if any(outside):
        outcome = "fails"
    elif all(inside):
        outcome = "holds"
    return {
        "claim": claim,
        "comparisons": len(intervals),
        "hold": sum(inside),
        "fail": sum(outside),
        "outcome": outcome,
    }
