"""What a run measured of one comparison: a value for each repetition, or an estimate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A number whose standard error is known otherwise than from repetitions; 0 where it is
    exact.
    """

    value: float
    error: float = 0.0


Sample = Sequence[float] | Estimate
"""One value per repetition (none: not measured), or an estimate with its error."""
Samples = Mapping[str, Sample]
"""Samples of one term by their labels: settings, levels or panels."""
