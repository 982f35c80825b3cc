"""No decision of an audit of a language model reads a sentence: with nonsense from `words` in the
place of each, all else stays the same.
"""

from itertools import count
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from paperlib import audit_texts
from paperlib.audits.document import AuditDocument
from paperlib.audits.language.corpus import corpus_identifiers
from paperlib.core.facts import Refusal
from paperlib.data.text.pieces import ReadLog
from paperlib.models.language import LanguageModelConfig, new_language_model, train_tokenizer
from paperlib.words.audits import blind, chat, corpus, texts
from tests.words.test_wording import decisions, nonsense, of_a_chat

NUMBERS = count()


def other(value: Any) -> Any:
    """Nonsense in place of a sentence, of sentences, or of a function that writes them."""
    if isinstance(value, str):
        return f"nonsense {next(NUMBERS)}"
    if isinstance(value, tuple):
        return tuple(other(item) for item in value)
    if isinstance(value, dict):
        return {key: other(item) for key, item in value.items()}

    def writes(*arguments: Any, **options: Any) -> Any:
        written = value(*arguments, **options)
        return written if isinstance(written, Refusal) else other(written)

    return writes


def nonsense_from(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> int:
    """Put nonsense in place of every sentence of a module, and return how many there were."""
    changed = 0
    for name, value in vars(module).copy().items():
        is_sentence = name.isupper() and isinstance(value, str | tuple | dict)
        is_function = getattr(value, "__module__", "") == module.__name__
        if not name.startswith("_") and (is_sentence or is_function):
            monkeypatch.setattr(module, name, other(value))
            changed += 1
    return changed


TEXTS = [f"Order {number} was sent to house {number * 7 % 100}." for number in range(100, 180)]
np.random.default_rng(0).shuffle(TEXTS)
TOKENIZER = train_tokenizer(TEXTS, 300, context=64)
MODEL = new_language_model(LanguageModelConfig(width=16, layers=1, seed=0), len(TOKENIZER))


def of_texts(**options: Any) -> AuditDocument:
    scoring = {"split": (4, 4)}
    audit = audit_texts(MODEL, TOKENIZER, TEXTS[:40], TEXTS[40:], scoring=scoring, **options)
    assert str(audit)
    return audit.document(subject="these texts", claimed_epsilon=1.0)


def of_sides_that_differ() -> AuditDocument:
    return of_texts(dates=([2001] * 40, [2002] * 40))


DOCUMENTS = {
    "texts": of_texts,
    "texts, all scores": lambda: of_texts(attack="learned", copies=3),
    "sides that differ": of_sides_that_differ,
    "a chat": lambda: of_a_chat(True),
    "a chat without answers": lambda: of_a_chat(False),
}


def judged(make: Any) -> dict[str, Any]:
    """Everything that a program reads of an audit, and what a gate makes of it."""
    document = make()
    gates = [document.judged(limit)[1:] for limit in (None, 0.5, 9.0)]
    content = decisions(document.to_dict())
    content.get("extraction", {}).pop("said", None)
    return {"json": content, "gates": gates}


@pytest.mark.parametrize("make", DOCUMENTS.values(), ids=DOCUMENTS)
def test_nonsense_changes_no_decision_of_an_audit_of_a_language_model(make, monkeypatch):
    before = judged(make)
    nonsense(monkeypatch)
    assert all(nonsense_from(module, monkeypatch) for module in (blind, chat, corpus, texts))
    assert judged(make) == before


def test_the_sentences_of_an_audit_of_texts_are_those_of_words(monkeypatch):
    """The broken twin of the test above: what it replaces does reach the reader."""
    nonsense_from(texts, monkeypatch)
    nonsense_from(blind, monkeypatch)
    document = of_sides_that_differ()
    written = [document.title, document.answers[0].headline]
    written += [document.audits[0].title, document.audits[0].refused]
    written += [section.text for section in document.sections]
    assert all(sentence.startswith("nonsense") for sentence in written)


def test_identifiers_that_are_left_out_are_counted_whatever_the_reason_is_called(monkeypatch):
    value = "83a5ef2c9d0b3e71f6a8c3d25b190e47"
    lines = [f"{value[:9]} md5 {value}", "md5 0b3e71f683a5ef2c9da8c3d25b190e47"]

    def left_out() -> tuple[list[str], list[int]]:
        log = ReadLog()
        kept = [identifier.value for identifier in corpus_identifiers(lines, log=log)]
        return kept, list(log.counts.values())

    before = left_out()
    assert nonsense_from(corpus, monkeypatch)
    assert left_out() == before
    assert before[1] == [1]
