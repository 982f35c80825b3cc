"""What a record is, by what the rows hold: names of units, shared records and copies.

Nothing here looks at the name of a column. A row that is a record of its own has a coin of its own:
rows that share a value then share a side as often as chance has it. Values that never stand on both
sides name units whose rows share one coin, and values that always do are records of both sides.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, ndtri, rel_entr

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Flags = NDArray[np.bool_]

_LEVEL = 1e-6  # chance of refusing a column of independent records, or their equal scores
_FEWEST = 8  # repeated values; fewer are classes, sites or splits as often as units
_MOST_MIXED = 0.05  # share of the names of units that may stand on both sides, such as "unknown"
_ALIKE_LEVEL = 1e-6  # chance that independent scores of a time split are taken for those of units
_ORDER_LEVEL = 1e-3  # chance that units in a random order of sides count as in their order
_MANY = 200  # values, of which half of the changes that chance makes are a rare event
_FEW_CHANGES = 0.5  # of the side, as a share of those in a random order; chosen
_WINDOW = 25  # neighbours on each side of a score, for the local share of members
_WINDOW_OF_UNITS = 5  # neighbouring units likewise, for the share around a unit's measure
_DENSE = 0.8  # share of the whole numbers from the first on that numbers of rows take up
_ROLES = re.compile(
    r"non[-_ ]?members?|members?|train(?:ing|ed)?|test(?:ing)?|valid(?:ation)?|val|dev|eval"
    r"|hold[-_ ]?out|held[-_ ]?out|seen|unseen",
    re.IGNORECASE,
)
_TOKENS = re.compile(r"\d+|\D+")
_NUMBER = re.compile(
    r"[+-]?(?:(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan)",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True, eq=False)
class Repeats:
    """The values that stand in two rows or more: how often, and how often among the members."""

    counts: IntArray  # rows of each value, shape (values,)
    members: IntArray  # those among them that are members, shape (values,)

    @property
    def one_sided(self) -> Flags:
        """Which values stand on one side alone."""
        return (self.members == 0) | (self.members == self.counts)

    @property
    def mixed(self) -> int:
        """How many values stand on both sides."""
        return int((~self.one_sided).sum())

    def mixed_by_chance(self, share: FloatArray | float) -> float:
        """How many values would stand on both sides, on average, if each row had a coin of its own;
        ``share`` is the chance of a member, one number or shape (values,).
        """
        one_sided = np.power(share, self.counts) + np.power(1.0 - np.asarray(share), self.counts)
        return float((1.0 - one_sided).sum())


@dataclass(frozen=True)
class WaysOut:
    """What the user can do about a column that is refused; {name} stands for its name."""

    unit: str = "say --unit {name} (in Python unit=)"  #: where its values are units
    group: str = "--group-column {name}"  #: where each of its rows is a record of its own


def check_column(
    label: str,
    name: str,
    cells: Sequence[Any],
    member: Flags,
    scores: FloatArray | None = None,
    ways: WaysOut | None = None,
) -> None:
    """Refuse (ValueError) a column that names units of several rows, or records of both sides.

    Numbers with fractions are measured. They name units, such as an income that each row of a
    customer repeats, where most rows share theirs on one side, while rows of neighbouring numbers
    stand on both. A column whose values are in the order of
    the sides, such as the date of a split by time, names units only where the scores of one value
    are more alike than those of its neighbours.

    Guarantee:
        A column of rows with coins of their own is refused with probability 1e-6 at most, in
        either way; one of measured numbers where the chance of membership changes smoothly with
        them.

    Args:
        label: How the message calls the column, and ``name`` what the user types.
        cells: One value for each row, shape (n,); missing ones are None or "".
        member: Of the same rows, shape (n,).
        scores: What else is known of these rows as numbers, shape (n,) or (n, k); without any, a
            column in the order of the sides passes.
        ways: What the message says that helps; None names the options of audits of scores.

    >>> users = [f"u{row // 4}" for row in range(80)]
    >>> sides = np.repeat(np.tile([True, False, False, True, False], 4), 4)
    >>> check_column("column 'user'", "user", users, sides, np.zeros(80))
    Traceback (most recent call last):
    ...
    ValueError: column 'user' names units: 20 of its 20 values that stand in several rows stand on
    one side only, and rows of one unit are not independent; say --unit user (in Python unit=), or
    --group-column user if each row is a record of its own
    """
    texts = [_text(cell) for cell in cells]
    ways = ways or WaysOut()
    if _is_measured(texts):
        _check_measured(label, name, texts, member, ways)
        return
    names, codes = _codes(texts)
    repeats, repeated = _repeats(codes, len(names), member)
    total = repeats.counts.size
    if total < _FEWEST:
        return
    expected = repeats.mixed_by_chance(float(member.mean()))
    if _tail(repeats.mixed, expected, total) > _LEVEL or _are_row_numbers(names, codes, member):
        return
    several = f"of its {total:,} values that stand in several rows"
    way_out = f"{ways.group.format(name=name)} if each row is a record of its own"
    if repeats.mixed > expected:
        raise ValueError(
            f"{label} names records of both sides: {repeats.mixed:,} {several} stand on both "
            "sides, which rows with coins of their own do not show; leave these records out of "
            f"one side, or say {way_out}"
        )
    if repeats.mixed > _MOST_MIXED * total or _is_told_by_roles(texts, member):
        return
    order, in_order = _order([names[code] for code in repeated], repeats)
    in_members = repeats.members[order] > 0
    if in_order and not _are_alike(codes, repeated[order], in_members, scores):
        return
    raise _names_units(label, name, total - repeats.mixed, total, ways)


def _names_units(label: str, name: str, one_sided: int, total: int, ways: WaysOut) -> ValueError:
    """The error of a column of whose ``total`` repeated values so many stand on one side."""
    return ValueError(
        f"{label} names units: {one_sided:,} of its {total:,} values that stand in several rows "
        "stand on one side only, and rows of one unit are not independent; "
        f"{ways.unit.format(name=name)}, or {ways.group.format(name=name)} if each row is a record "
        "of its own"
    )


def _check_measured(
    label: str, name: str, texts: Sequence[str], member: Flags, ways: WaysOut
) -> None:
    """Refuse (ValueError) measured numbers that name units: more than half of the rows share theirs
    with another row, and on one side, while rows of neighbouring numbers stand on both.

    Args:
        label: How the message calls the column, and ``name`` what the user types.
        texts: The number of each row as text, n of them; "" where it is missing.
        member: Of the same rows, shape (n,).
        ways: What the message says that helps.
    """
    numbers = np.array([float(text.replace(",", ".")) if text else np.nan for text in texts])
    present = np.isfinite(numbers)
    times = np.unique(numbers[present], return_counts=True)[1]
    if 2 * int(times[times > 1].sum()) <= len(texts):
        return
    # Several units on each side, since the rows of one unit tell one coin.
    window = max(_WINDOW, _WINDOW_OF_UNITS * int(np.median(times[times > 1])))
    copies = copies_of_one_side(numbers[present], member[present], window)
    if copies is None or copies.mixed > _MOST_MIXED * copies.values:
        return
    raise _names_units(label, name, copies.values - copies.mixed, copies.values, ways)


@dataclass(frozen=True)
class TiedCopies:
    """Values that stand several times, as numbers of values."""

    values: int  # all of them
    mixed: int  # which stand on both sides
    expected: float  # which would by chance, on average


def copies_of_one_side(
    values: NDArray[Any], member: Flags, window: int = _WINDOW
) -> TiedCopies | None:
    """Values that stand on one side too often to be equal by chance; None where chance explains
    them.

    The chance that a row is a member is taken from the rows of neighbouring values, so that a leak,
    which makes it change with the score, is none.

    Args:
        values: Scores, or any numbers in whose order the chance changes smoothly, shape (n,).
        member: Of the same rows, shape (n,).
        window: Neighbours on each side that tell the chance of a value.
    """
    codes = np.unique(values, return_inverse=True)[1].ravel()  # number of each row's value
    order = np.argsort(codes, kind="stable")
    repeats, repeated = _repeats(codes, int(codes.max()) + 1, member)
    total = repeats.counts.size
    if total < _FEWEST:
        return None
    # Of each repeated value, in the order of values: its first row and the one behind its last; and
    # the same of the window on each side.
    starts = np.searchsorted(codes[order], repeated)
    ends = starts + repeats.counts
    members_before = np.append(0, np.cumsum(member[order]))
    firsts = np.maximum(starts - window, 0)
    lasts = np.minimum(ends + window, codes.size)
    left = members_before[starts] - members_before[firsts]
    right = members_before[lasts] - members_before[ends]
    # Of the shares below, above and around, the one by which the fewest are on both sides: where
    # the chance has a step, it is that of one side of it.
    shares = np.stack(
        [
            left / np.maximum(starts - firsts, 1),
            right / np.maximum(lasts - ends, 1),
            (left + right) / np.maximum(starts - firsts + lasts - ends, 1),
        ]
    )
    share = np.take_along_axis(shares, np.abs(shares - 0.5).argmax(axis=0)[None], axis=0)[0]
    expected = repeats.mixed_by_chance(share)
    if repeats.mixed >= expected or _tail(repeats.mixed, expected, total) > _LEVEL:
        return None
    return TiedCopies(total, repeats.mixed, expected)


def _repeats(codes: IntArray, size: int, member: Flags) -> tuple[Repeats, IntArray]:
    """The values that stand several times, and their codes, shape (values,).

    Args:
        codes: Number of each row's value, from 0 to ``size`` less 1; -1 for a missing cell.
        size: How many different values there are.
        member: Whether each row is a member, shape (n,).
    """
    present = codes >= 0
    counts = np.bincount(codes[present], minlength=size)
    members = np.bincount(codes[present & member], minlength=size)
    repeated = np.flatnonzero(counts > 1)
    return Repeats(counts[repeated], members[repeated]), repeated


def _tail(observed: int, expected: float, total: int) -> float:
    """Bound on the chance of so many of ``total`` events, or of more unusual numbers on that side.

    Source:
        Hoeffding (1963), Theorem 1, for independent events of unequal chances.
    """
    rate, mean = observed / total, min(max(expected / total, 0.0), 1.0)
    divergence = rel_entr(rate, mean) + rel_entr(1.0 - rate, 1.0 - mean)
    return float(np.exp(-total * divergence))


def _text(cell: Any) -> str:
    """A cell as text, alike for files of text and of numbers; "" where it is missing."""
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def _is_measured(texts: list[str]) -> bool:
    """Whether these are numbers of which some have fractions."""
    present = [text for text in texts if text]
    if not all(map(_NUMBER.fullmatch, present)):
        return False
    return any(float(text.replace(",", ".")) % 1 != 0 for text in present)


def _codes(texts: Sequence[str]) -> tuple[list[str], IntArray]:
    """The different texts in the order in which they come, and the number of each; -1 for ""."""
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(text, len(numbers)) if text else -1 for text in texts]
    return list(numbers), np.array(codes, dtype=np.int64)


def _are_row_numbers(names: list[str], codes: IntArray, member: Flags) -> bool:
    """Whether each side counts anew from 0 or 1, as rows, batches and positions are counted.

    Args:
        names: The different values of a column.
        codes: Which of them each row holds, shape (n,); -1 for a missing cell.
        member: Whether each row is a member, shape (n,).
    """
    if not all(name.isdecimal() for name in names):
        return False
    numbers = np.array([float(name) for name in names])
    for side in (member, ~member):
        present = np.unique(codes[side & (codes >= 0)])
        last = numbers[present].max(initial=0.0)
        if present.size < _DENSE * last:  # numbers up to the last one are missing
            return False
    return True


def _is_told_by_roles(texts: list[str], member: Flags) -> bool:
    """Whether the values stand on both sides but for a word such as train, as folders of classes
    do.
    """
    names, codes = _codes([_ROLES.sub("", text) for text in texts])
    repeats, _ = _repeats(codes, len(names), member)
    if repeats.mixed <= _MOST_MIXED * repeats.counts.size:
        return False
    digits = [re.sub(r"\D", "", name) for name in names]
    return not _are_row_numbers(digits, codes, member)  # units that each side counts anew


def _order(names: list[str], repeats: Repeats) -> tuple[IntArray, bool]:
    """The order of the names' values in which neighbours differ least often in their side, and
    whether the sides follow that order: whether they change rarely along it.

    Numbers in names count by their size; names are also read from their end, as dates that begin
    with the day.
    """
    tokens = [_tokens(name) for name in names]
    orders: list[IntArray] = []
    for keys in (tokens, [key[::-1] for key in tokens]):
        orders.append(np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64))
    side = 2 * repeats.members >= repeats.counts
    changes = [int((np.diff(side[order].astype(int)) != 0).sum()) for order in orders]
    # The mean in a random order. One change there is always, where both sides occur.
    by_chance = 2 * side.mean() * (1 - side.mean()) * (side.size - 1)
    fewest = min(changes)
    most = max(1.0, _FEW_CHANGES * by_chance)
    in_order = fewest <= most and _are_few_changes(fewest, side)
    return orders[int(np.argmin(changes))], in_order


def _are_few_changes(changes: int, side: Flags) -> bool:
    """Whether so few changes of the side are rare in a random order: among few values, half of
    those that chance makes are not.

    Source:
        Wald and Wolfowitz (1940), the distribution of the number of runs.
    """
    if changes <= 1 or side.size > _MANY:
        return True
    # A run is a stretch of one side. M members fall into r runs in (M - 1 over r - 1) ways.
    first = int(side.sum()) - 1  # members less 1
    second = side.size - first - 2  # others less 1
    orders = 0  # with so many changes or fewer
    for half in range(1, changes // 2 + 2):
        # 2 half - 1 changes: as many runs of both sides, and either side may come first.
        orders += 2 * math.comb(first, half - 1) * math.comb(second, half - 1)
        if 2 * half <= changes:  # 2 half changes: one run more of one side
            orders += math.comb(first, half) * math.comb(second, half - 1)
            orders += math.comb(first, half - 1) * math.comb(second, half)
    if changes % 2 == 0:  # the last number of changes was odd, one too many
        half = changes // 2 + 1
        orders -= 2 * math.comb(first, half - 1) * math.comb(second, half - 1)
    return orders <= _ORDER_LEVEL * math.comb(side.size, first + 1)


def _tokens(name: str) -> tuple[tuple[int, int, str], ...]:
    """Numbers and words of a name as keys for sorting: numbers stand before words, and are ordered
    by their size, which is their length and then their digits.
    """
    keys: list[tuple[int, int, str]] = []
    for token in _TOKENS.findall(name):
        if token.isdecimal():
            digits = token.lstrip("0")
            keys.append((0, len(digits), digits))
        else:
            keys.append((1, 0, token))
    return tuple(keys)


def _are_alike(
    codes: IntArray, ordered: IntArray, in_members: Flags, scores: FloatArray | None
) -> bool:
    """Whether rows of one value are more alike than those of the values before and after it, in
    some column of scores; each column has its share of the level.

    Args:
        codes: Number of each row's value, shape (n,); -1 for a missing cell.
        ordered: Codes of the repeated values, in their order, shape (values,).
        in_members: Whether members have each of them, shape (values,).
        scores: Numbers of each row, shape (n,) or (n, k); None for none, which are not alike.
    """
    if scores is None:
        return False
    columns = scores.reshape(len(codes), -1).T
    level = _ALIKE_LEVEL / max(1, len(columns))
    return any(_chance_of_alike(codes, ordered, in_members, row) <= level for row in columns)


def _chance_of_alike(
    codes: IntArray, ordered: IntArray, in_members: Flags, scores: FloatArray
) -> float:
    """The chance of scores of one value that are so much more alike than those of neighbouring
    values: a p-value; 1 where there are too few values.

    An F test of second differences of the means of values, on normal scores of ranks: what
    changes smoothly with the value, such as a loss with the date, is no reason.

    Args:
        codes, ordered, in_members: As for `_are_alike`.
        scores: One number for each row, shape (n,).
    """
    # Squares within values, by their degrees of freedom, are held against those between values.
    normal = ndtri(mean_ranks(scores) / (scores.size + 1.0))
    sizes = np.bincount(codes[codes >= 0])
    means = np.bincount(codes[codes >= 0], weights=normal[codes >= 0]) / np.maximum(sizes, 1)
    rows = np.isin(codes, ordered)
    within = float(((normal[rows] - means[codes[rows]]) ** 2).sum())
    freedom = int(rows.sum()) - ordered.size
    between, triples = 0.0, 0
    for side in (in_members, ~in_members):
        values = ordered[side]
        values = values[: values.size // 3 * 3].reshape(-1, 3)
        # Of each three values in turn the mean of the middle one less that of its neighbours,
        # squared in units of its variance.
        contrasts = means[values] @ np.array([-0.5, 1.0, -0.5])
        variances = (1.0 / sizes[values]) @ np.array([0.25, 1.0, 0.25])
        between += float((contrasts**2 / variances).sum())
        triples += len(values)
    if triples == 0 or between == 0.0:
        return 1.0
    ratio = between / triples / max(within / freedom, 1e-300)
    return float(fdtrc(triples, freedom, ratio))


# ---------------------------------------------------------------- rows that are nearly equal

_SCALES = (1, 4, 16, 64)  # neighbours in rank that are looked at, on one side
_NEAR_LEVEL = 4.0  # standard deviations from which neighbours share their side too often
_FEWEST_ROWS = 100
_BLOCKS = 64  # of rows in the order of the scores, for the turns of the chance of membership
_TURNS = 16  # places where the chance may turn


def neighbours_share_coins(values: FloatArray, member: Flags) -> bool:
    """Whether rows of neighbouring rank stand on one side far more often than a leak explains.

    The chance of membership may change with the score in any steps down, up and down again, or up,
    down and up, which covers shifts, memorised records and heavy tails of scores and of losses: it
    is fitted by isotonic regression. Rows of one coin, such as epochs of one record, then leave
    residuals that agree with those of their neighbours by either fit. Equal scores come in an order
    drawn at random.

    Args:
        values: Scores, shape (n,), and ``member`` of the same rows.
    """
    if values.size < _FEWEST_ROWS or np.unique(values).size < values.size // 2:
        return False
    shuffled = np.random.default_rng(0).permutation(values.size)
    order = shuffled[np.argsort(values[shuffled], kind="stable")]
    sides = member[order].astype(np.float64)
    return all(map(_share_beyond_fit, (sides, sides[::-1])))


def _share_beyond_fit(sides: FloatArray) -> bool:
    """Whether neighbours agree far beyond a chance that falls, rises and falls along these rows."""
    chances = _fitted_chances(sides)
    agreements = [_agreement(sides - chances, chances, scale) for scale in _SCALES]
    return max(agreements) > _NEAR_LEVEL


def _agreement(residuals: FloatArray, chances: FloatArray, scale: int) -> float:
    """How far residuals, sides less chances, agree with those of the next ``scale`` rows, in
    standard deviations of what coins of their own would give; 0 where nearly every side is certain.
    """
    # The sum of the products of each row with the rows behind it, from running sums.
    firsts = np.arange(1, residuals.size + 1)
    lasts = np.minimum(firsts + scale, residuals.size)
    sums = np.append(0.0, np.cumsum(residuals))
    agreement = float((residuals * (sums[lasts] - sums[firsts])).sum())
    # Under independent coins it has mean 0, and the products' variances add up.
    variances = chances * (1.0 - chances)
    sums = np.append(0.0, np.cumsum(variances))
    variance = float((variances * (sums[lasts] - sums[firsts])).sum())
    if variance < 1.0:  # nearly every side is certain
        return 0.0
    return agreement / float(np.sqrt(variance))


def _fitted_chances(sides: FloatArray) -> FloatArray:
    """The chance of membership of rows in the order of their scores, shape (n,): it falls, rises
    and falls, by isotonic regression of each piece.

    The two turns are those with the least squared errors of blocks of rows; ``sides`` is 1 for a
    member and 0 for others, shape (n,).
    """
    edges = np.linspace(0, sides.size, min(_BLOCKS, sides.size // 4) + 1).astype(np.int64)
    sizes = np.diff(edges).astype(np.float64)
    means = np.add.reduceat(sides, edges[:-1]) / sizes
    turns = np.unique(np.linspace(0, sizes.size, _TURNS + 1).astype(np.int64)).tolist()
    # By turn, the error of a fit that falls before it, and of one that falls after it.
    before = {turn: _squared_error(means[:turn], sizes[:turn], rises=False) for turn in turns}
    after = {turn: _squared_error(means[turn:], sizes[turn:], rises=False) for turn in turns}
    best, errors = (0, 0), np.inf
    for first in turns:
        for second in turns:
            if second < first:
                continue
            between = _squared_error(means[first:second], sizes[first:second], rises=True)
            if before[first] + between + after[second] < errors:
                best, errors = (first, second), before[first] + between + after[second]
    first, second = (int(edges[turn]) for turn in best)
    pieces = [
        _isotonic(sides[:first], None, rises=False),
        _isotonic(sides[first:second], None, rises=True),
        _isotonic(sides[second:], None, rises=False),
    ]
    return np.concatenate(pieces)


def _squared_error(means: FloatArray, sizes: FloatArray, *, rises: bool) -> float:
    """Squared error of blocks by a fit that rises, or falls."""
    return float((sizes * (means - _isotonic(means, sizes, rises=rises)) ** 2).sum())


def _isotonic(values: FloatArray, weights: FloatArray | None, *, rises: bool) -> FloatArray:
    """The nearest values that rise, or fall."""
    from scipy.optimize import isotonic_regression  # here, since it is slow to load

    if not values.size:
        return values
    return np.asarray(isotonic_regression(values, weights=weights, increasing=rises).x)


def mean_ranks(values: FloatArray) -> FloatArray:
    """Rank of each value from 1 on, the smallest first, shape (n,); equal values share their mean
    rank.

    That of ``scipy.stats``, which takes longer to load than an audit of scores to compute.

    >>> mean_ranks(np.array([3.0, 1.0, 3.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[places]
