"""What every audit returns: a frozen record that can say in one sentence what it supports."""

import dataclasses
import html
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


def round_down(value: float, digits: int = 3) -> float:
    """Round toward minus infinity, as a lower bound must be shown.

    >>> round_down(1.6308)
    1.63
    """
    if not math.isfinite(value):
        return value
    scale = 10**digits
    return math.floor(value * scale) / scale


def to_frame(columns: Mapping[str, Any]) -> "pd.DataFrame":
    """Build a pandas table; pandas is imported here so that the bounds work without it.

    Args:
        columns: Column name to values, all of one length.
    """
    import pandas as pd

    return pd.DataFrame(dict(columns))


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditResult(ABC):
    """Base of every audit result.

    Attributes:
        claim: The exact sentence the number supports, with confidence, adjacency and delta.
        assumptions: What must be true for the claim to hold.
        warnings: What the reader should worry about in this very run; often empty.
    """

    claim: str
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    @property
    @abstractmethod
    def headline(self) -> str:
        """The number with its name, on one line, lower bounds rounded down."""

    def __str__(self) -> str:
        lines = [self.headline, "", f"Claim: {self.claim}", "", "Assumptions:"]
        lines += [f"  - {text}" for text in self.assumptions]
        lines += [f"Warning: {text}" for text in self.warnings]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{html.escape(text)}</li>" for text in self.assumptions)
        warnings = "".join(f"<p><strong>Warning:</strong> {html.escape(text)}</p>" for text in self.warnings)
        return (
            f"<div class='audit-result'><p><strong>{html.escape(self.headline)}</strong></p>"
            f"<p>{html.escape(self.claim)}</p>{warnings}"
            f"<details><summary>Assumptions</summary><ul>{items}</ul></details></div>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Every field as JSON-ready values; infinities become the strings "inf" and "-inf"."""
        return {
            field.name: json_ready(getattr(self, field.name))
            for field in dataclasses.fields(self)
            if not field.name.startswith("_")
        }


def json_ready(value: Any) -> Any:
    """Turn numpy values, tuples, mappings and dataclasses into what ``json.dumps`` takes.

    >>> json_ready((1, np.float64(2), float("inf")))
    [1, 2.0, 'inf']
    """
    if isinstance(value, Mapping):
        return {str(key): json_ready(item) for key, item in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, np.ndarray | tuple | list):
        return [json_ready(item) for item in cast(list[Any], value)]
    if isinstance(value, np.generic):
        return json_ready(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: json_ready(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return value
