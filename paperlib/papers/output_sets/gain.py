"""The gain of optimal output sets for an audit, also at delta above 0 (Figures 2 and 6)."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from paperlib.bounds import SelectionRule, audit_output_set
from paperlib.bounds.output_sets.choices import METHODS
from paperlib.core import FloatArray
from paperlib.papers.output_sets.mechanisms import MECHANISMS, draw_scores, exact_epsilon

_KEYS = ["mechanism", "scale", "m"]
_RIVALS = tuple(method for method in METHODS if method != "optimal")
_RULES = {
    "paper: both densities > 0.01": SelectionRule(min_density=0.01, error_divisor=1.0),
    "scale-free floor": SelectionRule(error_divisor=1.0),
    "scale-free floor, error divided by 20": SelectionRule(error_divisor=20.0),
}


@dataclass(frozen=True)
class GainConfig:
    """Settings of Figures 2 and 6."""

    #: noise of each component: b/2 for Laplace, standard deviation for Gaussian. The paper's b = 0.25 ... 8
    #: are 0.125 ... 4; its sigma grid is 0.25 ... 8
    scales: dict[str, tuple[float, ...]]
    sizes: tuple[int, ...]  #: values of m; 2m scores are drawn to select with and 2m to evaluate on
    trials: int = 10  #: independent audits of each setting
    #: divisor of the error level while the set is selected, 1 or more; 1 is the paper's rule
    error_divisor: float = 1.0
    confidence: float = 0.95  #: confidence level of each bound, in (0, 1)
    seed: int = 0  #: seed of all random draws, 0 or more

    def settings(self) -> Iterator[tuple[str, float, int, int]]:
        """Mechanism, scale, m and number of the trial of every pair of samples."""
        for mechanism, scales in self.scales.items():
            for setting in itertools.product(scales, self.sizes, range(self.trials)):
                yield mechanism, *setting

    def options(self, method: str) -> dict[str, Any]:
        """Options of an audit by one method."""
        return {"method": method, "rule": SelectionRule(error_divisor=self.error_divisor)}


def gain(config: GainConfig) -> pd.DataFrame:
    """Audit every setting with all four methods on the same scores.

    One row per mechanism, scale, m, trial and method: epsilon (the bound, nats), guesses,
    selection_epsilon (the bound on the scores that were searched) and intervals (of the set).
    """
    choices = [({"method": method}, config.options(method)) for method in METHODS]
    return _audited(config, choices, lambda index, scale, m: [index, int(1e6 * scale), m])


def over_delta(config: GainConfig, deltas: Sequence[float]) -> pd.DataFrame:
    """`gain` at every delta in [0, 1) on the same scores, with columns delta and exact_epsilon (at delta)."""
    choices = [
        ({"delta": delta, "method": method}, {"delta": delta, **config.options(method)})
        for delta, method in itertools.product(deltas, METHODS)
    ]
    frame = _audited(config, choices, lambda index, _scale, _m: [index])
    places = list(zip(frame["mechanism"], frame["scale"], frame["delta"], strict=True))
    exact = {place: exact_epsilon(*place) for place in set(places)}
    return frame.assign(exact_epsilon=[exact[place] for place in places])


def selection_rules(config: GainConfig) -> pd.DataFrame:
    """The optimal set under three rules: the paper's density floor, a scale-free one, and that with a
    smaller error level during selection; bounds on fresh scores and on those searched.
    """
    choices = [({"rule": name}, {"rule": rule}) for name, rule in _RULES.items()]
    return _audited(config, choices, lambda index, _scale, m: [7, index, m])


def _audited(
    config: GainConfig,
    choices: Sequence[tuple[dict[str, Any], dict[str, Any]]],
    seeds: Callable[[int, float, int], list[int]],
) -> pd.DataFrame:
    """Every choice (its columns, its options) on the same scores, seeded by mechanism, scale and m."""
    rows = []
    for mechanism, scale, m, trial in config.settings():
        place = {"mechanism": mechanism, "scale": scale, "m": m, "trial": trial}
        rng = np.random.default_rng([config.seed, *seeds(MECHANISMS.index(mechanism), scale, m), trial])
        pair = [draw_scores(rng, mechanism, scale, 2 * m) for _ in range(2)]
        for columns, options in choices:
            audit = audit_output_set(*pair, confidence=config.confidence, **options)
            bounds = {"epsilon": audit.epsilon, "selection_epsilon": audit.selection_epsilon}
            about = {"guesses": audit.guesses, "intervals": len(audit.output_set.intervals)}
            rows.append({**place, **columns, **bounds, **about})
    return pd.DataFrame(rows)


def paired_gain(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean gain of the optimal set over each rival, paired by trial.

    Returns:
        One row per mechanism, scale, m and rival: mean difference, its standard error and its
        p-value against "no lower" (one-sided paired t-test; 1.0 where it cannot be told).
    """
    wide = frame.pivot(index=[*_KEYS, "trial"], columns="method", values="epsilon")
    rows = []
    for place, part in wide.groupby(level=_KEYS):
        for rival in _RIVALS:
            difference = (part["optimal"] - part[rival]).to_numpy()
            rows.append(
                dict(zip(_KEYS, place, strict=True)) | {"rival": rival, **_mean_difference(difference)}
            )
    return pd.DataFrame(rows)


def _mean_difference(difference: FloatArray) -> dict[str, float]:
    """Mean of paired differences, its standard error, and the p-value against "no lower"."""
    mean = float(difference.mean())
    error = float(difference.std(ddof=1) / math.sqrt(difference.size)) if difference.size > 1 else 0.0
    lower = float(stats.t.cdf(mean / error, difference.size - 1)) if error > 0 else float(mean >= 0)
    return {"gain": mean, "standard_error": error, "p_lower": lower}


def gain_by_rival(gains: pd.DataFrame, *, error: float = 0.05) -> pd.DataFrame:
    """`paired_gain` over all settings of a mechanism, one row per mechanism and rival.

    Settings, those with a gain of at least 0, mean gain, its standard error, and settings in which the
    optimal set is significantly lower; ``error`` is shared out among all comparisons.
    """
    rows = []
    for (mechanism, rival), part in gains.groupby(["mechanism", "rival"], sort=False):
        behind = int((part["p_lower"] < error / len(gains)).sum())
        spread = float(np.sqrt((part["standard_error"] ** 2).sum()) / len(part))
        means = {"gain": float(part["gain"].mean()), "standard_error": spread}
        counts = {"settings": len(part), "ahead": int((part["gain"] >= 0).sum())}
        rows.append({"mechanism": mechanism, "rival": rival, **counts, **means, "behind": behind})
    return pd.DataFrame(rows)


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over trials, one row per setting and method."""
    keys = [key for key in ("mechanism", "scale", "m", "delta", "method") if key in frame]
    grouped = frame.groupby(keys, sort=False)["epsilon"].agg(["mean", "std", "count"]).reset_index()
    return grouped.rename(columns={"count": "trials"})
