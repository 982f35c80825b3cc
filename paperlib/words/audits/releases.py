"""What an audit of a release says: of rows that are told apart, of columns and of rates."""

from collections.abc import Sequence

from paperlib.core.facts import Refusal, RefusalCode

TITLE = "Distances to the release"
PURPOSE = "How well distances to the release, beside how isolated a row is, tell who is a member."
"""Title and purpose of the audit."""

THE_PROCEDURE = "The training procedure is all that made the release, with its choices and filters."
"""What a claim speaks of."""

ONE_ROW = "the rates are those of one row of each unit, drawn by the seed"
"""The note on rates where several rows are one record."""

AWAY = (
    "members lie farther from the release than non-members, as after a filter that drops rows near "
    "the training data: that tells of membership too. AUC, rates at few false positives and the "
    "list of exposed records take this direction, which was chosen after looking; the bound pays "
    "for its choice"
)
"""The warning where the direction of the scores was turned."""

RATES_TITLE = "True and phantom disclosures"
RATES_TEXT = (
    "Non-members are the control: what the release seems to tell of them is a phantom, as it never "
    "saw them. What it tells of members beyond that is true disclosure."
)
MEANING = {
    "reproduced": "the release holds the very row",
    "nearly reproduced": "the nearest row of the release is at most half as far as the nearest "
    "other row of the pool",
    "singled out": "of predicates on three columns that hold for one row of the release alone, "
    "those that hold for one row alone, of as many members as non-members",
    "linked": "the columns are dealt to two halves; both have the same row of the release as "
    "nearest",
    "inferred": "of one column, drawn for each row, the row of the release that is nearest in all "
    "others tells the value (numbers: within 5 %)",
}
"""What each rate counts."""

UNLIKE = "unlike those of the records; if they are in another unit or spelling, a leak is missed"
"""The end of a warning about released values."""


def rates_headings(confidence: float) -> tuple[str, ...]:
    """The headings of the table of rates, with intervals at this confidence."""
    sure = f"{100 * confidence:g} %"
    return (
        "Rate",
        f"Members [{sure}]",
        f"Non-members: phantoms [{sure}]",
        f"Excess [{sure}]",
    )


def meaning_of(rate: str) -> str:
    """What a rate counts, behind its name."""
    return f"{rate}: {MEANING[rate]}"


def rates_note(rates: Sequence[str]) -> str:
    """The note below the table of these rates."""
    meanings = "; ".join(map(meaning_of, rates))
    return (
        f"{meanings}. These are measurements of these attacks, each interval for itself; "
        "no bounds on epsilon."
    )


def share_of(hits: int, total: int, rate: str) -> str:
    """A cell of the table: how often an attack held, and the rate with its interval."""
    return f"{hits:,} of {total:,}: {rate}"


def respelled(name: object, gained: int, released: int) -> str:
    """The note that so many released values of a column are those of records in another
    spelling.
    """
    return (
        f"column {name!r}: {gained:,} of {released:,} released values are those of records in "
        "another spelling, and are compared as equal"
    )


def left_out(name: object, shared: int) -> str:
    """The note that a column of keys is left out; ``shared`` records have a value that the release
    has as well.
    """
    common = "the release shares none with the records"
    if shared:
        common = (
            f"the {shared:,} that the release shares with the records stand in rows that are not "
            "alike"
        )
    return (
        f"column {name!r}: its values never repeat, and {common}, as of a key that was drawn anew; "
        "it is left out of all distances and rates"
    )


def key_is_unlike(name: object, example: object) -> str:
    """The warning that a column that is left out may be no key: its form is not that of the
    records.
    """
    return (
        f"column {name!r} is left out: released values, such as {str(example)[:40]}, are {UNLIKE}"
    )


def numbers_rows(name: object) -> str:
    """The warning about a column of running numbers."""
    return f"column {name!r} seems to number the rows, which makes near rows far; leave it out"


def unlike(name: object, example: object) -> str:
    """The warning that released values of a column are unlike those of the records."""
    return f"column {name!r}: released values, such as {str(example)[:40]}, are {UNLIKE}"


def spelled_otherwise(name: object, example: object, equal: int, released: int) -> str:
    """The warning that so many released texts of a column are records in another spelling."""
    return (
        f"column {name!r}: released values, such as {str(example)[:40]}, are in the records but "
        f"for upper case, accents or spaces ({equal:,} of {released:,}); spell both alike to see a "
        "leak"
    )


def read_in_several_ways(column: str, forms: Sequence[str]) -> str:
    """The warning about a column that can be read in several ways; ``forms`` are those chosen."""
    chosen = " and ".join(repr(form) for form in forms)
    return (
        f"column {column!r}: its values can be read in several ways, and are read as {chosen}; if "
        "that is wrong, a leak is missed: write it in one form in all tables"
    )


def written_otherwise(name: object, released: object, record: object) -> str:
    """The warning that hardly a released value of the column ``name`` is written like those of the
    records; ``released`` and ``record`` are an example of each.
    """
    return (
        f"release: column {name!r}: hardly any released value, such as {str(released)[:40]!r}, is "
        f"written like those of the records, such as {str(record)[:40]!r}, so that a leak would be "
        "missed; write both alike, or leave the column out of all tables"
    )


def not_comparable(names: Sequence[str], warning: str) -> Refusal:
    """The refusal where columns of the release cannot be compared with those of the records;
    ``warning`` says why of the first.
    """
    columns = ", ".join(repr(name) for name in names)
    steps = (
        f"write the columns {columns} of all tables in one form and unit",
        "or leave out of all tables those that the generator makes otherwise: the audit then "
        "speaks of the others",
    )
    return Refusal(code=RefusalCode.NOT_COMPARABLE, sentence=warning, steps=steps)
