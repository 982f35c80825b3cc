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
from paperlib.core import MembershipScores, ScoreAudit, check_in
from paperlib.core.checks import check_at_least, check_confidence
from paperlib.core.direction import SAYS_NOTHING
from paperlib.core.facts import Refusal, RefusalCode
from paperlib.core.results import AuditResult, round_down
from paperlib.data.text.corpora import Document
from paperlib.data.text.pieces import ReadLog
from paperlib.generators.identifiers import checked_kinds
from paperlib.generators.identifiers.digests import hex_digits, uuid_version
from paperlib.generators.identifiers.kind import casing
from paperlib.report import progress
from paperlib.report.audit.tables import TableSection

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
        kinds: Some of `CHAT_KINDS`; None for all.
        before: Characters before each identifier that are sent, 0 to 2000.
        shown: Digits of the identifier that are sent, 0 to 8; fewer of a short one.
        limit: If there are more identifiers, a random sample of this size.
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
    wanted = {kind.name for kind in checked_kinds(kinds or CHAT_KINDS)}
    if other := sorted(wanted - set(CHAT_KINDS)):
        known = ", ".join(CHAT_KINDS)
        raise ValueError(
            f"kinds: parts of {', '.join(other)} tell of others; expected some of {known}"
        )
    documents = open_corpus(corpus, log=log) if isinstance(corpus, str) else corpus
    every = corpus_identifiers(
        documents, before=before, log=log
    )  # of all kinds: a notation is an occurrence
    found = [one for one in every if one.kind in wanted]
    asked = {one: question for one in found if (question := _question(one, shown, log))}
    chosen = list(asked)
    if len(chosen) > limit:
        places = np.random.default_rng(seed).choice(len(chosen), limit, replace=False)
        chosen = [chosen[at] for at in np.sort(places)]
    chosen = without_look_alikes(chosen, seed=seed, log=log) if chosen else []
    if len(chosen) < FEWEST:
        said = "".join(f"; {reason}: {number}" for reason, number, _ in log.rows)
        raise ValueError(
            f"corpus: {len(chosen)} of {len(found)} identifiers are left, {FEWEST} needed{said}"
        )
    return [asked[one] for one in chosen]


def _question(one: FoundIdentifier, shown: int, log: ReadLog) -> ChatQuestion | None:
    """The question on an identifier, or None where none is fair."""
    start = {"ethereum": 2, "git_short_hash": one.value.find(" ") + 1}.get(one.kind, 0)
    places = [at for at, sign in enumerate(one.value) if at >= start and sign != "-"]
    digits = "".join(one.value[at] for at in places).lower()
    first = min(shown, max(0, len(digits) - COMPARED))
    told = "".join(filter(str.isalnum, one.before.lower()))
    reasons = {
        "stands more than once in the corpus": one.occurrences > 1,
        "letter case is a checksum": casing(one.value[start:]) == "mixed",
        "UUID that holds a time": one.kind == "uuid" and digits[12] == "7",
        # As a value shares no six digits with that text, it would tell much of the next digits.
        "last digits shown stand in the text before": first >= 4
        and digits[first - 4 : first] in told,
    }
    if reason := next((words for words, holds in reasons.items() if holds), ""):
        log.add(reason, one.value)
        return None
    free = [16] * len(digits)
    if uuid_version(digits):
        free[12], free[16] = 1, 4
    values = math.prod(free[first : first + COMPARED]) // _KEPT
    prompt = one.before + one.value[: places[first]]
    return ChatQuestion(one, prompt, digits[:first], digits[first : first + COMPARED], values)


def guess(question: ChatQuestion, text: str | None) -> str:
    """The digits that an answer gives for a question, found without a look at the right ones; ""
    for none.
    """
    size, text = len(question.answer), text or ""
    if question.prompt:  # some models repeat it
        text = text.rpartition(question.prompt)[2]
    told = question.prompt.lower().replace("-", "")
    for run in re.findall("[0-9a-f][0-9a-f-]*", text.lower()):
        digits = run.replace("-", "")
        rest = digits.removeprefix(question.shown)
        digits = (rest if len(rest) >= size else digits)[:size]
        if (
            len(digits) == size and not digits.isalpha() and digits not in told
        ):  # no word, nor a quotation
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
        return (
            f"ε ≥ {round_down(self.epsilon):.3f} (replacement, δ = {self.delta:g}, confidence "
            f"{self.confidence:g}, {self.hits} of {self.total} identifiers completed)"
        )


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
        found = [(one.found.value, one.found.kind, len(one.answer)) for one in self.questions]
        frame = pd.DataFrame(found, columns=["value", "kind", "compared"]).assign(right=self.right)
        return frame.sort_values("right", ascending=False, kind="stable").reset_index(drop=True)

    def document(
        self, *, subject: str = "", log: Sequence[str] = (), **parts: Any
    ) -> AuditDocument:
        """The audit of ``subject`` as page and JSON, with what ``log`` left out."""
        audit = ScoreAudit(
            title="Identifiers completed",
            kind="lower bound",
            purpose=(
                "How often the model writes the next digits of an identifier that was drawn "
                "at random."
            ),
            result=self.result,
        )
        section = TableSection(
            title="Best-known identifiers",
            text=(
                "Leading digits right in the best answer, all in a hit. One in 16 has the first "
                "by luck."
            ),
            headings=("Identifier", "Kind", "Digits compared", "Digits right"),
            rows=[tuple(map(str, row)) for row in self.table.head(20).itertuples(index=False)],
        )
        values = [one.found.value for one in self.questions]
        return AuditDocument(
            title="Privacy audit of a model that writes text",
            scores=MembershipScores(self.right, self.control),
            audits=(audit,),
            answers=(answer_of(self.result, about=subject, warnings=log),),
            limits=((self.result.epsilon, self.result.ceiling),),
            design="candidates",
            ids=[*values, *(f"drawn anew for {value}" for value in values)],
            sections=(section,),
            more={"identifiers": self.table.to_dict("records")},
            **parts,
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
    if len({one.found.value.lower() for one in questions}) < total:
        raise ValueError("questions: expected one for each identifier, got two for one")
    rng, rows, guessed = np.random.default_rng(0), list[list[int]](), 0
    for one in progress(questions, label="questions"):
        guesses = [guess(one, complete(one.prompt)) for _ in range(tries)]
        guessed += any(guesses)
        drawn = hex_digits(len(one.answer), rng)
        rows.append([max(_right(mine, text) for mine in guesses) for text in (one.answer, drawn)])
    right, control = np.array(rows).T
    hits = int((right == [len(one.answer) for one in questions]).sum())
    sizes = np.array([one.values for one in questions])

    def bound(hits: int) -> float:
        ranks = np.where(np.arange(total) < hits, 1, tries + 1)
        return audit_ranks(ranks, sizes, top=tries, confidence=1 - error + delta * total).epsilon

    epsilon, ceiling = bound(hits), bound(total)
    p_value = max(1e-300, rank_p_value(hits, sizes, 0.0, top=tries))
    claim = (
        f"these answers of {model} refute no ε ≥ 0 at δ = {delta:g} under replacement of one "
        "identifier."
    )
    if epsilon > 0:
        claim = (
            f"the training of {model} is not (ε, {delta:g})-differentially private for any ε below "
            f"{round_down(epsilon):.3f}, under replacement of one identifier, wherever it stands, "
            "by another of its kind: a lower bound on the training mechanism's ε."
        )
    warnings: list[str] = []
    refusals: tuple[Refusal, ...] = ()
    look = "look at what the model writes"
    if guessed < FEWEST and 2 * guessed < total and not hits:
        sentence = f"{guessed} of {total} answers hold digits, {SAYS_NOTHING}; {look}"
        refusals = (Refusal(code=RefusalCode.NO_GUESS, sentence=sentence, steps=(look,)),)
    elif 2 * guessed < total:
        warnings.append(f"{guessed} of {total} answers hold digits; {look}")
    alike = total - len({question.prompt for question in questions})
    if alike:
        warnings.append(
            f"{alike} prompts are like another one; take more of the text (--before, --shown)"
        )
    result = ChatResult(
        claim=f"With confidence {confidence:g}, {claim}",
        condition="assumes that identifiers were drawn at random, and that the model answers "
        "without search: it speaks of replacing one identifier",
        assumptions=(
            (
                "Identifiers were drawn at random as their kinds say, independently of each other "
                "and all else."
            ),
            (
                "Answers come from the trained model alone: it searches nothing, and keeps nothing "
                "of requests."
            ),
            (
                "Adjacency is replacement: its ε is up to twice the one for adding or removing one "
                "record."
            ),
            "Questions and tries were fixed before the first answer, and every answer counts.",
        ),
        notes=(
            "A model that saw none of them completes so many with probability "
            f"{min(1, 1.05 * p_value):.2g} at most. One shows ε ≥ {round_down(bound(1)):.3f}, all "
            f"{total} show {round_down(ceiling):.3f}.",
        ),
        warnings=tuple(warnings),
        refusals=refusals,
        adjacency="replace",
        unit="identifier",
        design="candidates",
        epsilon=epsilon,
        delta=delta,
        confidence=confidence,
        total=total,
        hits=hits,
        p_value=p_value,
        ceiling=ceiling,
    )
    return ChatAudit(tuple(questions), right, control, result)


def _right(guessed: str, text: str) -> int:
    """Leading digits that are right."""
    return max(at for at in range(len(text) + 1) if guessed[:at] == text[:at])
