"""The answers to the questions of public texts: no row says that a duty is met, and each follows
from the facts of the audit.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest

from paperlib.core.facts import RefusalCode
from paperlib.core.options import Questions
from paperlib.words.audits.questions.facts import AuditFacts
from paperlib.words.audits.questions.rules import NOT_SHOWN, RULES, Shown
from paperlib.words.audits.questions.texts import chosen, question_rows, question_text
from tests.refusals import refused

NAMES: tuple[Questions, ...] = get_args(Questions)
MET = re.compile(
    r"\b(complian|compl(y|ies|ied)\b|conform|certif|fulfil|satisf|meets?\b|met\b|pass(es|ed)?\b"
    r"|adequate|suffic|accept|approv|lawful|legal)",
    re.IGNORECASE,
)
"""Words that say that a duty is met."""
GOOD = re.compile(r"\b(safe|secure|private|anonymous|no risk|harmless)\b", re.IGNORECASE)
"""Words that praise what was audited; no row says them of an audit's outcome."""

CHOICES: dict[str, tuple[Any, ...]] = {
    "what": ("model", "release"),
    "kind": ("lower bound", "lower bound", "measurement", "test", "baseline"),
    "has_result": (True, True, True, False),
    "refusals": ((), (), *((code,) for code in RefusalCode)),
    "epsilon": (None, 0.0, 0.0004, 1.5, 20.0, float("inf")),
    "most": (None, 3.2, float("inf")),
    "claimed_epsilon": (None, 0.0, 3.0),
    "refuted": (None, True, False),
    "delta": (0.0, 1e-5),
    "confidence": (None, 0.95),
    "adjacency": ("", "add/remove", "replace", "label"),
    "unit": ("", "patient"),
    "copies": (1, 3),
    "design": (None, "randomized", "game", "played", "forget", "candidates", "marks"),
    "total": (None, 2000),
    "guesses": (None, 120),
    "correct": (None, 100),
    "coins": ("", "ab" * 32),
    "plan": ("", "cd" * 32),
    "is_curve_tested": (False, True),
    "is_described": (False, True),
}
"""Values of every fact."""


def drawn(count: int) -> list[AuditFacts]:
    """Facts of every kind, each value drawn on its own."""
    rng = np.random.default_rng(0)
    facts: list[AuditFacts] = []
    for _ in range(count):
        values = {name: options[rng.integers(len(options))] for name, options in CHOICES.items()}
        facts.append(AuditFacts(**values))
    return facts


def faults(rows_of: Callable[[Questions, AuditFacts], Any]) -> set[str]:
    """What is wrong with rows over drawn facts: duties met, praise, texts without a leak's lack,
    or rules that no fact changes.
    """
    wrong: set[str] = set()
    seen: dict[tuple[str, int], set[str]] = {}
    for facts in drawn(400):
        for name in NAMES:
            for number, row in enumerate(rows_of(name, facts)):
                cells = (row.question, row.shows, row.cannot_show, row.missing)
                if MET.search(" ".join(cells)) or not all(cells):
                    wrong.add("met")
                if GOOD.search(row.shows):
                    wrong.add("praise")
                if facts.bound is None and re.search("at least|was found|stands? out", row.shows):
                    wrong.add("number without an answer")
                seen.setdefault((name, number), set()).add(row.shows)
    wrong |= {f"{key} never changes" for key, answers in seen.items() if len(answers) < 2}
    return wrong


def test_no_row_says_that_a_duty_is_met_and_each_follows_the_facts():
    assert faults(question_rows) == set()


def test_rows_that_ignore_the_facts_or_praise_are_caught():
    fixed = AuditFacts(epsilon=1.5, most=3.2)
    deaf = faults(lambda name, facts: question_rows(name, fixed))
    assert {"number without an answer", "('edpb', 1) never changes"} <= deaf
    for words, fault in (
        ("The model is private.", "praise"),
        ("Compliant.", "met"),
        ("The requirement is met.", "met"),
    ):
        found = faults(
            lambda name, facts, words=words: [
                replace(row, shows=words) for row in question_rows(name, facts)
            ]
        )
        assert fault in found


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_each_rule_can_say_that_something_is_not_shown_or_missing(rule):
    answers: list[Shown] = [rule(facts) for facts in drawn(400)]
    assert any(
        answer.shows.startswith(NOT_SHOWN) or answer.missing != answers[0].missing
        for answer in answers
    )


def test_every_rule_is_asked_for_and_each_text_has_its_version_and_its_day():
    asked: set[str] = set()
    for name in NAMES:
        text = question_text(name)
        assert len(text.questions) >= 8
        asked |= {question.rule for question in text.questions}
        assert text.read.startswith("Read on 30 November 2026")
        assert re.search("20[0-9]{2}", text.version)
        assert text.address.startswith("https://")
    assert asked == set(RULES)


def test_rows_of_a_leak_of_no_leak_and_of_no_answer():
    leak = AuditFacts(
        epsilon=1.08567, most=5.6, confidence=0.95, design="randomized", guesses=139, correct=119
    )
    of = {row.place: row for row in question_rows("aisvs", leak)}
    assert of["11.2.4 (L2)"].shows == "Not shown: no epsilon was claimed."
    rows = {row.question: row for row in question_rows("aisvs", leak)}
    guessing = "Do simulated attacks on membership do no better than guessing?"
    assert (
        rows[guessing].shows
        == "119 of 139 guesses were right: better than guessing at confidence 0.95."
    )
    assert "no finite test demonstrates that" in rows[guessing].cannot_show
    none = replace(leak, epsilon=0.0)
    rows = {row.question: row for row in question_rows("aisvs", none)}
    assert rows[guessing].shows.endswith("not shown to beat guessing at confidence 0.95.")
    reversed_scores = replace(leak, refusals=(RefusalCode.REVERSED,))
    rows = {row.question: row for row in question_rows("aisvs", reversed_scores)}
    assert rows[guessing].shows == "Not shown: the number is no answer (reversed)."


def test_one_name_may_stand_alone_and_an_unknown_one_is_refused():
    assert chosen("edpb") == chosen(["edpb", "edpb"]) == ("edpb",)
    assert chosen(()) == ()
    refused("questions: expected one of 'edpb', 'nist-226', 'aisvs', got 'gdpr'", chosen, ["gdpr"])
