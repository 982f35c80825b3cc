"""Checks of released gradients: steps, clipping, noise and batches."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, gammainc

from paperlib.audits.dp_training.loop import changes
from paperlib.audits.dp_training.runs import Runs
from paperlib.core.checks import FloatArray
from paperlib.words.audits import dp_training as words
from paperlib.words.audits.dp_training import FindingKind

SEEN = 1e-2
"""A step that changes by more than this share of `Stated.norm`, the largest contribution of a
record to what is released, counts as one that held the record.
"""
_SLACK = 1e-3  # rounding of a norm, of the clipping norm; clipping itself adds 1e-6
_COMPARED = 300  # numbers of two parameters at most: enough to see noise that is the same


@dataclass(frozen=True, kw_only=True)
class DpCheck:
    """What one check found.

    Attributes:
        kind: What it found, as a name.
        numbers: The numbers of this finding, such as "norms" in clipping norms, or "step" from 1.
        p_value: Chance of such an outcome at most, if training is as stated; None where nothing is
            random.
        finding: Kind and numbers in one sentence.
    """

    name: str
    passed: bool
    kind: FindingKind
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])
    p_value: float | None = None
    seconds: float = 0.0
    finding: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "finding", words.finding(self.kind, self.numbers))


@dataclass(frozen=True)
class Stated:
    """What the user says of the training, and how the checks of a test level share it."""

    norm: float  # largest contribution of a record to what is released: clipping norm / divisor
    noise: float  # standard deviation of what is released
    rate: float
    steps: int
    level: float


class _Sample(NamedTuple):
    """Numbers that are noise of the stated size, if training is as stated."""

    kind: FindingKind
    numbers: dict[str, int]  # which parameters or steps they are of
    values: FloatArray
    free: float  # degrees of freedom of the sum of their squares


class _Tried(NamedTuple):
    """How a sample compares with noise of the stated size; in order of the fields, but the last."""

    p_value: float
    kind: FindingKind
    numbers: list[int]  # of the parameters or steps of the sample
    ratio: float  # deviation that the sample shows, in units of the stated one
    sample: _Sample


# The checks. Sums of squares are of noise through orthonormal maps that do not depend on it, plus
# what batches add; this makes them larger at most, so that too small a sum shows too little noise
# on any data.


def _steps(runs: Runs, stated: Stated) -> DpCheck:
    """Whether all runs take as many steps, and no more than are stated.

    A run counts by its gradients with canaries, and by those that moved the parameters.
    """
    held = {len(run) for run in runs.canaries}
    moved = set(runs.moved)
    most = max(held | moved)
    if len(held) > 1 or len(moved) > 1:
        numbers = {"least": min(held | moved), "most": most}
        return DpCheck(name="number of steps", passed=False, kind="steps differ", numbers=numbers)
    return DpCheck(
        name="number of steps",
        passed=most <= stated.steps,
        kind="steps",
        numbers={"most": most, "stated": stated.steps},
    )


def _other_records(runs: Runs, stated: Stated) -> DpCheck:
    """Whether what a record adds to a step depends on the other records of the batch, or a step
    that does not hold the record changes with it.

    A failure names the likeliest cause: first statistics of all data, since these change what a
    record adds as well.
    """
    times = float(runs.interplay().max()) / stated.norm
    numbers = {"norms": times}
    if times <= SEEN:
        return DpCheck(name="other records", passed=True, kind="no interplay", numbers=numbers)
    kind: FindingKind = "interplay"
    if _changes_too_many_steps(runs, stated):
        kind = "statistics of all data"
    elif not np.isfinite(times):
        # Copies of one record have a spread of 0, and whoever divides by it gets no number.
        kind = "no spread"
    return DpCheck(name="other records", passed=False, kind=kind, numbers=numbers)


def _changes_too_many_steps(runs: Runs, stated: Stated) -> bool:
    """Whether one record changes more steps than batches at the stated rate hold it, by an exact
    binomial test at the level of a check.
    """
    # The record is tried among the user's records and among copies of one: what it changes of the
    # others may be too little to see in one of both. All four trainings have one seed and so the
    # same batches. Where a record changes no step without it, a step that does not hold it changes
    # in neither pair, so that the larger change of each step is seen no more often than it is
    # drawn.
    among_data = changes(runs.canaries[runs.farthest], runs.ordinary)
    among_copies = changes(runs.among_quiet, runs.quiet)
    steps = min(len(among_data), len(among_copies))
    # Where one of them is no number, as after a division by a spread of 0, the other one counts.
    larger = np.fmax(among_data[:steps], among_copies[:steps])
    changed = larger > SEEN * stated.norm
    count = int(changed.sum())
    return float(bdtrc(count - 1, changed.size, stated.rate)) <= stated.level


def _contribution(runs: Runs, stated: Stated) -> DpCheck:
    """Whether no record adds more than the clipping norm to a step; where no null stands for no
    record, whether all that canaries add lies in some ball of that radius.

    Where no canary reaches the norm the check passes, and its kind says that clipping was not
    tried.
    """
    sizes = _contribution_sizes(runs)
    times = float(sizes.max()) / stated.norm
    kind: FindingKind = "adding" if runs.null is not None else "replacing"
    if times < 1 - _SLACK:
        kind = "adding, norm not reached" if kind == "adding" else "replacing, norm not reached"
    return DpCheck(
        name="clipping",
        passed=times <= 1 + _SLACK,
        kind=kind,
        numbers={"norms": times, "step": int(sizes.argmax()) + 1},
    )


def _contribution_sizes(runs: Runs) -> FloatArray:
    """How much a record adds to each step, (steps,): the farthest canary from the null, or a lower
    bound on the radius of the ball that holds all canaries.
    """
    least = min(len(run) for run in runs.canaries)
    points = np.stack([run[:least] for run in runs.canaries], 1)
    if runs.null is None:
        return _radii(points)
    least = min(least, len(runs.null))
    return np.linalg.norm(points[:least] - runs.null[:least, None], axis=2).max(1)


def reaches_norm(runs: Runs, stated: Stated) -> bool:
    """Whether the largest contribution of a record is just the clipping norm."""
    return abs(float(_contribution_sizes(runs).max()) / stated.norm - 1) <= _SLACK


def _radii(points: FloatArray) -> FloatArray:
    """For each step a lower bound on the radius of the least ball that holds its points, shape
    (steps,), by 100 steps of the algorithm of Badoiu and Clarkson.

    ``points`` have shape (steps, points, parameters).
    """
    # The mean square distance of weighted points from their weighted mean m is at most the square
    # of the radius, for any weights of sum 1. These move to the point that is farthest from m,
    # which makes the bound tight. Distances need the inner products of the points alone.
    centred = points - points.mean(1, keepdims=True)
    products = centred @ centred.transpose(0, 2, 1)
    squares = np.einsum("tii->ti", products)  # square length of each point
    weights = np.full(squares.shape, 1 / squares.shape[1])
    best = np.zeros(len(points))
    for step in range(2, 102):
        toward = np.einsum("tij,tj->ti", products, weights)  # inner product of each point with m
        best = np.maximum(best, (weights * (squares - toward)).sum(1))
        # A point p is farthest from m where |p|^2 - 2 p m is largest.
        weights *= 1 - 1 / step
        weights[np.arange(len(points)), (squares - 2 * toward).argmax(1)] += 1 / step
    return np.sqrt(best)


def _shortfall(name: str, samples: Iterator[_Sample], stated: Stated) -> DpCheck:
    """The test that no sample has too small a sum of squares.

    If the noise has the stated deviation or more, the sum over its variance is at least a
    chi-squared variable with ``free`` degrees of freedom. The smallest p-value, times the number of
    samples, is that of the check, by the union bound.
    """
    tried: list[_Tried] = []
    for sample in samples:
        if sample.free <= 0:
            continue
        total = float((sample.values**2).sum())
        if not np.isfinite(total):
            # Passed, since the check of other records fails such a training and names the cause.
            return DpCheck(name=name, passed=True, kind="noise not tried")
        p_value = float(gammainc(sample.free / 2, total / stated.noise**2 / 2))
        ratio = (total / sample.free) ** 0.5 / stated.noise
        numbers = [*sample.numbers.values()]
        tried.append(_Tried(p_value, sample.kind, numbers, ratio, sample))
    if not tried:
        return DpCheck(name=name, passed=True, kind="too few numbers")
    # Of equal ones, as of p-values of 0, the first parameter and the nearest steps.
    worst = min(tried, key=lambda entry: (entry.p_value, entry.kind, entry.numbers, entry.ratio))
    p_value = min(1.0, worst.p_value * len(tried))
    return DpCheck(
        name=name,
        passed=p_value > stated.level,
        kind=worst.kind,
        numbers={**worst.sample.numbers, "ratio": worst.ratio},
        p_value=p_value,
    )


def _by_parameter(rows: FloatArray, runs: Runs) -> Iterator[tuple[int, FloatArray]]:
    """The number of each of the optimizer's parameters, from 1, and its columns of ``rows``, shape
    (steps, parameters).
    """
    return zip(runs.numbers, np.split(rows, np.cumsum(runs.widths)[:-1], axis=1), strict=True)


def _noise(runs: Runs, stated: Stated) -> DpCheck:
    """Whether the noise in every second step, without the direction of the other steps' mean, is as
    large as stated; passed where it only looks missing, since the same noise comes in every step.
    """

    def samples() -> Iterator[_Sample]:
        """For each parameter, the rows of every second step without their part along the mean of
        the others.
        """
        for number, rows in _by_parameter(runs.quiet, runs):
            mean = rows[1::2].sum(0)
            # What batches of records that are all alike add goes along the gradient of that record,
            # which the mean shows; it does not depend on the noise of the steps that are looked at.
            along = mean / max(float(np.linalg.norm(mean)), 1e-300)
            rest = rows[::2] - np.outer(rows[::2] @ along, along)
            free = len(rest) * (rest.shape[1] - 1)
            yield _Sample("noise", {"parameter": number}, rest, free)

    check = _shortfall("noise", samples(), stated)
    if check.passed or not _repeats(runs, stated):
        return check
    return dataclasses.replace(check, passed=True, kind="noise repeats")


def _repeats(runs: Runs, stated: Stated) -> bool:
    """Whether noise of full size is the same in every step, so that it is the fault of steps, and
    only looks like noise that is missing, since the mean of the steps is taken from it.
    """
    steps = min(len(runs.quiet), len(runs.quiet_too))
    if _noise_of_steps(runs, stated).passed:
        return False
    mean = (runs.quiet[:steps] - runs.quiet_too[:steps]).mean(0)
    # Batches add along a direction for each of the two seeds, which the steps' differences show.
    directions: list[FloatArray] = []
    for rows in (runs.quiet, runs.quiet_too):
        directions.append(np.linalg.svd(rows - rows.mean(0), full_matrices=False)[2][0])
    basis = np.linalg.qr(np.stack(directions, 1))[0]
    mean = mean - basis @ (basis.T @ mean)
    free = len(mean) - 2  # after the two directions
    # If all steps have the same noise, the mean is the difference of two independent noises, which
    # has twice the variance of each.
    return free > 0 and gammainc(free / 2, mean @ mean / stated.noise**2 / 4) > stated.level


def _noise_of_steps(runs: Runs, stated: Stated) -> DpCheck:
    """Whether each step has noise of its own: noise that comes again some steps later has no
    difference to the first one, or no sum with it if its sign is turned.
    """

    def samples() -> Iterator[_Sample]:
        """The pairs of steps of each parameter."""
        for number, rows in _by_parameter(runs.quiet, runs):
            for sample in _pairs_of_steps(rows):
                yield sample._replace(numbers={**sample.numbers, "parameter": number})

    return _shortfall("noise of different steps", samples(), stated)


def _pairs_of_steps(rows: FloatArray) -> Iterator[_Sample]:
    """The differences and the sums of steps that are some number of steps apart, a sample each.

    ``rows`` are the steps of a parameter, shape (steps, numbers). A sample holds the norm of its
    values, shape (), in their place, since a test asks for the sum of their squares alone.
    """
    steps = np.arange(len(rows))
    products = rows @ rows.T  # all that follows is of these, as rows may be long
    # The first steps of the pairs are those of every second block of ``apart`` steps, so that no
    # step is in two pairs of a sample.
    for apart, late in product(steps[1:], (0, 1)):
        first = steps[:-apart][steps[:-apart] // apart % 2 == late]
        second = first + apart
        # The mean of these steps does not depend on the noise of differences, nor on that of sums
        # around their mean: its direction, that of what batches add, is left out.
        along = products[:, [*first, *second]].sum(1)
        length = max(float(along[first].sum() + along[second].sum()), 1e-300)
        kinds: tuple[tuple[int, FindingKind], ...]
        kinds = ((-1, "difference of steps"), (1, "sum of steps"))
        for sign, kind in kinds:
            # Square norms of the rows' differences or sums, less that along the direction; by 2, so
            # that each has the variance of the noise of a step.
            crossed = 2 * sign * products[first, second]
            squares = products[first, first] + products[second, second] + crossed
            left = (squares - (along[first] + sign * along[second]) ** 2 / length).sum() / 2
            # The direction takes a number of each row, and of sums a row: their mean lies along it.
            free = (len(first) - (sign > 0)) * (rows.shape[1] - 1)
            norm = np.asarray(np.sqrt(max(left, 0)))
            yield _Sample(kind, {"apart": int(apart)}, norm, float(free))


def _noise_of_seeds(runs: Runs, stated: Stated) -> DpCheck:
    """Whether the noise comes from the seed: what two runs of different seeds share is no longer
    there in their difference, which is then smaller than that of independent noise.
    """
    steps = min(len(runs.quiet), len(runs.quiet_too))
    apart = (runs.quiet[:steps] - runs.quiet_too[:steps]) / 2**0.5

    def samples() -> Iterator[_Sample]:
        """For each parameter, the differences of the two runs, one row per step, around their
        mean.
        """
        for number, rows in _by_parameter(apart - apart.mean(0), runs):
            free = (steps - 1) * rows.shape[1]
            yield _Sample("difference of seeds", {"parameter": number}, rows, free)

    return _shortfall("noise of different seeds", samples(), stated)


def _noise_of_parameters(runs: Runs, stated: Stated) -> DpCheck:
    """Whether each number has noise of its own: what two numbers share is no longer there in their
    difference, which is then smaller than that of independent noise.
    """
    rows = runs.quiet - runs.quiet.mean(0)
    free = len(rows) - 1  # degrees of freedom of each number, after its mean

    def samples() -> Iterator[_Sample]:
        """Differences of each number and its neighbour, then of the numbers of every two
        parameters; the difference of two independent noises, divided by the root of 2, has the
        noise's size.
        """
        pairs = rows.shape[1] // 2
        neighbours = (rows[:, : 2 * pairs : 2] - rows[:, 1 : 2 * pairs : 2]) / 2**0.5
        yield _Sample("difference of neighbours", {}, neighbours, free * pairs)
        for (first, left), (second, right) in combinations(_by_parameter(rows, runs), 2):
            width = min(left.shape[1], right.shape[1], _COMPARED)
            rest = (left[:, :width] - right[:, :width]) / 2**0.5
            numbers = {"first": first, "second": second}
            yield _Sample("difference of parameters", numbers, rest, free * width)

    return _shortfall("noise of different parameters", samples(), stated)


def _held(runs: Runs, stated: Stated) -> list[NDArray[np.bool_]]:
    """For each pair of trainings of one seed with two canaries, whether each step held record 0,
    shape (steps,): then they differ in this step.
    """
    return [changes(near, far) > SEEN * stated.norm for near, far in runs.pairs]


def _rate(runs: Runs, stated: Stated) -> DpCheck:
    """Whether record 0 is in no more steps than independent draws at the stated rate put it there,
    by an exact binomial test.
    """
    held = np.concatenate(_held(runs, stated))
    count, total = int(held.sum()), held.size
    # The chance of so many steps or more; at a rate of 1 none are too many.
    p_value = float(bdtrc(count - 1, total, stated.rate)) if count > 0 and stated.rate < 1 else 1.0
    return DpCheck(
        name="sampling rate",
        passed=p_value > stated.level,
        kind="rate",
        numbers={"count": count, "total": total, "rate": stated.rate},
        p_value=p_value,
    )


def _poisson(runs: Runs, stated: Stated) -> DpCheck:
    """Whether record 0 is in just one step of an epoch no more often than Poisson sampling puts it
    there, by an exact binomial test.

    Shuffled data have each record once in each epoch, Poisson batches in about 2 epochs of 5.
    """
    # An epoch: as many steps as hold each record once on average.
    length = round(1 / stated.rate)
    epochs = [
        run[start : start + length]
        for run in _held(runs, stated)
        for start in range(0, len(run) - length + 1, length)
    ]
    if length < 2 or not epochs:
        return DpCheck(name="Poisson sampling", passed=True, kind="too few epochs")
    once = sum(int(epoch.sum() == 1) for epoch in epochs)
    chance = length * stated.rate * (1 - stated.rate) ** (length - 1)
    p_value = float(bdtrc(once - 1, len(epochs), chance)) if once else 1.0
    return DpCheck(
        name="Poisson sampling",
        passed=p_value > stated.level,
        kind="epochs",
        numbers={"once": once, "total": len(epochs), "chance": chance},
        p_value=p_value,
    )


CHECKS = (
    _steps,
    _other_records,
    _contribution,
    _noise,
    _noise_of_steps,
    _noise_of_seeds,
    _noise_of_parameters,
    _rate,
    _poisson,
)
TESTS = len(CHECKS) - 3 + 1  # all but the first three, and that of the trade-off, share the error
