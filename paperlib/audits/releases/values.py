"""Columns of text by what they mean: dates, times of day and numbers, of one type in all tables."""

import re
import unicodedata
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.tseries.api import guess_datetime_format

from paperlib.reading.columns import MISSING

Column = pd.Series  # of one table
Reader = Callable[["Column[Any]"], "list[ColumnReading]"]
"""From a column to its readings as dates, say; none where it holds something else."""

_FIRST = 6  # values that show whether a column holds dates
_SAMPLE = 50  # values from which their forms are guessed
_WORDS = 20  # one in so many values may be a word, such as "unknown", and is then missing
_FROM_TYPE = "the type of the column"
_ISO_FORM = "ISO8601"
_SHORT_YEAR = re.compile(r"(\d{1,2}([./-])\d{1,2}\2)(\d\d)(?!\d)")
_CLOCK = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p")
_MEASURE = re.compile(
    r"(?P<before>[^\w+\-.,]*)"
    r"(?P<digits>[+-]?[.,]?\d(?:[\d.,'\u2019\s]*\d)?(?:[eE][+-]?\d+)?)"
    r"(?P<after>\D*)"
)
_CODE = re.compile(r"[+-]?0\d")  # whose zeros count
# What stands between thousands, and before the fraction.
_MARKS = ((",", "."), (".", ","), (" ", "."), (" ", ","), ("'", "."), ("", "."), ("", ","))


@dataclass(frozen=True, eq=False)
class ColumnReading:
    """A column in one of the ways in which it can be read."""

    form: str  #: how its cells are written
    values: "Column[Any]"  #: one for each cell; missing for a word, and for a missing cell


class Unclear(NamedTuple):
    """A column that can be read in several ways, and the forms in which its tables are read."""

    column: str
    forms: tuple[str, ...]


def read_values(
    tables: Mapping[str, pd.DataFrame],
) -> tuple[dict[str, pd.DataFrame], tuple[Unclear, ...]]:
    """The tables, whose columns of dates, times and numbers that are text are read as what they
    mean; and the columns that can be read in several ways.

    A column is read where every table can be read alike, each in its own form: `2021-03-04` is
    `04/03/2021` in another. The whole column decides which number is the day and which mark is that
    of thousands, never a single cell. All tables have the same columns.
    """
    read = {name: table.copy() for name, table in tables.items()}
    first = next(iter(read.values()))
    unclear: list[Unclear] = []
    for column in first:
        cells = [table[column] for table in read.values()]
        if not any(map(_is_text, cells)):
            continue
        readings = _common_readings(cells)
        if readings is None:
            continue
        chosen, is_clear = _chosen(readings)
        for table, reading in zip(read.values(), chosen, strict=True):
            table[column] = reading.values
        if not is_clear:
            forms = tuple(dict.fromkeys(reading.form for reading in chosen))
            unclear.append(Unclear(str(column), forms))
    return read, tuple(unclear)


def _is_text(cells: "Column[Any]") -> bool:
    """Whether a column holds text, or nothing that has a type."""
    return cells.dtype.kind not in "biufmM"


def _common_readings(cells: Sequence["Column[Any]"]) -> list[list[ColumnReading]] | None:
    """The readings of a column, ``cells`` of each table, by the first reader that can read it in
    all of them; None where there is no such reader.
    """
    readers: tuple[Reader, ...] = (_dates, _times_of_day, _numbers)
    for reader in readers:
        readings = [reader(column) for column in cells]
        if all(readings):
            return readings
    return None


def _chosen(readings: Sequence[list[ColumnReading]]) -> tuple[list[ColumnReading], bool]:
    """One reading of the column in each table: in a form that all share, else the one that shares
    most values with the tables that can be read in one way only; and whether no table was left
    that could be read otherwise.
    """
    shared = _in_shared_form(readings)
    if shared is not None:
        return shared, True
    certain = [others[0].values for others in readings if len(others) == 1]
    values = pd.concat(certain).dropna() if certain else pd.Series(dtype=object)
    return [_sharing_most(others, values) for others in readings], len(certain) == len(readings)


def _in_shared_form(readings: Sequence[list[ColumnReading]]) -> list[ColumnReading] | None:
    """The readings of all tables in the first form that all can have; None where there is none."""
    for reading in readings[0]:
        alike = [_of_form(others, reading.form) for others in readings]
        present = [other for other in alike if other is not None]
        if len(present) == len(readings):
            return present
    return None


def _sharing_most(readings: Sequence[ColumnReading], values: "Column[Any]") -> ColumnReading:
    """The reading of whose cells the largest share is among these values, the first of several."""
    return max(readings, key=lambda reading: float(reading.values.isin(values).mean()))


def _of_form(readings: Sequence[ColumnReading], form: str) -> ColumnReading | None:
    """The reading of this form, if there is one."""
    return next((reading for reading in readings if reading.form == form), None)


def _present(cells: "Column[Any]") -> "Column[Any]":
    """The different values of a column of text, without those that mean that one is missing."""
    distinct = pd.Series(sorted(cells.dropna().unique()), dtype=object)
    return distinct[~distinct.isin(list(MISSING))].reset_index(drop=True)


def _best(cells: "Column[Any]", candidates: Mapping[str, "Column[Any]"]) -> list[ColumnReading]:
    """The readings of a column that leave the fewest of its different values unread, as words; none
    where even they leave too many. Of readings that give the same values the first is kept.

    Args:
        cells: The column, as text.
        candidates: By form, what each different value means, with these values as the index;
            missing for a word.
    """
    unread = {form: int(values.isna().sum()) for form, values in candidates.items()}
    fewest = min(unread.values(), default=0)
    readings: list[ColumnReading] = []
    for form, values in candidates.items():
        # A twentieth of the values may be words, or one of a few, but never half.
        is_poor = fewest > max(1, len(values) // _WORDS) or 2 * fewest >= len(values)
        if unread[form] > fewest or is_poor:
            continue
        reading = ColumnReading(form, cells.map(values))
        if not any(reading.values.equals(other.values) for other in readings):
            readings.append(reading)
    return readings


# ---------------------------------------------------------------- dates and times


def _dates(cells: "Column[Any]") -> list[ColumnReading]:
    """The readings of a column as dates, with or without a time; those with a zone in UTC; none
    where it holds no dates.
    """
    if cells.dtype.kind == "M":
        return [ColumnReading(_FROM_TYPE, cells)]
    if not _is_text(cells):
        return []
    distinct = _present(cells)
    forms = _date_forms(distinct)
    if not forms:
        return []
    parsed = {form: _parsed(distinct, form) for form in forms}
    candidates: dict[str, Column[Any]] = {}
    # Of forms that read as many values the first is taken: both orders, since day and month may be
    # exchanged.
    for order in (forms, forms[::-1]):
        used, values = _filled(parsed, order)
        candidates[" and ".join(used)] = values
    return _best(cells, candidates)


def _times_of_day(cells: "Column[Any]") -> list[ColumnReading]:
    """The readings of a column as times of a day."""
    if not _is_text(cells):
        return []
    distinct = _present(cells)
    return _best(cells, {form: _parsed(distinct, form) for form in _CLOCK})


def _parsed(distinct: "Column[Any]", form: str) -> "Column[Any]":
    """The date or time of each value in a form of pandas, by the value; missing where it has
    another form.
    """
    text = distinct.where(distinct.map(_is_iso)) if form == _ISO_FORM else distinct
    dates = pd.to_datetime(text, format=form, errors="coerce", utc=True)
    return pd.Series(dates.dt.tz_localize(None).to_numpy(), index=distinct.to_numpy())


def _is_iso(text: str) -> bool:
    """Whether a text is a whole date of ISO 8601, perhaps with a time."""
    return re.fullmatch(r"\d{4}-\d\d-\d\d(?:[T ].*)?", text) is not None


def _filled(
    parsed: Mapping[str, "Column[Any]"], order: Sequence[str]
) -> tuple[list[str], "Column[Any]"]:
    """The forms that were used, and the values: in the form that reads most of them, what it leaves
    open in the form that reads most of that, and so on.

    Args:
        parsed: By form, the date of each different value; missing where it has another form.
        order: All forms; of those that read as many values the first is taken.
    """
    used: list[str] = []
    values = pd.Series(pd.NaT, index=parsed[order[0]].index)
    for _ in order:
        is_open = values.isna()
        counts = {form: int((parsed[form].notna() & is_open).sum()) for form in order}
        best = max(order, key=counts.__getitem__)
        if not counts[best]:
            break
        values = parsed[best] if is_open.all() else values.where(~is_open, parsed[best])
        used.append(best)
    return used, values


def _date_forms(distinct: "Column[Any]") -> list[str]:
    """The forms of dates, such as "%d.%m.%Y", that pandas finds in a sample of sorted values, with
    either order of day and month; none where no ISO date is there and a few values are no dates.
    """
    forms = [_ISO_FORM] if distinct.map(_is_iso).any() else []
    if not forms and not _guessed_forms(_spread(distinct, _FIRST)):
        return []
    return list(dict.fromkeys([*forms, *_guessed_forms(_spread(distinct, _SAMPLE))]))


def _spread(distinct: "Column[Any]", count: int) -> list[str]:
    """So many values of a sorted column, or up to twice as many, from its beginning to its end."""
    return distinct[:: max(1, len(distinct) // count)].tolist()


def _guessed_forms(texts: Sequence[str]) -> list[str]:
    """The forms of these texts, with either order of day and month."""
    forms: list[str] = []
    for text in texts:
        for day_first in (False, True):
            form = _guessed_form(text, day_first)
            if form is not None:
                forms.append(form)
    return forms


def _guessed_form(text: str, day_first: bool) -> str | None:
    """The form of one date, such as "%d/%m/%Y"; None of a text that is no date, has no year or no
    month, or a day right after its year. ``day_first`` decides what 01/02/2021 is.
    """
    longer = _SHORT_YEAR.sub(r"\g<1>20\3", text)  # pandas knows years of four digits
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an order of day and month that does not fit
        form = guess_datetime_format(longer, dayfirst=day_first)
    if form is None or not re.search("%Y", form) or not re.search("%[mbB]", form):
        return None
    if re.search("%Y.?%d", form):  # a year in front is followed by the month
        return None
    return form if longer == text else form.replace("%Y", "%y")


# ---------------------------------------------------------------- numbers


def _numbers(cells: "Column[Any]") -> list[ColumnReading]:
    """The readings of a column as numbers, which may have one unit and marks between thousands;
    none where it holds other text, several units, or codes such as 007.
    """
    if cells.dtype.kind in "iuf":
        return [ColumnReading(_FROM_TYPE, cells)]
    if not _is_text(cells):
        return []
    distinct = _present(cells)
    measures = {text: _digits_and_unit(text) for text in distinct.tolist()}
    digits = {text: measure[0] for text, measure in measures.items() if measure is not None}
    units = {measure[1] for measure in measures.values() if measure is not None}
    if len(units) != 1 or any(map(_CODE.match, digits.values())):
        return []
    candidates: dict[str, Column[Any]] = {}
    for thousands, fraction in _MARKS:
        numbers = [_number(digits.get(text, ""), thousands, fraction) for text in measures]
        form = f"1{thousands}234{fraction}5 {min(units)}".strip()
        candidates[form] = pd.Series(numbers, index=list(measures), dtype=np.float64)
    return _best(cells, candidates)


def _digits_and_unit(text: str) -> tuple[str, str] | None:
    """The digits of a number with their marks, spaces in one spelling, and its unit; None of other
    text.
    """
    measure = _MEASURE.fullmatch(text.strip())
    if measure is None:
        return None
    digits = re.sub(r"\s", " ", measure["digits"]).replace("\u2019", "'")
    unit = unicodedata.normalize("NFKC", measure["before"] + measure["after"])
    return digits, " ".join(unit.split())


def _number(digits: str, thousands: str, fraction: str) -> float:
    """The number that digits mean where ``thousands`` stands between groups of three, or is empty,
    and ``fraction`` before the decimals; NaN where they do not fit.
    """
    grouped = rf"\d{{1,3}}(?:{re.escape(thousands)}\d{{3}})+" if thousands else r"\d+"
    whole = rf"(?:\d+|{grouped})"
    pattern = rf"[+-]?(?:{whole}(?:{re.escape(fraction)}\d*)?|{re.escape(fraction)}\d+)"
    if re.fullmatch(rf"{pattern}(?:[eE][+-]?\d+)?", digits) is None:
        return np.nan
    plain = digits.replace(thousands, "") if thousands else digits
    return float(plain.replace(fraction, "."))
