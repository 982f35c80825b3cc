"""Many trainings with and without a canary, told apart by two tests, against the stated
mechanism.
"""

from typing import Any

import numpy as np

from paperlib.audits.dp_training.checks import DpCheck, Stated
from paperlib.audits.dp_training.loop import Loop
from paperlib.audits.dp_training.runs import along
from paperlib.bounds import ErrorCounts, audit_clopper_pearson
from paperlib.core.checks import FloatArray
from paperlib.training.private.accounting import privacy_curve

_FIRST = 1_000_000  # seeds of no other training
_EPSILONS = np.linspace(0, 8, 33)


def told_apart(
    loop: Loop, data: Any, canary: Any, null: Any, trainings: int, stated: Stated
) -> DpCheck:
    """Whether both error rates of a test are smaller than the stated mechanism allows.

    Two tests guess of each training, by how far its steps went along the canary, whether it held
    the canary. The error rates of each are bounded from above at half the level, and compared with
    the trade-off that the accountant allows; the check fails if those of one test are below it.

    Args:
        loop: The user's training.
        data: Its records.
        canary: Stands in place of record 0 in trainings with it.
        null: Stands for no record.
        trainings: Trainings with the canary, and as many without it.
        stated: Noise, rate and steps as the user states them, and the level.
    """

    def steps(seed: int, member: bool) -> FloatArray:
        """How far each step went along the canary, in units of the largest contribution of a
        record, shape (steps,).
        """
        return along(loop, data, canary, null, seed, member=member) / stated.norm

    noise = stated.noise / stated.norm
    deltas = np.array(privacy_curve(_EPSILONS.tolist(), noise, stated.rate, stated.steps))
    seeds = np.arange(_FIRST, _FIRST + 2 * trainings).tolist()
    members = [steps(seed, True) for seed in seeds[1::2]]
    others = [steps(seed, False) for seed in seeds[::2]]
    # How far the two error rates are within what is allowed, and the rates, of the worse test.
    worst = (np.inf, 1.0, 1.0)
    # The best test of the stated mechanism, and one for noise that is much smaller than a canary.
    for test in (
        lambda row: _log_likelihood_ratio(row, noise, stated.rate) >= 0,
        lambda row: row.max() >= 0.5,
    ):
        false_positives = int(sum(map(test, others)))
        false_negatives = trainings - int(sum(map(test, members)))
        bound = audit_clopper_pearson(
            ErrorCounts(false_positives, trainings, false_negatives, trainings),
            confidence=1 - stated.level / 2,
        )
        fpr = bound.false_positive_upper
        fnr = bound.false_negative_upper
        # At (epsilon, delta): e^epsilon FPR + FNR >= 1 - delta, and so with the rates exchanged.
        sums = np.exp(_EPSILONS) * min(fpr, fnr) + max(fpr, fnr)
        worst = min(worst, (float((sums - (1 - deltas)).min()), fpr, fnr))
    return DpCheck(
        name="trade-off",
        passed=worst[0] >= 0,
        kind="told apart",
        numbers={"trainings": trainings, "false_positive": worst[1], "false_negative": worst[2]},
    )


def _log_likelihood_ratio(steps: FloatArray, noise: float, rate: float) -> float:
    """Of steps with a canary of norm 1 by coins against steps without it."""
    absent = np.log1p(-rate) if rate < 1 else -np.inf
    return float(np.logaddexp(absent, np.log(rate) + (2 * steps - 1) / (2 * noise**2)).sum())
