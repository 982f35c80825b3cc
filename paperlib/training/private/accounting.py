"""The DP guarantee of DP-SGD: epsilon for a noise multiplier, and the noise for an epsilon."""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dp_accounting import (
    GaussianDpEvent,
    NeighboringRelation,
    PoissonSampledDpEvent,
    PrivacyAccountant,
    SelfComposedDpEvent,
)
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy.optimize import brentq

from paperlib.core.checks import check_at_least, check_choice, check_in, check_nonnegative
from paperlib.core.packages import quiet
from paperlib.training.config import TrainingConfig

_ACCOUNTANTS = {"rdp": RdpAccountant, "pld": PLDAccountant}
# Relative error of the noise that is looked for; the noise returned is always enough.
_PRECISION = {"rdp": 1e-5, "pld": 1e-3}
_LEAST_NOISE, _MOST_NOISE = 0.1, 1e6
_LEAST_EPSILON = 1e-12  # an accountant may say 0 or infinity, which have no logarithm


@lru_cache(maxsize=4096)
def epsilon_of(
    noise_multiplier: float, sampling_rate: float, steps: int, delta: float, accountant: str = "rdp"
) -> float:
    """Epsilon of DP-SGD with Poisson sampling, adding or removing one record, in nats.

    Guarantee:
        An upper bound: training is (epsilon, delta)-DP if every record is in every batch by its own
        coin and each record's own gradient is clipped.

    Args:
        noise_multiplier: Noise in units of the clipping norm; 0 gives infinity.
        sampling_rate: Chance of a record to be in a batch, in (0, 1].
        steps: Steps of the training, 0 or more.
        delta: In (0, 1).
        accountant: "rdp" (Rényi, the paper's) or "pld" (privacy loss distributions: tighter,
            slower; where delta is too small for its numbers, the bound of "rdp").

    Raises:
        ValueError: A value is out of range.

    Source:
        Mironov et al. (2019) for "rdp", Koskela et al. (2020) for "pld", through ``dp_accounting``.

    >>> round(epsilon_of(1.0, 64 / 32561, 5090, 3e-6), 2)
    1.13
    """
    check_choice("accountant", accountant, tuple(_ACCOUNTANTS))
    epsilon = epsilon_by(_ACCOUNTANTS[accountant](), noise_multiplier, sampling_rate, steps, delta)
    if math.isinf(epsilon) and accountant == "pld":
        return epsilon_of(noise_multiplier, sampling_rate, steps, delta)
    return epsilon


def epsilon_by(
    accountant: PrivacyAccountant,
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    delta: float,
) -> float:
    """Epsilon of DP-SGD with Poisson sampling by an accountant, for the neighbouring data sets it
    knows, in nats; 0 without a step, and infinity without noise.

    Args:
        accountant: A fresh one: it keeps what it composes.
        noise_multiplier: Noise in units of the clipping norm, 0 or more.
        sampling_rate: Chance of a record to be in a batch, in (0, 1].
        steps: Steps of the training, 0 or more.
        delta: In (0, 1).

    Raises:
        ValueError: A value is out of range.
    """
    _check_process(sampling_rate, steps, delta)
    noise = check_nonnegative("noise_multiplier", noise_multiplier)
    if steps == 0:
        return 0.0
    if noise == 0:
        return math.inf
    one_step = PoissonSampledDpEvent(sampling_rate, GaussianDpEvent(noise_multiplier))
    # Not a line for every Rényi order that is left out: any set of orders gives a bound.
    with quiet("absl", logging.ERROR):
        return float(accountant.compose(SelfComposedDpEvent(one_step, steps)).get_epsilon(delta))


@lru_cache(maxsize=1024)
def noise_for(
    target_epsilon: float, sampling_rate: float, steps: int, delta: float, accountant: str = "rdp"
) -> float:
    """The least noise multiplier whose epsilon is at most ``target_epsilon``, rounded up.

    Guarantee:
        ``epsilon_of`` the returned noise is at most ``target_epsilon``.

    Returns:
        Noise in units of the clipping norm, never below 0.1 (an epsilon of hundreds); arguments as
        in ``epsilon_of``.

    Raises:
        ValueError: A value is out of range, or no noise reaches the target with this accountant.

    >>> noise = noise_for(3.0, 64 / 32561, 5090, 3e-6)
    >>> epsilon_of(noise, 64 / 32561, 5090, 3e-6) <= 3.0
    True
    """
    check_in("(0, inf)", "target_epsilon", target_epsilon)
    _check_process(sampling_rate, max(steps, 1), delta)
    check_at_least(1, steps=steps)

    def log_ratio(log_noise: float) -> float:
        """Log of the epsilon of a noise over the target: above 0 where the noise is not enough."""
        # Close to a straight line in the log of the noise, which suits the search for its root.
        epsilon = epsilon_of(math.exp(log_noise), sampling_rate, steps, delta, accountant)
        return math.log(min(max(epsilon, _LEAST_EPSILON), 1 / _LEAST_EPSILON) / target_epsilon)

    if accountant == "rdp":
        start, factor = 1.0, 2.0
    else:
        # Each evaluation of "pld" is slow, and its answer is a little below that of "rdp", where
        # that has one.
        start, factor = _noise_by_rdp(target_epsilon, sampling_rate, steps, delta), 1.15
    low, high = _bracket(log_ratio, math.log(start), math.log(factor))
    if high > math.log(_MOST_NOISE):
        expected = f"one the {accountant} accountant can show with enough noise"
        raise ValueError(f"target_epsilon: expected {expected}, got {target_epsilon:g}")
    precision = _PRECISION[accountant]
    if high > low:  # else the least noise is enough
        high = brentq(log_ratio, low, high, xtol=precision / 2, rtol=precision / 100)
    while log_ratio(high) > 0:  # the root is found from either side
        high += precision / 2
    return math.exp(high)


def _noise_by_rdp(target_epsilon: float, sampling_rate: float, steps: int, delta: float) -> float:
    """The noise that "rdp" asks for; where no noise is enough for it, one in the middle."""
    try:
        return noise_for(target_epsilon, sampling_rate, steps, delta)
    except ValueError:
        return math.sqrt(_MOST_NOISE)


def _bracket(
    log_ratio: Callable[[float], float], start: float, width: float
) -> tuple[float, float]:
    """Logs of two noises, ``width`` apart, of which only the second is enough, found from
    ``start``.

    They are equal at the least noise if that is enough; if no noise is, the second is above the
    most noise. ``log_ratio`` is above 0 where noise is not enough.
    """
    noise = start
    if log_ratio(noise) > 0:
        while noise <= math.log(_MOST_NOISE) and log_ratio(noise + width) > 0:
            noise += width
        return noise, noise + width
    while noise > math.log(_LEAST_NOISE) and log_ratio(noise - width) <= 0:
        noise -= width
    if noise <= math.log(_LEAST_NOISE):
        return noise, noise
    return noise - width, noise


def _check_process(sampling_rate: float, steps: int, delta: float) -> None:
    """Refuse a chance outside (0, 1], steps that are no count, and a delta outside (0, 1)."""
    check_in("(0, 1]", "sampling_rate", sampling_rate)
    if steps < 0 or int(steps) != steps:
        raise ValueError(f"steps: expected a whole number, 0 or more, got {steps!r}")
    check_in("(0, 1)", "delta", delta)


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """The accountant's DP guarantee of one training run, of a single record where
    ``record_level``.
    """

    epsilon: float
    delta: float
    accountant: str
    record_level: bool
    claim: str


def paper_delta(examples: int) -> float:
    """The paper's delta, ``1 / (n ln n)``.

    Raises:
        ValueError: Fewer than 2 examples.

    Source:
        Negoescu et al., Epsilon*, Section 4.1; the base of the logarithm is not stated there.

    >>> f"{paper_delta(32_561):.3g}"
    '2.96e-06'
    """
    check_at_least(2, examples=examples)
    return min(0.5, 1 / (examples * math.log(examples)))


def privacy_of(
    config: TrainingConfig, examples: int, *, delta: float | None = None, accountant: str = "rdp"
) -> Privacy:
    """The accountant's epsilon for ``config`` on ``examples`` records, and whether it is a
    guarantee.

    Without ``clip_norm`` epsilon is infinite; a ``delta`` of None takes ``paper_delta``.

    Raises:
        ValueError: A value that ``epsilon_of`` refuses.

    >>> config = TrainingConfig(
    ...     epochs=1, batch_size=64, learning_rate=0.01, clip_norm=1, noise_multiplier=1,
    ...     microbatches=1,
    ... )
    >>> privacy_of(config, 32_561).record_level
    False
    """
    delta = paper_delta(examples) if delta is None else delta
    noise = config.noise_multiplier if config.is_private else 0.0
    epsilon = epsilon_of(
        noise, config.sampling_rate(examples), config.steps(examples), delta, accountant
    )
    return Privacy(
        epsilon=epsilon,
        delta=delta,
        accountant=accountant,
        record_level=config.record_level,
        claim=_claim(config, epsilon, delta, accountant),
    )


def _claim(config: TrainingConfig, epsilon: float, delta: float, accountant: str) -> str:
    """In a sentence what the accountant's epsilon, rounded up, says of a training."""
    if not config.is_private:
        return "Trained without differential privacy: no epsilon holds."
    if config.noise_multiplier == 0:
        return "Gradients are clipped but no noise is added: no epsilon holds."
    rounded = f"{math.ceil(epsilon * 1000) / 1000:g}" if math.isfinite(epsilon) else "infinity"
    if config.groups is None:
        return (
            f"Training is ({rounded}, {delta:.3g})-DP for adding or removing one record "
            f"({accountant} accountant, Poisson sampling; the number of records is public)."
        )
    return (
        f"The {accountant} accountant gives epsilon {rounded} at delta {delta:.3g}, but "
        f"averages over {config.groups} microbatch(es) are clipped, not records: one record "
        "can move an average by twice the clipping norm, so this is not a guarantee for a "
        "record."
    )


_STEP = 1e-3  # discretisation of the privacy loss, rounded so that epsilon stays an upper bound


def replacement_epsilon(
    noise_multiplier: float, sampling_rate: float, steps: int, delta: float
) -> float:
    """Epsilon of DP-SGD with Poisson sampling, replacing one record.

    Doubling the epsilon for adding or removing a record is right for delta 0 only: in general
    (epsilon, delta) becomes ``(2 epsilon, (1 + e^epsilon) delta)``, and this delta passes 1 where
    epsilon is large. So the privacy losses of a replacement are composed themselves.

    Guarantee:
        An upper bound, in nats, under the conditions of ``epsilon_of``.

    Args:
        noise_multiplier: Noise in units of the clipping norm; 0 gives infinity.
        sampling_rate: Chance of a record to be in a batch, in (0, 1].
        steps: Steps of the training, 0 or more.
        delta: In (0, 1).

    Raises:
        ValueError: A value is out of range.

    Source:
        Koskela et al. (2020) through ``dp_accounting``, with its relation REPLACE_ONE.

    >>> round(replacement_epsilon(1.0, 64 / 32561, 5090, 3e-6), 2)
    1.24
    """
    accountant = PLDAccountant(NeighboringRelation.REPLACE_ONE, _STEP)
    return epsilon_by(accountant, noise_multiplier, sampling_rate, steps, delta)


def privacy_curve(
    epsilons: Sequence[float], noise_multiplier: float, sampling_rate: float, steps: int
) -> list[float]:
    """For each epsilon, in nats, an upper bound on the delta of DP-SGD with Poisson sampling,
    adding or removing one record; in the order of ``epsilons``.

    Args:
        noise_multiplier: Noise in units of the clipping norm; 0 gives deltas of 1.
        sampling_rate: Chance of a record to be in a batch, in (0, 1].
        steps: Steps of the training, 1 or more.

    Raises:
        ValueError: A value is out of range.

    >>> [round(delta, 3) for delta in privacy_curve([0.0, 1.0, 2.0], 1.0, 0.25, 32)]
    [0.549, 0.348, 0.188]
    """
    _check_process(sampling_rate, steps, 0.5)
    one_step = PoissonSampledDpEvent(sampling_rate, GaussianDpEvent(noise_multiplier))
    accountant = PLDAccountant(value_discretization_interval=_STEP)
    accountant.compose(SelfComposedDpEvent(one_step, steps))
    return [float(accountant.get_delta(epsilon)) for epsilon in epsilons]
