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
from paperlib.reproduction.exhibits import paper_table
from paperlib.reproduction.papers.panoramia.results import PanoramiaResults, by_game, figure_ten
from paperlib.reproduction.papers.panoramia.tables.lira import (
    ONLINE,
    GameRows,
    game_pools,
    judged_rows,
)
from paperlib.reproduction.papers.panoramia.tables.pools import (
    TabularConfig,
    TabularRows,
    tabular_pools,
    tabular_rows,
)
from paperlib.reproduction.papers.panoramia.tables.shadows import STRONGER
from paperlib.reproduction.papers.verdict import Estimate, Evidence
from paperlib.reproduction.papers.verdict.earlier import distance_from_printed_o1

_RARE = 0.01  # a value is rare where generated rows have it, or one as extreme, at most so often
_ALL = "all"  # the attack that sees the numbers of all others at once


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
        """Rows of `TargetAudits.table` of all runs and forms, with the columns label, which targets
        predict, and pools, the seed of the configuration.
        """
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
        of_pools = [text for run in self.runs.values() for text in run.pools.warnings]
        warnings = list(dict.fromkeys(of_pools))  # each once, in their order
        games = self.table[self.table["audit"] == "panoramia"]
        high = games[games["c_lb"] > games["ceiling"] / 2]
        if len(high):
            warnings.append(
                f"c_lb is above half of the ceiling in {len(high)} of {len(games)} audits (up to "
                f"{high['c_lb'].max():.2f}): eps~ may be positive for targets not trained on the "
                "members"
            )
        return tuple(warnings)


def run_tabular(
    configs: Sequence[TabularConfig], audit: AuditConfig, *, forms: Sequence[str] = FORMS
) -> TabularResults:
    """Audit all targets of several pools by their losses alone.

    Args:
        configs: Of the pools.
        audit: Its seed is that of the pools of seed 0; others are a thousand apart.
        forms: The first has all of `AUDITS`, the others PANORAMIA alone: audits with real
            non-members are the same in each form.
    """
    runs = {}
    for config in configs:
        pools = only_columns(tabular_pools(config), config.columns, ("loss",))
        seed = audit.seed + 1000 * config.seed
        by_form = {}
        for form in forms:
            names = AUDITS if form == forms[0] else AUDITS[:1]  # PANORAMIA is the first
            by_form[form] = audit_pools(pools, replace(audit, form=form, seed=seed), audits=names)
        runs[config] = PanoramiaResults(pools, by_form, forms[0])
    return TabularResults(runs)


def only_columns(pools: Pools, columns: Sequence[str], names: Sequence[str]) -> Pools:
    """The same pools with fewer columns in the outputs of models.

    Args:
        pools: Outputs have shape (n, len(columns)).
        columns: What each column is called.
        names: The columns to keep, in their order.

    Raises:
        ValueError: A name that is none of the columns.
    """
    missing = [name for name in names if name not in columns]
    if missing:
        raise ValueError(f"names: expected some of {', '.join(columns)}, got {', '.join(missing)}")
    kept = [list(columns).index(name) for name in names]

    def narrow(outputs: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        return {model: values[:, kept] for model, values in outputs.items()}

    narrowed = {
        kind: Pool(pool.examples, narrow(pool.helpers), narrow(pool.targets))
        for kind, pool in pools.by_kind().items()
    }
    return replace(pools, **narrowed, key=part_key(pools, columns=names))


def strong_attacks(
    config: TabularConfig, audit: AuditConfig, *, names: Sequence[str]
) -> pd.DataFrame:
    """The loss, the stronger attacks, and all together.

    Args:
        config: Its ``stronger`` attacks are compared.
        audit: Games; each has its own pools, since shadow models of LiRA (online) belong to one
            game.
        names: Targets.

    Returns:
        Means over games, a row for each target and attack: AUCs of the attack's number alone, NaN
            for all together, and PANORAMIA's bounds c_lb, c_plus_eps_lb and eps_tilde (nats) by the
            first search, where the baseline has the attack's number from its helpers.
    """
    rows: list[dict[str, Any]] = []
    for seed in range(audit.seed, audit.seed + audit.repetitions):
        rows += _game_by_attack(config, replace(audit, repetitions=1, seed=seed), names)
    means = pd.DataFrame(rows).groupby(["target", "attack"], sort=False).mean()
    means["eps_tilde"] = (means["c_plus_eps_lb"] - means["c_lb"]).clip(lower=0)
    return pd.concat([means.loc[[name]] for name in names]).reset_index()


def _game_by_attack(
    config: TabularConfig, game: AuditConfig, names: Sequence[str]
) -> list[dict[str, Any]]:
    """AUCs and bounds of one game (``game.seed``), a row for each attack and target."""
    pools, game_rows = game_pools(config, game, game.seed)
    rows = []
    for attack in (*config.columns, _ALL):
        seen = config.columns if attack == _ALL else (attack,)
        narrowed = only_columns(pools, config.columns, seen)
        table = audit_pools(narrowed, game, targets=names, audits=["panoramia"]).table
        bounds = table[table["search"] == game.searches[0]].set_index("target")
        for name in names:
            row: dict[str, Any] = {"target": name, "attack": STRONGER.get(attack, attack)}
            if attack != _ALL:  # several numbers have no AUC
                # LiRA (online) has numbers only of the rows that the game shows.
                row |= _aucs_alone(narrowed, name, game_rows if attack == ONLINE else None)
            row |= {bound: bounds.loc[name, bound] for bound in ("c_lb", "c_plus_eps_lb")}
            rows.append(row)
    return rows


def _aucs_alone(pools: Pools, name: str, game_rows: GameRows | None) -> dict[str, float]:
    """AUCs of the first column of a target's and of the helper's outputs.

    With ``game_rows`` of these members and generated rows alone, and without an AUC against real
    non-members, which then have no numbers.
    """
    members, generated = pools.members, pools.generated
    rows_in, rows_out = (slice(None), slice(None)) if game_rows is None else game_rows
    aucs: dict[str, float] = {}
    if pools.nonmembers is not None and game_rows is None:
        aucs["auc_real"] = _loss_auc(members.targets[name], pools.nonmembers.targets[name])
    aucs["auc_generated"] = _loss_auc(
        members.targets[name][rows_in], generated.targets[name][rows_out]
    )
    aucs["helper_auc"] = _loss_auc(
        members.helpers["synthetic"][rows_in], generated.helpers["synthetic"][rows_out]
    )
    return aucs


def _loss_auc(members: FloatArray, others: FloatArray) -> float:
    """AUC of the first column of outputs, where lower means member."""
    return MembershipScores(members[:, 0], others[:, 0], higher_means_member=False).auc()


def extreme_values(config: TabularConfig) -> pd.DataFrame:
    """By column, the share of rare values in the rows that trees are surest of, and in others
    (D.6).

    Rare is what generated rows have in at most 1 %. The last row counts rows with a rare value in
    any column; ``top_rows`` is the number of the surest rows.
    """
    rows = tabular_rows(config)
    members, generated = rows.parts["members"], rows.generated
    surest = _surest_members(members, generated)
    groups = {"top": surest, "members": members, "generated": generated}
    rare = {name: _rare_values(group, generated) for name, group in groups.items()}
    shares = pd.DataFrame({name: mask.mean() for name, mask in rare.items()})
    shares.loc["any of them"] = {name: mask.any(axis=1).mean() for name, mask in rare.items()}
    shares["ratio"] = shares["top"] / shares["members"].replace(0.0, np.nan)
    return shares.rename_axis("column").reset_index().assign(top_rows=len(surest))


def _surest_members(members: pd.DataFrame, generated: pd.DataFrame) -> pd.DataFrame:
    """The 5 % of a half of all rows that trees, trained on the other half, surest take for
    members.
    """
    joined = pd.concat([members, generated], ignore_index=True)
    member = np.arange(len(joined)) < len(members)
    # Trees take numbers alone: words become codes in the order in which they first occur.
    codes = joined.apply(
        lambda column: column if column.dtype.kind in "biuf" else pd.factorize(column)[0]
    )
    train, test = np.array_split(np.random.default_rng(0).permutation(len(joined)), 2)
    trees = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=8, random_state=0)
    trees.fit(codes.iloc[train], member[train])
    scores = np.asarray(trees.decision_function(codes.iloc[test]))
    count = max(1, round(0.05 * len(test)))
    surest = np.argsort(-scores, kind="stable")[:count]
    return joined.iloc[test[surest]]


def _rare_values(rows: pd.DataFrame, generated: pd.DataFrame) -> pd.DataFrame:
    """Which cells hold what is rare in generated rows: a mask of the shape of ``rows``."""
    masks = {}
    for name in rows:
        column = generated[name]
        # Numbers of two values have no tails; they are counted as words are.
        if column.dtype.kind in "biuf" and column.nunique() > 2:
            masks[name] = _in_tails(rows[name].to_numpy(), column.to_numpy())
        else:
            shares = column.astype(str).value_counts(normalize=True)
            own_shares = rows[name].astype(str).map(shares).fillna(0.0)
            masks[name] = (own_shares <= _RARE).to_numpy()
    return pd.DataFrame(masks)


def _in_tails(values: np.ndarray, generated: np.ndarray) -> np.ndarray:
    """Which numbers lie in either tail of the generated ones, each tail half of `_RARE`."""
    ordered = np.sort(generated)
    below = np.searchsorted(ordered, values, side="right") / ordered.size
    above = 1 - np.searchsorted(ordered, values, side="left") / ordered.size
    return np.minimum(below, above) <= _RARE / 2


def table_six(results: TabularResults, *, form: str) -> pd.DataFrame:
    """eps-tilde of PANORAMIA in this form and epsilon of the audits with real data, by the search
    "union".

    Returns:
        A row for each label and target: train_accuracy and test_accuracy, shares in [0, 1]; means
            eps_tilde, rm_rn and o1 over pools and games, and their deviations, named with "_sd";
            nats.
    """
    summary = results.summary
    of_real_data = summary[summary["audit"] != "panoramia"]["form"].iloc[0]
    form_of_audit = np.where(summary["audit"] == "panoramia", form, of_real_data)
    of_form = summary[(summary["search"] == "union") & (summary["form"] == form_of_audit)]
    wide = of_form.pivot(index=["label", "target"], columns="audit", values=["value", "value_sd"])
    pools = [run.pools.table.assign(label=config.label) for config, run in results.runs.items()]
    groups = pd.concat(pools, ignore_index=True).groupby(["label", "target"], sort=False)
    rows = groups[["train_accuracy", "test_accuracy"]].mean()
    for audit, name in {"panoramia": "eps_tilde", "rm_rn": "rm_rn", "o1": "o1"}.items():
        rows[name] = wide["value", audit]
        rows[f"{name}_sd"] = wide["value_sd", audit]
    return rows.reset_index()


def table_six_beside_paper(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of `table_six`, in whose last columns the paper's stand beside the targets of the first
    label that were trained shortest and longest, NaN beside the others.
    """
    if "source" in table:  # a kept table may hold the paper's rows too
        table = table[table["source"] == "ours"].drop(columns="source")
    ours = table.reset_index(drop=True)
    of_first_label = ours["label"] == ours["label"][0]
    trained = ours["target"][of_first_label & ours["target"].str.endswith(" epochs")]
    models = pd.Series(["MLP_E10", "MLP_E100"], index=trained.index[[0, -1]]).reindex(ours.index)
    paper = _printed_six().reindex(models).reset_index(drop=True)
    return pd.concat([ours, paper.assign(paper_target=models)], axis=1)


def _printed_six() -> pd.DataFrame:
    """The paper's Table 6 by its model, in the columns that stand beside ours."""
    printed = paper_table("panoramia_table06").set_index("target_model")
    panoramia = printed[printed["audit"] == "panoramia"]
    with_real_data = printed[printed["audit"] == "o1_rm_rn"]
    columns = {
        "paper_eps_tilde": panoramia["eps_tilde"],
        "paper_eps_tilde_sd": panoramia["eps_tilde_pm"],
    }
    return pd.DataFrame(columns).assign(
        paper_o1=with_real_data["eps"], paper_o1_sd=with_real_data["eps_pm"]
    )


ResultsByConfig = Mapping[TabularConfig, PanoramiaResults]
"""Configuration to results that have audits in the form "paper", and O(1) in any form."""


def evidence(results: TabularResults) -> dict[str, Evidence]:
    """Evidence from the pools of the first label, by target; those of other labels are beside the
    paper.
    """
    label = next(iter(results.runs)).label
    runs = {config: run for config, run in results.runs.items() if config.label == label}
    on_targets = (
        _table_six_evidence(runs),
        figure_ten(_joined_audits(runs), results.first.trained[-1]),
        _figure_twelve_evidence(runs, results.first.null[0]),
    )
    return {item.target: item for item in on_targets}


def _joined_audits(runs: ResultsByConfig) -> TargetAudits:
    """The games of all pools in the form "paper", as audits of one configuration."""
    audits = [run.forms["paper"] for run in runs.values()]
    judged = [scores for of_pools in audits for scores in of_pools.judged]
    return TargetAudits(tuple(judged), audits[0].config)


def _figure_twelve_evidence(runs: ResultsByConfig, null: str) -> Evidence:
    """Figure 12: `extremes_first` in the games of the target ``null``.

    Of several pools the mean over the games of each, so that a value stands for a model; of one
    configuration alone the value of each game.
    """
    games_of_pools = [
        extremes_first(tabular_rows(config), run.forms["paper"], null)
        for config, run in runs.items()
    ]
    if len(games_of_pools) == 1:
        return Evidence(
            target="panoramia-figure-12", unit="game", values={"extremes first": games_of_pools[0]}
        )
    means = [float(np.mean(games)) for games in games_of_pools if games]
    return Evidence(target="panoramia-figure-12", unit="model", values={"extremes first": means})


def _table_six_evidence(runs: ResultsByConfig) -> Evidence:
    """Table 6: of several pools one number each, so that a value stands for a model; of one
    configuration alone a number for each game.
    """
    first = next(iter(runs.values()))
    # The paper's table has the targets trained shortest and longest; here they may be one.
    shortest, longest = first.trained[0], first.trained[-1]
    names = dict.fromkeys([shortest, longest])
    values = {
        "eps~ near 0": {name: _sample_of(runs, name, "panoramia") for name in names},
        "O(1) positive": {name: _sample_of(runs, name, "o1") for name in names},
        "O(1) from the printed value": distance_from_printed_o1(
            {name: _sample_of(runs, name, "o1") for name in names}
        ),
        "null": {name: _sample_of(runs, name, "panoramia") for name in first.null},
        "trained enough": _above_printed(runs, longest),
    }
    return Evidence(
        target="panoramia-table-06", unit="game" if len(runs) == 1 else "model", values=values
    )


def _sample_of(runs: ResultsByConfig, target: str, audit: AuditName) -> list[float]:
    """An audit's results for a target, nats: of several pools the mean over the games of each, of
    one configuration alone the result of each game.
    """
    games_of_pools = []
    for run in runs.values():
        audits = run.forms["paper"] if audit == "panoramia" else run.with_o1
        games_of_pools.append(by_game(audits, target, audit).tolist())
    if len(games_of_pools) == 1:
        return games_of_pools[0]
    return [float(np.mean(games)) for games in games_of_pools]


def _above_printed(runs: ResultsByConfig, target: str) -> list[float] | Estimate:
    """Train accuracy of a target less the paper's, percentage points: a value for each of several
    runs, an `Estimate` of one run; an empty list on other data or another label than the paper's.
    """
    if {(config.dataset, config.label) for config in runs} != {("adult", "income")}:
        return []
    printed = paper_table("panoramia_text").set_index(["target_model", "quantity"])["value"]
    tables = [run.pools.table.set_index("target") for run in runs.values()]
    accuracy = [100 * float(table["train_accuracy"][target]) for table in tables]
    above = [value - float(printed["MLP_E100", "accuracy_pct"]) for value in accuracy]
    return above if len(above) > 1 else Estimate(above[0])


def extremes_first(rows: TabularRows, audits: TargetAudits, target: str) -> list[float]:
    """For each game the share of extreme rows among the baseline's first 1 % of guesses, less twice
    their share among members (D.6): above 0 where extremes come first.

    ``target`` only selects the games: all targets have the same baseline.
    """
    members, generated = rows.parts["members"], rows.generated
    # Extreme: a number outside the central 99 % of the generated ones.
    low = generated.quantile(0.005, numeric_only=True)
    high = generated.quantile(0.995, numeric_only=True)
    values = pd.concat([members, generated], ignore_index=True)[low.index]
    extreme = ((values < low) | (values > high)).any(axis=1).to_numpy()
    excess = []
    for game in audits.select("panoramia", target=target):
        judged = judged_rows(len(members), len(generated), audits.config, game.seed)
        order = np.argsort(-game.baseline, kind="stable")
        surest = judged[order][: max(1, judged.size // 100)]
        excess.append(float(extreme[surest].mean() - 2 * extreme[: len(members)].mean()))
    return excess
