"""Text of others as a terminal may show it: what would steer a terminal is shown as its number."""

import io
import unicodedata
from typing import TextIO

_STEERS = ("C", "Zl", "Zp")  # Unicode categories: controls, bidirectional marks, ends of lines


def visible_text(text: object, most: int = 2_000) -> str:
    r"""Text in one line of at most ``most`` characters, in which nothing is hidden.

    Control characters, marks of direction, ends of lines and lone surrogates are shown as their
    numbers; a longer text is cut, and says how many characters are left out.

    >>> print(visible_text("a\x1b[2J\u202eb"))
    a\x1b[2J\u202eb
    >>> visible_text("abcdef", most=3)
    'abc… (3 more characters)'
    """
    whole = str(text)
    left_out = len(whole) - most
    characters = [_visible(character) for character in whole[:most]]
    if left_out > 0:
        characters.append(f"… ({left_out:,} more characters)")
    return "".join(characters)


def visible_lines(text: object, most: int = 2_000) -> str:
    r"""Text of several lines, each as `visible_text` shows it.

    >>> print(visible_lines("one\x1b[2J\ntwo"))
    one\x1b[2J
    two
    """
    return "\n".join([visible_text(line, most) for line in str(text).split("\n")])


class VisibleStream(io.TextIOBase):
    r"""A text stream that writes to ``stream`` what would steer a terminal as its number.

    Ends of lines and tabs stay, and so does the return to the start of a line that holds nothing
    but a progress bar. No line is cut. ``stream`` itself is for what may steer, such as a bar that
    stands below another one.

    >>> import sys
    >>> print("a\x1b[2J", file=VisibleStream(sys.stdout))
    a\x1b[2J
    """

    encoding: str = ""
    errors: str | None = None

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.encoding = stream.encoding
        self.errors = stream.errors
        self._may_return = True  # nothing but a bar stands in the line

    def write(self, text: str, /) -> int:
        """Write the text in visible letters; return the number of its characters."""
        if text.startswith("\r") and self._may_return:
            self.stream.write("\r" + _without_steering(text[1:]))
        elif text:
            self.stream.write(_without_steering(text))
            self._may_return = text.endswith("\n")
        return len(text)

    def writable(self) -> bool:
        """Whether it can be written to: yes."""
        return True

    def flush(self) -> None:
        """Hand on what the stream below still holds."""
        self.stream.flush()

    def isatty(self) -> bool:
        """Whether the stream below is a terminal."""
        return self.stream.isatty()

    def fileno(self) -> int:
        """The number by which the system knows the stream below."""
        return self.stream.fileno()


def stream_below(stream: TextIO) -> TextIO:
    """The stream to which a `VisibleStream` writes; any other stream itself."""
    return stream.stream if isinstance(stream, VisibleStream) else stream


def _without_steering(text: str) -> str:
    """Text with its ends of lines and tabs, and all else that would steer as numbers."""
    if text.isprintable():
        return text
    characters = [letter if letter in "\n\t" else _visible(letter) for letter in text]
    return "".join(characters)


def _visible(character: str) -> str:
    """A character, or its number where a terminal would not show it."""
    if not unicodedata.category(character).startswith(_STEERS):
        return character
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
