"""Evidence on the tables and figures of the paper, from the tables that its notebooks show."""

import math
from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import kendalltau, kstest

from paperlib.generators.identifiers import PAPER_KINDS
from paperlib.papers.natural_identifiers.census.tables import (
    PILE_SUBSETS,
    after_filters,
    paper_census,
)
from paperlib.papers.natural_identifiers.labels import DIFFERENCE, PAPER_TABLES, TOKENS
from paperlib.papers.verdict import Estimate, Evidence

_FEWEST_NULL_SETS = 1_000
_PAPER_SCORES = ("loss", "min_k")


def benchmark_evidence(
    table: pd.DataFrame, *, natural: bool, confidence: float = 0.99
) -> dict[str, Evidence]:
    """Tables 1 and 3 to 9 by target, from `benchmark` or `overall` of `natural_table`, in
    percent.
    """
    rows = (
        table.rename(columns={"subset": "group"})
        .set_index(["model", "group", "attack"])
        .to_dict("index")
    )
    width, half = 2 * float(ndtri((1 + confidence) / 2)), Estimate(50)

    def of(model: str, group: str, *, metric: str = "auc", attack: str = "loss") -> Estimate:
        """The number, with the standard error of a normal whose interval is as wide."""
        row = rows[model, group, attack]
        return Estimate(
            float(row[metric]), float((row[f"{metric}_high"] - row[f"{metric}_low"]) / width)
        )

    every = []
    groups, once = ("held out", "trained"), "trained, occurs once" if natural else "trained"
    fewest = min(int(rows["large", one, "loss"]["identifiers"]) for one in groups)
    for model in ("large", "medium"):
        null = of(model, "held out")
        values = {
            "trained above": _less(of(model, "trained"), null),
            "held out near 50": _less(null, half),
            "natural documents": Estimate(int(natural)),
            "token counts near 50": {
                one: _less(of(model, one, attack=TOKENS), half) for one in groups
            },
            "enough identifiers": Estimate(fewest),
        }
        every.append(Evidence(f"nid-table-{PAPER_TABLES['auc'][model]:02d}", "identifiers", values))
    sizes = table.groupby("model")["parameters"].max()
    pair = {
        "smaller leaks less": of(DIFFERENCE, "trained"),
        "sizes apart": Estimate(float(sizes["large"] / sizes["small"])),
    }
    every.append(Evidence("nid-table-05", "identifiers", pair))
    near = {"trained near 50": _less(of("one pass", once), half)}
    every.append(Evidence("nid-table-03", "identifiers", near))
    for model, number in PAPER_TABLES["tpr"].items():
        values = {
            "trained near 1 %": of(model, once if model == "one pass" else "trained", metric="tpr"),
            "held out near 1 %": of(model, "held out", metric="tpr"),
        }
        every.append(Evidence(f"nid-table-{number:02d}", "identifiers", values))
    return {one.target: one for one in every}


def _less(one: Estimate, other: Estimate) -> Estimate:
    return Estimate(one.value - other.value, math.hypot(one.error, other.error))


def census_evidence(at_hand: Collection[str], places: pd.DataFrame | None) -> Evidence:
    """Table 2 from `pile_identifiers`, on the subsets of the Pile's test part among those at
    hand.
    """
    subsets = set(PILE_SUBSETS) & set(at_hand)
    tau, present = [], places is not None and len(places) > 0
    if places is not None and present:
        printed, kinds = paper_census(), list(PAPER_KINDS)
        counted = after_filters(places)
        by_document = pd.crosstab([counted["subset"], counted["document"]], counted["kind"])
        each = by_document.reindex(columns=kinds, fill_value=0).to_numpy()
        ours = each.sum(axis=0)
        theirs = printed.loc[
            printed["dataset"].isin([PILE_SUBSETS[name] for name in subsets]), kinds
        ]
        theirs = theirs.sum().to_numpy()
        if np.ptp(ours) and np.ptp(theirs):  # the ranks of the kinds agree
            # A bootstrap of documents, which may hold many identifiers; of many, each is drawn
            # Poisson times.
            drawn = np.random.default_rng(0).poisson(1, (1_000, len(each))) @ each
            taus = [kendalltau(counts, theirs).statistic for counts in drawn if np.ptp(counts)]
            tau = Estimate(float(kendalltau(ours, theirs).statistic), float(np.std(taus)))
    values = {
        "kinds ranked alike": tau,
        "filtered": Estimate(1) if present else [],
        "subsets at hand": Estimate(len(subsets)),
    }
    return Evidence("nid-table-02", "documents", values)


def inference_evidence(
    sets: pd.DataFrame, null: pd.DataFrame, ends: pd.DataFrame
) -> list[Evidence]:
    """Table 10 and Figure 3, by the paper's test (K-fold, two-sided) on sets, null sets and both
    ends.
    """
    test = "p_value_two_sided"
    trained = sets.loc[(sets["schedule"] == "kfold") & (sets["set"] != "held out"), test]
    ends = ends[ends["set"] != "held out"]
    nulls = null.loc[null["schedule"] == "kfold", test].to_numpy()
    logs = (
        ends.groupby(["set", "identifiers"])[test].median().clip(1e-300).map(math.log10).unstack()
    )
    enough = len(nulls) >= _FEWEST_NULL_SETS
    table = {
        "trained rejected": Estimate(float(trained.max())),
        "null rejected at its rate": Estimate(100 * float((nulls <= 0.05).mean())),
        "enough null sets": Estimate(len(nulls)),
    }
    falls = (logs.iloc[:, 0] - logs.iloc[:, -1]).to_dict() if logs.shape[1] > 1 else {}
    figure = {
        "p falls": {str(name): Estimate(float(fall)) for name, fall in falls.items()},
        "null uniform": Estimate(float(kstest(nulls, "uniform").pvalue)) if enough else [],
    }
    return [Evidence("nid-table-10", "set", table), Evidence("nid-figure-03", "set", figure)]


def dp_evidence(by_target: pd.DataFrame, by_number: pd.DataFrame) -> list[Evidence]:
    """Figures 2 and 5 from `rank_audits`, by Theorem 2 and the better of two scores; one value per
    model.
    """
    bounds = _papers_bounds(by_target, ["target", "cardinality"])
    numbers = _papers_bounds(by_number, ["canaries"])
    compared = bounds[bounds.index.get_level_values("target").isin([math.inf, 5.0])]
    figure = {
        "larger sets win without noise": _larger_less_smaller(bounds, math.inf),
        "smaller sets win at target 5": _larger_less_smaller(bounds, 5.0),
        # Where every bound at a compared target is 0, neither size wins.
        "something found": Estimate(float(compared.groupby("target").max().max(axis=1).min())),
    }
    middle, ends = (
        numbers.iloc[len(numbers) // 2],
        {"fewest": numbers.iloc[0], "most": numbers.iloc[-1]},
    )
    best = {
        name: (middle - end).dropna().tolist() if len(numbers) > 2 else []
        for name, end in ends.items()
    }
    found = {"nid-figure-02": figure, "nid-figure-05": {"middle best": best}}
    return [Evidence(target, "model", values) for target, values in found.items()]


def _papers_bounds(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The largest of the paper's bounds, one row per key and one column per model."""
    chosen = table[table["score"].isin(_PAPER_SCORES) & (table["top"] == 1)]
    return chosen.pivot_table("paper", keys, "model", "max")


def _larger_less_smaller(bounds: pd.DataFrame, target: float) -> list[float]:
    columns: dict[Any, pd.Series] = dict(bounds.T.items())
    both = (target, 64) in columns and (target, 2) in columns
    return (columns[target, 64] - columns[target, 2]).dropna().tolist() if both else []


def randomized_response_evidence(curves: pd.DataFrame, *, confidence: float) -> Evidence:
    """Figure 4 from `bounds_by_sets` at this confidence, exact."""
    printed = curves[(curves["bound"] == "paper") & (curves["mechanism"] == "randomized response")]
    last = printed[(printed["sets"] == printed["sets"].max()) & (printed["top"] == 1)]
    distances = dict[str, Estimate]()
    for epsilon, c, mean in last[["epsilon", "cardinality", "mean"]].itertuples(index=False):
        distances[f"epsilon {epsilon:g}, c = {c}"] = Estimate(100 * abs(1 - mean / epsilon))
    exceeds = Estimate(float(printed["error_rate"].max()) - (1 - confidence))
    return Evidence("nid-figure-04", "exact", {"bound close": distances, "bound valid": exceeds})
