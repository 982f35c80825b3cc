"""LiRA and RMIA: membership from how a target differs from shadow models, which were trained
without it.

Functions on arrays. Shadow models come first: shape (K, n) for K of them on n examples. All scores
are higher for members. Variances are divided by one less than the number of models.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paperlib.core import FloatArray
from paperlib.core.checks import check_in, check_no_nan

_LEAST_VARIANCE = 1e-12


def lira_online(
    target: ArrayLike, shadows: ArrayLike, included: ArrayLike, *, fixed_variance: bool = False
) -> FloatArray:
    """Log-likelihood ratio of "trained on" against "not trained on", each a normal fitted to shadow
    models.

    Args:
        target: Logit-scaled confidence log(p / (1 - p)) of the target on each example: minus the
            margin loss, shape (n,). Infinite ones, where p is rounded to 0 or 1, count as just
            beyond all finite ones of target and shadows.
        shadows: The same of the shadow models, shape (K, n).
        included: True where a shadow model was trained on an example, shape (K, n).
        fixed_variance: One variance pooled over all examples: better with few shadow models.
            Members and others must then stand in one call, lest a variance of each kind's own tell
            the kinds apart.

    Returns:
        Shape (n,), nats.

    Raises:
        ValueError: Shapes that do not fit, NaN, or an example that fewer than two shadow models
            were trained on (or on which fewer than two were not).

    Source:
        Carlini et al. (2022), Membership Inference Attacks From First Principles, Algorithm 1.

    >>> shadows = [[0.0, 5.0], [2.0, 7.0], [4.0, 1.0], [6.0, 3.0]]
    >>> included = [[0, 1], [0, 1], [1, 0], [1, 0]]
    >>> lira_online([6.0, 6.0], shadows, included).round(1).tolist()
    [6.0, 4.0]
    """
    scores, models = _bounded(*_checked(target, shadows))
    inside = _flags(included, models.shape)
    log_likelihoods: list[FloatArray] = []  # of "in" and of "out", but for a constant
    for name, flags in (("in", inside), ("out", ~inside)):
        mean, variance = _normals(name, models, flags, fixed_variance)
        log_likelihoods.append(-0.5 * (np.log(variance) + (scores - mean) ** 2 / variance))
    return log_likelihoods[0] - log_likelihoods[1]


def lira_offline(
    target: ArrayLike,
    shadows: ArrayLike,
    included: ArrayLike | None = None,
    *,
    fixed_variance: bool = False,
) -> FloatArray:
    """Standard deviations of the target's score above the mean of models not trained on the
    example, (n,).

    Guarantee:
        Its normal distribution function is the paper's score 1 - Pr[Z > confidence]; the number
        itself orders examples alike and does not round to 1.

    Args:
        target: Logit-scaled confidence log(p / (1 - p)) of the target on each example, shape (n,);
            infinite ones count as just beyond all finite ones of target and shadows.
        shadows: The same of the shadow models, shape (K, n).
        included: Shadow models to leave out for an example because they were trained on it, truth
            values of shape (K, n); None leaves out none.
        fixed_variance: One variance pooled over all examples: better with few shadow models.

    Raises:
        ValueError: Shapes that do not fit, NaN, or an example on which fewer than two shadow models
            were not trained.

    Source:
        Carlini et al. (2022), equation 4 (offline attack).

    >>> lira_offline([3.0], [[0.0], [2.0]]).round(6).tolist()
    [1.414214]
    """
    scores, models = _bounded(*_checked(target, shadows))
    inside = np.zeros(models.shape, bool) if included is None else _flags(included, models.shape)
    mean, variance = _normals("out", models, ~inside, fixed_variance)
    return (scores - mean) / np.sqrt(variance)


def rmia(
    target: ArrayLike,
    shadows: ArrayLike,
    population_target: ArrayLike,
    population_shadows: ArrayLike,
    *,
    included: ArrayLike | None = None,
    gamma: float = 1.0,
    offline_slope: float = 0.3,
) -> FloatArray:
    """Share of population points z that the example x beats in a pairwise likelihood ratio, shape
    (n,).

    The ratio is Pr(x|target)/Pr(x) over Pr(z|target)/Pr(z), where Pr(.) is the mean over shadow
    models. Where no shadow model was trained on x, its probability with training is put at 1 + a(p
    - 1) for the mean p without.

    Args:
        target: Probability that the target gives the label of x, in [0, 1], shape (n,).
        shadows: The same of shadow models, shape (K, n).
        population_target: That the target gives the label of z, shape (m,).
        population_shadows: Shape (K, m). Their plain mean is taken, which is right where about half
            of the models were trained on each z, or where one z more or less changes little.
        included: True where a shadow model was trained on an x, shape (K, n); None for no model
            (offline).
        gamma: x beats z if the ratio is at least this, above 0.
        offline_slope: The a, in [0, 1]; used offline only.

    Raises:
        ValueError: Values outside [0, 1], shapes that do not fit, or an example that all (or no)
            shadow models were trained on.

    Source:
        Zarifzadeh, Liu and Shokri (2024), Low-Cost High-Power Membership Inference Attacks,
        equations 2, 3, 9 and 10.
    """
    check_in("[0, 1]", "offline_slope", offline_slope)
    check_in("(0, inf)", "gamma", gamma)
    x, x_models = _probabilities(target, shadows)
    z, z_models = _probabilities(population_target, population_shadows, "population_")
    if included is None:
        # Half the mean p without training, and half 1 + a(p - 1), what it would be with it.
        x_mean = 0.5 * ((1 + offline_slope) * x_models.mean(axis=0) + 1 - offline_slope)
    else:
        x_mean = _mean_of_in_and_out(x_models, _flags(included, x_models.shape))
    ratio = _ratios("target", x, x_mean)
    others = np.sort(_ratios("population_target", z, z_models.mean(axis=0)))
    return np.searchsorted(others, ratio / gamma, side="right") / others.size


def _mean_of_in_and_out(models: FloatArray, inside: NDArray[np.bool_]) -> FloatArray:
    """For each example half the mean over models trained on it plus half that over the others,
    shape (n,); a ValueError where there are none of the one or of the other.

    ``models`` are probabilities, and ``inside`` says which were trained on it, both (K, n).
    """
    count_in = inside.sum(axis=0)
    count_out = (~inside).sum(axis=0)
    bad = np.flatnonzero((count_in == 0) | (count_out == 0))
    if bad.size:
        raise ValueError(
            f"included: expected shadow models with and without each example; not so at {bad[0]}"
        )
    mean_in = (models * inside).sum(axis=0) / count_in
    mean_out = (models * ~inside).sum(axis=0) / count_out
    return 0.5 * (mean_in + mean_out)


def _ratios(name: str, target: FloatArray, mean: FloatArray) -> FloatArray:
    """Target over mean, shape (n,); a ValueError where a mean is 0."""
    if not (mean > 0).all():
        raise ValueError(
            f"{name}: all shadow models give probability 0 at index {int(np.argmin(mean > 0))}"
        )
    return target / mean


def _normals(
    name: str, models: FloatArray, is_used: NDArray[np.bool_], fixed: bool
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance over the models that ``is_used`` chooses for each example, shape (n,) each.

    A ``fixed`` variance is one number for all examples. A ValueError, in which ``name`` says which
    models, where fewer than two are chosen.
    """
    counts = is_used.sum(axis=0)
    if (counts < 2).any():
        raise ValueError(
            f"shadows: expected two shadow models or more that are {name!r} for each example, "
            f"got {counts.min()} for example {counts.argmin()}"
        )
    mean = np.where(is_used, models, 0).sum(axis=0) / counts
    squares = np.where(is_used, (models - mean) ** 2, 0).sum(axis=0)
    variance = squares.sum() / (counts - 1).sum() if fixed else squares / (counts - 1)
    return mean, np.maximum(variance, _LEAST_VARIANCE) * np.ones_like(mean)


def _checked(
    target: ArrayLike, shadows: ArrayLike, prefix: str = ""
) -> tuple[FloatArray, FloatArray]:
    """The target's numbers, shape (n,), and the shadow models', (K, n), without NaN; a ValueError
    for others, in which ``prefix`` begins the names of the arguments.
    """
    scores = np.asarray(target, dtype=np.float64)
    models = np.asarray(shadows, dtype=np.float64)
    if scores.ndim != 1 or models.ndim != 2 or models.shape[1] != scores.size or not models.size:
        raise ValueError(
            f"{prefix}shadows: expected shape (K, {scores.size}) like the target, got "
            f"{models.shape}"
        )
    check_no_nan(f"{prefix}target", scores)
    check_no_nan(f"{prefix}shadows", models.ravel())
    return scores, models


def _bounded(scores: FloatArray, models: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both, with the next numbers beyond all finite ones in the place of infinite ones.

    A normal has no infinite value: this keeps their place in the order, and is the same number in
    the target as in shadow models, as equal confidences are.
    """
    values = np.concatenate([scores, models.ravel()])
    finite = values[np.isfinite(values)]
    if finite.size == values.size:
        return scores, models
    if not finite.size:  # nothing but infinities: any two numbers keep their order
        return scores.clip(-1.0, 1.0), models.clip(-1.0, 1.0)
    low = np.nextafter(finite.min(), -np.inf)
    high = np.nextafter(finite.max(), np.inf)
    return scores.clip(low, high), models.clip(low, high)


def _probabilities(
    target: ArrayLike, shadows: ArrayLike, prefix: str = ""
) -> tuple[FloatArray, FloatArray]:
    """The target's probabilities, shape (n,), and the shadow models', (K, n); a ValueError as of
    `_checked`, and for numbers outside [0, 1].
    """
    scores, models = _checked(target, shadows, prefix)
    for name, values in (("target", scores), ("shadows", models)):
        low, high = values.min(), values.max()
        if low < 0 or high > 1:
            raise ValueError(
                f"{prefix}{name}: expected probabilities in [0, 1], got {low} to {high}"
            )
    return scores, models


def _flags(included: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Truth values of ``shape``, (K, n); refuses others."""
    flags = np.asarray(included)
    if flags.shape != shape or not np.isin(flags, (0, 1)).all():
        raise ValueError(
            f"included: expected truth values of shape {shape}, got shape {flags.shape}"
        )
    return flags.astype(bool)
