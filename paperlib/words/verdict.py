"""An audit's number in plain words: what it means, whether it refutes a claimed epsilon, what to do
next.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from paperlib.core.checks import check_nonnegative
from paperlib.core.facts import Refusal
from paperlib.core.results import AuditResult, ScoreAudit, json_ready, round_down, round_up
from paperlib.words import forgetting
from paperlib.words.audits import marks

FORGET = "forget"  # the design of an audit of forgetting
MARKS = "marks"  # the design of an audit of marked texts
_HIGH = 1.0  # nats; guesses right at most 73 % of the time are what this lets through
_LOW_CEILING = 3.0  # nats; an audit that can show less leaves large leaks open
_MIND = "Read the warnings beside the number first: they name what weakens it."
_AGAIN = "Then audit again."
_SETTLE_DIRECTION = (
    "Check what the values are: low losses point to members, and so do high scores. If they are "
    "your own, say which with --kind losses or --kind scores of `paperlib audit` (in Python: "
    "higher_means_member).",
    (
        "Check who is a member: 1, true or train must mark the training records, or the first file "
        "hold them."
    ),
    "If both are right, find out why training records look less familiar to the model than others; "
    "fix the direction for a reason, not because the other one gives a larger number.",
    _AGAIN,
)


_REPLACEMENTS = ("replace", "label")  # a label is replaced with the record that has it


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What an audit's number means, for a reader who does not know differential privacy."""

    sentences: tuple[str, ...]  #: most important first
    next_steps: tuple[str, ...]  #: most urgent first
    #: Whether the claimed epsilon is, under both adjacencies where they differ; None where none was
    #: claimed, or the audit has no answer.
    refuted: bool | None
    condition: str = ""  #: the assumption that must stand beside the verdict

    def __str__(self) -> str:
        lines = [*self.sentences]
        if self.condition:
            lines.append(f"Condition: {self.condition}.")
        lines += ["", "What to do next:"]
        lines += [f"  {number}. {step}" for number, step in enumerate(self.next_steps, 1)]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Every field as JSON-ready values."""
        return json_ready(self)


def plain_verdict(
    result: AuditResult,
    *,
    claimed_epsilon: float | None = None,
    warnings: Sequence[str] = (),
    refusals: Sequence[Refusal] = (),
    kind: str = "lower bound",
    what: str = "model",
) -> Verdict:
    """Say in plain words what the result of the main audit means.

    A bound from a game speaks of replacing one record. An epsilon claimed for adding or removing a
    record allows twice as much there, so that such a result judges both readings of it.

    Args:
        claimed_epsilon: Epsilon that somebody claims for the training, nats, at least 0.
        warnings: Warnings of the whole audit.
        refusals: Why no number of the whole audit is an answer, beside those of the result.
        kind: "lower bound", "measurement" or "baseline"; only a lower bound refutes a claimed
            epsilon.
        what: What is published: a model, or a release that was made of the records.

    Raises:
        ValueError: A claimed epsilon that is negative or not finite.

    >>> import numpy as np
    >>> from paperlib.bounds import audit_one_run
    >>> from paperlib.core import MembershipScores
    >>> rng = np.random.default_rng(0)
    >>> scores = MembershipScores(rng.normal(2, 1, 500), rng.normal(0, 1, 500))
    >>> verdict = plain_verdict(audit_one_run(scores), claimed_epsilon=3)
    >>> print(verdict.sentences[0])
    For some record and some outcome, whoever sees the model and guesses whether that record was
    trained on is right in at least 96.0 % of cases, against 50 % by tossing a coin; in this audit
    99.3 % of 161 guesses were right.
    >>> verdict.refuted
    True
    """
    if claimed_epsilon is not None:
        claimed_epsilon = check_nonnegative("claimed_epsilon", claimed_epsilon)
    reasons = (*refusals, *result.refusals)
    if reasons:
        return _no_answer(reasons[0], claimed_epsilon, what)
    if result.epsilon is None or kind != "lower bound":
        return _measured(result, claimed_epsilon)
    every_warning = tuple(dict.fromkeys((*warnings, *result.warnings)))
    return _bounded(result, result.epsilon, claimed_epsilon, every_warning, what)


def audit_verdict(
    main: ScoreAudit,
    warnings: Sequence[str],
    claimed_epsilon: float | None = None,
    what: str = "model",
    refusals: Sequence[Refusal] = (),
) -> Verdict:
    """The verdict on the main audit, whether it has a result or not; arguments as of
    `plain_verdict`, and ValueErrors, too.
    """
    if main.result is None:
        return Verdict(
            sentences=(
                f"Not an answer yet: the audit was not possible. {_sentence(main.refused)}",
            ),
            next_steps=("Correct what the message names, then audit again.",),
            refuted=None,
        )
    return plain_verdict(
        main.result,
        claimed_epsilon=claimed_epsilon,
        warnings=warnings,
        refusals=refusals,
        kind=main.kind,
        what=what,
    )


def _no_answer(refusal: Refusal, claimed_epsilon: float | None, what: str) -> Verdict:
    """The verdict on an audit whose number is no answer: why, and what settles it; ``what`` was
    published.
    """
    sentences = [
        f"Not an answer yet. {_sentence(refusal.sentence)}",
        f"Until this is settled, the numbers of this audit say nothing about the {what}.",
    ]
    if claimed_epsilon is not None:
        sentences.append(f"The claimed epsilon of {claimed_epsilon:g} is not judged.")
    steps = (*map(_sentence, refusal.steps), _AGAIN)
    if refusal.is_direction:
        steps = _SETTLE_DIRECTION
    return Verdict(sentences=tuple(sentences), next_steps=steps, refuted=None)


def _measured(result: AuditResult, claimed_epsilon: float | None) -> Verdict:
    """The verdict on a number that is no lower bound, which judges no claimed epsilon (nats, None
    for none).
    """
    sentences = [
        "This audit measured how well an attack works. Its number is not a lower bound on epsilon "
        "and gives no guarantee, in either direction."
    ]
    if claimed_epsilon is not None:
        sentences.append(
            f"The claimed epsilon of {claimed_epsilon:g} is neither refuted nor confirmed: only a "
            "lower bound can refute a claim."
        )
    steps = [
        "Read the claim and the assumptions: they say what the number means.",
        "For a lower bound, audit records whose membership was decided by fair coins, before "
        "training or after.",
    ]
    if result.warnings:
        steps.insert(0, _MIND)
    return Verdict(
        sentences=tuple(sentences),
        next_steps=tuple(steps),
        refuted=None,
        condition=result.condition,
    )


def _bounded(
    result: AuditResult,
    epsilon: float,
    claimed_epsilon: float | None,
    warnings: Sequence[str],
    what: str,
) -> Verdict:
    """The verdict on a lower bound, ``epsilon`` in nats; a claimed one, None for none, is judged
    after the first sentence. ``what`` was published, such as "model".
    """
    judged, refuted = ([], None) if claimed_epsilon is None else _judge(result, claimed_epsilon)
    if result.design == MARKS:
        meaning = list(marks.meaning(result))
    else:
        meaning = list(_leak(result, epsilon, what) if epsilon > 0 else _no_leak(result))
    return Verdict(
        sentences=(meaning[0], *judged, *meaning[1:]),
        next_steps=tuple(_next_steps(result, epsilon, warnings, claimed_epsilon, refuted, what)),
        refuted=refuted,
        condition=result.condition,
    )


def right_share(epsilon: float, delta: float = 0.0) -> float:
    """Largest share of right guesses that (epsilon, delta)-differential privacy allows, in [1/2,
    1].
    """
    return (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon))


_MOST_DIGITS = 3  # after the point of a share in per cent
_NEARLY_ALL = 99.9  # per cent; from here on shares are told apart by the most digits


def share_text(share: float) -> str:
    """A share from one half to 1 in per cent, rounded down, with one digit or as many, up to three,
    as tell it from 50 % and from shares near 100 %.

    >>> [share_text(share) for share in (0.5, 0.5000001, 0.50049, 0.7319, 0.99987, 0.9999999)]
    ['50 %', 'a little more than 50 %', '50.04 %', '73.1 %', '99.987 %', '99.999 %']
    """
    percent = 100 * share
    for digits in (1, 2, _MOST_DIGITS):
        rounded = round_down(percent, digits)
        if rounded > 50 and (rounded < _NEARLY_ALL or digits == _MOST_DIGITS):
            return f"{rounded:.{digits}f} %"
    return "a little more than 50 %" if percent > 50 else "50 %"


def _sentence(text: str) -> str:
    text = text.strip()
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _leak(result: AuditResult, epsilon: float, what: str) -> Iterator[str]:
    """What a bound above 0 means: guesses, how sure, and what delta has to do with it."""
    guessed = "whether that record was trained on"
    if result.adjacency in _REPLACEMENTS:
        guessed = "whether that record or another one in its place was trained on"
    if result.design == FORGET:
        guessed = forgetting.GUESSED
    share = share_text(right_share(epsilon, result.delta))
    yield (
        f"For some record and some outcome, whoever sees the {what} and guesses {guessed} is right "
        f"in at least {share} of cases, against 50 % by tossing a coin{_seen_guesses(result)}."
    )
    how_sure = ""
    if result.confidence is not None:
        how_sure = f" with {100 * result.confidence:g} % confidence"
    refuted = "a privacy guarantee that allows fewer right guesses does not hold for this training."
    if result.design == FORGET:
        refuted = forgetting.KEPT
    yield f"This is a lower bound{how_sure}: the real leak may be larger, and {refuted}"
    if result.delta > 0:
        yield (
            f"The share includes delta = {result.delta:g}, the probability with which such a "
            "guarantee may fail."
        )


def _seen_guesses(result: AuditResult) -> str:
    """The share of right guesses behind the number, as the end of a sentence; "" where there are
    none.
    """
    if not result.guesses or result.correct is None:
        return ""
    percent = round_down(100 * result.correct / result.guesses, 1)
    return f"; in this audit {percent:.1f} % of {result.guesses:,} guesses were right"


def _no_leak(result: AuditResult) -> Iterator[str]:
    """What a bound of 0 means: that no leak was proved, and which one could have been."""
    most, seen = result.most, result.seen()
    records = "so many records" if result.total is None else f"{result.total:,} records"
    if most is None:
        yield "This audit found no leak that it could prove."
    elif most <= 0:
        yield (
            "This audit found no leak that it could prove, and it could not have proved one: with "
            f"{records} no result shows a leak, however large."
        )
    elif seen:
        yield f"This audit found no leak that it could prove. {seen}"
    else:
        share = share_text(right_share(most, result.delta))
        yield (
            f"This audit found no leak that it could prove; with {records} it could have shown an "
            f"epsilon of at most {_up(most)} (guesses right in {share} of cases)."
        )
    if result.design == FORGET:
        yield forgetting.NO_PROOF
        return
    yield (
        "That does not show that the training is private: a better attack or more records may find "
        "a leak."
    )


def _up(value: float) -> str:
    return f"{round_up(value):.3f}"


@dataclass(frozen=True)
class _Reading:
    """One reading of a claimed epsilon: what it would say of this audit's records, in nats."""

    words: str  # the claimed epsilon in this reading, as the subject of a sentence
    allowed: float  # what it allows where the audit looked, nats
    explained: str  # why that is more than is claimed, as the end of a sentence; "" if it is not


def _readings(result: AuditResult, claimed: float) -> list[_Reading]:
    """Each reading that the claimed epsilon may have, for the adjacency and the copies of this
    audit.
    """
    replaced = result.adjacency in _REPLACEMENTS
    changed = "a record is" if result.copies == 1 else f"{result.copies} copies of a record are"
    happens = f"{changed} replaced" if replaced else f"{changed} added or removed together"

    def reading(words: str, steps: int) -> _Reading:
        """The reading in ``words`` of a claim on one record, where the audit's records are
        ``steps`` such changes apart, by group privacy.
        """
        # k steps of (epsilon, d)-DP are one of (k epsilon, (1 + e^epsilon + ... + e^((k - 1)
        # epsilon)) d).
        growth = sum(math.exp(min(step * claimed, 700.0)) for step in range(steps))
        delta = result.delta / growth
        if steps == 1:
            return _Reading(f"{words} at delta = {delta:g}", claimed, "")
        allowed = steps * claimed
        explained = f", and such a claim allows {allowed:g} when {happens}"
        return _Reading(f"{words} at delta = {delta:.3g}", allowed, explained)

    if replaced:  # a replacement is a removal and an addition
        subject = f"As a claim for {{}} one record, epsilon = {claimed:g}"
        return [
            reading(subject.format("replacing"), result.copies),
            reading(subject.format("adding or removing"), 2 * result.copies),
        ]
    of = ", for adding or removing one record," if result.adjacency else ""
    return [reading(f"The claimed epsilon of {claimed:g}{of}", result.copies)]


def _judge(result: AuditResult, claimed: float) -> tuple[list[str], bool]:
    """Sentences on a claimed epsilon, nats, one for each of its readings and one on what that does
    not confirm; and whether every reading is refuted.
    """
    epsilon = result.epsilon or 0.0
    evidence = "the audit proved no leak"
    if epsilon > 0:
        evidence = f"the audit shows at least {round_down(epsilon):.3f}"
    sentences: list[str] = []
    every_refuted = True
    readings = _readings(result, claimed)
    for reading in readings:
        refuted = epsilon > reading.allowed
        every_refuted = every_refuted and refuted
        outcome = "refuted" if refuted else "not refuted"
        sentences.append(f"{reading.words} is {outcome}: {evidence}{reading.explained}.")
    if not every_refuted:
        why = _why_not(result, max(reading.allowed for reading in readings))
        sentences.append(f"This does not confirm the claim: {why}")
    return sentences, every_refuted


def _why_not(result: AuditResult, allowed: float) -> str:
    """Why a claimed epsilon that allows so much, nats, where the audit looked, may be wrong though
    it was not refuted.
    """
    if result.most is None:
        return "a stronger attack may still refute the claim."
    if result.most <= allowed:
        return (
            "this audit could not have refuted it, as the most it could have shown is "
            f"{_up(result.most)}."
        )
    return (
        f"the most this audit could have shown is {_up(result.most)}, by guessing every record "
        "right."
    )


def _next_steps(
    result: AuditResult,
    epsilon: float,
    warnings: Sequence[str],
    claimed: float | None,
    refuted: bool | None,
    what: str,
) -> Iterator[str]:
    """What to do after a lower bound, a sentence for each step, most urgent first.

    Args:
        epsilon: The bound, nats.
        warnings: Of the whole audit.
        claimed: A claimed epsilon, nats; None for none.
        refuted: Whether it is, in each reading; None where none was claimed.
        what: What was published, such as "model".
    """
    if warnings:
        yield _MIND
    if claimed is not None and result.delta == 0:
        yield (
            "If the claim has a delta above 0, audit again with that delta (the option delta): a "
            "bound at delta = 0 does not refute such a claim."
        )
    if refuted:
        yield (
            "Do not repeat the claim. Look for the cause: the accountant's settings, data used "
            "outside the private training, or records that occur several times."
        )
    if result.design == FORGET:
        yield from forgetting.steps(result)
    elif result.design == MARKS:
        yield from marks.steps(result)
    else:
        yield from _steps_by_size(result, epsilon, claimed, what)
    if result.adjacency == "replace" and result.design in ("game", "played"):
        yield (
            "Before the next training, toss a fair coin for each audit record (paperlib coins), "
            "and train only on those with heads. The audit is then about adding or removing a "
            "record, needs fewer assumptions and uses every audit record (the design randomized)."
        )
    if result.design != MARKS:  # whose reader owns the texts and not the model
        yield f"Keep this report with the {what}, and audit again after each new training."


def _steps_by_size(
    result: AuditResult, epsilon: float, claimed: float | None, what: str
) -> Iterator[str]:
    """What a large, a small and no bound ask for, a sentence for each step; arguments as of
    `_next_steps`.
    """
    most = result.most
    too_few = most is not None and (
        most < _LOW_CEILING or (claimed is not None and most <= claimed)
    )
    if epsilon > _HIGH:
        yield (
            "Reduce the leak: train with differential privacy (DP-SGD), for fewer epochs or with "
            "more regularisation, and remove duplicates from the training data."
        )
        yield (
            f"Look at the most exposed records before you publish the {what} or hand it to others."
        )
    elif too_few:
        yield (
            "Audit more records: with so few, even a large leak cannot be shown. The command "
            "paperlib plan says how many are needed."
        )
    if epsilon == 0:
        yield (
            "Try a stronger attack, such as scores calibrated with reference models, before you "
            "rely on this."
        )
    elif epsilon <= _HIGH and not too_few:
        yield (
            "Try a stronger attack to see whether the bound rises: it is a lower bound on the leak."
        )
