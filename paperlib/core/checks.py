"""Checks of arguments and of records: each error names the argument, what was given and what is
allowed.
"""

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammainc, gammaincc, gammainccinv, gammaincinv

from paperlib.core.records import copies_of_one_side, neighbours_share_coins

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_LEVEL = 1e-3  # chance of refusing independent records for their ties
_FEWEST = 20  # different values of which every one stands several times
_FEW_TIMES = 5  # of values that meet; what stands more often is an atom of its law
_BITS_OF_HALF = 11  # significant bits of float16; bfloat16 has 8
_BITS_OF_SINGLE = 24
# A loss near zero is what log-sum-exp and a logit differ by: in single precision it keeps the step
# of numbers up to 16, however small it is.
_NEAR_ZERO = 2.0**-6
_STEP_OF_LOGITS = 2.0**-20
_UNIT_ROWS = 5  # stream of a seed: what an audit draws for another purpose has another number
_NEIGHBOURS = 10  # different values on each side, for the density of rows
_WAYS = "keep one row of each, or say what a record is: unit=, or `paperlib audit --unit COLUMN`"


def check_vector(
    name: str, values: ArrayLike, *, minimum_size: int = 1, infinite: bool = False
) -> FloatArray:
    """``values`` as a new, read-only float array of shape (n,) without NaN.

    Infinite values are refused, too, unless ``infinite`` says that their place in the order is all
    that counts.

    Raises:
        ValueError: Another shape, fewer than ``minimum_size`` values, text, or NaN.
    """
    vector = as_floats(name, values)
    if vector.ndim != 1:
        raise ValueError(f"{name}: expected a 1-D array, got shape {vector.shape}")
    if vector.size < minimum_size:
        raise ValueError(f"{name}: expected at least {minimum_size} values, got {vector.size}")
    if infinite:
        check_no_nan(name, vector)
    else:
        check_finite(name, vector)
    vector.flags.writeable = False
    return vector


def check_finite(name: str, vector: FloatArray) -> None:
    """Refuse NaN and infinite values of a vector, shape (n,), by a ValueError with their number and
    the place of the first.
    """
    check_no_nan(name, vector)
    _refuse_values(name, "infinite", np.isinf(vector))


def check_no_nan(name: str, vector: FloatArray) -> None:
    """Refuse NaN in a vector, shape (n,), by a ValueError with their number and the place of the
    first.
    """
    _refuse_values(name, "NaN", np.isnan(vector))


def _refuse_values(name: str, what: str, bad: NDArray[np.bool_]) -> None:
    """Refuse (ValueError) bad values, if ``bad``, shape (n,), flags any; ``what`` says what they
    are, and ``name`` begins the message.
    """
    if bad.any():
        raise ValueError(
            f"{name}: {bad.sum()} of {bad.size} values are {what} (first at index "
            f"{bad.argmax()}); drop or fix them before auditing"
        )


def as_floats(name: str, values: Any) -> FloatArray:
    """Return numbers, of a tensor on a GPU or with gradients too, as a new float64 array of the
    same shape.

    Raises:
        ValueError: Text, complex numbers, masked values, rows of several lengths, a sparse tensor,
            or a whole number beyond floats; the message begins with ``name``.
    """
    if np.ma.is_masked(values):
        raise ValueError(
            f"{name}: some values are masked or missing; drop or fill them before auditing"
        )
    raw = _as_array(name, values)
    if raw.dtype.kind not in "biuf" and not {*map(type, raw.flat)} <= {bool, np.bool_, int, float}:
        raise ValueError(f"{name}: expected real numbers, got values of type {raw.dtype}")
    try:
        return np.array(raw, dtype=np.float64)
    except OverflowError:
        raise _too_large(name) from None


def _as_array(name: str, values: Any) -> NDArray[Any]:
    """Values as an array of any type; a ValueError for rows of several lengths, and for tensors
    that are complex or hold no value in each place, such as sparse ones.
    """
    try:
        if not hasattr(values, "detach"):
            return np.asarray(values)
        if "complex" in str(values.dtype):  # its imaginary part would be lost
            raise TypeError
        return np.asarray(values.detach().cpu().double())
    except ValueError:
        raise ValueError(f"{name}: expected rows of one length, got several lengths") from None
    # What torch raises for tensors without an array: sparse, nested, quantised, on device "meta",
    # and in a list those that need ``.detach()`` or ``.cpu()``.
    except (TypeError, RuntimeError):
        raise ValueError(
            f"{name}: expected real numbers, got a tensor that no array stands for "
            f"({_kind_of_tensor(values)}); give a dense one with its values"
        ) from None


def _kind_of_tensor(values: Any) -> str:
    """Type, layout and device of a tensor, or the type of what holds tensors."""
    if not hasattr(values, "detach"):
        return f"in a {type(values).__name__}"
    return f"{values.dtype}, {values.layout}, on {values.device}"


def _too_large(name: str) -> ValueError:
    """The error of a whole number that no float is near, such as 10**400."""
    largest = np.finfo(np.float64).max
    return ValueError(f"{name}: expected numbers up to {largest:.1e}, got a larger whole number")


def as_rows(name: str, values: Any) -> FloatArray:
    """Return numbers, also as text, of any shape as an array; a ValueError otherwise.

    Masked ones, None, and what is missing in a Series or DataFrame are NaN. Refused are "" and
    ``pd.NA`` in a list, complex numbers, dates, and tensors that need ``.detach()`` or ``.cpu()``.
    """
    try:
        if np.asarray(values).dtype.kind in "cmM":
            # Complex numbers would lose their imaginary part, and dates become counts of some unit.
            raise TypeError
        return np.ma.filled(np.ma.asarray(values, np.float64), np.nan)
    except OverflowError:
        raise _too_large(name) from None
    # RuntimeError is what torch raises for a tensor that requires gradients.
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(
            f"{name}: expected numbers, a row of one length per example; encode text and categories"
        ) from None


def check_index(name: str, values: Any, others: Any) -> None:
    """Refuse (ValueError) ``values`` whose rows have the labels of ``others`` in another order;
    only pandas objects have labels. ``name`` begins the message.
    """
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
    except OverflowError:
        raise _too_large(name) from None
    except (TypeError, ValueError, RuntimeError):  # the last one of a tensor without a value
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


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """The known word most like ``word`` in any case, as the end of an error message; "" if none
    is.
    """
    spelled = {name.lower(): name for name in words}
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


@dataclass(frozen=True)
class TiedRecords:
    """What is odd about the equal values of records that were not refused."""

    name: str  # what errors and warnings call the records
    rows: int
    equal: int  # rows that are equal to another one; 0 where chance explains those there are
    neighbours_share_coins: bool  # rows of neighbouring rank stand on one side too often


def find_ties(name: str, members: Any, nonmembers: Any = None, *, ways: str = _WAYS) -> TiedRecords:
    """Refuse values, shape (n,), or rows, shape (n, d), that are equal too often for independent
    records.

    Independent draws may have ties where laws have atoms, such as rounded scores. The numbers N1,
    N2, ... of values that stand once, twice, ... are then those of a mixture of Poisson counts, so
    that (j + 1) N(j-1) N(j+1) >= j Nj^2 in expectation (Cauchy and Schwarz). Copies break this:
    many values that stand k times, hardly one that stands k - 1 or k + 1 times; so do copies of all
    records, after which no value stands alone. Copies of one side, such as members that training
    repeats, stand on that side alone, where equal scores of independent records would not.

    Guarantee:
        Independent records are refused with probability 0.002 at most, in the Poisson
        approximation and where the chance of membership changes smoothly with the value.

    Args:
        name: What errors and warnings call the records.
        members, nonmembers: Values or rows of each side; all of one side where there is no other.
        ways: What an error advises.

    Returns:
        The number of rows that are equal where these are few, or where values in more than seven
        digits are equal more often than numbers of their precision meet; and whether rows with
        neighbouring values seem to share their coins.

    >>> find_ties("losses", np.repeat(np.arange(30.0), 3))
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
    numbers = np.bincount(times, minlength=3)  # of values that stand so many times
    _check_numbers_of_ties(name, numbers, ways)
    equal = int(times[times > 1].sum()) if _are_odd(values, times, numbers) else 0
    share_coins = False
    if len(sides) == 2:
        _check_sides_of_ties(name, sides, ways)
        member = np.arange(keys.size) < len(sides[0])
        share_coins = sides[0].ndim == 1 and neighbours_share_coins(keys, member)
    return TiedRecords(name, keys.size, equal, share_coins)


def _row_keys(side: NDArray[Any]) -> NDArray[Any]:
    """Values as they are, shape (n,); a hash of each row of a table, shape (n, d)."""
    if side.ndim == 1:
        return side
    return np.array([hash(row.tobytes()) for row in side])


def _check_numbers_of_ties(name: str, numbers: IntArray, ways: str) -> None:
    """Refuse values of which too many stand equally often; ``numbers[k]`` of them stand k times.

    Pairs have the level; all other k share it, divided by (k - 1) (k - 2), whose inverses add up
    to 1.
    """
    for times in np.flatnonzero(numbers > 2).tolist():
        if times < 2:
            continue
        level = _LEVEL if times == 2 else _LEVEL / ((times - 1) * (times - 2))
        fewer, equal = int(numbers[times - 1]), int(numbers[times])
        more_often = int(numbers[times + 1]) if times + 1 < numbers.size else 0
        if _too_many_equal(times, fewer, equal, more_often, level):
            others = f"{more_often:,}" if more_often else "none"
            raise ValueError(
                f"{name}: {equal:,} values stand {_times(times)} and {others} "
                f"{_times(times + 1)}, which independent records do not show: some are copies, "
                f"perhaps of the other side; {ways}"
            )


def _times(count: int) -> str:
    """How often, in words."""
    return {1: "once", 2: "twice", 3: "three times", 4: "four times"}.get(count, f"{count} times")


def _too_many_equal(times: int, fewer: int, equal: int, more_often: int, level: float) -> bool:
    """Whether (j + 1) N(j-1) N(j+1) >= j Nj^2 fails by more than chance explains; see `find_ties`.

    The error is shared by three events: Nj far above its mean, N(j-1) far below, and N(j+1) far
    below.
    """
    # Confidence limits of the means of Poisson counts.
    least_equal = float(gammaincinv(equal, level / 3))
    most_fewer = float(gammainccinv(fewer + 1, level / 3))
    least_more_often = least_equal**2 * times / (times + 1) / most_fewer
    return bool(gammaincc(more_often + 1, least_more_often) < level / 3)


def _check_sides_of_ties(name: str, sides: list[NDArray[Any]], ways: str) -> None:
    """Refuse (ValueError) equal values of which too few stand on both sides.

    ``sides`` are the values, shape (n,), or rows, shape (n, d), of members and of non-members; for
    rows the order of the columns decides which are neighbours.
    """
    both = np.concatenate(sides)
    if both.ndim > 1:
        both = np.unique(both.reshape(len(both), -1), axis=0, return_inverse=True)[1].ravel()
    member = np.arange(len(both)) < len(sides[0])
    copies = copies_of_one_side(both, member)
    if copies is not None:
        raise ValueError(
            f"{name}: {copies.values:,} values stand several times, {copies.mixed:,} of them on "
            f"both sides where about {copies.expected:,.0f} would by chance: they are copies of "
            f"records of one side, or rows of one unit; {ways}"
        )


def _are_odd(values: NDArray[Any], times: IntArray, numbers: IntArray) -> bool:
    """Whether precise values stand twice more often than chance explains and none three times, or
    most stand alone and those that stand twice, three times, ... do not get fewer, as where rounded
    values meet.

    Args:
        values: The different values, rising, shape (n,).
        times: How often each of them stands, shape (n,).
        numbers: How many values stand j times, at index j.
    """
    precise = _are_precise(values)
    pairs = precise & (times == 2)
    if (numbers.size < 4 or numbers[3] == 0) and not _chance_explains(values, times, pairs):
        return True
    get_more = bool((np.diff(numbers[2 : _FEW_TIMES + 1]) > 0).any())
    mostly_alone = 2 * int(numbers[1]) > int(times.sum())
    few = precise & (times > 1) & (times <= _FEW_TIMES)
    return mostly_alone and get_more and not _chance_explains(values, times, few)


def _are_precise(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values are hashes, or have more than seven digits, as no rounded score has.

    Numbers in half precision have few values, however many digits it takes to write them.
    """
    if values.dtype.kind in "iu":
        return np.ones(values.size, dtype=bool)
    rounded = np.array([float(f"{value:.7g}") for value in values.tolist()])
    return (rounded != values) & ~_have_bits(values, _BITS_OF_HALF)


def _have_bits(values: FloatArray, bits: int) -> NDArray[np.bool_]:
    """Which values are numbers of so many significant bits, as a lower precision stores them."""
    significands, _ = np.frexp(values)
    scaled = significands * 2.0**bits
    return np.rint(scaled) == scaled


def _chance_explains(values: NDArray[Any], times: IntArray, repeated: NDArray[np.bool_]) -> bool:
    """Whether some values have so many pairs of equal rows by their numbers' precision, at level
    0.001.

    Numbers of one precision that lie close together meet by chance: a row has an equal one with the
    density of the rows around it times the step to the next number that the precision has.

    Args:
        values: The different values, or hashes of rows, rising, shape (n,).
        times: How many rows have each of them, shape (n,).
        repeated: Which of them are asked about, shape (n,).
    """
    count = int((times * (times - 1) // 2)[repeated].sum())
    if count == 0:
        return True
    if values.dtype.kind in "iu":  # hashes do not meet
        return False
    first = np.maximum(np.arange(values.size) - _NEIGHBOURS, 0)
    last = np.minimum(np.arange(values.size) + _NEIGHBOURS, values.size - 1)
    rows_up_to = np.cumsum(times)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        # Rows per unit of the values, and the step between numbers of single or double precision.
        densities = (rows_up_to[last] - rows_up_to[first]) / (values[last] - values[first])
        single = np.abs(np.spacing(values.astype(np.float32))).astype(np.float64)
        single = np.where(np.abs(values) < _NEAR_ZERO, np.maximum(single, _STEP_OF_LOGITS), single)
        steps = np.where(_have_bits(values, _BITS_OF_SINGLE), single, np.abs(np.spacing(values)))
        meetings = times * densities * steps / 2  # each pair once
    expected = float(meetings[np.isfinite(meetings)].sum())
    return bool(gammainc(count, expected) >= _LEVEL)  # of a Poisson count, to be as large


def unit_means(values: FloatArray, units: Iterable[Any]) -> tuple[FloatArray, NDArray[Any]]:
    """The mean of each unit's values, in the order of the units' first rows, and the units.

    Args:
        values: A value for each row, shape (n,), or a row of values, shape (n, d).
        units: Name of each row's unit, n of them.

    Returns:
        Means, shape (units,) or (units, d), and names, shape (units,).

    Raises:
        ValueError: Another number of names, a row without one, or a unit with values of inf and of
            -inf.

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
    with np.errstate(invalid="ignore"):
        np.add.at(sums, unit_of_row, values)
    if np.isnan(sums).any():
        raise ValueError(
            "unit: some units hold values of inf and of -inf, which have no mean; leave one of "
            "both out, or give finite values"
        )
    counts = np.bincount(unit_of_row).reshape(-1, *[1] * (values.ndim - 1))
    return sums / counts, np.array(list(numbers), dtype=object)


def one_of_each(units: Sequence[Any], rows: int, seed: int) -> NDArray[np.int64]:
    """Indices of one random row of each unit, shape (units,), drawn by the seed; a ValueError where
    not every row has a unit.
    """
    units = list(units)  # a Series is asked by label
    if len(units) != rows:
        raise ValueError(f"unit: expected {rows} names, one for each row, got {len(units)}")
    order = np.random.default_rng([seed, _UNIT_ROWS]).permutation(len(units)).tolist()
    # Of each unit the last of its rows in this random order, which is a random one of them.
    last_row = {units[row]: row for row in order}
    return np.array(list(last_row.values()), dtype=np.int64)
