"""What optimal output sets gain for an audit (Figures 2 and 6)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from scipy.optimize import brentq

from paperlib.bounds import audit_output_set
from paperlib.bounds.output_sets.level_sets import line_of
from paperlib.bounds.output_sets.selection import METHODS
from paperlib.core import FloatArray, MembershipScores, check_choice
from paperlib.papers.output_sets.shapes import Mixture

MECHANISMS = ("laplace", "gaussian")
NAMES = {
    "optimal": "optimal set",
    "top_bottom": "top and bottom",
    "dp_sniper": "DP-Sniper",
    "whole": "whole line",
}
"""How the methods are called in tables and figures."""

_SENSITIVITY = 6.0  # r (2 - eta) with |x| <= r = 4 and eta = 1/2, as Proposition C.1 has it
_COMPONENTS = {"laplace": ((-1.0, 2.0), (-2.0, 1.0)), "gaussian": ((-2.0, 1.0), (-1.0, 0.0))}
_RIVALS = tuple(method for method in METHODS if method != "optimal")


@dataclass(frozen=True)
class GainConfig:
    """What Figure 2 varies.

    Attributes:
        scales: Noise of each component: b/2 for Laplace, standard deviation for Gaussian. The
            paper's b = 0.25 ... 8 are 0.125 ... 4; its sigma grid is 0.25 ... 8.
        sizes: Numbers m; 2m scores are drawn to select with and 2m to evaluate on.
        trials: Independent audits of each setting.
        caution: Discount for the luck of the search; 1 is the paper's rule.
        confidence: Of each bound.
        seed: First seed.
    """

    scales: dict[str, tuple[float, ...]]
    sizes: tuple[int, ...]
    trials: int = 10
    caution: float = 1.0
    confidence: float = 0.95
    seed: int = 0


def gain(config: GainConfig) -> pd.DataFrame:
    """Audit every setting with all four methods on the same scores.

    Returns:
        One row per mechanism, scale, m, trial and method, with the bound, the guesses, and the true
        epsilon of the pair (delta = 0).
    """
    return pd.DataFrame(
        row
        for mechanism, scales in config.scales.items()
        for scale in scales
        for m in config.sizes
        for trial in range(config.trials)
        for row in _trial(config, mechanism, scale, m, trial)
    )


def _trial(config: GainConfig, mechanism: str, scale: float, m: int, trial: int) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng([config.seed, MECHANISMS.index(mechanism), int(1e6 * scale), m, trial])
    selection, evaluation = (draw_scores(rng, mechanism, scale, 2 * m) for _ in range(2))
    for method in METHODS:
        found = audit_output_set(
            selection, evaluation, method=method, confidence=config.confidence, caution=config.caution
        )
        yield {
            "mechanism": mechanism,
            "scale": scale,
            "m": m,
            "trial": trial,
            "method": method,
            "epsilon": found.epsilon,
            "guesses": found.guesses,
            "selection_epsilon": found.selection_epsilon,
            "intervals": len(found.output_set.intervals),
        }


def mixtures(mechanism: str, scale: float) -> tuple[Mixture, Mixture]:
    """The output distributions p and q of equations 9 to 12, with the given component scale.

    Raises:
        ValueError: Unknown mechanism.
    """
    check_choice("mechanism", mechanism, MECHANISMS)
    family = stats.laplace if mechanism == "laplace" else stats.norm
    p, q = (Mixture(tuple(family(c, scale) for c in centres)) for centres in _COMPONENTS[mechanism])
    return p, q


def draw_scores(rng: np.random.Generator, mechanism: str, scale: float, examples: int) -> MembershipScores:
    """Scores of ``examples`` examples whose membership fair coins decide (Definition B.1)."""
    p, q = mixtures(mechanism, scale)
    members = int(np.clip(rng.binomial(examples, 0.5), 2, examples - 2))
    return MembershipScores(p.draw(rng, members), q.draw(rng, examples - members))


def exact_epsilon(mechanism: str, scale: float, delta: float = 0.0) -> float:
    """Smallest epsilon for which the pair of output distributions is (epsilon, delta)-indistinguishable.

    The hockey-stick divergence in both directions, by quadrature; at delta = 0 the largest
    log-ratio: 1/scale for Laplace (p is q moved by 1), infinite for Gaussian.

    >>> exact_epsilon("laplace", 0.5), round(exact_epsilon("laplace", 0.5, 1e-9), 4)
    (2.0, 2.0)
    """
    if delta == 0:
        return 1 / scale if mechanism == "laplace" else math.inf
    p, q = mixtures(mechanism, scale)
    reach = 3 + (60 if mechanism == "laplace" else 14) * scale
    line = line_of(p.pdf, q.pdf, (-reach, reach))
    share = 1 / (1 + np.exp(-line.ratio))
    masses = line.mass * share, line.mass * (1 - share)

    def excess(epsilon: float) -> float:
        stick = [np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in (masses, masses[::-1])]
        return float(max(stick)) - delta

    return float(brentq(excess, 0.0, 700.0, xtol=1e-9)) if excess(0.0) > 0 else 0.0


def proposition_epsilon(mechanism: str, scale: float, delta: float = 0.0) -> float:
    """Epsilon by the paper's Proposition C.1, which bounds the size of the update.

    6/b for Laplace noise b = 2 scale. For Gaussian noise the analytic Gaussian mechanism with
    sensitivity 6 and deviation sqrt(5)/2 sigma, sigma = 4/sqrt(5) scale; the proposition prints the
    complement of the normal distribution function, the cited theorem has the function itself.

    >>> proposition_epsilon("laplace", 1.0)
    3.0
    """
    if mechanism == "laplace":
        return _SENSITIVITY / (2 * scale)
    if delta == 0:
        return math.inf
    ratio = _SENSITIVITY / (math.sqrt(5) / 2 * 4 / math.sqrt(5) * scale)

    def excess(epsilon: float) -> float:
        second = epsilon + float(stats.norm.logcdf(-ratio / 2 - epsilon / ratio))
        return float(stats.norm.cdf(ratio / 2 - epsilon / ratio)) - math.exp(second) - delta

    return float(brentq(excess, 0.0, 5000.0, xtol=1e-9)) if excess(0.0) > 0 else 0.0


def epsilon_lines(mechanism: str, scales: tuple[float, ...], delta: float) -> pd.DataFrame:
    """Exact epsilon and Proposition C.1's, one row per scale."""
    return pd.DataFrame(
        {
            "mechanism": mechanism,
            "scale": scale,
            "delta": delta,
            "exact_epsilon": exact_epsilon(mechanism, scale, delta),
            "proposition_epsilon": proposition_epsilon(mechanism, scale, delta),
        }
        for scale in scales
    )


def paired_gain(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean gain of the optimal set over each rival, paired by trial.

    Returns:
        One row per mechanism, scale, m and rival: mean difference, its standard error and its
        p-value against "no lower" (one-sided paired t-test; 1.0 where it cannot be told).
    """
    keys = ["mechanism", "scale", "m"]
    wide = frame.pivot(index=[*keys, "trial"], columns="method", values="epsilon")
    rows = []
    for place, part in wide.groupby(level=keys):
        for rival in _RIVALS:
            difference = (part["optimal"] - part[rival]).to_numpy()
            rows.append(dict(zip(keys, place, strict=True)) | {"rival": rival, **_paired(difference)})
    return pd.DataFrame(rows)


def gain_verdict(gains: pd.DataFrame, *, error: float = 0.05) -> pd.DataFrame:
    """`paired_gain` over all settings of a mechanism: is the optimal set the highest?

    Args:
        gains: Rows of `paired_gain`.
        error: Shared out among all comparisons before a setting counts as significantly behind.

    Returns:
        One row per mechanism and rival: settings, settings with a gain of at least 0, mean gain, its
        standard error, and settings in which the optimal set is significantly lower.
    """
    rows = []
    for (mechanism, rival), part in gains.groupby(["mechanism", "rival"], sort=False):
        behind = int((part["p_lower"] < error / len(gains)).sum())
        counts = {"settings": len(part), "ahead": int((part["gain"] >= 0).sum())}
        rows.append({"mechanism": mechanism, "rival": rival, **counts, **mean_gain(part), "behind": behind})
    return pd.DataFrame(rows)


def mean_gain(part: pd.DataFrame) -> dict[str, float]:
    """Mean of some rows of `paired_gain` and its standard error."""
    error = float(np.sqrt((part["standard_error"] ** 2).sum()) / len(part))
    return {"gain": float(part["gain"].mean()), "standard_error": error}


@dataclass(frozen=True)
class GainVerdict:
    """Whether Figure 2's claims hold, each judged by two standard errors.

    Attributes:
        highest: For each mechanism every rival is beaten on average over the settings, and none beats
            the optimal set significantly in any.
        falls: The gain over top and bottom is larger in the smaller half of the sizes than in the larger.
        least: Smallest mean gain over a rival for a mechanism, nats.
        small: Mean gain over top and bottom in the smaller half of the sizes.
        large: The same in the larger half.
        error: Standard error of their difference.
    """

    highest: bool
    falls: bool
    least: float
    small: float
    large: float
    error: float


def judge_gain(gains: pd.DataFrame, over_sizes: pd.DataFrame) -> GainVerdict:
    """Judge the two claims of Figure 2.

    Args:
        gains: Rows of `paired_gain` of all settings.
        over_sizes: Rows of `paired_gain` of the settings that differ in m alone.
    """
    by_rival = [mean_gain(part) for _, part in gains.groupby(["mechanism", "rival"])]
    behind = bool((gains["p_lower"] < 0.05 / len(gains)).any())
    tails = over_sizes[over_sizes["rival"] == "top_bottom"]
    sizes = np.sort(tails["m"].unique())
    half = max(len(sizes) // 2, 1)
    small = mean_gain(tails[tails["m"].isin(sizes[:half])])
    large = mean_gain(tails[tails["m"].isin(sizes[-half:])])
    error = math.hypot(small["standard_error"], large["standard_error"])
    return GainVerdict(
        highest=all(row["gain"] > 2 * row["standard_error"] for row in by_rival) and not behind,
        falls=small["gain"] - large["gain"] > 2 * error,
        least=min(row["gain"] for row in by_rival),
        small=small["gain"],
        large=large["gain"],
        error=error,
    )


def _paired(difference: FloatArray) -> dict[str, float]:
    mean = float(difference.mean())
    error = float(difference.std(ddof=1) / math.sqrt(difference.size)) if difference.size > 1 else 0.0
    lower = float(stats.t.cdf(mean / error, difference.size - 1)) if error > 0 else float(mean >= 0)
    return {"gain": mean, "standard_error": error, "p_lower": lower}


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over trials, one row per setting and method."""
    keys = [key for key in ("mechanism", "scale", "m", "delta", "method") if key in frame]
    grouped = frame.groupby(keys, sort=False)["epsilon"].agg(["mean", "std", "count"]).reset_index()
    return grouped.rename(columns={"count": "trials"})


@dataclass(frozen=True)
class DeltaConfig:
    """What Figure 6 varies.

    Attributes:
        scales: One component scale per mechanism.
        deltas: Values of delta.
        m: 2m scores are drawn to select with and 2m to evaluate on.
        trials: Independent audits.
        caution: Discount for the luck of the search.
        confidence: Of each bound.
        seed: First seed.
    """

    scales: dict[str, float]
    deltas: tuple[float, ...]
    m: int = 1000
    trials: int = 5
    caution: float = 1.0
    confidence: float = 0.95
    seed: int = 0


def over_delta(config: DeltaConfig, methods: tuple[str, ...] = METHODS) -> pd.DataFrame:
    """Audit the same scores at every delta.

    Returns:
        One row per mechanism, delta, trial and method, with the bound and the exact epsilon at that delta.
    """
    rows = []
    for mechanism, scale in config.scales.items():
        exact = {delta: exact_epsilon(mechanism, scale, delta) for delta in config.deltas}
        for trial in range(config.trials):
            rng = np.random.default_rng([config.seed, MECHANISMS.index(mechanism), trial])
            selection, evaluation = (draw_scores(rng, mechanism, scale, 2 * config.m) for _ in range(2))
            rows += [
                {
                    "mechanism": mechanism,
                    "scale": scale,
                    "m": config.m,
                    "delta": delta,
                    "trial": trial,
                    "method": method,
                    "epsilon": audit_output_set(
                        selection,
                        evaluation,
                        method=method,
                        delta=delta,
                        confidence=config.confidence,
                        caution=config.caution,
                    ).epsilon,
                    "exact_epsilon": exact[delta],
                }
                for delta in config.deltas
                for method in methods
            ]
    return pd.DataFrame(rows)


def falls_with_delta(frame: pd.DataFrame, method: str = "optimal") -> bool:
    """Whether the bound is lower at the largest delta than at the smallest and rises nowhere between.

    A rise counts if its mean over trials exceeds two standard errors: each delta has its own search,
    whose luck differs.
    """
    for _, part in frame[frame["method"] == method].groupby("mechanism"):
        wide = part.pivot(index="trial", columns="delta", values="epsilon").to_numpy()
        steps = [_paired(step) for step in np.diff(wide, axis=1).T]
        rises = any(step["gain"] > max(2 * step["standard_error"], 1e-9) for step in steps)
        if rises or wide[:, -1].mean() >= wide[:, 0].mean():
            return False
    return True


def selection_rules(config: GainConfig) -> pd.DataFrame:
    """The optimal set under three rules: the paper's density floor, a scale-free one, and that with caution.

    Returns:
        One row per mechanism, scale, m, trial and rule with the bound on fresh scores and the one on
        the scores that were searched.
    """
    rules: dict[str, dict[str, Any]] = {
        "paper: both densities > 0.01": {"min_density": 0.01, "caution": 1.0},
        "scale-free floor": {"caution": 1.0},
        "scale-free floor and caution": {"caution": 20.0},
    }
    rows = []
    for mechanism, scales in config.scales.items():
        for scale in scales:
            for m in config.sizes:
                for trial in range(config.trials):
                    rng = np.random.default_rng([config.seed, 7, MECHANISMS.index(mechanism), m, trial])
                    pair = [draw_scores(rng, mechanism, scale, 2 * m) for _ in range(2)]
                    for rule, options in rules.items():
                        found = audit_output_set(pair[0], pair[1], confidence=config.confidence, **options)
                        rows.append(
                            {
                                "mechanism": mechanism,
                                "scale": scale,
                                "m": m,
                                "trial": trial,
                                "rule": rule,
                                "epsilon": found.epsilon,
                                "selection_epsilon": found.selection_epsilon,
                            }
                        )
    return pd.DataFrame(rows)
