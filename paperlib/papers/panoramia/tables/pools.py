"""PANORAMIA on tables: rows from a tree of column pairs, MLPs as targets, boosted trees as
attacks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd

from paperlib.audits.panoramia.memorization import Copies, copies
from paperlib.audits.panoramia.pools import (
    KINDS,
    REAL,
    SYNTHETIC,
    Pools,
    Target,
    cached_pools,
    pools_cache,
    pools_of,
)
from paperlib.audits.panoramia.table_models import Learning, RowEncoder, train
from paperlib.core import FloatArray, check_at_least, check_choice
from paperlib.data.tables.labelled import LabelledTable, load_table
from paperlib.generators.table_filter import (
    ConfidentlySynthetic,
    FilteredGenerator,
    RejectionByOdds,
    RowCoder,
)
from paperlib.generators.tabular import (
    ChowLiuTree,
    IndependentColumns,
    NoisyTree,
    TableGenerator,
    checked_columns,
)
from paperlib.io import code_tag
from paperlib.papers.panoramia.tables.shadows import (
    OFFLINE,
    STRONGER,
    Model,
    Shadows,
    numbers,
    shadow_models,
)
from paperlib.training import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class PartSizes:
    """Rows of each part; the parts share no row."""

    generator: (
        int  # D_G: the generator, the discriminator and the real-data helper learn from these
    )
    members: int  # D_in: targets train on these
    null: int  # other real rows, which targets that are not to see the members train on
    nonmembers: int  # real rows that nothing is trained on

    def __post_init__(self) -> None:
        check_at_least(10, **vars(self))


GENERATORS = ("tree", "mst", "columns")
FILTERS = {"rejection": RejectionByOdds(), "confident": ConfidentlySynthetic(), "none": None}


@dataclass(frozen=True, kw_only=True)
class TabularConfig:
    """A table, its generator, and the models trained on it."""

    dataset: str = "randhie"  # "randhie" (ships with statsmodels) or "adult"
    label: str = "visits"  # column that targets predict: "visits"; "occupation" or "income"
    sizes: PartSizes = PartSizes(
        generator=600, members=780, null=600, nonmembers=780
    )  # rows of each part
    generator: str = (
        "tree"  # "tree" (Chow-Liu), "mst" (the extra ``mst``) or "columns" (drawn apart: weak)
    )
    filter: str = "rejection"  # "rejection" (by odds), "confident" (the paper's) or "none"
    bins: int = 20  # quantiles of a column of numbers
    mst_epsilon: float = 1000.0  # of MST, as in the paper
    epochs: tuple[int, ...] = (5, 50, 150)  # of the targets without DP, one target each, ascending
    dp_epsilons: tuple[float, ...] = (
        2.0,
    )  # of the targets with DP-SGD, nats, at delta 1 / (rows learned)
    learning: Learning = field(default_factory=Learning)
    helper_rows: int = 780  # generated rows that the synthetic helper learns from
    stronger: tuple[str, ...] = ()  # attacks of `STRONGER` whose numbers stand beside the loss
    shadows: int = 6  # shadow models of those that need them; even, 4 or more, for "lira_online"
    seed: int = 0  # of the split, the generator and the models

    def __post_init__(self) -> None:
        check_choice("generator", self.generator, GENERATORS)
        check_choice("filter", self.filter, FILTERS)
        if not self.epochs or min(self.epochs) < 1 or list(self.epochs) != sorted(set(self.epochs)):
            raise ValueError(
                f"epochs: expected different numbers of 1 or more, ascending, got {self.epochs}"
            )
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
        generators: dict[str, TableGenerator] = {
            "tree": ChowLiuTree(bins=self.bins),
            "mst": NoisyTree(epsilon=self.mst_epsilon, bins=self.bins, seed=self.seed),
            "columns": IndependentColumns(),
        }
        made, rule = generators[self.generator], FILTERS[self.filter]
        return (
            made if rule is None else FilteredGenerator(generator=made, rule=rule, seed=self.seed)
        )


@dataclass(frozen=True, eq=False)
class TabularRows:
    """Real and generated rows, all disjoint draws."""

    parts: Mapping[str, pd.DataFrame]  # real rows by the names of `PartSizes`
    generated: pd.DataFrame  # D_out, as many as members
    helper: pd.DataFrame  # generated rows that the synthetic helper learns from
    spare: pd.DataFrame  # generated rows for shadow models, half of them RMIA's population
    table: LabelledTable
    copies: Copies

    @cached_property
    def encoder(self) -> RowEncoder:
        """Encoder of rows as features, fitted on D_G."""
        return RowEncoder.fit(self.parts["generator"], self.table.label, self.table.classes)


def split_table(table: pd.DataFrame, sizes: PartSizes, seed: int) -> dict[str, pd.DataFrame]:
    """Disjoint parts in random order, by the names of `PartSizes`."""
    wanted = vars(sizes)
    if sum(wanted.values()) > len(table):
        raise ValueError(
            f"sizes: {' + '.join(f'{size} {name}' for name, size in wanted.items())} are "
            f"{sum(wanted.values())} rows, and the table has {len(table)}"
        )
    order = np.random.default_rng(seed).permutation(len(table))
    ends = np.cumsum(list(wanted.values()))
    parts = np.split(order[: ends[-1]], ends[:-1])
    return {
        name: table.iloc[rows].reset_index(drop=True)
        for name, rows in zip(wanted, parts, strict=True)
    }


@lru_cache(maxsize=4)
def tabular_rows(config: TabularConfig) -> TabularRows:
    """As `draw_rows`, with generated rows from disk."""
    names = (
        "generator",
        "filter",
        "bins",
        "mst_epsilon",
        "seed",
        "sizes",
        "helper_rows",
        "offline",
    )
    key = {
        "stage": "generated rows",
        **{name: getattr(config, name) for name in names},
        "rows": load_table(config.dataset, config.label).sha256,
        "code": code_tag(__name__),
    }
    made = pools_cache().get(key, lambda: checked_columns("rows", _generated(config)))
    return draw_rows(config, pd.DataFrame(made))


def draw_rows(config: TabularConfig, made: pd.DataFrame | None = None) -> TabularRows:
    """Split the table, and draw from the generator, or take the rows ``made`` before."""
    table = load_table(config.dataset, config.label)
    parts = split_table(table.rows, config.sizes, config.seed)
    made = (_generated(config) if made is None else made)[list(table.rows)]
    pieces = np.split(np.arange(len(made)), np.cumsum([config.sizes.members, config.helper_rows]))
    generated, helper, spare = (made.iloc[piece].reset_index(drop=True) for piece in pieces)
    coder = RowCoder.fit(table.rows)
    compared = [
        coder.numbers(part) for part in (generated, parts["generator"], parts["nonmembers"])
    ]
    return TabularRows(parts, generated, helper, spare, table, copies(*compared, seed=config.seed))


def _generated(config: TabularConfig) -> pd.DataFrame:
    """Rows for the audit, for the helper and, where shadow models need them, to spare."""
    rows = load_table(config.dataset, config.label).rows
    fitted = config.table_generator().fit(split_table(rows, config.sizes, config.seed)["generator"])
    count = (3 if config.offline else 1) * config.sizes.members + config.helper_rows
    return fitted.sample(count, config.seed + 1)


def tabular_pools(config: TabularConfig) -> Pools:
    """Targets with and without DP, a null, and helpers on generated rows and on D_G; columns as
    `numbers`.
    """
    rows = tabular_rows(config)
    whole = {"tables": config, "private": _private(config, rows), "rows": rows.table.sha256}
    return cached_pools(whole, lambda: build_pools(config, rows=rows), code=__name__)


def build_pools(
    config: TabularConfig, *, rows: TabularRows | None = None, only_null: bool = False
) -> Pools:
    """As `tabular_pools`, kept nowhere; with ``only_null`` no target saw the members."""
    rows = draw_rows(config) if rows is None else rows
    targets = _targets(config, rows, only_null)
    helpers = {
        SYNTHETIC: _alone(config, rows, rows.helper, 4),
        REAL: _alone(config, rows, rows.parts["generator"], 5),
    }
    every = {**rows.parts, "generated": rows.generated}
    parts = {kind: every[kind] for kind in KINDS}
    shadows = _shadows(config, rows) if config.offline else None
    said = [_outputs(config, rows.encoder, models, parts, shadows) for models in (targets, helpers)]
    coder = RowCoder.fit(rows.table.rows)
    examples = {kind: coder.numbers(part) for kind, part in parts.items()}
    details = []
    for target, (models, at) in targets.items():
        learned = _learned(rows, "null" if target.kind == "null" else "members")
        judged = {"train_accuracy": learned, "test_accuracy": rows.parts["nonmembers"]}
        shares = {name: models.accuracies(*rows.encoder(part))[at] for name, part in judged.items()}
        details.append({name: float(share) for name, share in shares.items()})
    return pools_of(examples, *said, pd.DataFrame(details), rows.copies.warnings)


def _private(config: TabularConfig, rows: TabularRows) -> list[TrainingConfig]:
    """How each target with DP is trained, its noise included."""
    count, seed = len(_learned(rows, "members")), 1000 * config.seed + 2
    return [
        config.learning.private(rows.encoder, count, epsilon, 1 / count, seed)
        for epsilon in config.dp_epsilons
    ]


def _targets(config: TabularConfig, rows: TabularRows, only_null: bool) -> dict[Target, Model]:
    """Each target with its model; only the null was not trained on members."""
    null = {
        Target("null", "null", config.epochs[-1]): _alone(config, rows, _learned(rows, "null"), 3)
    }
    if only_null:
        return null
    learning = config.learning
    plain = [
        learning.plain(rows.encoder, epochs, 1000 * config.seed + 1) for epochs in config.epochs
    ]
    models = train(rows.encoder, _learned(rows, "members"), [*plain, *_private(config, rows)])
    targets = [Target(f"MLP, {epochs} epochs", "trained", epochs) for epochs in config.epochs]
    targets += [
        Target(f"MLP, DP epsilon {epsilon:g}", "private", learning.dp_epochs, float(epsilon))
        for epsilon in config.dp_epsilons
    ]
    return {target: (models, at) for at, target in enumerate(targets)} | null


def _learned(rows: TabularRows, part: str) -> pd.DataFrame:
    """Rows that targets learn: D_G and a part, members or, for a null target, other rows."""
    return pd.concat([rows.parts["generator"], rows.parts[part]], ignore_index=True)


def _alone(config: TabularConfig, rows: TabularRows, part: pd.DataFrame, salt: int) -> Model:
    """A model without DP by itself, trained as long as the last target."""
    plan = config.learning.plain(rows.encoder, config.epochs[-1], 1000 * config.seed + salt)
    return train(rows.encoder, part, [plan]), 0


def _outputs(
    config: TabularConfig,
    encoder: RowEncoder,
    models: Mapping[Any, Model],
    parts: Mapping[str, pd.DataFrame],
    shadows: Shadows | None,
) -> dict[Any, dict[str, FloatArray]]:
    """What each model says of each part, by one formula: two would tell the parts apart."""
    rows = pd.concat(parts.values(), ignore_index=True)
    cuts = np.cumsum([len(part) for part in parts.values()])[:-1]
    found = {
        key: numbers(config.stronger, encoder, model, rows, shadows)
        for key, model in models.items()
    }
    return {key: dict(zip(parts, np.split(said, cuts), strict=True)) for key, said in found.items()}


def _shadows(config: TabularConfig, rows: TabularRows) -> Shadows:
    half, seed = len(rows.spare) // 2, 1000 * config.seed + 100
    known = pd.concat([rows.parts["generator"], rows.spare[:half]], ignore_index=True)
    size, rng = min(config.sizes.members, len(known) // 2), np.random.default_rng(seed)
    parts = [rng.permutation(len(known))[:size] for _ in range(config.shadows)]
    models = shadow_models(rows.encoder, known, parts, config.learning, config.epochs[-1], seed)
    return Shadows(rows.encoder, models, rows.spare[half:])
