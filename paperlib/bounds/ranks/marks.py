"""Were published texts used? The place of the published version of each among its like versions.

Before a text is published, like versions of it are made, and one of them is drawn, each with the
same probability, by coins that nothing else knows. If a model did not use the texts, nothing that
it computes depends on the draws: given the scores of all versions, the published one of each text
is any of them with the same probability, independently of the other texts. So the sum of the places
of the published versions has a law that is known exactly, whatever the score, the model and the
versions are: how alike versions are moves the power, and not the level. Two things break this: a
score that knows which version was published by another way than the model, and versions that were
not drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Never

import numpy as np
from scipy.stats import rankdata

from paperlib.bounds.ranks.audit import RankAuditResult, audit_ranks
from paperlib.core.checks import FloatArray, check_confidence
from paperlib.core.direction import check_scores
from paperlib.core.facts import reasons
from paperlib.core.scores import MembershipScores
from paperlib.words.audits import marks as words

_SMALLEST = 1e-300  # no p-value is below it, where floating point ends
FEWEST_TEXTS = 5
"""Texts that an audit needs: with fewer, even first places among few versions are no evidence."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MarksResult(RankAuditResult):
    """Whether published texts were used, with a lower bound on epsilon from the same places.

    Attributes:
        p_value: Largest probability of places as good as these if the texts were not used.
        used: Whether the p-value is at most 1 - confidence.
        mean_place: Mean place of the published versions, as a share of their set in (0, 1); 0.5 is
            expected of texts that were not used.
    """

    p_value: float
    used: bool
    mean_place: float

    @property
    def headline(self) -> str:
        return words.headline(self)


def audit_places(
    scores: MembershipScores, *others: Never, delta: float = 0.0, confidence: float = 0.95
) -> MarksResult:
    """Test whether published texts were used, from scores of all their versions.

    Guarantee:
        If the texts were not used, ``used`` is true with probability at most 1 - confidence, for
        any number of texts and versions, any score that knows the draws through the model alone,
        and ties. The epsilon, under replacement of a published version by another one of its text,
        has the guarantee of `audit_ranks`, at its own confidence.

    Args:
        scores: Scores of the published versions as members, shape (n,), and of the others as
            non-members, shape (n (k - 1),): the k - 1 others of the first text, then those of the
            second, and so on.
        delta: Delta of the privacy that is tested by the epsilon, in [0, 1).
        confidence: Of the test, and of the epsilon by itself, in (0, 1).

    Raises:
        ValueError: Arrays in place of `MembershipScores`, fewer than 5 texts, or others that are
            not as many for each text.

    Source:
        The exact law of a sum of places, ties included: this project.

    >>> rng = np.random.default_rng(0)
    >>> others = rng.normal(size=(50, 7))
    >>> losses = MembershipScores(others.min(axis=1), others.ravel(), higher_means_member=False)
    >>> result = audit_places(losses)
    >>> result.used, result.p_value < 1e-20
    (True, True)
    """
    check_scores("scores", scores, *others)
    table = by_text(scores)
    texts, each = table.shape
    places = np.asarray(rankdata(-table, method="average", axis=1))
    p_value, _ = place_p_values(scores)
    # A tie counts against the published version, so that no draw of the audit decides.
    ranks = np.asarray(rankdata(-table, method="max", axis=1))[:, 0].astype(np.int64)
    bound = audit_ranks(ranks, each, delta=delta, confidence=confidence)
    ceiling = audit_ranks(np.ones_like(ranks), each, delta=delta, confidence=confidence).epsilon
    used = p_value <= 1 - check_confidence(confidence)
    changed: dict[str, Any] = {
        "ceiling": ceiling,
        "design": "marks",
        "unit": "text",
        "direction": "higher" if scores.higher_means_member else "lower",
        "claim": words.claim(p_value, used, bound.epsilon, delta, confidence),
        "condition": words.CONDITION,
        "assumptions": words.ASSUMPTIONS,
        "refusals": reasons(
            words.equal_scores(texts) if (table == table[:, :1]).all() else None,
            *bound.refusals,
        ),
        "notes": (words.LEVELS,),
    }
    kept = {field.name: getattr(bound, field.name) for field in fields(bound)}
    return MarksResult(
        **{**kept, **changed},
        p_value=p_value,
        used=used,
        mean_place=float(((places[:, 0] - 0.5) / each).mean()),
    )


def by_text(scores: MembershipScores) -> FloatArray:
    """Scores with a row for each text, its published version first, shape (texts, versions); higher
    means used.

    Raises:
        ValueError: Fewer than 5 texts, or others that are not as many for each text.
    """
    oriented = scores.oriented()
    texts, others = oriented.member.size, oriented.nonmember.size
    if texts < FEWEST_TEXTS:
        raise ValueError(f"scores: {texts} texts are too few, {FEWEST_TEXTS} are needed")
    if others % texts:
        raise ValueError(
            f"scores: {others} other versions of {texts} texts; expected as many of each text"
        )
    return np.column_stack([oriented.member, oriented.nonmember.reshape(texts, -1)])


def place_p_values(scores: MembershipScores) -> tuple[float, float]:
    """Exact p-values of the sum of places of the published versions: of places as good as these or
    better, and of places as bad or worse; both in (0, 1].

    Tied versions share their mean place; the law is that of the draws given all scores.

    Raises:
        ValueError: Fewer than 5 texts, or others that are not as many for each text.

    >>> losses = MembershipScores(np.zeros(5), np.ones(15), higher_means_member=False)
    >>> round(4**5 * place_p_values(losses)[0], 6)
    1.0
    """
    # Twice a place is a whole number, also where tied versions share one.
    doubled = np.rint(2 * np.asarray(rankdata(-by_text(scores), axis=1))).astype(np.int64)
    # In an order of their own, since that of the texts would decide how the sum is rounded.
    sorted_places = sorted(np.sort(doubled, axis=1).tolist())
    law = _law_of_sum([np.bincount(row) / len(row) for row in sorted_places])
    total = int(doubled[:, 0].sum())
    # Every term of a tail is rounded by a few units in the last place, once for each text.
    rounding = 1 + 1e-12 * len(doubled)
    good, bad = law[: total + 1].sum(), law[total:].sum()
    return (
        float(np.clip(good * rounding, _SMALLEST, 1)),
        float(np.clip(bad * rounding, _SMALLEST, 1)),
    )


def _law_of_sum(laws: Sequence[FloatArray]) -> FloatArray:
    """Probabilities of each value, from 0 on, of a sum of independent whole numbers.

    ``laws`` has those of each number: the probabilities of 0, 1, 2, ..., an array for each.
    Neighbours are joined in a tree by direct convolution, in which nothing cancels: small tails
    keep their relative precision.
    """
    while len(laws) > 1:
        joined = [np.convolve(*pair) for pair in zip(laws[:-1:2], laws[1::2], strict=False)]
        laws = [*joined, *laws[2 * len(joined) :]]
    return laws[0]
