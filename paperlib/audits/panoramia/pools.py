"""Pools: examples of one kind, with everything that models say of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paperlib.attacks.learned import AttackInputs
from paperlib.core import FloatArray
from paperlib.io import Cache, code_tag, config_hash, typed, user_cache_folder

KINDS = ("members", "generated", "nonmembers")
REQUIRED = ("target", "null", "epochs", "dp_epsilon")


@dataclass(frozen=True, eq=False)
class Pool:
    """Examples of one kind.

    Args:
        examples: The examples themselves, shape (n, ...).
        helpers: Helper's name to what it gives for each example, shape (n, k). "synthetic" was trained on
            generated data, "real" on the generator's own training data.
        targets: Target's name to what it gives, shape (n, k); column 0 is its loss, lower means member.

    Raises:
        ValueError: Lengths that differ, or numbers that are NaN or infinite; the message names the model.
    """

    examples: NDArray[Any]
    helpers: Mapping[str, FloatArray]
    targets: Mapping[str, FloatArray]

    def __post_init__(self) -> None:
        for role, given in (("helper", self.helpers), ("target", self.targets)):
            for name, values in given.items():
                try:
                    AttackInputs(self.examples, values)
                except ValueError as error:
                    raise ValueError(f"{role} {name!r}: {error}") from None

    def __len__(self) -> int:
        return len(self.examples)

    def views(self, *, helpers: tuple[str, ...] = (), target: str | None = None) -> AttackInputs:
        """What an attack sees that is given these models: the target's columns first, then the helpers'."""
        columns = [self.targets[target]] if target is not None else []
        columns += [self.helpers[name] for name in helpers]
        return AttackInputs(self.examples, np.concatenate([np.empty((len(self), 0)), *columns], axis=1))


@dataclass(frozen=True, eq=False)
class Pools:
    """Everything an audit needs: no model is trained after this.

    Args:
        members: Trained on by every target that is not null, and not by the generator or a helper.
        generated: Drawn from the generator, and seen by nothing before.
        nonmembers: Real examples that no target was trained on, or None.
        table: One row per target: target, null (it never saw the members), epochs, dp_epsilon (NaN without
            DP), and what else is known of it.
        warnings: What a reader of any result must know.
        key: Hash of the configuration, empty if these pools are not kept.

    Raises:
        ValueError: Pools that do not name the same models, or a table that names others.
    """

    members: Pool
    generated: Pool
    nonmembers: Pool | None
    table: pd.DataFrame
    warnings: tuple[str, ...] = ()
    key: str = field(default="")

    def __post_init__(self) -> None:
        if missing := [name for name in REQUIRED if name not in self.table]:
            raise ValueError(
                f"table: expected the columns {', '.join(REQUIRED)}, without {', '.join(missing)}"
            )
        wanted = list(self.table["target"])
        for kind, pool in self.by_kind().items():
            if sorted(pool.targets) != sorted(wanted):
                raise ValueError(f"{kind}: expected the targets {wanted}, got {list(pool.targets)}")
            if sorted(pool.helpers) != sorted(self.members.helpers):
                raise ValueError(
                    f"{kind}: expected the helpers {list(self.members.helpers)}, got {list(pool.helpers)}"
                )

    def by_kind(self) -> dict[str, Pool]:
        """The pools there are."""
        pools = dict(zip(KINDS, (self.members, self.generated, self.nonmembers), strict=True))
        return {kind: pool for kind, pool in pools.items() if pool is not None}

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the targets, in the order of the table."""
        return tuple(self.table["target"])

    @property
    def helpers(self) -> tuple[str, ...]:
        """Names of the helpers."""
        return tuple(self.members.helpers)


def cached_pools(config: Mapping[str, Any], build: Callable[[], Pools], *, code: str) -> Pools:
    """The pools of a configuration: read if they were made before by the same code, else made and kept.

    Args:
        config: Everything they depend on: typed configurations, and data by checksum.
        build: Makes them.
        code: Name of the module that makes them; a change of what it reaches makes them stale.
    """
    whole = {"pools": dict(config), "code": code_tag(code)}
    arrays = pools_cache().get(whole, lambda: _to_arrays(build()))
    return _from_arrays(arrays, config_hash(typed(whole)))


def part_key(pools: Pools, **part: Any) -> str:
    """The key of pools that were made from others: empty if those are not kept.

    Args:
        pools: The others.
        part: What was chosen or added, by name: typed configurations, numbers, text.
    """
    return config_hash(typed({"pools": pools.key, **part})) if pools.key else ""


def pools_cache() -> Cache:
    """Where pools and scores on them are kept."""
    return Cache(user_cache_folder() / "panoramia")


def _to_arrays(pools: Pools) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {
        "table": np.array(pools.table.to_json(orient="table", index=False, double_precision=15)),
        "warnings": np.array(pools.warnings, dtype=str),
    }
    for kind, pool in pools.by_kind().items():
        arrays[f"{kind}/examples"] = pool.examples
        for role, given in (("helpers", pool.helpers), ("targets", pool.targets)):
            arrays |= {f"{kind}/{role}/{name}": values for name, values in given.items()}
    return arrays


def _from_arrays(arrays: Mapping[str, NDArray[Any]], key: str) -> Pools:
    def pool(kind: str) -> Pool | None:
        if f"{kind}/examples" not in arrays:
            return None
        parts = {
            role: {
                name.removeprefix(f"{kind}/{role}/"): values
                for name, values in arrays.items()
                if name.startswith(f"{kind}/{role}/")
            }
            for role in ("helpers", "targets")
        }
        return Pool(arrays[f"{kind}/examples"], **parts)

    members, generated, nonmembers = (pool(kind) for kind in KINDS)
    if members is None or generated is None:
        raise ValueError("pools: members or generated examples are missing")
    table = pd.read_json(StringIO(str(arrays["table"])), orient="table", precise_float=True)
    table["dp_epsilon"] = table["dp_epsilon"].astype(float)
    return Pools(members, generated, nonmembers, table, tuple(map(str, arrays["warnings"])), key)
