"""Evidence on the figures of the paper, from the tables that its notebooks show."""

from itertools import pairwise

import numpy as np
import pandas as pd

from paperlib.papers.output_sets.gain import NAMES, READINGS, paired
from paperlib.papers.output_sets.shapes import least_m_with_a_gap
from paperlib.papers.verdict import Estimate, Evidence


def shapes_evidence(table: pd.DataFrame, draws: int) -> list[Evidence]:
    """Figures 1, 4 and 5 from `shapes`: exact, but for the draws on which a top/bottom set was searched."""
    rows = table.set_index("pair")
    mixtures = rows.loc[["Laplace mixtures", "Gaussian mixtures"]]
    first = {
        "Laplace intervals": Estimate(int(mixtures["intervals"].iloc[0])),
        "Gaussian intervals": Estimate(int(mixtures["intervals"].iloc[1])),
        "centre missed": {
            str(pair): [1.0] * int(hits) + [0.0] * (draws - int(hits))
            for pair, hits in (draws * mixtures["centre_missed_share"]).fillna(0).round().items()
        },
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
        f"With the densities known the best top/bottom set {covered}: {first_worth} and {second_worth} nats."
    )
    return [
        Evidence("output-sets-figure-01", "exact", first, note),
        Evidence("output-sets-figure-04", "exact", fourth, _whole(table, "figure04")),
        Evidence("output-sets-figure-05", "exact", fifth, _whole(table, "figure05")),
    ]


def _exact(rows: pd.DataFrame, column: str, *pairs: str) -> dict[str, Estimate]:
    return {pair: Estimate(float(rows[column][pair])) for pair in pairs}


def _whole(table: pd.DataFrame, figure: str) -> str:
    """From how many scores on the pairs of a figure have a gap where they are best guessed everywhere."""
    whole = table[(table["figure"] == figure) & (table["intervals"] == 1)]
    return " ".join(
        f"At m = {row['m']} the best set of the {row['pair']} pair is the whole support; a gap opens from "
        f"about m = {least_m_with_a_gap(row['pair'])} on."
        for row in whole.to_dict("records")
    )


def gain_evidence(over_epsilon: pd.DataFrame, over_sizes: pd.DataFrame) -> list[Evidence]:
    """Figure 2 from two tables of `gain`: readings of Algorithm 1 against its rivals, a value a trial."""
    found = []
    for method, reading in READINGS.items():
        highest = {
            "{mechanism}, scale {scale:g}, m = {m:,}, ".format(**about) + NAMES[about["rival"]]: one - other
            for frame in (over_epsilon, over_sizes)
            for about, one, other in paired(frame, method)
        }
        falls = dict[str, list[float]]()  # of the gain over top/bottom, from the smaller half of sizes on
        for mechanism, part in over_sizes.groupby("mechanism", sort=False):
            wide = part.pivot(index=["m", "trial"], columns="method", values="epsilon")
            gains = (wide[method] - wide["top_bottom"]).unstack("m").to_numpy()
            half = gains.shape[1] // 2
            small, large = gains[:, :half], gains[:, gains.shape[1] - half :]
            falls[str(mechanism)] = (small.mean(axis=1) - large.mean(axis=1)).tolist() if half else []
        values = {
            "optimal highest": {name: gains.tolist() for name, gains in highest.items()},
            "gain largest at small m": falls,
        }
        found.append(Evidence("output-sets-figure-02", "draw", values, reading=reading))
    return found


def delta_evidence(frame: pd.DataFrame) -> Evidence:
    """Figure 6 from `over_delta`, methods of the paper, one value per trial; deltas share the scores."""
    falls, steps, below = (dict[str, list[float]]() for _ in range(3))
    methods = frame[frame["method"] != "optimal"]
    for (mechanism, method), part in methods.groupby(["mechanism", "method"], sort=False):
        about = f"{mechanism}, {NAMES[str(method)]}, delta"
        wide = part.pivot(index="trial", columns="delta", values="epsilon")
        falls[f"{mechanism}, {NAMES[str(method)]}"] = (wide.iloc[:, 0] - wide.iloc[:, -1]).tolist()
        for small, large in pairwise(wide):
            steps[f"{about} {small:g} to {large:g}"] = (wide[small] - wide[large]).tolist()
        for delta, at in part[np.isfinite(part["exact_epsilon"])].groupby("delta"):
            below[f"{about} {delta:g}"] = (at["exact_epsilon"] - at["epsilon"]).tolist()
    values = {"falls with delta": falls, "no step rises": steps, "below theory": below}
    return Evidence("output-sets-figure-06", "draw", values)


def dpsgd_evidence(bounds: pd.DataFrame) -> Evidence:
    """Figure 3 from the bounds of `run_dpsgd`, Algorithm 1 as printed, one value per model."""
    wide = bounds.pivot(index=["panel", "epsilon", "seed"], columns="method", values="bound").reset_index()
    gained = wide.assign(gain=wide["printed"] - wide["top_bottom"])
    top = wide[wide["epsilon"] == wide["epsilon"].max()].set_index("seed")
    printed = {str(name): top.loc[top["panel"] == name, "printed"] for name in wide["panel"].unique()}
    few, *more = [name for name in bounds["panel"].unique() if name != "natural"]
    mean = gained.pivot_table(index="seed", columns="panel", values="gain")
    values = {
        "optimal at or above top/bottom": gained.groupby("seed")["gain"].mean().tolist(),
        "canaries above natural": {
            name: (printed[name] - printed["natural"]).tolist() for name in (few, *more)
        },
        "gain largest with few canaries": {
            f"{few} against {name}": (mean[few] - mean[name]).tolist() for name in more
        },
        "something found": top.groupby("seed")[["printed", "top_bottom"]].max().max(axis=1).tolist(),
    }
    return Evidence("output-sets-figure-03", "model", values)
