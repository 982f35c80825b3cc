"""What DP-SGD promises for replacing one record, rather than adding or removing one."""

import math

from paperlib.training.accounting import epsilon_of


def replacement_epsilon(
    noise_multiplier: float, sampling_rate: float, steps: int, delta: float, accountant: str = "rdp"
) -> float:
    """Epsilon of DP-SGD with Poisson sampling, replacing one record.

    Doubling the epsilon for adding or removing a record is right for delta 0 only: in general (epsilon,
    delta) becomes ``(2 epsilon, (1 + e^epsilon) delta)``, and this delta passes 1 where epsilon is large.
    Here a removal at half of delta is followed by an addition at a delta so small that both together keep
    the one asked for: ``delta_1 + e^epsilon_1 delta_2 = delta``.

    Guarantee:
        An upper bound: training is (epsilon, delta)-DP for replacing one record if every record is in every
        batch by its own coin and each record's own gradient is clipped.

    Args:
        noise_multiplier: Noise in units of the clipping norm; 0 gives infinity.
        sampling_rate: Chance of a record to be in a batch, in (0, 1].
        steps: Number of steps, 0 or more.
        delta: In (0, 1).
        accountant: "rdp" or "pld", as in `epsilon_of`.

    Returns:
        Epsilon in nats.

    Raises:
        ValueError: A value is out of range.

    >>> round(replacement_epsilon(1.0, 64 / 32561, 5090, 3e-6), 2)
    2.51
    """
    process = (noise_multiplier, sampling_rate, steps)
    removal = epsilon_of(*process, delta / 2, accountant)
    left = delta / 2 * math.exp(-removal)
    return removal + epsilon_of(*process, left, accountant) if left else math.inf
