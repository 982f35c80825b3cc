"""Evidence on the figures of Epsilon*, from the tables that its notebooks show."""

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
import pandas as pd

from paperlib.papers.epsilon_star.landscape_tables import STRATEGY, describe
from paperlib.papers.epsilon_star.simulated_losses import RatioErrors
from paperlib.papers.verdict import Estimate, Evidence

_TRUTHS = {"every threshold": "true", "rates in [delta, 1 - delta]": "true_delta_range"}
_RATIOS = {"tpr_ratio": "(TPR - delta) / FPR", "tnr_ratio": "(TNR - delta) / FNR"}


def purchase_evidence(frame: pd.DataFrame, *, records: int) -> list[Evidence]:
    """Figure 1 from `landscape` for a data set of many classes, for exact and for clipped
    losses.
    """
    private = frame[frame["kind"] == "dp"]
    learned = private.groupby("seed")["accuracy"].max().dropna()
    needed = {"something learned": (100 * learned).tolist(), "enough records": Estimate(records)}
    found = []
    for reading, star in {
        "exact losses": "epsilon_star",
        "clipped losses": "epsilon_star_clipped",
    }.items():
        base = _baselines(frame, star)
        claimed = {
            "50 over 10 epochs": _difference(base, 50, 10),
            "100 over 50 epochs": _difference(base, 100, 50),
            "DP below 1": {name: list(values) for name, values in _by_strategy(private, star)},
        }
        found.append(Evidence("epsilon-star-figure-01", "model", claimed | needed, reading=reading))
    return found


def adult_evidence(frame: pd.DataFrame, *, network: str) -> Evidence:
    """Figure 2 from `landscape` for Adult, by strategy; ``network`` is the rule's reading of the
    layers.
    """
    star = "epsilon_star_clipped"
    base, private = _baselines(frame, star)[5], _by_strategy(frame[frame["kind"] == "dp"], star)
    below = {name: (base - values).dropna().tolist() for name, values in private}
    every = {name: list(values) for name, values in _by_strategy(frame, star)}
    values = {"all below 0.3": every, "DP below baselines": below}
    return Evidence("epsilon-star-figure-02", "model", values, reading=network)


def _by_strategy(frame: pd.DataFrame, star: str) -> Iterator[tuple[str, pd.Series]]:
    """The name of each strategy, and the Epsilon* of its models by seed."""
    for _, models in frame.groupby(list(STRATEGY), dropna=False, sort=False):
        yield describe(models.iloc[0]), models.set_index("seed")[star].dropna()


def _baselines(frame: pd.DataFrame, star: str) -> pd.DataFrame:
    return frame[frame["kind"] == "baseline"].pivot(index="seed", columns="epochs", values=star)


def _difference(table: pd.DataFrame, more: object, less: object) -> list[float]:
    """Differences of two columns where both have a value; none if there is no such column."""
    return (
        (table[more] - table[less]).dropna().tolist() if {more, less} <= set(table.columns) else []
    )


def curves_evidence(errors: Mapping[str, RatioErrors]) -> Evidence:
    """Figure 3 from `ratio_errors`, one value per draw and ratio."""
    values = {
        _RATIOS[term]: one.rms(1e-5, 1e-2) - 3 * one.rms(0.1, 1.0) for term, one in errors.items()
    }
    samples = {name: some[np.isfinite(some)].tolist() for name, some in values.items()}
    return Evidence("epsilon-star-figure-03", "draw", {"noise at the ends": samples})


def gamma_evidence(runs: pd.DataFrame, summary: pd.DataFrame) -> list[Evidence]:
    """Figures 4 and 5 from `gamma_runs` and their `gamma_summary`, both methods on the same
    sample.
    """
    wide = runs.pivot(index=["d", "size", "repeat"], columns="method", values="epsilon_star")
    null = {int(str(size)): part for size, part in wide.loc[0].groupby("size")}
    steps = {
        f"{method}, n = {small:,} to {large:,}": _steps(null[small][method], null[large][method])
        for method in ("empirical", "parametric")
        for small, large in pairwise(sorted(null))
    }
    nearer = {
        f"n = {size:,}": _steps(part["empirical"], part["parametric"])
        for size, part in null.items()
    }
    undershoot, closer = {}, {}
    for row in summary[(summary["d"] > 0) & (summary["method"] == "empirical")].to_dict("records"):
        part = wide.loc[(row["d"], row["size"]), :]
        for words, name in _TRUTHS.items():
            label = f"n = {row['size']:,}, d = {row['d']}, {words}"
            short = row[name] - part
            undershoot[label] = short["empirical"].tolist()
            closer[label] = _steps(short["empirical"].abs(), short["parametric"].abs())
    fourth = {"parametric nearer 0": nearer, "shrinks": steps}
    fifth = {"empirical undershoots": undershoot, "parametric nearer": closer}
    found = {"epsilon-star-figure-04": fourth, "epsilon-star-figure-05": fifth}
    return [Evidence(target, "draw", values) for target, values in found.items()]


def _steps(first: pd.Series, second: pd.Series) -> list[float]:
    return (first.to_numpy() - second.to_numpy()).tolist()


def fit_evidence(p_values: pd.DataFrame) -> Evidence:
    """Figure 6 from the `p_values` of the paper's test: one share per model, pairs of equal
    seed.
    """
    above = p_values.assign(above=p_values["p_value"] > 0.05).pivot_table(
        "above", "seed", "target_epsilon"
    )
    plain = above[math.inf]
    private = {f"DP {at:g}": share for at, share in above.drop(columns=[math.inf]).items()}
    values = {
        "mostly above 0.05": {
            name: list(one) for name, one in {"without DP": plain, **private}.items()
        },
        "more with DP": {name: list(share - plain) for name, share in private.items()},
    }
    return Evidence("epsilon-star-figure-06", "model", values)
