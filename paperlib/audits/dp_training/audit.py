"""Does a training loop make the steps of DP-SGD that its accountant is told of?"""

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from paperlib.audits.dp_training.checks import CHECKS, SEEN, TESTS, DpCheck, Stated, reaches_norm
from paperlib.audits.dp_training.loop import Loop, Train, changes
from paperlib.audits.dp_training.runs import Runs, held_runs, outliers
from paperlib.core import AuditResult
from paperlib.core.checks import check_at_least, check_confidence, check_in
from paperlib.words.audits import dp_training as words


@dataclass(frozen=True, kw_only=True, eq=False)
class DpTrainingAudit(AuditResult):
    """What the checks of `audit_dp_training` found; ``epsilon`` is None, since they bound none."""

    epsilon: float | None
    checks: tuple[DpCheck, ...]
    delta: float = 0.0
    confidence: float | None = None
    total: int | None = None
    guesses: int | None = None
    correct: int | None = None
    ceiling: float | None = None

    @property
    def passed(self) -> bool:
        """Whether no check found a fault."""
        return all(check.passed for check in self.checks)

    @property
    def headline(self) -> str:
        return words.headline(self.checks)


def audit_dp_training(
    train: Train,
    data: Any,
    *,
    clipping_norm: float,
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    divisor: float | None = None,
    canaries: Sequence[Any] | None = None,
    null: Any = None,
    seeds: int = 6,
    trainings: int = 0,
    confidence: float = 0.999,
) -> DpTrainingAudit:
    """Check that a training loop makes the steps of DP-SGD with Poisson sampling that are stated.

    ``train`` is called about 35 times, so give it little data and few steps. The gradients that its
    torch optimizer is given are read, and then set to 0: parameters stay where they start, and
    steps can be compared. Two trainings of one seed that differ in one record then have the same
    batches and noise, and their difference is what this record adds. The audit needs no other
    access to the loop.

    Guarantee:
        If training is as stated, a fault is reported with probability at most ``1 - confidence``,
        over the seeds. A pass is no proof: what no check looks at can be wrong.

    Args:
        train: ``train(data, seed)`` trains from the start; weights, batches and noise follow from
            the seed, as by ``torch.manual_seed(seed)``. Gradients are read from any torch
            optimizer, also below that of Opacus; without one, it returns those of a training at
            learning rate 0, (steps, parameters).
        data: Records as a tuple of arrays or tensors of equal length, or a single one; 16 or more.
        clipping_norm: Largest norm of a record's gradient.
        noise_multiplier: Standard deviation of the noise in the sum of gradients, in clipping
            norms.
        sampling_rate: Chance of a record to be in a batch.
        steps: Steps that the accountant is told.
        divisor: What the noisy sum of gradients is divided by, a constant. None asks the
            optimizer, as that of Opacus, or else takes one that fits the loop: the expected batch
            size ``sampling_rate * len(data)``, its whole part, 1, or the number of records.
        canaries: Records with large gradients in different directions, 2 or more, each of the form
            of a record of ``data``: a tuple with a value for each of its arrays, or the value for a
            single one. None makes eight of the first four records of ``data``: each one twice, the
            floating-point numbers of its first array multiplied by 100 once and by -100 once.
        null: A record whose gradient is 0, such as one with label -100 for torch's cross-entropy.
            With it, adding a record is checked; without it, replacing one, which shows less. A
            null that changes the gradients of other records, as by a mean that leaves it out, is
            compared among records that are clipped, or left out with a warning.
        seeds: Seeds of the check of batches, 1 or more.
        trainings: Trainings with a canary, and as many without it, that are told apart; both error
            rates are compared with those that the stated mechanism allows. Needs ``null``; 0 for
            none.
        confidence: Of all checks together, in (0, 1).

    Returns:
        ``.passed``, ``.checks`` (a `DpCheck` each, causes before what follows from them) and a
        headline with the first fault, and the names of further checks that fail.

    Raises:
        ValueError: A number out of range, data of another form, or a training whose gradients
            cannot be read, or that is not the same for the same seed.

    Source:
        Tramer et al. (2022), "Debugging differential privacy", names the causes; the checks are
        ours.

    >>> import numpy as np
    >>> def train(data, seed):  # logistic regression from weights 0, with the gradients returned
    ...     x, y = data
    ...     rng = np.random.default_rng(seed)
    ...     gradients = []
    ...     for _ in range(32):
    ...         batch = rng.random(len(x)) < 0.25
    ...         rows = (0.5 - y[batch])[:, None] * x[batch]
    ...         rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1)
    ...         noise = rng.normal(size=x.shape[1])
    ...         gradients.append((rows.sum(axis=0) + noise) / (0.25 * len(x)))
    ...     return np.array(gradients)
    >>> x = np.random.default_rng(0).normal(size=(64, 8))
    >>> stated = {"clipping_norm": 1, "noise_multiplier": 1, "sampling_rate": 0.25, "steps": 32}
    >>> print(audit_dp_training(train, (x, x[:, 0] > 0), **stated).headline)
    DP-SGD: no fault found by 9 checks
    """
    check_in("(0, inf)", "clipping_norm", clipping_norm)
    check_in("(0, inf)", "noise_multiplier", noise_multiplier)
    check_in("(0, 1]", "sampling_rate", sampling_rate)
    check_at_least(1, steps=steps, seeds=seeds)
    if trainings and (null is None or trainings < 20):
        raise ValueError(
            f"trainings: expected 0, or 20 or more and a record null=, got {trainings}"
        )
    records = _record_count(data)
    divisors = _divisors(divisor, sampling_rate, records)
    canary_records = outliers(data) if canaries is None else list(canaries)
    check_at_least(2, canaries=len(canary_records))
    level = (1 - check_confidence(confidence)) / TESTS
    loop = Loop(train)
    runs = held_runs(loop, data, canary_records, null, seeds, SEEN * clipping_norm / divisors[0])
    if divisor is None and loop.divisor is not None:
        divisors.insert(0, loop.divisor)
    statements: list[Stated] = []
    for number in divisors:
        norm = clipping_norm / number
        statements.append(Stated(norm, noise_multiplier * norm, sampling_rate, steps, level))
    checks, stated = _checked(runs, statements)
    if trainings and runs.null_use != "plain":
        raise ValueError(f"trainings: this null= is of no use for them; {words.PLAIN_NULL}")
    if trainings:
        # Its accountant takes seconds to import.
        from paperlib.audits.dp_training.trade_off import told_apart

        largest = canary_records[_largest_canary(runs)]
        checks.append(_timed(partial(told_apart, loop, data, largest, null, trainings, stated)))
    taken = clipping_norm / stated.norm
    is_expected = divisor is not None or math.isclose(taken, sampling_rate * records)
    notes = _notes(loop, runs, None if is_expected else taken)
    return _result(checks, 1 - confidence, runs, notes)


def _divisors(divisor: float | None, rate: float, records: int) -> list[float]:
    """The divisors of the sum of gradients to try: the one that is stated, or else those of usual
    loops, which are the expected batch size, its whole part, 1, and the number of records.

    All of these are constant, and a constant decides nothing about privacy.
    """
    if divisor is not None:
        return [check_in("(0, inf)", "divisor", divisor)]
    expected = rate * records
    divisors = [expected, float(math.floor(expected)), 1.0, float(records)]
    return [number for number in dict.fromkeys(divisors) if number > 0]


def _checked(runs: Runs, statements: list[Stated]) -> tuple[list[DpCheck], Stated]:
    """What the checks find by the first of the statements for which all pass, and that statement.

    The statements differ in the divisor, that is in the scale of all numbers. If the checks pass
    for none, it is the first whose norm a record just reaches, or else the first of all.
    """
    for stated in statements:
        checks = [_timed(partial(check, runs, stated)) for check in CHECKS]
        if all(check.passed for check in checks):
            return checks, stated
    reached = [stated for stated in statements if reaches_norm(runs, stated)]
    stated = (reached or statements)[0]
    return [_timed(partial(check, runs, stated)) for check in CHECKS], stated


def _timed(check: Callable[[], DpCheck]) -> DpCheck:
    """What a check found, with the seconds that it took."""
    start = time.perf_counter()
    return dataclasses.replace(check(), seconds=time.perf_counter() - start)


def _largest_canary(runs: Runs) -> int:
    """Index of the canary whose steps are farthest from those of the null, which is known."""
    sizes = [changes(run, runs.null).max() for run in runs.canaries if runs.null is not None]
    return sizes.index(max(sizes))


def _notes(loop: Loop, runs: Runs, divisor: float | None) -> list[str]:
    """Notes of what was left out of the checks, or measured in another way, and why.

    Args:
        divisor: What the loop divides the sum of gradients by, where that is not the expected batch
            size; else None.
    """
    notes: list[str] = []
    if divisor is not None:
        notes.append(words.divided_by(divisor))
    if runs.null_use == "among clipped":
        notes.append(words.NULL_AMONG_CLIPPED)
    unused = [number for number, used in enumerate(loop.used, 1) if not used]
    if unused:
        notes.append(words.unused_parameters(unused, len(loop.used)))
    return notes


def _result(checks: list[DpCheck], error: float, runs: Runs, notes: list[str]) -> DpTrainingAudit:
    """The audit of these checks, whose chance of a false accusation is ``error`` at most."""
    return DpTrainingAudit(
        claim=words.claim(checks, error, replaced=runs.null is None),
        assumptions=words.ASSUMPTIONS,
        warnings=words.null_warnings(runs.null_use),
        notes=tuple(notes),
        epsilon=None,
        checks=tuple(checks),
    )


def _record_count(data: Any) -> int:
    """Number of records; a ValueError for data that are no arrays or tensors of one length, 16 or
    more.
    """
    columns = data if isinstance(data, tuple) else (data,)
    if all(map(_is_array, columns)):
        lengths = [column.shape[0] if column.shape else 0 for column in columns]
        if len(set(lengths)) == 1 and lengths[0] >= 16:
            return lengths[0]
        kinds = f"lengths {lengths}"
    else:
        kinds = ", ".join(type(column).__name__ for column in columns)
    raise ValueError(
        "data: expected a tuple of arrays or tensors of equal length, 16 or more, or a single one, "
        f"got {kinds}; stack records, or give .tensors of a TensorDataset, .to_numpy() of a "
        "DataFrame"
    )


def _is_array(column: Any) -> bool:
    """Whether something is an array or a tensor, and no data frame."""
    return hasattr(column, "__array__") and not hasattr(column, "iloc")


def assert_private(
    train: Train,
    data: Any,
    *,
    epsilon: float,
    delta: float = 1e-5,
    clipping_norm: float,
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    accounted: tuple[float, int] | None = None,
    **options: Any,
) -> DpTrainingAudit:
    """Fail where a loop does not make the steps of DP-SGD stated, or these give more than
    ``epsilon``.

    Guarantee:
        That of `audit_dp_training`: a sound loop fails with probability at most 0.001 over the
        seeds, and with fixed seeds always or never. That a loop passes is no proof.

    Args:
        train: ``train(data, seed)``, as in `audit_dp_training`; so are ``data`` and what is not
            named here.
        epsilon: Claimed epsilon, for adding or removing one record.
        delta: Claimed delta, in (0, 1).
        accounted: Sampling rate and steps of the real training, if ``train`` makes a small copy of
            it, with fewer steps or records; None for those stated.
        options: Further arguments of `audit_dp_training`, such as ``divisor``, ``canaries`` and
            ``null``.

    Raises:
        AssertionError: One line that says what was found.
        ValueError: As in `audit_dp_training`.

    >>> def train(data, seed):
    ...     raise NotImplementedError("what is stated is judged before the loop is called")
    >>> stated = {"clipping_norm": 1, "noise_multiplier": 1, "sampling_rate": 0.25, "steps": 32}
    >>> assert_private(train, [[0.0]] * 64, epsilon=3, **stated)
    Traceback (most recent call last):
    ...
    AssertionError: epsilon: noise multiplier 1, sampling rate 0.25 and 32 steps give epsilon 10.1
    at delta 1e-05, not 3
    """
    check_in("(0, inf)", "epsilon", epsilon)
    rate, count = (sampling_rate, steps) if accounted is None else accounted
    from paperlib.training import epsilon_of  # accountants take a second to import

    spent = min(epsilon_of(noise_multiplier, rate, count, delta, by) for by in ("pld", "rdp"))
    if spent > epsilon:
        raise AssertionError(
            words.spends_more(
                noise=noise_multiplier,
                rate=rate,
                steps=count,
                spent=spent,
                delta=delta,
                epsilon=epsilon,
            )
        )
    audit = audit_dp_training(
        train,
        data,
        clipping_norm=clipping_norm,
        noise_multiplier=noise_multiplier,
        sampling_rate=sampling_rate,
        steps=steps,
        **options,
    )
    if not audit.passed:
        raise AssertionError(audit.headline)
    return audit
