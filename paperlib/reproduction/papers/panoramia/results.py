"""Results of PANORAMIA: audits of all targets, and what pages on images, tables and text read from
them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import pandas as pd

from paperlib.audits.panoramia.game import AuditConfig, Flags
from paperlib.audits.panoramia.pools import Pools
from paperlib.audits.panoramia.results import AUDITS, AuditName, TargetAudits, TargetScores
from paperlib.audits.panoramia.run import baseline_by_helper
from paperlib.core import FloatArray
from paperlib.reproduction.papers.verdict import Evidence


@dataclass(frozen=True, eq=False)
class PanoramiaResults:
    """Audits of all targets of the same pools, in one form or in both."""

    pools: Pools
    forms: Mapping[str, TargetAudits]  # by form; O(1), the same in both, is in one of them
    form: str = "helpers"  # the form of `one` and `value` where none is named

    @property
    def search(self) -> str:
        """The first search over recall, which tables and verdicts are about."""
        return self.forms[self.form].search

    @property
    def decisive(self) -> TargetAudits:
        """The audits in the paper's form or, where it was not played, in the other."""
        return self.forms.get("paper", self.forms[self.form])

    @property
    def with_o1(self) -> TargetAudits:
        """The audits that hold O(1); without it, those that decide."""
        for audits in self.forms.values():
            if audits.select("o1"):
                return audits
        return self.decisive

    @cached_property
    def summary(self) -> pd.DataFrame:
        """The rows of `means_over_games`, of all forms."""
        return pd.concat([audits.summary() for audits in self.forms.values()], ignore_index=True)

    def means_of(
        self, target: str, audit: AuditName = "panoramia", *, form: str | None = None
    ) -> dict[str, float]:
        """Means over games of a target by the first search: the numbers of its row in the summary.

        Raises ValueError where the audit was not run.
        """
        key = {
            "target": target,
            "audit": audit,
            "form": form or self.form,
            "search": self.search,
        }
        rows = self.summary[(self.summary[list(key)] == pd.Series(key)).all(axis=1)]
        if rows.empty:
            raise ValueError(f"{key}: no such row in the summary")
        numbers = rows.select_dtypes("number").iloc[0]
        return {str(name): float(value) for name, value in numbers.items()}

    def value(
        self, target: str, audit: AuditName = "panoramia", *, form: str | None = None
    ) -> float:
        """Mean eps-tilde, or epsilon, of a target by the first search, nats."""
        return self.means_of(target, audit, form=form)["value"]

    @property
    def trained(self) -> list[str]:
        """Targets trained on the members without DP, by epochs."""
        return [target.name for target in self.pools.targets if target.kind == "trained"]

    @property
    def null(self) -> list[str]:
        """Targets that never saw the members."""
        return [target.name for target in self.pools.targets if target.kind == "null"]


def table_three(results: PanoramiaResults, printed: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Every bound of each target, beside what the paper prints: a row for each target.

    Args:
        results: Audits of all targets.
        printed: The paper's rows by our target; targets that it lacks have none of its columns.

    Returns:
        Columns of `_bounds_of`, then those of `printed_bounds`; means over games, nats.
    """
    rows: list[dict[str, object]] = []
    for target in results.pools.target_names:
        row = _bounds_of(results, target)
        if target in printed:
            row |= printed_bounds(printed[target])
        rows.append(row)
    return pd.DataFrame(rows)


def _bounds_of(results: PanoramiaResults, target: str) -> dict[str, object]:
    """A target's bounds, nats, by all audits, with their deviations over games ("_sd"), and whether
    it is a null target.
    """
    means = results.means_of(target)
    row: dict[str, object] = {
        "target": target,
        "null": target in results.null,
        "c_lb": means["c_lb"],
        "c_plus_eps_lb": means["c_plus_eps_lb"],
        "eps_tilde": means["value"],
        "eps_tilde_sd": means["value_sd"],
    }
    if "helpers" in results.forms:
        row["helpers_eps_tilde"] = results.value(target, form="helpers")
    for audit in AUDITS[1:]:
        with_real_data = results.means_of(target, audit)
        row[audit] = with_real_data["value"]
        row[f"{audit}_sd"] = with_real_data["value_sd"]
    return row


def printed_bounds(rows: pd.DataFrame) -> dict[str, object]:
    """One model's bounds as the paper prints them, nats, by our columns with "paper_" in front.

    Args:
        rows: The model's rows of a printed table, one for each audit.
    """
    bounds: dict[str, object] = {"paper_target": rows["target_model"].iloc[0]}
    for row in rows.to_dict("records"):
        if row["audit"] == "panoramia":
            for name in ("c_lb", "c_plus_eps_lb"):
                if name in row:  # not every printed table has them
                    bounds[f"paper_{name}"] = row[name]
            bounds["paper_eps_tilde"] = row["eps_tilde"]
            bounds["paper_eps_tilde_sd"] = row["eps_tilde_pm"]
        else:
            name = {"panoramia_rm_rn": "rm_rn", "o1_rm_rn": "o1"}[row["audit"]]
            bounds[f"paper_{name}"] = row["eps"]
            bounds[f"paper_{name}_sd"] = row["eps_pm"]
    return bounds


def helper_games(pools: Pools, audit: AuditConfig) -> pd.DataFrame:
    """The baseline's bound by helper and game, by the first search: columns helper, seed, c_lb
    (nats) and auc among others; see `baseline_by_helper`.
    """
    rows = baseline_by_helper(pools, audit)
    return rows[rows["search"] == audit.searches[0]]


def helper_means(games: pd.DataFrame, printed: Mapping[str, float]) -> pd.DataFrame:
    """Means of `helper_games` by helper: c_lb with its deviation over games (nats) and AUC, beside
    the c_lb that the paper prints, by name of the helper, NaN where it prints none.
    """
    groups = games.groupby("helper", sort=False)
    table = groups[["c_lb", "auc"]].mean()
    table.insert(1, "c_lb_sd", groups["c_lb"].std())
    table["paper_c_lb"] = [printed.get(str(name), np.nan) for name in table.index]
    return table.reset_index()


def loss_groups(
    pools: Pools, names: Sequence[str], kinds: Mapping[str, str]
) -> dict[str, dict[str, FloatArray]]:
    """Losses of each target by kind of example, nats, shape (n,) each (Figures 13 and 14).

    ``kinds`` says what each kind is called; those that the pools lack are left out.
    """
    by_kind = pools.by_kind()
    pool_of_word = {word: by_kind[kind] for kind, word in kinds.items() if kind in by_kind}
    return {
        name: {word: pool.targets[name][:, 0] for word, pool in pool_of_word.items()}
        for name in names
    }


def by_game(
    audits: TargetAudits, target: str, audit: AuditName = "panoramia", *, column: str = "eps"
) -> pd.Series:
    """By seed, a column of `TargetAudits.table` by the first search; "eps" of PANORAMIA: the
    difference of its bounds, not clipped. Empty where the audit was not run.

    Raises:
        ValueError: A target that was not audited.
    """
    table = audits.table[audits.table["target"] == target]
    if table.empty:
        raise ValueError(f"target: {target!r} was not audited")
    return _by_seed(table[table["search"] == audits.search], audit, column)


def _by_seed(table: pd.DataFrame, audit: AuditName, column: str) -> pd.Series:
    """A column of an audit's rows by seed; see `by_game`."""
    rows = table[table["audit"] == audit].set_index("seed")
    if audit == "panoramia" and column == "eps":
        return rows["c_plus_eps_lb"] - rows["c_lb"]
    return rows[column]


def differences_by_game(first: pd.Series, second: pd.Series) -> list[float]:
    """First minus second in every game that has both."""
    return (first - second).dropna().tolist()


def null_samples(
    audits: TargetAudits, names: Iterable[str] | None = None
) -> dict[str, list[float]]:
    """Difference of the bounds of each null target, nats, a value for each game; of all null
    targets, or of these names.
    """
    if names is None:
        targets = [scores.target for scores in audits.judged]
        names = dict.fromkeys(target.name for target in targets if target.kind == "null")
    return {name: by_game(audits, name).tolist() for name in names}


def table_three_evidence(
    results: PanoramiaResults, names: list[str], nulls: Iterable[str] | None = None
) -> Evidence:
    """Table 3 in the paper's form, O(1) in any: nats, a value for each game.

    Args:
        results: With audits in the form "paper".
        names: Targets by their degree of over-training, upwards.
        nulls: Null targets; None for all of them.
    """
    audits = results.forms["paper"]
    eps_tilde = {name: by_game(audits, name) for name in names}
    rm_rn = {name: by_game(audits, name, "rm_rn") for name in names}
    o1 = {name: by_game(results.with_o1, name, "o1") for name in names}
    growth = {
        f"{later} over {earlier}": differences_by_game(eps_tilde[later], eps_tilde[earlier])
        for earlier, later in pairwise(names)
    }
    below_rm_rn = {name: differences_by_game(rm_rn[name], eps_tilde[name]) for name in names}
    below_o1 = {name: differences_by_game(o1[name], rm_rn[name]) for name in names}
    values = {
        "eps~ grows": growth,
        "eps~ below RM;RN": below_rm_rn,
        "RM;RN below O(1)": below_o1,
        "null": null_samples(audits, nulls),
    }
    return Evidence(target="panoramia-table-03", unit="game", values=values)


def helper_table(target: str, games: pd.DataFrame, real: str) -> Evidence:
    """Tables 2 and 5: what helpers on generated and on real non-members add to c_lb, nats, a value
    for each game.

    Args:
        target: Name of the table for its rules.
        games: Rows of `helper_games`.
        real: Name of the helper on real non-members; without it its comparisons are empty.
    """
    c_lb = games.pivot(index="seed", columns="helper", values="c_lb")
    c_lb = c_lb.reindex(columns=["none", "synthetic", real])
    values = {
        "generated over none": differences_by_game(c_lb["synthetic"], c_lb["none"]),
        "real over none": differences_by_game(c_lb[real], c_lb["none"]),
        "generated over real": differences_by_game(c_lb["synthetic"], c_lb[real]),
    }
    return Evidence(target=target, unit="game", values=values)


def figure_six(
    results: PanoramiaResults, target: str, nulls: Iterable[str] | None = None
) -> Evidence:
    """Figure 6 (sections 5.3 and D.3): how far eps~ of a target at the largest m lies above that at
    a quarter of it, and above O(1) at 4/7 of it; nats, a value for each game.

    ``nulls`` are the null targets beside it; None for all.
    """
    audits = results.decisive
    m = audits.config.test
    games = audits.select(target=target)
    all_judged = _over_size(audits, games, m)
    quarter_judged = _over_size(audits, games, m // 4)
    # CIFAR-10's 10,000 test images give O(1) an m of 20,000 at most, where PANORAMIA goes to
    # 35,000: 4/7 of it.
    o1_games = results.with_o1.select("o1", target=target)
    most = min([4 * m // 7, *(game.membership.size for game in o1_games)])
    values = {
        "grows with m": differences_by_game(all_judged, quarter_judged),
        "passes O(1)": differences_by_game(all_judged, _over_size(results.with_o1, o1_games, most)),
        "null": null_samples(audits, nulls),
    }
    return Evidence(target="panoramia-figure-06", unit="game", values=values)


def _over_size(audits: TargetAudits, games: tuple[TargetScores, ...], size: int) -> pd.Series:
    """By seed, the result in nats of games of one audit on their first ``size`` judged examples;
    empty without games.
    """
    rows = replace(audits, judged=games).over_test_size([size])
    if rows.empty:
        return pd.Series(dtype=np.float64)
    return _by_seed(rows, games[0].audit, "eps")


def figure_ten(audits: TargetAudits, target: str) -> Evidence:
    """Figure 10: share of members in the first tenth of the guesses, a value for each game of a
    target: the attack's less the baseline's, and the baseline's, above which there must be room.
    """
    ahead: list[float] = []
    baselines: list[float] = []
    for game in audits.select("panoramia", target=target):
        attack = _members_first(game.attack, game.membership)
        baseline = _members_first(game.baseline, game.membership)
        ahead.append(attack - baseline)
        baselines.append(baseline)
    return Evidence(
        target="panoramia-figure-10",
        unit="game",
        values={"members first": ahead, "room above": baselines},
    )


def _members_first(scores: FloatArray, membership: Flags) -> float:
    """Share of members in the tenth of the highest scores, or in the highest alone."""
    order = np.argsort(-scores, kind="stable")  # equal scores stay in the examples' random order
    return float(membership[order[: max(1, scores.size // 10)]].mean())
