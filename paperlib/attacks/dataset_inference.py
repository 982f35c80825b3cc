"""Dataset inference: was a set of identifiers trained on? Boosted trees on attack scores, and a
rank test.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import kstest
from sklearn.ensemble import HistGradientBoostingClassifier

from paperlib.core import AuditResult, FloatArray, IntArray
from paperlib.core.checks import check_at_least, check_choice
from paperlib.words.audits import dataset_inference as words

SCHEDULES = ("forward", "kfold")
_Score = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, kw_only=True, eq=False)
class DatasetInference(AuditResult):
    """Evidence that a set of identifiers was trained on.

    Attributes:
        p_value: One-sided: identifiers rank better than chance.
        p_value_two_sided: The paper's: ranks are not uniform.
        ranks: Rank of each identifier among its candidates, 1 is best, shape (n,).
        positions: Rank as a share of the set, spread evenly within its cell: uniform on (0, 1) if
            nothing was trained on, shape (n,).
        set_size: Candidates per identifier, itself included.
        schedule: Which folds the trees saw that scored a fold, one of `SCHEDULES`.
    """

    p_value: float
    p_value_two_sided: float
    ranks: IntArray
    positions: FloatArray
    set_size: int
    schedule: str
    epsilon: float | None = None
    delta: float = 0.0
    confidence: float | None = None
    total: int | None = None
    guesses: int | None = None
    correct: int | None = None
    ceiling: float | None = None

    @property
    def headline(self) -> str:
        return words.headline(self)


def infer_dataset(
    features: ArrayLike,
    *,
    folds: int = 5,
    schedule: str = "forward",
    trees: int = 30,
    within_set: bool = True,
    seed: int = 0,
) -> DatasetInference:
    """Test whether identifiers rank better than alternatives that could have stood in their place.

    Boosted trees learn from the attacks' scores to tell identifiers from alternatives. All
    candidates of one identifier are in one fold and are scored by trees that did not see them.

    Guarantee:
        With ``schedule="forward"``, if the model does not depend on which candidate of each set is
        the identifier, both p-values are uniform: each fold is scored by trees that saw earlier
        folds only (the first by the mean of the standardized attacks). With "kfold", the paper's,
        trees saw all other folds; ranks are dependent, and the test rejects too often, as the
        notebook nid_dataset_inference counts.

    Args:
        features: Attack scores, higher means member, shape (n, 1 + c, attacks); the identifier
            comes first.
        trees: Boosting rounds.
        within_set: Standardize each attack within each set, which takes out what its candidates
            share.

    Raises:
        ValueError: Features of another shape or not finite, fewer than 2 candidates or fewer
            identifiers than folds, or unknown options.

    Source:
        Natural identifiers, section 5, after Maini et al. (2024); forward schedule, exact test of
        discrete ranks and one-sided alternative are ours.

    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(60, 8, 2))
    >>> scores[:, 0] += 2.0
    >>> infer_dataset(scores, trees=5).p_value < 0.001
    True
    """
    check_choice("schedule", schedule, SCHEDULES)
    options = {"folds": folds, "trees": trees, "within_set": within_set, "seed": seed}
    return infer_by_schedule(features, (schedule,), **options)[schedule]


def infer_by_schedule(
    features: ArrayLike,
    schedules: Sequence[str] = SCHEDULES,
    *,
    folds: int = 5,
    trees: int = 30,
    within_set: bool = True,
    seed: int = 0,
) -> dict[str, DatasetInference]:
    """`infer_dataset` by each schedule, by its name; trees that saw the same folds are fitted once.

    Args:
        features: Attack scores, higher means member, shape (n, 1 + c, attacks); the identifier
            comes first.
        schedules: Names out of `SCHEDULES`.
        folds: Parts that the identifiers are dealt into, each with all its candidates, from 2 to n.
        trees: Boosting rounds, 1 or more.
        within_set: Standardize each attack within each set before trees learn from it.
        seed: Of the folds, and of what decides between equal scores.

    Raises:
        ValueError: Features of another shape or not finite, fewer than 2 candidates, fewer
            identifiers than folds, or an unknown schedule.
    """
    for schedule in schedules:
        check_choice("schedules", schedule, SCHEDULES)
    table = _checked_features(features)
    if not 2 <= folds <= len(table):
        raise ValueError(f"folds: expected 2 to the {len(table)} identifiers, got {folds}")
    check_at_least(1, trees=trees)
    relative = _standardized_within_sets(table)
    fitted = _FittedTrees(relative if within_set else table, trees)
    results: dict[str, DatasetInference] = {}
    for schedule in schedules:
        rng = np.random.default_rng(seed)
        fold_of = rng.permutation(np.arange(len(table)) % folds)  # of each identifier
        scores = np.empty(table.shape[:2])
        for fold in range(folds):
            seen = fold_of < fold if schedule == "forward" else fold_of != fold
            held = fold_of == fold
            if seen.any():
                scores[held] = fitted.scores(seen, held)
            else:  # the first fold of "forward", before any tree could learn
                scores[held] = relative[held].mean(axis=2)
        ranks, positions = ranks_and_positions(scores, rng)
        results[schedule] = _result(schedule, ranks, positions, table.shape[1])
    return results


def _checked_features(features: ArrayLike) -> FloatArray:
    """Features as numbers, shape (identifiers, candidates, attacks), all finite; a ValueError for
    others.
    """
    table = np.asarray(features, dtype=np.float64)
    if table.ndim != 3 or table.shape[1] < 2 or not table.shape[2]:
        raise ValueError(
            "features: expected shape (identifiers, 1 + alternatives, attacks) with at least 1 "
            f"alternative and 1 attack, got {table.shape}"
        )
    bad = ~np.isfinite(table).all(axis=(1, 2))
    if bad.any():
        count = f"{bad.sum()} of {len(table)} sets"
        raise ValueError(f"features: {count} hold NaN or infinity (first at index {bad.argmax()})")
    return table


def _standardized_within_sets(table: FloatArray) -> FloatArray:
    """Each attack with mean 0 and deviation 1 within each set, 0 where all candidates score alike.

    The whole set is treated alike, so nothing tells which candidate is the identifier.
    """
    # Smaller deviations are rounding errors of equal scores.
    smallest = 1e-12 * np.maximum(1.0, np.abs(table).max(axis=1, keepdims=True))
    deviation = table.std(axis=1, keepdims=True)
    centred = table - table.mean(axis=1, keepdims=True)
    return np.where(deviation > smallest, centred / np.maximum(deviation, smallest), 0.0)


class _FittedTrees:
    """Trees on features (sets, candidates, attacks), fitted once for each choice of sets to see."""

    def __init__(self, features: FloatArray, trees: int) -> None:
        self._features = features
        self._trees = trees
        self._by_sets: dict[bytes, _Score] = {}

    def scores(self, seen: NDArray[np.bool_], held: NDArray[np.bool_]) -> FloatArray:
        """Scores, shape (held sets, candidates), by trees fitted on the ``seen`` sets.

        Both arguments are masks of shape (sets,).
        """
        key = seen.tobytes()
        if key not in self._by_sets:
            self._by_sets[key] = _fitted(self._features[seen], self._trees)
        return self._by_sets[key](self._features[held])


def _result(
    schedule: str, ranks: IntArray, positions: FloatArray, set_size: int
) -> DatasetInference:
    """Both tests of the positions, (n,), of ranks, (n,), among ``set_size`` candidates, with what a
    schedule allows to claim.
    """
    # "forward": a fold's ranks depend on earlier folds alone, so that they are uniform whatever
    # those were, and independent. In "kfold" each fold helps to rank the others.
    is_exact = schedule == "forward"
    return DatasetInference(
        epsilon=None,
        p_value=rank_test(positions, one_sided=True),
        p_value_two_sided=rank_test(positions, one_sided=False),
        ranks=ranks,
        positions=positions,
        set_size=set_size,
        schedule=schedule,
        claim=words.claim(is_exact=is_exact),
        assumptions=words.assumptions(is_exact=is_exact),
    )


def rank_test(positions: ArrayLike, *, one_sided: bool) -> float:
    """Exact p-value of a Kolmogorov-Smirnov test that positions, shape (n,), are uniform on (0, 1);
    one-sided, only positions that are too small, those of good ranks, speak against it.
    """
    # Of positions, since of ranks, which take few values, the test would be conservative. "greater"
    # compares distribution functions: it is high where positions are small.
    alternative = "greater" if one_sided else "two-sided"
    values = np.asarray(positions, dtype=float)
    return float(kstest(values, "uniform", alternative=alternative).pvalue)


def ranks_and_positions(
    scores: FloatArray, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Rank of the first score of each set, shape (n, 1 + c), among all of them, 1 the highest and
    ties at random; and its position, drawn evenly from ((rank - 1) / (1 + c), rank / (1 + c)).
    """
    better = (scores[:, 1:] > scores[:, :1]).sum(axis=1)
    tied = (scores[:, 1:] == scores[:, :1]).sum(axis=1)
    ranks = 1 + better + rng.integers(0, tied + 1)
    positions = (ranks - rng.random(ranks.size)) / scores.shape[1]
    return ranks.astype(np.int64), positions


def _fitted(features: FloatArray, trees: int) -> _Score:
    """A function from features (sets, candidates, attacks) to log odds of being the identifier
    (sets, candidates), learned from sets whose first candidate it is.
    """
    member = np.zeros(features.shape[:2])
    member[:, 0] = 1.0
    # No share of the examples is held back to stop early.
    options: dict[str, Any] = {"max_leaf_nodes": 8, "min_samples_leaf": 10, "early_stopping": False}
    model = HistGradientBoostingClassifier(max_iter=trees, random_state=0, **options)
    model.fit(features.reshape(-1, features.shape[2]), member.ravel())

    def scores(held: FloatArray) -> FloatArray:
        """Log odds of being the identifier, shape (sets, candidates), of features of shape (sets,
        candidates, attacks).
        """
        candidates = held.reshape(-1, held.shape[2])
        return model.decision_function(candidates).reshape(held.shape[:2])

    return scores
