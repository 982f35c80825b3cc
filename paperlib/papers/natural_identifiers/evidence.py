"""Evidence on the tables and figures of the paper, from the tables that its notebooks show."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import kendalltau, kstest

from paperlib.generators.identifiers import PAPER_KINDS
from paperlib.papers.natural_identifiers.census_tables import PILE_SUBSETS, paper_census
from paperlib.papers.verdict import Estimate, Evidence

_FEWEST_NULL_SETS = 1_000
_PAPER_SCORES = ("loss", "min_k")
_TABLES = {"large": (1, 6), "medium": (4, 7), "small": (5, 8), "one pass": (3, 9)}
_Row = Mapping[Any, Any]


def planted_evidence(table: pd.DataFrame, *, confidence: float, size_ratio: float) -> dict[str, Evidence]:
    """Tables 1 and 3 to 9 by target, from `benchmark` with intervals of this confidence."""
    loss = table[table["attack"] == "loss"].set_index(["model", "group"])
    metrics = loss.filter(regex="^(auc|tpr)").columns
    loss[metrics] *= 100
    rows = loss.to_dict("index")
    sides = {model: (rows[model, "held out"], {"": rows[model, "trained"]}) for model in _TABLES}
    large, small, once = (
        _estimate(rows[model, "trained"], "auc", confidence) for model in ("large", "small", "one pass")
    )
    sizes = {"smaller leaks less": _less(large, small), "sizes apart": Estimate(size_ratio)}
    near = {"trained near 50": _less(once, Estimate(50))}
    found = [
        *(_auc_evidence(_TABLES[model][0], *sides[model], confidence) for model in ("large", "medium")),
        Evidence("nid-table-05", "identifiers", sizes),
        Evidence("nid-table-03", "identifiers", near),
        *(_tpr_evidence(number, *sides[model], confidence) for model, (_, number) in _TABLES.items()),
    ]
    return {one.target: one for one in found}


def natural_evidence(table: pd.DataFrame, *, confidence: float = 0.99) -> dict[str, Evidence]:
    """Tables 1 and 6 by target, from `natural_table` in percent."""
    rows = table[table["attack"] == "loss"].set_index("subset").to_dict("index")
    held = rows.pop("held out")
    trained = {str(name): row for name, row in rows.items()}
    found = [_auc_evidence(1, held, trained, confidence), _tpr_evidence(6, held, trained, confidence)]
    return {one.target: one for one in found}


def _auc_evidence(number: int, held: _Row, trained: Mapping[str, _Row], confidence: float) -> Evidence:
    null = _estimate(held, "auc", confidence)
    above = {label: _less(_estimate(row, "auc", confidence), null) for label, row in trained.items()}
    smaller = min(held["identifiers"], sum(row["identifiers"] for row in trained.values()))
    values = {
        "trained above": above,
        "held out near 50": _less(null, Estimate(50)),
        "natural documents": Estimate(0),  # planted, or of documents that the tokenizer was trained on
        "token counts near 50": [],
        "enough identifiers": Estimate(smaller),
    }
    return Evidence(f"nid-table-{number:02d}", "identifiers", values)


def _tpr_evidence(number: int, held: _Row, trained: Mapping[str, _Row], confidence: float) -> Evidence:
    values = {
        "trained near 1 %": {label: _estimate(row, "tpr", confidence) for label, row in trained.items()},
        "held out near 1 %": _estimate(held, "tpr", confidence),
    }
    return Evidence(f"nid-table-{number:02d}", "identifiers", values)


def _estimate(row: _Row, metric: str, confidence: float) -> Estimate:
    """The number, with the standard error of a normal whose interval is as wide."""
    half = (row[f"{metric}_high"] - row[f"{metric}_low"]) / 2
    return Estimate(float(row[metric]), float(half / ndtri((1 + confidence) / 2)))


def _less(one: Estimate, other: Estimate) -> Estimate:
    return Estimate(one.value - other.value, math.hypot(one.error, other.error))


def census_evidence(table: pd.DataFrame) -> Evidence:
    """Table 2 from `census_by_subset`, on the subsets of the Pile's test part that are at hand."""
    here, printed = table[table["subset"].isin(PILE_SUBSETS)], paper_census()
    names, kinds = here["subset"].map(PILE_SUBSETS), list(PAPER_KINDS)
    ours = here[kinds].sum().to_numpy()
    theirs = printed.loc[printed["dataset"].isin(names), kinds].sum().to_numpy()
    told = len(here) and np.ptp(ours) and np.ptp(theirs)
    values = {
        "kinds ranked alike": _rank_agreement(ours, theirs) if told else [],
        "filtered": Estimate(0),  # counted before the blind filter
        "subsets at hand": Estimate(len(here)),
    }
    return Evidence("nid-table-02", "documents", values)


def _rank_agreement(ours: np.ndarray, theirs: np.ndarray) -> Estimate:
    drawn = np.random.default_rng(0).poisson(ours, (1_000, len(ours)))
    taus = [kendalltau(counts, theirs).statistic for counts in drawn if np.ptp(counts)]
    return Estimate(float(kendalltau(ours, theirs).statistic), float(np.std(taus)))


def inference_evidence(sets: pd.DataFrame, null: pd.DataFrame, ends: pd.DataFrame) -> list[Evidence]:
    """Table 10 and Figure 3, by the paper's test (K-fold, two-sided) on sets, null sets and both ends."""
    test = "p_value_two_sided"
    trained = sets.loc[(sets["schedule"] == "kfold") & (sets["set"] != "held out"), test]
    ends = ends[ends["set"] != "held out"]
    nulls = null.loc[null["schedule"] == "kfold", test].to_numpy()
    logs = ends.groupby(["set", "identifiers"])[test].median().clip(1e-300).map(math.log10).unstack()
    enough = len(nulls) >= _FEWEST_NULL_SETS
    table = {
        "trained rejected": Estimate(float(trained.max())),
        "null rejected at its rate": Estimate(100 * float((nulls <= 0.05).mean())),
        "enough null sets": Estimate(len(nulls)),
    }
    figure = {
        "p falls": {}
        if logs.shape[1] < 2
        else {str(name): Estimate(float(row.iloc[0] - row.iloc[-1])) for name, row in logs.iterrows()},
        "null uniform": Estimate(float(kstest(nulls, "uniform").pvalue)) if enough else [],
    }
    return [Evidence("nid-table-10", "set", table), Evidence("nid-figure-03", "set", figure)]


def dp_evidence(by_target: pd.DataFrame, by_number: pd.DataFrame) -> list[Evidence]:
    """Figures 2 and 5 from `audit_table`, one model each, by Theorem 2 and the better of two scores."""
    bounds = _papers_bounds(by_target).groupby(["target", "cardinality"])["paper"].max()
    numbers = _papers_bounds(by_number).groupby("canaries")["paper"].max().tolist()
    figure = {
        "larger sets win without noise": _larger_less_smaller(bounds, math.inf),
        "smaller sets win at target 5": _larger_less_smaller(bounds, 5.0),
        "something found": Estimate(float(bounds.max())),
    }
    middle, ends = numbers[len(numbers) // 2], {"fewest": numbers[0], "most": numbers[-1]}
    best = {name: [middle - end] if len(numbers) > 2 else [] for name, end in ends.items()}
    return [
        Evidence("nid-figure-02", "model", figure),
        Evidence("nid-figure-05", "model", {"middle best": best}),
    ]


def _papers_bounds(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["score"].isin(_PAPER_SCORES) & (table["top"] == 1)]


def _larger_less_smaller(bounds: pd.Series, target: float) -> list[float]:
    found: dict[Any, float] = bounds.to_dict()
    both = (target, 64) in found and (target, 2) in found
    return [found[target, 64] - found[target, 2]] if both else []


def randomized_response_evidence(curves: pd.DataFrame, *, confidence: float) -> Evidence:
    """Figure 4 from `bounds_by_sets` at this confidence, exact."""
    printed = curves[(curves["bound"] == "paper") & (curves["mechanism"] == "randomized response")]
    last = printed[(printed["sets"] == printed["sets"].max()) & (printed["top"] == 1)]
    distances = {
        f"epsilon {row['epsilon']:g}, c = {row['cardinality']}": Estimate(
            100 * abs(1 - row["mean"] / row["epsilon"])
        )
        for row in last.to_dict("records")
    }
    exceeds = Estimate(float(printed["error_rate"].max()) - (1 - confidence))
    return Evidence("nid-figure-04", "exact", {"bound close": distances, "bound valid": exceeds})
