"""Many trainings with and without a canary, told apart by two tests, against the stated
mechanism.
"""

from typing import Any, NamedTuple

import numpy as np

from paperlib.audits.dp_training.checks import DpCheck, Stated
from paperlib.audits.dp_training.loop import Loop
from paperlib.audits.dp_training.runs import along
from paperlib.bounds import ErrorCounts, audit_clopper_pearson
from paperlib.core.checks import FloatArray
from paperlib.training.private.accounting import privacy_curve

# Seeds from here on are of no other training of an audit, whose seeds are small.
_FIRST_SEED = 1_000_000
_EPSILONS = np.linspace(0, 8, 33)  # nats, at which the allowed error rates are asked
_HALF_WAY = 0.5  # along the canary: steps without it are at 0, with it at 1, but for the noise


class _Compared(NamedTuple):
    """Upper bounds on the error rates of one test, and how far they are above the allowed ones."""

    margin: float  # the least over all epsilons; below 0 the rates are smaller than allowed
    false_positive: float
    false_negative: float


def told_apart(
    loop: Loop, data: Any, canary: Any, null: Any, trainings: int, stated: Stated
) -> DpCheck:
    """Whether both error rates of a test are smaller than the stated mechanism allows.

    Two tests guess of each training, by how far its steps went along the canary, whether it held
    the canary. The error rates of each are bounded from above at half the level, and compared with
    the trade-off that the accountant allows; the check fails if those of one test are below it.

    Guarantee:
        If training is as stated, the check fails with probability at most ``stated.level``.

    Args:
        loop: The user's training.
        data: Its records.
        canary: Stands in place of record 0 in trainings with it.
        null: Stands for no record.
        trainings: Trainings with the canary, and as many without it.
        stated: Noise, rate and steps as the user states them, and the level.

    Raises:
        ValueError: A training whose gradients cannot be read or are not finite.
    """

    def steps(seed: int, member: bool) -> FloatArray:
        """How far each step went along the canary, in units of the largest contribution of a
        record, shape (steps,).
        """
        return along(loop, data, canary, null, seed, member=member) / stated.norm

    # Each training has a seed of its own, so that all are independent.
    seeds = range(_FIRST_SEED, _FIRST_SEED + 2 * trainings)
    with_canary = [steps(seed, True) for seed in seeds[1::2]]
    without = [steps(seed, False) for seed in seeds[::2]]
    noise = stated.noise / stated.norm  # in the units of the steps
    deltas = np.array(privacy_curve(_EPSILONS.tolist(), noise, stated.rate, stated.steps))
    # The best test of the stated mechanism, and one for noise that is much smaller than a canary.
    tests = (
        lambda row: _log_likelihood_ratio(row, noise, stated.rate) >= 0,
        lambda row: row.max() >= _HALF_WAY,
    )
    worst = min(
        _compared(
            false_positives=sum(map(test, without)),
            false_negatives=trainings - sum(map(test, with_canary)),
            trainings=trainings,
            deltas=deltas,
            confidence=1 - stated.level / len(tests),
        )
        for test in tests
    )
    return DpCheck(
        name="trade-off",
        passed=worst.margin >= 0,
        kind="told apart",
        numbers={
            "trainings": trainings,
            "false_positive": worst.false_positive,
            "false_negative": worst.false_negative,
        },
    )


def _compared(
    *,
    false_positives: int,
    false_negatives: int,
    trainings: int,
    deltas: FloatArray,
    confidence: float,
) -> _Compared:
    """The error rates of a test on as many ``trainings`` with the canary as without, bounded from
    above with this confidence, against those allowed: (epsilon, delta) for each of `_EPSILONS` and
    ``deltas``, shape (epsilons,).
    """
    bound = audit_clopper_pearson(
        ErrorCounts(int(false_positives), trainings, int(false_negatives), trainings),
        confidence=confidence,
    )
    fpr = bound.false_positive_upper
    fnr = bound.false_negative_upper
    # At (epsilon, delta): e^epsilon FPR + FNR >= 1 - delta, and so with the rates exchanged. The
    # sum is the smaller of the two where the factor is on the smaller rate.
    sums = np.exp(_EPSILONS) * min(fpr, fnr) + max(fpr, fnr)
    return _Compared(float((sums - (1 - deltas)).min()), fpr, fnr)


def _log_likelihood_ratio(steps: FloatArray, noise: float, rate: float) -> float:
    """The logarithm of how much likelier ``steps``, shape (steps,), are with a canary of norm 1
    than without it.

    Without it each step is normal with mean 0 and the deviation ``noise``; with it the mean is 1 at
    a chance of ``rate``. The ratio of a step x is 1 - rate + rate exp((2 x - 1) / (2 noise^2)).
    """
    absent = np.log1p(-rate) if rate < 1 else -np.inf
    return float(np.logaddexp(absent, np.log(rate) + (2 * steps - 1) / (2 * noise**2)).sum())
