"""Checks of arguments and of records: each error names the argument, what was given and what is
allowed.
"""

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaincc, gammainccinv, gammaincinv

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_LEVEL = 1e-3  # chance of refusing independent records for their ties
_FEWEST = 20  # different values of which every one stands several times
_WAYS = "keep one row of each, or say what a record is: unit=, or `paperlib audit --unit COLUMN`"


def check_vector(name: str, values: ArrayLike, *, minimum_size: int = 1) -> FloatArray:
    """Return ``values`` as a new, read-only, finite 1-D float array; a ValueError otherwise."""
    vector = as_floats(name, values)
    if vector.ndim != 1:
        raise ValueError(f"{name}: expected a 1-D array, got shape {vector.shape}")
    if vector.size < minimum_size:
        raise ValueError(f"{name}: expected at least {minimum_size} values, got {vector.size}")
    check_finite(name, vector)
    vector.flags.writeable = False
    return vector


def check_finite(name: str, vector: FloatArray) -> None:
    """Refuse NaN and infinite values by a ValueError with their number and the place of the
    first.
    """
    missing = np.isnan(vector)
    bad = missing if missing.any() else ~np.isfinite(vector)
    if bad.any():
        raise ValueError(
            f"{name}: {bad.sum()} of {vector.size} values are "
            f"{'NaN' if missing.any() else 'infinite'} (first at index {bad.argmax()}); drop or "
            "fix them before auditing"
        )


def as_floats(name: str, values: Any) -> FloatArray:
    """Return numbers, of a tensor on a GPU or with gradients too, as a new array; a ValueError
    otherwise.
    """
    if np.ma.is_masked(values):
        raise ValueError(
            f"{name}: some values are masked or missing; drop or fill them before auditing"
        )
    raw = np.asarray(values.detach().cpu().double() if hasattr(values, "detach") else values)
    if raw.dtype.kind not in "biuf" and not {*map(type, raw.flat)} <= {bool, np.bool_, int, float}:
        raise ValueError(f"{name}: expected real numbers, got values of type {raw.dtype}")
    return np.array(raw, dtype=np.float64)


def as_rows(name: str, values: Any) -> FloatArray:
    """Return numbers, also as text, of any shape as an array; masked and missing ones are NaN."""
    try:
        if np.asarray(values).dtype.kind in "cmM":
            raise TypeError(
                "numbers of another kind, which would lose a part or get a unit of their own"
            )
        return np.ma.filled(np.ma.asarray(values, np.float64), np.nan)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(
            f"{name}: expected numbers, a row of one length per example; encode text and categories"
        ) from None


def check_index(name: str, values: Any, others: Any) -> None:
    """Refuse (ValueError) pandas objects with the same labels of rows in another order."""
    if not (hasattr(values, "iloc") and hasattr(others, "iloc")):
        return
    is_reordered = not values.index.equals(others.index)
    if is_reordered and Counter(values.index) == Counter(others.index):
        raise ValueError(
            f"{name}: the rows stand in another order than those they go with; bring both into one "
            "order by .loc, or give .to_numpy() of both"
        )


def check_counts(name: str, values: ArrayLike, *, minimum: int = 0) -> IntArray:
    """Return ``values`` as int64 (any shape); a ValueError for fractions and values below
    ``minimum``.
    """
    numbers = as_floats(name, values)
    check_finite(name, numbers.ravel())
    fractions = numbers != np.floor(numbers)
    small = numbers < minimum
    if fractions.any():
        raise ValueError(f"{name}: expected whole numbers, got {numbers[fractions][0]}")
    if small.any():
        raise ValueError(f"{name}: expected at least {minimum}, got {numbers[small][0]:g}")
    return numbers.astype(np.int64)


def check_confidence(confidence: float) -> float:
    """Return ``confidence`` as a float in (0, 1); a ValueError otherwise."""
    check_in("(0, 1)", "confidence", confidence)
    return check_in("(1e-15, 1)", "confidence", confidence)  # below it, 1 - confidence is 1


def check_delta(delta: float, name: str = "delta") -> float:
    """Return ``delta`` as a float in [0, 1); a ValueError otherwise."""
    return check_in("[0, 1)", name, delta)


def check_nonnegative(name: str, value: float) -> float:
    """Return ``value`` as a finite float of at least 0; a ValueError otherwise."""
    return check_in("[0, inf)", name, value)


def check_in(interval: str, name: str, value: Any) -> float:
    """Return ``value`` as a float in an interval such as "(0, 1]" or "[0, inf)"; a ValueError
    otherwise.
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


def check_at_least(least: int, **values: float) -> None:
    """Refuse arguments below ``least`` by a ValueError with the name of the first."""
    for name, value in values.items():
        if value < least:
            raise ValueError(f"{name}: expected {least} or more, got {value}")


def check_list(name: str, values: object) -> None:
    """Refuse (ValueError) what is no list of texts: its letters, keys or columns would be taken for
    them.
    """
    kind = type(values).__name__
    if isinstance(values, str | bytes | Mapping) or hasattr(values, "columns"):
        raise ValueError(
            f"{name}: expected a sequence of texts, got {kind}; put its texts in a list"
        )


def check_choice(name: str, value: object, allowed: Any) -> None:
    """Refuse a value outside ``allowed``, a collection or a ``Literal``, by a ValueError that lists
    it.
    """
    choices = get_args(allowed) or allowed
    if value not in choices:
        raise ValueError(f"{name}: expected one of {', '.join(map(repr, choices))}, got {value!r}")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The known word most like ``word`` in any case, as the end of an error message; "" if none
    is.
    """
    spelled = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), spelled, n=1)
    return f"; did you mean {spelled[near[0]]!r}?" if near else ""


# Records: none may stand twice or on both sides, unless the user says what a record is.


def check_ids(members: Sequence[Any], nonmembers: Sequence[Any], *, unit: bool = False) -> None:
    """Refuse (ValueError) names of rows that stand on both sides, or, but for units, several times
    on one.

    >>> check_ids(["a", "b"], ["b", "c"])
    Traceback (most recent call last):
    ...
    ValueError: records among both the members and the non-members: 1, such as 'b'; a record is one
    or the other, so leave them out of one side
    """
    both = set(members) & set(nonmembers)
    if both:
        raise ValueError(
            f"records among both the members and the non-members: {len(both):,}, such as "
            f"{min(map(str, both))!r}; a record is one or the other, so leave them out of one side"
        )
    rows = len(members) + len(nonmembers)
    records = len(set(members)) + len(set(nonmembers))
    if records < rows and not unit:
        raise ValueError(
            f"{rows:,} rows hold {records:,} records: the rows of one record are not "
            f"independent; {_WAYS}"
        )


def check_ties(
    name: str, members: Any, nonmembers: Any = None, *, ways: str = _WAYS
) -> tuple[str, ...]:
    """Refuse values, shape (n,), or rows, shape (n, d), that are equal too often for independent
    records.

    Independent draws may have ties where laws have atoms, such as rounded scores. The numbers N1,
    N2, N3 of values that stand once, twice and three times are then those of a mixture of Poisson
    counts, so that 6 N1 N3 >= 4 N2^2 in expectation (Cauchy and Schwarz). Copies break this: many
    pairs, hardly a triple; so do copies of all records, after which no value stands alone.

    Guarantee:
        Independent records are refused with probability 0.001 at most, in the Poisson
        approximation.

    Returns:
        A warning where a few rows, or values in more than seven digits, are equal.

    >>> check_ties("losses", np.repeat(np.arange(30.0), 3))
    Traceback (most recent call last):
    ...
    ValueError: losses: each of 30 different values stands 3 times or a multiple of it: copies of a
    record are not independent; keep one row of each, or say what a record is: unit=, or
    `paperlib audit --unit COLUMN`
    """
    sides = [np.asarray(side) for side in (members, nonmembers) if side is not None]
    keys = np.concatenate([_row_keys(side) for side in sides])
    values, times = np.unique(keys, return_counts=True)
    divisor = int(np.gcd.reduce(times))
    if divisor > 1 and times.size >= _FEWEST:
        raise ValueError(
            f"{name}: each of {times.size:,} different values stands {divisor} times or a multiple "
            f"of it: copies of a record are not independent; {ways}"
        )
    alone, pairs, triples = (int((times == count).sum()) for count in (1, 2, 3))
    if _too_few_triples(alone, pairs, triples):
        raise ValueError(
            f"{name}: {pairs:,} values stand twice and {triples:,} three times, which independent "
            f"records do not show: some are copies, perhaps of the other side; {ways}"
        )
    tied: list[Any] = values[times == 2].tolist()
    if not triples and any(map(_is_precise, tied)):
        share = f"{2 * pairs:,} of {int(times.sum()):,}"
        return (f"{name}: {share} are equal to another one; check for copies",)
    return ()


def _row_keys(side: NDArray[Any]) -> NDArray[Any]:
    """Values as they are, shape (n,); a hash of each row of a table, shape (n, d)."""
    if side.ndim == 1:
        return side
    return np.array([hash(row.tobytes()) for row in side])


def _too_few_triples(alone: int, pairs: int, triples: int) -> bool:
    """Whether 6 N1 N3 >= 4 N2^2 fails by more than chance explains; see `check_ties`.

    The error is shared by three events: N2 far above its mean, N1 far below, and N3 far below.
    """
    # Confidence limits of the means of Poisson counts.
    fewest_pairs = float(gammaincinv(max(pairs, 1), _LEVEL / 3))
    most_alone = float(gammainccinv(alone + 1, _LEVEL / 3))
    least_triples = fewest_pairs**2 * 2 / 3 / most_alone
    return pairs > 2 and bool(gammaincc(triples + 1, least_triples) < _LEVEL / 3)


def _is_precise(value: float) -> bool:
    """Whether a value is a hash, or has more than seven digits, as no rounded score has."""
    return isinstance(value, int) or float(f"{value:.7g}") != value


def unit_means(values: FloatArray, units: Iterable[Any]) -> tuple[FloatArray, NDArray[Any]]:
    """The mean of each unit's values, in the order of the units' first rows, and the units.

    >>> unit_means(np.array([1.0, 5.0, 3.0]), ["a", "b", "a"])
    (array([2., 5.]), array(['a', 'b'], dtype=object))
    """
    numbers: dict[Any, int] = {}  # of each unit, in the order of their first rows
    unit_of_row = np.array([numbers.setdefault(unit, len(numbers)) for unit in units])
    if unit_of_row.size != len(values):
        raise ValueError(f"unit: expected {len(values)} names like values, got {unit_of_row.size}")
    if any(unit is None or unit != unit for unit in numbers):
        raise ValueError(
            "unit: some rows have no name; give each a name of its own, or leave those rows out"
        )
    sums = np.zeros((len(numbers), *values.shape[1:]))
    np.add.at(sums, unit_of_row, values)
    counts = np.bincount(unit_of_row).reshape(-1, *[1] * (values.ndim - 1))
    return sums / counts, np.array(list(numbers), dtype=object)


def one_of_each(units: Sequence[Any], rows: int, seed: int) -> NDArray[np.int64]:
    """Places of one row of each unit, drawn by the seed; a ValueError where not every row has a
    unit.
    """
    units = list(units)  # a Series is asked by label
    if len(units) != rows:
        raise ValueError(f"unit: expected {rows} names, one for each row, got {len(units)}")
    order = np.random.default_rng([seed, 5]).permutation(len(units)).tolist()
    last_row = {units[row]: row for row in order}
    return np.array(list(last_row.values()), dtype=np.int64)


def unit_sentence(unit: str) -> str:
    """What a record is, for a claim."""
    return f"One example is one unit of {unit}: all its rows, their values averaged."
