"""The tables of PANORAMIA on images: Tables 1, 2, 3 and 5, Figures 2 to 15."""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from paperlib.audits.panoramia.game import AuditConfig, smallest_pool
from paperlib.audits.panoramia.pools import Pools
from paperlib.audits.panoramia.results import TargetAudits
from paperlib.audits.panoramia.run import audit_pools, over_training_size
from paperlib.core import MembershipScores
from paperlib.models.images import ARCHITECTURES
from paperlib.papers.panoramia.images.models import ImageTarget
from paperlib.papers.panoramia.results import PanoramiaResults
from paperlib.report import paper_table

KINDS = {"members": "real members", "generated": "generated", "nonmembers": "real non-members"}
"""Kinds of images, and their names in figures."""

HELPERS = {
    "none": ("no_helper", ""),
    "synthetic": ("gen", "wide_resnet_28_2"),
    "real resnet101": ("real", "resnet101"),
    "real non-members": ("real", "wide_resnet_28_2"),
    "imagenet": ("imgnet", ""),
}
"""Our names of the helpers of the paper's Table 5: training data and architecture there."""

_TARGET = re.compile(r"(?P<null>null )?(?P<name>[a-z0-9-]+?)(@(?P<width>\d+))?:(?P<epochs>\d+)")


def parse_targets(words: Sequence[str], **settings: Any) -> tuple[ImageTarget, ...]:
    """Targets written as "[null ]ARCHITECTURE[@WIDTH]:EPOCHS".

    >>> [target.name for target in parse_targets(["cnn@8:5", "null resnet18:20"], cnn={"dp_epsilon": 8.0})]
    ['cnn-8 E5 DP 8', 'null resnet18 E20']
    """
    found = []
    own = {name: settings.pop(name) for name in tuple(settings) if name in ARCHITECTURES}
    for text in words:
        match = _TARGET.fullmatch(text)
        if match is None or match["name"] not in ARCHITECTURES:
            raise ValueError(
                "targets: expected '[null ]ARCHITECTURE[@WIDTH]:EPOCHS' with one of "
                f"{', '.join(ARCHITECTURES)}, got {text!r}"
            )
        width = {} if match["width"] is None else {"width": int(match["width"])}
        shown = match["name"] + (f"-{match['width']}" if match["width"] else "")
        chosen = {**width, **settings, **own.get(match["name"], {})}
        private = f" DP {chosen['dp_epsilon']:g}" if chosen.get("dp_epsilon") is not None else ""
        found.append(
            ImageTarget(
                name=f"{match['null'] or ''}{shown} E{match['epochs']}{private}",
                architecture=match["name"],
                epochs=int(match["epochs"]),
                null=match["null"] is not None,
                **chosen,
            )
        )
    return tuple(found)


def series(results: PanoramiaResults) -> list[str]:
    """The first architecture's targets by epochs: over-training."""
    table = results.pools.table[~results.pools.table["null"]]
    about = ["architecture", "width"]
    same = (table[about] == table[about].iloc[0]).all(axis=1)
    return list(table[same].sort_values("epochs", kind="stable")["target"])


def nulls_like(results: PanoramiaResults, name: str) -> list[str]:
    """Null targets of a target's architecture, number of parameters and epochs."""
    table, about = results.pools.table, ["architecture", "parameters", "epochs"]
    like = (table[about] == table.loc[table["target"] == name, about].iloc[0]).all(axis=1)
    return list(table.loc[table["null"] & like, "target"])


def run_images(pools: Pools, audit: AuditConfig) -> PanoramiaResults:
    """Audit all targets in the paper's form with all three audits, and PANORAMIA with helpers in both."""
    if pools.nonmembers is None:
        raise ValueError("nonmembers: expected real ones, which RM;RN and O(1) need, got none")
    paper = audit_pools(pools, replace(audit, form="paper"))
    helpers = audit_pools(pools, replace(audit, form="helpers"), audits=["panoramia"])
    return PanoramiaResults(pools, {"paper": paper, "helpers": helpers}, "paper")


def paper_models(names: Sequence[str], dataset: str) -> dict[str, str]:
    """Our targets by over-training, each with the paper's of the same degree.

    >>> paper_models(["cnn E5", "cnn E20"], "mnist5k")
    {'cnn E5': 'ResNet101_E20', 'cnn E20': 'ResNet101_E50'}
    """
    resnets, celeba = ("ResNet101_E20", "ResNet101_E50", "ResNet101_E100"), ("CNN_E50", "CNN_E100")
    return dict(zip(names, celeba if dataset == "celeba" else resnets, strict=False))


def printed_three(names: Sequence[str], dataset: str) -> dict[str, pd.DataFrame]:
    """The paper's rows of Table 3 that stand beside our targets."""
    printed = paper_table("panoramia_table03")
    like = paper_models(names, dataset).items()
    return {name: printed[printed["target_model"] == model] for name, model in like}


def table_one(results: PanoramiaResults, dataset: str) -> pd.DataFrame:
    """Accuracies in per cent and losses, on the training part and on real non-members; the paper's beside."""
    table, models = results.pools.table, paper_models(series(results), dataset)
    printed = paper_table("panoramia_table01").set_index("target_model")["test_accuracy_pct"]
    ours = table[["target", "null", "epochs", "train_loss", "test_loss"]].assign(
        train_accuracy=100 * table["train_metric"],
        test_accuracy=100 * table["test_metric"],
        paper_target=table["target"].map(models),
    )
    return ours.assign(paper_test_accuracy=ours["paper_target"].map(printed))


def searches(results: PanoramiaResults) -> pd.DataFrame:
    """All audits by form and by search over recall: bounds, deviations, AUCs."""
    columns = ["target", "audit", "form", "search", "c_lb", "c_plus_eps_lb", "value", "value_sd", "value_t"]
    found = results.summary
    grid = (found["audit"] == "o1") & (found["search"] != results.search)
    return found.loc[~grid, [*columns, "baseline_auc", "mia_auc"]].reset_index(drop=True)


def above_real(results: PanoramiaResults) -> pd.DataFrame:
    """What a comparison of eps-tilde with RM;RN must know, one row per target."""
    rows = []
    for target in results.pools.target_names:
        own, real = results.one(target), results.one(target, "rm_rn")
        members, *others = (
            (kind, pool.targets[target][:, 0]) for kind, pool in results.pools.by_kind().items()
        )
        aucs = {
            f"auc_{'real' if kind == 'nonmembers' else kind}": MembershipScores(
                members[1], losses, higher_means_member=False
            ).auc()
            for kind, losses in others
        }
        rows.append(
            {
                "target": target,
                "null": target in results.null,
                "eps_tilde": own["value"],
                "eps_tilde_sd": own["value_sd"],
                "rm_rn": real["value"],
                "rm_rn_sd": real["value_sd"],
                "rm_rn_auc": real["mia_auc"],
                **aucs,
            }
        )
    return pd.DataFrame(rows)


def printed_helpers() -> dict[str, float]:
    """The c_lb that the paper's Table 5 prints on CIFAR-10, by our name of the helper.

    >>> printed_helpers()["imagenet"]
    1.12
    """
    printed = paper_table("panoramia_table05").query("dataset == 'CIFAR10'")
    keys = printed[["helper_training_data", "helper_architecture"]].fillna("").itertuples(index=False)
    values = dict(zip(map(tuple, keys), printed["c_lb"].astype(float), strict=True))
    return {name: values[key] for name, key in HELPERS.items()}


def training_sizes(pools: Pools, audit: AuditConfig, sizes: Sequence[int], *, target: str) -> pd.DataFrame:
    """Bounds over the size of the attacks' training part, paper's form, first search: Figures 2 and 11."""
    found = over_training_size(pools, replace(audit, form="paper"), sizes, targets=[target])
    return found[found["search"] == audit.searches[0]]


def figure_six_games(
    results: PanoramiaResults, audit: AuditConfig, changes: Mapping[str, Any], *, target: str
) -> PanoramiaResults:
    """Games of their own for Figure 6, in the paper's form, of a target and its nulls; none without changes.

    O(1) needs no training part, and takes all real non-members that the coins leave it.
    """
    if not changes:
        return results
    names, real = [target, *nulls_like(results, target)], results.pools.nonmembers
    wanted = replace(audit, form="paper", **changes)
    sizes = range(2, min(wanted.test, 2 * len(real) if real else 0) + 1)
    most = bisect_right(sizes, len(real or ()), key=lambda size: smallest_pool(2, 2, size)) + 1
    grid = replace(wanted, train=2, validation=2, test=most)
    judged = [
        *audit_pools(results.pools, wanted, targets=names, audits=["panoramia"]).judged,
        *audit_pools(results.pools, grid, targets=names, audits=["o1"]).judged,
    ]
    return PanoramiaResults(results.pools, {"paper": TargetAudits(tuple(judged), wanted)}, "paper")


def over_test_size(results: PanoramiaResults, sizes: Sequence[int], *, target: str) -> pd.DataFrame:
    """PANORAMIA's bounds on the first examples of each test part, of a target and its nulls: Figure 6."""
    audits, names = results.decisive, [target, *nulls_like(results, target)]
    games = tuple(one for one in audits.select("panoramia") if one.target.name in names)
    return replace(audits, judged=games).over_test_size(sizes)


def model_sizes(results: PanoramiaResults) -> pd.DataFrame:
    """Targets of the commonest number of epochs by size: parameters, eps-tilde, RM;RN, O(1) (Figure 15)."""
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


def quality_table(quality: Mapping[str, float], results: PanoramiaResults) -> pd.DataFrame:
    """How good the generator is, in a few numbers: what, value."""
    first = results.one(results.trained[0])
    rows = {
        "share of generated images that the filter keeps": quality["kept"],
        "kernel distance to the members, generated images": quality["kid generated"],
        "its standard error": quality["kid generated error"],
        "kernel distance to the members, real non-members": quality["kid nonmembers"],
        "its standard error (non-members)": quality["kid nonmembers error"],
        "share of generated images that nearly repeat one of D_G": quality["near generated"],
        "share of real non-members that do": quality["near nonmembers"],
        "accuracy of the labeler on real non-members": quality["labeler accuracy"],
        f"c_lb of the baseline ({results.search})": float(first["c_lb"]),
        "AUC of the baseline": float(first["baseline_auc"]),
        "ceiling of a perfect attack": float(first["ceiling"]),
    }
    return pd.DataFrame({"what": list(rows), "value": list(rows.values())})


def whole_table(results: PanoramiaResults, quality: Mapping[str, float]) -> pd.DataFrame:
    """Everything of a run in one table, to be kept beside other runs: one row per target."""
    found = results.summary[results.summary["search"] == results.search]
    columns = {"c_lb": "c_lb", "c_plus_eps_lb": "c+eps_lb", "value": "value", "value_sd": "sd",
               "baseline_auc": "baseline auc", "mia_auc": "attack auc", "ceiling": "ceiling"}  # fmt: skip
    table = results.pools.table.set_index("target")
    for (form, audit), rows in found.groupby(["form", "audit"], sort=False):
        own = rows.set_index("target")[list(columns)].rename(columns=columns).dropna(axis=1, how="all")
        table = table.join(own.add_prefix(f"{audit} ({form} form) "))
    return table.assign(games=int(found["games"].max()), **quality).reset_index()
