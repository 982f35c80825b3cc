"""The gain of optimal output sets for an audit, also at delta above 0 (Figures 2 and 6)."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from paperlib.bounds import SelectionRule
from paperlib.bounds.one_run.audit import one_run_epsilon
from paperlib.bounds.output_sets.choices import CHOICES, choose_optimal
from paperlib.bounds.output_sets.densities import density_pair
from paperlib.bounds.output_sets.level_sets import log_ratio
from paperlib.bounds.output_sets.output_set import OutputSet, count_guesses
from paperlib.bounds.output_sets.selection import Selection, selection_of
from paperlib.core import FloatArray
from paperlib.papers.output_sets.mechanisms import MECHANISMS, draw_scores, exact_epsilon

RIVALS = ("top_bottom", "dp_sniper", "whole")
"""The methods that the paper compares its own with."""

_KEYS = ["mechanism", "scale", "m"]
_MIN_DENSITY = 0.01  # Section 4.3: the ratio is used where both estimated densities are larger
_HIGHEST = SelectionRule(error_divisor=1.0)  # takes the highest bound found, as the paper does


@dataclass(frozen=True)
class GainConfig:
    """Settings of Figures 2 and 6."""

    #: noise of each component: b/2 for Laplace, standard deviation for Gaussian. The paper's b = 0.25 ... 8
    #: are 0.125 ... 4; its sigma grid is 0.25 ... 8
    scales: dict[str, tuple[float, ...]]
    sizes: tuple[int, ...]  #: values of m; 2m scores are drawn to select with and 2m to evaluate on
    trials: int = 10  #: independent audits of each setting
    confidence: float = 0.95  #: confidence level of each bound, in (0, 1)
    seed: int = 0  #: seed of all random draws, 0 or more; other seeds share none

    def settings(self) -> Iterator[tuple[str, float, int, int]]:
        """Mechanism, scale, m and number of the trial of every pair of samples."""
        for mechanism, scales in self.scales.items():
            for setting in itertools.product(scales, self.sizes, range(self.trials)):
                yield mechanism, *setting


def printed_set(chosen: Selection) -> OutputSet:
    """Algorithm 1 as printed: no score is left out, and where a density is at most 0.01 none is guessed on.

    The paper's sets are unions of gaps between neighbouring scores; these are level sets of the ratio
    itself, cut inside the gaps. The level is searched for from coarse to fine.
    """
    pair = density_pair(chosen.x[chosen.is_member], chosen.x[~chosen.is_member])
    sound = np.minimum(pair.member, pair.nonmember) > _MIN_DENSITY
    least = [np.maximum(density, _MIN_DENSITY) for density in (pair.member, pair.nonmember)]
    ratio = np.where(sound, log_ratio(*least), 0.0)
    member, nonmember = (np.interp(chosen.x, pair.grid, part) for part in (pair.member, pair.nonmember))
    estimate = replace(
        chosen.estimate,
        grid=pair.grid,
        ratio=ratio,
        levels=np.abs(np.interp(chosen.x, pair.grid, ratio)),
        says_member=member >= nonmember,
    )
    return choose_optimal(replace(chosen, estimate=estimate))


CHOOSE: dict[str, Callable[[Selection], OutputSet]] = {
    "printed": printed_set,
    "optimal": choose_optimal,
    "cautious": lambda chosen: choose_optimal(replace(chosen, rule=SelectionRule())),
    "top_bottom": CHOICES["top_bottom"],
    "dp_sniper": CHOICES["dp_sniper"],
    "whole": CHOICES["whole"],
}
"""How each method chooses: Algorithm 1 as printed, this package's set without and with its penalty for
the search, and the paper's rivals."""


def gain(config: GainConfig) -> pd.DataFrame:
    """Audit every setting with all methods on the same scores.

    One row per mechanism, scale, m, trial and method: delta, correct, guesses, selection_epsilon (the bound
    on the scores that were searched), intervals (of the set) and epsilon (the bound, nats).
    """
    return _audited(config, tuple(CHOOSE), [0.0], lambda index, scale, m: [index, int(1e6 * scale), m])


def over_delta(config: GainConfig, deltas: Sequence[float]) -> pd.DataFrame:
    """`gain` of the methods of Figure 6 at every delta in [0, 1), and the pair's exact_epsilon at delta."""
    methods = ("printed", "optimal", "top_bottom", "whole")
    frame = _audited(config, methods, deltas, lambda index, _scale, _m: [index])
    places = list(zip(frame["mechanism"], frame["scale"], frame["delta"], strict=True))
    exact = {place: exact_epsilon(*place) for place in set(places)}
    return frame.assign(exact_epsilon=[exact[place] for place in places])


def _audited(
    config: GainConfig,
    methods: Sequence[str],
    deltas: Sequence[float],
    seeds: Callable[[int, float, int], list[int]],
) -> pd.DataFrame:
    """Every method at every delta on the same scores, seeded by mechanism, scale and m."""
    rows = []
    for mechanism, scale, m, trial in config.settings():
        rng = np.random.default_rng([config.seed, *seeds(MECHANISMS.index(mechanism), scale, m), trial])
        first, second = (draw_scores(rng, mechanism, scale, 2 * m) for _ in range(2))
        chosen = selection_of(first, _HIGHEST, total=2 * m, delta=0.0, confidence=config.confidence)
        for delta, method in itertools.product(deltas, methods):
            found = CHOOSE[method](replace(chosen, delta=delta))
            counts = dict(zip(("correct", "guesses"), count_guesses(found, second), strict=True))
            about = {"selection_epsilon": max(found.objective, 0.0), "intervals": len(found.intervals)}
            place = {"mechanism": mechanism, "scale": scale, "m": m, "trial": trial}
            rows.append({**place, "delta": delta, "method": method, **counts, **about})
    frame = pd.DataFrame(rows)
    for delta, part in frame.groupby("delta"):
        bounds = one_run_epsilon(
            part["correct"], part["guesses"], total=2 * part["m"], delta=float(str(delta)),
            confidence=config.confidence,
        )  # fmt: skip
        frame.loc[part.index, "epsilon"] = bounds
    return frame


def paired_gain(frame: pd.DataFrame, method: str, *, confidence: float = 0.95) -> pd.DataFrame:
    """Mean gain of a method over each rival, paired by trial.

    Returns:
        One row per mechanism, scale, m and rival: gain (nats), low and high (t-interval), variance.
    """
    return _compared(frame, method, lambda one, other: interval(one - other, confidence))


def deviation_ratios(frame: pd.DataFrame, method: str, *, confidence: float = 0.95) -> pd.DataFrame:
    """Standard deviation of a method's bounds over that of each rival's, paired by trial.

    Returns:
        One row per mechanism, scale, m and rival: gain (log of the ratio), low and high (t-interval, by the
        jackknife), NaN where bounds hardly differ, as where all are 0.
    """
    return _compared(frame, method, lambda one, other: interval(_jackknifed(one, other), confidence))


def _compared(
    frame: pd.DataFrame, method: str, compare: Callable[[FloatArray, FloatArray], dict[str, float]]
) -> pd.DataFrame:
    wide = frame.pivot(index=[*_KEYS, "trial"], columns="method", values="epsilon")
    return pd.DataFrame(
        {**dict(zip(_KEYS, place, strict=True)), "rival": rival}
        | compare(part[method].to_numpy(), part[rival].to_numpy())
        for place, part in wide.groupby(level=_KEYS)
        for rival in RIVALS
    )


def _jackknifed(one: FloatArray, other: FloatArray) -> FloatArray:
    """Pseudo-values of the log ratio of two standard deviations, shape (trials,)."""
    count = one.size
    with np.errstate(all="ignore"):
        whole = np.log(one.std()) - np.log(other.std())
        rest = [np.log(np.delete(one, i).std()) - np.log(np.delete(other, i).std()) for i in range(count)]
        values = count * whole - (count - 1) * np.array(rest)
    return values if np.isfinite(values).all() else np.full(count, np.nan)


def interval(values: FloatArray, confidence: float = 0.95) -> dict[str, float]:
    """Mean, ends of its t-interval and variance of the mean, named as in `paired_gain`."""
    mean, count = float(values.mean()), values.size
    variance = float(values.var(ddof=1)) / count if count > 1 else math.inf
    half = float(stdtrit(max(count - 1, 1), (1 + confidence) / 2)) * math.sqrt(variance)
    return {"gain": mean, "low": mean - half, "high": mean + half, "variance": variance}


def gain_by_rival(frame: pd.DataFrame, method: str, *, error: float = 0.05) -> pd.DataFrame:
    """`paired_gain` over all settings of a mechanism, one row per mechanism and rival.

    Settings, mean gain with the ends of its interval, and in how many settings the gain is significantly
    above 0 (ahead) and below it (behind); ``error`` is shared out among all comparisons.
    """
    comparisons = len(RIVALS) * len(frame.drop_duplicates(_KEYS))
    gains = paired_gain(frame, method, confidence=1 - error / comparisons)
    rows = []
    for (mechanism, rival), part in gains.groupby(["mechanism", "rival"], sort=False):
        mean, half = part["gain"].mean(), 1.96 * math.sqrt(part["variance"].sum()) / len(part)
        counts = {"ahead": int((part["low"] > 0).sum()), "behind": int((part["high"] < 0).sum())}
        about = {"mechanism": mechanism, "rival": rival, "settings": len(part), "gain": mean}
        rows.append({**about, "low": mean - half, "high": mean + half, **counts})
    return pd.DataFrame(rows)


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over trials, one row per setting and method."""
    grouped = frame.groupby([*_KEYS, "delta", "method"], sort=False)["epsilon"]
    return grouped.agg(["mean", "std", "count"]).reset_index().rename(columns={"count": "trials"})
