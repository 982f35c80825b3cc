"""Words of tables in several spellings: compared in the one in which the release knows most of
them.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd
from scipy.stats import binom

Column = pd.Series  # of text
Spelling = Callable[[str], str]

_CHANCE = 1e-6  # of refusing a column of independent rows
_FEW = 0.1  # of the values that independent rows would share: hardly any
_REPEATED = 0.9  # share of values that stand before, above which they are few words
_KEPT = 0.99  # share of different words that a spelling keeps apart
_PHONE = re.compile(r"\+?[\d\s()./-]{7,}")
_SUBSCRIBER = 9  # last digits of a telephone number, which stay without the code of the country


class Spelled(NamedTuple):
    """Released words and those of the records, and how many of the released ones the records have
    only in this spelling.
    """

    released: "Column[Any]"
    records: "Column[Any]"
    gained: int


def letters_of(text: str) -> str:
    """A text without its spaces and accents, in small letters."""
    return re.sub(r"[\s\u0300-\u036f]+", "", unicodedata.normalize("NFKD", text.casefold()))


def _code_of(text: str) -> str:
    """A text without punctuation too, and without zeros in front of numbers."""
    return re.sub(r"(?<!\d)0+(?=\d)", "", re.sub(r"[\W_]+", "", letters_of(text)))


def _telephone_of(text: str) -> str:
    """The last digits of a telephone number; any other text in small letters."""
    if _PHONE.fullmatch(text) is None:
        return letters_of(text)
    return re.sub(r"\D", "", text)[-_SUBSCRIBER:]


def _words_of(text: str) -> str:
    """The words of a text in the order of the alphabet, as of a name in either order."""
    return " ".join(
        sorted(map(letters_of, re.findall(r"\w+", unicodedata.normalize("NFKC", text))))
    )


_SPELLINGS: tuple[Spelling, ...] = (letters_of, _code_of, _telephone_of, _words_of)


def in_one_spelling(released: "Column[Any]", records: "Column[Any]") -> Spelled:
    """The words in the first of the spellings in which most of the released ones are among the
    records: as they are, without accents and spaces, without punctuation, as telephone numbers, or
    with their words in any order. Missing words stay missing.

    A spelling in which more than a hundredth of the records' different words become one with others
    is passed over.

    Args:
        released, records: Text, shapes (n,) and (m,).
    """
    before = int(released.isin(records.dropna()).sum())
    chosen = Spelled(released, records, 0)
    if before == released.notna().sum():
        return chosen  # all are among the records as they are
    different = records.map(letters_of, na_action="ignore").nunique()
    for spelling in _SPELLINGS:
        words = records.map(spelling, na_action="ignore")
        if words.nunique() < _KEPT * different:
            continue
        spelled = released.map(spelling, na_action="ignore")
        gained = int(spelled.isin(words.dropna()).sum()) - before
        if gained > chosen.gained:
            chosen = Spelled(spelled, words, gained)
    return chosen


def are_other_words(released: "Column[Any]", records: "Column[Any]") -> bool:
    """Whether the release writes a column in a form, or in words, that hardly a record has,
    although the records share theirs, so that copies would not be seen in it; no value is missing.
    """
    are_few = records.duplicated().mean() > _REPEATED
    return is_written_otherwise(released, records) or (are_few and _is_strange(released, records))


def is_written_otherwise(released: "Column[Any]", records: "Column[Any]") -> bool:
    """Whether hardly a released text has a form of the records, as one date has that of another, in
    no spelling in which they are compared; no value is missing.
    """
    if not _is_strange(released.map(_shape), records.map(_shape)):
        return False
    forms = ((_telephone_of, _digits_shape), (_words_of, _initials_shape))
    return all(
        _is_strange(_formed(released, spelling, form), _formed(records, spelling, form))
        for spelling, form in forms
    )


def _formed(texts: "Column[Any]", spelling: Spelling, form: Spelling) -> "Column[Any]":
    """The form of each text in a spelling, shape (n,)."""
    return texts.map(spelling).map(form)


def _is_strange(released: "Column[Any]", records: "Column[Any]") -> bool:
    """Whether far fewer released values are among the records than values of one half of the
    records are among the other half: under a tenth of that share, and fewer than chance explains.
    """
    # Members stand in front, so that every second row is of both sides.
    shared = float(records[::2].isin(records[1::2]).mean())
    hits = int(released.isin(records).sum())
    if hits >= _FEW * shared * len(released):
        return False
    return float(binom.cdf(hits, len(released), shared / 2)) < _CHANCE


def _shape(text: str) -> str:
    """The form of a text: a letter for each word of letters, a digit for each number."""
    return re.sub(r"\d+", "0", re.sub(r"[^\W\d_]+", "a", text))


def _digits_shape(text: str) -> str:
    """The form of a text with a 0 for each digit, so that numbers of other lengths differ."""
    return re.sub(r"\d", "0", re.sub(r"[^\W\d_]+", "a", text))


def _initials_shape(text: str) -> str:
    """The form of a text in which letters that stand alone are no words, as in short names."""
    return _shape(re.sub(r"\b[^\W\d_]\b", "_", text))
