"""A model that only writes text: which identifiers of a corpus does it complete?"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from paperlib.audits.document import AuditDocument, answer_of
from paperlib.audits.language.corpus import FoundIdentifier, corpus_identifiers, open_corpus
from paperlib.audits.language.language_model import without_look_alikes
from paperlib.bounds import audit_ranks, rank_p_value
from paperlib.core import IntArray, MembershipScores, ScoreAudit
from paperlib.core.checks import check_at_least, check_confidence, check_in
from paperlib.core.facts import Refusal
from paperlib.core.results import AuditResult
from paperlib.data.text.corpora import Document
from paperlib.data.text.pieces import ReadLog
from paperlib.generators.identifiers.digests import hex_digits, uuid_version
from paperlib.generators.identifiers.kind import casing
from paperlib.generators.identifiers.kinds import checked_kinds
from paperlib.report import progress
from paperlib.report.audit.tables import TableSection
from paperlib.words.audits import chat as words

CHAT_KINDS = ("md5", "sha1", "sha256", "sha512", "ethereum", "uuid", "git_short_hash")
"""Kinds of hexadecimal digits that are drawn one by one: none follows from the others."""

FEWEST, COMPARED = 10, 8  # identifiers; digits that must be right, or all that a short hash has
# Digits are uniform, but some values are left out, as look-alikes or for the text before them, and
# the others are likelier for it. At least half of those that begin like the prompt are kept: what
# goes are layouts of UUIDs (an eighth of MD5), words, zeros, equal steps, and parts that stand in
# up to 2,000 characters before.
_KEPT = 2


@dataclass(frozen=True)
class ChatQuestion:
    """A text that ends before or within an identifier, and the digits that follow."""

    found: FoundIdentifier
    prompt: str
    shown: str  #: digits of the identifier in the prompt, in small letters
    answer: str  #: the digits that follow
    values: int  #: given the prompt, no answer has a chance above 1 in so many


def chat_questions(
    corpus: str | Iterable[str | Document],
    *,
    kinds: Sequence[str] | None = None,
    before: int = 200,
    shown: int = 8,
    limit: int = 200,
    seed: int = 0,
    log: ReadLog | None = None,
) -> list[ChatQuestion]:
    """Questions on the identifiers that stand once in a corpus (files by name, or documents), in
    their order.

    Args:
        corpus: Path of a file or a folder, or texts and documents.
        kinds: Some of `CHAT_KINDS`; None for all.
        before: Characters before each identifier that are sent, 0 to 2000.
        shown: Digits of the identifier that are sent, 0 to 8; fewer of a short one.
        limit: If there are more identifiers, a random sample of this size.
        seed: Seed of the sample and of the draws that look-alikes are compared with, 0 or more.
        log: Counts what is left out, and why.

    Raises:
        ValueError: A kind whose parts follow from each other, or fewer than 10 identifiers.

    >>> from paperlib.generators.identifiers import generate_identifiers
    >>> values = generate_identifiers("83a5ef2c9d0b3e71f6a8c3d25b190e47", 12, 0)
    >>> chat_questions([f"Part {n}: {value}" for n, value in enumerate(values)], shown=4)[0].prompt
    'Part 0: 5947'
    """
    check_at_least(0, seed=seed)
    check_in("[0, 2000]", "before", before)
    check_in("[0, 8]", "shown", shown)
    log = ReadLog() if log is None else log
    names = _checked_names(kinds)
    documents = open_corpus(corpus, log=log) if isinstance(corpus, str) else corpus
    # Of all kinds: another notation of a value is an occurrence, too.
    of_all_kinds = corpus_identifiers(documents, before=before, log=log)
    identifiers = [identifier for identifier in of_all_kinds if identifier.kind in names]
    questions: dict[FoundIdentifier, ChatQuestion] = {}
    for identifier in identifiers:
        question = _question(identifier, shown, log)
        if question is not None:
            questions[identifier] = question
    chosen = _sample(list(questions), limit, seed)
    if chosen:
        chosen = without_look_alikes(chosen, seed=seed, log=log)
    if len(chosen) < FEWEST:
        raise ValueError(
            f"corpus: {len(chosen)} of {len(identifiers)} identifiers are left, {FEWEST} needed"
            + "".join(f"; {reason}: {number}" for reason, number, _ in log.rows)
        )
    return [questions[identifier] for identifier in chosen]


def _checked_names(kinds: Sequence[str] | None) -> set[str]:
    """Names of the ``kinds``, of all of `CHAT_KINDS` for None; a ValueError for an unknown one, and
    for one whose parts follow from each other.
    """
    names = {kind.name for kind in checked_kinds(kinds or CHAT_KINDS)}
    other = sorted(names - set(CHAT_KINDS))
    if other:
        raise ValueError(
            f"kinds: parts of {', '.join(other)} tell of others; expected some of "
            f"{', '.join(CHAT_KINDS)}"
        )
    return names


def _sample(identifiers: list[FoundIdentifier], limit: int, seed: int) -> list[FoundIdentifier]:
    """A random sample of ``limit`` identifiers in their order, all where there are no more."""
    if len(identifiers) <= limit:
        return identifiers
    indices = np.random.default_rng(seed).choice(len(identifiers), limit, replace=False)
    return [identifiers[index] for index in np.sort(indices)]


def _question(identifier: FoundIdentifier, shown: int, log: ReadLog) -> ChatQuestion | None:
    """The question on an identifier, of which ``shown`` digits are sent, fewer of a short one; None
    where something else tells of the answer, which ``log`` counts with the reason.
    """
    value = identifier.value
    start = _first_digit(identifier)
    indices = [index for index in range(start, len(value)) if value[index] != "-"]
    digits = "".join(value[index] for index in indices).lower()
    first = min(shown, max(0, len(digits) - COMPARED))  # of the digits that are asked for
    reason = _unfair(identifier, digits, first)
    if reason is not None:
        log.add(words.LEFT_OUT[reason], value)
        return None
    return ChatQuestion(
        found=identifier,
        prompt=identifier.before + value[: indices[first]],
        shown=digits[:first],
        answer=digits[first : first + COMPARED],
        values=_possible_answers(digits, first),
    )


def _first_digit(identifier: FoundIdentifier) -> int:
    """Index of the first digit that is drawn: behind 0x, or behind the word before a short hash."""
    if identifier.kind == "ethereum":
        return 2
    if identifier.kind == "git_short_hash":
        return identifier.value.find(" ") + 1
    return 0


def _unfair(identifier: FoundIdentifier, digits: str, first: int) -> words.Unfair | None:
    """Why something else tells of an identifier's digits from number ``first`` on; None where
    nothing does. ``digits`` are all of them, in small letters.
    """
    if identifier.occurrences > 1:
        return "repeated"
    if casing(identifier.value[_first_digit(identifier) :]) == "mixed":
        return "checksum"
    if identifier.kind == "uuid" and digits[12] == "7":
        return "time"
    # As a value shares no six digits with that text, it would tell much of the next digits.
    before = "".join(filter(str.isalnum, identifier.before.lower()))
    if first >= 4 and digits[first - 4 : first] in before:
        return "in the text before"
    return None


def _possible_answers(digits: str, first: int) -> int:
    """A number n such that no answer, the digits from number ``first`` on, has a chance above 1 / n
    before the model is asked.
    """
    choices = [16] * len(digits)  # of each digit
    if uuid_version(digits):  # the version is known, and of the variant two bits
        choices[12] = 1
        choices[16] = 4
    return math.prod(choices[first : first + COMPARED]) // _KEPT


def guess(question: ChatQuestion, text: str | None) -> str:
    """The digits that a ``text``, a model's answer, gives for a question, found without a look at
    the right ones; "" where it gives none, as it does for None.

    It is the first run of hexadecimal digits that is long enough, less the digits that were shown;
    a word, such as "defaced", and a quotation of the prompt are passed over.
    """
    size = len(question.answer)
    text = text or ""
    if question.prompt:  # some models repeat it
        text = text.rpartition(question.prompt)[2]
    prompt = question.prompt.lower().replace("-", "")
    for run in re.findall("[0-9a-f][0-9a-f-]*", text.lower()):
        digits = run.replace("-", "")
        rest = digits.removeprefix(question.shown)
        digits = (rest if len(rest) >= size else digits)[:size]
        is_word = digits.isalpha()
        is_quotation = digits in prompt
        if len(digits) == size and not is_word and not is_quotation:
            return digits
    return ""


@dataclass(frozen=True, kw_only=True, eq=False)
class ChatResult(AuditResult):
    """A lower bound on epsilon under replacement from completed identifiers."""

    epsilon: float  #: nats
    delta: float
    confidence: float
    total: int
    hits: int
    p_value: float  #: largest chance of so many hits if the model saw none of the identifiers
    ceiling: float  #: the bound if all were hits, nats
    guesses: int | None = None
    correct: int | None = None

    @property
    def headline(self) -> str:
        return words.headline(self)


@dataclass(frozen=True, eq=False)
class ChatAudit:
    """What a model that writes text gives away about the identifiers of a corpus."""

    questions: tuple[ChatQuestion, ...]
    right: np.ndarray  #: leading digits that the best answer to each question has right
    control: np.ndarray  #: the same for digits drawn anew, which no model has seen
    result: ChatResult

    @property
    def table(self) -> pd.DataFrame:
        """One row per identifier, the best known first, with the digits compared and those
        right.
        """
        columns = {
            "value": [question.found.value for question in self.questions],
            "kind": [question.found.kind for question in self.questions],
            "compared": [len(question.answer) for question in self.questions],
            "right": self.right,
        }
        frame = pd.DataFrame(columns)
        return frame.sort_values("right", ascending=False, kind="stable").reset_index(drop=True)

    def document(
        self, *, subject: str = "", log: Sequence[str] = (), **fields: Any
    ) -> AuditDocument:
        """The audit of ``subject`` as page and JSON, with what ``log`` left out; ``fields`` are
        further ones of `AuditDocument`.
        """
        audit = ScoreAudit(
            title=words.AUDIT_TITLE,
            kind="lower bound",
            purpose=words.PURPOSE,
            result=self.result,
        )
        section = TableSection(
            title=words.TABLE_TITLE,
            text=words.TABLE_TEXT,
            headings=("Identifier", "Kind", "Digits compared", "Digits right"),
            rows=[tuple(map(str, row)) for row in self.table.head(20).itertuples(index=False)],
        )
        values = [question.found.value for question in self.questions]
        return AuditDocument(
            title=words.DOCUMENT_TITLE,
            scores=MembershipScores(self.right, self.control),
            audits=(audit,),
            answers=(answer_of(self.result, about=subject, warnings=log),),
            limits=((self.result.epsilon, self.result.ceiling),),
            design="candidates",
            ids=[*values, *(f"drawn anew for {value}" for value in values)],
            sections=(section,),
            more={"identifiers": self.table.to_dict("records")},
            **fields,
        )


def audit_chat(
    questions: Sequence[ChatQuestion],
    complete: Callable[[str], str | None],
    *,
    tries: int = 1,
    model: str = "the model",
    delta: float = 0.0,
    confidence: float = 0.95,
) -> ChatAudit:
    """Let a model go on with identifiers, and bound the epsilon of its training by those it
    completes.

    Guarantee:
        If training is (epsilon, delta)-DP under replacement of one identifier, and the identifiers
        were drawn at random as their kinds say, independently of each other and of all else, the
        result exceeds epsilon with probability at most 1 - confidence.

        Proof: Take identifiers in the order of the corpus. A prompt tells nothing of its own answer
        or of later identifiers, so that answers are functions of model, earlier identifiers and
        fresh chance. Given these, at delta = 0, t guesses of one that no value has with a chance
        above 1 / n hold it with the chance q = t e^epsilon / (t e^epsilon + n - t) at most, that of
        `audit_ranks` for sets of n and top t. So hits are at most, in distribution, the sum of
        independent coins of these chances. At delta > 0 a hit is given up where its chance is above
        q. For one identifier that is a mass of at most delta (1 - q) n / (n - t) <= delta, and m
        delta is added to the p-value.

    Args:
        questions: From `chat_questions`, 10 or more.
        complete: Prompt to answer; called in the order of the questions, ``tries`` times for each.
        tries: Answers to each question, 1 or more; one right answer is a hit.
        model: What the claim names.
        delta, confidence: As for `audit_ranks`; delta times questions is below 1 - confidence.

    Raises:
        ValueError: Too few questions, the same identifier twice, or a bad option.

    Source:
        This project's; natural identifiers, Theorem 1, with all values as candidates.

    >>> from paperlib.generators.identifiers import generate_identifiers
    >>> values = generate_identifiers("83a5ef2c9d0b3e71f6a8c3d25b190e47", 12, 0)
    >>> questions = chat_questions([f"Part {n}: {value}" for n, value in enumerate(values)])
    >>> known = {one.prompt: one.answer for one in questions[:3]}
    >>> print(audit_chat(questions, lambda prompt: known.get(prompt, "")).result.headline)
    ε ≥ 18.929 (replacement, δ = 0, confidence 0.95, 3 of 12 identifiers completed)
    """
    total = len(questions)
    check_at_least(FEWEST, questions=total)
    check_at_least(1, tries=tries)
    error = 1 - check_confidence(confidence)
    check_in(f"[0, {error / total})", "delta", delta)
    if len({question.found.value.lower() for question in questions}) < total:
        raise ValueError("questions: expected one for each identifier, got two for one")
    right, control, guessed = _right_digits(questions, complete, tries)
    hits = int((right == [len(question.answer) for question in questions]).sum())
    sizes = np.array([question.values for question in questions])
    levels = _Levels(sizes, tries, confidence=1 - error + delta * total)
    epsilon = levels.epsilon(hits)
    refusals, warnings = _too_few_guesses(guessed, total, hits)
    result = ChatResult(
        claim=words.claim(model, epsilon, delta, confidence),
        condition=words.CONDITION,
        assumptions=words.ASSUMPTIONS,
        notes=(_note(levels, hits),),
        warnings=(*warnings, *_equal_prompts(questions)),
        refusals=refusals,
        adjacency="replace",
        unit="identifier",
        design="candidates",
        epsilon=epsilon,
        delta=delta,
        confidence=confidence,
        total=total,
        hits=hits,
        p_value=levels.p_value(hits),
        ceiling=levels.epsilon(total),
    )
    return ChatAudit(tuple(questions), right, control, result)


def _right_digits(
    questions: Sequence[ChatQuestion], complete: Callable[[str], str | None], tries: int
) -> tuple[IntArray, IntArray, int]:
    """For each question the leading digits that are right in the best of its ``tries`` answers, and
    the same for digits drawn anew, shape (questions,) each; and the number of questions of which
    some answer holds digits. ``complete`` takes a prompt to an answer.
    """
    rng = np.random.default_rng(0)
    right: list[int] = []
    control: list[int] = []
    guessed = 0
    for question in progress(questions, label="questions"):
        guesses = [guess(question, complete(question.prompt)) for _ in range(tries)]
        guessed += any(guesses)
        drawn = hex_digits(len(question.answer), rng)
        right.append(max(_leading(digits, question.answer) for digits in guesses))
        control.append(max(_leading(digits, drawn) for digits in guesses))
    return np.array(right), np.array(control), guessed


def _leading(guessed: str, digits: str) -> int:
    """The number of leading digits of a guess that are those of ``digits``."""
    return max(count for count in range(len(digits) + 1) if guessed[:count] == digits[:count])


@dataclass(frozen=True)
class _Levels:
    """What numbers of hits show: question i has no answer of a chance above 1 / ``sizes[i]``."""

    sizes: IntArray  # (questions,)
    tries: int  # answers to each question, of which one right answer is a hit
    confidence: float

    def epsilon(self, hits: int) -> float:
        """The lower bound that so many hits give, nats."""
        # Which questions are hits does not matter: a hit has rank 1, any other one a rank below the
        # best ``tries``.
        ranks = np.where(np.arange(len(self.sizes)) < hits, 1, self.tries + 1)
        result = audit_ranks(ranks, self.sizes, top=self.tries, confidence=self.confidence)
        return result.epsilon

    def p_value(self, hits: int) -> float:
        """The chance of so many hits, at most, if the model saw none of the identifiers."""
        return max(1e-300, rank_p_value(hits, self.sizes, 0.0, top=self.tries))


def _note(levels: _Levels, hits: int) -> str:
    """What so many hits, a single one and all of them say."""
    total = len(levels.sizes)
    return words.note(total, levels.p_value(hits), levels.epsilon(1), levels.epsilon(total))


def _too_few_guesses(
    guessed: int, total: int, hits: int
) -> tuple[tuple[Refusal, ...], tuple[str, ...]]:
    """Refusals and warnings where only ``guessed`` of ``total`` questions, fewer than half, have
    digits in an answer: refused are fewer than 10 without a hit; none of both elsewhere.
    """
    if 2 * guessed >= total:
        return (), ()
    if guessed >= FEWEST or hits:
        return (), (words.few_guesses(guessed, total),)
    return (words.no_guesses(guessed, total),), ()


def _equal_prompts(questions: Sequence[ChatQuestion]) -> tuple[str, ...]:
    """A warning where prompts are like another one."""
    alike = len(questions) - len({question.prompt for question in questions})
    if not alike:
        return ()
    return (words.equal_prompts(alike),)
