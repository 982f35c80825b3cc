"""PANORAMIA on tables: rows from a tree of column pairs, MLPs as targets, boosted trees as attacks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd

from paperlib.attacks.learned import BoostedTrees
from paperlib.audits.panoramia.config import AuditConfig
from paperlib.audits.panoramia.memorization import Copies, copies
from paperlib.audits.panoramia.pools import REAL, SYNTHETIC, Pool, Pools, Target, cached_pools, pools_cache
from paperlib.audits.panoramia.table_models import Learning, RowEncoder, train
from paperlib.core import FloatArray, check_at_least, check_choice
from paperlib.data.tables.labelled import LabelledTable, load_table
from paperlib.generators.mst import NoisyTree
from paperlib.generators.table_filter import (
    ConfidentlySynthetic,
    FilteredGenerator,
    RejectionByOdds,
    RowCoder,
)
from paperlib.generators.tabular import ChowLiuTree, IndependentColumns, TableGenerator, check_table
from paperlib.io import code_tag
from paperlib.papers.panoramia.tables.data import PartSizes, split_table
from paperlib.papers.panoramia.tables.shadows import OFFLINE, STRONGER, Shadows, numbers
from paperlib.training import MLPEnsemble, TrainingConfig

GENERATORS = ("tree", "mst", "columns")
FILTERS = ("rejection", "confident", "none")


@dataclass(frozen=True, kw_only=True)
class TabularConfig:
    """A table, its generator, and the models trained on it.

    Attributes:
        dataset: "randhie" (ships with statsmodels) or "adult".
        label: Column that targets predict: "visits"; "occupation" or "income".
        sizes: Rows of each part.
        generator: "tree" (Chow-Liu), "mst" (the extra ``mst``) or "columns" (each by itself: weak).
        filter: "rejection" (by odds), "confident" (the paper's) or "none".
        bins: Quantiles of a column of numbers.
        mst_epsilon: Privacy budget of MST; the paper's is 1000.
        epochs: Training epochs of the targets without DP, one target each, ascending.
        dp_epsilons: Epsilons of the targets with DP-SGD, nats, at delta 1 / members.
        learning: Training settings of all models.
        helper_rows: Generated rows that the synthetic helper learns from.
        stronger: Attacks of `STRONGER` whose numbers stand beside the loss.
        shadows: Shadow models of those that need them; even, 4 or more, for "lira_online".
        seed: Seed of the split, the generator and the models, 0 or more.

    Raises:
        ValueError: A value is out of range.
    """

    dataset: str = "randhie"
    label: str = "visits"
    sizes: PartSizes = field(
        default_factory=lambda: PartSizes(generator=600, members=780, null=600, nonmembers=780)
    )
    generator: str = "tree"
    filter: str = "rejection"
    bins: int = 20
    mst_epsilon: float = 1000.0
    epochs: tuple[int, ...] = (5, 50, 150)
    dp_epsilons: tuple[float, ...] = (2.0,)
    learning: Learning = field(default_factory=Learning)
    helper_rows: int = 780
    stronger: tuple[str, ...] = ()
    shadows: int = 6
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("generator", self.generator, GENERATORS)
        check_choice("filter", self.filter, FILTERS)
        if not self.epochs or min(self.epochs) < 1 or list(self.epochs) != sorted(set(self.epochs)):
            raise ValueError(f"epochs: expected different numbers of 1 or more, ascending, got {self.epochs}")
        for name in self.stronger:
            check_choice("stronger", name, tuple(STRONGER))
        if len(set(self.stronger)) < len(self.stronger):
            raise ValueError(f"stronger: expected each attack once, got {', '.join(self.stronger)}")
        if self.offline:
            check_at_least(2, shadows=self.shadows)
        if "lira_online" in self.stronger and (self.shadows < 4 or self.shadows % 2):
            raise ValueError(
                f"shadows: expected an even number, 4 or more, for lira_online, got {self.shadows}"
            )
        check_at_least(10, helper_rows=self.helper_rows)

    @property
    def columns(self) -> tuple[str, ...]:
        """What each model gives for a row."""
        return ("loss", *self.stronger)

    @property
    def offline(self) -> bool:
        """Whether shadow models are wanted that saw no audited row."""
        return any(name in OFFLINE for name in self.stronger)

    def table_generator(self) -> TableGenerator:
        """The generator, before it has seen rows."""
        made: TableGenerator = ChowLiuTree(bins=self.bins)
        if self.generator == "mst":
            made = NoisyTree(epsilon=self.mst_epsilon, bins=self.bins, seed=self.seed)
        if self.generator == "columns":
            made = IndependentColumns()
        if self.filter == "none":
            return made
        rule = RejectionByOdds() if self.filter == "rejection" else ConfidentlySynthetic()
        return FilteredGenerator(generator=made, rule=rule, seed=self.seed)


_STUMPS = BoostedTrees(leaves=3, learning_rate=0.15, rounds=60, smallest_leaf=10)
_GRID = [{"leaves": leaves, "learning_rate": rate} for leaves in (4, 15, 31) for rate in (0.05, 0.2)]
_POOLS: Mapping[str, Mapping[str, Any]] = {
    "smoke": {
        "sizes": PartSizes(generator=200, members=300, null=200, nonmembers=300),
        "epochs": (2, 20),
        "learning": Learning(hidden=(32,), batch_size=128, dp_epochs=5),
        "helper_rows": 200,
    },
    "default": {},
    "paper": {
        "dataset": "adult",
        "label": "income",
        "sizes": PartSizes(generator=12_000, members=13_000, null=10_000, nonmembers=13_000),
        "epochs": (10, 100),
        "learning": Learning(hidden=(150, 100, 50, 10), batch_size=128, learning_rate=5e-4),
        "helper_rows": 13_000,
    },
}
_AUDITS: Mapping[str, AuditConfig] = {
    "smoke": AuditConfig(train=160, validation=60, test=260, attacks=(_STUMPS,), restarts=1, repetitions=1),
    "default": AuditConfig(
        train=400,
        validation=160,
        test=840,
        attacks=(replace(_STUMPS, leaves=8, learning_rate=0.08), _STUMPS),
        repetitions=3,
    ),
    "paper": AuditConfig(
        train=8000,
        validation=2000,
        test=15_000,
        attacks=tuple(BoostedTrees(**one, rounds=300) for one in _GRID),
    ),
}


def tabular_config(size: str, **changes: Any) -> TabularConfig:
    """Settings of a size: "smoke" (seconds), "default" (randhie) or "paper" (Adult, appendix C.3).

    Args:
        size: One of the three.
        changes: Attributes of `TabularConfig` to set instead.

    Raises:
        ValueError: An unknown size, or a value out of range.
    """
    check_choice("size", size, tuple(_POOLS))
    return TabularConfig(**{**_POOLS[size], **changes})


def tabular_audit(size: str, **changes: Any) -> AuditConfig:
    """How these pools are audited.

    Args:
        size: "smoke", "default" or "paper".
        changes: Attributes of `AuditConfig` to set instead.
    """
    check_choice("size", size, tuple(_AUDITS))
    return replace(_AUDITS[size], **changes)


Model = tuple[MLPEnsemble, int]
"""Models trained together, and the place of one of them."""


@dataclass(frozen=True, eq=False)
class TabularRows:
    """Real and generated rows, all disjoint draws.

    Attributes:
        parts: Real rows by the names of `PartSizes`.
        generated: D_out, as many as members.
        helper: Generated rows that the synthetic helper learns from.
        spare: Generated rows for shadow models without audited rows, half of them kept for RMIA's population.
        table: The whole table's label and classes.
        copies: Comparison of the generated rows with D_G.
    """

    parts: Mapping[str, pd.DataFrame]
    generated: pd.DataFrame
    helper: pd.DataFrame
    spare: pd.DataFrame
    table: LabelledTable
    copies: Copies

    @cached_property
    def encoder(self) -> RowEncoder:
        """Encoder of rows as features, fitted on D_G."""
        return RowEncoder.fit(self.parts["generator"], self.table.label, self.table.classes)


@lru_cache(maxsize=4)
def tabular_rows(config: TabularConfig) -> TabularRows:
    """Split the table, fit the generator on D_G, and draw; generated rows are kept by configuration."""
    key = {
        "stage": "generated rows",
        **{name: getattr(config, name) for name in ("generator", "filter", "bins", "mst_epsilon", "seed")},
        "sizes": config.sizes,
        "helper_rows": config.helper_rows,
        "shadows": config.offline,
        "rows": load_table(config.dataset, config.label).sha256,
        "code": code_tag(__name__),
    }
    return draw_rows(
        config, lambda make: pd.DataFrame(pools_cache().get(key, lambda: check_table("rows", make())))
    )


def draw_rows(
    config: TabularConfig,
    kept: Callable[[Callable[[], pd.DataFrame]], pd.DataFrame] = lambda make: make(),
) -> TabularRows:
    """Split the table, fit the generator on D_G, and draw.

    Args:
        config: The settings.
        kept: Wraps the call that makes generated rows, to keep them.
    """
    table = load_table(config.dataset, config.label)
    parts = split_table(table.rows, config.sizes, config.seed)
    counts = (config.sizes.members, config.helper_rows, 2 * config.sizes.members if config.offline else 0)

    def make() -> pd.DataFrame:
        fitted = config.table_generator().fit(parts["generator"])
        return fitted.sample(sum(counts), config.seed + 1)

    made = kept(make)[list(table.rows)]
    pieces = np.split(np.arange(sum(counts)), np.cumsum(counts)[:-1])
    generated, helper, spare = (made.iloc[piece].reset_index(drop=True) for piece in pieces)
    coder = RowCoder.fit(table.rows)
    real = [coder.numbers(parts[name]) for name in ("generator", "nonmembers")]
    found = copies(coder.numbers(generated), *real, seed=config.seed)
    return TabularRows(parts, generated, helper, spare, table, found)


def tabular_pools(config: TabularConfig) -> Pools:
    """Targets with and without DP, a null target, two helpers, and their losses on all rows.

    Helpers: "synthetic", trained on generated rows, and "real", trained on D_G, each as long as the last
    target. Each model gives the columns of ``config.columns``, as `numbers` does.
    """
    rows = tabular_rows(config)
    whole = {"tables": config, "private": _private(config, rows), "rows": rows.table.sha256}
    return cached_pools(whole, lambda: build_pools(config, rows=rows), code=__name__)


def build_pools(config: TabularConfig, *, rows: TabularRows | None = None, only_null: bool = False) -> Pools:
    """As `tabular_pools`, from nothing and kept nowhere.

    Args:
        config: The settings.
        rows: Result of `tabular_rows`; None draws them.
        only_null: Leave out the targets that were trained on members.
    """
    rows = draw_rows(config) if rows is None else rows
    targets, helpers = _targets(config, rows, only_null), _helpers(config, rows)
    parts = (rows.parts["members"], rows.generated, rows.parts["nonmembers"])
    models = {**helpers, **{target.name: model for target, model in targets.items()}}
    shadows = _shadows(config, rows) if config.offline else None
    told, coder = _outputs(config, rows.encoder, models, parts, shadows), RowCoder.fit(rows.table.rows)
    members, generated, nonmembers = (
        Pool(
            coder.numbers(part),
            {name: told[name][at] for name in helpers},
            {target.name: told[target.name][at] for target in targets},
        )
        for at, part in enumerate(parts)
    )
    details = pd.DataFrame([_accuracies(rows, *one) for one in targets.items()])
    warnings = rows.copies.warnings
    return Pools(members, generated, nonmembers, tuple(targets), (SYNTHETIC, REAL), details, warnings)


def _private(config: TabularConfig, rows: TabularRows) -> list[TrainingConfig]:
    """How each target with DP is trained, its noise included."""
    count, seed = len(rows.parts["members"]), 1000 * config.seed + 2
    return [
        config.learning.private(rows.encoder, count, epsilon, 1 / count, seed)
        for epsilon in config.dp_epsilons
    ]


def _targets(config: TabularConfig, rows: TabularRows, only_null: bool) -> dict[Target, Model]:
    """Each target with its model; only the null was not trained on members."""
    encoder, learning, seed = rows.encoder, config.learning, 1000 * config.seed
    last = config.epochs[-1]
    null = train(encoder, rows.parts["null"], [learning.plain(encoder, last, seed + 3)])
    found: dict[Target, Model] = {}
    if not only_null:
        plain = [learning.plain(encoder, epochs, seed + 1) for epochs in config.epochs]
        models = train(encoder, rows.parts["members"], [*plain, *_private(config, rows)])
        targets = [Target(f"MLP, {epochs} epochs", "trained", epochs) for epochs in config.epochs]
        targets += [
            Target(f"MLP, DP epsilon {epsilon:g}", "private", learning.dp_epochs, float(epsilon))
            for epsilon in config.dp_epsilons
        ]
        found = {target: (models, at) for at, target in enumerate(targets)}
    return {**found, Target("null", "null", last): (null, 0)}


def _helpers(config: TabularConfig, rows: TabularRows) -> dict[str, Model]:
    """Each helper by name, trained as long as the last target."""
    encoder, seed = rows.encoder, 1000 * config.seed + 4
    learned = {SYNTHETIC.name: rows.helper, REAL.name: rows.parts["generator"]}
    return {
        name: (train(encoder, part, [config.learning.plain(encoder, config.epochs[-1], seed + at)]), 0)
        for at, (name, part) in enumerate(learned.items())
    }


def _outputs(
    config: TabularConfig,
    encoder: RowEncoder,
    models: Mapping[str, Model],
    parts: Sequence[pd.DataFrame],
    shadows: Shadows | None,
) -> dict[str, list[FloatArray]]:
    """What each model says of each part: one formula for all of them, or it would tell them apart."""
    rows = pd.concat(parts, ignore_index=True)
    cuts = np.cumsum([len(part) for part in parts])[:-1]
    return {
        name: np.split(numbers(config.stronger, encoder, *model, rows, shadows), cuts)
        for name, model in models.items()
    }


def _accuracies(rows: TabularRows, target: Target, model: Model) -> dict[str, float]:
    models, at = model
    learned = rows.parts["null" if target.kind == "null" else "members"]
    parts = {"train_accuracy": learned, "test_accuracy": rows.parts["nonmembers"]}
    return {name: float(models.accuracies(*rows.encoder(part))[at]) for name, part in parts.items()}


def _shadows(config: TabularConfig, rows: TabularRows) -> Shadows:
    half = len(rows.spare) // 2
    known = pd.concat([rows.parts["generator"], rows.spare[:half]], ignore_index=True)
    return Shadows.train(
        rows.encoder,
        known,
        rows.spare[half:],
        config.learning,
        count=config.shadows,
        epochs=config.epochs[-1],
        size=min(config.sizes.members, len(known) // 2),
        seed=1000 * config.seed + 100,
    )
