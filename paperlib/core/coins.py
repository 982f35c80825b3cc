"""Fair coins that decide before training which records a model is trained on, and the sealed file
of them.
"""

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from os import PathLike
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from paperlib.core.checks import (
    FloatArray,
    as_rows,
    check_at_least,
    check_choice,
    check_in,
    check_no_nan,
    unit_means,
)
from paperlib.core.column_names import check_features
from paperlib.core.scores import MembershipScores
from paperlib.core.sealed import sealed_hash, sealed_text

_FORMAT, _VERSION = "paperlib coins", 1
_FIELDS = ("sealed", "column", "unit", "records", "seed", "salt")


def toss_coins(
    ids: int | Iterable[Any],
    *,
    seed: int | None = None,
    fraction: float = 1.0,
    unit: str = "",
    column: str = "",
    copies: int = 0,
) -> "Coins":
    """Toss one fair coin for each record, before training: heads is trained on, tails is left out.

    Guarantee:
        The coins are fair and independent of each other, of the ids and of the choice of a
        ``fraction``.

    Args:
        ids: Name of each record, or a number of records, which are then "0", "1", ...
        seed: None for the randomness of the operating system. A seed makes tests and tutorials
            repeatable; whoever knows it knows the coins.
        fraction: Share of the records that get a coin, in (0, 1]; all others are trained on.
            Exactly round(fraction * n) are drawn, each set of so many alike, without a look at the
            coins: given the set they are fair coins, which is all that an audit needs.
        unit: What has the coin where ids repeat, such as "user": all rows of one id share it.
        column: Name of the column of ids, which is looked for in files of scores.
        copies: Where the records are canaries, made for the audit: how often each with heads is put
            into the training data, as every claim then says. 0 for records of the data.

    Raises:
        ValueError: No record, an empty id, an id that repeats without ``unit``, a fraction that
            leaves none.

    >>> data = np.arange(10.0)
    >>> coins = toss_coins(len(data), seed=0)
    >>> data[coins.training(range(10))]
    array([0., 1., 3., 4., 6., 7., 8., 9.])
    """
    check_in("(0, 1]", "fraction", fraction)
    check_at_least(0, copies=copies)
    names = _names(range(int(ids)) if isinstance(ids, int | np.integer) else ids)
    distinct = list(dict.fromkeys(names))
    if len(distinct) < len(names) and not unit:
        raise ValueError(
            f"ids: {len(names):,} records have {len(distinct):,} ids; two rows of one record must "
            "share a coin: keep one row of each, or say what has the coin with --unit COLUMN (in "
            "Python unit=)"
        )
    count = round(fraction * len(distinct))
    if not count:
        raise ValueError(f"fraction: {fraction:g} of {len(distinct)} records is none; give more")
    size = 8 * len(distinct)
    drawn = secrets.token_bytes(size) if seed is None else np.random.default_rng(seed).bytes(size)
    words = np.frombuffer(drawn, dtype="<u8")
    # The lowest bit of a word is the coin, the 63 others order the records: neither tells of the
    # other.
    drawn_rows = np.sort(np.argsort(words >> np.uint64(1), kind="stable")[:count])
    return Coins(
        ids=tuple(np.array(distinct, dtype=object)[drawn_rows].tolist()),
        included=(words[drawn_rows] & np.uint64(1)).astype(bool),
        unit=unit,
        column=column or unit or "id",
        records=len(distinct),
        seed=seed,
        copies=copies,
    )


def toss_pairs(
    ids: int | Iterable[Any],
    *,
    alike: Iterable[Any] | None = None,
    seed: int | None = None,
    fraction: float = 1.0,
    column: str = "",
) -> "Coins":
    """Toss one fair coin for each pair of records, before training: one of the two is trained on
    and later forgotten, the other one is never seen.

    Guarantee:
        The coins are fair and independent of each other, and of which records are pairs.

    Args:
        ids: Name of each record, each once, or a number of records.
        alike: What the two records of a pair have in common, such as their class: a value for each
            record. Of values with an odd number of records one has no coin. None pairs any two.
        seed: None for the randomness of the operating system; whoever knows a seed knows the coins.
        column: Name of the column of ids, which is looked for in files of scores.
        fraction: Share of the records that are in pairs, in (0, 1]; all others are trained on and
            stay.

    Raises:
        ValueError: An id that repeats or is empty, no pair, or another number of values of
            ``alike``.

    >>> coins = toss_pairs(8, seed=0, fraction=0.5)
    >>> len(coins.ids), int(coins.forgotten(range(8)).sum()), int(coins.training(range(8)).sum())
    (4, 2, 6)
    """
    check_in("(0, 1]", "fraction", fraction)
    names = _names(range(int(ids)) if isinstance(ids, int | np.integer) else ids)
    if len(set(names)) < len(names):
        raise ValueError(
            f"ids: {len(names):,} records have {len(set(names)):,} ids; each needs one"
        )
    values = [""] * len(names) if alike is None else list(map(_name, alike))
    if len(values) != len(names):
        raise ValueError(f"alike: expected a value for each of {len(names)} records")
    size = 8 * len(names)
    drawn = secrets.token_bytes(size) if seed is None else np.random.default_rng(seed).bytes(size)
    words = np.frombuffer(drawn, dtype="<u8")
    # As for single records: the lowest bit is the coin, the 63 others order the records.
    pairs = _pairs_in_order(np.argsort(words >> np.uint64(1), kind="stable"), values)
    count = min(round(fraction * len(names) / 2), len(pairs))
    if not count:
        raise ValueError(f"fraction: {fraction:g} of {len(names)} records hold no pair; give more")
    first = pairs[:count, 0]
    first_included = (words[first] & np.uint64(1)).astype(bool)
    return Coins(
        ids=tuple(np.array(names, dtype=object)[pairs[:count].ravel()].tolist()),
        included=np.column_stack([first_included, ~first_included]).ravel(),
        unit="",
        column=column or "id",
        records=len(names),
        seed=seed,
        forget=True,
    )


def toss_versions(
    versions: Sequence[Sequence[Any]], *, seed: int | None = None, column: str = ""
) -> "Coins":
    """Draw one of the versions of each text, which is published; the others are sealed.

    Guarantee:
        Each version of a text is drawn with the same probability, independently of the versions and
        of the other texts.

    Args:
        versions: Names of the versions of each text, each name once; every text has as many, at
            least 2.
        seed: None for the randomness of the operating system; whoever knows a seed knows the draws.
        column: Name of the column of ids, which is looked for in files of scores.

    Raises:
        ValueError: No text, a text with another number of versions, or a name that repeats or is
            empty.

    >>> toss_versions([["a1", "a2"], ["b1", "b2"]], seed=0).included.tolist()
    [False, True, False, True]
    """
    names = _names([name for text in versions for name in text])
    each = len(versions[0])
    if each < 2 or any(len(text) != each for text in versions):
        raise ValueError("versions: expected as many of each text, at least 2")
    if len(set(names)) < len(names):
        raise ValueError(f"versions: {len(names) - len(set(names)):,} names stand there twice")
    if seed is None:
        drawn = np.array([secrets.randbelow(each) for _ in versions])
    else:
        drawn = np.random.default_rng(seed).integers(each, size=len(versions))
    return Coins(
        ids=tuple(names),
        included=(np.arange(each) == drawn[:, None]).ravel(),
        unit="",
        column=column or "id",
        records=len(versions),
        seed=seed,
        versions=each,
    )


def _pairs_in_order(order: NDArray[np.int64], values: Sequence[str]) -> NDArray[np.int64]:
    """Numbers of the two rows of each pair, shape (pairs, 2): rows of equal value, each with the
    next in the ``order`` of row numbers; a last one without another is left out.
    """
    waiting: dict[str, int] = {}  # by value, the row that has no other yet
    pairs: list[tuple[int, int]] = []
    rows: list[int] = order.tolist()
    for row in rows:
        other = waiting.pop(values[row], None)
        if other is None:
            waiting[values[row]] = row
        else:
            pairs.append((other, row))
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


@dataclass(frozen=True, kw_only=True, eq=False)
class Coins:
    """Records with a coin and how each fell, as `toss_coins` makes them; scores are joined to them
    by id.

    Attributes:
        ids: Record with a coin, in the order in which they were given; shape (n,).
        included: True where the coin says that the record is trained on; shape (n,).
        unit: What has the coin where it is not a row, such as "user"; else empty.
        column: Name of the column of ids.
        records: Records, or units, that the coins were drawn among; those without a coin are
            trained on.
        seed: Seed of the coins; None for the randomness of the operating system.
        sealed: Day of the toss (UTC).
        salt: Random text without which the commitment tells nothing.
        copies: Where the records are canaries, how often each with heads is in the training data;
            else 0.
        forget: Whether the ids are pairs, one after the other, of which the included record is
            trained on and later forgotten.
        versions: For texts with a mark, how many versions each has, one after the other among the
            ids, of which the included one is published; else 0.
    """

    ids: tuple[str, ...]
    included: NDArray[np.bool_]
    unit: str
    column: str
    records: int
    seed: int | None
    sealed: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())
    salt: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)
    copies: int = 0
    forget: bool = False
    versions: int = 0

    def __post_init__(self) -> None:
        """Refuse (ValueError) coins that do not publish one version of each text, or that treat
        both records of a pair alike, and make their array read-only.
        """
        self.included.flags.writeable = False
        if self.versions and (
            len(self.included) % self.versions
            or (self.included.reshape(-1, self.versions).sum(axis=1) != 1).any()
        ):
            raise ValueError("coins: of each text one version is published, and no other")
        if self.forget and (
            len(self.included) % 2 or (self.included[::2] == self.included[1::2]).any()
        ):
            raise ValueError("coins: of each pair one record is trained on, and one is not")

    def __repr__(self) -> str:
        return (
            f"Coins({len(self.ids)} of {self.records} records, {int(self.included.sum())} included)"
        )

    @cached_property
    def commitment(self) -> str:
        """SHA-256 of the coins with ids and salt: published before training, it shows that no coin
        moved.
        """
        return sealed_hash(self.text)

    @property
    def seal(self) -> str:
        """What a report says of the coins in one line: how many, of what, when sealed, the hash."""
        what = "canaries" if self.copies else "records"
        if self.unit:
            what = f"units of {self.unit!r}"
        number = len(self.ids)
        if self.forget:
            number //= 2
            what = "records, a coin for each pair of those that are scored"
        if self.versions:
            number = self.records
            what = f"texts, each with {self.versions} versions"
        return (
            f"{number:,} coins for {self.records:,} {what}, sealed on {self.sealed}, "
            f"SHA-256 {self.commitment}"
        )

    def check_alone(self, design: str, unit: object) -> None:
        """Refuse (ValueError) the options ``design`` and ``unit``, unless left at "randomized" and
        None, since the coins answer them; and an audit of single records by coins of pairs or of
        versions.
        """
        if self.forget:
            raise ValueError(
                "coins: they say which record of each pair is forgotten; `paperlib audit`, in "
                "Python audit(..., coins=), judges that"
            )
        if self.versions:
            raise ValueError(
                "coins: they say which version of each text was published; `paperlib audit-marks`, "
                "in Python audit_marks, judges that"
            )
        if design != "randomized" or unit is not None:
            raise ValueError(
                "coins: they say that the design is randomized and what a unit is; give neither"
            )

    def training(self, ids: Iterable[Any]) -> NDArray[np.bool_]:
        """Which rows of the data to train on: those of an included id, and of ids without a coin;
        shape (n,).

        Raises:
            ValueError: A record with a coin is not among the ids, so that these are other data.
        """
        names = _names(ids)
        coins = zip(self.ids, self.included, strict=True)
        left_out = {name for name, included in coins if not included}
        self._check_all_there(names)
        return np.array([name not in left_out for name in names])

    def forgotten(self, ids: Iterable[Any]) -> NDArray[np.bool_]:
        """Which rows of the data to forget after training; shape (n,).

        Raises:
            ValueError: The coins are not those of pairs, or a record with a coin is not among the
                ids.
        """
        if not self.forget:
            raise ValueError("coins: nothing is forgotten by them; toss those of toss_pairs")
        names = _names(ids)
        self._check_all_there(names)
        coins = zip(self.ids, self.included, strict=True)
        forgotten = {name for name, included in coins if included}
        return np.array([name in forgotten for name in names])

    def join(self, ids: Iterable[Any], values: Any) -> FloatArray:
        """One value, or row of values, per coin, in the order of ``self.ids``: the mean of those of
        a unit.

        Args:
            ids: Name of each value, in any order.
            values: Numbers, shape (n,) or (n, d); infinite ones are kept, NaN is refused.

        Raises:
            ValueError: An id without a coin, a coin without a value, NaN, two values of one id
                without a unit, or a unit with values of inf and of -inf.

        >>> toss_coins(["a", "b"], seed=0).join(["b", "a"], [1.0, 2.0])
        array([2., 1.])
        """
        names = _names(ids)
        numbers = as_rows("values", values)
        if len(names) != len(numbers):
            raise ValueError(
                f"ids: expected one of each for {len(numbers)} values, got {len(names)}"
            )
        check_no_nan("values", numbers.ravel())
        places = self.places(names)
        if self.unit:
            order = np.argsort(places, kind="stable")
            return unit_means(numbers[order], places[order].tolist())[0]
        first = np.unique(places, return_index=True)[1]  # row of each coin's first value
        # Rows whose value is not that of the first row of their coin.
        other = (numbers != numbers[first][places]).reshape(len(names), -1).any(axis=1)
        if other.any():
            example = names[int(np.flatnonzero(other)[0])]
            raise ValueError(
                f"{int(other.sum()):,} values are a second, different one of their id, such as "
                f"{example!r}; keep one row of each"
            )
        return numbers[first]

    def scores(self, by_id: Any, *, kind: str) -> MembershipScores:
        """Scores of all records with a coin, whose membership the coins tell.

        Args:
            by_id: One score for each id: a mapping, or a DataFrame with the column of ids and one
                of scores.
            kind: "scores" if higher means member, "losses" if lower does.

        Raises:
            ValueError: An id without a coin, a coin without a score, NaN, two scores of one id
                without a unit, or a DataFrame with other columns.

        >>> losses = {"c": 0.1, "b": 0.2, "a": 0.3}
        >>> toss_coins(["a", "b", "c"], seed=2).scores(losses, kind="losses")
        MembershipScores(1 members, 2 non-members, lower means member)
        """
        check_choice("kind", kind, ("scores", "losses"))
        values = self.values(by_id)
        if values.ndim != 1:
            raise ValueError("by_id: expected one score for each id; leave the other columns out")
        return MembershipScores.from_labels(
            values, self.included, higher_means_member=kind == "scores"
        )

    def values(self, by_id: Any) -> FloatArray:
        """One value, or row of values, per coin, as `join` gives them.

        Args:
            by_id: A mapping from ids to numbers, or a DataFrame with the column of ids, named as in
                the coins, and others of numbers.

        Returns:
            Shape (n,) for one column of numbers, else (n, d), in the order of ``self.ids``.

        Raises:
            ValueError: An id without a coin, a coin without a value, NaN, two values of one id
                without a unit, or a DataFrame without the column of ids.
        """
        if isinstance(by_id, Mapping):
            mapping = cast(Mapping[Any, Any], by_id)
            return self.join(mapping, list(mapping.values()))
        columns = [str(name) for name in getattr(by_id, "columns", ())]
        if self.column not in columns:
            raise ValueError(
                f"by_id: expected a mapping from ids or a DataFrame with column {self.column!r}"
            )
        others = by_id.drop(columns=self.column)
        check_features("by_id", others.columns)
        rows = as_rows("by_id", others)
        return self.join(by_id[self.column], rows[:, 0] if rows.shape[1] == 1 else rows)

    def places(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Position among ``self.ids`` of each name, shape (names,).

        Raises:
            ValueError: A name without a coin, or a coin whose id is not among the names.
        """
        index_of = {name: index for index, name in enumerate(self.ids)}
        unknown = list(dict.fromkeys(name for name in names if name not in index_of))
        if unknown:
            raise ValueError(
                f"{len(unknown):,} of {len(set(names)):,} ids have no coin, such as "
                f"{unknown[0]!r}; give the coins file of these data, and only the "
                f"{len(self.ids):,} records that have a coin"
            )
        self._check_all_there(names)
        return np.array([index_of[name] for name in names], dtype=np.int64)

    def _check_all_there(self, names: Iterable[str]) -> None:
        """Refuse (ValueError) names among which a record with a coin is missing."""
        present = set(names)
        absent = [name for name in self.ids if name not in present]
        if absent:
            raise ValueError(
                f"{len(absent):,} of {len(self.ids):,} records with a coin are missing, such as "
                f"{absent[0]!r}; an audit that chooses among its coins is not valid: bring all of "
                "them"
            )

    @property
    def text(self) -> str:
        """Ids, coins and salt as the text that the hash is of."""
        return sealed_text(self._content())

    def _content(self) -> dict[str, Any]:
        """The fields of the sealed file by name, but for the hash; those of other kinds of coins
        are left out, as files of earlier versions have none.
        """
        content: dict[str, Any] = {
            "format": _FORMAT,
            "version": _VERSION,
            "ids": list(self.ids),
            "coins": "".join("1" if heads else "0" for heads in self.included.tolist()),
        }
        for name in _FIELDS:
            content[name] = getattr(self, name)
        if self.copies:  # files of coins for records of the data have no such field
            content["copies"] = self.copies
        if self.forget:
            content["forget"] = True
        if self.versions:
            content["versions"] = self.versions
        return content

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the sealed file, which only its owner can read; a ValueError where a file is
        there.
        """
        from paperlib.reading.sealed import write_sealed  # the room of files, above this one

        write_sealed(path, self._content())

    @classmethod
    def load(cls, path: "str | PathLike[str] | Mapping[str, Any]") -> "Coins":
        """Read a sealed file, or its JSON as a mapping.

        Raises:
            ValueError: It is no coins file, of a later version, or its hash is not that of its
                content.
        """
        from paperlib.reading.sealed import read_sealed  # the room of files, above this one

        values = read_sealed(
            path, _FORMAT, _VERSION, by="`paperlib coins` and toss_coins(...).save"
        )
        return cls(
            ids=tuple(values["ids"]),
            included=np.array([coin == "1" for coin in values["coins"]]),
            copies=values.get("copies", 0),
            forget=bool(values.get("forget", False)),
            versions=values.get("versions", 0),
            **{name: values[name] for name in _FIELDS},
        )


def _names(ids: Iterable[Any]) -> list[str]:
    """Ids as text, in their order; a ValueError for what is no list, for none, for an empty id, and
    for one mapping under two names.
    """
    if hasattr(ids, "columns") or isinstance(ids, str | bytes | set | frozenset):
        raise ValueError(
            f"ids: expected a list of names, or a table's column, got a {type(ids).__name__}"
        )
    identifiers = list(ids)
    names = list(map(_name, identifiers))
    _check_one_name_each(identifiers, names)
    if not names:
        raise ValueError("ids: there are no records")
    if "" in names:
        raise ValueError(
            f"ids: {names.count('')} are empty (first in row {names.index('') + 1}); fill or "
            "drop these rows"
        )
    return names


def _check_one_name_each(identifiers: Sequence[Any], names: Sequence[str]) -> None:
    """Refuse (ValueError) mappings, such as chats, of one content with keys in two orders.

    Their names would differ, and each would have a coin of its own: copies that give each other
    away. Coins that were sealed hold these names, so that the names stay as they are.
    """
    name_of: dict[str, str] = {}
    for identifier, name in zip(identifiers, names, strict=True):
        if isinstance(identifier, Mapping):
            content = json.dumps(identifier, sort_keys=True, default=str)
            if name_of.setdefault(content, name) != name:
                raise ValueError(
                    f"ids: two records hold the same with keys in another order, such as "
                    f"{name[:60]!r}; keep one of each, or name records by an id"
                )


def _name(identifier: Any) -> str:
    """An id as text; "" for a missing one, such as None or NaN."""
    text = str(identifier)
    is_missing = not isinstance(identifier, str) and text in ("None", "nan", "NaT", "<NA>")
    return "" if is_missing else text
