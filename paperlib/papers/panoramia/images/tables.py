"""PANORAMIA on images: Tables 1, 2, 3 and 5, Figures 2 to 15, kept runs, and evidence on them."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from paperlib.audits.panoramia.game import AuditConfig, smallest_pool
from paperlib.audits.panoramia.pools import Pools
from paperlib.audits.panoramia.results import TargetAudits
from paperlib.audits.panoramia.run import audit_pools
from paperlib.core import MembershipScores
from paperlib.io import read_result
from paperlib.papers.measured import kept_file, measured_table
from paperlib.papers.panoramia import results as shared
from paperlib.papers.settings import settings_beside
from paperlib.papers.verdict import Estimate, Evidence
from paperlib.papers.verdict.evidence import Level
from paperlib.report import paper_table

KINDS = {"members": "real members", "generated": "generated", "nonmembers": "real non-members"}
"""Kinds of images, and their names in figures."""

_OWN, _HELPERS = "panoramia (paper form)", "panoramia (helpers form)"


def series(results: shared.PanoramiaResults) -> list[str]:
    """The first architecture's targets by epochs: over-training."""
    table = results.pools.table[~results.pools.table["null"]]
    about = ["architecture", "width"]
    same = (table[about] == table[about].iloc[0]).all(axis=1)
    return list(table[same].sort_values("epochs", kind="stable")["target"])


def nulls_like(results: shared.PanoramiaResults, name: str) -> list[str]:
    """Null targets of a target's architecture, number of parameters and epochs."""
    table, about = results.pools.table, ["architecture", "parameters", "epochs"]
    like = (table[about] == table.loc[table["target"] == name, about].iloc[0]).all(axis=1)
    return list(table.loc[table["null"] & like, "target"])


def run_images(pools: Pools, audit: AuditConfig) -> shared.PanoramiaResults:
    """All three audits in the paper's form, and PANORAMIA with helpers in both tests."""
    if pools.nonmembers is None:
        raise ValueError("nonmembers: expected real ones, which RM;RN and O(1) need, got none")
    paper = audit_pools(pools, replace(audit, form="paper"))
    helpers = audit_pools(pools, replace(audit, form="helpers"), audits=["panoramia"])
    return shared.PanoramiaResults(pools, {"paper": paper, "helpers": helpers}, "paper")


def paper_models(names: Sequence[str], dataset: str) -> dict[str, str]:
    """Our targets by over-training, each with the paper's of the same degree."""
    resnets, celeba = ("ResNet101_E20", "ResNet101_E50", "ResNet101_E100"), ("CNN_E50", "CNN_E100")
    return dict(zip(names, celeba if dataset == "celeba" else resnets, strict=False))


def printed_three(names: Sequence[str], dataset: str) -> dict[str, pd.DataFrame]:
    """The paper's rows of Table 3 that stand beside our targets."""
    printed = paper_table("panoramia_table03")
    like = paper_models(names, dataset).items()
    return {name: printed[printed["target_model"] == model] for name, model in like}


def table_one(results: shared.PanoramiaResults, dataset: str) -> pd.DataFrame:
    """Accuracies in per cent and losses, beside the paper's."""
    table, models = results.pools.table, paper_models(series(results), dataset)
    printed = paper_table("panoramia_table01").set_index("target_model")["test_accuracy_pct"]
    ours = table[["target", "null", "epochs", "train_loss", "test_loss"]].assign(
        train_accuracy=100 * table["train_metric"],
        test_accuracy=100 * table["test_metric"],
        paper_target=table["target"].map(models),
    )
    return ours.assign(paper_test_accuracy=ours["paper_target"].map(printed))


def searches(results: shared.PanoramiaResults) -> pd.DataFrame:
    """All audits by form and by search over recall: bounds, deviations, AUCs."""
    columns = [
        "target",
        "audit",
        "form",
        "search",
        "c_lb",
        "c_plus_eps_lb",
        "value",
        "value_sd",
        "value_t",
    ]
    found = results.summary
    grid = (found["audit"] == "o1") & (found["search"] != results.search)
    return found.loc[~grid, [*columns, "baseline_auc", "mia_auc"]].reset_index(drop=True)


def above_real(results: shared.PanoramiaResults) -> pd.DataFrame:
    """What a comparison of eps-tilde with RM;RN must know, one row per target."""
    kinds = results.pools.by_kind()

    def auc(name: str, kind: str) -> float:
        losses = (kinds[one].targets[name][:, 0] for one in ("members", kind))
        return MembershipScores(*losses, higher_means_member=False).auc()

    columns = ["target", "null", "eps_tilde", "eps_tilde_sd", "rm_rn", "rm_rn_sd"]
    table = shared.table_three(results, {})[columns]
    return table.assign(
        rm_rn_auc=[results.one(name, "rm_rn")["mia_auc"] for name in table["target"]],
        auc_generated=[auc(name, "generated") for name in table["target"]],
        auc_real=[auc(name, "nonmembers") for name in table["target"]],
    )


def printed_helpers() -> dict[str, float]:
    """The c_lb that the paper's Table 5 prints on CIFAR-10, by our name of the helper."""
    printed = paper_table("panoramia_table05").query("dataset == 'CIFAR10'")
    keys = (
        printed[["helper_training_data", "helper_architecture"]].fillna("").itertuples(index=False)
    )
    values = dict(zip(map(tuple, keys), printed["c_lb"].astype(float), strict=True))
    return {name: values[key] for name, key in settings_beside(__file__)["helpers"].items()}


def figure_six_games(
    results: shared.PanoramiaResults, audit: AuditConfig, changes: Mapping[str, Any], *, target: str
) -> shared.PanoramiaResults:
    """Games of a target and its nulls for Figure 6, in the paper's form; the page's without
    changes.
    """
    if not changes:
        return results
    # O(1) needs no training part, and takes all real non-members that the coins leave it.
    names, real = [target, *nulls_like(results, target)], results.pools.nonmembers
    wanted = replace(audit, form="paper", **changes)
    sizes = range(2, min(wanted.test, 2 * len(real) if real else 0) + 1)
    most = bisect_right(sizes, len(real or ()), key=lambda size: smallest_pool(2, 2, size)) + 1
    grid = replace(wanted, train=2, validation=2, test=most)
    judged = [
        *audit_pools(results.pools, wanted, targets=names, audits=["panoramia"]).judged,
        *audit_pools(results.pools, grid, targets=names, audits=["o1"]).judged,
    ]
    return shared.PanoramiaResults(
        results.pools, {"paper": TargetAudits(tuple(judged), wanted)}, "paper"
    )


def over_test_size(
    results: shared.PanoramiaResults, sizes: Sequence[int], *, target: str
) -> pd.DataFrame:
    """PANORAMIA's bounds of a target and its nulls on the first examples of each test part: Figure
    6.
    """
    audits, names = results.decisive, [target, *nulls_like(results, target)]
    games = tuple(one for one in audits.select("panoramia") if one.target.name in names)
    return replace(audits, judged=games).over_test_size(sizes)


def model_sizes(results: shared.PanoramiaResults) -> pd.DataFrame:
    """Targets of the commonest number of epochs by size (Figure 15)."""
    table = results.pools.table[~results.pools.table["null"]]
    table = table[table["epochs"] == table["epochs"].mode().max()]
    sizes = table[["target", "architecture"]].assign(
        parameters=table["parameters"].astype(int),
        eps_tilde=table["target"].map(results.value),
        rm_rn=[results.value(name, "rm_rn") for name in table["target"]],
        o1=[results.value(name, "o1") for name in table["target"]],
        gap=100 * (table["train_metric"] - table["test_metric"]),
    )
    return sizes.sort_values(["architecture", "parameters"], ignore_index=True)


def whole_table(results: shared.PanoramiaResults, quality: Mapping[str, float]) -> pd.DataFrame:
    """Everything of a run, one row per target."""
    found = results.summary[results.summary["search"] == results.search]
    columns = {
        "c_lb": "c_lb",
        "c_plus_eps_lb": "c+eps_lb",
        "value": "value",
        "value_sd": "sd",
        "baseline_auc": "baseline auc",
        "mia_auc": "attack auc",
        "ceiling": "ceiling",
    }
    table = results.pools.table.set_index("target")
    for (form, audit), rows in found.groupby(["form", "audit"], sort=False):
        own = (
            rows.set_index("target")[list(columns)]
            .rename(columns=columns)
            .dropna(axis=1, how="all")
        )
        table = table.join(own.add_prefix(f"{audit} ({form} form) "))
    return table.assign(games=int(found["games"].max()), **quality).reset_index()


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """Runs of the page that were made before, equal but for the seed."""

    table: pd.DataFrame  # of `whole_table`, with the seed of the run in front
    origin: str  # date and place of the run
    parameters: Mapping[str, Any]
    grid: NDArray[np.uint8]  # sample images, shape (height, width, 3)

    @property
    def means(self) -> pd.DataFrame:
        """Means over models, with the deviation of eps-tilde; accuracies in per cent."""
        table = self.table
        shown = table[["target", "null"]].assign(
            train_accuracy=table["train_metric"],
            test_accuracy=table["test_metric"],
            c_lb=table[f"{_OWN} c_lb"],
            c_plus_eps_lb=table[f"{_OWN} c+eps_lb"],
            eps_tilde=table[f"{_OWN} c+eps_lb"] - table[f"{_OWN} c_lb"],
            helpers_eps_tilde=table[f"{_HELPERS} c+eps_lb"] - table[f"{_HELPERS} c_lb"],
            rm_rn=table["rm_rn (paper form) value"],
            o1=table["o1 (paper form) value"],
        )
        models = shown.groupby(["target", "null"], sort=False)
        means, raised = models.mean(), ["eps_tilde", "helpers_eps_tilde"]
        means[["train_accuracy", "test_accuracy"]] *= 100
        means[raised] = means[raised].clip(lower=0)
        return means.assign(eps_tilde_sd=models["eps_tilde"].std()).reset_index()


def measured_run(path: str) -> MeasuredRun | None:
    """Runs kept as a table (.csv), its result file (.json) and its sample grid (.png)."""
    if (found := measured_table(path)) is None:
        return None
    table, origin = found
    if missing := [
        name for name in ("seed", f"{_OWN} c_lb", f"{_HELPERS} c_lb") if name not in table
    ]:
        raise ValueError(f"measured: {path} lacks {', '.join(missing)}; measure it anew")
    if not (samples := kept_file(path).with_suffix(".png")).is_file():
        raise ValueError(f"measured: {path} has no sample grid beside it ({samples.name})")
    with Image.open(samples, formats=("PNG",)) as image:
        grid = np.asarray(image.convert("RGB"))
    return MeasuredRun(table, origin, read_result(samples.with_suffix(".json")).parameters, grid)


RECALLS = (0.1, 0.25)
"""Low recalls, at which Figure 3 is read."""
ON_CELEBA = [f"table-{at:02}" for at in (1, 2, 3)] + [f"figure-{at:02}" for at in (3, 4, 7, 10, 13)]
"""What the paper shows on CelebA."""
LOW_RECALL, HALF = 0.3, 0.5
"""Figure 4: where the largest bound is claimed to lie, and the recall it is compared with."""


def evidence(
    results: shared.PanoramiaResults,
    helpers: pd.DataFrame,
    train_sizes: pd.DataFrame,
    quality: Mapping[str, float],
    *,
    larger: shared.PanoramiaResults | None = None,
    nonmembers_helper: str = "",
    label_noise: float,
) -> list[Evidence]:
    """Samples for all rules on images."""
    names = series(results)
    last, nulls = names[-1], nulls_like(results, names[-1])
    table = (
        100 * results.pools.table.set_index("target").loc[names, ["train_metric", "test_metric"]]
    )
    train, test = table["train_metric"], table["test_metric"]
    gaps, several = train - test, len(names) > 1
    one = {
        "gap grows": [gaps.iloc[-1] - gaps.iloc[0]] if several else [],
        "test falls": [test.iloc[0] - test.iloc[-1]] if several else [],
        "overfitted": [train.iloc[-1]],
        "clean labels": Estimate(label_noise),
    }
    losses = shared.loss_groups(results.pools, names, KINDS).values()
    apart = [float(one["real non-members"].mean() - one["real members"].mean()) for one in losses]
    note = (
        "Kernel distance to members: {kid generated:z.2f} ± {kid generated error:.2f} (generated), "
        "{kid nonmembers:z.2f} ± {kid nonmembers error:.2f} (real non-members); near duplicates of "
        "images of D_G: {near generated:.1%} and {near nonmembers:.1%}."
    ).format_map(quality)
    return [
        Evidence("panoramia-table-01", "model", one),
        *(
            shared.helper_table(f"panoramia-table-0{at}", helpers, nonmembers_helper)
            for at in (2, 5)
        ),
        shared.table_three_evidence(results, names, nulls),
        _over_training_size("panoramia-figure-02", train_sizes, "c_lb"),
        *figures_three_and_four(results, last, nulls),
        shared.figure_six(larger or results, last, nulls),
        Evidence("panoramia-figure-07", "model", {}, note),
        shared.figure_ten(results.decisive, last),
        _over_training_size("panoramia-figure-11", train_sizes, "c_plus_eps_lb"),
        Evidence(
            "panoramia-figure-13", "model", {"losses separate": [apart[-1] - apart[0]] * several}
        ),
        figure_fifteen(results),
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


def _over_training_size(target: str, sizes: pd.DataFrame, column: str) -> Evidence:
    bounds = sizes.pivot(index="seed", columns="train", values=column).sort_index(axis=1)
    gains = bounds.diff(axis=1).iloc[:, 1:]
    values = {
        "rises": shared.paired(bounds.iloc[:, -1], bounds.iloc[:, 0])
        if len(bounds.columns) > 1
        else [],
        "flattens": shared.paired(gains.iloc[:, -1], gains.iloc[:, 0] / 3)
        if len(gains.columns) > 1
        else [],
        "enough training": Estimate(float(bounds.columns.max())),
    }
    return Evidence(target, "game", values)


def figures_three_and_four(
    results: shared.PanoramiaResults, name: str, nulls: list[str]
) -> Iterator[Evidence]:
    """Precision at low recalls, and the recall of the largest bound."""
    curves = results.decisive.curves(target=name)
    reached = {
        f"recall {at:g}": _at_recall(curves, at)["precision"].unstack("test") for at in RECALLS
    }
    three = {
        "attack more precise": {
            at: shared.paired(one["mia"], one["baseline"]) for at, one in reached.items()
        },
        "room above": {at: one["baseline"].tolist() for at, one in reached.items()},
    }
    yield Evidence("panoramia-figure-03", "game", three)
    attack = curves[curves["test"] == "mia"].reset_index(drop=True)
    best = attack.loc[attack.groupby("seed")["bound"].idxmax()].set_index("seed")
    low = (best["recall"] <= LOW_RECALL) & (best["bound"] > 0)
    half = _at_recall(attack, HALF)["bound"].droplevel("test")
    four = {
        "maximum at low recall": low.astype(float).tolist(),
        "falls to recall 0.5": shared.paired(best["bound"], half),
        "null": shared.null_samples(results.decisive, nulls),
    }
    yield Evidence("panoramia-figure-04", "game", four)


def _at_recall(curves: pd.DataFrame, recall: float) -> pd.DataFrame:
    """The first guesses that reach a recall: one row per game (seed) and test."""
    return curves[curves["recall"] >= recall].groupby(["seed", "test"]).first()


def figure_fifteen(results: shared.PanoramiaResults) -> Evidence:
    """Of the family with most sizes, the largest and the smallest model without DP."""
    sizes = model_sizes(results)
    sizes = sizes[sizes["target"].isin(results.trained)].sort_values("parameters")
    if sizes.empty:
        unmeasured = {"larger leaks more": [], "null": [], "sizes apart": []}
        return Evidence("panoramia-figure-15", "game", unmeasured)
    names = sizes["architecture"].str.extract("^(resnet|wrn|vit)", expand=False)
    family = max((rows for _, rows in sizes.groupby(names.fillna(sizes["architecture"]))), key=len)
    small, large = family["target"].iloc[[0, -1]]
    eps = [shared.by_game(results.decisive, name) for name in (large, small)]
    values = {
        "larger leaks more": shared.paired(*eps) if large != small else [],
        "null": shared.null_samples(results.decisive, nulls_like(results, large)),
        "sizes apart": Estimate(
            float(family["parameters"].iloc[-1] / family["parameters"].iloc[0])
        ),
    }
    return Evidence("panoramia-figure-15", "game", values)
