"""The DP guarantee of DP-SGD for replacing one record, rather than adding or removing one."""

import math

from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant

_STEP = 1e-3  # discretisation of the privacy loss, rounded so that epsilon stays an upper bound


def replacement_epsilon(noise_multiplier: float, sampling_rate: float, steps: int, delta: float) -> float:
    """Epsilon of DP-SGD with Poisson sampling, replacing one record.

    Doubling the epsilon for adding or removing a record is right for delta 0 only: in general (epsilon,
    delta) becomes ``(2 epsilon, (1 + e^epsilon) delta)``, and this delta passes 1 where epsilon is large.
    So the privacy losses of a replacement are composed themselves.

    Guarantee:
        An upper bound: training is (epsilon, delta)-DP for replacing one record if every record is in every
        batch by its own coin and each record's own gradient is clipped.

    Args:
        noise_multiplier: Noise in units of the clipping norm; 0 gives infinity.
        sampling_rate: Chance of a record to be in a batch, in (0, 1].
        steps: Number of steps, 0 or more.
        delta: Delta of the DP guarantee, in (0, 1).

    Returns:
        Epsilon in nats.

    Raises:
        ValueError: A value is out of range.

    Source:
        Koskela et al. (2020) through ``dp_accounting``, with its relation REPLACE_ONE.

    >>> round(replacement_epsilon(1.0, 64 / 32561, 5090, 3e-6), 2)
    1.24
    """
    for name, value, holds, allowed in (
        (
            "noise_multiplier",
            noise_multiplier,
            0 <= noise_multiplier < math.inf,
            "a finite number, 0 or more",
        ),
        ("sampling_rate", sampling_rate, 0 < sampling_rate <= 1, "a chance in (0, 1]"),
        ("steps", steps, steps >= 0, "0 or more"),
        ("delta", delta, 0 < delta < 1, "a number in (0, 1)"),
    ):
        if not holds:
            raise ValueError(f"{name}: expected {allowed}, got {value}")
    if steps == 0:
        return 0.0
    if noise_multiplier == 0:
        return math.inf
    step = PoissonSampledDpEvent(sampling_rate, GaussianDpEvent(noise_multiplier))
    accountant = PLDAccountant(NeighboringRelation.REPLACE_ONE, _STEP)
    return float(accountant.compose(SelfComposedDpEvent(step, steps)).get_epsilon(delta))
