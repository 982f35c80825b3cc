"""The DP guarantee of DP-SGD for replacing one record, rather than adding or removing one."""

from dp_accounting import NeighboringRelation
from dp_accounting.pld import PLDAccountant

from paperlib.training.private.accounting import epsilon_by

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
    accountant = PLDAccountant(NeighboringRelation.REPLACE_ONE, _STEP)
    return epsilon_by(accountant, noise_multiplier, sampling_rate, steps, delta)
