"""PANORAMIA on tables at several sizes: the pools, and how they are audited."""

from dataclasses import replace
from typing import Any

from paperlib.attacks.learned import BoostedTrees
from paperlib.audits.panoramia.game import AuditConfig
from paperlib.audits.panoramia.table_models import Learning
from paperlib.core.checks import check_choice
from paperlib.reproduction.papers.panoramia.tables.pools import PartSizes, TabularConfig
from paperlib.reproduction.papers.settings import settings_beside

_KINDS = {"sizes": PartSizes, "learning": Learning}


def tabular_config(size: str, **changes: Any) -> TabularConfig:
    """Settings of a size: "smoke", "default" (randhie), "paper" (Adult), or "rehearsal" of it on
    few rows; ``changes`` are fields that take other values.

    Raises ValueError for an unknown size.
    """
    pools = _settings(size)["pools"]
    built = {name: kind(**pools[name]) for name, kind in _KINDS.items() if name in pools}
    return TabularConfig(**{**pools, **built, **changes})


def tabular_audit(size: str, **changes: Any) -> AuditConfig:
    """How the pools of a size of `tabular_config` are audited; ``changes`` are fields that take
    other values.

    Raises ValueError for an unknown size.
    """
    audit = _settings(size)["audit"]
    attacks = tuple(BoostedTrees(**settings) for settings in audit["attacks"])
    return replace(AuditConfig(**{**audit, "attacks": attacks}), **changes)


def _settings(size: str) -> dict[str, dict[str, Any]]:
    """The settings of a size, "pools" and "audit"; a ValueError for an unknown size."""
    sizes = settings_beside(__file__)
    check_choice("size", size, tuple(sizes))
    return sizes[size]
