"""An audit's number in plain words: what it means, whether it refutes a claimed epsilon, what to do
next.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from paperlib.core import AuditResult, ScoreAudit, check_nonnegative, json_ready, round_down
from paperlib.core.direction import NO_ANSWER
from paperlib.core.results import round_up

_HIGH = 1.0  # nats; guesses right at most 73 % of the time are what this lets through
_LOW_CEILING = 3.0  # nats; an audit that can show less leaves large leaks open
_MIND = "Read the warnings beside the number first: they name what weakens it."
_SETTLE = (
    "Check what the values are: low losses point to members, and so do high scores. If they are "
    "your own, say which with --kind losses or --kind scores of `paperlib audit` (in Python: "
    "higher_means_member).",
    (
        "Check who is a member: 1, true or train must mark the training records, or the first file "
        "hold them."
    ),
    "If both are right, find out why training records look less familiar to the model than others; "
    "fix the direction for a reason, not because the other one gives a larger number.",
    "Then audit again.",
)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What an audit's number means, for a reader who does not know differential privacy."""

    sentences: tuple[str, ...]  #: most important first
    next_steps: tuple[str, ...]  #: most urgent first
    #: Whether the claimed epsilon is, under both adjacencies where they differ; None without claim
    #: or answer.
    refuted: bool | None
    condition: str = ""  #: the assumption that must stand beside the verdict

    def __str__(self) -> str:
        lines = [*self.sentences, *([f"Condition: {self.condition}."] if self.condition else [])]
        steps = (f"  {at}. {text}" for at, text in enumerate(self.next_steps, 1))
        return "\n".join([*lines, "", "What to do next:", *steps])

    def to_dict(self) -> dict[str, Any]:
        """Every field as JSON-ready values."""
        return json_ready(self)


def plain_verdict(
    result: AuditResult,
    *,
    claimed_epsilon: float | None = None,
    warnings: Sequence[str] = (),
    kind: str = "lower bound",
    what: str = "model",
) -> Verdict:
    """Say in plain words what the result of the main audit means.

    A bound from a game speaks of replacing one record. A claim for adding or removing a record
    allows twice its epsilon there, so that such a result judges both readings of a claim.

    Args:
        claimed_epsilon: Epsilon that somebody claims for the training, nats, at least 0.
        warnings: Warnings of the whole audit; one of a reversed score direction makes it no answer.
        kind: "lower bound", "measurement" or "baseline"; only a lower bound refutes a claim.
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
    Someone who sees the model can guess, for some record, whether that record was trained on: the
    guess is right in up to 96.0 % of cases, against 50 % by tossing a coin.
    >>> verdict.refuted
    True
    """
    if claimed_epsilon is not None:
        claimed_epsilon = check_nonnegative("claimed_epsilon", claimed_epsilon)
    every = tuple(dict.fromkeys((*warnings, *result.warnings)))
    if reversed_one := next(filter(is_reversed, every), None):
        sentences = [
            f"Not an answer yet. {_sentence(reversed_one)}",
            "Until this is settled, the numbers of this audit say nothing about the model.",
        ]
        if claimed_epsilon is not None:
            sentences.append(f"The claimed epsilon of {claimed_epsilon:g} is not judged.")
        settle = _SETTLE
        if (
            NO_ANSWER in reversed_one
        ):  # nothing points the other way: what to do stands behind a semicolon
            settle = (*map(_sentence, reversed_one.split("; ")[1:]), _SETTLE[-1])
        return Verdict(sentences=tuple(sentences), next_steps=settle, refuted=None)
    if result.epsilon is None or kind != "lower bound":
        sentences = [
            "This audit measured how well an attack works. Its number is not a lower bound on "
            "epsilon and gives no guarantee, in either direction."
        ]
        if claimed_epsilon is not None:
            sentences.append(
                f"The claimed epsilon of {claimed_epsilon:g} is neither refuted nor confirmed: "
                "only a lower bound can refute a claim."
            )
        steps = (
            *([_MIND] if result.warnings else []),
            "Read the claim and the assumptions: they say what the number means.",
            "For a lower bound, audit records whose membership was decided by fair coins, before "
            "training or after.",
        )
        return Verdict(
            sentences=tuple(sentences), next_steps=steps, refuted=None, condition=result.condition
        )
    judged, refuted = ([], None) if claimed_epsilon is None else _judge(result, claimed_epsilon)
    first, *others = _leak(result, result.epsilon) if result.epsilon > 0 else _no_leak(result)
    steps = _next_steps(result, result.epsilon, every, claimed_epsilon, refuted)
    return Verdict(
        sentences=tuple(
            text.replace("the model", f"the {what}") for text in (first, *judged, *others)
        ),
        next_steps=tuple(text.replace("the model", f"the {what}") for text in steps),
        refuted=refuted,
        condition=result.condition,
    )


def audit_verdict(
    main: ScoreAudit,
    warnings: Sequence[str],
    claimed_epsilon: float | None = None,
    what: str = "model",
) -> Verdict:
    """The verdict on the main audit, whether it has a result or not."""
    if main.result is not None:
        own: Any = {
            "claimed_epsilon": claimed_epsilon,
            "warnings": warnings,
            "kind": main.kind,
            "what": what,
        }
        return plain_verdict(main.result, **own)
    return Verdict(
        sentences=(f"Not an answer yet: the audit was not possible. {_sentence(main.refused)}",),
        next_steps=("Correct what the message names, then audit again.",),
        refuted=None,
    )


def is_reversed(warning: str) -> bool:
    """Whether a warning says that a direction is probably reversed, or that the scores say
    nothing.
    """
    return "probably reversed" in warning or NO_ANSWER in warning


def right_share(epsilon: float, delta: float = 0.0) -> float:
    """Largest share of right guesses that (epsilon, delta)-differential privacy allows, in [1/2,
    1].
    """
    return (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon))


def share_text(share: float) -> str:
    """A share of at least one half in per cent, rounded down, with the digits that tell it from the
    ends.
    """
    percent = 100 * share
    for digits in (1, 2, 3):
        shown = round_down(percent, digits)
        if shown > 50 and (shown < 99.9 or digits == 3):
            return f"{shown:.{digits}f} %"
    return "a little more than 50 %" if percent > 50 else "50 %"


def ceiling_of(result: AuditResult) -> float | None:
    """The largest epsilon that so many examples could have shown, nats; None where that is not
    known.
    """
    ceiling = getattr(result, "ceiling", None)
    known_c = getattr(result, "known_c", 0.0)
    if ceiling is None or known_c is None:
        return None
    return max(0.0, float(ceiling) - float(known_c))


def adjacency_of(result: AuditResult) -> Literal["replacement", "add/remove", ""]:
    """What two neighbouring training sets differ in, by the claim; "" where the claim leaves it
    open.
    """
    words = result.claim.lower()
    replaced = "replac" in words
    added = "adding or removing" in words or "add/remove" in words
    if replaced == added:
        return ""
    return "replacement" if replaced else "add/remove"


def copies_of(result: AuditResult) -> int:
    """Number of records that one example of the audit is, by the claim: a record with its
    copies.
    """
    found = re.search(r"with all its (\d+) copies", result.claim)
    return int(found[1]) if found else 1


def _sentence(text: str) -> str:
    text = text.strip()
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _leak(result: AuditResult, epsilon: float) -> Iterator[str]:
    delta = float(getattr(result, "delta", 0.0))
    what = "whether that record was trained on"
    if adjacency_of(result) == "replacement":
        what = "whether that record or another one in its place was trained on"
    share = share_text(right_share(epsilon, delta))
    yield (
        f"Someone who sees the model can guess, for some record, {what}: the guess is right in up "
        f"to {share} of cases, against 50 % by tossing a coin."
    )
    confidence = getattr(result, "confidence", None)
    how_sure = "" if confidence is None else f" with {100 * confidence:g} % confidence"
    yield (
        f"This is a lower bound{how_sure}: the real leak may be larger, and a privacy guarantee "
        "that allows fewer right guesses does not hold for this training."
    )
    if delta > 0:
        yield (
            f"The share includes delta = {delta:g}, the probability with which such a guarantee "
            "may fail."
        )


def _no_leak(result: AuditResult) -> Iterator[str]:
    ceiling, total = ceiling_of(result), getattr(result, "total", None)
    detection: Any = getattr(result, "detection", None)
    records = "so many records" if total is None else f"{total:,} records"
    if ceiling is None:
        yield "This audit found no leak that it could prove."
    elif ceiling <= 0:
        yield (
            "This audit found no leak that it could prove, and it could not have proved one: with "
            f"{records} no result shows a leak, however large."
        )
    elif getattr(detection, "records", None) is not None:
        yield f"This audit found no leak that it could prove. {detection.sentence}"
    else:
        share = share_text(right_share(ceiling, float(getattr(result, "delta", 0.0))))
        yield (
            f"This audit found no leak that it could prove; with {records} it could have shown an "
            f"epsilon of at most {_up(ceiling)} (guesses right in up to {share} of cases)."
        )
    yield (
        "That does not show that the training is private: a better attack or more records may "
        "find a leak."
    )


def _up(value: float) -> str:
    return f"{round_up(value):.3f}"


def _judge(result: AuditResult, claimed: float) -> tuple[list[str], bool]:
    """Sentences on a claimed epsilon, and whether each reading of the claim is refuted."""
    delta, epsilon = float(getattr(result, "delta", 0.0)), result.epsilon or 0.0
    shown = (
        f"the audit shows at least {round_down(epsilon):.3f}"
        if epsilon > 0
        else "the audit proved no leak"
    )
    kind, copies = adjacency_of(result), copies_of(result)
    what = "a record is" if copies == 1 else f"{copies} copies of a record are"
    happens = f"{what} replaced" if kind == "replacement" else f"{what} added or removed together"

    def reading(words: str, steps: int) -> tuple[str, float, str]:
        # k steps of (epsilon, d)-DP are one of (k epsilon, (1 + e^epsilon + ... + e^((k - 1)
        # epsilon)) d).
        each = delta / sum(math.exp(min(step * claimed, 700.0)) for step in range(steps))
        more = f", and such a claim allows {steps * claimed:g} when {happens}" if steps > 1 else ""
        return f"{words} at delta = {each:{'.3g' if steps > 1 else 'g'}}", steps * claimed, more

    if kind == "replacement":
        words = f"As a claim for {{}} one record, epsilon = {claimed:g}"
        readings = [
            reading(words.format("replacing"), copies),
            reading(words.format("adding or removing"), 2 * copies),
        ]
    else:
        of = ", for adding or removing one record," if kind else ""
        readings = [reading(f"The claimed epsilon of {claimed:g}{of}", copies)]
    outcomes = [epsilon > allowed for _, allowed, _ in readings]
    sentences = [
        f"{words} is {'refuted' if outcome else 'not refuted'}: {shown}{more}."
        for (words, _, more), outcome in zip(readings, outcomes, strict=True)
    ]
    if not all(outcomes):
        ceiling, most = ceiling_of(result), max(allowed for _, allowed, _ in readings)
        if ceiling is None:
            why = "a stronger attack may still refute the claim."
        elif ceiling <= most:
            why = (
                "this audit could not have refuted it, as the most it could have shown is "
                f"{_up(ceiling)}."
            )
        else:
            why = (
                f"the most this audit could have shown is {_up(ceiling)}, by guessing every "
                "record right."
            )
        sentences.append(f"This does not confirm the claim: {why}")
    return sentences, all(outcomes)


def _next_steps(
    result: AuditResult,
    epsilon: float,
    warnings: Sequence[str],
    claimed: float | None,
    refuted: bool | None,
) -> Iterator[str]:
    if warnings:
        yield _MIND
    if claimed is not None and float(getattr(result, "delta", 0.0)) == 0:
        yield (
            "If the claim has a delta above 0, audit again with that delta (the option delta): a "
            "bound at delta = 0 does not refute such a claim."
        )
    if refuted:
        yield (
            "Do not repeat the claim. Look for the cause: the accountant's settings, data used "
            "outside the private training, or records that occur several times."
        )
    ceiling = ceiling_of(result)
    few = ceiling is not None and (
        ceiling < _LOW_CEILING or (claimed is not None and ceiling <= claimed)
    )
    if epsilon > _HIGH:
        yield (
            "Reduce the leak: train with differential privacy (DP-SGD), for fewer epochs or with "
            "more regularisation, and remove duplicates from the training data."
        )
        yield "Look at the most exposed records before you publish the model or hand it to others."
    elif few:
        yield (
            "Audit more records: with so few, even a large leak cannot be shown. The command "
            "paperlib plan says how many are needed."
        )
    if epsilon == 0:
        yield (
            "Try a stronger attack, such as scores calibrated with reference models, before you "
            "rely on this."
        )
    elif epsilon <= _HIGH and not few:
        yield (
            "Try a stronger attack to see whether the bound rises: it is a lower bound on the leak."
        )
    if adjacency_of(result) == "replacement" and "coin" in result.condition:
        yield (
            "Before the next training, toss a fair coin for each audit record (paperlib coins), "
            "and train only on those with heads. The audit is then about adding or removing a "
            "record, needs fewer assumptions and uses every audit record (the design randomized)."
        )
    yield "Keep this report with the model, and audit again after each new training."
