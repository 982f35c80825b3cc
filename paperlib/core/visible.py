"""Text of others as a terminal may show it: what would steer a terminal is shown as its number."""

import unicodedata

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


def _visible(character: str) -> str:
    """A character, or its number where a terminal would not show it."""
    if not unicodedata.category(character).startswith(_STEERS):
        return character
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
