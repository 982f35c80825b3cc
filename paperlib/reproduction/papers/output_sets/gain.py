"""Output sets of known mechanisms: true epsilon, and the gain for an audit, also at delta above
0.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from scipy.optimize import brentq
from scipy.special import stdtrit

from paperlib.bounds.one_run.audit import one_run_epsilon
from paperlib.bounds.output_sets.choices import (
    CHOICES,
    Selection,
    SelectionRule,
    choose_optimal,
    selection_of,
)
from paperlib.bounds.output_sets.densities import density_pair
from paperlib.bounds.output_sets.level_sets import OutputSet, count_guesses, line_of, log_ratio
from paperlib.core import FloatArray, MembershipScores
from paperlib.core.checks import check_choice
from paperlib.reproduction.papers.settings import settings_beside

MECHANISMS = ("laplace", "gaussian")

_SENSITIVITY = 6.0  # r (2 - eta) with |x| <= r = 4 and eta = 1/2, as Proposition C.1 has it
_COMPONENTS = {"laplace": ((-1.0, 2.0), (-2.0, 1.0)), "gaussian": ((-2.0, 1.0), (-1.0, 0.0))}


@dataclass(frozen=True)
class Mixture:
    """An even mixture of frozen scipy distributions."""

    components: tuple[Any, ...]

    def pdf(self, x: FloatArray) -> FloatArray:
        """Density at each point, in the shape of ``x``; all components weigh the same."""
        return np.mean([c.pdf(x) for c in self.components], axis=0)

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        """``size`` draws, shape (size,), component after component."""
        counts = rng.multinomial(size, [1 / len(self.components)] * len(self.components))
        draws: list[FloatArray] = []
        for component, count in zip(self.components, counts, strict=True):
            draws.append(np.atleast_1d(component.rvs(count, random_state=rng)))
        return np.concatenate(draws)


@cache
def mixtures(mechanism: str, scale: float) -> tuple[Mixture, Mixture]:
    """The output distributions p and q of equations 9 to 12, with the given component scale.

    Raises:
        ValueError: An unknown mechanism.
    """
    check_choice("mechanism", mechanism, MECHANISMS)
    family = stats.laplace if mechanism == "laplace" else stats.norm
    p, q = (Mixture(tuple(family(c, scale) for c in centres)) for centres in _COMPONENTS[mechanism])
    return p, q


def draw_scores(
    rng: np.random.Generator, mechanism: str, scale: float, examples: int
) -> MembershipScores:
    """Scores of ``examples`` examples whose membership fair coins decide (Definition B.1), at least
    two on each side; those of members are drawn from p, of the others from q of `mixtures`.
    """
    p, q = mixtures(mechanism, scale)
    members = int(np.clip(rng.binomial(examples, 0.5), 2, examples - 2))
    return MembershipScores(p.draw(rng, members), q.draw(rng, examples - members))


def exact_epsilon(mechanism: str, scale: float, delta: float = 0.0) -> float:
    """Smallest epsilon, nats, for which the pair of output distributions is (epsilon,
    delta)-indistinguishable; infinite for Gaussian noise at delta 0.

    Args:
        mechanism: One of `MECHANISMS`; else a ValueError.
        scale: Of the noise of each component.
        delta: In [0, 1).
    """
    if delta == 0:  # the largest log-ratio: under Laplace noise p is q moved by 1
        return 1 / scale if mechanism == "laplace" else math.inf
    p, q = mixtures(mechanism, scale)
    # The centres lie within 2 of 0; what noise leaves farther out is below 1e-20.
    reach = 3 + (60 if mechanism == "laplace" else 14) * scale
    # The hockey-stick divergence in both directions, by quadrature. With r = log p/q the share of p
    # in the mass p + q of a node is 1 / (1 + exp(-r)).
    line = line_of(p.pdf, q.pdf, (-reach, reach))
    share = 1 / (1 + np.exp(-line.ratio))
    masses = line.mass * share, line.mass * (1 - share)

    def excess(epsilon: float) -> float:
        """The larger hockey-stick divergence at this epsilon, less delta; it falls with epsilon."""
        stick = [np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in (masses, masses[::-1])]
        return float(max(stick)) - delta

    return float(brentq(excess, 0.0, 700.0, xtol=1e-9)) if excess(0.0) > 0 else 0.0


def proposition_epsilon(mechanism: str, scale: float, delta: float = 0.0) -> float:
    """Epsilon, nats, by the paper's Proposition C.1, which bounds the size of the update; infinite
    for Gaussian noise at delta 0. Arguments are those of `exact_epsilon`.
    """
    if mechanism == "laplace":  # of noise b = 2 scale
        return _SENSITIVITY / (2 * scale)
    if delta == 0:
        return math.inf
    # The analytic Gaussian mechanism of deviation sqrt(5) / 2 sigma, sigma = 4 / sqrt(5) scale. The
    # paper prints the complement of the normal distribution function; the cited theorem has the
    # function itself.
    distance = _SENSITIVITY / (math.sqrt(5) / 2 * 4 / math.sqrt(5) * scale)  # in deviations

    def excess(epsilon: float) -> float:
        """The least delta of the mechanism at this epsilon, less the delta asked for; it falls with
        epsilon.
        """
        # The second term of the theorem, exp(epsilon) times a probability, is computed in logs:
        # alone the factor overflows.
        second = epsilon + float(stats.norm.logcdf(-distance / 2 - epsilon / distance))
        return float(stats.norm.cdf(distance / 2 - epsilon / distance)) - math.exp(second) - delta

    return float(brentq(excess, 0.0, 5000.0, xtol=1e-9)) if excess(0.0) > 0 else 0.0


RIVALS = ("top_bottom", "dp_sniper", "whole")
"""The methods that the paper compares its own with."""
_WORDS = settings_beside(__file__)
NAMES: dict[str, str] = _WORDS["names"]
"""Names of methods and noise in tables and figures: ``frame.replace(NAMES)`` puts them in."""
READINGS: dict[str, str] = _WORDS["readings"]
"""What Algorithm 1 does at small densities, by the name of the method."""

_SETTING = ("mechanism", "scale", "m")
_MIN_DENSITY = 0.01  # Section 4.3: the ratio is used where both estimated densities are larger
HIGHEST = SelectionRule(error_divisor=1.0)
"""Takes the highest bound, as the paper does."""


@dataclass(frozen=True)
class GainConfig:
    """Settings of Figures 2 and 6."""

    #: noise of each component: b/2 for Laplace, standard deviation for Gaussian. The paper's b =
    #: 0.25 ... 8 are 0.125 ... 4; its sigma grid is 0.25 ... 8
    scales: dict[str, tuple[float, ...]]
    sizes: tuple[int, ...]  #: values of m; 2m scores are drawn to select with and 2m to evaluate on
    trials: int = 10  #: independent audits of each setting
    confidence: float = 0.95  #: confidence level of each bound, in (0, 1)
    seed: int = 0  #: seed of all random draws, 0 or more; other seeds share none

    def settings(self) -> Iterator[tuple[str, float, int, int]]:
        """Mechanism, scale, number of examples and number of the trial, of each trial."""
        for mechanism, scales in self.scales.items():
            for setting in itertools.product(scales, self.sizes, range(self.trials)):
                yield mechanism, *setting


def printed_set(selection: Selection, reading: str = "printed") -> OutputSet:
    """The output set of Algorithm 1 as printed: no score is left out of its own estimate.

    Args:
        selection: The scores to choose on, and the rule.
        reading: One of `READINGS`: "printed" guesses nowhere that either estimated density is below
            0.01, "both_small" nowhere that both are, and "no_threshold" anywhere.
    """
    # The paper's sets are unions of gaps between neighbouring scores; these are level sets of the
    # ratio itself, cut inside the gaps, and the level is searched for from coarse to fine.
    pair = density_pair(selection.x[selection.is_member], selection.x[~selection.is_member])
    densities = np.array([pair.member, pair.nonmember])
    # The density that must be above the minimum; None where none must.
    least = {"printed": densities.min(axis=0), "both_small": densities.max(axis=0)}.get(reading)
    ratio = log_ratio(*np.maximum(densities, np.finfo(float).tiny))
    if least is not None:
        ratio = np.where(least > _MIN_DENSITY, ratio, 0.0)
    member = np.interp(selection.x, pair.grid, pair.member)
    nonmember = np.interp(selection.x, pair.grid, pair.nonmember)
    estimate = replace(
        selection.estimate,
        grid=pair.grid,
        ratio=ratio,
        levels=np.abs(np.interp(selection.x, pair.grid, ratio)),
        says_member=member >= nonmember,
    )
    return choose_optimal(replace(selection, estimate=estimate))


CHOOSE: dict[str, Callable[[Selection], OutputSet]] = {
    **{reading: partial(printed_set, reading=reading) for reading in READINGS},
    **CHOICES,
    "cautious": lambda chosen: choose_optimal(replace(chosen, rule=SelectionRule())),
}
"""How sets are chosen: as printed, by this package ("optimal", "cautious" with a penalty), by the
rivals.
"""
SHOWN = ("printed", *CHOICES)
"""The methods of figures."""


def gain(config: GainConfig) -> pd.DataFrame:
    """Audit every setting with all methods of `CHOOSE` on the same scores, at delta 0: a row for
    each setting, trial and method, with the columns of `_audited`.
    """
    return _audited(config, tuple(CHOOSE), [0.0])


def over_delta(config: GainConfig, deltas: Sequence[float]) -> pd.DataFrame:
    """Audit every setting with the methods of Figure 6 on the same scores at every delta, each in
    [0, 1): columns of `_audited`, and exact_epsilon, that of the distributions, nats.
    """
    frame = _audited(config, ("printed", "optimal", "top_bottom", "whole"), deltas)
    settings = list(zip(frame["mechanism"], frame["scale"], frame["delta"], strict=True))
    exact = {setting: exact_epsilon(*setting) for setting in set(settings)}
    return frame.assign(exact_epsilon=[exact[setting] for setting in settings])


def _audited(config: GainConfig, methods: Sequence[str], deltas: Sequence[float]) -> pd.DataFrame:
    """Every method at every delta on the same scores, seeded by mechanism, scale and m, a row each.

    Columns mechanism, scale, m, trial, delta and method; right and all guesses; epsilon, the bound
    that they show, and selection_epsilon, the objective on the scores that chose, nats; and the
    number of the set's intervals.
    """
    rows: list[dict[str, Any]] = []
    for mechanism, scale, m, trial in config.settings():
        first, second = draw_trial(config.seed, mechanism, scale, m, trial)
        selection = selection_of(
            first, HIGHEST, total=2 * m, delta=0.0, confidence=config.confidence
        )
        for delta, method in itertools.product(deltas, methods):
            best = CHOOSE[method](replace(selection, delta=delta))
            correct, guesses = count_guesses(best, second)
            rows.append(
                {
                    "mechanism": mechanism,
                    "scale": scale,
                    "m": m,
                    "trial": trial,
                    "delta": delta,
                    "method": method,
                    "correct": correct,
                    "guesses": guesses,
                    "selection_epsilon": max(best.objective, 0.0),
                    "intervals": len(best.intervals),
                }
            )
    frame = pd.DataFrame(rows)
    for delta in deltas:
        audits = frame[frame["delta"] == delta]
        frame.loc[audits.index, "epsilon"] = one_run_epsilon(
            audits["correct"],
            audits["guesses"],
            total=2 * audits["m"],
            delta=delta,
            confidence=config.confidence,
        )
    return frame


def draw_trial(
    seed: int, mechanism: str, scale: float, m: int, trial: int
) -> tuple[MembershipScores, MembershipScores]:
    """The 2m scores that choose and the 2m that are judged, of one trial."""
    rng = np.random.default_rng([seed, MECHANISMS.index(mechanism), int(1e6 * scale), m, trial])
    first, second = (draw_scores(rng, mechanism, scale, 2 * m) for _ in range(2))
    return first, second


def paired(
    frame: pd.DataFrame,
    method: str,
    *,
    rivals: Iterable[str] = RIVALS,
    setting: Sequence[str] = _SETTING,
    repeat: str = "trial",
    value: str = "epsilon",
) -> Iterator[tuple[dict[str, Any], FloatArray, FloatArray]]:
    """Each setting and rival, with bounds of a method and of the rival on the same scores.

    Args:
        frame: A row for each setting, repeat and method.
        method: The one that is compared.
        rivals: The methods that it is compared with.
        setting: Columns that make a setting.
        repeat: Column that counts repetitions, which share scores.
        value: Column of the bounds.

    Yields:
        The setting by column, with "rival"; the method's bounds, and the rival's, shape (repeats,).
    """
    wide = frame.pivot(index=[*setting, repeat], columns="method", values=value)
    for values, bounds in wide.groupby(level=list(setting)):
        for rival in rivals:
            keys = {**dict(zip(setting, values, strict=True)), "rival": rival}
            yield keys, bounds[method].to_numpy(), bounds[rival].to_numpy()


def paired_gain(
    frame: pd.DataFrame, method: str, *, confidence: float = 0.95, **options: Any
) -> pd.DataFrame:
    """Mean gain of a method over each rival, nats: a row for each setting and rival, with the
    columns of `interval` over repetitions, at this confidence. ``options`` are those of `paired`.
    """
    rows: list[dict[str, Any]] = []
    for keys, bounds, rivals_bounds in paired(frame, method, **options):
        rows.append({**keys, **interval(bounds - rivals_bounds, confidence)})
    return pd.DataFrame(rows)


def jackknifed(bounds: FloatArray, rivals_bounds: FloatArray) -> FloatArray:
    """The jackknife's pseudo-values, shape (trials,), of the log of the standard deviation of a
    method's bounds over that of its rival's; all NaN where the bounds of either hardly vary.

    Their mean estimates the log ratio, and their spread its error: n times the value of all n
    trials, less n - 1 times that without one of them.
    """
    count = bounds.size
    with np.errstate(all="ignore"):
        whole = np.log(bounds.std()) - np.log(rivals_bounds.std())
        rest = [
            np.log(np.delete(bounds, i).std()) - np.log(np.delete(rivals_bounds, i).std())
            for i in range(count)
        ]
        values = count * whole - (count - 1) * np.array(rest)
    return values if np.isfinite(values).all() else np.full(count, np.nan)


def interval(values: FloatArray, confidence: float = 0.95) -> dict[str, float]:
    """Mean (gain) and ends (low, high) of the t-interval of independent values, shape (n,)."""
    mean = float(values.mean())
    count = values.size
    error = float(values.std(ddof=1)) / math.sqrt(count) if count > 1 else math.inf
    half = float(stdtrit(max(count - 1, 1), (1 + confidence) / 2)) * error
    return {"gain": mean, "low": mean - half, "high": mean + half}


def gain_by_rival(frame: pd.DataFrame, method: str, *, error: float = 0.05) -> pd.DataFrame:
    """The gain over all settings of a mechanism, and in how many it is significant.

    Args:
        frame: Rows of `gain`.
        method: The one whose gain over each of `RIVALS` is taken.
        error: That the intervals of single settings share.

    Returns:
        A row for each mechanism and rival: settings (their number); gain, low and high (nats) of
            the mean over settings, with its 95 % interval over trials; and in how many settings
            the interval lies above 0 (ahead) and below (behind).
    """
    gains = defaultdict[tuple[str, str], list[FloatArray]](list)
    for keys, bounds, rivals_bounds in paired(frame, method):
        gains[keys["mechanism"], keys["rival"]].append(bounds - rivals_bounds)
    # All settings of all rivals share the error.
    level = 1 - error / sum(map(len, gains.values()))
    rows: list[dict[str, Any]] = []
    for (mechanism, rival), by_setting in gains.items():
        intervals = [interval(values, level) for values in by_setting]
        rows.append(
            {
                "mechanism": mechanism,
                "rival": rival,
                "settings": len(by_setting),
                **interval(np.mean(by_setting, axis=0)),
                "ahead": sum(ends["low"] > 0 for ends in intervals),
                "behind": sum(ends["high"] < 0 for ends in intervals),
            }
        )
    return pd.DataFrame(rows)


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean (epsilon) and standard deviation (epsilon_sd) over trials, one row per setting and
    method.
    """
    grouped = frame.groupby([*_SETTING, "delta", "method"], sort=False)["epsilon"]
    return grouped.agg(epsilon="mean", epsilon_sd="std", trials="count").reset_index()
