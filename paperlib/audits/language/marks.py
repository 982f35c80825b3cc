"""Texts with a mark: whether the version of each that was published was used, by the places of all
its versions.
"""

import hashlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from paperlib.audits.score_results import Audits
from paperlib.bounds.ranks.marks import audit_places, place_p_values
from paperlib.core import Coins, FloatArray, MembershipScores, ScoreAudit
from paperlib.core.facts import Refusal, reasons
from paperlib.core.sealed import check_loaded
from paperlib.words.audits import marks as words
from paperlib.words.coins import sealed_assumptions, seed_warnings

UNFAIR_LEVEL = 0.001
"""Chance, at most, that published versions that were drawn are said to stand apart without the
model, all signals together.
"""

PROMPT = "Continue this text, word for word:\n\n"
"""What stands before the beginning of a text that a chat is to continue."""

_SHORTEST_PROMPT = 20  # characters; a shorter beginning is that of many texts
_COMPARED = 300  # characters of an answer that are compared


def version_names(name: str, versions: Sequence[str]) -> list[str]:
    """The ids of the versions of a text of this name: a hash of each stands in them, so that the
    hash of the coins seals the versions as well.
    """
    names: list[str] = []
    for number, version in enumerate(versions, 1):
        digest = hashlib.sha256(version.encode()).hexdigest()
        names.append(f"{name}/{number}-{digest[:16]}")
    return names


def prompts_of(coins: Coins, texts: Mapping[str, str]) -> dict[str, str]:
    """For each text, by its name, what a chat is to continue: the beginning that its versions,
    ``texts`` by id, have in common; texts without one of 20 characters are left out.

    Raises:
        ValueError: As for `sealed_versions`.
    """
    prompts: dict[str, str] = {}
    for name, versions in sealed_versions(coins, texts).items():
        beginning = _common_beginning(versions)
        if len(beginning) >= _SHORTEST_PROMPT:
            prompts[name] = PROMPT + beginning
    return prompts


def _common_beginning(versions: Sequence[str]) -> str:
    """What all of these texts begin with, up to the last whole word."""
    first, last = min(versions), max(versions)  # all others lie between them
    length = 0
    while length < min(len(first), len(last)) and first[length] == last[length]:
        length += 1
    return first[: first.rfind(" ", 0, length) + 1]


def sealed_versions(coins: Coins, texts: Mapping[str, str]) -> dict[str, list[str]]:
    """The versions of each text by its name, in the order of the coins.

    Raises:
        ValueError: Other coins than those of versions, or versions that are missing, unknown or not
            those that were sealed.
    """
    check_loaded(coins)
    if not coins.versions:
        raise ValueError("coins: expected those of `paperlib mark`, which draw versions of texts")
    coins.places(list(texts))
    versions: dict[str, list[str]] = {}
    for version_id in coins.ids:
        name = version_id.rpartition("/")[0]
        versions.setdefault(name, []).append(texts[version_id])
    names = [name for text, all_of in versions.items() for name in version_names(text, all_of)]
    changed = [name for name, sealed in zip(names, coins.ids, strict=True) if name != sealed]
    if changed:
        raise ValueError(
            f"versions: {len(changed)} are not those that were sealed, such as {changed[0]!r}; "
            "bring the file as `paperlib mark` wrote it"
        )
    return versions


def audit_marks(
    scores: MembershipScores,
    coins: Coins,
    texts: Mapping[str, str],
    *,
    reference: MembershipScores | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> Audits:
    """Say whether published texts were used, from scores of all their versions.

    Guarantee:
        That of `audit_places`. Published versions that were drawn are refused as unfair with
        probability at most 0.1 %, which takes nothing from it.

    Args:
        scores: Those of ``coins.scores(...)`` of all versions.
        coins: Those of `toss_versions`.
        texts: Each version by its id.
        reference: The like scores of a model that did not see the texts, for the blind test.
        delta, confidence: As for `audit_places`.

    Raises:
        ValueError: Scores of other versions, and what `sealed_versions` and `audit_places` refuse.
    """
    versions = sealed_versions(coins, texts)
    if scores.member.size != len(versions) or len(scores) != len(coins.ids):
        raise ValueError("coins: for another number of versions; use coins.scores(...)")
    result = audit_places(scores, delta=delta, confidence=confidence)
    signals = _signals(coins, texts)
    if reference is not None:
        signals["the reference model"] = reference
    refusals = reasons(_unfair(signals), *result.refusals)
    audit = ScoreAudit(
        title=words.TITLE,
        kind="lower bound",
        purpose=words.PURPOSE,
        result=replace(result, refusals=refusals),
    )
    audit = audit.with_claim("", *sealed_assumptions(coins, None), coins=coins.commitment)
    return Audits(scores, (audit,), "marks", reading=seed_warnings(coins), coins=coins)


def _signals(coins: Coins, texts: Mapping[str, str]) -> dict[str, MembershipScores]:
    """What is known of the versions without any model, by name, a number for each version:
    published versions are the members.
    """
    in_order = [texts[name] for name in coins.ids]
    values: dict[str, list[int]] = {
        "the order in which versions were made": list(range(len(in_order))),
        "the number of characters": list(map(len, in_order)),
        "the size when compressed": [len(zlib.compress(text.encode())) for text in in_order],
    }
    return {
        name: MembershipScores.from_labels(np.array(numbers, float), coins.included)
        for name, numbers in values.items()
    }


def _unfair(signals: Mapping[str, MembershipScores]) -> Refusal | None:
    """A refusal where signals set the published versions apart, tested for high and for low values,
    with error `UNFAIR_LEVEL` for all signals together; None where none does.
    """
    apart: list[tuple[str, float]] = []
    for name, values in signals.items():
        p_value = min(1.0, 2 * min(place_p_values(values)))
        if p_value <= UNFAIR_LEVEL / len(signals):
            apart.append((name, p_value))
    return words.unfair(apart, UNFAIR_LEVEL) if apart else None


def completion_scores(
    coins: Coins, texts: Mapping[str, str], answers: Mapping[str, str]
) -> dict[str, float]:
    """For each version by its id, how alike a chat's answer and its continuation of the prompt are,
    in [0, 1]; 0 for all versions of a text that has no prompt.

    Args:
        answers: The answer to each of `prompts_of`, by the name of the text.

    Raises:
        ValueError: A prompt without an answer, or an answer of no prompt.
    """
    prompts = prompts_of(coins, texts)
    if answers.keys() != prompts.keys():
        different = sorted(answers.keys() ^ prompts.keys())
        raise ValueError(
            f"answers: {len(different)} texts have a prompt and no answer, or an answer and no "
            f"prompt, such as {different[0]!r}; bring one answer to each prompt, '-' for none"
        )
    scores: dict[str, float] = {}
    for version_id in coins.ids:
        name = version_id.rpartition("/")[0]
        scores[version_id] = 0.0
        if name in prompts:
            beginning = prompts[name].removeprefix(PROMPT)
            continuation = texts[version_id].removeprefix(beginning)
            answer = answers[name].partition(beginning)[2] or answers[name]
            scores[version_id] = _likeness(answer.strip(), continuation.strip())
    return scores


def _likeness(answer: str, continuation: str) -> float:
    """Share of characters, in [0, 1], that both have in common in their order: of the first 300 of
    the continuation, or all, and as many of the answer.
    """
    length = min(len(continuation), _COMPARED)
    matcher = SequenceMatcher(None, continuation[:length], answer[:length], autojunk=False)
    return matcher.ratio()


def model_scores(
    model: Any,
    tokenizer: Any,
    texts: Mapping[str, str],
    *,
    reference: Any = None,
    batch_size: int = 32,
) -> tuple[dict[str, float], dict[str, float] | None]:
    """Scores of each version by its id, nats, higher for one that was used; and those of the
    reference, None without one.

    A score is the log-probability of the whole version under the model, less that under a
    ``reference`` with the same tokenizer, if there is one; the reference's is its log-probability.

    Args:
        texts: Each version by its id.
        batch_size: Texts of a batch.

    Raises:
        ValueError: A text that `score_texts` refuses.
    """
    of_model = _log_probabilities(model, tokenizer, texts, batch_size)
    names = list(texts)
    if reference is None:
        return dict(zip(names, of_model.tolist(), strict=True)), None
    of_reference = _log_probabilities(reference, tokenizer, texts, batch_size)
    rises = (of_model - of_reference).tolist()
    return (
        dict(zip(names, rises, strict=True)),
        dict(zip(names, of_reference.tolist(), strict=True)),
    )


def _log_probabilities(
    model: Any, tokenizer: Any, texts: Mapping[str, str], batch_size: int
) -> FloatArray:
    """The log-probability of each whole text, nats, shape (texts,)."""
    from paperlib.attacks.language import score_texts
    from paperlib.attacks.language.windows import text_tokens

    in_order = list(texts.values())
    table = score_texts(model, tokenizer, in_order, attacks=["loss"], batch_size=batch_size)
    # Versions differ in their number of tokens: the mean alone would favour those with many.
    counts = [len(tokens) for tokens in text_tokens(tokenizer, in_order)]
    return table["loss"].to_numpy() * np.array(counts)
