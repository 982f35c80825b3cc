"""From evidence to an outcome: the interval of every comparison against the range that the rule
gives.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

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

_Compared = tuple[Term, str, Sample]
Word = Literal["agrees", "disagrees", "undecided", "does not carry over", "shown", "not yet"]
MOST_REPETITIONS = 10_000
"""An undecided target that would need more of them needs other settings."""
FEWEST_GAMES = 5
"""Games that decide about the models of one run, where the rule asks for several models."""


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
        interval = (
            f" [{self.low:.3g}, {self.high:.3g}]" if 0 < self.high - self.low < math.inf else ""
        )
        value = "not measured" if math.isnan(self.mean) else f"{self.mean:.3g}{interval}"
        return f"{self.term.name}{where} {value}"


@dataclass(frozen=True)
class Outcome:
    """What evidence says about one table or figure."""

    word: Word
    reason: str = ""  # why a target is undecided, or what a verdict is limited to
    contrasts: tuple[Contrast, ...] = ()  # the comparisons that the paper claims
    more: float = (
        math.nan
    )  # how many times the repetitions would decide; infinite for none, nan if unknown

    @property
    def closest(self) -> Contrast | None:
        """The claimed comparison furthest beyond its range, or else nearest to its end."""
        measured = [one for one in self.contrasts if not math.isnan(one.mean)]
        deciding = [one for one in measured if one.outside] or measured
        return min(deciding, key=lambda one: one.margin, default=None)

    def __str__(self) -> str:
        return f"{self.word} ({self.reason})" if self.reason else self.word


def decide(
    rule: TargetRule, evidence: Mapping[str, Evidence], level: Level, *, seeds: int = 1
) -> Outcome:
    """Apply a rule to evidence of one scale, by notebook."""
    if not any(term.claimed for term in rule.terms):
        return Outcome("shown")
    claimed = list(_samples(rule, evidence, claimed=True))
    contrasts = tuple(_contrast(*one, rule.error / len(claimed)) for one in claimed)
    times = _more(claimed, list(_samples(rule, evidence, claimed=False)), rule.error)
    if reasons := list(_reasons(rule, evidence, level, seeds)):
        of_size = len(reasons) == 1 and reasons[0].startswith(
            "a condition"
        )  # no other lack remains
        return Outcome("undecided", reasons[0], contrasts, times if of_size else math.nan)
    if min(one.high - one.low for one in contrasts) > 2 * rule.widest:
        reason = f"every interval is wider than {rule.widest:g} to each side"
        return Outcome("undecided", reason, contrasts)
    if any(one.outside for one in contrasts):
        levels: list[str] = list(get_args(Level))  # the nearest to the paper first
        if rule.contradicted_at and levels.index(level) > levels.index(rule.contradicted_at):
            reason = f"only {rule.contradicted_by} can contradict the paper"
            return Outcome("does not carry over", reason, contrasts)
        return Outcome("disagrees", _limits(rule, evidence), contrasts)
    if across := [str(one) for one in contrasts if not one.inside]:
        more = f"; and {len(across) - 3} more" if len(across) > 3 else ""
        return Outcome(
            "undecided", f"too wide an interval: {'; '.join(across[:3])}{more}", contrasts, times
        )
    return Outcome("agrees", _limits(rule, evidence), contrasts)


def decide_alone(evidence: Evidence, level: Level) -> Outcome:
    """What one run says by itself; of a target that several notebooks share, about its own part."""
    rule = replace(evidence.rule, notebooks=("this run",))
    return decide(rule, {"this run": evidence}, level, seeds=rule.runs)


def pool(runs: Sequence[Evidence]) -> Evidence:
    """Evidence of runs that differ in the seed alone, as one."""
    # As many runs as the rule asks for models count as one model each, with their means; games of
    # fewer runs are put together, and speak of the models of these runs.
    first = runs[0]
    as_models = first.unit != first.rule.unit == "model" and len(runs) >= first.rule.repetitions
    return _pooled(runs, _means, "model") if as_models else _pooled(runs, _together, first.unit)


def over_models(runs: Sequence[Evidence], level: Level) -> Outcome:
    """The outcome if each run counted as one model with its means, whatever the rule repeats."""
    rule = replace(
        runs[0].rule, unit="model", repetitions=len(runs), runs=1, notebooks=("these runs",)
    )
    return decide(rule, {"these runs": _pooled(runs, _means, "model")}, level)


def _pooled(
    runs: Sequence[Evidence], combined: Callable[[Sequence[Sample]], Sample], unit: Unit
) -> Evidence:
    samples = [one.samples() for one in runs]
    values: dict[str, dict[str, Sample]] = {term.name: {} for term in runs[0].rule.terms}
    for name, label in dict.fromkeys(key for one in samples for key in one):
        values[name][label] = combined(
            [one[name, label] for one in samples if (name, label) in one]
        )
    notes = dict.fromkeys(one.note for one in runs if one.note)
    return Evidence(runs[0].target, unit, values, " ".join(notes), runs[0].reading)


def _means(samples: Sequence[Sample]) -> Sample:
    if all(isinstance(one, Estimate) and one.error == 0 for one in samples):
        return _together(samples)
    lists = [[one.value] if isinstance(one, Estimate) else one for one in samples]
    return [float(np.mean(one)) for one in lists if len(one)]


def _together(samples: Sequence[Sample]) -> Sample:
    """All repetitions; of estimates their mean, or one value per run where they are exact and
    differ.
    """
    if not (estimates := [one for one in samples if isinstance(one, Estimate)]):
        return [value for one in samples if not isinstance(one, Estimate) for value in one]
    values = [one.value for one in estimates]
    if not any(one.error for one in estimates) and len(set(values)) > 1:
        return values
    return Estimate(
        float(np.mean(values)), math.hypot(*(one.error for one in estimates)) / len(estimates)
    )


def _samples(
    rule: TargetRule, evidence: Mapping[str, Evidence], *, claimed: bool
) -> Iterator[tuple[Term, str, Sample]]:
    """Term, label and sample of each comparison; labels name the notebook where a rule needs
    several.
    """
    for notebook, one in evidence.items():
        about = [notebook] if len(rule.notebooks) > 1 else []
        terms = {term.name: term for term in rule.terms if term.claimed == claimed}
        for (name, label), sample in one.samples().items():
            if name in terms:
                yield terms[name], ", ".join([*about, *filter(None, [label])]), sample


def _contrast(term: Term, label: str, sample: Sample, error: float) -> Contrast:
    if isinstance(sample, Estimate):
        half = float(ndtri(1 - error / 2)) * sample.error
        return Contrast(term, label, sample.value, sample.value - half, sample.value + half)
    values = np.asarray(sample, dtype=float)
    mean = float(values.mean()) if values.size else math.nan
    if term.measure == "share" and values.size and np.isin(values, (0.0, 1.0)).all():
        ends = share_interval(int(values.sum()), values.size, confidence=1 - error)
        return Contrast(term, label, mean, *ends)
    if values.size < 2:
        return Contrast(term, label, mean, -math.inf, math.inf)
    half = float(
        stdtrit(values.size - 1, 1 - error / 2) * values.std(ddof=1) / math.sqrt(values.size)
    )
    return Contrast(term, label, mean, mean - half, mean + half)


def _more(claimed: Sequence[_Compared], conditions: Sequence[_Compared], error: float) -> float:
    """How many times the repetitions, of this mean and spread, would show all claims or contradict
    one.
    """
    claims = [_times(*one, error / len(claimed)) for one in claimed]
    needed = [_times(*one, error) for one in conditions]
    if not all(inside for inside, _ in needed):
        return math.inf
    against = [times for inside, times in claims if not inside]
    decisive = np.min(against) if against else np.max([times for _, times in claims] or [math.nan])
    return float(np.max([decisive, *(times for _, times in needed)]))  # nan if any is


def _times(term: Term, label: str, sample: Sample, error: float) -> tuple[bool, float]:
    """Whether the mean lies in the range, and how many times the repetitions put the interval on
    its side.
    """
    one = _contrast(term, label, sample, error)
    inside = term.at_least <= one.mean <= term.at_most
    if one.inside or one.outside:
        return inside, 1.0
    if isinstance(sample, Estimate) or len(sample) < 2 or set(sample) <= {0.0, 1.0}:
        return inside, math.nan
    spread = float(np.std(sample, ddof=1))
    distance = min(abs(one.mean - term.at_least), abs(one.mean - term.at_most))
    counts = range(len(sample), MOST_REPETITIONS + 1)
    scale, level = distance / spread if spread else math.inf, 1 - error / 2
    place = bisect_left(
        counts, True, key=lambda n: float(stdtrit(n - 1, level)) <= scale * math.sqrt(n)
    )
    return inside, counts[place] / len(sample) if place < len(counts) else math.inf


def _reasons(
    rule: TargetRule, evidence: Mapping[str, Evidence], level: Level, seeds: int
) -> Iterator[str]:
    """Why evidence decides nothing: what it lacks, conditions that are not met, and too few
    repetitions.
    """
    if level == "made-up data":
        yield "made-up data decide nothing"
    if rule.own_data and level == "substitute":
        yield "only the paper's data decide"
    if (absent := [name for name in rule.notebooks if name not in evidence]) and len(
        rule.notebooks
    ) > 1:
        yield f"no run of {', '.join(absent)}"
    conditions = list(_samples(rule, evidence, claimed=False))
    empty = {
        term.name
        for term, _, sample in (*_samples(rule, evidence, claimed=True), *conditions)
        if not isinstance(sample, Estimate) and not len(sample)
    }
    empty |= {
        name for one in evidence.values() for name, samples in one.values.items() if samples == {}
    }
    if empty:
        yield f"not measured: {', '.join(sorted(empty))}"
    if seeds < rule.runs:
        yield f"{seeds} seed{'s' if seeds > 1 else ''}, {rule.runs} needed"
    unmet = [  # with their whole interval
        f"{one}{'' if math.isfinite(one.low) else ', one repetition,'} needed {one.term.limits}"
        for one in (_contrast(*condition, rule.error) for condition in conditions)
        if not one.inside
    ]
    if unmet:
        yield f"a condition is not met: {'; '.join(unmet)}"
    for notebook, one in evidence.items():
        needed = (
            rule.repetitions if one.unit == rule.unit else FEWEST_GAMES if one.unit == "game" else 1
        )
        samples = [sample for _, _, sample in _samples(rule, {notebook: one}, claimed=True)]
        count = min(
            (len(sample) for sample in samples if not isinstance(sample, Estimate)), default=needed
        )
        if count < needed:
            yield f"{count} {one.unit}{'s' if count > 1 else ''}, {needed} needed"


def _limits(rule: TargetRule, evidence: Mapping[str, Evidence]) -> str:
    units = {one.unit for one in evidence.values()}
    return (
        "on these models"
        if "game" in units or (rule.unit == "model" and units != {"model"})
        else ""
    )
