"""Argument checks shared by every room: each error names the argument, what was given and what is allowed."""

from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def check_vector(name: str, values: ArrayLike, *, minimum_size: int = 1) -> FloatArray:
    """Return ``values`` as a new, read-only, finite 1-D float array.

    Args:
        name: Name in error messages.
        values: Numbers, shape (n,).
        minimum_size: Smallest allowed n.

    Raises:
        ValueError: Text, a wrong shape, too few values, NaN or infinite values (never dropped).

    >>> check_vector("scores", [1, 2])
    array([1., 2.])
    """
    vector = _as_floats(name, values)
    if vector.ndim != 1:
        raise ValueError(f"{name}: expected a 1-D array, got shape {vector.shape}")
    if vector.size < minimum_size:
        raise ValueError(f"{name}: expected at least {minimum_size} values, got {vector.size}")
    check_finite(name, vector)
    vector.flags.writeable = False
    return vector


def check_finite(name: str, vector: FloatArray) -> None:
    """Refuse NaN and infinite values, saying how many there are and where the first is.

    Raises:
        ValueError: Some value is not finite.
    """
    finite = np.isfinite(vector)
    if finite.all():
        return
    kind = "NaN" if np.isnan(vector).any() else "infinite"
    bad = np.isnan(vector) if kind == "NaN" else ~finite
    raise ValueError(
        f"{name}: {int(bad.sum())} of {vector.size} values are {kind} "
        f"(first at index {int(np.flatnonzero(bad)[0])}); drop or fix them before auditing"
    )


def _as_floats(name: str, values: ArrayLike) -> FloatArray:
    raw = np.asarray(values)
    if raw.dtype.kind not in "biuf":
        raise ValueError(f"{name}: expected real numbers, got values of type {raw.dtype}")
    return np.array(raw, dtype=np.float64)


def check_counts(name: str, values: ArrayLike, *, minimum: int = 0) -> IntArray:
    """Return ``values`` as int64 (any shape), refusing fractions and values below ``minimum``.

    Raises:
        ValueError: Not whole numbers, or below ``minimum``.

    >>> check_counts("guesses", [3.0, 4])
    array([3, 4])
    """
    numbers = _as_floats(name, values)
    check_finite(name, numbers.ravel())
    if (numbers != np.floor(numbers)).any():
        raise ValueError(
            f"{name}: expected whole numbers, got {_first(numbers, numbers != np.floor(numbers))}"
        )
    if (numbers < minimum).any():
        raise ValueError(f"{name}: expected at least {minimum}, got {_first(numbers, numbers < minimum):g}")
    return numbers.astype(np.int64)


def _first(numbers: FloatArray, mask: NDArray[np.bool_]) -> float:
    return float(numbers[mask].ravel()[0])


def check_confidence(confidence: float) -> float:
    """Return ``confidence`` as a float in the open interval (0, 1).

    Raises:
        ValueError: Outside (0, 1) or not a number.
    """
    return check_in("(0, 1)", "confidence", confidence)


def check_delta(delta: float, name: str = "delta") -> float:
    """Return ``delta`` as a float in [0, 1).

    Raises:
        ValueError: Outside [0, 1) or not a number.
    """
    return check_in("[0, 1)", name, delta)


def check_at_least(least: int, **values: float) -> None:
    """Refuse numbers below ``least``.

    Args:
        least: Smallest number that is allowed.
        values: Arguments by name.

    Raises:
        ValueError: A number is smaller; the message names it.

    >>> check_at_least(1, epochs=3, batch_size=64)
    """
    for name, value in values.items():
        if value < least:
            raise ValueError(f"{name}: expected {least} or more, got {value}")


def check_nonnegative(name: str, value: float) -> float:
    """Return ``value`` as a finite float of at least 0.

    Raises:
        ValueError: Negative, NaN or infinite.
    """
    return check_in("[0, inf)", name, value)


def check_in(interval: str, name: str, value: Any) -> float:
    """Return ``value`` as a float in an interval.

    Args:
        interval: Such as "(0, 1]", or "[0, inf)" for finite numbers from 0 on.
        name: Name in error messages.
        value: A number.

    Raises:
        ValueError: Outside the interval, or not a number.

    >>> check_in("(0, 1]", "share", 1)
    1.0
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected a number, got {value!r}") from None
    low, high = map(float, interval[1:-1].split(","))
    at_end = (number == low and interval[0] == "[") or (number == high and interval[-1] == "]")
    if not (low < number < high or at_end):
        raise ValueError(f"{name}: expected a number in {interval}, got {value!r}")
    return number


def check_choice(name: str, value: object, allowed: Any) -> None:
    """Refuse a value that is not one of ``allowed``, a collection or a ``Literal``.

    Raises:
        ValueError: Another value; the message lists the allowed ones.

    >>> check_choice("kind", "scores", ("scores", "losses"))
    """
    choices = get_args(allowed) or allowed
    if value not in choices:
        raise ValueError(f"{name}: expected one of {', '.join(map(repr, choices))}, got {value!r}")
