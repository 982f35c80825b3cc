"""The privacy profile of an accountant: delta at many epsilons, as points of a curve."""

import logging
from typing import Protocol

import numpy as np
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant

from paperlib.core import FloatArray
from paperlib.core.packages import quiet

_POINTS = 120
_LAST_DELTA = 1e-9  # the grid of epsilons ends where delta falls below it
_MOST_EPSILON = 50.0
_WIDTH = 1e-3  # nats of a cell of the privacy loss; its rounding only raises delta
_ROUNDING = 1e-12  # above the error of the Fourier transforms behind a delta


class Accountant(Protocol):
    """What is used of an accountant of ``dp_accounting``."""

    def get_delta(self, target_epsilon: float) -> float: ...

    def get_epsilon(self, target_delta: float) -> float: ...


def accountant_points(accountant: Accountant) -> tuple[FloatArray, FloatArray]:
    """Epsilons from 0 on, nats, and an upper bound on an accountant's delta at each, shape
    (points,) each.
    """
    with quiet("absl", logging.ERROR):
        last = min(float(accountant.get_epsilon(_LAST_DELTA)), _MOST_EPSILON)
        epsilon = np.linspace(0.0, max(last, 1e-3), _POINTS)
        delta = np.array([float(accountant.get_delta(float(value))) for value in epsilon])
    return epsilon, np.clip(delta + _ROUNDING, 0.0, 1.0)


def dp_sgd_points(
    noise_multiplier: float, sampling_rate: float, steps: int
) -> tuple[FloatArray, FloatArray]:
    """Epsilons from 0 on, nats, and an upper bound on the delta of DP-SGD at each, shape (points,)
    each: with Poisson sampling, adding or removing one record.

    Args:
        noise_multiplier: Noise in units of the clipping norm; 0 gives deltas of 1.
        sampling_rate: Chance of a record to be in a batch, in (0, 1].
        steps: Steps of the training, 1 or more.

    Raises:
        ValueError: A value is out of range.

    Source:
        Koskela et al. (2020), through ``dp_accounting``.
    """
    one_step = PoissonSampledDpEvent(sampling_rate, GaussianDpEvent(noise_multiplier))
    accountant = PLDAccountant(value_discretization_interval=_WIDTH)
    return accountant_points(accountant.compose(SelfComposedDpEvent(one_step, steps)))
