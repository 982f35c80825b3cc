"""Digests: hexadecimal ones, UUIDs, git's short hashes, and base64 ones of package managers."""

import hashlib
import math
from collections import Counter
from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.stats import binom

from paperlib.generators.identifiers.encodings import (
    from_base64,
    from_urlsafe,
    to_base64,
    to_urlsafe,
)
from paperlib.generators.identifiers.kind import Form, Kind, cased_like, casing

FEWEST_DIGITS = 7  # with fewer different ones, 32 hexadecimal digits are padding or a placeholder

_UUID_VERSIONS = "3457"
_TICKS = (0x1B3CCF0 << 32, 0x20A0000 << 32)  # 100 ns from 1582 to the years 1993 and about 2050
_MILLISECONDS = (725_846_400_000, 2_524_608_000_000)  # 1993 to 2050
_LEVEL = 1e-4  # chance of one reason for a value drawn uniformly, at most
# Digits, from which on a value that repeats a block counts. In hexadecimal digits at most
# 2 * 16 ** (-12 / 2) = 1.2e-7 of all values repeat one, far below `_LEVEL`.
_FEWEST_OF_BLOCKS = 12
_STRINGS = (
    "",
    "\n",
    " ",
    "0",
    "1",
    "a",
    "abc",
    "test",
    "hello",
    "hello world",
    "Hello World",
    "Hello, World!",
    "foo",
    "bar",
    "admin",
    "password",
    "123456",
    "12345678",
    "secret",
    "root",
    "null",
    "true",
    "example",
    "string",
    "The quick brown fox jumps over the lazy dog",
    "The quick brown fox jumps over the lazy dog.",
    "tree 0\0",
    "blob 0\0",
)
_OTHERS = (
    "67452301efcdab8998badcfe10325476",
    "67452301efcdab8998badcfe10325476c3d2e1f0",
    "550e8400e29b41d4a716446655440000",
    "123e4567e89b42d3a456426614174000",
    "f47ac10b58cc4372a5670e02b2c3d479",
)
_UNREADABLE = bytes([*range(32), *range(127, 256)])
_WORDS = ("deadbee", "cafebab", "badcafe", "c0ffee", "feedface", "baadf00d", "facefeed")


@cache
def constants() -> frozenset[str]:
    """Digests of common texts (test vectors, empty files) and other known values, in hexadecimal
    digits.
    """
    names = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")
    made = {hashlib.new(name, text.encode()).hexdigest() for name in names for text in _STRINGS}
    return frozenset(made | set(_OTHERS))


def no_draw(digits: str) -> str:
    """Why 7 or more lower-case hexadecimal digits are no random draw; empty where nothing speaks
    against one. Each reason meets digits drawn uniformly with the chance `_LEVEL` at most.
    """
    if digits in constants():
        return "known constant"
    if any(word in digits for word in _WORDS):
        return "hexadecimal word"
    if digits.startswith("00000") or digits.endswith("00000"):
        return "run of zeros"
    if repeats(digits, 16):
        return "counting or repeating"
    if _is_readable(digits):
        return "readable text in hexadecimal digits"
    return ""


def _is_readable(digits: str) -> bool:
    """Whether more bytes, of 16 or more, are printable ASCII (95 of 256) than chance allows."""
    if len(digits) < 32 or len(digits) % 2 == 1:
        return False
    readable = bytes.fromhex(digits).translate(None, _UNREADABLE)
    return len(readable) > _most_by_chance(len(digits) // 2, 95 / 256, tests=1)


def repeats(digits: str, base: int) -> bool:
    """Whether digits of ``base`` repeat a block, or one step between neighbours or next neighbours
    is more frequent than `_LEVEL` allows for digits drawn uniformly.
    """
    size = len(digits)
    # A block that fills the value twice: 2 * base ** (-size / 2) of all values at most. The value
    # without its first block then begins like the whole.
    repeats_block = any(digits.startswith(digits[start:]) for start in range(1, size // 2 + 1))
    if size >= _FEWEST_OF_BLOCKS and repeats_block:
        return True
    numbers = [int(digit, base) for digit in digits]
    for lag in (1, 2):
        steps = [(b - a) % base for a, b in zip(numbers, numbers[lag:], strict=False)]
        # Each step has the chance 1 / base among drawn digits. It is tested for each of the
        # base steps at both lags, and these 2 * base tests share the level (a union bound).
        most = _most_by_chance(len(steps), 1 / base, tests=2 * base)
        if max(Counter(steps).values()) > most:
            return True
    return False


@cache
def _most_by_chance(trials: int, chance: float, tests: int) -> int:
    """The number of successes that ``trials`` independent trials, each of this ``chance``, exceed
    with probability `_LEVEL` / ``tests`` at most, so that all ``tests`` together keep the level.
    """
    return int(binom.isf(_LEVEL / tests, trials, chance))


def check_hex(digits: str) -> Form:
    """The form of a run of 32 or more hexadecimal digits: "lower" or "upper" case, and of 32 that
    are laid out as a UUID its version; not valid, with the reason, where no random source wrote it.
    """
    low = digits.lower()
    if len(set(low)) < FEWEST_DIGITS:
        return Form("few different digits", False)
    reason = no_draw(low)
    if reason:
        return Form(reason, False)
    case = casing(digits)
    if case == "mixed":
        return Form("mixed case", False)
    if digits.isdigit():
        return Form("decimal digits alone", False)
    # Kept in a digest too: its other digits are uniform, whatever these two are.
    version = uuid_version(low)
    if version:
        if _has_time(low):  # digits of a digest seem to hold one once in 4,000 times
            return Form("time-ordered UUID", False)
        return Form(f"{case}, digits of a UUID of version {version}", True)
    return Form(case, True)


def uuid_version(digits: str) -> str:
    """The version digit of 32 digits that are laid out as a UUID of version 1 to 8; empty for
    others.

    The digit at index 12 is the version; the one at 16 begins with the bits 10 (RFC 9562).
    """
    if len(digits) == 32 and digits[12] in "12345678" and digits[16] in "89ab":
        return digits[12]
    return ""


def _has_time(digits: str) -> bool:
    """Whether a UUID of version 1, 6 or 7 without hyphens holds a time from 1993 to 2050.

    RFC 9562: version 1 begins with the lowest digits of its time, 6 with the highest, both in units
    of 100 ns; version 7 begins with 12 digits of milliseconds.
    """
    low, middle, high = digits[:8], digits[8:12], digits[13:16]
    version = digits[12]  # between the digits of the time
    if version == "1":
        return _TICKS[0] <= int(high + middle + low, 16) < _TICKS[1]
    if version == "6":
        return _TICKS[0] <= int(low + middle + high, 16) < _TICKS[1]
    return version == "7" and _MILLISECONDS[0] <= int(low + middle, 16) < _MILLISECONDS[1]


def _draw_hex(value: str, rng: np.random.Generator) -> str:
    """As many random hexadecimal digits, in the value's case; of a UUID with its version."""
    drawn = hex_digits(len(value), rng)
    if uuid_version(value.lower()):
        drawn = f"{drawn[:12]}{value[12]}{drawn[13:16]}{'89ab'[rng.integers(4)]}{drawn[17:]}"
    return cased_like(drawn, value)


def hex_digits(count: int, rng: np.random.Generator) -> str:
    """Uniform lower-case hexadecimal digits."""
    return rng.bytes((count + 1) // 2).hex()[:count]


def hex_digest(name: str, digits: int, example: str) -> Kind:
    """The kind of all digests of ``digits`` hexadecimal digits. Each digit has 4 bits; the six that
    a UUID fixes are not counted.
    """
    return Kind(
        name=name,
        pattern=f"[0-9a-fA-F]{{{digits}}}" + r"\b",
        check=check_hex,
        draw=_draw_hex,
        bits=lambda value: 4.0 * digits - 6.0 * bool(uuid_version(value.lower())),
        example=example,
        fold_case=True,
    )


def check_uuid(value: str) -> Form:
    """The form of a UUID with hyphens: its version and case. Valid are versions whose bits are
    random or a digest, with the standard's variant.
    """
    # The first digits of the third and of the fourth group (RFC 9562).
    version, variant = value[14].lower(), value[19].lower()
    if len(set(value.lower())) <= FEWEST_DIGITS:  # the hyphen is one more
        return Form("few different digits", False)
    reason = no_draw(value.lower().replace("-", ""))
    if reason:
        return Form(reason, False)
    if variant not in "89ab":
        return Form("other variant", False)
    if version not in _UUID_VERSIONS:
        return Form(f"version {version}", False)
    case = casing(value)
    if case == "mixed":
        return Form("mixed case", False)
    return Form(f"version {version}, {case}", True)


def draw_uuid(value: str, rng: np.random.Generator) -> str:
    """Another UUID, with hyphens, of the same version; version 7 keeps its time and what may count
    within it.
    """
    version = value[14]
    drawn = hex_digits(32, rng)
    drawn = f"{drawn[:8]}-{drawn[8:12]}-{version}{drawn[13:16]}-"
    # The fourth group begins with the bits 10 (RFC 9562): its first digit is one of four.
    drawn += "89ab"[rng.integers(4)] + hex_digits(3, rng) + "-" + hex_digits(12, rng)
    if version == "7":  # the first three groups: 48 bits of time, and 12 that may count
        drawn = value[:19] + drawn[19:]
    return cased_like(drawn, value)


UUID = Kind(
    name="uuid",
    pattern=r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b",
    check=check_uuid,
    draw=draw_uuid,
    bits=lambda value: 62.0 if value[14] == "7" else 122.0,
    example="7d444840-9dc0-41d1-b245-5ffdce74fad2",
    not_beside="-",
    fold_case=True,
)


def check_short_hash(value: str) -> Form:
    """The form of ``commit`` and an abbreviated hash: its number of digits. Valid are those with a
    digit and a letter, lest it be a word or a number, that look drawn.
    """
    digits = value.split(" ")[-1]
    if digits.isdigit() or digits.isalpha():
        return Form("word or number", False)
    reason = no_draw(digits)
    if reason:
        return Form(reason, False)
    return Form(f"{len(digits)} digits", True)


GIT_SHORT_HASH = Kind(
    name="git_short_hash",
    pattern=r"(?:[Cc]ommits?|[Cc]hangeset|[Mm]erge|[Rr]everts?|[Rr]evision|[Ff]ixes:?) "
    r"[0-9a-f]{7,12}\b",
    check=check_short_hash,
    draw=lambda value, rng: f"{value.split()[0]} {hex_digits(len(value.split()[1]), rng)}",
    bits=lambda value: 4.0 * len(value.split(" ")[1]),
    example="commit 83a5ef2",
    not_beside="-",
)

_BASE64_SIZES = {"sha1": 20, "sha256": 32, "sha384": 48, "sha512": 64}


def base64_digest(
    name: str,
    sign: str,
    pattern: str,
    example: str,
    *,
    encode: Callable[[bytes], str],
    decode: Callable[[str], bytes | None],
) -> Kind:
    """The kind of digests in base64 behind the name of the algorithm and a sign.

    Args:
        name: Of the kind.
        sign: Between the name of the algorithm and the base64, such as "=".
        pattern: Regular expression of the kind, as `Kind` has it.
        example: A digest of the kind.
        encode: From bytes to text.
        decode: From text to bytes; None for a text that ``encode`` never writes.
    """

    def check(value: str) -> Form:
        """The algorithm as the form of a digest whose bytes are canonical base64 and look drawn;
        else not valid, with the reason.
        """
        algorithm, text = value.split(sign, 1)
        data = decode(text)
        if data is None:
            return Form("not canonical base64", False)
        reason = no_draw(data.hex())
        if reason:
            return Form(reason, False)
        # Of n random bytes, d are different with probability S(n, d) 256! / (256 - d)! / 256^n,
        # S a Stirling number of the second kind: of 20 bytes 10 or fewer with 4e-12, and half or
        # fewer of more bytes more seldom.
        if 2 * len(set(data)) <= len(data):
            return Form("few different bytes", False)
        return Form(algorithm, True)

    def draw(value: str, rng: np.random.Generator) -> str:
        """A digest of the same algorithm, of random bytes."""
        algorithm = value.split(sign, 1)[0]
        return algorithm + sign + encode(rng.bytes(_BASE64_SIZES[algorithm]))

    return Kind(
        name=name,
        pattern=pattern,
        check=check,
        draw=draw,
        bits=lambda value: 8.0 * _BASE64_SIZES[value.split(sign, 1)[0]],
        example=example,
        not_beside="-=+/",
    )


WHEEL_DIGEST = base64_digest(
    "wheel_digest",
    "=",
    r"sha(?:256=[A-Za-z0-9_-]{43}|384=[A-Za-z0-9_-]{64}|512=[A-Za-z0-9_-]{86})",
    "sha256=bzlbE_6h9nQNCzfoWYzlmDjVEPdFKuc__odw8fKWkFI",
    encode=to_urlsafe,
    decode=from_urlsafe,
)
NPM_DIGEST = base64_digest(
    "npm_digest",
    "-",
    r"sha(?:1-[A-Za-z0-9+/]{27}=|256-[A-Za-z0-9+/]{43}=|384-[A-Za-z0-9+/]{64}|512-[A-Za-z0-9+/]{86}==)",
    "sha256-bzlbE/6h9nQNCzfoWYzlmDjVEPdFKuc//odw8fKWkFI=",
    encode=to_base64,
    decode=from_base64,
)


def check_serial(value: str) -> Form:
    """The form of a ``serialVersionUID`` of 15 digits or more: its sign and number of digits; not
    valid, with the reason, for what is no 64-bit number, a counter or padding.
    """
    head, digits = _serial_parts(value)
    negative = head.endswith("-")
    # The largest 64-bit number is 2^63 - 1, and the least one -2^63.
    if digits.startswith("0") or int(digits) >= 2**63 + negative:
        return Form("no 64-bit number", False)
    if repeats(digits, 10):
        return Form("counting or repeating", False)
    # Of 15 random digits, 4 or fewer are different once in 4,600: the sum over d of
    # S(15, d) 10! / (10 - d)! / 10^15, S a Stirling number of the second kind.
    if len(set(digits)) <= 4:
        return Form("few different digits", False)
    return Form(f"{'negative' if negative else 'positive'}, {len(digits)} digits", True)


def _serial_parts(value: str) -> tuple[str, str]:
    """Everything up to the number with its sign, and the digits."""
    digits = value[:-1].rpartition("=")[2].strip().removeprefix("-")
    return value[: -1 - len(digits)], digits


def _serial_range(digits: str) -> tuple[int, int]:
    """The least 64-bit number of so many digits, and the number after the largest one."""
    return 10 ** (len(digits) - 1), min(10 ** len(digits), 2**63)


def _draw_serial(value: str, rng: np.random.Generator) -> str:
    head, digits = _serial_parts(value)
    return f"{head}{rng.integers(*_serial_range(digits))}L"


def _serial_bits(value: str) -> float:
    low, high = _serial_range(_serial_parts(value)[1])
    return math.log2(high - low)


SERIAL_VERSION_UID = Kind(
    name="serial_version_uid",
    pattern=r"serialVersionUID[ \t]{0,16}=[ \t]{0,16}-?[0-9]{15,19}L\b",
    check=check_serial,
    draw=_draw_serial,
    bits=_serial_bits,
    example="serialVersionUID = 6146619729108124872L",
)
