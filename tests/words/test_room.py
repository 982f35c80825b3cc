"""Nonsense in the whole room ``words``: no number, field or decision follows from a sentence."""

import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import wraps
from importlib import import_module
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

import paperlib.words
from paperlib import audit_dp_training
from paperlib.attacks.dataset_inference import infer_by_schedule
from paperlib.attacks.learned import BoostedTrees
from paperlib.audits import assert_private, audit, audit_features, audit_losses
from paperlib.audits.dp_training.checks import DpCheck
from paperlib.audits.panoramia.audit import AuditData, audit_model
from paperlib.audits.panoramia.folds import Shares
from paperlib.audits.panoramia.memorization import copies, text_warnings
from paperlib.audits.panoramia.results import NullCheck
from paperlib.bounds import (
    audit_one_run,
    audit_output_set,
    combine_runs,
    limit_of_detection,
    plan_audit,
)
from paperlib.bounds.ranks.detection import rank_limit_of_detection
from paperlib.core import AuditResult, MembershipScores
from paperlib.core.checks import find_ties
from paperlib.core.facts import Refusal
from paperlib.core.results import json_ready
from paperlib.generators.text import copied_text
from paperlib.io import read_scores
from paperlib.reproduction.validity.dp_faults import made_up_records, train_with_fault
from paperlib.words.designs import tie_warnings
from paperlib.words.verdict import Verdict, plain_verdict
from tests.words.test_wording import of_labels as audited_labels

TEXTS = {
    "claim",
    "assumptions",
    "condition",
    "warnings",
    "notes",
    "headline",
    "sentence",
    "sentences",
    "next_steps",
    "steps",
    "purpose",
    "title",
    "finding",
    "exposed",
    "beside",
    "attack",
    "about",
    "refused",
}  # names of JSON fields that hold words for people
NONSENSE = "replacing add/remove 7 copies probably reversed not finite not tried FAILS"
"""What an earlier reader of sentences would obey."""


def nonsense(value: Any) -> Any:
    """The value with nonsense in place of each sentence: a text of two words or more."""
    if isinstance(value, str):
        return NONSENSE if " " in value else value
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        return type(value)(map(nonsense, value))
    if isinstance(value, dict):
        return {key: nonsense(item) for key, item in value.items()}
    if isinstance(value, Refusal | Verdict):
        changed = {field.name: nonsense(getattr(value, field.name)) for field in fields(value)}
        return replace(value, **changed)
    return value


def reworded(function: FunctionType) -> Callable[..., Any]:
    """The function, with nonsense in what it returns or yields."""

    @wraps(function)
    def other(*positional: Any, **named: Any) -> Any:
        returned = function(*positional, **named)
        if inspect.isgenerator(returned):
            return map(nonsense, returned)
        return nonsense(returned)

    return other


def room() -> Iterator[ModuleType]:
    """The modules of ``words``."""
    for module in pkgutil.walk_packages(paperlib.words.__path__, "paperlib.words."):
        yield import_module(module.name)


def reword(monkeypatch: pytest.MonkeyPatch) -> int:
    """Every sentence that ``words`` makes or holds becomes nonsense, wherever it was imported; how
    many names changed.
    """
    others: dict[int, Any] = {}
    for module in room():
        for value in vars(module).values():
            if isinstance(value, FunctionType) and value.__module__ == module.__name__:
                others[id(value)] = reworded(value)
            elif isinstance(value, str | tuple | dict) and nonsense(value) != value:
                others[id(value)] = nonsense(value)
    changed = 0
    for name, module in [*sys.modules.items()]:
        if name.startswith("paperlib."):
            for attribute, value in [*vars(module).items()]:
                if id(value) in others and not attribute.startswith("__"):
                    monkeypatch.setattr(module, attribute, others[id(value)])
                    changed += 1
    return changed


def facts(value: Any) -> Any:
    """What a program reads of a result, as JSON: all fields but the words for people and the
    time that a check took.
    """
    if isinstance(value, dict):
        return {
            name: facts(item)
            for name, item in value.items()
            if name not in TEXTS
            and name != "seconds"
            and not (name == "search" and " " in str(item))
        }
    return [facts(item) for item in value] if isinstance(value, list) else value


RNG = np.random.default_rng(3)
LEAK = MembershipScores(RNG.normal(2, 1, 120), RNG.normal(0, 1, 130))
TURNED = MembershipScores(LEAK.nonmember, LEAK.member)
LOSSES = MembershipScores(-LEAK.member, -LEAK.nonmember, higher_means_member=False)
EQUAL = MembershipScores(np.full(60, 3.5), np.full(60, 3.5))
FEW_TURNED = MembershipScores(
    np.where(np.arange(600) < 40, -9.0, RNG.normal(size=600)), RNG.normal(size=600)
)  # a leak of few records that shows in the other direction alone
ROUNDED = MembershipScores(np.maximum(LEAK.member, 1.5), np.maximum(LEAK.nonmember, 1.5))
TIED = MembershipScores(np.round(LEAK.member), np.round(LEAK.nonmember))


def of_searches() -> Iterator[AuditResult]:
    """One result of each search over thresholds, tied and not."""
    for scores in (LEAK, TIED):
        for thresholds in ("anytime", "dyadic", "bonferroni", "split", 1.0):
            yield audit_one_run(scores, guess="both", thresholds=thresholds, delta=1e-4)
        yield audit_one_run(scores, guess="grid")
    yield audit_output_set(*TURNED.split(seed=1))


def of_scores() -> Iterator[Any]:
    """Every audit of scores: a leak, none, refusals of each kind, and scores that were rounded."""
    for scores in (LEAK, LOSSES, TURNED, EQUAL, FEW_TURNED, ROUNDED):
        audits = audit(scores, design="game")
        document = audits.document(claimed_epsilon=0.5)
        yield [document.judged(limit)[1:] for limit in (None, 0.5, 9.0)]
        yield [audit.result is None for audit in audits.audits]
        yield len(document.answer_warnings)
        yield document.to_dict()
    yield audit_losses(LEAK.member, LEAK.nonmember, unit=units_of(120, 130)).headline


def units_of(members: int, nonmembers: int) -> tuple[list[str], list[str]]:
    """A name for each pair of rows of both sides."""
    named = [f"m{row // 2}" for row in range(members)]
    return named, [f"n{row // 2}" for row in range(nonmembers)]


def of_features() -> Iterator[Any]:
    """Several signals per example: of rows, of named units, and of none that tells."""
    rows = np.concatenate([LEAK.member, LEAK.nonmember])
    flags = np.arange(rows.size) < LEAK.member.size
    yield audit_features(rows, flags)
    yield audit_features(rows, flags, unit=list(chain(*units_of(120, 130))), design="game")
    yield audit_features(np.sin(np.arange(rows.size)), flags)


def of_labels() -> Iterator[Any]:
    """Labels: with tossed coins, with a gap that is not measured, and after the gap."""
    for options in ({"tossed": True}, {}, {"unseen": True}):
        yield audited_labels(**options).to_dict()


def of_copies() -> Iterator[Any]:
    """Records that are equal, or share their coins, and texts that repeat their training text."""
    rng = np.random.default_rng(7)
    values = rng.normal(size=500)
    sides = np.repeat(rng.random(60) < 0.5, 10)
    near = np.repeat(rng.normal(size=60), 10) + 1e-4 * rng.normal(size=600)
    for found in (
        find_ties("scores", values),
        find_ties("scores", np.append(values, values[:2])),
        find_ties("scores", near[sides], near[~sides]),
    ):
        yield found
        yield len(tie_warnings(found))
    chunks = np.arange(160).reshape(20, 8)
    for other in (chunks, chunks + 500):
        compared = copied_text(chunks, chunks, other, length=8)
        yield compared
        yield len(text_warnings(compared))


def of_runs() -> Iterator[AuditResult]:
    """Several runs, together and in turn, one of them reversed."""
    rng = np.random.default_rng(6)
    reversed_run = MembershipScores(rng.normal(0, 1, 90), rng.normal(2, 1, 100))
    yield combine_runs([LEAK, reversed_run])
    yield combine_runs([reversed_run, LEAK], planned=900)
    yield plan_audit(200, attack=LEAK, simulations=5)
    yield plan_audit(200, attack=TURNED, simulations=5)
    yield plan_audit(200, simulations=5)


def of_limits() -> Iterator[Any]:
    """Limits of detection: of scores on both sides, of weak leaks and of ranks."""
    few = MembershipScores(np.arange(20.0), np.arange(20.0) + 0.5)
    for options in ({}, {"guess": "nonmembers"}, {"strength": 1.0}, {"epsilon": 9.0}):
        yield limit_of_detection(few, simulations=10, **options)
    yield rank_limit_of_detection([16] * 30, simulations=10)
    yield rank_limit_of_detection([16] * 30, margins=np.arange(30.0), simulations=10)


def of_training() -> Iterator[Any]:
    """Checks of sound training, of a fault, and of one whose epsilon is larger than claimed."""
    stated: dict[str, Any] = {"clipping_norm": 1, "noise_multiplier": 1, "steps": 32}
    stated["sampling_rate"] = 0.25
    records = made_up_records()
    yield audit_dp_training(train_with_fault, records, **stated)
    yield audit_dp_training(train_with_fault, records, **{**stated, "noise_multiplier": 4})
    for claimed in (3, 20):
        try:
            yield assert_private(train_with_fault, records, epsilon=claimed, **stated).passed
        except AssertionError:
            yield "fails"


def train_leaky(rows: np.ndarray, seed: int) -> Callable[[np.ndarray], np.ndarray]:
    """A model that knows its rows."""
    known = {row.tobytes() for row in rows}
    return lambda asked: -6.0 * np.array([row.tobytes() in known for row in asked])


def of_own_data() -> Iterator[Any]:
    """PANORAMIA on rows: with a null target, real non-members, units, and without a leak."""
    rng = np.random.default_rng(4)
    members, generated, nonmembers, known = rng.normal(size=(4, 300, 3))
    batches = {"members": (members,), "generated": (generated,), "nonmembers": (nonmembers,)}
    quick = (BoostedTrees(rounds=10, smallest_leaf=10),)
    data = AuditData(**batches, known=(known,), examples=lambda rows: rows, attacks=quick)
    options: dict[str, Any] = {"repetitions": 2, "restarts": 1}
    leaky = train_leaky(members, 0)
    for audited in (
        audit_model(leaky, replace(data, unit="customer"), **options),
        audit_model(leaky, data, train_again=train_leaky, **options),
        audit_model(train_leaky(known, 0), data, known_c=0.0, **options),
    ):
        document = audited.document(subject="a model", claimed_epsilon=0.5)
        yield audited.null
        yield [document.judged(limit)[1:] for limit in (None, 0.5, 9.0)]
        yield document.to_dict()
    yield copies(generated, generated, nonmembers)
    yield Shares(100, 200, 1.0)


def of_identifiers() -> Iterator[Any]:
    """Dataset inference by both schedules."""
    features = np.random.default_rng(5).normal(size=(30, 6, 2))
    features[:, 0] += 1
    yield from infer_by_schedule(features, trees=3).values()


def of_reading() -> Iterator[Any]:
    """Scores from files whose columns have names of another direction, and of two measures."""
    with TemporaryDirectory() as folder:
        first = Path(folder, "first.csv")
        second = Path(folder, "second.csv")
        first.write_text("loss\n1\n")
        second.write_text("perplexity\n2\n")
        loaded = read_scores(first, second, kind="scores")
    yield [loaded.kind, loaded.source, len(loaded.warnings), *map(vars, loaded.name_conflicts)]


MADE = {
    function.__name__.replace("_", " "): function
    for function in (
        of_searches,
        of_scores,
        of_features,
        of_labels,
        of_copies,
        of_runs,
        of_limits,
        of_training,
        of_own_data,
        of_identifiers,
        of_reading,
    )
}


def outcomes(make: Callable[[], Iterator[Any]]) -> list[Any]:
    """Facts of each result, and what a claimed epsilon of 0.5 is called."""
    read: list[Any] = []
    for result in make():
        if isinstance(result, AuditResult):
            verdict = plain_verdict(result, claimed_epsilon=0.5)
            read += [facts(result.to_dict()), verdict.refuted, len(verdict.sentences)]
        else:
            read.append(facts(json_ready(result)))
            if isinstance(result, NullCheck):
                read.append(result.passes)
    return read


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_nonsense_in_the_whole_room_changes_no_fact(make, monkeypatch):
    before = outcomes(make)
    assert reword(monkeypatch) > 100
    assert outcomes(make) == before


def test_the_nonsense_reaches_each_kind_of_sentence(monkeypatch):
    """The broken twin of the test above would reword nothing, and pass."""
    limit = limit_of_detection(LEAK, simulations=5)
    result = audit_one_run(TURNED)
    check = DpCheck(name="steps", passed=True, kind="steps", numbers={"most": 3, "stated": 4})
    assert (check.finding, is_dataclass(limit)) == ("3 steps, 4 stated", True)
    reword(monkeypatch)
    assert limit.sentence == result.headline == NONSENSE
    again = audit_one_run(TURNED)
    assert {again.claim, again.condition, again.search} == {NONSENSE}
    assert [refusal.sentence for refusal in again.refusals] == [NONSENSE]
    assert again.refusals[0].code == result.refusals[0].code
    assert replace(check, kind="rate", numbers={"count": 1, "total": 2, "rate": 0.5}).finding == (
        NONSENSE
    )
    assert str(NullCheck(0.0, -0.01, 0.01, 5)) == NONSENSE


def test_a_decision_that_reads_a_sentence_is_seen(monkeypatch):
    """The broken twin: a leak is found by the words of the claim."""

    def reads_the_claim() -> Iterator[Any]:
        yield "training procedure is not" in audit_one_run(LEAK).claim

    before = outcomes(reads_the_claim)
    reword(monkeypatch)
    assert (before, outcomes(reads_the_claim)) == ([True], [False])
