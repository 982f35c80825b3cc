"""Evidence on the tables and figures of the paper, from the tables that its notebooks show."""

import math
from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import kendalltau, kstest

from paperlib.generators.identifiers import PAPER_KINDS
from paperlib.reproduction.papers.natural_identifiers.census.tables import (
    PILE_SUBSETS,
    after_filters,
    paper_census,
)
from paperlib.reproduction.papers.natural_identifiers.labels import DIFFERENCE, PAPER_TABLES, TOKENS
from paperlib.reproduction.papers.verdict import Estimate, Evidence
from paperlib.reproduction.papers.verdict.evidence import Sample

_FEWEST_NULL_SETS = 1_000
_PAPER_SCORES = ("loss", "min_k")


def benchmark_evidence(
    table: pd.DataFrame, *, natural: bool, confidence: float = 0.99
) -> dict[str, Evidence]:
    """Tables 1 and 3 to 9 by target.

    Args:
        table: Rows of `benchmark`, or of `overall` of `natural_table`, their AUCs and TPRs in
            percent.
        natural: Whether the identifiers stand in documents as they are, and were not planted.
        confidence: Of the intervals in ``table``, from which standard errors are taken.
    """
    rows = (
        table.rename(columns={"subset": "group"})
        .set_index(["model", "group", "attack"])
        .to_dict("index")
    )
    width = 2 * float(ndtri((1 + confidence) / 2))  # of an interval, in standard errors
    half = Estimate(50)  # the AUC of guessing, in percent

    def of(model: str, group: str, *, metric: str = "auc", attack: str = "loss") -> Estimate:
        """A number of the table in percent, with the standard error of a normal whose interval is
        as wide.
        """
        row = rows[model, group, attack]
        error = (row[f"{metric}_high"] - row[f"{metric}_low"]) / width
        return Estimate(float(row[metric]), float(error))

    evidence: list[Evidence] = []
    groups = ("held out", "trained")
    once = "trained, occurs once" if natural else "trained"
    fewest = min(int(rows["large", group, "loss"]["identifiers"]) for group in groups)
    for model in ("large", "medium"):
        null = of(model, "held out")
        values = {
            "trained above": _less(of(model, "trained"), null),
            "held out near 50": _less(null, half),
            "natural documents": Estimate(int(natural)),
            "token counts near 50": {
                group: _less(of(model, group, attack=TOKENS), half) for group in groups
            },
            "enough identifiers": Estimate(fewest),
        }
        number = PAPER_TABLES["auc"][model]
        evidence.append(
            Evidence(target=f"nid-table-{number:02d}", unit="identifiers", values=values)
        )
    sizes = table.groupby("model")["parameters"].max()
    pair = {
        "smaller leaks less": of(DIFFERENCE, "trained"),
        "sizes apart": Estimate(float(sizes["large"] / sizes["small"])),
    }
    evidence.append(Evidence(target="nid-table-05", unit="identifiers", values=pair))
    near = {"trained near 50": _less(of("one pass", once), half)}
    evidence.append(Evidence(target="nid-table-03", unit="identifiers", values=near))
    for model, number in PAPER_TABLES["tpr"].items():
        values = {
            "trained near 1 %": of(model, once if model == "one pass" else "trained", metric="tpr"),
            "held out near 1 %": of(model, "held out", metric="tpr"),
        }
        evidence.append(
            Evidence(target=f"nid-table-{number:02d}", unit="identifiers", values=values)
        )
    return {on_target.target: on_target for on_target in evidence}


def _less(estimate: Estimate, subtracted: Estimate) -> Estimate:
    """The difference of two independent estimates."""
    error = math.hypot(estimate.error, subtracted.error)
    return Estimate(estimate.value - subtracted.value, error)


def census_evidence(at_hand: Collection[str], identifiers: pd.DataFrame | None) -> Evidence:
    """Table 2 from `pile_identifiers`, on the subsets of the Pile's test part among those at
    hand.

    Args:
        at_hand: Names of the subsets that were read; others than the Pile's do not count.
        identifiers: The occurrences of `pile_identifiers`; None, or without rows, where the test
            part was not read.

    Returns:
        The numbers that the rules of Table 2 name: Kendall's tau of the kinds' order, 1 for counts
        after the paper's filters, and the number of subsets; of what was not read none.
    """
    subsets = set(PILE_SUBSETS) & set(at_hand)
    was_read = identifiers is not None and len(identifiers) > 0
    values: dict[str, Sample] = {
        "kinds ranked alike": [],
        "filtered": Estimate(1) if was_read else [],  # `pile_identifiers` always filters
        "subsets at hand": Estimate(len(subsets)),
    }
    if identifiers is not None and was_read:
        values["kinds ranked alike"] = _rank_agreement(after_filters(identifiers), subsets)
    return Evidence(target="nid-table-02", unit="documents", values=values)


def _rank_agreement(filtered: pd.DataFrame, subsets: Collection[str]) -> Sample:
    """Kendall's tau between our numbers of the kinds and the paper's on the same subsets, with a
    bootstrap error; no value where all kinds are as frequent.

    Args:
        filtered: Identifiers that passed the filters, a row each, with subset, document and kind.
        subsets: The subsets at hand, by our names.
    """
    kinds = list(PAPER_KINDS)
    by_document = pd.crosstab([filtered["subset"], filtered["document"]], filtered["kind"])
    counts = by_document.reindex(columns=kinds, fill_value=0).to_numpy()
    ours = counts.sum(axis=0)
    printed = paper_census()
    same_subsets = printed["dataset"].isin([PILE_SUBSETS[name] for name in subsets])
    theirs = printed.loc[same_subsets, kinds].sum().to_numpy()
    if not np.ptp(ours) or not np.ptp(theirs):
        return []
    # A bootstrap of documents, since one may hold many identifiers. Each document is drawn a
    # Poisson(1) number of times, which stands for drawing as many documents with replacement.
    times_drawn = np.random.default_rng(0).poisson(1, (1_000, len(counts)))
    resampled = times_drawn @ counts
    taus = [kendalltau(totals, theirs).statistic for totals in resampled if np.ptp(totals)]
    return Estimate(float(kendalltau(ours, theirs).statistic), float(np.std(taus)))


def inference_evidence(
    sets: pd.DataFrame, null: pd.DataFrame, ends: pd.DataFrame
) -> list[Evidence]:
    """Table 10 and Figure 3, by the paper's test (two-sided; K-fold where the schedule is named).

    Args:
        sets: Rows of `suspect_sets`.
        null: Rows of `held_out_p_values`; of fewer than 1,000 sets nothing is said of uniformity.
        ends: Rows of `p_values_of_draws` by this test at the fewest and at the most identifiers.
    """
    test = "p_value_two_sided"
    trained = sets.loc[(sets["schedule"] == "kfold") & (sets["set"] != "held out"), test]
    ends = ends[ends["set"] != "held out"]
    nulls = null.loc[null["schedule"] == "kfold", test].to_numpy()
    medians = ends.groupby(["set", "identifiers"])[test].median()
    logs = medians.clip(1e-300).map(math.log10).unstack()  # 1e-300: the log of 0 is infinite
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
    return [
        Evidence(target="nid-table-10", unit="set", values=table),
        Evidence(target="nid-figure-03", unit="set", values=figure),
    ]


def dp_evidence(by_target: pd.DataFrame, by_number: pd.DataFrame) -> list[Evidence]:
    """Figures 2 and 5, by Theorem 2 and the better of two scores: differences of bounds, nats, a
    value for each model.

    Args:
        by_target: Rows of `rank_audits` over target epsilons and cardinalities.
        by_number: Rows of `rank_audits` over numbers of canaries.
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
    best: dict[str, list[float]] = {"fewest": [], "most": []}
    if len(numbers) > 2:
        middle = numbers.iloc[len(numbers) // 2]
        best["fewest"] = (middle - numbers.iloc[0]).dropna().tolist()
        best["most"] = (middle - numbers.iloc[-1]).dropna().tolist()
    return [
        Evidence(target="nid-figure-02", unit="model", values=figure),
        Evidence(target="nid-figure-05", unit="model", values={"middle best": best}),
    ]


def _papers_bounds(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The larger of the paper's bounds by its two scores, nats, where rank 1 alone counts: a row
    for each value of the keys, a column for each model.
    """
    top_one = table[table["score"].isin(_PAPER_SCORES) & (table["top"] == 1)]
    return top_one.pivot_table("paper", keys, "model", "max")


def _larger_less_smaller(bounds: pd.DataFrame, target: float) -> list[float]:
    """The bound with 64 candidates less that with 2, nats, of each model of a target epsilon; none
    where one of the two was not run. ``bounds`` has a column for each model.
    """
    columns: dict[Any, pd.Series] = dict(bounds.T.items())
    both = (target, 64) in columns and (target, 2) in columns
    return (columns[target, 64] - columns[target, 2]).dropna().tolist() if both else []


def randomized_response_evidence(curves: pd.DataFrame, *, confidence: float) -> Evidence:
    """Figure 4 from `bounds_by_sets` at this confidence, exact: how far the mean of the paper's
    bound is from epsilon with most sets, percent, and by how much its error rate exceeds its error.
    """
    printed = curves[(curves["bound"] == "paper") & (curves["mechanism"] == "randomized response")]
    last = printed[(printed["sets"] == printed["sets"].max()) & (printed["top"] == 1)]
    distances = dict[str, Estimate]()
    for epsilon, c, mean in last[["epsilon", "cardinality", "mean"]].itertuples(index=False):
        distances[f"epsilon {epsilon:g}, c = {c}"] = Estimate(100 * abs(1 - mean / epsilon))
    excess_of_errors = Estimate(float(printed["error_rate"].max()) - (1 - confidence))
    values = {"bound close": distances, "bound valid": excess_of_errors}
    return Evidence(target="nid-figure-04", unit="exact", values=values)
