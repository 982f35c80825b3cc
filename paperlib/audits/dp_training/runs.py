"""Short trainings of a user's loop that differ in one record, and the gradients that they
release.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.audits.dp_training.loop import Loop, changes, interplay, record_value, with_record
from paperlib.audits.dp_training.nulls import Among, NullUse, null_rows
from paperlib.core.checks import FloatArray

_OUTLIER = 100.0  # factor on a record, whose gradient is then likely to be clipped
_ORDINARY = 0.1  # so that gradients are small, and a weight or a scale shows through clipping
_MOST_CANARIES = 8
_MOST_SEEDS = 20  # tried until a canary is in a batch


@dataclass(frozen=True)
class Runs:
    """Released gradients, each (steps, parameters), of trainings whose parameters are held at their
    start.

    All but ``pairs`` and ``quiet_too`` have one seed, which decides batches and noise.

    Attributes:
        canaries: One training for each canary, which stands in place of record 0 of the data.
        ordinary: With an ordinary record in that place, one of the data times 0.1.
        null: With no record in that place; None where no null can stand for that.
        null_use: How the null was used.
        pairs: For each of the seeds 1, 2, ..., the trainings with the first canary and with the
            farthest.
        quiet: Every record is the ordinary one.
        quiet_too: As ``quiet``, with the next seed.
        among_quiet: As ``quiet``, but for the farthest canary in place of record 0.
        farthest: Number, from 0, of the canary that changes a step the most compared with canary 0.
        widths: Numbers of each parameter that had a gradient in any step.
        numbers: Which of the optimizer's parameters these are, from 1.
        moved: For each canary, the steps made by a training whose parameters move.
    """

    canaries: list[FloatArray]
    ordinary: FloatArray
    null: FloatArray | None
    null_use: NullUse
    pairs: list[tuple[FloatArray, FloatArray]]
    quiet: FloatArray
    quiet_too: FloatArray
    among_quiet: FloatArray
    farthest: int
    widths: list[int]
    numbers: list[int]
    moved: list[int]

    def interplay(self) -> FloatArray:
        """By how much what the farthest canary adds to each step depends on the other records,
        shape (steps,).
        """
        canary = self.canaries[self.farthest]
        return interplay(canary, self.ordinary, self.among_quiet, self.quiet)


def outliers(data: Any) -> list[Any]:
    """Eight records that are likely to have large gradients: each of the first four of the data
    with its first array times 100, then times -100, so that of two signs one is far on the wrong
    side.

    ``data`` are a tuple of arrays or tensors of equal length, or a single one, of four records or
    more (`audit_dp_training` refuses fewer than 16). Other arrays, such as labels, stay as they
    are. So does a first array that is not of floating-point numbers, such as one of tokens: its
    canaries are the first four records, each of them twice.
    """
    canaries: list[Any] = []
    for row in range(_MOST_CANARIES // 2):
        for sign in (_OUTLIER, -_OUTLIER):
            if isinstance(data, tuple):
                first = _scaled(data[0][row], sign)
                canaries.append((first, *(column[row] for column in data[1:])))
            else:
                canaries.append(_scaled(data[row], sign))
    return canaries


def _ordinary(data: Any, canary: Any) -> Any:
    """A small record, its first array times 0.1, the others as they are: of a single array record
    1; of a tuple the first from record 1 on that has another label than the canary, or the last.
    """
    if not isinstance(data, tuple):
        return _scaled(data[1], _ORDINARY)
    row = 1
    for row in range(1, len(data[0])):
        labels = zip(data[1:], canary[1:], strict=True)
        if any(
            not np.array_equal(record_value(column[row]), record_value(label))
            for column, label in labels
        ):
            break
    return (_scaled(data[0][row], _ORDINARY), *(column[row] for column in data[1:]))


def _scaled(values: Any, factor: float) -> Any:
    """Floating-point numbers times a factor; other values, such as tokens, as they are."""
    return values * factor if "float" in str(getattr(values, "dtype", "")) else values


def held_runs(
    loop: Loop, data: Any, canaries: list[Any], null: Any, seeds: int, seen: float
) -> Runs:
    """The trainings that most checks look at.

    Args:
        canaries: Records, two or more, which stand in place of record 0 one after the other.
        null: A record whose gradient is 0; None for none.
        seeds: Number of pairs of trainings, each of a seed of its own.
        seen: Size of a change of a step, below which it held no canary.

    Raises:
        ValueError: A training without gradients, or one that the seed does not decide.
    """
    # Every training gets a copy of its own, which it may change.
    first = loop.held(with_record(data, canaries[0]), 0)
    if not loop.used.any():
        raise ValueError("train: no parameter of the optimizer has a gradient in any step")
    again = loop.held(with_record(data, canaries[0]), 0)
    if again.shape != first.shape or np.abs(again - first).max() > seen / 10:
        raise ValueError(
            "train: two trainings of the same data and seed differ; expected the seed to decide "
            "weights, batches and noise, as by torch.manual_seed(seed)"
        )
    of_canaries, farthest, seed = _seen_canaries(loop, data, canaries, again, seen)
    pairs: list[tuple[FloatArray, FloatArray]] = []
    for other in range(1, seeds + 1):
        near = loop.held(with_record(data, canaries[0]), other)
        pairs.append((near, loop.held(with_record(data, canaries[farthest]), other)))
    if np.array_equal(pairs[0][0], first):
        raise ValueError(
            "train: two seeds give the same training; expected batches and noise by the seed"
        )
    ordinary = _ordinary(data, canaries[farthest])
    alike = with_record(data, ordinary, slice(None))
    runs = Runs(
        canaries=of_canaries,
        ordinary=loop.read(with_record(data, ordinary), seed),
        null=None,
        null_use="none",
        pairs=pairs,
        quiet=loop.read(alike, seed),
        quiet_too=loop.read(alike, seed + 1),
        among_quiet=loop.read(with_record(alike, canaries[farthest]), seed),
        farthest=farthest,
        widths=loop.widths,
        numbers=list(range(1, len(loop.widths) + 1)),
        moved=[loop.steps_made(with_record(data, canary), seed) for canary in canaries],
    )
    if null is not None:
        largest = int(np.argmax([changes(rows, runs.ordinary).max() for rows in of_canaries]))
        canary = canaries[largest]
        among = (
            Among(data, canary, seed, of_canaries[largest]),
            Among(alike, canary, seed, loop.read(with_record(alike, canary), seed)),
        )
        is_fault = bool(runs.interplay().max() > seen)
        rows, use = null_rows(loop, null, among, is_fault, seen)
        runs = dataclasses.replace(runs, null=rows, null_use=use)
    return _without_unused(runs, loop.used)


def _without_unused(runs: Runs, used: NDArray[np.bool_]) -> Runs:
    """The trainings without the parameters that had no gradient in any step of any of them, by
    ``used``, shape (parameters,): no step changes these, so that nothing of them is released.
    """
    if used.all():
        return runs
    columns = np.repeat(used, runs.widths)
    return dataclasses.replace(
        runs,
        canaries=[rows[:, columns] for rows in runs.canaries],
        ordinary=runs.ordinary[:, columns],
        null=None if runs.null is None else runs.null[:, columns],
        pairs=[(near[:, columns], far[:, columns]) for near, far in runs.pairs],
        quiet=runs.quiet[:, columns],
        quiet_too=runs.quiet_too[:, columns],
        among_quiet=runs.among_quiet[:, columns],
        widths=np.array(runs.widths)[used].tolist(),
        numbers=np.array(runs.numbers)[used].tolist(),
    )


def _seen_canaries(
    loop: Loop, data: Any, canaries: list[Any], of_first: FloatArray, seen: float
) -> tuple[list[FloatArray], int, int]:
    """Gradients of the training with each canary, by the first seed with which a canary changes a
    step; the number, from 0, of the canary that changes one the most; and the seed.

    Args:
        of_first: Gradients with the first canary and seed 0, (steps, parameters).
        seen: Size of a change of a step, below which it held no canary.

    Raises:
        ValueError: No canary changes a step with any of the seeds.
    """
    for seed in range(_MOST_SEEDS):  # a short training may not meet the record
        others = [loop.held(with_record(data, canary), seed) for canary in canaries[1:]]
        if seed > 0:
            of_first = loop.held(with_record(data, canaries[0]), seed)
        of_canaries = [of_first, *others]
        largest = [changes(gradients, of_first).max() for gradients in of_canaries]
        if max(largest) > seen:
            return of_canaries, int(np.argmax(largest)), seed
    raise ValueError(
        "canaries: they change no step; expected records with large, different gradients"
    )


def along(loop: Loop, data: Any, canary: Any, null: Any, seed: int, *, member: bool) -> FloatArray:
    """How far each step of a training with this seed went in the direction of a canary's gradient,
    shape (steps,).

    All records of ``data`` are nulls, which have no gradient, but for record 0, in whose place a
    ``member`` canary stands. The unit is that of a released gradient; a
    ValueError for gradients that are not finite.
    """
    all_null = with_record(data, null, slice(None))
    all_canaries = with_record(data, canary, slice(None))
    empty = loop.held(all_null, seed)
    # Both trainings have one seed, so that their difference is without the noise.
    direction = (loop.held(all_canaries, seed) - empty).sum(0)
    released = loop.held(with_record(all_null, canary), seed) if member else empty
    return released @ direction / max(float(np.linalg.norm(direction)), 1e-300)
