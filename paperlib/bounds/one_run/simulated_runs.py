"""Audits of several runs whose records tell nothing, but for some that are exposed.

For the limit of detection of `combine_runs`, which needs hundreds of them. Where the order of the
guesses learns from all runs together, they are played side by side.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paperlib.bounds.one_run.anytime import AnytimeCounts
from paperlib.bounds.one_run.simulated_games import play_ends
from paperlib.core import FloatArray, IntArray, MembershipScores


def ranks_in_run(reached: IntArray, times: IntArray, number: int, runs: int) -> FloatArray:
    """Ranks of the different scores of one run among several, shape (n,), counted from the lowest.

    Tied scores share the mean of their ranks. Runs of one size take turns, and are not tied.

    Args:
        reached: Examples at or below each score, shape (n,).
        times: Examples of each score, shape (n,).
        number: Number of this run, from 0, of so many ``runs``.
    """
    return reached - (times + 1) / 2 + (number + 0.5) / runs


@dataclass(frozen=True, eq=False)
class _SimulatedRun:
    """One run with new coins: scores, highest first, and which are members; shapes (m,)."""

    values: FloatArray
    labels: NDArray[np.bool_]

    @classmethod
    def drawn(cls, values: FloatArray, count: int, rng: np.random.Generator) -> "_SimulatedRun":
        """A run with these scores, shape (m,), highest first, and ``count`` exposed members on top
        of them, in place of random ones.
        """
        on_top = values[0] + np.arange(count, 0, -1.0)
        rest = np.delete(values, rng.choice(values.size, count, replace=False))
        labels = (rng.random(values.size) < 0.5) | (np.arange(values.size) < count)
        if labels.all() or not labels.any():  # a run has both classes
            labels[-1] ^= True
        return cls(np.append(on_top, rest), labels)

    def scores(self, sign: int) -> MembershipScores:
        """The run as scores; with ``sign`` -1 its mirror, with exposed non-members below."""
        labels = self.labels if sign > 0 else ~self.labels
        return MembershipScores.from_labels(sign * self.values, labels)

    def shares(self, number: int, runs: int) -> FloatArray:
        """The share of the run's examples that each ranks above, shape (m,); this is run ``number``
        of ``runs``, whose ranks take turns (`ranks_in_run`).
        """
        size = self.values.size
        # Of each score, highest first: its first example, and how many have it.
        first = np.flatnonzero(np.append(True, self.values[1:] != self.values[:-1]))
        times = np.diff(np.append(first, size))
        return np.repeat(ranks_in_run(size - first, times, number, runs) / size, times)


@dataclass(frozen=True, eq=False)
class SimulatedRuns:
    """Audits of runs with these scores and new coins, of which some records are exposed.

    Attributes:
        values: Scores of each run, highest first, shape (m,) each.
        sign: 1 where members are exposed above all others; -1 where these scores are the mirror of
            an audit in which non-members are exposed below.
        is_leak: Whether the search of all runs shows a leak in the runs of one audit.
        test: That of an order that learns from all runs together; None: the search has another one.
    """

    values: Sequence[FloatArray]
    sign: int
    is_leak: Callable[[list[MembershipScores]], bool]
    test: AnytimeCounts | None

    def shown(self, exposed: int, simulations: range) -> int:
        """How many of the audits of these numbers show a leak, with ``exposed`` records exposed in
        each.
        """
        audits = [self._drawn(exposed, number) for number in simulations]
        if self.test is not None:
            return self._shown_together(audits, self.test)
        leaks = 0
        for audit in audits:
            leaks += self.is_leak([run.scores(self.sign) for run in audit])
        return leaks

    def _drawn(self, exposed: int, number: int) -> list[_SimulatedRun]:
        """The runs of audit ``number``, its ``exposed`` records dealt to them at random."""
        rng = np.random.default_rng([exposed, number])
        sizes = [values.size for values in self.values]
        run_of_record = np.repeat(np.arange(len(sizes)), sizes)
        dealt = rng.choice(run_of_record, exposed, replace=False)
        counts = np.bincount(dealt, minlength=len(sizes)).tolist()
        pairs = zip(self.values, counts, strict=True)
        return [_SimulatedRun.drawn(values, count, rng) for values, count in pairs]

    def _shown_together(
        self, audits: Sequence[Sequence[_SimulatedRun]], test: AnytimeCounts
    ) -> int:
        """How many of these audits, each a list of its runs, show a leak; they are played side by
        side, the records of all runs of an audit in one order.
        """
        members = np.stack([np.concatenate([run.labels for run in audit]) for audit in audits])
        if all((values[1:] < values[:-1]).all() for values in self.values):
            # Without ties the shares are those of ranks, the same in every audit.
            shares = np.broadcast_to(_shares(audits[0]), members.shape)
            order = np.broadcast_to(np.argsort(-shares[0]), members.shape)
        else:
            shares = np.stack([_shares(audit) for audit in audits])
            order = np.argsort(-shares, axis=1)
        values = np.take_along_axis(shares, order, axis=1)
        members = np.take_along_axis(members, order, axis=1)
        points = play_ends(values, members, members.shape[1])
        shows = test.refuting(points.correct, points.guesses, points.game, len(audits), 0.0)
        return int(np.count_nonzero(shows))


def _shares(audit: Sequence[_SimulatedRun]) -> FloatArray:
    """The shares of the runs of one audit, one run after the other, shape (examples,)."""
    return np.concatenate([run.shares(number, len(audit)) for number, run in enumerate(audit)])
