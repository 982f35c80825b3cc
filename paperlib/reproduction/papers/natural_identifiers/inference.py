"""Dataset inference with a known truth: trained sets, held-out sets, and growing numbers of
identifiers.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from paperlib.attacks.dataset_inference import SCHEDULES, infer_by_schedule
from paperlib.audits.candidates import CandidateScores
from paperlib.core import FloatArray
from paperlib.core.intervals import share_interval
from paperlib.report import progress
from paperlib.reproduction.papers.natural_identifiers.planted import PlantedConfig

FEATURES = ("loss", "min_k", "min_k_pp", "recall")
"""The attacks that the paper's classifier sees."""
_HELD_OUT = "held out"
_NULL_SETS = 7  # stream of a seed for sets that were not trained on
_TESTS = 100_000  # seeds of folds and ties for each seed of the corpus


@dataclass(frozen=True, kw_only=True)
class InferenceConfig:
    """Settings of dataset inference."""

    #: corpus and model; each trained group has as many identifiers as a suspect set needs
    planted: PlantedConfig = field(
        default_factory=lambda: PlantedConfig(repetitions=(1, 4, 16), identifiers=100, held_out=200)
    )
    set_size: int = 100  #: identifiers of a suspect set
    generated: int = 31  #: alternatives per identifier, 1 or more
    held_out_sets: int = 1_000  #: number of null sets whose rejections are counted
    null_alternatives: int = 15  #: alternatives per identifier in those
    folds: int = 5  #: folds of the classifier, 2 or more
    trees: int = 15  #: boosted trees of the classifier, 1 or more

    def __post_init__(self) -> None:
        """Refuse (ValueError) sets and nulls that are larger than what was planted or generated."""
        if self.set_size > min(self.planted.identifiers, self.planted.held_out):
            raise ValueError(
                f"set_size: expected at most the {self.planted.identifiers} identifiers per group "
                f"and the {self.planted.held_out} held out, got {self.set_size}"
            )
        if not 1 <= self.null_alternatives <= self.generated:
            got = self.null_alternatives
            raise ValueError(f"null_alternatives: expected 1 to {self.generated}, got {got}")


def suspect_sets(config: InferenceConfig, scores: CandidateScores) -> pd.DataFrame:
    """Table 10: p-values of one set of each trained group, and of the held-out identifiers.

    ``scores`` are of the config's corpus. A row for each set and schedule: columns set and those of
    `p_value_rows`.
    """
    rows = [
        {"set": name, **row}
        for name, in_group in _sets(scores).items()
        for row in _tested(scores.values[in_group][: config.set_size], None, config, seed=0)
    ]
    return pd.DataFrame(rows)


def p_values_by_size(
    config: InferenceConfig, scores: CandidateScores, sizes: Sequence[int], *, draws: int = 5
) -> pd.DataFrame:
    """Figure 3: quartiles of p-values over ``draws`` random sets of each size, by the schedule
    "forward".

    A row for each group (set) and size (identifiers): median, low and high (the quartiles) of the
    one-sided p-value, and the median of the two-sided one.
    """
    tested = p_values_of_draws(config, scores, sizes, draws=draws, schedule="forward")
    spread = {
        "median": ("p_value", "median"),
        "low": ("p_value", lambda values: np.quantile(values, 0.25)),
        "high": ("p_value", lambda values: np.quantile(values, 0.75)),
        "median_two_sided": ("p_value_two_sided", "median"),
    }
    return tested.groupby(["set", "identifiers"], sort=False).agg(**spread).reset_index()


def p_values_of_draws(
    config: InferenceConfig,
    scores: CandidateScores,
    sizes: Sequence[int],
    *,
    draws: int,
    schedule: str | None,
    held_out: bool = True,
) -> pd.DataFrame:
    """p-values of random sets of each size from each group: a row per set, size, draw and schedule.

    Args:
        sizes: Identifiers of a set; a smaller group is taken whole.
        draws: Random sets of each group and size.
        schedule: One of `SCHEDULES`, or None for both.
        held_out: Whether the group that was not trained on is drawn from too.
    """
    sets = _sets(scores)
    if not held_out:
        sets.pop(_HELD_OUT, None)
    rows: list[dict[str, Any]] = []
    drawn = list(itertools.product(sets, sizes, range(draws)))
    for name, size, number in progress(drawn, label="draws"):
        values = scores.values[sets[name]]
        rng = np.random.default_rng([config.planted.seed, size, number])
        subset = values[rng.choice(len(values), min(size, len(values)), replace=False)]
        for row in _tested(subset, schedule, config, seed=number):
            rows.append({"set": name, **row, "identifiers": size})
    return pd.DataFrame(rows)


def held_out_p_values(config: InferenceConfig, scores: CandidateScores) -> pd.DataFrame:
    """p-values of ``config.held_out_sets`` sets of identifiers that were not trained on: a row for
    each set (its number) and schedule, with the columns of `p_value_rows`.
    """
    # All candidates of a held-out identifier, itself included, are random strings new to the model:
    # any of them may play the identifier.
    pool = scores.values[scores.groups == 0]
    rng = np.random.default_rng([config.planted.seed, _NULL_SETS])

    rows: list[dict[str, Any]] = []
    for number in progress(range(config.held_out_sets), label="null sets"):
        subset = pool[rng.choice(len(pool), config.set_size, replace=False)]
        order = rng.permuted(np.tile(np.arange(pool.shape[1]), (len(subset), 1)), axis=1)
        values = np.take_along_axis(subset, order[:, : 1 + config.null_alternatives, None], axis=1)
        rows += [{"set": number, **row} for row in _tested(values, None, config, seed=number)]
    return pd.DataFrame(rows)


def rejection_rates(
    p_values: pd.DataFrame,
    *,
    by: Sequence[str] = ("schedule",),
    levels: Sequence[float] = (0.01, 0.05, 0.1),
) -> pd.DataFrame:
    """How often each test rejects, with 95 % Clopper-Pearson intervals that take sets as
    independent.

    Args:
        p_values: A row for each set, with the columns of `p_value_rows`.
        by: Columns whose values are counted apart.
        levels: A p-value up to this rejects.

    Returns:
        A row for each group, test and level: sets and rejected (numbers), and rate, low and high,
            shares.
    """
    rows: list[dict[str, Any]] = []
    for values, tested in p_values.groupby(list(by), sort=False):
        keys = dict(zip(by, values, strict=True))
        sets = len(tested)
        for test, column in (("one-sided", "p_value"), ("two-sided", "p_value_two_sided")):
            for level in levels:
                rejected = int((tested[column] <= level).sum())
                low, high = share_interval(rejected, sets)
                rows.append(
                    {
                        **keys,
                        "test": test,
                        "level": level,
                        "sets": sets,
                        "rejected": rejected,
                        "rate": rejected / sets,
                        "low": low,
                        "high": high,
                    }
                )
    return pd.DataFrame(rows)


def _sets(scores: CandidateScores) -> dict[str, np.ndarray]:
    """By the name of each group of identifiers a mask of its own; groups were trained on equally
    often.
    """
    times = sorted(set(scores.groups.tolist()))
    return {_HELD_OUT if n == 0 else f"trained, {n}x": scores.groups == n for n in times}


def _tested(
    values: FloatArray, schedule: str | None, config: InferenceConfig, *, seed: int
) -> list[dict[str, Any]]:
    """Rows of `p_value_rows` for a set; ``seed``, below `_TESTS`, is that of its folds and ties."""
    options = {"folds": min(config.folds, len(values)), "trees": config.trees}
    return p_value_rows(values, schedule, seed=config.planted.seed * _TESTS + seed, **options)


def p_value_rows(
    values: FloatArray, schedule: str | None = None, **options: Any
) -> list[dict[str, Any]]:
    """The p-values of a set of identifiers by dataset inference.

    Args:
        values: Attack scores, higher for members, shape (n, 1 + c, attacks), the identifier first.
        schedule: One of `SCHEDULES`; None takes each.
        options: Further arguments of `infer_by_schedule`.

    Returns:
        A row for each schedule: identifiers (n), schedule, p_value and p_value_two_sided.
    """
    schedules = SCHEDULES if schedule is None else (schedule,)
    return [
        {"identifiers": len(values), "schedule": name}
        | {column: getattr(test, column) for column in ("p_value", "p_value_two_sided")}
        for name, test in infer_by_schedule(values, schedules, **options).items()
    ]
