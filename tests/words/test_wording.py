"""No decision reads a sentence: with nonsense in the place of each, all else stays the same."""

from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pandas as pd
import pytest

from paperlib.audits import audit, audit_features, audit_labels, audit_release
from paperlib.audits.document import AuditDocument
from paperlib.audits.language.chat import audit_chat, chat_questions
from paperlib.audits.language.corpus import corpus_identifiers
from paperlib.audits.language.language_model import audit_language_model
from paperlib.bounds import (
    ErrorCounts,
    audit_bayesian,
    audit_clopper_pearson,
    audit_f_dp,
    audit_gaussian_dp,
    audit_output_set,
    audit_panoramia,
    audit_ranks,
    combine_runs,
    epsilon_star,
)
from paperlib.core import AuditResult, MembershipScores, toss_coins
from paperlib.core.facts import Refusal
from paperlib.generators.identifiers import generate_identifiers
from paperlib.models.language import LanguageModelConfig, new_language_model, train_tokenizer
from paperlib.words.verdict import plain_verdict

SENTENCES = {
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
    "refused",
    "purpose",
    "title",
    "note",
}  # names of JSON fields that hold words for people
WORDS = (
    "replacing",
    "add/remove",
    "with all its 7 copies",
    "probably reversed",
    "so they say nothing",
)


def nonsense(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every sentence of a result becomes words that an earlier reader of sentences would obey."""
    numbers = count()

    def words(text: str) -> str:
        return f"{WORDS[next(numbers) % len(WORDS)]} {next(numbers)}" if text else ""

    own = AuditResult.__post_init__

    def reworded(result: AuditResult) -> None:
        for name in ("claim", "condition"):
            object.__setattr__(result, name, words(getattr(result, name)))
        for name in ("assumptions", "warnings", "notes"):
            object.__setattr__(result, name, tuple(map(words, getattr(result, name))))
        own(result)

    made = Refusal.__init__

    def refused(refusal: Refusal, **fields: Any) -> None:
        made(refusal, **fields)
        object.__setattr__(refusal, "sentence", words(refusal.sentence))
        object.__setattr__(refusal, "steps", tuple(map(words, refusal.steps)))

    monkeypatch.setattr(AuditResult, "__post_init__", reworded)
    # A class that was made without ``__post_init__`` never calls a later one.
    monkeypatch.setattr(Refusal, "__init__", refused)


def decisions(value: Any) -> Any:
    """JSON without the fields that hold sentences."""
    if isinstance(value, dict):
        return {name: decisions(item) for name, item in value.items() if name not in SENTENCES}
    return [decisions(item) for item in value] if isinstance(value, list) else value


RNG = np.random.default_rng(0)
STRONG = MembershipScores(RNG.normal(2, 1, 150), RNG.normal(0, 1, 160))
NONE = MembershipScores(RNG.normal(0, 1, 150), RNG.normal(0, 1, 160))
TURNED = MembershipScores(STRONG.member, STRONG.nonmember, higher_means_member=False)
EQUAL = MembershipScores(np.full(60, 3.5), np.full(60, 3.5))


def of_scores(scores: MembershipScores, **options: Any) -> AuditDocument:
    return audit(scores, **options).document(claimed_epsilon=1.0)


COINS = toss_coins([f"canary {number}" for number in range(300)], seed=0, copies=4)


def of_canaries() -> AuditDocument:
    values = np.where(COINS.included, 2.5, 0.0) + np.linspace(0, 1e-3, 300)
    scores = dict(zip(COINS.ids, values, strict=True))
    return audit(scores, kind="scores", coins=COINS).document(claimed_epsilon=1.0)


def of_labels(tossed: bool = False, unseen: bool = False) -> AuditDocument:
    labels = np.arange(200) % 3
    chances = np.full((200, 3), 0.1)
    chances[np.arange(200), labels] = 0.8
    proxies = (labels + 1) % 3
    others = None
    if unseen:
        even = np.full((200, 3), 0.1)
        even[np.arange(200), np.where(np.arange(200) % 2, labels, proxies)] = 0.8
        others = {"probabilities": even, "labels": labels, "proxies": proxies}
    audits = audit_labels(chances, labels, proxies, tossed=tossed, unseen=others)
    return audits.document(claimed_epsilon=1.0)


def of_a_release() -> AuditDocument:
    rng = np.random.default_rng(1)
    members, others = rng.normal(size=(60, 4, 4)), rng.normal(size=(60, 4, 4))
    released = members + rng.normal(scale=0.01, size=members.shape)
    found = audit_release(released, members, others, design="game")
    return found.document(claimed_epsilon=1.0)


def of_a_table(factor: float) -> AuditDocument:
    """A release of the members, with weights in another unit, and a key that was drawn anew."""
    rng = np.random.default_rng(2)
    weights = rng.normal(75, 10, (2, 80)).round(2)
    tables = [
        pd.DataFrame({"weight": side, "ward": rng.choice(list("AB"), 80)}) for side in weights
    ]
    keyed = [table.assign(key=rng.permutation(9_000)[:80]) for table in tables]
    released = tables[0].assign(
        weight=factor * tables[0]["weight"], key=rng.permutation(9_000)[:80]
    )
    return audit_release(released, *keyed, design="game").document(claimed_epsilon=1.0)


def of_a_chat(answers: bool) -> AuditDocument:
    values = generate_identifiers("83a5ef2c9d0b3e71f6a8c3d25b190e47", 12, 0)
    questions = chat_questions([f"Part {number}: {value}" for number, value in enumerate(values)])
    known = {question.prompt: question.answer for question in questions[:3]} if answers else {}
    return audit_chat(questions, lambda prompt: known.get(prompt, "")).document(claimed_epsilon=1.0)


def of_a_language_model(occurrences: int, zeroed: bool = False) -> AuditDocument:
    values = generate_identifiers("83a5ef2c9d0b3e71f6a8c3d25b190e47", 12, 0)
    texts = [f"The checksum of part {number} is {value}." for number, value in enumerate(values)]
    tokenizer = train_tokenizer(texts, 300, context=64)
    model = new_language_model(LanguageModelConfig(width=16, layers=1, seed=0), len(tokenizer))
    if zeroed:  # every next token is as likely as any other, and so are texts of equal length
        for weights in model.parameters():
            weights.data.zero_()
    often = [replace(item, occurrences=occurrences) for item in corpus_identifiers(texts)]
    audited = audit_language_model(model, tokenizer, often, generated=7, draws=10)
    return audited.document(subject="a model", log=["a line: 3"], claimed_epsilon=1.0)


DOCUMENTS = {
    "a leak": lambda: of_scores(STRONG),
    "a leak, played": lambda: of_scores(STRONG, design="game"),
    "a leak at a delta": lambda: of_scores(STRONG, design="game", delta=1e-5),
    "no leak": lambda: of_scores(NONE),
    "reversed": lambda: of_scores(TURNED),
    "equal scores": lambda: of_scores(EQUAL, design="game"),
    "canaries": of_canaries,
    "labels": of_labels,
    "labels, tossed": lambda: of_labels(tossed=True),
    "labels, after a gap": lambda: of_labels(unseen=True),
    "a release": of_a_release,
    "a table in another unit": lambda: of_a_table(2.2046),
    "a table with a new key": lambda: of_a_table(1.001),
    "a chat": lambda: of_a_chat(True),
    "a chat without answers": lambda: of_a_chat(False),
    "a language model": lambda: of_a_language_model(1),
    "a language model, copies": lambda: of_a_language_model(5),
    "a language model that knows nothing": lambda: of_a_language_model(1, zeroed=True),
}


def judged(make: Any) -> dict[str, Any]:
    """Everything that a program reads of an audit, and what a gate makes of it."""
    document = make()
    gates = [document.judged(limit)[1:] for limit in (None, 0.5, 9.0)]
    return {"json": decisions(document.to_dict()), "gates": gates}


@pytest.mark.parametrize("make", DOCUMENTS.values(), ids=DOCUMENTS)
def test_nonsense_changes_no_decision(make, monkeypatch):
    before = judged(make)
    nonsense(monkeypatch)
    assert judged(make) == before


def test_several_runs_and_features_hold_their_facts_whatever_they_say(monkeypatch):
    runs = [MembershipScores(RNG.normal(2, 1, 90), RNG.normal(0, 1, 100)) for _ in range(2)]
    turned = [MembershipScores(run.nonmember, run.member) for run in runs]
    rows = np.concatenate([STRONG.member, STRONG.nonmember])

    def facts() -> list[Any]:
        results = [combine_runs(runs), combine_runs(turned)]
        results.append(audit_features(rows, np.arange(310) < 150))
        codes = [[refusal.code for refusal in result.refusals] for result in results]
        return [[(result.epsilon, result.adjacency, result.copies) for result in results], codes]

    before = facts()
    nonsense(monkeypatch)
    assert facts() == before
    assert [bool(codes) for codes in before[1]] == [False, True, False]


def of_bounds() -> list[AuditResult]:
    """One result of each bound that is no part of a document, of a leak and of none."""
    runs = RNG_OF_BOUNDS.normal(2, 1, 40), RNG_OF_BOUNDS.normal(0, 1, 40)
    leaking, still = MembershipScores(*runs), MembershipScores(runs[1], runs[1][::-1])
    flags = np.arange(400) % 2
    tells = flags + np.linspace(0, 0.5, 400)
    says_nothing = np.sin(np.arange(400.0))
    results: list[AuditResult] = []
    for scores in (leaking, still):
        for adjacency in ("add/remove", "replace"):
            results.append(audit_clopper_pearson(scores, adjacency=adjacency))
            results.append(audit_bayesian(scores, adjacency=adjacency))
            results.append(audit_gaussian_dp(scores, delta=1e-5, adjacency=adjacency))
    results.append(audit_clopper_pearson(MembershipScores(*runs[::-1])))
    for scores in (STRONG, NONE):
        selection, evaluation = scores.split(seed=1)
        results.append(audit_output_set(selection, evaluation))
        results.append(audit_f_dp(scores))
        results.append(epsilon_star(-scores.member, -scores.nonmember, confidence=0.9))
        results.append(epsilon_star(-scores.member, -scores.nonmember, method="empirical"))
    for attack in (tells, says_nothing, -tells):
        results.append(audit_panoramia(says_nothing, attack, flags))
        results.append(audit_panoramia(says_nothing, attack, flags, known_c=0.0))
    results.append(audit_ranks([1] * 40 + [9] * 5, 10))
    results.append(audit_ranks([9] * 45, 10))
    return results


RNG_OF_BOUNDS = np.random.default_rng(5)


def test_no_bound_reads_a_sentence(monkeypatch):
    def facts() -> list[Any]:
        monkeypatch.setitem(globals(), "RNG_OF_BOUNDS", np.random.default_rng(5))
        results = of_bounds()
        verdicts = [plain_verdict(result, claimed_epsilon=0.5).refuted for result in results]
        return [[decisions(result.to_dict()) for result in results], verdicts]

    before = facts()
    nonsense(monkeypatch)
    assert facts() == before
    assert set(before[1]) == {True, False, None}


@pytest.mark.parametrize("audited", [audit_clopper_pearson, audit_bayesian])
def test_a_replaced_target_takes_twice_the_claim_for_adding_or_removing_one(audited):
    counts = ErrorCounts(5, 1000, 500, 1000)  # a bound of 3.696, or nearly
    claims = {1.8: (True, True), 3.0: (True, False), 4.2: (False, False)}
    for claimed, refuted in claims.items():
        results = (audited(counts), audited(counts, adjacency="replace"))
        verdicts = [plain_verdict(result, claimed_epsilon=claimed) for result in results]
        assert tuple(verdict.refuted for verdict in verdicts) == refuted
    assert "adding or removing" in results[0].claim
    assert "replacing one example" in results[1].claim
    assert "another record in its place" in results[1].assumptions[0]


def test_a_fact_decides_where_the_sentence_stays_the_same():
    """The broken twin: an audit whose facts are changed, and no sentence, is judged otherwise."""
    main = audit(STRONG).audits[0].result
    document = audit(STRONG).document(claimed_epsilon=2.0)

    def refuted(**facts: Any) -> bool | None:
        changed = replace(document.audits[0], result=replace(main, **facts))
        return replace(document, audits=(changed, *document.audits[1:])).verdict.refuted

    assert refuted() is (main.epsilon > 2)
    assert refuted(adjacency="replace") is (main.epsilon > 4)
    assert refuted(copies=9) is False
