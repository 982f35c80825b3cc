"""PANORAMIA on tables: its audits, Table 6, Figures 10 and 12, stronger attacks, and evidence on
them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from paperlib.audits.panoramia.game import FORMS, AuditConfig
from paperlib.audits.panoramia.pools import Pool, Pools, part_key
from paperlib.audits.panoramia.results import AUDITS, AuditName, TargetAudits, means_over_games
from paperlib.audits.panoramia.run import audit_pools
from paperlib.core import FloatArray, MembershipScores
from paperlib.papers.panoramia.results import PanoramiaResults, by_game, figure_ten
from paperlib.papers.panoramia.tables.lira import ONLINE, Shown, game_pools, judged_rows
from paperlib.papers.panoramia.tables.pools import (
    TabularConfig,
    TabularRows,
    tabular_pools,
    tabular_rows,
)
from paperlib.papers.panoramia.tables.shadows import STRONGER
from paperlib.papers.verdict import Estimate, Evidence
from paperlib.report import paper_table

_RARE = 0.01


@dataclass(frozen=True, eq=False)
class TabularResults:
    """Audits of several pools."""

    runs: Mapping[TabularConfig, PanoramiaResults]  # the first form has all audits

    @property
    def first(self) -> PanoramiaResults:
        """The first pools' results."""
        return next(iter(self.runs.values()))

    @cached_property
    def table(self) -> pd.DataFrame:
        """Rows of `TargetAudits.table`, with label and pools (the seed)."""
        rows = [
            audits.table.assign(label=config.label, pools=config.seed)
            for config, run in self.runs.items()
            for audits in run.forms.values()
        ]
        return pd.concat(rows, ignore_index=True)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """Means over pools and games, by label; see `means_over_games`."""
        return means_over_games(self.table, by=["label"])

    def warnings(self) -> tuple[str, ...]:
        """Warnings of the pools, and how often c_lb is above half of its ceiling."""
        found = dict.fromkeys(text for run in self.runs.values() for text in run.pools.warnings)
        games = self.table[self.table["audit"] == "panoramia"]
        if len(high := games[games["c_lb"] > games["ceiling"] / 2]):
            found[
                f"c_lb is above half of the ceiling in {len(high)} of {len(games)} audits (up to "
                f"{high['c_lb'].max():.2f}): eps~ may be positive for targets not trained on the "
                "members"
            ] = None
        return tuple(found)


def run_tabular(
    configs: Sequence[TabularConfig], audit: AuditConfig, *, forms: Sequence[str] = FORMS
) -> TabularResults:
    """Audit all targets of several pools, in the first form with all audits."""
    runs = {}
    for config in configs:
        pools = only_columns(tabular_pools(config), config.columns, ("loss",))
        audits = {}
        for form in forms:
            how = replace(audit, form=form, seed=audit.seed + 1000 * config.seed)
            audits[form] = audit_pools(pools, how, audits=AUDITS[:1] if audits else AUDITS)
        runs[config] = PanoramiaResults(pools, audits, forms[0])
    return TabularResults(runs)


def only_columns(pools: Pools, columns: Sequence[str], names: Sequence[str]) -> Pools:
    """The same pools with the named ones of the models' ``columns``, in this order."""
    if missing := [name for name in names if name not in columns]:
        raise ValueError(f"names: expected some of {', '.join(columns)}, got {', '.join(missing)}")
    places = [list(columns).index(name) for name in names]

    def narrow(outputs: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        return {name: values[:, places] for name, values in outputs.items()}

    parts = {
        kind: Pool(pool.examples, narrow(pool.helpers), narrow(pool.targets))
        for kind, pool in pools.by_kind().items()
    }
    return replace(pools, **parts, key=part_key(pools, columns=names))


def strong_attacks(
    config: TabularConfig, audit: AuditConfig, *, names: Sequence[str]
) -> pd.DataFrame:
    """The loss, the stronger attacks, and all together; the baseline has each number from its
    helpers.
    """
    rows: list[dict[str, Any]] = []
    for seed in range(audit.seed, audit.seed + audit.repetitions):
        pools, shown = game_pools(config, audit, seed)
        once = replace(audit, repetitions=1, seed=seed)
        for attack in (*config.columns, "all"):
            narrowed = only_columns(
                pools, config.columns, config.columns if attack == "all" else (attack,)
            )
            table = audit_pools(narrowed, once, targets=names, audits=["panoramia"]).table
            found = table[table["search"] == audit.searches[0]].set_index("target")
            for name in names:
                alone = (
                    {}
                    if attack == "all"
                    else _alone(narrowed, name, shown if attack == ONLINE else None)
                )
                bounds = {bound: found.loc[name, bound] for bound in ("c_lb", "c_plus_eps_lb")}
                rows.append(
                    {"target": name, "attack": STRONGER.get(attack, attack), **alone, **bounds}
                )
    means = pd.DataFrame(rows).groupby(["target", "attack"], sort=False).mean()
    means["eps_tilde"] = (means["c_plus_eps_lb"] - means["c_lb"]).clip(lower=0)
    return pd.concat([means.loc[[name]] for name in names]).reset_index()


def _alone(pools: Pools, name: str, shown: Shown | None) -> dict[str, float]:
    """AUCs of the first column; with ``shown``, of these members and generated rows alone."""
    members, generated = pools.members, pools.generated
    kept = (slice(None), slice(None)) if shown is None else shown

    def auc(member: FloatArray, other: FloatArray) -> float:
        return MembershipScores(member[:, 0], other[:, 0], higher_means_member=False).auc()

    found = {
        "auc_generated": auc(members.targets[name][kept[0]], generated.targets[name][kept[1]]),
        "helper_auc": auc(
            members.helpers["synthetic"][kept[0]], generated.helpers["synthetic"][kept[1]]
        ),
    }
    if pools.nonmembers is not None and shown is None:
        found = {"auc_real": auc(members.targets[name], pools.nonmembers.targets[name]), **found}
    return found


def extreme_values(config: TabularConfig) -> pd.DataFrame:
    """By column, the share of rare values in the rows that trees are surest of, and in others
    (D.6).
    """
    rows = tabular_rows(config)
    members, generated = rows.parts["members"], rows.generated
    joined = pd.concat([members, generated], ignore_index=True)
    codes = joined.apply(
        lambda column: column if column.dtype.kind in "biuf" else pd.factorize(column)[0]
    )
    flags = np.arange(len(joined)) < len(members)
    # Half of the rows, those first that trees trained on the other half take for members.
    train, test = np.array_split(np.random.default_rng(0).permutation(len(joined)), 2)
    trees = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=8, random_state=0)
    trees.fit(codes.iloc[train], flags[train])
    scores = np.asarray(trees.decision_function(codes.iloc[test]))
    surest = np.argsort(-scores, kind="stable")[: max(1, round(0.05 * len(test)))]
    best = joined.iloc[test[surest]]
    groups = {"top": best, "members": members, "generated": generated}
    masks = {name: _rare_values(part, generated) for name, part in groups.items()}
    shares = pd.DataFrame({name: mask.mean() for name, mask in masks.items()})
    shares.loc["any of them"] = {name: mask.any(axis=1).mean() for name, mask in masks.items()}
    shares["ratio"] = shares["top"] / shares["members"].replace(0.0, np.nan)
    return shares.rename_axis("column").reset_index().assign(top_rows=len(best))


def _rare_values(part: pd.DataFrame, generated: pd.DataFrame) -> pd.DataFrame:
    found = {}
    for name in part:
        made = generated[name]
        if made.dtype.kind in "biuf" and made.nunique() > 2:
            ordered = np.sort(made.to_numpy())
            values = part[name].to_numpy()
            below = np.searchsorted(ordered, values, side="right") / ordered.size
            above = 1 - np.searchsorted(ordered, values, side="left") / ordered.size
            found[name] = np.minimum(below, above) <= _RARE / 2
        else:
            shares = made.astype(str).value_counts(normalize=True)
            found[name] = (part[name].astype(str).map(shares).fillna(0.0) <= _RARE).to_numpy()
    return pd.DataFrame(found)


def table_six(results: TabularResults, *, form: str) -> pd.DataFrame:
    """eps-tilde of PANORAMIA and epsilon of the audits with real data, by label and target."""
    summary = results.summary
    first = summary[summary["audit"] != "panoramia"]["form"].iloc[0]
    wanted = np.where(summary["audit"] == "panoramia", form, first)
    chosen = summary[(summary["search"] == "union") & (summary["form"] == wanted)]
    wide = chosen.pivot(index=["label", "target"], columns="audit", values=["value", "value_sd"])
    pools = [run.pools.table.assign(label=config.label) for config, run in results.runs.items()]
    groups = pd.concat(pools, ignore_index=True).groupby(["label", "target"], sort=False)
    rows = groups[["train_accuracy", "test_accuracy"]].mean()
    for audit, name in {"panoramia": "eps_tilde", "rm_rn": "rm_rn", "o1": "o1"}.items():
        rows[name], rows[f"{name}_sd"] = wide["value", audit], wide["value_sd", audit]
    return rows.reset_index()


def beside_the_paper(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of `table_six`, the paper's beside the targets trained shortest and longest."""
    if "source" in table:  # a kept table may hold the paper's rows too
        table = table[table["source"] == "ours"].drop(columns="source")
    ours = table.reset_index(drop=True)
    printed = paper_table("panoramia_table06").set_index("target_model")
    own, real = (printed[printed["audit"] == audit] for audit in ("panoramia", "o1_rm_rn"))
    paper = pd.DataFrame(
        {"paper_eps_tilde": own["eps_tilde"], "paper_eps_tilde_sd": own["eps_tilde_pm"]}
    )
    paper = paper.assign(paper_o1=real["eps"], paper_o1_sd=real["eps_pm"])
    trained = ours["target"][
        (ours["label"] == ours["label"][0]) & ours["target"].str.endswith(" epochs")
    ]
    like = pd.Series(["MLP_E10", "MLP_E100"], index=trained.index[[0, -1]]).reindex(ours.index)
    return pd.concat(
        [ours, paper.reindex(like).reset_index(drop=True).assign(paper_target=like)], axis=1
    )


Runs = Mapping[TabularConfig, PanoramiaResults]
"""Configuration to audits in the form "paper", and O(1) in any."""


def evidence(results: TabularResults) -> dict[str, Evidence]:
    """Evidence from the pools of the first label, by target; those of other labels are beside the
    paper.
    """
    label = next(iter(results.runs)).label
    runs = {config: run for config, run in results.runs.items() if config.label == label}
    parts = {config: run.forms["paper"] for config, run in runs.items()}
    first = next(iter(parts.values()))
    every = TargetAudits(tuple(one for part in parts.values() for one in part.judged), first.config)
    null = results.first.null[0]
    extremes = [extremes_first(tabular_rows(config), part, null) for config, part in parts.items()]
    by_split = [float(np.mean(games)) for games in extremes if games]
    unit, values = ("model", by_split) if len(extremes) > 1 else ("game", extremes[0])
    twelve = Evidence("panoramia-figure-12", unit, {"extremes first": values})
    found = (_table_six(runs), figure_ten(every, results.first.trained[-1]), twelve)
    return {one.target: one for one in found}


def _table_six(runs: Runs) -> Evidence:
    """A number per pools, or per game on the only ones."""
    first = next(iter(runs.values()))
    names = dict.fromkeys([first.trained[0], first.trained[-1]])

    def sample(target: str, audit: AuditName = "panoramia") -> list[float]:
        played = [
            run.forms["paper"] if audit == "panoramia" else run.with_o1 for run in runs.values()
        ]
        games = [by_game(audits, target, audit).tolist() for audits in played]
        return games[0] if len(games) == 1 else [float(np.mean(values)) for values in games]

    values = {
        "eps~ near 0": {name: sample(name) for name in names},
        "O(1) positive": {name: sample(name, "o1") for name in names},
        "null": {name: sample(name) for name in first.null},
        "trained enough": _above_printed(runs, first.trained[-1]),
    }
    return Evidence("panoramia-table-06", "game" if len(runs) == 1 else "model", values)


def _above_printed(runs: Runs, target: str) -> list[float] | Estimate:
    """Train accuracy of a target less the paper's, points; nothing on other data or another
    label.
    """
    if {(config.dataset, config.label) for config in runs} != {("adult", "income")}:
        return []
    printed = paper_table("panoramia_text").set_index(["target_model", "quantity"])["value"]
    tables = [run.pools.table.set_index("target") for run in runs.values()]
    accuracy = [100 * float(table["train_accuracy"][target]) for table in tables]
    above = [value - float(printed["MLP_E100", "accuracy_pct"]) for value in accuracy]
    return above if len(above) > 1 else Estimate(above[0])


def extremes_first(rows: TabularRows, audits: TargetAudits, target: str) -> list[float]:
    """By game, extreme rows among a baseline's first 1 % of guesses, less twice those among members
    (D.6).
    """
    # Extreme: a number outside the central 99 % of the generated ones. All targets have the same
    # baseline.
    members, generated = rows.parts["members"], rows.generated
    low, high = (generated.quantile(level, numeric_only=True) for level in (0.005, 0.995))
    values = pd.concat([members, generated], ignore_index=True)[low.index]
    extreme = ((values < low) | (values > high)).any(axis=1).to_numpy()
    found = []
    for game in audits.select("panoramia", target=target):
        judged = judged_rows(len(members), len(generated), audits.config, game.seed)
        surest = judged[np.argsort(-game.baseline, kind="stable")][: max(1, judged.size // 100)]
        found.append(float(extreme[surest].mean() - 2 * extreme[: len(members)].mean()))
    return found
