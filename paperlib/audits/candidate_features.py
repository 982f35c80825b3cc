"""Rank audits that learn from sets already revealed which candidate to guess, and which set comes
next.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from paperlib.audits.features import (
    RECALL_SHARE,
    REFIT,
    AdditiveModel,
    Classifier,
    Flags,
    checked_features,
)
from paperlib.bounds import audit_ranks
from paperlib.bounds.ranks.audit import RankAuditResult
from paperlib.core import FloatArray, IntArray
from paperlib.core.checks import check_counts
from paperlib.words.ranks import learned_assumptions

_OTHERS = 8  # candidates of a set, at most, that a fit compares with the true one


def audit_candidate_features(
    features: ArrayLike,
    true: ArrayLike,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    seed: int = 0,
    model: Classifier | None = None,
) -> RankAuditResult:
    """Lower-bound epsilon from candidate sets with several signals per candidate.

    One set in ten is looked at. A model then learns from the revealed sets what the true candidate
    is like, guesses in the sets where it is surest, and is fitted again as more are revealed.

    Guarantee:
        That of `audit_ranks`, search and learning included, whatever the features and the model.

    Args:
        features: Signals of each candidate, finite, shape (m, k, d): m sets of k candidates each, 2
            or more.
        true: Position of the true candidate in its set, 0 to k - 1, shape (m,), perhaps always the
            same.
        delta, confidence: As for `audit_ranks`.
        seed: Seed of the looks, the shuffle and ties, 0 or more.
        model: As for `audit_features`.

    Raises:
        ValueError: Features that are not finite or of another shape, positions that are in no set,
            or a level out of range.

    Source:
        This project: a predictable order in the supermartingale over sets of `audit_ranks`.

    >>> rng = np.random.default_rng(0)
    >>> difficulty, loss = rng.normal(size=(2, 300, 16))
    >>> loss += 3 * difficulty
    >>> loss[:, 0] -= 3
    >>> audit_candidate_features(np.stack([loss, difficulty], axis=2), np.zeros(300)).epsilon > 3
    True
    """
    shape: tuple[int, ...] = np.shape(features)
    if len(shape) != 3 or shape[0] < 3 or shape[1] < 2:
        raise ValueError(
            "features: expected 3 or more sets of 2 or more candidates, shape (sets, candidates, "
            f"columns), got shape {shape}"
        )
    sets = checked_features(
        "features", np.reshape(features, (shape[0] * shape[1], shape[2]))
    ).reshape(shape)
    positions = check_counts("true", true)
    if positions.shape != shape[:1]:
        raise ValueError(
            f"true: expected {shape[0]} positions like features, got shape {positions.shape}"
        )
    if (positions >= shape[1]).any():
        raise ValueError(
            f"true: expected positions from 0 to {shape[1] - 1}, got {int(positions.max())}"
        )
    # 3: a stream of the seed that other audits do not draw from. The order in which candidates were
    # given must not tell the true one.
    rng = np.random.default_rng([seed, 3])
    order = rng.permuted(np.tile(np.arange(sets.shape[1]), (len(sets), 1)), axis=1)
    sets = np.take_along_axis(sets, order[:, :, None], axis=1)
    positions = (order == positions[:, None]).argmax(axis=1)
    hits = learned_hits(sets, positions, AdditiveModel() if model is None else model, rng)
    ranks = np.where(hits, 1, 2)
    margins = -np.arange(hits.size, dtype=float)  # the order of guessing
    result = audit_ranks(ranks, sets.shape[1], delta=delta, confidence=confidence, margins=margins)
    return replace(result, assumptions=learned_assumptions(len(sets) - hits.size))


def learned_hits(
    sets: FloatArray, true: IntArray, model: Classifier, rng: np.random.Generator
) -> Flags:
    """Whether each guess was right, in the order of guessing, without the sets looked at.

    `RECALL_SHARE` of the sets, at least one, are looked at first.

    Args:
        sets: Features, shape (m, k, d), candidates in random order within each set.
        true: Positions of the true candidates, shape (m,).
        model: Fitted anew whenever the revealed sets have grown by a fifth.
        rng: Draws the sets that are looked at, and the candidates that a fit compares.

    Returns:
        Shape (m - sets looked at,).
    """
    revealed = np.zeros(len(sets), dtype=bool)
    looks = max(1, math.ceil(RECALL_SHARE * len(sets)))
    revealed[rng.permutation(len(sets))[:looks]] = True
    # What a set has in common says nothing of which of its candidates is true.
    rows = sets - sets.mean(axis=1, keepdims=True)
    hits: list[Flags] = []
    while not revealed.all():
        odds = _odds(rows, true, revealed, model, rng)
        guess = odds.argmax(axis=1)
        # One candidate of a set is true: that it is the guess has its share of the odds as chance.
        sure = odds.max(axis=1) / odds.sum(axis=1)
        hidden = np.flatnonzero(~revealed)
        # The surest sets are guessed, until the revealed ones have grown by a fifth: a new fit.
        size = max(1, math.floor((REFIT - 1) * revealed.sum()))
        block = hidden[np.argsort(-sure[hidden], kind="stable")[:size]]
        revealed[block] = True
        hits.append(guess[block] == true[block])
    return np.concatenate(hits)


def _odds(
    rows: FloatArray, true: IntArray, revealed: Flags, model: Classifier, rng: np.random.Generator
) -> FloatArray:
    """Odds of each candidate to be the true one, shape (m, k), as a model learns from the true and
    up to eight other candidates of each revealed set, drawn by ``rng``.

    Args:
        rows: Features, shape (m, k, d).
        true: Positions of the true candidates, shape (m,); those of hidden sets are not read.
        revealed: Whether each set is revealed, shape (m,).
        model: Fitted to these candidates anew.
    """
    fitted = np.flatnonzero(revealed)  # sets to learn from
    size = rows.shape[1]
    # Distance from the true candidate to each compared one, modulo the size: its own 0 first.
    others = rng.permuted(np.tile(np.arange(1, size), (fitted.size, 1)), axis=1)[:, :_OTHERS]
    shifts = np.column_stack([np.zeros(fitted.size, dtype=int), others])
    candidates = (true[fitted, None] + shifts) % size
    learned = rows[fitted[:, None], candidates]
    labels = np.zeros(candidates.shape, dtype=bool)
    labels[:, 0] = True
    model.fit(learned.reshape(-1, rows.shape[2]), labels.ravel())
    chance = np.asarray(model.predict_proba(rows.reshape(-1, rows.shape[2])), float)[:, 1]
    chance = chance.clip(1e-12, 1 - 1e-12).reshape(rows.shape[:2])
    return chance / (1 - chance)
