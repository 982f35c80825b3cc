"""All tables and figures of the papers with their outcomes, a row for each."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import pandas as pd

from paperlib.reproduction.papers.verdict.contrasts import MOST_REPETITIONS, Contrast
from paperlib.reproduction.papers.verdict.earlier import replaces_images
from paperlib.reproduction.papers.verdict.evidence import (
    Estimate,
    Evidence,
    Level,
    Scale,
    TargetRule,
    from_dict,
    rules,
)
from paperlib.reproduction.papers.verdict.outcome import (
    FAILS,
    Claim,
    Outcome,
    Word,
    decide,
    joint_word,
    pool,
)
from paperlib.reproduction.papers.verdict.reasons import Cause, Reason
from paperlib.reproduction.papers.verdict.records import compared

CSV_NAME = "status.csv"
LEVELS: tuple[Level, ...] = get_args(Level)[:-1]  # no made-up data on the page


@dataclass(frozen=True)
class Run:
    """Evidence of one run on one target."""

    notebook: str
    setting: str  # its parameters but the seed, as text: runs that share it are pooled
    seed: str
    evidence: Evidence
    scale: Scale
    origin: str  # when and on what it was measured; empty for a run of this book
    command: str  # what repeats it
    seconds: float = 0.0  # how long it took
    reduced: bool = False  # whether its substitute is the paper's own data at a lower resolution
    profile: str = ""
    file: str = ""  # path of its result file in the checkout
    sha256: str = ""  # checksum of that file


@dataclass(frozen=True)
class JudgedTarget:
    """One target judged by runs of equal settings."""

    rule: TargetRule
    outcome: Outcome
    runs: tuple[Run, ...] = ()

    @property
    def reading(self) -> str:
        """The reading of the paper that its runs share; empty for several, or where the rule has
        none.
        """
        readings = {run.evidence.reading for run in self.runs}
        return readings.pop() if len(readings) == 1 else ""

    @property
    def level(self) -> Level | None:
        """The lowest scale of the runs."""
        levels: list[Level] = [run.scale.level for run in self.runs]
        return max(levels, key=LEVELS.index, default=None)

    @property
    def to_decide(self) -> str:
        """What would decide an undecided target if mean and spread stay as they are, and its
        cost.
        """
        times = self.outcome.times_needed
        if self.outcome.word != "undecided" or math.isnan(times) or times == 1:
            return ""
        hours = self._hours()
        if math.isinf(times):
            spent = f"; these took {hours:.1f} hours" if hours else ""
            return f"other settings, not {MOST_REPETITIONS:,} repetitions{spent}"
        spent = f": {times * hours:.1f} hours in place of {hours:.1f}" if hours else ""
        return f"about {times:,.{int(times < 10)}f} times the repetitions{spent}"

    def _hours(self) -> float:
        """What the runs took; 0 where the time of a page is not that of its measurement."""
        if not all(run.scale.measured_here for run in self.runs):
            return 0.0
        return sum(run.seconds for run in self.runs) / 3600

    @property
    def rank(self) -> tuple[int, bool, bool, int]:
        """Smaller is better: the nearer scale, then the paper's own data at a lower resolution,
        then what lacks no measurement, then the more repetitions.

        A distance on `LEVELS`, two flags of which False is better, and minus the number of values.
        """
        samples = [sample for run in self.runs for sample in run.evidence.samples().values()]
        values = sum(1 if isinstance(sample, Estimate) else len(sample) for sample in samples)
        distance = LEVELS.index(self.level) if self.level else len(LEVELS)
        other_data = not any(run.reduced for run in self.runs)
        return distance, other_data, self.outcome.is_because_of(Cause.NOT_MEASURED), -values


def judge(
    runs: Iterable[Mapping[str, Any]], measured: Iterable[Mapping[str, Any]] = ()
) -> list[JudgedTarget]:
    """Every target by the evidence at hand, at least one entry each, its best evidence first.

    Args:
        runs: Result files of the book's own runs, as dictionaries.
        measured: Result files of runs that are committed; what a page of the book shows of them
            again does not count twice.

    Returns:
        In the order of the rules: for each target an entry for all readings together where the rule
            has several, then an entry for each setting; "not yet" where it was never run.
    """
    kept = [run for result in measured for run in _runs_of(result, committed=True)]
    # A page that shows the table of a committed run records its evidence again: that run alone
    # counts.
    fresh = [run for result in runs for run in _runs_of(result) if not _repeats(run, kept)]
    judged: list[JudgedTarget] = []
    for target, rule in rules().items():
        about_target = [run for run in fresh + kept if run.evidence.target == target]
        entries = sorted(_judged(rule, about_target), key=lambda entry: entry.rank)
        if not entries:
            judged.append(JudgedTarget(rule, Outcome("not yet")))
            continue
        if rule.readings:
            judged.append(_over_readings(rule, entries))
        judged.extend(entries)
    return judged


def _repeats(run: Run, kept: Iterable[Run]) -> bool:
    """Whether a kept run of another setting has the same evidence, with a value for each
    repetition: such a run shows that of the other. Estimates and exact values may be equal anyhow,
    and tell nothing.
    """
    samples = run.evidence.samples().values()
    if all(isinstance(sample, Estimate) or not len(sample) for sample in samples):
        return False
    return any(run.setting != other.setting and run.evidence == other.evidence for other in kept)


def _runs_of(result: Mapping[str, Any], *, committed: bool = False) -> Iterator[Run]:
    """A run for each target of a result file, but those on made-up data."""
    # Empty parameters count as absent: earlier runs lack parameters that came later.
    parameters = {
        name: value for name, value in result["parameters"].items() if value not in ("", [], {})
    }
    setting = repr(sorted((name, value) for name, value in parameters.items() if name != "seed"))
    provenance = result["provenance"]
    origin = ""
    if committed:
        machine = provenance.get("gpu") or provenance.get("cpu")
        origin = f"measured {str(provenance.get('date', ''))[:10]} on {machine}"
    for evidence, scale in map(from_dict, result["records"]):
        reduced = replaces_images(result["parameters"])
        if scale.level == "paper's data" and reduced:
            scale = replace(scale, level="substitute")
        if scale.level != "made-up data":
            yield Run(
                notebook=result["notebook"],
                setting=setting,
                seed=repr(result["parameters"].get("seed")),
                evidence=evidence,
                scale=scale,
                origin=origin,
                command=provenance.get("command", ""),
                seconds=float(provenance.get("seconds", 0.0)),
                reduced=reduced,
                profile=result.get("profile", ""),
                file=result.get("file", ""),
                sha256=result.get("sha256", ""),
            )


def _judged(rule: TargetRule, runs: Sequence[Run]) -> list[JudgedTarget]:
    """One outcome for each setting of the runs of a target; where its rule needs several notebooks,
    a single outcome from the best setting of each. None without runs.
    """
    alone = [_decided(rule, [group]) for group in _by_setting(runs)]
    if len(rule.notebooks) == 1 or not alone:
        return alone
    best: list[JudgedTarget] = []
    for name in dict.fromkeys(run.notebook for run in runs):
        of_notebook = [entry for entry in alone if entry.runs[0].notebook == name]
        best.append(min(of_notebook, key=lambda entry: entry.rank))
    return [_decided(rule, [entry.runs for entry in best])]


def _by_setting(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs of one setting, scale and reading together, each seed and each evidence once."""
    settings: dict[tuple[str, ...], dict[str, Run]] = {}
    for run in runs:
        setting = (
            run.notebook,
            run.setting,
            run.scale.level,
            run.scale.facts,
            run.evidence.reading,
        )
        by_seed = settings.setdefault(setting, {})
        # Equal evidence counts once whatever its seed, as that of a committed table without one.
        if all(other.evidence != run.evidence for other in by_seed.values()):
            by_seed.setdefault(run.seed, run)
    return [list(by_seed.values()) for by_seed in settings.values()]


def _decided(rule: TargetRule, groups: Sequence[Sequence[Run]]) -> JudgedTarget:
    """The outcome of runs in ``groups``, each of one notebook and setting, which differ in the seed
    alone and are pooled; the scale is the lowest of all.
    """
    runs = tuple(run for group in groups for run in group)
    judged = JudgedTarget(rule, Outcome("not yet"), runs)
    level = judged.level or LEVELS[-1]
    evidence = {group[0].notebook: pool([run.evidence for run in group], level) for group in groups}
    return replace(judged, outcome=decide(rule, evidence, level, seeds=min(map(len, groups))))


def _over_readings(rule: TargetRule, judged: Sequence[JudgedTarget]) -> JudgedTarget:
    """What all readings of the paper agree on, by the best evidence in each.

    ``judged`` has the better evidence first.
    """
    best: dict[str, JudgedTarget] = {}
    for entry in judged:
        if entry.reading in rule.readings:
            best.setdefault(entry.reading, entry)
    outcomes = {reading: best[reading].outcome for reading in rule.readings if reading in best}
    contrasts = tuple(
        _of_reading(contrast, reading)
        for reading, outcome in outcomes.items()
        for contrast in outcome.contrasts
    )
    claims = tuple(_in_each_reading(rule, outcomes))
    outcome = _joint(
        rule, outcomes, replace(Outcome("undecided"), contrasts=contrasts, claims=claims)
    )
    runs = tuple(run for reading in outcomes for run in best[reading].runs)
    return JudgedTarget(rule, outcome, runs)


def _in_each_reading(rule: TargetRule, outcomes: Mapping[str, Outcome]) -> Iterator[Claim]:
    """Each claim over all readings: it fails or holds where it does so in every one."""
    for term in rule.terms:
        if term.role == "needed":
            continue
        words: list[Word] = []
        contrasts: list[Contrast] = []
        for reading in rule.readings:
            claim = _claim_of(outcomes.get(reading), term.name)
            words.append(claim.word if claim else "not yet")
            if claim:
                contrasts += [_of_reading(contrast, reading) for contrast in claim.contrasts]
        yield Claim(term.name, _shared_word(words), tuple(contrasts), term.role == "beside")


def _claim_of(outcome: Outcome | None, name: str) -> Claim | None:
    """The claim of this name; None where the reading was not run."""
    for claim in outcome.claims if outcome else ():
        if claim.name == name:
            return claim
    return None


def _shared_word(words: Sequence[Word]) -> Word:
    """The outcome that all readings share, the weaker of two that only the data tell apart, or
    undecided.
    """
    kinds = set(words)
    if len(kinds) == 1:
        return words[0]
    if kinds == set(FAILS):
        return "does not carry over"
    if kinds == {"agrees", "carries over"}:
        return "carries over"
    return "undecided"


def _joint(rule: TargetRule, outcomes: Mapping[str, Outcome], joint: Outcome) -> Outcome:
    """``joint``, which has the claims over all readings, with its word, reasons and repetitions
    needed, from the ``outcomes`` by reading; what fails in every one of them is the first reason.
    """
    reasons: list[Reason] = []
    failing = tuple(
        claim.name for claim in joint.claims if claim.word in FAILS and not claim.beside
    )
    if failing:
        reasons.append(Reason(Cause.FAILS_IN_EACH_READING, failing))
    words = [outcomes[name].word if name in outcomes else "not yet" for name in rule.readings]
    times = math.nan
    if len(set(words)) == 1 and outcomes:
        reasons.append(_of_each(outcomes))
        times = float(np.max([outcome.times_needed for outcome in outcomes.values()]))
    else:
        pairs = zip(rule.readings, words, strict=True)
        each = tuple(f"{reading}: {word}" for reading, word in pairs)
        reasons.append(Reason(Cause.READINGS_DIFFER, each))
    word = joint_word(joint.claims)
    if word == "not yet":
        word = "undecided"
    return replace(joint, word=word, reasons=tuple(reasons), times_needed=times)


def _of_each(outcomes: Mapping[str, Outcome]) -> Reason:
    """That all readings have one outcome, with the reason of each."""
    of_readings: list[str] = []
    for reading, outcome in outcomes.items():
        if outcome.reason:
            of_readings.append(f"{reading}: {outcome.reason}")
    return Reason(Cause.EACH_READING, tuple(of_readings))


def _of_reading(contrast: Contrast, reading: str) -> Contrast:
    """The comparison with its reading in the label."""
    return replace(contrast, label=", ".join(filter(None, [reading, contrast.label])))


def status_table(judged: Sequence[JudgedTarget]) -> pd.DataFrame:
    """A row per entry of `judge`, all in words; ``best`` is true for the first row of each target,
    which has its best evidence.
    """
    rows = [
        {
            "id": entry.rule.target,
            "paper": entry.rule.paper,
            "item": entry.rule.item,
            "outcome": entry.outcome.word,
            "reason": entry.outcome.reason,
            "to_decide": entry.to_decide,
            "reading": entry.reading,
            "scale": entry.level or "",
            "facts": each_once(run.scale.facts for run in entry.runs),
            "claim": entry.rule.claim,
            "claims": "; ".join(map(str, entry.outcome.claims)),
            "compared": "; ".join(compared(entry.outcome)),
            "paper_number": entry.rule.printed,
            "notebook": each_once(run.notebook for run in entry.runs)
            or "; ".join(entry.rule.notebooks),
            "seeds": ", ".join(seeds_of(entry.runs)),
            "command": each_once(run.command for run in entry.runs),
            "origin": each_once(run.origin for run in entry.runs),
            "note": each_once(run.evidence.note for run in entry.runs),
        }
        for entry in judged
    ]
    table = pd.DataFrame(rows)
    table.insert(3, "best", ~table["id"].duplicated())
    return table


def each_once(texts: Iterable[str]) -> str:
    """Different texts, one after the other."""
    return "; ".join(dict.fromkeys(filter(None, texts)))


def seeds_of(runs: Sequence[Run]) -> list[str]:
    """Seeds of the runs in their order, each once; none of runs without a seed."""
    return sorted({run.seed for run in runs} - {"None"}, key=int)
