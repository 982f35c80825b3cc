"""Scores of true identifiers and of the alternatives drawn for each, and how well they tell them
apart.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from paperlib.core import FloatArray, IntArray, MembershipScores
from paperlib.core.checks import check_confidence


@dataclass(frozen=True, eq=False)
class CandidateScores:
    """Scores of identifiers and of the alternatives generated for each."""

    #: higher means member, shape (n, 1 + c, attacks); the identifier comes first
    values: FloatArray
    attacks: tuple[str, ...]
    #: occurrences of each identifier in the training data, 0 for held-out ones, shape (n,)
    groups: IntArray

    def of(self, attack: str, group: int | None = None) -> FloatArray:
        """Scores of one attack, of one group or of all, shape (n, 1 + c), without a row for a group
        that has none; a ValueError for an attack that is not among them.
        """
        rows = slice(None) if group is None else self.groups == group
        return self.values[rows, :, self.attacks.index(attack)]


def attack_quality(
    scores: FloatArray, *, draws: int = 200, confidence: float = 0.99, seed: int = 0
) -> dict[str, float]:
    """AUC and TPR at 1 % FPR of identifiers against all generated ones, as shares.

    Args:
        scores: As `CandidateScores.of` gives them, shape (n, 1 + c), the identifier first.
        draws: Bootstrap draws of identifiers for the interval of the AUC, 1 or more.
        confidence: That of both intervals, each by itself, in (0, 1).
        seed: Seed of the draws.

    Returns:
        auc and tpr, each with the ends of its interval (``_low``, ``_high``), and auc_folded, the
        larger of auc and 1 - auc.

    Raises:
        ValueError: A confidence out of range.
    """
    # For the AUC a bootstrap draws identifiers with their alternatives, which share a context. A
    # bootstrap of no hits would never see one, so the TPR gets the exact binomial interval, the
    # threshold taken as known.
    spread = (1 - check_confidence(confidence)) / 2
    wins = _wins(scores)
    aucs = _drawn_means(wins, draws, seed)
    auc = float(wins.mean())
    low, high = np.quantile(aucs, [spread, 1 - spread])
    tpr = MembershipScores(scores[:, 0], scores[:, 1:].ravel()).tpr_at_fpr(0.01)
    hits = tpr * len(scores)
    misses = (1 - tpr) * len(scores)
    return {
        "auc": auc,
        "auc_low": float(low),
        "auc_high": float(high),
        "auc_folded": max(auc, 1 - auc),
        "tpr": tpr,
        "tpr_low": float(beta.ppf(spread, hits, misses + 1)) if hits else 0.0,
        "tpr_high": float(beta.ppf(1 - spread, hits + 1, misses)) if misses else 1.0,
    }


def auc_difference(
    scores: FloatArray, other_scores: FloatArray, *, draws: int = 200
) -> tuple[float, float]:
    """AUC of a model less another's on the same identifiers, as a share, and its standard error.

    Both are scores as `CandidateScores.of` gives them, shape (n, 1 + c), the identifier first; the
    standard error is that of ``draws`` bootstrap draws of the n identifiers.
    """
    difference = _wins(scores) - _wins(other_scores)
    return float(difference.mean()), float(_drawn_means(difference, draws).std())


def _drawn_means(table: FloatArray, draws: int, seed: int = 0) -> FloatArray:
    """Mean of a table, shape (n, n), in each bootstrap draw of its rows, shape (draws,): the
    columns are those of the same identifiers, and are drawn with them.
    """
    size = len(table)
    rng = np.random.default_rng(seed)
    # How often each identifier is drawn: the mean is weighted in both directions.
    weights = rng.multinomial(size, np.full(size, 1 / size), size=draws).astype(float)
    return ((weights @ table) * weights).sum(axis=1) / size**2


def _wins(scores: FloatArray) -> FloatArray:
    """At row i and column j the share of the alternatives of identifier j whose score is below that
    of identifier i, equal ones as a half, shape (n, n); its mean is the AUC.

    ``scores`` have shape (n, 1 + c), the identifier first.
    """
    identifiers = scores[:, 0]
    table = np.empty((len(scores), len(scores)))  # gigabytes where there are many
    for column, alternatives in enumerate(np.sort(scores[:, 1:], axis=1)):
        below = np.searchsorted(alternatives, identifiers, side="left")
        not_above = np.searchsorted(alternatives, identifiers, side="right")
        table[:, column] = (below + not_above) / (2 * alternatives.size)
    return table
