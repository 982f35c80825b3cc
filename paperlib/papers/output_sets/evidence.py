"""Evidence on the figures of the paper, from the tables that its notebooks show."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from paperlib.papers.output_sets.dpsgd import by_method
from paperlib.papers.output_sets.figures import NAMES, PAIRS
from paperlib.papers.output_sets.gain import paired
from paperlib.papers.verdict import Estimate, Evidence


def shapes_evidence(table: pd.DataFrame, draws: int) -> list[Evidence]:
    """Figures 1, 4 and 5 from `shapes`: exact, but for the draws on which a top/bottom set was searched."""
    rows = table.set_index("panel").to_dict("index")
    missed = {
        PAIRS[name]: np.repeat([1.0, 0.0], _counts(rows[name]["centre_missed_share"], draws)).tolist()
        for name in ("laplace", "gaussian")
    }
    first = {
        "Laplace intervals": Estimate(rows["laplace"]["intervals"]),
        "Gaussian intervals": Estimate(rows["gaussian"]["intervals"]),
        "centre missed": missed,
    }
    fourth = {
        "several intervals": _exact(rows, "intervals", "cauchy", "f"),
        "asymmetric": _exact(rows, "asymmetric", "cauchy", "f"),
    }
    fifth = {"asymmetric": _exact(rows, "asymmetric", "logistic", "chi_squared")}
    numbered = (("01", first), ("04", fourth), ("05", fifth))
    return [Evidence(f"output-sets-figure-{number}", "exact", values) for number, values in numbered]


def _counts(share: float, draws: int) -> list[int]:
    hits = round(share * draws) if draws else 0
    return [hits, draws - hits]


def _exact(rows: Mapping[Any, Any], column: str, *names: str) -> dict[str, Estimate]:
    return {PAIRS[name]: Estimate(float(rows[name][column])) for name in names}


def gain_evidence(over_epsilon: pd.DataFrame, over_sizes: pd.DataFrame) -> Evidence:
    """Figure 2 from two tables of `gain`, Algorithm 1 as printed against its rivals, one value per trial."""
    highest = {
        "{mechanism}, scale {scale:g}, m = {m:,}, ".format(**about) + NAMES[about["rival"]]: one - other
        for frame in (over_epsilon, over_sizes)
        for about, one, other in paired(frame, "printed")
    }
    values = {
        "optimal highest": {name: gains.tolist() for name, gains in highest.items()},
        "gain largest at small m": _gains_at_small_m(over_sizes),
    }
    return Evidence("output-sets-figure-02", "draw", values)


def _gains_at_small_m(frame: pd.DataFrame) -> dict[str, list[float]]:
    """Gain over top/bottom in the smaller half of the sizes, less that in the larger half."""
    falls = dict[str, list[float]]()
    for mechanism, part in frame.groupby("mechanism", sort=False):
        wide = part.pivot(index=["m", "trial"], columns="method", values="epsilon")
        gains = (wide["printed"] - wide["top_bottom"]).unstack("m").to_numpy()
        half = gains.shape[1] // 2
        small, large = gains[:, :half], gains[:, gains.shape[1] - half :]
        falls[str(mechanism)] = (small.mean(axis=1) - large.mean(axis=1)).tolist() if half else []
    return falls


def delta_evidence(frame: pd.DataFrame) -> Evidence:
    """Figure 6 from `over_delta`, methods of the paper, one value per trial; deltas share the scores."""
    falls, below = dict[str, list[float]](), dict[str, list[float]]()
    methods = frame[frame["method"] != "optimal"]
    for (mechanism, method), part in methods.groupby(["mechanism", "method"], sort=False):
        about = f"{mechanism}, {NAMES[str(method)]}, delta"
        wide = part.pivot(index="trial", columns="delta", values="epsilon")
        for small, large in pairwise(wide):
            falls[f"{about} {small:g} to {large:g}"] = (wide[small] - wide[large]).tolist()
        for delta, at in part[np.isfinite(part["exact_epsilon"])].groupby("delta"):
            below[f"{about} {delta:g}"] = (at["exact_epsilon"] - at["epsilon"]).tolist()
    return Evidence("output-sets-figure-06", "draw", {"falls with delta": falls, "below theory": below})


def dpsgd_evidence(bounds: pd.DataFrame) -> Evidence:
    """Figure 3 from the bounds of `run_dpsgd`, Algorithm 1 as printed, one value per model.

    The gain with few canaries over that with many is the mean over all epsilons.
    """
    wide = by_method(bounds).reset_index()
    gained = wide.assign(gain=wide["printed"] - wide["top_bottom"])
    top = wide[wide["epsilon"] == wide["epsilon"].max()].set_index("seed")
    printed = {str(name): top.loc[top["panel"] == name, "printed"] for name in wide["panel"].unique()}
    few, *more = [name for name in bounds["panel"].unique() if name != "natural"]
    mean = gained.pivot_table(index="seed", columns="panel", values="gain")
    values = {
        "optimal at or above top/bottom": {
            f"{panel}, epsilon {epsilon:g}": part.tolist()
            for (panel, epsilon), part in gained.groupby(["panel", "epsilon"], sort=False)["gain"]
        },
        "canaries above natural": {
            name: (printed[name] - printed["natural"]).tolist() for name in (few, *more)
        },
        "gain largest with few canaries": {
            f"{few} against {name}": (mean[few] - mean[name]).tolist() for name in more
        },
        "something found": top.groupby("seed")[["printed", "top_bottom"]].max().max(axis=1).tolist(),
    }
    return Evidence("output-sets-figure-03", "model", values)
