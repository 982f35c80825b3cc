"""Argument checks shared by every room: each error names the argument, what was given and what is allowed."""

import difflib
from collections.abc import Iterable
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def check_vector(name: str, values: ArrayLike, *, minimum_size: int = 1) -> FloatArray:
    """Return ``values`` as a new, read-only, finite 1-D float array; a ValueError otherwise."""
    vector = _as_floats(name, values)
    if vector.ndim != 1:
        raise ValueError(f"{name}: expected a 1-D array, got shape {vector.shape}")
    if vector.size < minimum_size:
        raise ValueError(f"{name}: expected at least {minimum_size} values, got {vector.size}")
    check_finite(name, vector)
    vector.flags.writeable = False
    return vector


def check_finite(name: str, vector: FloatArray) -> None:
    """Refuse NaN and infinite values by a ValueError with their number and the place of the first."""
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
    """Return ``values`` as int64 (any shape); a ValueError for fractions and values below ``minimum``."""
    numbers = _as_floats(name, values)
    check_finite(name, numbers.ravel())
    fractions, small = numbers != np.floor(numbers), numbers < minimum
    if fractions.any():
        raise ValueError(f"{name}: expected whole numbers, got {numbers[fractions][0]}")
    if small.any():
        raise ValueError(f"{name}: expected at least {minimum}, got {numbers[small][0]:g}")
    return numbers.astype(np.int64)


def check_confidence(confidence: float) -> float:
    """Return ``confidence`` as a float in (0, 1); a ValueError otherwise."""
    return check_in("(0, 1)", "confidence", confidence)


def check_delta(delta: float, name: str = "delta") -> float:
    """Return ``delta`` as a float in [0, 1); a ValueError otherwise."""
    return check_in("[0, 1)", name, delta)


def check_nonnegative(name: str, value: float) -> float:
    """Return ``value`` as a finite float of at least 0; a ValueError otherwise."""
    return check_in("[0, inf)", name, value)


def check_in(interval: str, name: str, value: Any) -> float:
    """Return ``value`` as a float in an interval such as "(0, 1]" or "[0, inf)"; a ValueError otherwise."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected a number, got {value!r}") from None
    low, high = map(float, interval[1:-1].split(","))
    at_end = (number == low and interval[0] == "[") or (number == high and interval[-1] == "]")
    if not (low < number < high or at_end):
        raise ValueError(f"{name}: expected a number in {interval}, got {value!r}")
    return number


def check_at_least(least: int, **values: float) -> None:
    """Refuse arguments below ``least`` by a ValueError with the name of the first."""
    for name, value in values.items():
        if value < least:
            raise ValueError(f"{name}: expected {least} or more, got {value}")


def check_choice(name: str, value: object, allowed: Any) -> None:
    """Refuse a value outside ``allowed``, a collection or a ``Literal``, by a ValueError that lists it."""
    choices = get_args(allowed) or allowed
    if value not in choices:
        raise ValueError(f"{name}: expected one of {', '.join(map(repr, choices))}, got {value!r}")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The known word most like ``word`` in any case, as the end of an error message; "" if none is."""
    spelled = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), spelled, n=1)
    return f"; did you mean {spelled[near[0]]!r}?" if near else ""
