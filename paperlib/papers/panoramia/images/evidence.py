"""Samples for the rules on images: Tables 1, 2, 3 and 5, Figures 2, 3, 4, 6, 7, 10, 11, 13 and 15."""

from collections.abc import Mapping, Sequence

import pandas as pd

from paperlib.papers.panoramia import evidence as shared
from paperlib.papers.panoramia.evidence import by_game, null_samples, paired
from paperlib.papers.panoramia.images.tables import KINDS, model_sizes, nulls_like, series
from paperlib.papers.panoramia.results import PanoramiaResults, loss_groups
from paperlib.papers.verdict import Estimate, Evidence
from paperlib.papers.verdict.evidence import Level

RECALLS = (0.1, 0.25)
"""Low recalls, at which Figure 3 is read."""
ON_CELEBA = [f"table-{at:02}" for at in (1, 2, 3)] + [f"figure-{at:02}" for at in (3, 4, 7, 10, 13)]
"""What the paper shows on CelebA."""
LOW_RECALL, HALF = 0.3, 0.5
"""Figure 4: where the largest bound is claimed to lie, and the recall it is compared with."""


def evidence(
    results: PanoramiaResults,
    helpers: pd.DataFrame,
    train_sizes: pd.DataFrame,
    quality: Mapping[str, float],
    *,
    larger: PanoramiaResults | None = None,
    nonmembers_helper: str = "",
    label_noise: float,
) -> list[Evidence]:
    """Samples for all rules on images."""
    names = series(results)
    last, nulls = names[-1], nulls_like(results, names[-1])
    return [
        _table_one(results, label_noise),
        *(shared.helper_table(f"panoramia-table-0{at}", helpers, nonmembers_helper) for at in (2, 5)),
        shared.table_three(results, names, nulls),
        _over_training_size("panoramia-figure-02", train_sizes, "c_lb"),
        _figure_three(results, last),
        _figure_four(results, last, nulls),
        shared.figure_six(larger or results, last, nulls),
        _figure_seven(quality),
        shared.figure_ten(results.decisive, last),
        _over_training_size("panoramia-figure-11", train_sizes, "c_plus_eps_lb"),
        _figure_thirteen(results),
        _figure_fifteen(results),
    ]


def printed_on(dataset: str, found: Sequence[Evidence]) -> list[Evidence]:
    """The evidence on what the paper has on this data set."""
    if dataset != "celeba":
        return list(found)
    return [one for one in found if one.target.removeprefix("panoramia-") in ON_CELEBA]


def level(dataset: str, target: str) -> Level:
    """How near a data set is to the paper's for a table or figure."""
    known = ("celeba",) if target == "panoramia-figure-13" else ("cifar10", "celeba")
    return "paper's data" if dataset in known else "substitute"


def _table_one(results: PanoramiaResults, label_noise: float) -> Evidence:
    table = 100 * results.pools.table.set_index("target")[["train_metric", "test_metric"]]
    train, test = (table[part][series(results)] for part in table)
    gaps = train - test
    values = {
        "gap grows": [gaps.iloc[-1] - gaps.iloc[0]] if len(gaps) > 1 else [],
        "test falls": [test.iloc[0] - test.iloc[-1]] if len(test) > 1 else [],
        "overfitted": [train.iloc[-1]],
        "clean labels": Estimate(label_noise),
    }
    return Evidence("panoramia-table-01", "model", values)


def _over_training_size(target: str, sizes: pd.DataFrame, column: str) -> Evidence:
    bounds = sizes.pivot(index="seed", columns="train", values=column).sort_index(axis=1)
    gains = bounds.diff(axis=1).iloc[:, 1:]
    values = {
        "rises": paired(bounds.iloc[:, -1], bounds.iloc[:, 0]) if len(bounds.columns) > 1 else [],
        "flattens": paired(gains.iloc[:, -1], gains.iloc[:, 0] / 3) if len(gains.columns) > 1 else [],
        "enough training": Estimate(float(bounds.columns.max())),
    }
    return Evidence(target, "game", values)


def _figure_three(results: PanoramiaResults, name: str) -> Evidence:
    curves = results.decisive.curves(target=name)
    reached = {f"recall {at:g}": _at_recall(curves, at)["precision"].unstack("test") for at in RECALLS}
    values = {
        "attack more precise": {label: paired(one["mia"], one["baseline"]) for label, one in reached.items()},
        "room above": {label: one["baseline"].tolist() for label, one in reached.items()},
    }
    return Evidence("panoramia-figure-03", "game", values)


def _at_recall(curves: pd.DataFrame, recall: float) -> pd.DataFrame:
    """The first guesses that reach a recall: one row per game (seed) and test."""
    return curves[curves["recall"] >= recall].groupby(["seed", "test"]).first()


def _figure_four(results: PanoramiaResults, name: str, nulls: list[str]) -> Evidence:
    curves = results.decisive.curves(target=name)
    attack = curves[curves["test"] == "mia"].reset_index(drop=True)
    best = attack.loc[attack.groupby("seed")["bound"].idxmax()].set_index("seed")
    half = _at_recall(attack, HALF)["bound"].droplevel("test")
    low = (best["recall"] <= LOW_RECALL) & (best["bound"] > 0)
    values = {
        "maximum at low recall": low.astype(float).tolist(),
        "falls to recall 0.5": paired(best["bound"], half),
        "null": null_samples(results.decisive, nulls),
    }
    return Evidence("panoramia-figure-04", "game", values)


def _figure_seven(quality: Mapping[str, float]) -> Evidence:
    note = (
        "Kernel distance to members: {kid generated:z.2f} ± {kid generated error:.2f} (generated), "
        "{kid nonmembers:z.2f} ± {kid nonmembers error:.2f} (real non-members); near duplicates of images of "
        "D_G: {near generated:.1%} and {near nonmembers:.1%}."
    ).format_map(quality)
    return Evidence("panoramia-figure-07", "model", {}, note)


def _figure_thirteen(results: PanoramiaResults) -> Evidence:
    groups = loss_groups(results.pools, series(results), KINDS).values()
    gaps = [float(one["real non-members"].mean() - one["real members"].mean()) for one in groups]
    values = {"losses separate": [gaps[-1] - gaps[0]] if len(gaps) > 1 else []}
    return Evidence("panoramia-figure-13", "model", values)


def _figure_fifteen(results: PanoramiaResults) -> Evidence:
    """Of the family with most sizes, the largest and the smallest model without DP."""
    sizes = model_sizes(results)
    sizes = sizes[sizes["target"].isin(results.trained)].sort_values("parameters")
    if sizes.empty:
        unmeasured = {"larger leaks more": [], "null": [], "sizes apart": []}
        return Evidence("panoramia-figure-15", "game", unmeasured)
    names = sizes["architecture"].str.extract("^(resnet|wrn|vit)", expand=False)
    family = max((rows for _, rows in sizes.groupby(names.fillna(sizes["architecture"]))), key=len)
    small, large = family["target"].iloc[[0, -1]]
    eps = [by_game(results.decisive, name) for name in (large, small)]
    values = {
        "larger leaks more": paired(*eps) if large != small else [],
        "null": null_samples(results.decisive, nulls_like(results, large)),
        "sizes apart": Estimate(float(family["parameters"].iloc[-1] / family["parameters"].iloc[0])),
    }
    return Evidence("panoramia-figure-15", "game", values)
