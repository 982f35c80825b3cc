"""PANORAMIA on tables: its audits, Table 6, and the rows that a baseline is surest of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from paperlib.audits.panoramia.game import FORMS, AuditConfig
from paperlib.audits.panoramia.pools import Pools
from paperlib.audits.panoramia.results import AUDITS, TargetAudits, means_over_games
from paperlib.audits.panoramia.run import audit_pools
from paperlib.papers.panoramia.results import PanoramiaResults
from paperlib.papers.panoramia.tables.attacks import only_columns
from paperlib.papers.panoramia.tables.pools import TabularConfig, tabular_pools, tabular_rows
from paperlib.report import paper_table

_RARE = 0.01
_SHOWN = {"panoramia": "eps_tilde", "rm_rn": "rm_rn", "o1": "o1"}


@dataclass(frozen=True, eq=False)
class TabularResults:
    """Audits of several pools."""

    # configuration to the audits of its pools; the first form has all audits
    runs: Mapping[TabularConfig, PanoramiaResults]

    @property
    def first(self) -> PanoramiaResults:
        """The first pools' results."""
        return next(iter(self.runs.values()))

    @cached_property
    def table(self) -> pd.DataFrame:
        """Rows as in `TargetAudits.table`, with label and pools (the seed)."""
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

    def accuracies(self) -> pd.DataFrame:
        """Train and test accuracy of each target, means over pools."""
        frames = [run.pools.table.assign(label=config.label) for config, run in self.runs.items()]
        groups = pd.concat(frames, ignore_index=True).groupby(["label", "target"], sort=False)
        return groups[["train_accuracy", "test_accuracy"]].mean().reset_index()

    def warnings(self) -> tuple[str, ...]:
        """Warnings of the pools, each once, and how often c_lb is above half of its ceiling."""
        found = dict.fromkeys(text for run in self.runs.values() for text in run.pools.warnings)
        games = self.table[self.table["audit"] == "panoramia"]
        high = games[games["c_lb"] > games["ceiling"] / 2]
        if len(high):
            found[
                f"c_lb is above half of the ceiling in {len(high)} of {len(games)} audits (up to "
                f"{high['c_lb'].max():.2f}): eps~ may be positive for targets that never saw the members"
            ] = None
        return tuple(found)


def run_tabular(
    configs: Sequence[TabularConfig], audit: AuditConfig, *, forms: Sequence[str] = FORMS
) -> TabularResults:
    """Audit all targets of several pools."""
    audited = partial(_audited, audit, forms)
    runs = zip(configs, [audited(config) for config in configs], strict=True)
    return TabularResults({config: PanoramiaResults(*run, forms[0]) for config, run in runs})


def _audited(
    audit: AuditConfig, forms: Sequence[str], config: TabularConfig
) -> tuple[Pools, dict[str, TargetAudits]]:
    """Pools of one configuration and their audits by form."""
    pools = only_columns(tabular_pools(config), config.columns, ("loss",))
    seed = audit.seed + 1000 * config.seed
    audits = {
        form: audit_pools(
            pools, replace(audit, form=form, seed=seed), audits=AUDITS if not at else AUDITS[:1]
        )
        for at, form in enumerate(forms)
    }
    return pools, audits


def extreme_values(config: TabularConfig) -> pd.DataFrame:
    """Do the rows that a baseline is surest of hold values that the generator hardly makes?

    Trees without any helper learn to tell half of the members from half of the generated rows, and rank the
    other half. A value is rare if 1 % of the generated rows at most hold it (words), or one as far out
    (numbers). This explains the baseline; it is no audit.

    Source:
        PANORAMIA, appendix D.6 and Figure 12.
    """
    rows = tabular_rows(config)
    members, generated = rows.parts["members"], rows.generated
    ranked = _ranked(members, generated)
    best = ranked[: max(1, round(0.05 * len(ranked)))]
    groups = {"top": best, "members": members, "generated": generated}
    masks = {name: _rare_values(part, generated) for name, part in groups.items()}
    shares = pd.DataFrame({name: mask.mean() for name, mask in masks.items()})
    shares.loc["any of them"] = {name: mask.any(axis=1).mean() for name, mask in masks.items()}
    shares["ratio"] = shares["top"] / shares["members"].replace(0.0, np.nan)
    return shares.rename_axis("column").reset_index().assign(top_rows=len(best))


def _ranked(members: pd.DataFrame, generated: pd.DataFrame) -> pd.DataFrame:
    """Half of the rows, those first that trees trained on the other half take for members."""
    joined = pd.concat([members, generated], ignore_index=True)
    codes = joined.apply(lambda column: column if column.dtype.kind in "biuf" else pd.factorize(column)[0])
    flags = np.arange(len(joined)) < len(members)
    order = np.random.default_rng(0).permutation(len(joined))
    train, test = np.array_split(order, 2)
    trees = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=8, random_state=0)
    trees.fit(codes.iloc[train], flags[train])
    scores = np.asarray(trees.decision_function(codes.iloc[test]))
    return joined.iloc[test[np.argsort(-scores, kind="stable")]]


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


def table_six(results: TabularResults, *, form: str, search: str = "union") -> pd.DataFrame:
    """Our targets, then the paper's two: eps-tilde of PANORAMIA and epsilon of the audits with real data."""
    summary = results.summary
    first = summary[summary["audit"] != "panoramia"]["form"].iloc[0]
    wanted = np.where(summary["audit"] == "panoramia", form, first)
    chosen = summary[(summary["search"] == search) & (summary["form"] == wanted)]
    wide = chosen.pivot(index=["label", "target"], columns="audit", values=["value", "value_sd"])
    rows = results.accuracies().set_index(["label", "target"])
    for audit, name in _SHOWN.items():
        rows[name], rows[f"{name}_sd"] = wide["value", audit], wide["value_sd", audit]
    both = pd.concat([rows.reset_index().assign(source="ours"), _printed()], ignore_index=True)
    return both[["source", *rows.reset_index().columns]]


def _printed() -> pd.DataFrame:
    printed = paper_table("panoramia_table06")
    own, real = (
        printed[printed["audit"] == audit].set_index("target_model") for audit in ("panoramia", "o1_rm_rn")
    )
    columns = {"eps_tilde": own["eps_tilde"], "eps_tilde_sd": own["eps_tilde_pm"]}
    columns |= {"o1": real["eps"], "o1_sd": real["eps_pm"]}
    rows = pd.DataFrame(columns).rename_axis("target").reset_index()
    return rows.assign(source="paper", label="income")


def beside_the_paper(table: pd.DataFrame) -> pd.DataFrame:
    """Our rows of `table_six`, the paper's numbers beside the targets trained shortest and longest."""
    ours = table[table["source"] == "ours"].reset_index(drop=True)
    trained = ours["target"][(ours["label"] == ours["label"][0]) & ours["target"].str.endswith(" epochs")]
    like = pd.Series(["MLP_E10", "MLP_E100"], index=trained.index[[0, -1]]).reindex(ours.index)
    paper = table[table["source"] == "paper"].set_index("target").reindex(like).reset_index(drop=True)
    printed = paper[["eps_tilde", "eps_tilde_sd", "o1", "o1_sd"]].add_prefix("paper_")
    return pd.concat([ours.drop(columns="source"), printed.assign(paper_target=like)], axis=1)
