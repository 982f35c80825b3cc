"""Privacy measures of one trained model, from its losses, and of several models together."""

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

from paperlib.bounds import audit_one_run, audit_output_set, epsilon_star, epsilon_star_normals
from paperlib.bounds.loss_rates.audit import EpsilonStarResult
from paperlib.bounds.loss_rates.rates import NormalFit, NoSpreadError
from paperlib.core import FloatArray, MembershipScores
from paperlib.io import Cache
from paperlib.io.sources import code_tag

MEASURES = (
    "epsilon_star",
    "interval_low",
    "interval_high",
    "epsilon_shuffled",
    "epsilon_star_empirical",
    "epsilon_two_intervals",
    "one_run",
    "output_set",
    "loss_auc",
    "mean_train",
    "std_train",
    "mean_population",
    "std_population",
    "ks_train",
    "ks_population",
    "one_run_both",
    "epsilon_star_clipped",
)
"""Names of the numbers of `privacy_of_losses`: "one_run_both" guesses at both ends alike, and
"clipped" is Epsilon* of losses clipped at a probability of 1e-7, as those from float32 numbers are.
"""

_EPSILONS = (*MEASURES[:8], *MEASURES[-2:])  # those of MEASURES that are epsilons, nats
_MOMENTS = ("mean_train", "std_train", "mean_population", "std_population")  # of MEASURES
_GRID = 4_001  # points of a search
_MOST = math.log(
    1e7 - 1
)  # log-odds of a probability that a float32 sigmoid rounds no further, 1 - 1e-7

Normals = tuple[float, float, float, float]
"""Mean and deviation of training scores, then of population scores."""


def privacy_of_losses(
    train: FloatArray, other: FloatArray, *, delta: float, confidence: float, seed: int = 0
) -> dict[str, float]:
    """The numbers of ``MEASURES`` from a model's margin losses, nats, of training records, shape
    (n,), and of others, (m,).

    All are NaN where a loss is not finite or no normal fits. Where all losses are equal epsilons
    are 0 and the AUC a half.
    """
    pooled = np.concatenate([train, other])
    # In the paper's transform an extreme loss in one set can leave the other with a single value,
    # which no normal fits. A model that gives every record the same loss tells nobody apart.
    if not np.isfinite(pooled).all():
        return dict.fromkeys(MEASURES, math.nan)
    if pooled.min() == pooled.max():
        nothing = dict.fromkeys(_EPSILONS, 0.0)
        return {**dict.fromkeys(MEASURES, math.nan), **nothing, "loss_auc": 0.5}
    try:
        return _measured(train, other, delta=delta, confidence=confidence, seed=seed)
    except NoSpreadError:
        return dict.fromkeys(MEASURES, math.nan)


def _measured(
    train: FloatArray, other: FloatArray, *, delta: float, confidence: float, seed: int
) -> dict[str, float]:
    """The numbers of ``MEASURES``, in their order, from finite losses that are not all equal; a
    `NoSpreadError` where one set has a single value in the paper's transform.
    """
    star = epsilon_star(train, other, delta=delta, confidence=confidence)
    assert star.interval is not None
    fits = fits_of(star)
    counted = star.empirical or epsilon_star(train, other, delta=delta, method="empirical")
    pooled = np.concatenate([train, other])
    normals = (fits[0].mean, fits[0].std, fits[1].mean, fits[1].std)
    scores = MembershipScores(train, other, higher_means_member=False)
    options = {"delta": delta, "confidence": confidence, "design": "game", "seed": seed}
    clipped = [losses.clip(-_MOST, _MOST) for losses in (train, other)]
    apart = np.ptp(np.concatenate(clipped)) > 0
    moments = dict(zip(_MOMENTS, normals, strict=True))
    return {
        "epsilon_star": star.epsilon,
        "interval_low": star.interval[0],
        "interval_high": star.interval[1],
        "epsilon_shuffled": shuffled_epsilon(pooled, len(train), delta=delta, seed=seed),
        "epsilon_star_empirical": counted.epsilon,
        "epsilon_two_intervals": two_interval_epsilon(normals, delta=delta),
        "one_run": audit_one_run(scores, **options).epsilon,
        "output_set": audit_output_set(*scores.split(seed=seed), **options).epsilon,
        "loss_auc": scores.auc(),
        **moments,
        "ks_train": fits[0].ks_p_value,
        "ks_population": fits[1].ks_p_value,
        "one_run_both": audit_one_run(scores, guess="both", **options).epsilon,
        "epsilon_star_clipped": epsilon_star(*clipped, delta=delta).epsilon if apart else 0.0,
    }


def fits_of(star: EpsilonStarResult) -> tuple[NormalFit, NormalFit]:
    """The normals fitted to training and to population losses by the parametric version."""
    assert star.fit_train is not None
    assert star.fit_population is not None
    return star.fit_train, star.fit_population


def cached_measures(
    train: FloatArray, other: FloatArray, *, folder: Path, **numbers: Any
) -> dict[str, float]:
    """`privacy_of_losses` from the cache in ``folder``, or computed and kept there.

    The cache is read where losses, ``numbers`` and code are those of before.

    Args:
        train: Losses of the training records, shape (n,), n at least 2.
        other: Losses of records that were not trained on, shape (m,), m at least 2.
        folder: Where the numbers are kept.
        numbers: ``delta``, ``confidence`` and ``seed`` of `privacy_of_losses`.

    Returns:
        Each of `MEASURES`: epsilons in nats, an AUC, means and deviations of fitted normals, and
        p-values; all NaN where a loss is not finite or no normal fits.

    Raises:
        ValueError: A number out of range, or fewer losses than an interval needs.
    """
    hashes = [hashlib.sha256(losses.tobytes()).hexdigest() for losses in (train, other)]
    key = {"losses": hashes, "numbers": numbers, "code": code_tag(__name__)}
    measures = Cache(folder).get(key, lambda: privacy_of_losses(train, other, **numbers))
    return {name: float(measures[name]) for name in MEASURES}


def shuffled_epsilon(
    losses: FloatArray, members: int, *, delta: float, seed: int, draws: int = 10
) -> float:
    """Mean Epsilon*, nats, after membership is assigned anew at random: the value that sampling
    alone gives.

    ``losses``, shape (n,), are of all records; in each of ``draws`` assignments so many are
    ``members``.
    """
    rng = np.random.default_rng([seed, 1])
    shuffled = [rng.permutation(losses) for _ in range(draws)]
    return float(
        np.mean([epsilon_star(x[:members], x[members:], delta=delta).epsilon for x in shuffled])
    )


def two_interval_epsilon(normals: Normals, *, delta: float) -> float:
    """Epsilon* of two normals when the attacker may use an interval and its complement too, nats.

    ``normals`` holds mean and deviation of the members' losses, then of the population's; ``delta``
    is in (0, 1/2).
    """
    m, s, mu, sigma = normals
    one_sided = epsilon_star_normals(m, s, mu, sigma, delta=delta)
    spread = 1 / s**2 - 1 / sigma**2
    if spread == 0:
        return one_sided
    # The ratio of the densities is the same at equal distances from one point: the best regions are
    # |x - point| <= distance, and what lies outside.
    point = (m / s**2 - mu / sigma**2) / spread
    steps = np.linspace(-9, 9, _GRID)
    searched = np.concatenate([m + s * steps, mu + sigma * steps])
    distance = np.sort(np.abs(searched - point))
    best = -math.inf
    for _ in range(3):  # the best one often is where a rate meets delta: look closer around it
        values = _interval_values(normals, point, distance, delta)
        best = max(best, float(values.max()))
        index = int(values.argmax())
        nearer = distance[max(0, index - 1)]
        farther = distance[min(len(distance) - 1, index + 1)]
        distance = np.linspace(nearer, farther, _GRID)
    return max(one_sided, best)


def _interval_values(
    normals: Normals, point: float, distance: FloatArray, delta: float
) -> FloatArray:
    """Log of the largest ratio of Definition 2 for each interval around ``point``, nats, shape
    (n,).

    Args:
        normals: Mean and deviation of the members' losses (m, s), then of the population's (mu,
            sigma).
        point: Centre of all intervals, in the unit of the losses.
        distance: Half the length of each interval, shape (n,).
        delta: In (0, 1/2).

    Returns:
        0 or more; -inf where a rate lies outside [delta, 1 - delta].
    """
    m, s, mu, sigma = normals
    tpr, fnr = _rates(point, distance, m, s)
    fpr, tnr = _rates(point, distance, mu, sigma)
    usable = np.all(
        [(rate >= delta) & (rate <= 1 - delta) for rate in (tpr, fnr, fpr, tnr)], axis=0
    )
    pairs = ((tpr, fpr), (tnr, fnr), (fnr, tnr), (fpr, tpr))
    values = np.full(distance.shape, -math.inf)
    ratios = [(top[usable] - delta) / bottom[usable] for top, bottom in pairs]
    values[usable] = np.log(np.maximum(np.max(ratios, axis=0), 1.0))
    return values


def _rates(
    point: float, distance: FloatArray, mean: float, std: float
) -> tuple[FloatArray, FloatArray]:
    """Mass of one normal within each ``distance``, shape (n,), of ``point`` and outside, each to
    full precision.
    """
    high = (point + distance - mean) / std
    low = (point - distance - mean) / std
    flip = low > 0  # both in the right tail: mirror them, where ndtr keeps its digits
    within = np.where(flip, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
    return within, ndtr(low) + ndtr(-high)
