"""Values that a random source would hardly make: counting, repeats, known constants, readable text."""

import hashlib
from collections import Counter
from functools import cache

from scipy.stats import binom

_LEVEL = 1e-4  # chance of one reason for a value drawn uniformly, at most
_STRINGS = (
    "", "\n", " ", "0", "1", "a", "abc", "test", "hello", "hello world", "Hello World", "Hello, World!",
    "foo", "bar", "admin", "password", "123456", "12345678", "secret", "root", "null", "true",
    "example", "string", "The quick brown fox jumps over the lazy dog",
    "The quick brown fox jumps over the lazy dog.", "tree 0\0",
    "blob 0\0",
)  # fmt: skip
_OTHERS = (
    "67452301efcdab8998badcfe10325476", "67452301efcdab8998badcfe10325476c3d2e1f0",
    "550e8400e29b41d4a716446655440000", "123e4567e89b42d3a456426614174000",
    "f47ac10b58cc4372a5670e02b2c3d479",
)  # fmt: skip
_WORDS = ("deadbee", "cafebab", "badcafe", "c0ffee", "feedface", "baadf00d", "facefeed")


@cache
def constants() -> frozenset[str]:
    """Digests of common texts (test vectors, empty files) and other known values, in hexadecimal digits."""
    names = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")
    made = {hashlib.new(name, text.encode()).hexdigest() for name in names for text in _STRINGS}
    return frozenset(made | set(_OTHERS))


def no_draw(digits: str) -> str:
    """Why hexadecimal digits, 7 or more in small letters, are no random draw; empty if they may be one.

    Guarantee:
        Of values drawn uniformly each reason but the constants refuses at most one in ten thousand.

    >>> no_draw("000102030405060708090a0b0c0d0e0f"), no_draw("83a5ef2c9d0b4e71f6a8c3d25b190e47")
    ('counting or repeating', '')
    """
    if digits in constants():
        return "known constant"
    if any(word in digits for word in _WORDS):
        return "hexadecimal word"
    if digits.startswith("00000") or digits.endswith("00000"):
        return "run of zeros"
    if repeats([int(digit, 16) for digit in digits], 16):
        return "counting or repeating"
    if len(digits) >= 32 and len(digits) % 2 == 0:
        letters = sum(32 <= byte < 127 for byte in bytes.fromhex(digits))
        if letters > _most(len(digits) // 2, 95 / 256, 1):
            return "readable text in hexadecimal digits"
    return ""


def repeats(digits: list[int], base: int) -> bool:
    """Whether digits repeat a block, or one step between neighbours or next neighbours is too frequent."""
    size = len(digits)
    # A block that fills the value twice: 2 * base ** (-size / 2) of all values at most.
    if size >= 12 and any(digits[at:] == digits[:-at] for at in range(1, size // 2 + 1)):
        return True
    steps = ([(b - a) % base for a, b in zip(digits, digits[lag:], strict=False)] for lag in (1, 2))
    return any(max(Counter(some).values()) > _most(len(some), 1 / base, 2 * base) for some in steps)


@cache
def _most(trials: int, chance: float, tests: int) -> int:
    """Successes that independent trials exceed with the level's probability at most, shared by the tests."""
    return int(binom.isf(_LEVEL / tests, trials, chance))
