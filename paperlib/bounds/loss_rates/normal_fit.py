"""One normal fitted to a sample, its moments, and how well it fits."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from paperlib.core import FloatArray, check_vector


@dataclass(frozen=True, kw_only=True)
class NormalFit:
    """A maximum-likelihood normal and its Kolmogorov-Smirnov check."""

    mean: float  # sample mean
    std: float  # sample standard deviation, divisor n, above 0
    skewness: float  # third standardised moment; 0 for a normal
    kurtosis: float  # fourth standardised moment; 3 for a normal
    ks_distance: float  # largest gap between the sample's and the normal's distribution functions
    ks_p_value: float  # its p-value, corrected for the two fitted parameters (Lilliefors)
    size: int  # number of values


class NoSpreadError(ValueError):
    """All values are equal, so that no normal fits them."""


def fit_normal(values: ArrayLike, *, name: str = "values") -> NormalFit:
    """Fit one normal to finite values, shape (n,), and test the fit by a Kolmogorov-Smirnov distance."""
    sample = check_vector(name, values, minimum_size=2)
    mean, std = float(sample.mean()), float(sample.std())
    if not std > 1e-14 * max(abs(mean), float(np.abs(sample).max())):
        raise NoSpreadError(f"{name}: all {sample.size} values equal {mean:g}; a normal needs some spread")
    standard = (sample - mean) / std
    square = standard * standard
    distance = _ks_distance(standard)
    return NormalFit(
        mean=mean,
        std=std,
        skewness=float((square * standard).mean()),
        kurtosis=float((square * square).mean()),
        ks_distance=distance,
        ks_p_value=lilliefors_p_value(distance, sample.size),
        size=sample.size,
    )


def _ks_distance(standard: FloatArray) -> float:
    expected = ndtr(np.sort(standard))
    steps = np.arange(standard.size + 1) / standard.size
    return float(max((steps[1:] - expected).max(), (expected - steps[:-1]).max()))


def lilliefors_p_value(distance: float, size: int) -> float:
    """P-value of a Kolmogorov-Smirnov distance to the normal fitted to the same sample, by approximation."""
    # Stephens (1974), doi:10.1080/01621459.1974.10480196, scales the distance; above 0.1 R's package nortest
    # has the polynomials, below it Dallal and Wilkinson (1986) the tail, doi:10.1080/00031305.1986.10475419.
    root = math.sqrt(size)
    scaled = (root - 0.01 + 0.85 / root) * distance
    if scaled <= 0.302:
        return 1.0
    for limit, coefficients in _POLYNOMIALS:
        if scaled <= limit:
            value = sum(c * scaled**power for power, c in enumerate(coefficients))
            if value > 0.1:
                return min(value, 1.0)
            break
    # Dallal and Wilkinson's tail at n = 100, on the scaled distance, which makes it serve every n.
    at_hundred = scaled / (10 - 0.01 + 0.085)
    root_hundred = math.sqrt(102.78019)
    exponent = (
        -7.01256 * at_hundred**2 * 102.78019
        + 2.99587 * at_hundred * root_hundred
        - 0.122119
        + 0.0974598
        + 0.0167997
    )
    return min(math.exp(exponent), 0.1)


_POLYNOMIALS = (
    (0.5, (2.76773, -19.828315, 80.709644, -138.55152, 81.218052)),
    (0.9, (-4.901232, 40.662806, -97.490286, 94.029866, -32.355711)),
)
