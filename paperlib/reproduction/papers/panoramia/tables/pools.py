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
from paperlib.core import FloatArray
from paperlib.core.checks import check_at_least, check_choice
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
from paperlib.io.sources import code_tag
from paperlib.reproduction.data.tables.labelled import LabelledTable, load_table
from paperlib.reproduction.papers.panoramia.tables.shadows import (
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

    # D_G: the generator, the discriminator and the real-data helper learn from these.
    generator: int
    members: int  # D_in: targets train on these
    null: int  # other real rows, which targets that are not to see the members train on
    nonmembers: int  # real rows that nothing is trained on

    def __post_init__(self) -> None:
        check_at_least(10, **vars(self))


# Added to the seed of a run, so that no two of its trainings share one: targets without DP and with
# it, the null, the helpers; shadow models have the seeds from the last one on.
_OF_PLAIN, _OF_PRIVATE, _OF_NULL, _OF_SYNTHETIC, _OF_REAL, _OF_SHADOWS = 1, 2, 3, 4, 5, 100
GENERATORS = ("tree", "mst", "columns")
FILTERS = {"rejection": RejectionByOdds(), "confident": ConfidentlySynthetic(), "none": None}


@dataclass(frozen=True, kw_only=True)
class TabularConfig:
    """A table, its generator, and the models trained on it."""

    dataset: str = "randhie"  # "randhie" (ships with statsmodels) or "adult"
    label: str = "visits"  # column that targets predict: "visits"; "occupation" or "income"
    # Rows of each part.
    sizes: PartSizes = PartSizes(generator=600, members=780, null=600, nonmembers=780)
    # "tree" (Chow-Liu), "mst" (the extra ``mst``) or "columns" (drawn apart: weak).
    generator: str = "tree"
    filter: str = "rejection"  # "rejection" (by odds), "confident" (the paper's) or "none"
    bins: int = 20  # quantiles of a column of numbers
    mst_epsilon: float = 1000.0  # of MST, as in the paper
    epochs: tuple[int, ...] = (5, 50, 150)  # of the targets without DP, one target each, ascending
    # Of the targets with DP-SGD, nats, at delta 1 / (rows learned).
    dp_epsilons: tuple[float, ...] = (2.0,)
    learning: Learning = field(default_factory=Learning)
    helper_rows: int = 780  # generated rows that the synthetic helper learns from
    stronger: tuple[str, ...] = ()  # attacks of `STRONGER` whose numbers stand beside the loss
    shadows: int = 6  # shadow models of those that need them; even, 4 or more, for "lira_online"
    seed: int = 0  # of the split, the generator and the models

    def __post_init__(self) -> None:
        """Refuse (ValueError) unknown choices, settings twice, and too few shadow models for an
        attack.
        """
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
        generator = generators[self.generator]
        rule = FILTERS[self.filter]
        if rule is None:
            return generator
        return FilteredGenerator(generator=generator, rule=rule, seed=self.seed)


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
        """Encoder of rows as features, fitted on the generator's training rows."""
        return RowEncoder.fit(self.parts["generator"], self.table.label, self.table.classes)


def split_table(table: pd.DataFrame, sizes: PartSizes, seed: int) -> dict[str, pd.DataFrame]:
    """Disjoint parts of a table's rows, in random order by the seed, by the names of `PartSizes`.

    Raises ValueError where the table has too few rows for ``sizes``.
    """
    counts = vars(sizes)
    total = sum(counts.values())
    if total > len(table):
        listed = " + ".join(f"{count} {name}" for name, count in counts.items())
        raise ValueError(f"sizes: {listed} are {total} rows, and the table has {len(table)}")
    order = np.random.default_rng(seed).permutation(len(table))
    ends = np.cumsum(list(counts.values()))
    pieces = np.split(order[:total], ends[:-1])
    return {
        name: table.iloc[rows].reset_index(drop=True)
        for name, rows in zip(counts, pieces, strict=True)
    }


@lru_cache(maxsize=4)
def tabular_rows(config: TabularConfig) -> TabularRows:
    """Real and generated rows of a configuration; generated ones are drawn once and then read from
    disk.

    Raises ValueError where the table has too few rows for ``config.sizes``.
    """
    of_generator = ("generator", "filter", "bins", "mst_epsilon", "seed")
    names = (*of_generator, "sizes", "helper_rows", "offline")
    key = {
        "stage": "generated rows",
        **{name: getattr(config, name) for name in names},
        "rows": load_table(config.dataset, config.label).sha256,
        "code": code_tag(__name__),
    }
    made = pools_cache().get(key, lambda: checked_columns("rows", _generated(config)))
    return draw_rows(config, pd.DataFrame(made))


def draw_rows(config: TabularConfig, made: pd.DataFrame | None = None) -> TabularRows:
    """Real and generated rows of a configuration.

    Args:
        config: Table, split and generator.
        made: Generated rows for the audit, the helper and, the rest, to spare, in this order; None
            draws them.

    Raises:
        ValueError: The table has too few rows for ``config.sizes``.
    """
    table = load_table(config.dataset, config.label)
    real = split_table(table.rows, config.sizes, config.seed)
    if made is None:
        made = _generated(config)
    made = made[list(table.rows)]
    after_members = config.sizes.members
    after_helper = after_members + config.helper_rows
    generated = made.iloc[:after_members].reset_index(drop=True)
    helper = made.iloc[after_members:after_helper].reset_index(drop=True)
    spare = made.iloc[after_helper:].reset_index(drop=True)
    coder = RowCoder.fit(table.rows)
    # A generator that copies is nearer to its own training rows than to other real ones.
    compared = copies(
        generated=coder.numbers(generated),
        trained_on=coder.numbers(real["generator"]),
        held_out=coder.numbers(real["nonmembers"]),
        seed=config.seed,
    )
    return TabularRows(real, generated, helper, spare, table, compared)


def _generated(config: TabularConfig) -> pd.DataFrame:
    """Rows for the audit, for the helper and, where shadow models need them, to spare."""
    rows = load_table(config.dataset, config.label).rows
    real = split_table(rows, config.sizes, config.seed)
    fitted = config.table_generator().fit(real["generator"])
    count = config.sizes.members + config.helper_rows
    if config.offline:  # to spare: half for shadow models, half for RMIA's population
        count += 2 * config.sizes.members
    return fitted.sample(count, config.seed + 1)


def tabular_pools(config: TabularConfig) -> Pools:
    """Targets with and without DP, a null, and helpers that learned generated rows or the
    generator's training rows; kept on disk.

    Outputs of models have the columns `TabularConfig.columns`, lower for members. Raises ValueError
    where the table has too few rows.
    """
    rows = tabular_rows(config)
    whole = {"tables": config, "private": _private(config, rows), "rows": rows.table.sha256}
    return cached_pools(whole, lambda: build_pools(config, rows=rows), code=__name__)


def build_pools(
    config: TabularConfig, *, rows: TabularRows | None = None, only_null: bool = False
) -> Pools:
    """Train targets and helpers and ask each about all rows: the pools of `tabular_pools`, which
    this function does not keep.

    Args:
        config: Data, models and their training.
        rows: Its rows as of `draw_rows`; None draws them.
        only_null: Train the null alone, so that no target saw the members.
    """
    rows = draw_rows(config) if rows is None else rows
    targets = _targets(config, rows, only_null)
    helpers = {
        SYNTHETIC: _alone(config, rows, rows.helper, salt=_OF_SYNTHETIC),
        REAL: _alone(config, rows, rows.parts["generator"], salt=_OF_REAL),
    }
    by_name = {**rows.parts, "generated": rows.generated}
    by_kind = {kind: by_name[kind] for kind in KINDS}
    shadows = _shadows(config, rows) if config.offline else None
    coder = RowCoder.fit(rows.table.rows)
    return pools_of(
        {kind: coder.numbers(table) for kind, table in by_kind.items()},
        _outputs(config, rows.encoder, targets, by_kind, shadows),
        _outputs(config, rows.encoder, helpers, by_kind, shadows),
        pd.DataFrame([_accuracies(target, model, rows) for target, model in targets.items()]),
        rows.copies.warnings,
    )


def _accuracies(target: Target, model: Model, rows: TabularRows) -> dict[str, float]:
    """A target's accuracy on the rows that it learned and on rows that nothing learned."""
    models, index = model
    learned = _learned(rows, "null" if target.kind == "null" else "members")
    return {
        "train_accuracy": float(models.accuracies(*rows.encoder(learned))[index]),
        "test_accuracy": float(models.accuracies(*rows.encoder(rows.parts["nonmembers"]))[index]),
    }


def _seed(config: TabularConfig, salt: int) -> int:
    """The seed of a training: those of two runs are a thousand apart, and within a run each
    training adds a number of its own, ``salt``.
    """
    return 1000 * config.seed + salt


def _private(config: TabularConfig, rows: TabularRows) -> list[TrainingConfig]:
    """How each target with DP is trained, its noise included: one config per epsilon, at delta 1 /
    n for n learned rows.
    """
    count = len(_learned(rows, "members"))
    seed = _seed(config, _OF_PRIVATE)
    return [
        config.learning.private(rows.encoder, count, epsilon, 1 / count, seed)
        for epsilon in config.dp_epsilons
    ]


def _targets(config: TabularConfig, rows: TabularRows, only_null: bool) -> dict[Target, Model]:
    """Each target with its model; the null, which alone was not trained on members, last."""
    null_model = _alone(config, rows, _learned(rows, "null"), salt=_OF_NULL)
    null = {Target("null", "null", config.epochs[-1]): null_model}
    if only_null:
        return null
    learning = config.learning
    seed = _seed(config, _OF_PLAIN)
    plain = [learning.plain(rows.encoder, epochs, seed) for epochs in config.epochs]
    models = train(rows.encoder, _learned(rows, "members"), [*plain, *_private(config, rows)])
    targets = [Target(f"MLP, {epochs} epochs", "trained", epochs) for epochs in config.epochs]
    targets += [
        Target(f"MLP, DP epsilon {epsilon:g}", "private", learning.dp_epochs, float(epsilon))
        for epsilon in config.dp_epsilons
    ]
    return {target: (models, index) for index, target in enumerate(targets)} | null


def _learned(rows: TabularRows, name: str) -> pd.DataFrame:
    """Rows that targets learn: the generator's training rows and those of the part ``name``,
    "members" or, for a null target, "null".
    """
    return pd.concat([rows.parts["generator"], rows.parts[name]], ignore_index=True)


def _alone(config: TabularConfig, rows: TabularRows, learned: pd.DataFrame, *, salt: int) -> Model:
    """A model without DP by itself, trained as long as the last target; ``salt`` sets its seed
    apart.
    """
    plan = config.learning.plain(rows.encoder, config.epochs[-1], _seed(config, salt))
    return train(rows.encoder, learned, [plan]), 0


def _outputs(
    config: TabularConfig,
    encoder: RowEncoder,
    models: Mapping[Any, Model],
    by_kind: Mapping[str, pd.DataFrame],
    shadows: Shadows | None,
) -> dict[Any, dict[str, FloatArray]]:
    """The `numbers` of each model for each kind of rows, shape (n, columns).

    All kinds are taken in one call: numbers that depend on the other rows of a call, such as a
    pooled variance, would otherwise tell the kinds apart.
    """
    rows = pd.concat(by_kind.values(), ignore_index=True)
    ends = np.cumsum([len(table) for table in by_kind.values()])[:-1]
    outputs = {}
    for key, model in models.items():
        columns = numbers(config.stronger, encoder, model, rows, shadows)
        outputs[key] = dict(zip(by_kind, np.split(columns, ends), strict=True))
    return outputs


def _shadows(config: TabularConfig, rows: TabularRows) -> Shadows:
    """Shadow models that learn from the generator's training rows and half of the spare rows; the
    other half is RMIA's population.
    """
    half = len(rows.spare) // 2
    seed = _seed(config, _OF_SHADOWS)
    available = pd.concat([rows.parts["generator"], rows.spare[:half]], ignore_index=True)
    # As many as there are members, or half of all where these are fewer, so that models differ.
    size = min(config.sizes.members, len(available) // 2)
    rng = np.random.default_rng(seed)
    subsets = [rng.permutation(len(available))[:size] for _ in range(config.shadows)]
    models = shadow_models(
        rows.encoder, available, subsets, config.learning, config.epochs[-1], seed
    )
    return Shadows(rows.encoder, models, rows.spare[half:])
