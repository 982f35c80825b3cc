"""Stronger attacks than the loss on tables, each as a row: LiRA, RMIA, gradient norms, and all together."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from paperlib.audits.panoramia.game import AuditConfig
from paperlib.audits.panoramia.pools import Pool, Pools, part_key
from paperlib.audits.panoramia.run import audit_pools
from paperlib.core import FloatArray, MembershipScores
from paperlib.papers.panoramia.tables.lira import ONLINE, Shown, game_pools
from paperlib.papers.panoramia.tables.pools import TabularConfig
from paperlib.papers.panoramia.tables.shadows import STRONGER


def strong_attacks(config: TabularConfig, audit: AuditConfig, *, names: Sequence[str]) -> pd.DataFrame:
    """The loss, the stronger attacks side by side, and all together.

    Attack and baseline see the row and this number; the baseline has it from its helpers.

    LiRA (online) asks most of the auditor: shadow models trained with and without each audited row, so on
    members and generated rows alike, and new ones for each game. They learn only rows that the game shows,
    halves of them drawn without a look at membership: a row that a coin left out must not speak.
    """
    rows: list[dict[str, Any]] = []
    for seed in range(audit.seed, audit.seed + audit.repetitions):
        pools, shown = game_pools(config, audit, seed)
        once = replace(audit, repetitions=1, seed=seed)
        for attack in (*config.columns, "all"):
            narrowed = only_columns(pools, config.columns, config.columns if attack == "all" else (attack,))
            table = audit_pools(narrowed, once, targets=names, audits=["panoramia"]).table
            found = table[table["search"] == audit.searches[0]].set_index("target")
            for name in names:
                alone = {} if attack == "all" else _alone(narrowed, name, shown if attack == ONLINE else None)
                bounds = {bound: found.loc[name, bound] for bound in ("c_lb", "c_plus_eps_lb")}
                rows.append({"target": name, "attack": STRONGER.get(attack, attack), **alone, **bounds})
    means = pd.DataFrame(rows).groupby(["target", "attack"], sort=False).mean()
    means["eps_tilde"] = (means["c_plus_eps_lb"] - means["c_lb"]).clip(lower=0)
    return pd.concat([means.loc[[name]] for name in names]).reset_index()


def only_columns(pools: Pools, columns: Sequence[str], names: Sequence[str]) -> Pools:
    """The same pools with those of the models' ``columns`` that are named, in this order."""
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


def _alone(pools: Pools, name: str, shown: Shown | None) -> dict[str, float]:
    """AUCs of the first column; with ``shown``, of these members and generated rows alone."""
    members, generated = pools.members, pools.generated
    kept = (slice(None), slice(None)) if shown is None else shown
    found = {
        "auc_generated": _auc(members.targets[name][kept[0]], generated.targets[name][kept[1]]),
        "helper_auc": _auc(members.helpers["synthetic"][kept[0]], generated.helpers["synthetic"][kept[1]]),
    }
    if pools.nonmembers is not None and shown is None:
        found = {"auc_real": _auc(members.targets[name], pools.nonmembers.targets[name]), **found}
    return found


def _auc(member: FloatArray, other: FloatArray) -> float:
    return MembershipScores(member[:, 0], other[:, 0], higher_means_member=False).auc()
