"""The encodings that identifiers come in: checksums, base58, bech32, base64 and SSH's of RSA
keys.
"""

import base64
import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from Crypto.Hash import keccak
from Crypto.PublicKey import RSA

BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_BECH32_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_CONSTANT = {0: 1, 1: 0x2BC830A3}  # of the checksum, by witness version: bech32 and bech32m
_BC = (3, 3, 0, 2, 3)  # the letters of the prefix, as the checksum counts them
_SECP256K1 = 2**256 - 2**32 - 977


def erc55(address: str) -> str:
    """An Ethereum address, ``0x`` and 40 digits in any case, in the case that is its checksum
    (ERC-55).
    """
    digits = address[2:].lower()
    # Keccak-256 is not the SHA3-256 of the standard library. A letter is a capital where the digit
    # at its place in the hash is 8 or more.
    check = keccak.new(digest_bits=256, data=digits.encode()).hexdigest()
    letters = [
        digit.upper() if mark >= "8" else digit for digit, mark in zip(digits, check, strict=False)
    ]
    return "0x" + "".join(letters)


def base58check(payload: bytes) -> str:
    """Base58 text of a payload and four bytes of its double SHA-256."""
    data = payload + _double_sha256(payload)
    number = int.from_bytes(data)  # of which base58 writes the digits; leading zero bytes are "1"
    letters = ""
    while number:
        number, rest = divmod(number, 58)
        letters = BASE58[rest] + letters
    return "1" * (len(data) - len(data.lstrip(b"\0"))) + letters


def base58check_payload(text: str) -> bytes | None:
    """The payload of base58 text, or None where the checksum is wrong.

    The text is a number in base 58. Its bytes end with the first four of the payload's double
    SHA-256; each leading "1" stands for a zero byte.

    Raises:
        ValueError: A letter that is not of `BASE58`.
    """
    number = 0
    for letter in text:
        number = 58 * number + BASE58.index(letter)
    zeros = len(text) - len(text.lstrip("1"))
    data = bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8)
    if len(data) <= 4 or _double_sha256(data[:-4]) != data[-4:]:
        return None
    return data[:-4]


def _double_sha256(data: bytes) -> bytes:
    """The first four bytes of the SHA-256 of the SHA-256."""
    return hashlib.sha256(hashlib.sha256(data).digest()).digest()[:4]


def segwit_address(version: int, program: bytes) -> str:
    """The lower-case bech32 (version 0) or bech32m (1) address of a witness program: BIP-173,
    BIP-350. A KeyError for another version.
    """
    values = [version, *_regroup(program, 8, 5, pad=True)]
    # The checksum is six numbers of 5 bits, with zeros in their place while it is computed.
    state = _polymod([*_BC, *values, 0, 0, 0, 0, 0, 0]) ^ _CONSTANT[version]
    check = [(state >> 5 * (5 - index)) & 31 for index in range(6)]
    return "bc1" + "".join(BECH32[value] for value in values + check)


def segwit_program(address: str) -> tuple[int, bytes] | None:
    """Version and witness program of a lower-case bech32 or bech32m address (BIP-173, BIP-350) that
    begins with "bc1", or None where it is not valid; a ValueError for a letter that is not of
    `BECH32`.
    """
    values = [BECH32.index(letter) for letter in address[3:]]  # behind "bc1"
    version = values[0]
    # A valid address, its checksum included, leaves the constant of its version as remainder.
    if version not in _CONSTANT or _polymod([*_BC, *values]) != _CONSTANT[version]:
        return None
    program = bytes(_regroup(values[1:-6], 5, 8, pad=False))  # the last six are the checksum
    # Lengths in bytes: a hash of a key or of a script, and a key of version 1 (BIP-141, BIP-341).
    if len(program) not in ((20, 32) if version == 0 else (32,)):
        return None
    # Bits beyond the program must be zeros: then the same address is written again.
    return (version, program) if segwit_address(version, program) == address else None


def _polymod(values: Sequence[int]) -> int:
    """The checksum of bech32 (BIP-173) over 5-bit numbers, a number of 30 bits: the remainder of
    the polynomial that has them as coefficients, divided by the generator.
    """
    state = 1
    for value in values:
        top = state >> 25  # what leaves the 30 bits, of which each bit takes off a multiple
        state = (state & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate(_BECH32_GENERATOR):
            if top >> bit & 1:
                state ^= generator
    return state


def _regroup(values: Sequence[int], bits_in: int, bits_out: int, *, pad: bool) -> list[int]:
    """The bits of numbers of ``bits_in`` bits, in their order, as numbers of ``bits_out`` bits; a
    rest is filled up with zeros with ``pad``, and dropped without.
    """
    held = 0  # all bits so far, of which the last ``bits`` are not written
    bits = 0
    out: list[int] = []
    for value in values:
        held = held << bits_in | value
        bits += bits_in
        while bits >= bits_out:
            bits -= bits_out
            out.append(held >> bits & (1 << bits_out) - 1)
    if pad and bits:
        out.append(held << bits_out - bits & (1 << bits_out) - 1)
    return out


def is_taproot_key(program: bytes) -> bool:
    """Whether 32 bytes are the x coordinate of a point of secp256k1, as half of all are."""
    x = int.from_bytes(program)
    square = (pow(x, 3, _SECP256K1) + 7) % _SECP256K1
    return x < _SECP256K1 and pow(square, (_SECP256K1 - 1) // 2, _SECP256K1) == 1


class RsaKey(NamedTuple):
    """An RSA public key: exponent and modulus."""

    exponent: int
    modulus: int


def ssh_rsa_text(key: RsaKey) -> str:
    """An RSA public key as OpenSSH writes it: in the wire format of RFC 4253, section 6.6."""
    return (
        RSA.construct((key.modulus, key.exponent), consistency_check=False)
        .export_key("OpenSSH")
        .decode()
    )


def parse_ssh_rsa(text: str) -> RsaKey | None:
    """The RSA key of a text, or None where the text is not how that key is written."""
    blob = from_base64(text.partition(" ")[2]) or b""
    fields: list[bytes] = []  # name, exponent and modulus, each behind its length in four bytes
    while blob:
        end = 4 + int.from_bytes(blob[:4])
        fields.append(blob[4:end])
        blob = blob[end:]
    if len(fields) != 3:
        return None
    key = RsaKey(int.from_bytes(fields[1]), int.from_bytes(fields[2]))
    return key if ssh_rsa_text(key) == text else None


def from_base64(text: str) -> bytes | None:
    """The bytes of padded base64, or None where the text is not how they are written."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return data if to_base64(data) == text else None


def to_base64(data: bytes) -> str:
    """Padded base64."""
    return base64.b64encode(data).decode()


def from_urlsafe(text: str) -> bytes | None:
    """The bytes of URL-safe base64 without padding, or None where the text is not how they are
    written.
    """
    return from_base64(text.translate(str.maketrans("-_", "+/")) + "=" * (-len(text) % 4))


def to_urlsafe(data: bytes) -> str:
    """URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
