"""Several training runs, each with fair coins of its own: one lower bound on the epsilon of the
procedure.

The coins of all runs are one sequence of fair coins, and the supermartingale of `anytime` holds for
it in any order that is predictable (book: one-run audit, several runs). At hand together, the runs
are merged by the rank of each guess within its run, so that no scale of scores is shared. Read one
by one, they follow each other, and each is left at a share of its examples that was fixed before.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.bounds.one_run.anytime import AnytimeCounts
from paperlib.bounds.one_run.audit import OneRunResult, search_fields
from paperlib.bounds.one_run.detection import DetectionLimit, fewest_shown_together
from paperlib.bounds.one_run.fair_coins import (
    DOUBTFUL,
    adjacency_of,
    coin_warnings,
    fair_coin_p_value,
    fair_game,
)
from paperlib.bounds.one_run.guesses import GuessPath, guess_path
from paperlib.bounds.one_run.one_split import near_counts_p_value, share_stretches
from paperlib.bounds.one_run.search import (
    Hypothesis,
    ThresholdBound,
    every_count,
    search_thresholds,
)
from paperlib.bounds.one_run.simulated_runs import SimulatedRuns, ranks_in_run
from paperlib.core import FloatArray, IntArray
from paperlib.core.checks import (
    check_choice,
    check_confidence,
    check_counts,
    check_delta,
    find_ties,
)
from paperlib.core.direction import check_scores, reversed_direction
from paperlib.core.facts import Refusal
from paperlib.core.options import Design, Guess
from paperlib.core.scores import MembershipScores
from paperlib.words import detection, directions, one_run, searches
from paperlib.words.claims import ceiling_note, lower_bound_claim
from paperlib.words.designs import tie_warnings
from paperlib.words.one_run import OF_ALL_RUNS, runs_assumptions, runs_condition, runs_headline

_FEWEST = 20  # different values of which two runs do not have the same by chance
_LAST_DIGITS = 1e-5  # share of the range of scores within which two are one with fewer digits
_NEAR = 0.05  # chance of counts so close together, below which they are remarked upon
_COMMON = 0.8  # of the changes of side of each run, above which two runs are taken for one
_SHARES = tuple(2.0**-halving for halving in range(6))  # of a run's examples: 1, 1/2, ... 1/32
_SIDES: dict[Guess, int] = {"both": 2, "members": 1, "nonmembers": 1}  # that are guessed
_SIMULATED = 10_000  # examples up to which the limit of detection takes seconds
_AT_A_TIME = 500_000  # examples of the audits that are simulated side by side
_POWER = 0.8  # of this limit
ENDS: list[tuple[Guess, float]] = [
    (guess, share) for guess in _SIDES for share in _SHARES if guess == "both" or share < 1
]
"""Where each run is left when they are read one by one: the ends guessed, and the share of its
examples.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class CombinedResult(OneRunResult):
    """Lower bound on epsilon from several training runs; other fields as in `OneRunResult`.

    Attributes:
        runs: Number of examples of each run.
        planned: Most examples of all runs together, where they are read one by one; None otherwise.
        high, low: As shares of a run's examples: 1 is the end of likely members.
        detection: Of records exposed in runs at random; None above 10,000 examples.
    """

    runs: tuple[int, ...]
    planned: int | None

    @property
    def headline(self) -> str:
        return runs_headline(self, len(self.runs))


def combine_runs(
    runs: Sequence[MembershipScores],
    *,
    planned: int | None = None,
    ids: Sequence[Sequence[Any]] | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    guess: Guess = "adaptive",
    design: Design = "randomized",
    seed: int = 0,
) -> CombinedResult:
    """Lower-bound the epsilon of a training procedure from all audits of it, each of another
    training run.

    Guarantee:
        Exceeds the epsilon of (epsilon, delta)-DP training with probability at most
        ``1 - confidence``. With ``planned`` this holds for the bounds after each run together, so
        that the reader may stop at any of them; without, for one look at all runs, whose number did
        not depend on what they showed.

    Args:
        runs: Scores of each run. Coins decided membership anew in each, so that models trained on
            one split are one run; scales and directions may differ.
        planned: Most examples of all runs that will ever be given, fixed before the first run: the
            runs are then read in their order, and later ones may depend on what earlier ones
            showed.
        ids: Names of the records of each run. A record in two runs is refused, since
            one coin would count twice; "" is no name.
        delta: Of (epsilon, delta)-DP, in [0, 1).
        confidence: In (0, 1).
        guess: Which sides are guessed in the runs together, as in `audit_one_run`; with ``planned``
            several are searched.
        design: How membership was decided, as in `audit_one_run`.
        seed: Run i plays a game with seed + i.

    Raises:
        ValueError: No run, a record or scores in two runs, counts that fair coins would not give,
            or more examples than planned.

    Source:
        The test of all guess counts at once of `audit_one_run`, over the coins of all runs: this
        project.

    >>> rng = np.random.default_rng(0)
    >>> runs = [MembershipScores(rng.normal(1, 1, 99), rng.normal(0, 1, 101)) for _ in range(12)]
    >>> combine_runs(runs).epsilon > max(combine_runs([run]).epsilon for run in runs)
    True
    """
    delta, confidence = check_delta(delta), check_confidence(confidence)
    check_choice("guess", guess, Guess)
    suspicions = check_apart(runs, ids, design)
    games = [game_of_run(number, run, design, seed) for number, run in enumerate(runs)]
    scores = rank_scores(games)
    total = len(scores)
    if planned is not None:
        if guess != "adaptive":
            raise ValueError(
                "guess: with planned, guesses at both ends and at each are searched; leave it out"
            )
        planned = check_planned(planned, total)
    hypothesis = Hypothesis(delta, 1 - confidence)
    best = search_runs(games, planned, hypothesis, guess=guess, seed=seed)
    ceiling = best.ceiling(total)
    sizes = [(run.member.size, run.nonmember.size) for run in games]
    members = sum(inside for inside, _ in sizes)
    fields: dict[str, Any] = search_fields(best, scores) | {"total": total}
    bound = lower_bound_claim(
        best.epsilon, delta, confidence, adjacency_of(design), ceiling=ceiling
    )
    return CombinedResult(
        claim=f"{bound} {OF_ALL_RUNS}",
        condition=runs_condition(design),
        assumptions=runs_assumptions(design, planned, best.words),
        warnings=(
            *suspicions,
            *coin_warnings(members, total - members, design),
            *doubtful_runs(sizes, design),
        ),
        notes=(ceiling_note(total, ceiling),),
        refusals=reversed_runs(runs),
        adjacency=adjacency_of(design),
        design=design,
        direction="higher",
        delta=delta,
        confidence=confidence,
        ceiling=ceiling,
        runs=tuple(map(len, games)),
        planned=planned,
        _limit=partial(limit_of_runs, games, planned, hypothesis, guess)
        if total <= _SIMULATED
        else None,
        **fields,
    )


def check_planned(planned: int, total: int) -> int:
    """The number of planned examples as an int; a ValueError where it is no whole number of 1 or
    more, or the runs hold more examples, ``total``.
    """
    checked = int(check_counts("planned", planned, minimum=1))
    if total > checked:
        raise ValueError(
            f"planned: the runs hold {total:,} examples, more than the {checked:,} that were "
            "planned before the first; keep the bound of the earlier runs and start anew with "
            "the later ones"
        )
    return checked


def doubtful_runs(sizes: Sequence[tuple[int, int]], design: Design) -> list[str]:
    """Warnings of runs whose numbers of members and non-members, ``sizes``, fair coins seldom
    give; each begins with the number of its run.
    """
    messages: list[str] = []
    for number, (members, nonmembers) in enumerate(sizes, 1):
        # Of many runs one is uneven by chance.
        if len(sizes) * fair_coin_p_value(members, nonmembers) < DOUBTFUL:
            warnings = coin_warnings(members, nonmembers, design)
            messages += one_run.warnings_of_run(number, warnings)
    return messages


def reversed_runs(runs: Sequence[MembershipScores]) -> tuple[Refusal, ...]:
    """A reversed direction of all runs together, and of each one by itself, at one level for
    both: half of it is that of the runs together.
    """
    if len(runs) == 1:
        return directions.refusals(reversed_direction(rank_scores(runs)))
    together = directions.refusals(reversed_direction(rank_scores(runs), tests=2))
    each = [reversed_direction(run, tests=2 * len(runs)) for run in runs]
    return (*together, *directions.refusals_of_runs(each))


def limit_of_runs(
    runs: Sequence[MembershipScores],
    planned: int | None,
    hypothesis: Hypothesis,
    guess: Guess,
    *,
    simulations: int = 100,
) -> DetectionLimit:
    """How few exposed records of all runs `search_runs` would have shown.

    Audits are simulated on the order of the scores in each run, with new coins, so that no record
    leaks, and then some records are exposed: they stand above all others (with "nonmembers":
    below). Fewer than the number returned are shown in less than 80 % of them.

    Args:
        runs: Scores of one game each.
        planned: Most examples of all runs, where they are read one by one; None otherwise.
        hypothesis, guess: Those of the search.
        simulations: Audits simulated for each number of exposed records, 1 or more.
    """
    sign = -1 if guess == "nonmembers" else 1
    values = [np.sort(sign * run.oriented().pooled()[0])[::-1] for run in runs]
    total = sum(map(len, runs))
    test = None
    if guess == "adaptive" and planned is None:
        test = AnytimeCounts(hypothesis.error, total * hypothesis.delta, 2, total)

    def is_leak(audit: list[MembershipScores]) -> bool:
        """Whether the search shows more than an epsilon of 0 in the runs of one audit."""
        return search_runs(audit, planned, hypothesis, guess=guess).epsilon > 0

    audits = SimulatedRuns(values, sign, is_leak, test)
    at_a_time = 1 if test is None else max(1, _AT_A_TIME // total)
    of = sum((run.nonmember if sign < 0 else run.member).size for run in runs)
    records = fewest_shown_together(audits.shown, of, _POWER, simulations, at_a_time)
    exposed = detection.ranked_in_run(above=sign > 0)
    return DetectionLimit(records=records, of=of, exposed=exposed, epsilon=0.0, power=_POWER)


def rank_scores(runs: Sequence[MembershipScores]) -> MembershipScores:
    """All examples with the share of their run's examples that they rank above; higher means
    member.

    >>> rank_scores([MembershipScores([3, 2], [2])]).member
    array([0.83333333, 0.33333333])
    """
    sides: list[list[Any]] = [[], []]  # members, non-members; an array for each run
    for number, run in enumerate(runs):
        # The number of each example's score among the different ones, and examples of each score.
        _, score_of, times = np.unique(
            run.oriented().pooled()[0], return_inverse=True, return_counts=True
        )
        ranks = ranks_in_run(np.cumsum(times), times, number, len(runs))
        members, nonmembers = np.split(ranks[score_of] / len(run), [run.member.size])
        sides[0].append(members)
        sides[1].append(nonmembers)
    return MembershipScores(*map(np.concatenate, sides))


def check_apart(
    runs: Sequence[MembershipScores], ids: Sequence[Sequence[Any]] | None, design: Design
) -> tuple[str, ...]:
    """Refuse (ValueError) runs that hold the same scores or records; else warnings of ties, and of
    what looks like one split of the records.

    ``ids`` are the names of the records of each run; None for no names.
    """
    if isinstance(runs, MembershipScores) or not len(runs):
        raise ValueError("runs: expected a list with the MembershipScores of each run")
    for number, run in enumerate(runs, 1):
        check_scores(f"run {number}", run)
    _check_scores_apart(runs)
    named = _check_records_apart(runs, ids, design)
    members = [run.member for run in runs]
    nonmembers = [run.nonmember for run in runs]
    ties = tie_warnings(find_ties("runs", np.concatenate(members), np.concatenate(nonmembers)))
    if not _same_sizes(runs):
        return ties if named else (*ties, *_near_counts(runs))
    # Runs of equal sizes look like one split of the records; names of records tell otherwise,
    # but for three runs or more whose coins were tossed before training.
    if named and (design != "randomized" or len(runs) == 2):
        return ties
    return (*ties, one_run.MAYBE_ONE_SPLIT)


def _check_scores_apart(runs: Sequence[MembershipScores]) -> None:
    """Refuse (ValueError) two runs with the same scores, also in another unit or with fewer digits,
    or with the same order of members and non-members.
    """
    ordered = [_in_order(run) for run in runs]
    for (i, first), (j, second) in combinations(enumerate(ordered, 1), 2):
        is_copy = _same_values(first.values, second.values) or _same_in_another_unit(first, second)
        if is_copy or _most_common(first.changes, second.changes):
            raise ValueError(
                f"runs {i} and {j} have the same scores, or the same in another unit or with fewer "
                "digits: one run counts once; leave one out"
            )


def _check_records_apart(
    runs: Sequence[MembershipScores], ids: Sequence[Sequence[Any]] | None, design: Design
) -> bool:
    """Refuse (ValueError) a record in two runs; else whether any record has a name, where "" is
    none.
    """
    if ids is None:
        return False
    if [*map(len, ids)] != [*map(len, runs)]:
        raise ValueError("ids: expected one name for each example of each run")
    runs_of: Counter[Any] = Counter()  # number of runs that each name stands in
    for names in ids:
        runs_of.update({*names} - {""})
    shared = sorted(str(name) for name, count in runs_of.items() if count > 1)
    if shared:
        anew = ". Where each run tossed a new coin for it, leave the names out"
        raise ValueError(
            f"ids: records in several runs: {len(shared):,}, such as {shared[0]!r}; a record that "
            "keeps its coin counts once: leave it out of all runs but "
            f"one{anew if design == 'randomized' else ''}"
        )
    return len(runs_of) > 0


def _near_counts(runs: Sequence[MembershipScores]) -> tuple[str, ...]:
    """A warning where the runs' numbers of members lie closer together than coins of their own make
    them in one of twenty sets of runs.
    """
    p_value = near_counts_p_value([(run.member.size, run.nonmember.size) for run in runs])
    if p_value >= _NEAR:
        return ()
    return (one_run.near_counts([run.member.size for run in runs], p_value),)


def _same_sizes(runs: Sequence[MembershipScores]) -> bool:
    """Whether two or more runs have as many members and as many non-members each."""
    sizes = {(run.member.size, run.nonmember.size) for run in runs}
    return len(runs) > 1 and len(sizes) == 1


@dataclass(frozen=True)
class _Ordered:
    """A run in the order of its scores."""

    values: FloatArray  #: sorted scores, shape (m,)
    changes: NDArray[np.bool_]  #: where members change to non-members or back, shape (m - 1,)


def _in_order(run: MembershipScores) -> _Ordered:
    """The run, lowest scores first."""
    values, member = run.oriented().pooled()
    order = np.argsort(values, kind="stable")
    return _Ordered(values[order], np.diff(member[order]))


def _same_values(first: FloatArray, second: FloatArray) -> bool:
    """Whether two runs have equal sorted scores, of too many different values for chance."""
    if not np.array_equal(first, second):
        return False
    return np.unique(first).size >= min(first.size, _FEWEST)


def _same_in_another_unit(first: _Ordered, second: _Ordered) -> bool:
    """Whether two runs have the same order of sides and, but for origin, unit and last digits, the
    same sorted scores, of too many different values for chance.
    """
    if not np.array_equal(first.changes, second.changes):
        return False
    if np.unique(first.values).size < _FEWEST:
        return False
    shares = [_shares_of_range(run.values) for run in (first, second)]
    return bool(np.allclose(*shares, rtol=0.0, atol=_LAST_DIGITS))


def _shares_of_range(values: FloatArray) -> FloatArray:
    """Where each score lies between the lowest finite one, 0, and the highest, 1, same shape;
    scores without a spread as they are.
    """
    finite = values[np.isfinite(values)]
    if not finite.size:
        return values
    lowest = float(finite.min())
    spread = float(finite.max()) - lowest
    if spread == 0:
        return values
    return np.asarray((values - lowest) / spread, dtype=np.float64)


def _most_common(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> bool:
    """Whether two runs change sides at the same positions, but for a few of many; runs of two sizes
    in most stretches. Flags are whether the side changes from an example to the next in rank.
    """
    if first.size != second.size:
        return share_stretches(first, second)
    common = (first & second).sum()
    return bool(common >= max(_FEWEST, _COMMON * first.sum(), _COMMON * second.sum()))


def game_of_run(number: int, run: MembershipScores, design: Design, seed: int) -> MembershipScores:
    """The run as a game of fair coins, thinned by a seed of its own, ``seed + number``.

    Raises:
        ValueError: A run that the design does not allow; the message begins with its number.
    """
    try:
        return fair_game(run, design, seed=seed + number)
    except ValueError as error:
        raise ValueError(one_run.of_run(number + 1, str(error))) from None


def search_runs(
    runs: Sequence[MembershipScores],
    planned: int | None,
    hypothesis: Hypothesis,
    *,
    guess: Guess = "adaptive",
    seed: int = 0,
) -> ThresholdBound:
    """The best bound of all runs, nats, with the words of its search.

    Args:
        runs: Scores of one game each.
        planned: Most examples of all runs that may ever come, where they are read one by one; None
            merges them.
        hypothesis: Delta of DP, and the error of the whole search.
        guess: Which sides are guessed where runs are merged; else all of `ENDS` are.
        seed: Of halves, which no search of runs draws.
    """
    if planned is None:
        best = search_thresholds(rank_scores(runs), guess, None, hypothesis, seed=seed)
        return replace(best, words=searches.merged_runs(best.words))
    level = replace(hypothesis, error=hypothesis.error / len(ENDS))
    bounds = [every_count(path, level, sides) for path, sides in paths_in_turn(runs, planned)]
    best = max(bounds, key=lambda bound: bound.epsilon)
    return replace(best, words=searches.runs_in_turn(len(_SHARES), len(ENDS)), tests=len(ENDS))


def paths_in_turn(runs: Sequence[MembershipScores], planned: int) -> list[tuple[GuessPath, int]]:
    """For each of `ENDS`, the path that goes through each run up to a share of its examples and
    then on to the next, and the number of sides that are guessed on it, 1 or 2.
    """
    # The total of all paths is the planned one, whatever was read so far: failures at delta above 0
    # are budgeted for all runs that may come, so that the bounds after each run hold together.
    ranked = [rank_scores([run]) for run in runs]
    paths = {guess: [guess_path(run, guess) for run in ranked] for guess in _SIDES}
    return [
        (_chain([_until(path, share) for path in paths[guess]], planned), _SIDES[guess])
        for guess, share in ENDS
    ]


def _until(path: GuessPath, share: float) -> GuessPath:
    """The path up to the first stopping point with at least a ``share`` of its examples."""
    reached = np.searchsorted(path.guesses, share * path.total) + 1  # stopping points that are kept
    return path.at(np.arange(min(reached, path.guesses.size)))


def _chain(paths: Sequence[GuessPath], total: int) -> GuessPath:
    """The paths of several audits as one, in which each begins where the one before it ended.

    Counts of guesses and of right ones go on from the end of the path before. The level above which
    members are guessed can only fall, and that below which non-members are can only rise.

    Args:
        paths: Of the audits, in the order of their guesses.
        total: Examples of all of them, abstentions included.
    """

    def summed(name: str) -> IntArray:
        """A count of all paths, each added to what the paths before it ended with."""
        ends = np.cumsum([0, *(getattr(path, name)[-1] for path in paths[:-1])])
        return np.concatenate(
            [getattr(path, name) + end for path, end in zip(paths, ends, strict=True)]
        )

    return GuessPath(
        summed("as_member"),
        summed("as_nonmember"),
        summed("true_members"),
        summed("true_nonmembers"),
        np.minimum.accumulate(np.concatenate([path.high for path in paths])),
        np.maximum.accumulate(np.concatenate([path.low for path in paths])),
        total,
    )
