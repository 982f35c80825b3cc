"""Texts of known membership under a language model: every score, and a bound where coins allow it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack, cast

import numpy as np
import pandas as pd

from paperlib.attacks.language import score_texts
from paperlib.attacks.language.windows import text_tokens
from paperlib.audits.scores import Audits, ScoreOptions, audit_scores
from paperlib.core import MembershipScores, check_at_least, check_choice, score_measures

Texts = Sequence[str] | Sequence[Sequence[int]]

BLIND_CONFIDENCE = 0.99
"""Of the interval of an AUC that is reached without the audited model."""


@dataclass(frozen=True, eq=False)
class TextsAudit:
    """How well a model's scores tell members from non-members, and what that bounds."""

    scores: pd.DataFrame  #: one row per text, members first: member, and a column per attack, higher: member
    quality: (
        pd.DataFrame
    )  #: attack, auc, auc_low, auc_high, tpr at 1 % false positives (none below 100 texts)
    blind: pd.DataFrame  #: without the audited model: signal, auc, auc_low, auc_high
    attack: str  #: whose scores are audited
    audits: Audits | None  #: None where the sides differ without the model
    refused: str  #: reason why no bound is given; empty where one is

    def __str__(self) -> str:
        shown = self.quality[["attack", "auc", "auc_low", "auc_high"]].round(3).to_string(index=False)
        return f"{self.audits or f'No bound: {self.refused}'}\n\n{shown}"


def audit_texts(
    model: Any,
    tokenizer: Any,
    members: Texts,
    nonmembers: Texts,
    *,
    contexts: tuple[Texts, Texts] | None = None,
    reference: Any = None,
    attack: str | None = None,
    copies: int = 1,
    scoring: Mapping[str, Any] | None = None,
    **options: Unpack[ScoreOptions],
) -> TextsAudit:
    """Score texts that were trained on and texts that were not, and lower-bound epsilon where both are alike.

    First it is asked whether the two sides differ without the model: by their tokens (a classifier learns on
    one half, and is judged on the other), their length, and the loss of the reference. If one of these tells
    them apart, scores of the model show that difference as well, and no bound is given.

    Guarantee:
        That of `audit_scores` with the design of ``options``, if coins chose the side of each text as it says
        and ``attack`` was chosen before any score was seen. That nothing tells the sides apart does not
        prove that coins chose them.

    Args:
        model, tokenizer: A causal language model and its tokenizer.
        members, nonmembers: Texts, or lists of token numbers, 20 or more on each side.
        contexts: What stands before the members and before the non-members, which is not scored.
        reference: A model of the same tokenizer that was trained on neither side.
        attack: A score of `score_texts`; None takes "difference" with a reference, else "loss".
        copies: Number of times that each member was trained on in one pass; claims are then about a text with
            all its copies.
        scoring: Further options of `score_texts`.
        options: Options of `audit_scores`; the design is "game" unless it is given.

    Raises:
        ValueError: Fewer texts, a text on both sides or twice on one, and what `score_texts` and
            `audit_scores` refuse.

    >>> from paperlib.models.language import LanguageModelConfig, new_language_model, train_tokenizer
    >>> texts = [f"Order {n} was sent to house {n * 7 % 100}." for n in range(100, 180)]
    >>> np.random.default_rng(0).shuffle(texts)  # coins that choose the sides
    >>> tokenizer = train_tokenizer(texts, 300, context=64)
    >>> untrained = new_language_model(LanguageModelConfig(width=16, layers=1, seed=0), len(tokenizer))
    >>> audit = audit_texts(untrained, tokenizer, texts[:40], texts[40:])
    >>> audit.audits.headline.epsilon
    0.0
    """
    if min(len(members), len(nonmembers)) < 20:
        raise ValueError(f"members, nonmembers: expected 20 or more, got {len(members)}, {len(nonmembers)}")
    texts: list[Any] = [*members, *nonmembers]
    before: list[Any] | None = None if contexts is None else [*contexts[0], *contexts[1]]
    if contexts is not None and len(contexts[0]) != len(members):
        raise ValueError(f"contexts: expected {len(members)} of members, got {len(contexts[0])}")
    whole = Counter(zip(map(tuple, before or texts), map(tuple, texts), strict=True))
    if len(whole) < len(texts):
        (_, text), times = whole.most_common(1)[0]
        shown = "".join(text) if isinstance(text[0], str) else list(text)
        raise ValueError(
            f"members, nonmembers: {len(texts) - len(whole)} texts stand there more than once, such as "
            f"{shown[:40]!r} ({times} times); leave copies out, and texts of both sides"
        )
    check_at_least(1, copies=copies)
    attack = attack or ("loss" if reference is None else "difference")
    frame = score_texts(model, tokenizer, texts, contexts=before, reference=reference, **(scoring or {}))
    check_choice("attack", attack, tuple(frame))
    member = np.arange(len(texts)) < len(members)
    signals = _without_model(tokenizer, texts, before, member, options.get("seed", 0))
    if "difference" in frame:
        signals["loss of the reference"] = member, (frame["loss"] - frame["difference"]).to_numpy()
    blind = pd.DataFrame([{"signal": name, **_auc(*one)} for name, one in signals.items()])
    apart = blind[(blind["auc_low"] > 0.5) | (blind["auc_high"] < 0.5)]
    refused = "; ".join(
        f"{one.signal} alone tells members from non-members (AUC {one.auc:.3f} [{one.auc_low:.3f}, "
        f"{one.auc_high:.3f}])"
        for one in apart.itertuples()
    )
    audits = None
    if not refused:
        values = frame[attack].to_numpy()
        options.setdefault("design", "game")
        audits = audit_scores(MembershipScores(values[member], values[~member]), **options)
        if copies > 1:
            said = f"One example is one text with all its {copies} copies."
            audits = replace(audits, audits=tuple(one.with_claim(said) for one in audits.audits))
    quality = pd.DataFrame([{"attack": name, **_auc(member, frame[name].to_numpy())} for name in frame])
    return TextsAudit(frame.assign(member=member), quality, blind, attack, audits, refused)


def _without_model(
    tokenizer: Any, texts: list[Any], before: list[Any] | None, member: np.ndarray, seed: int
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What may tell the sides apart before any model is asked: membership and scores, by name."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    parts = [texts] if before is None else [before, texts]
    if isinstance(texts[0], str):
        parts = [text_tokens(tokenizer, ["".join(both) for both in zip(*parts, strict=True)])]
    tokens = [[token for part in both for token in part] for both in zip(*parts, strict=True)]
    order = np.random.default_rng([seed, 3]).permutation(len(tokens))
    order = order[np.argsort(member[order], kind="stable")]  # halves with as many of each side
    learn, judge = order[::2], order[1::2]
    words = make_pipeline(CountVectorizer(analyzer=cast(Any, list)), LogisticRegression(max_iter=1_000))
    words.fit([tokens[at] for at in learn], member[learn])
    chances = words.predict_proba([tokens[at] for at in judge])[:, 1]
    lengths = np.array([len(one) for one in tokens], float)
    return {"which tokens stand there": (member[judge], chances), "the number of tokens": (member, lengths)}


def _auc(member: np.ndarray, values: np.ndarray) -> dict[str, float]:
    """AUC of scores with its interval, and the true-positive rate at 1 % false positives."""
    measures = score_measures(MembershipScores(values[member], values[~member]), confidence=BLIND_CONFIDENCE)
    low, high = measures.auc_interval
    rate = measures.rates[-1].true_positive_rate
    return {"auc": measures.auc, "auc_low": low, "auc_high": high, "tpr": np.nan if rate is None else rate}
