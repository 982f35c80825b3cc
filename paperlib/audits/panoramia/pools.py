"""Batches that models take, and pools: examples of one kind with the outputs of all models on
them.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from io import StringIO
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from paperlib.attacks.learned.interface import AttackInputs
from paperlib.core import FloatArray, IntArray
from paperlib.core.checks import check_in
from paperlib.io import Cache, user_cache_folder
from paperlib.io.cache import typed
from paperlib.io.files import config_hash
from paperlib.io.sources import code_tag

Batch = tuple[Any, ...]
"""Arguments of a model: tables, arrays or lists of one length, such as (rows,) or (images, labels).
"""
Model = Callable[..., ArrayLike]
"""Takes a batch and returns one loss for each example, lower where the model knows it, shape (n,);
or a table (n, k) whose first column is the loss."""
Trainer = Callable[..., Model]
"""Takes a batch and, after it, a seed, and returns a model trained on this batch."""


def take(batch: Batch, rows: IntArray) -> Batch:
    """The examples of these numbers, shape (k,), in their order, as a batch."""

    def rows_of(values: Any) -> Any:
        """The chosen rows of one argument of the batch: a table, a list or an array."""
        if isinstance(values, pd.DataFrame):
            return values.iloc[rows].reset_index(drop=True)
        if isinstance(values, list | tuple):
            return [values[int(row)] for row in rows]
        return values[rows]

    return tuple(rows_of(values) for values in batch)


def appended(first: Batch, second: Batch) -> Batch:
    """The examples of the first batch and then those of the second, in the same arguments."""

    def both(values: Any, others: Any) -> Any:
        """One argument of both batches, in the type of the first: a table, a list or an array."""
        if isinstance(values, pd.DataFrame):
            return pd.concat([values, others], ignore_index=True)
        if isinstance(values, list | tuple):
            return [*values, *others]
        return np.concatenate([values, others])

    pairs = zip(first, second, strict=True)
    return tuple(both(values, others) for values, others in pairs)


def columns(name: str, values: ArrayLike, count: int) -> FloatArray:
    """One model's numbers as a table with one row for each example, shape (n, k); ``values`` may
    be of shape (n,). A ValueError that begins with ``name`` where they are of another shape.
    """
    table = np.asarray(values, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != count or not table.shape[1]:
        raise ValueError(
            f"{name}: expected one loss for each of {count} examples, shape ({count},) or "
            f"({count}, k), got {np.asarray(values).shape}"
        )
    return table


def check_model(name: str, model: Model) -> Model:
    """A function, or a ValueError that names who should have returned one."""
    if not callable(model):
        raise ValueError(
            f"{name}: expected a function that returns losses, got {type(model).__name__}"
        )
    return model


KINDS = ("members", "generated", "nonmembers")


@dataclass(frozen=True)
class Target:
    """A model that is audited, with its name in tables."""

    name: str
    # null: never saw the members; private: with DP
    kind: Literal["trained", "null", "private"] = "trained"
    epochs: int = -1  # -1 where unknown
    dp_epsilon: float | None = None  # of its DP guarantee, nats

    def row(self) -> dict[str, Any]:
        """Columns target, null, epochs and dp_epsilon (NaN without DP)."""
        return {
            "target": self.name,
            "null": self.kind == "null",
            "epochs": self.epochs,
            "dp_epsilon": np.nan if self.dp_epsilon is None else self.dp_epsilon,
        }


@dataclass(frozen=True)
class Helper:
    """A model that never saw the members, which the baseline may ask."""

    name: str
    # Training data: generated; the generator's own; real examples that no game shows; public; or
    # the generator's own and members that no test shows, asked of models that did not learn them
    # (`out_of_fold`).
    data: Literal["synthetic", "real", "nonmembers", "base", "folds"]
    epochs: int = -1  # -1 where unknown
    placebo: bool = False  # the baseline of the form "helpers" asks it in the place of the target


SYNTHETIC, REAL = Helper("synthetic", "synthetic"), Helper("real", "real")
"""The helpers of the paper: trained on generated examples, and on the generator's own training
data.
"""
FOLDS, PLACEBO = Helper("out of fold", "folds"), Helper("placebo", "folds", placebo=True)
"""A helper that learns as much real data as it may, and another one for the place of the target."""


@dataclass(frozen=True, eq=False)
class Pool:
    """Examples of one kind, and models' outputs on them, (n, k); those of targets begin with the
    loss.
    """

    examples: NDArray[Any]
    helpers: Mapping[str, FloatArray]
    targets: Mapping[str, FloatArray]

    def __post_init__(self) -> None:
        """Refuse (ValueError) outputs that are not one row per example, and name the model they are
        of.
        """
        for role, outputs in (("helper", self.helpers), ("target", self.targets)):
            for name, values in outputs.items():
                try:
                    AttackInputs(self.examples, values)
                except ValueError as error:
                    raise ValueError(f"{role} {name!r}: {error}") from None

    def __len__(self) -> int:
        return len(self.examples)

    def inputs(self, *, helpers: tuple[str, ...] = (), target: str | None = None) -> AttackInputs:
        """Inputs of an attack that sees these models: the target's columns first, then the
        helpers'.
        """
        outputs = [self.targets[target]] if target is not None else []
        outputs += [self.helpers[name] for name in helpers]
        return AttackInputs(
            self.examples, np.concatenate([np.empty((len(self), 0)), *outputs], axis=1)
        )


@dataclass(frozen=True, eq=False)
class Pools:
    """The data of an audit: no target or helper is trained after this."""

    members: Pool
    generated: Pool  # seen by nothing before
    nonmembers: Pool | None
    targets: tuple[Target, ...]
    helpers: tuple[Helper, ...] = ()
    # One row per target, such as accuracies.
    details: pd.DataFrame = field(default_factory=pd.DataFrame)
    warnings: tuple[str, ...] = ()
    key: str = ""  # hash of the configuration; empty if these pools are not cached
    # Generated example i could have stood in the place of member i: no test shows both.
    twins: bool = False
    # The first so many members are never judged: helpers of "folds" learn them, attacks are trained
    # and chosen on them. 0: no helper learns a member, and each game deals all of them.
    learned: int = 0

    def __post_init__(self) -> None:
        """Refuse (ValueError) pools of different models, and folds that no member is left to learn
        from.
        """
        check_in(f"[0, {len(self.members)}]", "learned", self.learned)
        folds = [helper.name for helper in self.helpers if helper.data == "folds"]
        if folds and not self.learned:
            raise ValueError(f"learned: expected 1 or more with the helper {folds[0]!r}, got 0")
        for kind, pool in self.by_kind().items():
            _check_names(f"{kind}: expected the targets", self.target_names, pool.targets)
            _check_names(f"{kind}: expected the helpers", self.helper_names, pool.helpers)

    def by_kind(self) -> dict[str, Pool]:
        """The pools there are."""
        pools = dict(zip(KINDS, (self.members, self.generated, self.nonmembers), strict=True))
        return {kind: pool for kind, pool in pools.items() if pool is not None}

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of the targets."""
        return tuple(target.name for target in self.targets)

    @property
    def helper_names(self) -> tuple[str, ...]:
        """Names of the helpers."""
        return tuple(helper.name for helper in self.helpers)

    @property
    def table(self) -> pd.DataFrame:
        """One row per target: the columns of `Target.row`, then ``details``."""
        rows = pd.DataFrame([target.row() for target in self.targets])
        return pd.concat([rows, self.details], axis=1)


def _check_names(expectation: str, names: tuple[str, ...], outputs: Mapping[str, object]) -> None:
    """Refuse outputs of other models than these; ``expectation`` begins the message."""
    if sorted(outputs) != sorted(names):
        raise ValueError(f"{expectation} {list(names)}, got {list(outputs)}")


def pools_of(
    examples: Mapping[str, NDArray[Any]],
    targets: Mapping[Target, Mapping[str, FloatArray]],
    helpers: Mapping[Helper, Mapping[str, FloatArray]],
    *pool_fields: Any,
    **options: Any,
) -> Pools:
    """Pools from the examples of each kind and each model's outputs by kind.

    Args:
        examples: One of `KINDS` to the examples of this kind, n first; "nonmembers" may be absent.
        targets, helpers: Model to its outputs on each kind, shape (n, k); those of targets begin
            with the loss. Outputs on kinds without examples are left out.
        pool_fields, options: Further fields of `Pools`, from ``details`` on.

    Raises:
        ValueError: Outputs that are not one finite row per example, a model without outputs on a
            kind of ``examples``, or no examples of members or of the generator.
    """
    absent = [kind for kind in ("members", "generated") if kind not in examples]
    if absent:
        raise ValueError(f"examples: expected {' and '.join(absent)}, got {list(examples)}")
    pools: dict[str, Pool] = {}
    for kind, rows in examples.items():
        pools[kind] = Pool(rows, _on_kind(kind, helpers), _on_kind(kind, targets))
    return Pools(
        pools["members"],
        pools["generated"],
        pools.get("nonmembers"),
        tuple(targets),
        tuple(helpers),
        *pool_fields,
        **options,
    )


def cached_pools(config: Mapping[str, Any], build: Callable[[], Pools], *, code: str) -> Pools:
    """The pools of a configuration, from the cache or, where it has none, from ``build``.

    Args:
        config: All that the pools depend on, but for code.
        code: Name of the module whose code, with all it imports, they depend on as well.
    """
    settings = {"pools": dict(config), "code": code_tag(code)}
    arrays = pools_cache().get(settings, lambda: _arrays_of(build()))
    return _pools_from(arrays, key=config_hash(typed(settings)))


def _arrays_of(pools: Pools) -> dict[str, NDArray[Any]]:
    """Pools as the arrays that the cache keeps: models and details as JSON, "KIND/ROLE/NAME" for
    the outputs of a model.
    """
    details = pools.details.to_json(orient="table", index=False, double_precision=15)
    arrays: dict[str, NDArray[Any]] = {
        "targets": np.array(json.dumps([asdict(target) for target in pools.targets])),
        "helpers": np.array(json.dumps([asdict(helper) for helper in pools.helpers])),
        "details": np.array(details),
        "warnings": np.array(pools.warnings, dtype=str),
        "learned": np.array(pools.learned),
    }
    for kind, pool in pools.by_kind().items():
        arrays[f"{kind}/examples"] = pool.examples
        for name, outputs in pool.helpers.items():
            arrays[f"{kind}/helpers/{name}"] = outputs
        for name, outputs in pool.targets.items():
            arrays[f"{kind}/targets/{name}"] = outputs
    return arrays


def _pools_from(arrays: Mapping[str, NDArray[Any]], *, key: str) -> Pools:
    """The pools that `_arrays_of` wrote as these arrays, under their key in the cache."""
    kinds = [kind for kind in KINDS if f"{kind}/examples" in arrays]

    def outputs(role: str, class_: Callable[..., Any]) -> dict[Any, dict[str, FloatArray]]:
        """Each model of a role with its outputs by kind; ``class_`` makes the model from its stored
        fields.
        """
        by_model: dict[Any, dict[str, FloatArray]] = {}
        for fields in json.loads(str(arrays[role])):
            model = class_(**fields)
            by_model[model] = {kind: arrays[f"{kind}/{role}/{model.name}"] for kind in kinds}
        return by_model

    return pools_of(
        {kind: arrays[f"{kind}/examples"] for kind in kinds},
        outputs("targets", Target),
        outputs("helpers", Helper),
        pd.read_json(StringIO(str(arrays["details"])), orient="table", precise_float=True),
        tuple(map(str, arrays["warnings"])),
        key,
        learned=int(arrays["learned"]),
    )


def _on_kind(kind: str, models: Mapping[Any, Mapping[str, FloatArray]]) -> dict[str, FloatArray]:
    """Outputs on the examples of this kind by the names of the models, targets or helpers; a
    ValueError where a model has none.
    """
    by_name: dict[str, FloatArray] = {}
    for model, outputs in models.items():
        if kind not in outputs:
            raise ValueError(
                f"{model.name}: expected outputs on {kind}, got those on {list(outputs)}"
            )
        by_name[model.name] = outputs[kind]
    return by_name


def with_helpers(pools: Pools, helpers: Sequence[Helper]) -> Pools:
    """Pools in which audits see these helpers alone, in this order; a ValueError where the pools
    lack one of them.
    """
    unknown = [helper.name for helper in helpers if helper not in pools.helpers]
    if unknown:
        raise ValueError(
            f"helpers: expected some of {', '.join(pools.helper_names)}, got {', '.join(unknown)}"
        )
    changed: dict[str, Pool] = {}
    for kind, pool in pools.by_kind().items():
        outputs = {helper.name: pool.helpers[helper.name] for helper in helpers}
        changed[kind] = replace(pool, helpers=outputs)
    return replace(
        pools, **changed, helpers=tuple(helpers), key=part_key(pools, helpers=list(helpers))
    )


def add_helpers(
    pools: Pools, helpers: Mapping[Helper, Mapping[str, FloatArray]], *, learned: int, about: Any
) -> Pools:
    """Pools with more helpers than they have.

    Args:
        pools: Those that the helpers are added to.
        helpers: Helper to its outputs on each kind, shape (n, k).
        learned: Number of members that helpers of "folds" learned, the first ones of all.
        about: What the outputs depend on beside the pools, as values of JSON for their key.

    Raises:
        ValueError: A helper without outputs on a kind of the pools, or outputs that are not one
            finite row per example.
    """
    changed: dict[str, Pool] = {}
    for kind, pool in pools.by_kind().items():
        added = _on_kind(kind, helpers)
        changed[kind] = replace(pool, helpers={**pool.helpers, **added})
    return replace(
        pools,
        **changed,
        helpers=(*pools.helpers, *helpers),
        learned=learned,
        key=part_key(pools, added=list(helpers), learned=learned, about=about),
    )


def part_key(pools: Pools, **choices: Any) -> str:
    """The key of pools that are made from ``pools`` by some choices or additions, for `Pools.key`:
    empty where ``pools`` has none.
    """
    return config_hash(typed({"pools": pools.key, **choices})) if pools.key else ""


def pools_cache() -> Cache:
    """Where pools and scores on them are stored."""
    return Cache(user_cache_folder() / "panoramia")
