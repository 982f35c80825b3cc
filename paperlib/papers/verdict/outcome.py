"""From evidence to an outcome: the interval of every comparison against the range that the rule
gives.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

import numpy as np
from scipy.special import ndtri, stdtrit

from paperlib.core import share_interval
from paperlib.papers.verdict.evidence import (
    Estimate,
    Evidence,
    Level,
    Sample,
    TargetRule,
    Term,
    Unit,
)
from paperlib.papers.verdict.reasons import Cause, Reason

Word = Literal["agrees", "disagrees", "undecided", "does not carry over", "shown", "not yet"]
MOST_REPETITIONS = 10_000
"""An undecided target that would need more of them needs other settings."""
FEWEST_GAMES = 5
"""Games that decide about the models of one run, where the rule asks for several models."""
_MOST_NAMED = 3
"""Comparisons that a sentence names; of more it gives the number."""


class Compared(NamedTuple):
    """The sample of one comparison."""

    term: Term
    label: str  # setting, level or panel; empty for the only one
    sample: Sample


@dataclass(frozen=True)
class Contrast:
    """One comparison with its interval."""

    term: Term
    label: str  # setting, level or panel; empty for the only one
    mean: float  # over the repetitions, or the estimate
    low: float
    high: float

    @property
    def inside(self) -> bool:
        """Whether the whole interval lies in the range of the rule."""
        return self.margin >= 0

    @property
    def outside(self) -> bool:
        """Whether the whole interval lies outside the range of the rule."""
        return self.high < self.term.at_least or self.low > self.term.at_most

    @property
    def margin(self) -> float:
        """Distance between the interval and the nearer end of the range; negative unless inside."""
        return min(self.low - self.term.at_least, self.term.at_most - self.high)

    def __str__(self) -> str:
        where = f" ({self.label})" if self.label else ""
        return f"{self.term.name}{where} {self._value()}"

    def _value(self) -> str:
        """The mean with its interval, where it has one with two ends."""
        if math.isnan(self.mean):
            return "not measured"
        if 0 < self.high - self.low < math.inf:
            return f"{self.mean:.3g} [{self.low:.3g}, {self.high:.3g}]"
        return f"{self.mean:.3g}"


@dataclass(frozen=True)
class Outcome:
    """What evidence says about one table or figure.

    Attributes:
        word: The outcome.
        reasons: Why a target is undecided, the first first, or what a verdict is limited to.
        contrasts: The comparisons that the paper claims.
        times_needed: How many times the repetitions would decide; infinite where no number would,
            NaN where it is not known.
    """

    word: Word
    reasons: tuple[Reason, ...] = ()
    contrasts: tuple[Contrast, ...] = ()
    times_needed: float = math.nan

    @property
    def first_reason(self) -> Reason | None:
        """The reason that is shown."""
        return self.reasons[0] if self.reasons else None

    @property
    def reason(self) -> str:
        """The sentence of the first reason; empty for none."""
        return str(self.first_reason) if self.first_reason else ""

    def is_because_of(self, cause: Cause) -> bool:
        """Whether the first reason has this cause."""
        return self.first_reason is not None and self.first_reason.cause is cause

    @property
    def closest(self) -> Contrast | None:
        """The claimed comparison furthest beyond its range, or else nearest to its end."""
        measured = [contrast for contrast in self.contrasts if not math.isnan(contrast.mean)]
        deciding = [contrast for contrast in measured if contrast.outside] or measured
        return min(deciding, key=lambda contrast: contrast.margin, default=None)

    def __str__(self) -> str:
        return f"{self.word} ({self.reason})" if self.reason else self.word


def decide(
    rule: TargetRule, evidence: Mapping[str, Evidence], level: Level, *, seeds: int = 1
) -> Outcome:
    """Apply a rule to evidence of one scale.

    ``evidence`` is by notebook; ``seeds`` counts the runs that it was pooled from.
    """
    if not any(term.claimed for term in rule.terms):
        return Outcome("shown")
    claimed = list(_comparisons(rule, evidence, claimed=True))
    conditions = list(_comparisons(rule, evidence, claimed=False))
    contrasts = tuple(_contrast(case, rule.error / len(claimed)) for case in claimed)
    times_needed = _times_needed(claimed, conditions, rule.error)
    lacks = tuple(_lacks(rule, evidence, level, seeds))
    if lacks:
        only_conditions = [lack.cause for lack in lacks] == [Cause.UNMET_CONDITION]
        # Where anything else is lacking, repetitions alone do not decide.
        return Outcome("undecided", lacks, contrasts, times_needed if only_conditions else math.nan)
    if min(contrast.high - contrast.low for contrast in contrasts) > 2 * rule.widest:
        wide = Reason(Cause.WIDE_INTERVALS, (f"{rule.widest:g}",))
        return Outcome("undecided", (wide,), contrasts)
    if any(contrast.outside for contrast in contrasts):
        return _contradiction(rule, evidence, level, contrasts)
    across = [str(contrast) for contrast in contrasts if not contrast.inside]
    if across:
        return Outcome("undecided", (_across(across),), contrasts, times_needed)
    return Outcome("agrees", _limits(rule, evidence), contrasts)


def _contradiction(
    rule: TargetRule,
    evidence: Mapping[str, Evidence],
    level: Level,
    contrasts: tuple[Contrast, ...],
) -> Outcome:
    """The outcome where a claimed interval is outside its range: it holds from the scale that the
    rule names.
    """
    nearest_first: list[str] = list(get_args(Level))
    needed = rule.contradicted_at
    if needed and nearest_first.index(level) > nearest_first.index(needed):
        too_small = Reason(Cause.SMALL_SCALE, (rule.contradicted_by,))
        return Outcome("does not carry over", (too_small,), contrasts)
    return Outcome("disagrees", _limits(rule, evidence), contrasts)


def _across(contrasts: Sequence[str]) -> Reason:
    """The first of the intervals that are neither inside nor outside, and the number of others."""
    named = list(contrasts[:_MOST_NAMED])
    if len(contrasts) > _MOST_NAMED:
        named.append(f"and {len(contrasts) - _MOST_NAMED} more")
    return Reason(Cause.ACROSS_THE_END, tuple(named))


def _limits(rule: TargetRule, evidence: Mapping[str, Evidence]) -> tuple[Reason, ...]:
    """That a verdict speaks of the models of its runs alone, where their repetitions are no
    models.
    """
    units = {run.unit for run in evidence.values()}
    if "game" in units or (rule.unit == "model" and units != {"model"}):
        return (Reason(Cause.THESE_MODELS),)
    return ()


def decide_alone(evidence: Evidence, level: Level) -> Outcome:
    """What one run says by itself; of a target that several notebooks share, about its own part."""
    rule = replace(evidence.rule, notebooks=("this run",))
    return decide(rule, {"this run": evidence}, level, seeds=rule.runs)


def pool(runs: Sequence[Evidence]) -> Evidence:
    """Evidence of runs that differ in the seed alone, as one."""
    # As many runs as the rule asks for models count as one model each, with their means; games of
    # fewer runs are put together, and speak of the models of these runs.
    unit = runs[0].unit
    rule = runs[0].rule
    if rule.unit == "model" and unit != "model" and len(runs) >= rule.repetitions:
        return _pooled(runs, _means, "model")
    return _pooled(runs, _together, unit)


def over_models(runs: Sequence[Evidence], level: Level) -> Outcome:
    """The outcome if each run counted as one model with its means, whatever the rule repeats."""
    rule = replace(
        runs[0].rule, unit="model", repetitions=len(runs), runs=1, notebooks=("these runs",)
    )
    return decide(rule, {"these runs": _pooled(runs, _means, "model")}, level)


def _pooled(
    runs: Sequence[Evidence], combined: Callable[[Sequence[Sample]], Sample], unit: Unit
) -> Evidence:
    """Evidence whose samples are those of the runs, combined one comparison at a time."""
    samples = [run.samples() for run in runs]
    values: dict[str, dict[str, Sample]] = {term.name: {} for term in runs[0].rule.terms}
    for name, label in dict.fromkeys(key for by_key in samples for key in by_key):
        values[name][label] = combined(
            [by_key[name, label] for by_key in samples if (name, label) in by_key]
        )
    notes = dict.fromkeys(run.note for run in runs if run.note)
    return Evidence(runs[0].target, unit, values, " ".join(notes), runs[0].reading)


def _means(samples: Sequence[Sample]) -> Sample:
    """One value per run, its mean; of exact numbers those themselves."""
    if all(isinstance(sample, Estimate) and sample.error == 0 for sample in samples):
        return _together(samples)
    lists = [[sample.value] if isinstance(sample, Estimate) else sample for sample in samples]
    return [float(np.mean(values)) for values in lists if len(values)]


def _together(samples: Sequence[Sample]) -> Sample:
    """All repetitions; of estimates their mean, or one value per run where they are exact and
    differ.
    """
    estimates = [sample for sample in samples if isinstance(sample, Estimate)]
    if not estimates:
        repetitions = [sample for sample in samples if not isinstance(sample, Estimate)]
        return [value for sample in repetitions for value in sample]
    values = [estimate.value for estimate in estimates]
    errors = [estimate.error for estimate in estimates]
    if not any(errors) and len(set(values)) > 1:
        return values
    return Estimate(float(np.mean(values)), math.hypot(*errors) / len(estimates))


def _comparisons(
    rule: TargetRule, evidence: Mapping[str, Evidence], *, claimed: bool
) -> Iterator[Compared]:
    """The comparisons that the paper claims, or the conditions of a verdict.

    Labels name the notebook where a rule needs several.
    """
    terms = {term.name: term for term in rule.terms if term.claimed == claimed}
    for notebook, run in evidence.items():
        for (name, label), sample in run.samples().items():
            if name not in terms:
                continue
            names = [notebook, label] if len(rule.notebooks) > 1 else [label]
            yield Compared(terms[name], ", ".join(filter(None, names)), sample)


def _contrast(compared: Compared, error: float) -> Contrast:
    """The comparison with its two-sided interval, which fails with at most ``error``.

    The interval is normal for an estimate, exact for counted shares, and otherwise Student's; a
    single value has the whole line.
    """
    term, label, sample = compared
    if isinstance(sample, Estimate):
        half = float(ndtri(1 - error / 2)) * sample.error
        return Contrast(term, label, sample.value, sample.value - half, sample.value + half)
    values = np.asarray(sample, dtype=float)
    mean = float(values.mean()) if values.size else math.nan
    if term.measure == "share" and values.size and np.isin(values, (0.0, 1.0)).all():
        low, high = share_interval(int(values.sum()), values.size, confidence=1 - error)
        return Contrast(term, label, mean, low, high)
    if values.size < 2:
        return Contrast(term, label, mean, -math.inf, math.inf)
    quantile = stdtrit(values.size - 1, 1 - error / 2)
    half = float(quantile * values.std(ddof=1) / math.sqrt(values.size))
    return Contrast(term, label, mean, mean - half, mean + half)


def _times_needed(
    claimed: Sequence[Compared], conditions: Sequence[Compared], error: float
) -> float:
    """How many times as many repetitions would decide, if mean and spread stayed the same: by
    contradicting one claim, or else by showing all, with all conditions met.

    Infinite where a mean fails a condition. Claims share the error, since any of them may
    contradict; every condition must hold, so each has all of it.
    """
    claims = [_times_for_one(case, error / len(claimed)) for case in claimed]
    needs = [_times_for_one(case, error) for case in conditions]
    if not all(inside for inside, _ in needs):
        return math.inf
    contradicting = [times for inside, times in claims if not inside]
    if contradicting:
        decisive = np.min(contradicting)
    else:
        decisive = np.max([times for _, times in claims] or [math.nan])
    return float(np.max([decisive, *(times for _, times in needs)]))  # nan if any is


def _times_for_one(compared: Compared, error: float) -> tuple[bool, float]:
    """Whether the mean lies in the range, and how many times the repetitions put the interval on
    its side.
    """
    term, sample = compared.term, compared.sample
    contrast = _contrast(compared, error)
    inside = term.at_least <= contrast.mean <= term.at_most
    if contrast.inside or contrast.outside:
        return inside, 1.0
    # Neither the error of an estimate nor that of a share follows from a spread.
    if isinstance(sample, Estimate) or len(sample) < 2 or set(sample) <= {0.0, 1.0}:
        return inside, math.nan
    distance = min(abs(contrast.mean - term.at_least), abs(contrast.mean - term.at_most))
    spread = float(np.std(sample, ddof=1))
    count = _repetitions_for(distance / spread if spread else math.inf, len(sample), error)
    return inside, count / len(sample)


def _repetitions_for(distance: float, least: int, error: float) -> float:
    """The least number of repetitions, from ``least`` on, whose interval is shorter to each side
    than ``distance`` (in standard deviations); infinite above `MOST_REPETITIONS`.
    """

    def suffices(count: int) -> bool:
        return float(stdtrit(count - 1, 1 - error / 2)) <= distance * math.sqrt(count)

    counts = range(least, MOST_REPETITIONS + 1)
    index = bisect_left(counts, True, key=suffices)
    return counts[index] if index < len(counts) else math.inf


def _lacks(
    rule: TargetRule, evidence: Mapping[str, Evidence], level: Level, seeds: int
) -> Iterator[Reason]:
    """Why evidence decides nothing: what it lacks, conditions that are not met, and too few
    repetitions.
    """
    if level == "made-up data":
        yield Reason(Cause.MADE_UP_DATA)
    if rule.own_data and level == "substitute":
        yield Reason(Cause.OTHER_DATA)
    absent = [name for name in rule.notebooks if name not in evidence]
    if absent and len(rule.notebooks) > 1:
        yield Reason(Cause.ABSENT_RUN, tuple(absent))
    unmeasured = _unmeasured(evidence)
    if unmeasured:
        yield Reason(Cause.NOT_MEASURED, tuple(sorted(unmeasured)))
    if seeds < rule.runs:
        yield Reason(Cause.FEW_SEEDS, (_counted(seeds, "seed"), f"{rule.runs}"))
    unmet = _unmet_conditions(rule, evidence)
    if unmet:
        yield Reason(Cause.UNMET_CONDITION, tuple(unmet))
    yield from _too_few_repetitions(rule, evidence)


def _unmeasured(evidence: Mapping[str, Evidence]) -> set[str]:
    """Names of the terms without samples, or with a sample without values."""
    names = set[str]()
    for run in evidence.values():
        names |= {name for name, samples in run.values.items() if samples == {}}
        for (name, _), sample in run.samples().items():
            if not isinstance(sample, Estimate) and not len(sample):
                names.add(name)
    return names


def _unmet_conditions(rule: TargetRule, evidence: Mapping[str, Evidence]) -> list[str]:
    """Conditions whose whole interval is not in the range, in words."""
    unmet: list[str] = []
    for condition in _comparisons(rule, evidence, claimed=False):
        contrast = _contrast(condition, rule.error)
        if not contrast.inside:
            once = "" if math.isfinite(contrast.low) else ", one repetition,"
            unmet.append(f"{contrast}{once} needed {contrast.term.limits}")
    return unmet


def _too_few_repetitions(rule: TargetRule, evidence: Mapping[str, Evidence]) -> Iterator[Reason]:
    """A reason for each notebook of which a claimed comparison has fewer repetitions than
    needed.
    """
    for notebook, run in evidence.items():
        needed = _needed_repetitions(rule, run.unit)
        counts = [
            len(case.sample)
            for case in _comparisons(rule, {notebook: run}, claimed=True)
            if not isinstance(case.sample, Estimate)
        ]
        count = min(counts, default=needed)
        if count < needed:
            yield Reason(Cause.FEW_REPETITIONS, (_counted(count, run.unit), f"{needed}"))


def _needed_repetitions(rule: TargetRule, unit: Unit) -> int:
    """The rule's number where runs repeat what the rule asks for; games have their own."""
    if unit == rule.unit:
        return rule.repetitions
    return FEWEST_GAMES if unit == "game" else 1


def _counted(count: int, noun: str) -> str:
    """The count with its noun, such as "1 seed" or "2 seeds"."""
    return f"{count} {noun}{'s' if count > 1 else ''}"
