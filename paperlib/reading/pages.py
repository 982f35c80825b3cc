"""The pages of a column of a Parquet file, by the header of each.

The metadata at the end of a file tell how large its columns are, and may lie. A reader goes by the
headers of the pages: so many bytes does it set aside. They are in Thrift's compact form, of which
this reads numbers and structures and passes over the rest.

Source: the Thrift definition of the format, https://github.com/apache/parquet-format.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol, cast, overload


class Bytes(Protocol):
    """Bytes of a file, in memory or mapped into it."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, place: int, /) -> int: ...
    @overload
    def __getitem__(self, place: slice, /) -> bytes: ...


class Page(NamedTuple):
    """What the header of a page says of it."""

    size: int  # bytes when unpacked
    values: int  # number of them; 0 for a dictionary


_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3  # kinds of pages
_KIND, _UNPACKED_SIZE, _PACKED_SIZE = 1, 2, 3  # fields of a page's header
_HEADER_OF = {_DATA: 5, _DATA_V2: 8}  # the field that counts the values of a page of data
_VALUES = 1  # its field

_BYTE, _DOUBLE, _TEXT, _LIST, _SET, _STRUCT = 3, 7, 8, 9, 10, 12  # types of a field
_TRUTH = (1, 2)
_WHOLE = (4, 5, 6)
_DEEPEST = 8  # structures within structures; a header has three


def pages(data: Bytes, start: int, end: int, values: int) -> Iterator[Page]:
    """The pages of a stored column, up to the last of its values, as a reader goes through them.

    Args:
        data: The file.
        start, end: Where the first page begins, and the last one ends.
        values: Of all pages.

    Raises:
        ValueError: The pages hold fewer values, or a header cannot be read.
    """
    if not 0 <= start <= end <= len(data):
        raise ValueError("its pages are not within the file")
    held = 0
    while held < values:
        if start >= end:
            raise ValueError(f"its pages hold {held:,} values, and its metadata say {values:,}")
        header = _Header(data, start)
        page = header.page()
        yield page
        held += page.values
        start = header.place + header.packed_size


class _Header:
    """Reads the header of one page.

    Attributes:
        place: Where reading goes on; after `page` the first byte of its content.
        packed_size: Bytes of that content in the file; known after `page`.
    """

    def __init__(self, data: Bytes, place: int):
        self._data = data
        self.place = place
        self.packed_size = 0

    def page(self) -> Page:
        """The page that the header describes; a ValueError for what is no header."""
        try:
            fields = self._struct(_DEEPEST)
            kind, size, self.packed_size = (
                _number(fields, name) for name in (_KIND, _UNPACKED_SIZE, _PACKED_SIZE)
            )
            values = 0
            if kind in _HEADER_OF:
                values = _number(fields[_HEADER_OF[kind]], _VALUES)
        except (IndexError, KeyError, TypeError):
            raise ValueError("a page of it has no readable header") from None
        if min(size, self.packed_size, values) < 0:
            raise ValueError("a page of it has a negative size")
        return Page(size, values)

    def _byte(self) -> int:
        self.place += 1
        return self._data[self.place - 1]

    def _unsigned(self) -> int:
        """A whole number, seven bits in each byte, the lowest first."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise IndexError  # longer than 64 bits

    def _signed(self) -> int:
        """A whole number of either sign, as 0, -1, 1, -2, ... are stored as 0, 1, 2, 3, ..."""
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)

    def _struct(self, deepest: int) -> dict[int, object]:
        """The fields of a structure by their numbers: whole numbers and structures alone.

        ``deepest`` is how many structures may stand within each other from here on; an IndexError
        for more, and for data that end too early.
        """
        fields: dict[int, object] = {}
        number = 0  # of the field
        while head := self._byte():  # a byte of 0 ends the structure
            # The high half says by how much the field's number rises, or 0 where it follows; the
            # low half is the field's type.
            rise = head >> 4
            number = number + rise if rise else self._signed()
            value = self._value(head & 0x0F, deepest)
            if value is not None:
                fields[number] = value
        return fields

    def _value(self, kind: int, deepest: int) -> object:
        """A value of the type ``kind``; None for one that no caller needs, which is passed over. An
        IndexError for another type, or structures deeper than ``deepest``.
        """
        if not deepest:
            raise IndexError
        if kind in _WHOLE:
            return self._signed()
        if kind == _STRUCT:
            return self._struct(deepest - 1)
        if kind in (_LIST, _SET):
            self._pass_list(deepest)
        elif kind == _TEXT:
            length = self._unsigned()
            self.place += length
        elif kind in (_BYTE, _DOUBLE):
            self.place += 1 if kind == _BYTE else 8
        elif kind not in _TRUTH:  # the type itself says true or false
            raise IndexError
        return None

    def _pass_list(self, deepest: int) -> None:
        """Pass over a list of Thrift's compact protocol; an IndexError where it leaves the data.

        Its first byte holds the number of items, or 15 where the number follows, and their kind.
        """
        head = self._byte()
        count = head >> 4
        if count == 0x0F:
            count = self._unsigned()
        kind = head & 0x0F
        for _ in range(count):
            if kind in _TRUTH:  # in a list each has a byte
                self._byte()
            else:
                self._value(kind, deepest - 1)
            if self.place > len(self._data):
                raise IndexError


def _number(fields: object, name: int) -> int:
    """A field that is a whole number; a KeyError or TypeError without it."""
    value = cast(dict[int, object], fields)[name]
    if not isinstance(value, int):
        raise TypeError
    return value
