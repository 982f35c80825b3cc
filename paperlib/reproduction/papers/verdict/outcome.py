"""From evidence to an outcome: the interval of every comparison against the range that the rule
gives.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from paperlib.reproduction.papers.verdict.contrasts import (
    Compared,
    Contrast,
    Joined,
    contrast_of,
    times_needed,
)
from paperlib.reproduction.papers.verdict.evidence import (
    Evidence,
    Level,
    Role,
    TargetRule,
    Term,
    Unit,
)
from paperlib.reproduction.papers.verdict.reasons import Cause, Reason
from paperlib.reproduction.papers.verdict.samples import Estimate, Sample

Word = Literal[
    "agrees",
    "disagrees",
    "undecided",
    "carries over",
    "does not carry over",
    "shown",
    "not yet",
]
_WEAKEST_FIRST: tuple[Word, ...] = (
    "disagrees",
    "does not carry over",
    "not yet",
    "undecided",
    "carries over",
    "agrees",
)
"""Of several claims, the first of these outcomes that one has is that of all together."""
FAILS: tuple[Word, ...] = ("disagrees", "does not carry over")
"""Outcomes of a claim that fails."""
FEWEST_GAMES = 5
"""Games that decide about the models of one run, where the rule asks for several models."""
_MOST_NAMED = 3
"""Comparisons that a sentence names; of more it gives the number."""


@dataclass(frozen=True)
class Claim:
    """One claim of a target with its own outcome."""

    name: str
    word: Word
    contrasts: tuple[Contrast, ...]
    beside: bool  # whether it stands beside the target's outcome, which it does not change

    def __str__(self) -> str:
        return f"{self.name}: {self.word}"


@dataclass(frozen=True)
class Outcome:
    """What evidence says about one table or figure.

    Attributes:
        word: The outcome.
        reasons: Why a target is undecided, the first first, or what a verdict is limited to.
        contrasts: The comparisons that the paper claims.
        times_needed: How many times the repetitions would decide; infinite where no number would,
            NaN where it is not known.
        claims: Each claim by itself, and those that stand beside.
        conditions: The comparisons that must hold for a verdict to be given.
    """

    word: Word
    reasons: tuple[Reason, ...] = ()
    contrasts: tuple[Contrast, ...] = ()
    times_needed: float = math.nan
    claims: tuple[Claim, ...] = ()
    conditions: tuple[Contrast, ...] = ()

    @property
    def first_reason(self) -> Reason | None:
        """The reason that is shown."""
        return self.reasons[0] if self.reasons else None

    @property
    def reason(self) -> str:
        """The sentence of the first reason, or of all where evidence decides; empty for none."""
        if self.word == "undecided":
            return str(self.first_reason) if self.first_reason else ""
        return "; ".join(map(str, self.reasons))

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

    Args:
        rule: Of a table or figure.
        evidence: By notebook; the notebooks of the rule that it lacks were not run.
        level: Scale of the evidence.
        seeds: Number of runs that it was pooled from.

    Returns:
        "shown" where the paper claims nothing that could be false. "undecided", with the reasons,
            where evidence lacks what the rule asks for, or intervals are too wide. Else what all
            claims together come to.
    """
    rule = rule.on(level)
    if not any(term.claimed for term in rule.terms):
        return Outcome("shown")
    claimed = list(_comparisons(rule, evidence, "claimed"))
    claims = _claims(rule, level, claimed, "claimed")
    claims += _claims(rule, level, list(_comparisons(rule, evidence, "beside")), "beside")
    contrasts = tuple(
        contrast for claim in claims if not claim.beside for contrast in claim.contrasts
    )
    needed = list(_comparisons(rule, evidence, "needed"))
    outcome = Outcome(
        joint_word(claims),
        contrasts=contrasts,
        claims=tuple(claims),
        conditions=_with_intervals(needed, rule.error),
    )
    times = times_needed(claimed, needed, rule.error)
    lacks = tuple(_lacks(rule, evidence, level, seeds))
    if lacks:
        only_conditions = [lack.cause for lack in lacks] == [Cause.UNMET_CONDITION]
        # Where anything else is lacking, repetitions alone do not decide.
        return _undecided(outcome, lacks, times if only_conditions else math.nan)
    # The rule's limit is for each side of an interval.
    if min(contrast.high - contrast.low for contrast in contrasts) > 2 * rule.widest:
        wide = Reason(Cause.WIDE_INTERVALS, (f"{rule.widest:g}",))
        return _undecided(outcome, (wide,), math.nan)
    if outcome.word == "undecided":
        across = [str(contrast) for contrast in contrasts if not contrast.inside]
        return replace(outcome, reasons=(_across(across),), times_needed=times)
    return replace(outcome, reasons=_reasons(rule, evidence, outcome))


def _with_intervals(compared: Sequence[Compared], error: float) -> tuple[Contrast, ...]:
    """The comparisons with their intervals, each of which has the whole error."""
    return tuple(contrast_of(case, error) for case in compared)


def joint_word(claims: Sequence[Claim]) -> Word:
    """The outcome of all claims together, of which those that stand beside are no part."""
    words = {claim.word for claim in claims if not claim.beside}
    for word in _WEAKEST_FIRST:
        if word in words:
            return word
    return "undecided"


def _undecided(outcome: Outcome, reasons: tuple[Reason, ...], times: float) -> Outcome:
    """The outcome where evidence decides nothing: no claim has one either."""
    claims = tuple(
        claim if claim.word in ("shown", "not yet") else replace(claim, word="undecided")
        for claim in outcome.claims
    )
    return replace(outcome, word="undecided", reasons=reasons, times_needed=times, claims=claims)


def _claims(
    rule: TargetRule, level: Level, compared: Sequence[Compared], role: Role
) -> list[Claim]:
    """The claims of one role, each by its own comparisons; all of them share the error."""
    decisive = not rule.replaces_a_part(level)
    claims: list[Claim] = []
    for term in rule.terms:
        if term.role != role:
            continue
        cases = [case for case in compared if case.term.name == term.name]
        contrasts = tuple(contrast_of(case, rule.error / len(compared)) for case in cases)
        word = _word_of(term, contrasts, decisive=decisive or term.how == "any data")
        claims.append(Claim(term.name, word, contrasts, role == "beside"))
    return claims


def _word_of(term: Term, contrasts: Sequence[Contrast], *, decisive: bool) -> Word:
    """The outcome of one claim; evidence that is not decisive tells only what carries over."""
    if not contrasts:
        return "not yet"
    if not term.bounded:
        return "shown"
    if any(contrast.outside for contrast in contrasts):
        return "disagrees" if decisive else "does not carry over"
    if all(contrast.inside for contrast in contrasts):
        return "agrees" if decisive else "carries over"
    return "undecided"


def _reasons(
    rule: TargetRule, evidence: Mapping[str, Evidence], outcome: Outcome
) -> tuple[Reason, ...]:
    """Which claims fail where there are others, which part of the paper is replaced, and what the
    verdict is limited to.
    """
    reasons: list[Reason] = []
    if outcome.word in ("carries over", "does not carry over"):
        reasons.append(Reason(Cause.REPLACED_PART, (rule.contradicted_by or rule.parts,)))
    claims = [claim for claim in outcome.claims if not claim.beside]
    failing = tuple(claim.name for claim in claims if claim.word == outcome.word)
    if outcome.word in FAILS and len(claims) > 1:
        reasons.append(Reason(Cause.CLAIMS_FAIL, failing))
    return (*reasons, *_limits(rule, evidence))


def _across(contrasts: Sequence[str]) -> Reason:
    """The first of the intervals that are neither inside nor outside, and the number of others."""
    named = list(contrasts[:_MOST_NAMED])
    if len(contrasts) > _MOST_NAMED:
        named.append(f"and {len(contrasts) - _MOST_NAMED} more")
    return Reason(Cause.ACROSS_THE_END, tuple(named))


def _limits(rule: TargetRule, evidence: Mapping[str, Evidence]) -> tuple[Reason, ...]:
    """The reason that a verdict speaks only of the models that the runs trained, where what they
    repeat is not the training of models, such as games about one model; else none.

    ``evidence`` holds the runs by their name.
    """
    units = {run.unit for run in evidence.values()}
    if "game" in units or (rule.unit == "model" and units != {"model"}):
        return (Reason(Cause.THESE_MODELS),)
    return ()


def decide_alone(evidence: Evidence, level: Level) -> Outcome:
    """What one run says by itself; of a target that several notebooks share, about its own part."""
    rule = replace(evidence.rule, notebooks=("this run",))
    return decide(rule, {"this run": evidence}, level, seeds=rule.runs)


def pool(runs: Sequence[Evidence], level: Level = "substitute") -> Evidence:
    """Evidence of runs that differ in the seed alone, as one.

    Runs of identifiers on a substitute train models of their own, which are strata; nearer to the
    paper they score one public model, of which other seeds only draw new alternatives.
    """
    # As many runs as the rule asks for models count as one model each, with their means; games of
    # fewer runs are put together, and speak of the models of these runs.
    unit = runs[0].unit
    rule = runs[0].rule
    if rule.unit == "model" and unit != "model" and len(runs) >= rule.repetitions:
        return _pooled(runs, _means, "model")
    if unit == "identifiers" and level != "substitute":
        return _pooled(runs, _of_one_model, unit)
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
    """Evidence, repeated by ``unit``, whose samples are those of the runs: the samples of all runs
    on one comparison become one by ``combined``.
    """
    samples = [run.samples() for run in runs]  # of each run, by term and label
    values: dict[str, dict[str, Sample]] = {term.name: {} for term in runs[0].rule.terms}
    for name, label in dict.fromkeys(key for by_key in samples for key in by_key):
        values[name][label] = combined(
            [by_key[name, label] for by_key in samples if (name, label) in by_key]
        )
    notes = dict.fromkeys(run.note for run in runs if run.note)
    return Evidence(
        target=runs[0].target,
        unit=unit,
        values=values,
        note=" ".join(notes),
        reading=runs[0].reading,
    )


def _means(samples: Sequence[Sample]) -> Sample:
    """One value per run, the mean of its repetitions, none of a run without any; of estimates that
    are all exact, those as `_together` puts them.
    """
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


def _of_one_model(samples: Sequence[Sample]) -> Sample:
    """The mean of estimates from the same identifiers, with the mean of their errors: they do not
    differ in what limits them.
    """
    estimates = [sample for sample in samples if isinstance(sample, Estimate)]
    if len(estimates) < len(samples):
        return _together(samples)
    values = [estimate.value for estimate in estimates]
    errors = [estimate.error for estimate in estimates]
    return Estimate(float(np.mean(values)), float(np.mean(errors)))


def _comparisons(
    rule: TargetRule, evidence: Mapping[str, Evidence], role: Role
) -> Iterator[Compared]:
    """The comparisons of one role.

    Labels name the notebook where a rule needs several.
    """
    terms = [term for term in rule.terms if term.role == role]
    for notebook, run in evidence.items():
        prefix = notebook if len(rule.notebooks) > 1 else ""
        for term in terms:
            yield from _comparisons_of(term, run, prefix)


def _comparisons_of(term: Term, run: Evidence, prefix: str) -> Iterator[Compared]:
    """One comparison for each sample of a term, or one for all where the largest is compared;
    ``prefix``, which may be empty, begins their labels.
    """
    samples = {
        label: sample for (name, label), sample in run.samples().items() if name == term.name
    }
    if term.how == "largest" and samples:
        listed = [sample for sample in samples.values() if not isinstance(sample, Estimate)]
        yield Compared(term, prefix, Joined(listed))
        return
    for label, sample in samples.items():
        yield Compared(term, ", ".join(filter(None, [prefix, label])), sample)


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
    unmeasured = _unmeasured(rule, evidence)
    if unmeasured:
        yield Reason(Cause.NOT_MEASURED, tuple(sorted(unmeasured)))
    if seeds < rule.runs:
        yield Reason(Cause.FEW_SEEDS, (_counted(seeds, "seed"), f"{rule.runs}"))
    unmet = _unmet_conditions(rule, evidence)
    if unmet:
        yield Reason(Cause.UNMET_CONDITION, tuple(unmet))
    yield from _too_few_repetitions(rule, evidence)


def _unmeasured(rule: TargetRule, evidence: Mapping[str, Evidence]) -> set[str]:
    """Names of the terms without samples, or with a sample without values; a claim that stands
    beside may lack them.
    """
    beside = {term.name for term in rule.terms if term.role == "beside"}
    names = set[str]()
    for run in evidence.values():
        names |= {name for name, samples in run.values.items() if samples == {}}
        for (name, _), sample in run.samples().items():
            if not isinstance(sample, Estimate) and not len(sample):
                names.add(name)
    return names - beside


def _unmet_conditions(rule: TargetRule, evidence: Mapping[str, Evidence]) -> list[str]:
    """Conditions whose whole interval is not in the range, in words; those of a single repetition,
    which have no finite interval, say so.
    """
    unmet: list[str] = []
    for condition in _comparisons(rule, evidence, "needed"):
        contrast = contrast_of(condition, rule.error)
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
        counts: list[int] = []
        for case in _comparisons(rule, {notebook: run}, "claimed"):
            counts.extend(_sizes(case.sample))
        count = min(counts, default=needed)
        if count < needed:
            yield Reason(Cause.FEW_REPETITIONS, (_counted(count, run.unit), f"{needed}"))


def _sizes(sample: Sample | Joined) -> list[int]:
    """The number of repetitions of a sample, or of each that is joined; none of an estimate."""
    if isinstance(sample, Joined):
        return [len(values) for values in sample.samples]
    return [] if isinstance(sample, Estimate) else [len(sample)]


def _needed_repetitions(rule: TargetRule, unit: Unit) -> int:
    """The rule's number where runs repeat what the rule asks for; games have their own."""
    if unit == rule.unit:
        return rule.repetitions
    return FEWEST_GAMES if unit == "game" else 1


def _counted(count: int, noun: str) -> str:
    """The count with its noun, such as "1 seed" or "2 seeds"."""
    return f"{count} {noun}{'s' if count > 1 else ''}"
