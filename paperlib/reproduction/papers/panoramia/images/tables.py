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
from paperlib.reproduction.exhibits import paper_table
from paperlib.reproduction.papers.measured import kept_file, measured_table
from paperlib.reproduction.papers.panoramia import results as shared
from paperlib.reproduction.papers.settings import settings_beside
from paperlib.reproduction.papers.verdict import Estimate, Evidence
from paperlib.reproduction.papers.verdict.earlier import replaces_images
from paperlib.reproduction.papers.verdict.evidence import Level, Sample

KINDS = {"members": "real members", "generated": "generated", "nonmembers": "real non-members"}
"""Kinds of images, and their names in figures."""

_OWN = "panoramia (paper form)"  # how the columns of `whole_table` begin
_HELPERS = "panoramia (helpers form)"
_QUALITY = (
    "Kernel distance to members: {kid generated:z.2f} ± {kid generated error:.2f} (generated), "
    "{kid nonmembers:z.2f} ± {kid nonmembers error:.2f} (real non-members); near duplicates of "
    "images of D_G: {near generated:.1%} and {near nonmembers:.1%}."
)


def series(results: shared.PanoramiaResults) -> list[str]:
    """Names of the targets of the first one's architecture and width by epochs upwards, without
    nulls: over-training.
    """
    table = results.pools.table[~results.pools.table["null"]]
    model = ["architecture", "width"]
    same = (table[model] == table[model].iloc[0]).all(axis=1)
    return list(table[same].sort_values("epochs", kind="stable")["target"])


def nulls_like(results: shared.PanoramiaResults, name: str) -> list[str]:
    """Names of the null targets of a target's architecture, number of parameters and epochs; empty
    where there is none.
    """
    table = results.pools.table
    model = ["architecture", "parameters", "epochs"]
    same = (table[model] == table.loc[table["target"] == name, model].iloc[0]).all(axis=1)
    return list(table.loc[table["null"] & same, "target"])


def run_images(pools: Pools, audit: AuditConfig) -> shared.PanoramiaResults:
    """All three audits in the paper's form, and PANORAMIA with helpers in both tests.

    Raises:
        ValueError: Pools without real non-members.
    """
    if pools.nonmembers is None:
        raise ValueError("nonmembers: expected real ones, which RM;RN and O(1) need, got none")
    paper = audit_pools(pools, replace(audit, form="paper"))
    helpers = audit_pools(pools, replace(audit, form="helpers"), audits=["panoramia"])
    return shared.PanoramiaResults(pools, {"paper": paper, "helpers": helpers}, "paper")


def paper_models(names: Sequence[str], dataset: str) -> dict[str, str]:
    """Names of our targets, in the order of over-training, to the paper's of the same degree; those
    beyond the paper's are left out.
    """
    models = ("ResNet101_E20", "ResNet101_E50", "ResNet101_E100")
    if dataset == "celeba":
        models = ("CNN_E50", "CNN_E100")
    return dict(zip(names, models, strict=False))


def printed_three(names: Sequence[str], dataset: str) -> dict[str, pd.DataFrame]:
    """The paper's rows of Table 3 that stand beside our targets."""
    printed = paper_table("panoramia_table03")
    like = paper_models(names, dataset).items()
    return {name: printed[printed["target_model"] == model] for name, model in like}


def table_one(results: shared.PanoramiaResults, dataset: str) -> pd.DataFrame:
    """Table 1, a row for each target: accuracies in per cent and mean losses, nats, beside the
    paper's test accuracy where it has a target of the same degree.
    """
    table = results.pools.table
    models = paper_models(series(results), dataset)
    printed = paper_table("panoramia_table01").set_index("target_model")["test_accuracy_pct"]
    ours = table[["target", "null", "epochs", "train_loss", "test_loss"]].assign(
        train_accuracy=100 * table["train_metric"],
        test_accuracy=100 * table["test_metric"],
        paper_target=table["target"].map(models),
    )
    return ours.assign(paper_test_accuracy=ours["paper_target"].map(printed))


def searches(results: shared.PanoramiaResults) -> pd.DataFrame:
    """Means over games, one row for each target, audit, form and search over recall.

    Columns are those four names; the mean bounds c_lb, c_plus_eps_lb and value, nats (the first two
    NaN but for PANORAMIA); value_sd, the deviation of the value over games, and value_t, half the
    width of its 95 % t-interval, both NaN after one game; and mean AUCs in [0, 1] of baseline (NaN
    but for PANORAMIA) and attack. O(1), which is there for comparison, has rows of the first search
    alone.
    """
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
    summary = results.summary
    left_out = (summary["audit"] == "o1") & (summary["search"] != results.search)
    return summary.loc[~left_out, [*columns, "baseline_auc", "mia_auc"]].reset_index(drop=True)


def above_real(results: shared.PanoramiaResults) -> pd.DataFrame:
    """What a comparison of eps-tilde with RM;RN must know, one row per target.

    Both with their deviations over games (nats); the AUC of RM;RN's attack; and the AUC of the loss
    of members against generated images and against real non-members.
    """
    kinds = results.pools.by_kind()

    def auc(name: str, kind: str) -> float:
        """AUC of a target's loss of members against that of another kind."""
        members = kinds["members"].targets[name][:, 0]
        others = kinds[kind].targets[name][:, 0]
        return MembershipScores(members, others, higher_means_member=False).auc()

    columns = ["target", "null", "eps_tilde", "eps_tilde_sd", "rm_rn", "rm_rn_sd"]
    table = shared.table_three(results, {})[columns]
    return table.assign(
        rm_rn_auc=[results.means_of(name, "rm_rn")["mia_auc"] for name in table["target"]],
        auc_generated=[auc(name, "generated") for name in table["target"]],
        auc_real=[auc(name, "nonmembers") for name in table["target"]],
    )


def printed_helpers() -> dict[str, float]:
    """The c_lb that the paper's Table 5 prints on CIFAR-10, by our name of the helper."""
    printed = paper_table("panoramia_table05").query("dataset == 'CIFAR10'")
    helpers = printed[["helper_training_data", "helper_architecture"]].fillna("")
    keys = [tuple(row) for row in helpers.itertuples(index=False)]
    values = dict(zip(keys, printed["c_lb"].astype(float), strict=True))
    return {name: values[key] for name, key in settings_beside(__file__)["helpers"].items()}


def figure_six_games(
    results: shared.PanoramiaResults, audit: AuditConfig, changes: Mapping[str, Any], *, target: str
) -> shared.PanoramiaResults:
    """Games of a target and its nulls for Figure 6, in the paper's form.

    Args:
        results: Of the page, which are returned where there are no changes.
        audit: Of the page.
        changes: Fields of ``audit`` that these games have otherwise, such as a larger ``test``.
        target: Its name.
    """
    if not changes:
        return results
    pools = results.pools
    names = [target, *nulls_like(results, target)]
    changed = replace(audit, form="paper", **changes)
    # O(1) needs no training part, and takes all real non-members that the coins leave it.
    real = 0 if pools.nonmembers is None else len(pools.nonmembers)
    grid = replace(changed, train=2, validation=2, test=_largest_grid_test(changed.test, real))
    judged = [
        *audit_pools(pools, changed, targets=names, audits=["panoramia"]).judged,
        *audit_pools(pools, grid, targets=names, audits=["o1"]).judged,
    ]
    audits = TargetAudits(tuple(judged), changed)
    return shared.PanoramiaResults(pools, {"paper": audits}, "paper")


def _largest_grid_test(test: int, real: int) -> int:
    """The largest test part, up to ``test``, that so many real non-members are enough for."""
    sizes = range(2, min(test, 2 * real) + 1)
    # `smallest_pool` grows with the size, so that the sizes with a pool that is small enough come
    # first; the sizes begin at 2.
    return bisect_right(sizes, real, key=lambda size: smallest_pool(2, 2, size)) + 1


def over_test_size(
    results: shared.PanoramiaResults, sizes: Sequence[int], *, target: str
) -> pd.DataFrame:
    """Figure 6: PANORAMIA's bounds of a target and its nulls on the first examples of each test
    part, a row for each game and size, as in `TargetAudits.over_test_size`.
    """
    audits = results.decisive
    names = [target, *nulls_like(results, target)]
    games = [game for game in audits.select("panoramia") if game.target.name in names]
    return replace(audits, judged=tuple(games)).over_test_size(sizes)


def model_sizes(results: shared.PanoramiaResults) -> pd.DataFrame:
    """Figure 15: a row for each target of the commonest number of epochs, by architecture and size.

    Columns target, architecture, parameters (their number), eps_tilde, rm_rn and o1 (means over
    games, nats), and gap, training less test accuracy in per cent.
    """
    table = results.pools.table[~results.pools.table["null"]]
    # The largest of several numbers that are equally common.
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
    """All numbers of a run, one row per target: its accuracy and sizes, and for each audit and form
    the bounds c_lb (generator), c_plus_eps_lb (generator and target) and their difference with its
    deviation, all in nats, and the AUC of baseline and attack.

    ``quality`` are further columns, equal in all rows.
    """
    summary = results.summary[results.summary["search"] == results.search]
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
    for (form, audit), rows in summary.groupby(["form", "audit"], sort=False):
        numbers = rows.set_index("target")[list(columns)].rename(columns=columns)
        # Columns of the baseline are empty in an audit without one.
        numbers = numbers.dropna(axis=1, how="all")
        table = table.join(numbers.add_prefix(f"{audit} ({form} form) "))
    return table.assign(games=int(summary["games"].max()), **quality).reset_index()


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """Runs of the page that were made before, equal but for the seed."""

    table: pd.DataFrame  # of `whole_table`, with the seed of the run in front
    origin: str  # date and place of the run
    parameters: Mapping[str, Any]
    grid: NDArray[np.uint8]  # sample images, shape (height, width, 3)

    @property
    def means(self) -> pd.DataFrame:
        """Means over the models of all seeds, a row for each target: accuracies in per cent, bounds
        in nats, and the deviation of eps-tilde over models.
        """
        table = self.table
        columns = table[["target", "null"]].assign(
            train_accuracy=table["train_metric"],
            test_accuracy=table["test_metric"],
            c_lb=table[f"{_OWN} c_lb"],
            c_plus_eps_lb=table[f"{_OWN} c+eps_lb"],
            eps_tilde=table[f"{_OWN} c+eps_lb"] - table[f"{_OWN} c_lb"],
            helpers_eps_tilde=table[f"{_HELPERS} c+eps_lb"] - table[f"{_HELPERS} c_lb"],
            rm_rn=table["rm_rn (paper form) value"],
            o1=table["o1 (paper form) value"],
        )
        models = columns.groupby(["target", "null"], sort=False)
        means = models.mean()
        means[["train_accuracy", "test_accuracy"]] *= 100
        differences = ["eps_tilde", "helpers_eps_tilde"]
        means[differences] = means[differences].clip(lower=0)
        return means.assign(eps_tilde_sd=models["eps_tilde"].std()).reset_index()


def measured_run(path: str) -> MeasuredRun | None:
    """Runs kept as a table (.csv), its result file (.json) and its sample grid (.png).

    None for an empty path; raises ValueError where a column or the grid is missing.
    """
    measured = measured_table(path)
    if measured is None:
        return None
    table, origin = measured
    needed = ("seed", f"{_OWN} c_lb", f"{_HELPERS} c_lb")
    missing = [name for name in needed if name not in table]
    if missing:
        raise ValueError(f"measured: {path} lacks {', '.join(missing)}; measure it anew")
    samples = kept_file(path).with_suffix(".png")
    if not samples.is_file():
        raise ValueError(f"measured: {path} has no sample grid beside it ({samples.name})")
    with Image.open(samples, formats=("PNG",)) as image:
        grid = np.asarray(image.convert("RGB"))
    return MeasuredRun(table, origin, read_result(samples.with_suffix(".json")).parameters, grid)


RECALLS = (0.1, 0.25)
"""Low recalls, at which Figure 3 is read."""
ON_CELEBA = [
    "table-01",
    "table-02",
    "table-03",
    "figure-03",
    "figure-04",
    "figure-07",
    "figure-10",
    "figure-13",
]
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
    """Samples for all rules on images.

    Args:
        results: Audits of all targets in the paper's form.
        helpers: Games of `helper_games`.
        train_sizes: Games by the size of the training part, in the column "train".
        quality: Numbers about generated images by name.
        larger: Games of Figure 6; None takes those of ``results``.
        nonmembers_helper: Name of the helper on real non-members; empty without one.
        label_noise: Share of the labels that are drawn anew.
    """
    names = series(results)
    last = names[-1]
    nulls = nulls_like(results, last)
    return [
        _table_one_evidence(results, names, label_noise),
        shared.helper_table("panoramia-table-02", helpers, nonmembers_helper),
        shared.helper_table("panoramia-table-05", helpers, nonmembers_helper),
        shared.table_three_evidence(results, names, nulls),
        _over_training_size("panoramia-figure-02", train_sizes, "c_lb"),
        *figures_three_and_four(results, last, nulls),
        shared.figure_six(larger or results, last, nulls),
        Evidence(
            target="panoramia-figure-07", unit="model", values={}, note=_QUALITY.format_map(quality)
        ),
        shared.figure_ten(results.decisive, last),
        _over_training_size("panoramia-figure-11", train_sizes, "c_plus_eps_lb"),
        _figure_thirteen_evidence(results, names),
        figure_fifteen(results),
    ]


def _table_one_evidence(
    results: shared.PanoramiaResults, names: list[str], label_noise: float
) -> Evidence:
    """Table 1: accuracies in per cent of the targets ``names``, which are in the order of
    over-training; without two of them nothing can grow or fall.
    """
    table = results.pools.table.set_index("target").loc[names]
    train = 100 * table["train_metric"]
    test = 100 * table["test_metric"]
    gaps = train - test
    several = len(names) > 1
    values = {
        "gap grows": [gaps.iloc[-1] - gaps.iloc[0]] if several else [],
        "test falls": [test.iloc[0] - test.iloc[-1]] if several else [],
        "overfitted": [train.iloc[-1]],
        "clean labels": Estimate(label_noise),
    }
    return Evidence(target="panoramia-table-01", unit="model", values=values)


def _figure_thirteen_evidence(results: shared.PanoramiaResults, names: Sequence[str]) -> Evidence:
    """Figure 13: how far over-training moves mean losses of non-members from those of members."""
    distances = [
        float(losses["real non-members"].mean() - losses["real members"].mean())
        for losses in shared.loss_groups(results.pools, names, KINDS).values()
    ]
    growth = [distances[-1] - distances[0]] if len(names) > 1 else []
    return Evidence(target="panoramia-figure-13", unit="model", values={"losses separate": growth})


def printed_on(dataset: str, evidence_of_run: Sequence[Evidence]) -> list[Evidence]:
    """The evidence on what the paper has on this data set."""
    if dataset != "celeba":
        return list(evidence_of_run)
    return [item for item in evidence_of_run if item.target.removeprefix("panoramia-") in ON_CELEBA]


def level(dataset: str, target: str, *, side: int = 0) -> Level:
    """How near a data set is to the paper's for a table or figure; ``side`` is its number of pixels
    a side, 0 for all.

    Fewer pixels than the paper's make a substitute: the images are not those that it audits.
    """
    if replaces_images({"dataset": dataset, "side": side}):
        return "substitute"
    if target == "panoramia-figure-13":  # shown on one data set
        in_the_paper = dataset == "celeba"
    else:
        in_the_paper = dataset in ("cifar10", "celeba")
    return "paper's data" if in_the_paper else "substitute"


def _over_training_size(target: str, sizes: pd.DataFrame, column: str) -> Evidence:
    """Figure 2 or 11: whether a bound rises with the size of the training part, nats, a value for
    each game.

    For Figure 2 also by how much the last step exceeds a third of the first, below 0 where the
    bound flattens; Appendix D.4 says that the bounds of Figure 11 rise on. ``sizes`` has a row for
    each game (seed) and size (train), and the bound in ``column``.
    """
    bounds = sizes.pivot(index="seed", columns="train", values=column).sort_index(axis=1)
    gains = bounds.diff(axis=1).iloc[:, 1:]  # what each size adds to the one before
    rises: list[float] = []
    if len(bounds.columns) > 1:
        rises = shared.differences_by_game(bounds.iloc[:, -1], bounds.iloc[:, 0])
    flattens: list[float] = []
    if len(gains.columns) > 1:
        flattens = shared.differences_by_game(gains.iloc[:, -1], gains.iloc[:, 0] / 3)
    values: dict[str, Sample] = {"rises": rises}
    if target == "panoramia-figure-02":
        values["flattens"] = flattens
    values["enough training"] = Estimate(float(bounds.columns.max()))
    return Evidence(target=target, unit="game", values=values)


def figures_three_and_four(
    results: shared.PanoramiaResults, name: str, nulls: list[str]
) -> Iterator[Evidence]:
    """Figure 3, precision at low recalls, and Figure 4, the recall of the largest bound; a value
    for each game of the target ``name``.

    ``nulls`` are the names of null targets beside it.
    """
    curves = results.decisive.curves(target=name)  # a row for each game, test and recall
    ahead: dict[str, list[float]] = {}
    baseline: dict[str, list[float]] = {}
    for recall in RECALLS:
        precision = _at_recall(curves, recall)["precision"].unstack("test")
        ahead[f"recall {recall:g}"] = shared.differences_by_game(
            precision["mia"], precision["baseline"]
        )
        baseline[f"recall {recall:g}"] = precision["baseline"].tolist()
    three = {"attack more precise": ahead, "room above": baseline}
    yield Evidence(target="panoramia-figure-03", unit="game", values=three)
    attack = curves[curves["test"] == "mia"].reset_index(drop=True)
    best = attack.loc[attack.groupby("seed")["bound"].idxmax()].set_index("seed")
    low = (best["recall"] <= LOW_RECALL) & (best["bound"] > 0)
    half = _at_recall(attack, HALF)["bound"].droplevel("test")
    four = {
        "maximum at low recall": low.astype(float).tolist(),
        "falls to recall 0.5": shared.differences_by_game(best["bound"], half),
        "null": shared.null_samples(results.decisive, nulls),
    }
    yield Evidence(target="panoramia-figure-04", unit="game", values=four)


def _at_recall(curves: pd.DataFrame, recall: float) -> pd.DataFrame:
    """The first guesses that reach a recall: one row per game (seed) and test."""
    return curves[curves["recall"] >= recall].groupby(["seed", "test"]).first()


def figure_fifteen(results: shared.PanoramiaResults) -> Evidence:
    """Figure 15: eps~ of the largest model without DP less that of the smallest, of the family of
    networks with most sizes; nats, a value for each game.
    """
    sizes = model_sizes(results)
    sizes = sizes[sizes["target"].isin(results.trained)].sort_values("parameters")
    if sizes.empty:
        unmeasured = {"larger leaks more": [], "null": [], "sizes apart": []}
        return Evidence(target="panoramia-figure-15", unit="game", values=unmeasured)
    # Names that begin alike are of one family, such as resnet18 and resnet50; any other
    # architecture is a family of its own.
    names = sizes["architecture"].str.extract("^(resnet|wrn|vit)", expand=False)
    families = [rows for _, rows in sizes.groupby(names.fillna(sizes["architecture"]))]
    family = max(families, key=len)
    small, large = family["target"].iloc[[0, -1]]
    audits = results.decisive
    larger_leaks: list[float] = []
    if large != small:
        larger_leaks = shared.differences_by_game(
            shared.by_game(audits, large), shared.by_game(audits, small)
        )
    ratio = family["parameters"].iloc[-1] / family["parameters"].iloc[0]
    values = {
        "larger leaks more": larger_leaks,
        "null": shared.null_samples(audits, nulls_like(results, large)),
        "sizes apart": Estimate(float(ratio)),
    }
    return Evidence(target="panoramia-figure-15", unit="game", values=values)
