"""The null control: how often PANORAMIA reports leakage for a target that never saw the members."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from paperlib.attacks.learned import BoostedTrees
from paperlib.audits.panoramia.game import FORMS, AuditConfig
from paperlib.audits.panoramia.pools import SYNTHETIC, Pool, Pools, Target
from paperlib.audits.panoramia.run import audit_pools
from paperlib.audits.panoramia.table_models import Learning
from paperlib.core import check_at_least, check_confidence, check_in
from paperlib.papers.panoramia.tables.pools import PartSizes, TabularConfig, build_pools
from paperlib.report import progress

CONTRAST = "(contrast)"
"""Ends the names of worlds in which the helper is too weak, so that the control must fail."""

NOTABLE = 0.1
"""An eps-tilde above this is counted on its own, nats."""


@dataclass(frozen=True, kw_only=True)
class NullControl:
    """How the control is run; its tables are randhie's."""

    repetitions: int = 50  # worlds of each kind; of those that are there for contrast, half as many
    members: int = 400  # members (and generated examples) of each world
    epochs: int = 40  # of target and helpers, on tables
    confidence: float = 0.95  # of each audit
    seed: int = 0  # of the first world

    def __post_init__(self) -> None:
        check_confidence(self.confidence)
        check_at_least(1, repetitions=self.repetitions)
        check_at_least(100, members=self.members)

    def audit(self) -> AuditConfig:
        """One game that fits these members."""
        return AuditConfig(
            train=2 * (self.members // 4),
            validation=2 * (self.members // 10),
            test=int(0.95 * self.members),
            attacks=(BoostedTrees(leaves=4, learning_rate=0.15, rounds=30, smallest_leaf=10),),
            restarts=1,
            repetitions=1,
            confidence=self.confidence,
        )

    def worlds(self) -> Mapping[str, Callable[[int], Pools]]:
        """Kinds of worlds: from a seed to pools with a null target."""
        return {
            "table": lambda seed: self._table("tree", "rejection", seed),
            "toy": lambda seed: toy_pools(self.members, 1.0, seed=seed),
            f"table, columns drawn apart {CONTRAST}": lambda seed: self._table("columns", "none", seed),
            f"toy, helper knows nothing {CONTRAST}": lambda seed: toy_pools(self.members, 0.0, seed=seed),
        }

    def _table(self, generator: str, rows_filter: str, seed: int) -> Pools:
        sizes = PartSizes(generator=400, members=self.members, null=self.members, nonmembers=50)
        return build_pools(
            TabularConfig(
                sizes=sizes,
                generator=generator,
                filter=rows_filter,
                epochs=(self.epochs,),
                dp_epsilons=(),
                learning=Learning(hidden=(32,), batch_size=200, learning_rate=1e-2),
                helper_rows=self.members,
                seed=seed,
            ),
            only_null=True,
        )


def toy_pools(members: int, helper_knows: float, *, shift: float = 0.8, seed: int = 0) -> Pools:
    """Normal examples and generated ones ``shift`` standard deviations off, which a null target sees."""
    check_in("[0, 1]", "helper_knows", helper_knows)
    rng = np.random.default_rng(seed)

    def pool(mean: float) -> Pool:
        # Examples show x with noise; the target's loss is the exact log density ratio of x, and the helper's
        # the same to the part that it knows.
        x = mean + rng.standard_normal((members, 1))
        seen, loss = x + 2 * rng.standard_normal(x.shape), shift * (x - shift / 2)
        helper = helper_knows * loss + (1 - helper_knows) * rng.standard_normal(x.shape)
        return Pool(seen, {"synthetic": helper}, {"null": loss})

    return Pools(pool(0.0), pool(shift), None, (Target("null", "null", 0),), (SYNTHETIC,))


def run_null_control(
    control: NullControl, worlds: Mapping[str, Callable[[int], Pools]] | None = None
) -> pd.DataFrame:
    """Audit the null targets of many worlds, in both forms."""
    found = []
    for name, build in (control.worlds() if worlds is None else worlds).items():
        count = -(-control.repetitions // 2) if name.endswith(CONTRAST) else control.repetitions
        for seed in progress(range(control.seed, control.seed + count), label=name):
            pools = build(seed)
            nulls = [target.name for target in pools.targets if target.kind == "null"]
            for form in FORMS:
                audit = replace(control.audit(), form=form, seed=seed)
                table = audit_pools(pools, audit, targets=nulls, audits=["panoramia"]).table
                found.append(table.assign(world=name, seed=seed))
    columns = ["world", "seed", "form", "search", "c_lb", "c_plus_eps_lb", "eps_tilde"]
    return pd.concat(found, ignore_index=True)[columns]


def false_positives(rows: pd.DataFrame) -> pd.DataFrame:
    """Share of null targets with an eps-tilde above 0 and above `NOTABLE`, with Clopper-Pearson intervals."""
    groups = rows.groupby(["world", "form", "search"], sort=False)
    table = groups["c_lb"].agg(repetitions="size", c_lb="mean")
    for limit in (0.0, NOTABLE):
        hits = groups["eps_tilde"].apply(lambda values, limit=limit: int((values > limit).sum()))
        tests = [
            binomtest(k, n).proportion_ci(method="exact") for k, n in zip(hits, groups.size(), strict=True)
        ]
        table[f"above {limit:g}"] = hits / groups.size()
        table[f"above {limit:g}, low"] = [one.low for one in tests]
        table[f"above {limit:g}, high"] = [one.high for one in tests]
    return table.assign(largest=groups["eps_tilde"].max()).reset_index()
