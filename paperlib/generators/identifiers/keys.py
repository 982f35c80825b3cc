"""Addresses of Ethereum and Bitcoin, and public keys of SSH."""

import math

import numpy as np
from Crypto.PublicKey import ECC
from Crypto.Signature import eddsa

from paperlib.generators.identifiers.digests import check_hex, hex_digits
from paperlib.generators.identifiers.encodings import (
    RsaKey,
    base58check,
    base58check_payload,
    erc55,
    from_base64,
    is_taproot_key,
    parse_ssh_rsa,
    segwit_address,
    segwit_program,
    ssh_rsa_text,
)
from paperlib.generators.identifiers.kind import Form, Kind, cased_like, casing


def check_ethereum(value: str) -> Form:
    """The form of an address: one case throughout, or mixed with the checksum of ERC-55 right."""
    form = check_hex(value[2:])
    if form.name != "mixed case":
        return form
    return (
        Form("checksum", valid=True)
        if erc55(value) == value
        else Form("wrong checksum", valid=False)
    )


def _draw_ethereum(value: str, rng: np.random.Generator) -> str:
    digits = hex_digits(40, rng)
    mixed = casing(value[2:]) == "mixed"
    return erc55("0x" + digits) if mixed else "0x" + cased_like(digits, value[2:])


ETHEREUM = Kind(
    name="ethereum",
    pattern=r"0x[0-9a-fA-F]{40}\b",
    check=check_ethereum,
    draw=_draw_ethereum,
    bits=lambda _: 160.0,
    example="0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    fold_case=True,
)

_BASE58_FORMS = {0: "public key hash", 5: "script hash"}


def check_base58(value: str) -> Form:
    """The form of a bitcoin address in base58: pays to the hash of a public key, or of a script.

    A look-alike has a wrong checksum, is no address (another length or version), or has few
    different bytes.
    """
    payload = base58check_payload(value)
    if payload is None:
        return Form("wrong checksum", valid=False)
    if len(payload) != 21 or payload[0] not in _BASE58_FORMS:
        return Form("no address", valid=False)
    # Of the 20 bytes of a hash, 10 or fewer are different with probability 4e-12: so few were
    # written on purpose, such as all zeros.
    if len(set(payload[1:])) <= 10:
        return Form("few different bytes", valid=False)
    return Form(_BASE58_FORMS[payload[0]], valid=True)


BITCOIN_BASE58 = Kind(
    name="bitcoin_base58",
    pattern=r"[13][1-9A-HJ-NP-Za-km-z]{25,33}\b",
    check=check_base58,
    draw=lambda value, rng: base58check((b"\0" if value[0] == "1" else b"\5") + rng.bytes(20)),
    bits=lambda _: 160.0,
    example="1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
)


def check_bech32(value: str) -> Form:
    """The form of a bitcoin address in bech32: witness version, bytes of its program, case; not
    valid, with the reason, where its checksum is wrong or no random source made the program.
    """
    decoded = segwit_program(value.lower())
    if decoded is None:
        return Form("wrong checksum", valid=False)
    version, program = decoded
    # Random bytes, 20 or more, are seldom so much alike: less than once in 10^11 times.
    if 2 * len(set(program)) <= len(program):
        return Form("few different bytes", valid=False)
    if version == 1 and not is_taproot_key(program):
        return Form("no point of the curve", valid=False)
    return Form(f"version {version}, {len(program)} bytes, {casing(value)}", valid=True)


def _draw_bech32(value: str, rng: np.random.Generator) -> str:
    """Another address of the same witness version ("p" for 1, "q" for 0) and length."""
    program = rng.bytes(20 if len(value) == 42 else 32)
    return cased_like(segwit_address(int(value[3] in "pP"), program), value)


def _bech32_bits(value: str) -> float:
    """Bits of the witness program of a bech32 address that could have been others."""
    if len(value) == 42:  # letters of an address with a program of 20 bytes
        return 160.0
    # Version 1 ("p") holds a key: half of all numbers are points of the curve.
    return 255.0 if value[3] in "pP" else 256.0


_SEGWIT = "[02-9ac-hj-np-z]{39}(?:[02-9ac-hj-np-z]{20})?"
BITCOIN_BECH32 = Kind(
    name="bitcoin_bech32",
    pattern=rf"(?:bc1{_SEGWIT}|BC1{_SEGWIT.upper()})\b",
    check=check_bech32,
    draw=_draw_bech32,
    bits=_bech32_bits,
    example="bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
    fold_case=True,
)


def check_ed25519(value: str) -> Form:
    """The form of an Ed25519 public key as OpenSSH writes it: its last 32 bytes are a point of the
    curve; not valid, with the reason, for other text.
    """
    blob = from_base64(value.partition(" ")[2])
    if blob is None:
        return Form("not canonical base64", valid=False)
    point = blob[-32:]
    if 2 * len(set(point)) <= len(point):
        return Form("few different bytes", valid=False)
    try:
        eddsa.import_public_key(point)
    except ValueError:
        return Form("no point of the curve", valid=False)
    return Form("32 bytes", valid=True)


ED25519 = Kind(
    name="ssh_ed25519",
    # The base64 of the two lengths and of the name, up to the first bit of the point.
    pattern=r"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI[A-Za-z0-9+/]{43}",
    check=check_ed25519,
    draw=lambda _, rng: (
        ECC.construct(curve="Ed25519", seed=rng.bytes(32))
        .public_key()
        .export_key(format="OpenSSH")
        .strip()
    ),
    bits=lambda _: 251.0,
    example="ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea",
    not_beside="-=+/",
)

_KEPT_BITS = 16
_SMALL_PRIMES = math.prod(
    n for n in range(3, 1000, 2) if all(n % k for k in range(3, math.isqrt(n) + 1, 2))
)


def _no_small_factor(modulus: int) -> bool:
    return modulus % 2 == 1 and math.gcd(modulus, _SMALL_PRIMES) == 1


def check_rsa(value: str) -> Form:
    """The form of an RSA public key as OpenSSH writes it: the length of a modulus without small
    factors, in bits, and the exponent; not valid, with the reason, for other text.
    """
    key = parse_ssh_rsa(value)
    if key is None:
        return Form("not in the wire format", valid=False)
    bits = key.modulus.bit_length()
    if not 1024 <= bits <= 16384:
        return Form(f"modulus of {bits} bits", valid=False)
    if key.exponent < 3 or key.exponent % 2 == 0:
        return Form("even exponent", valid=False)
    if not _no_small_factor(key.modulus):
        return Form("modulus with a small factor", valid=False)
    return Form(f"{bits} bits, exponent {key.exponent}", valid=True)


def _draw_rsa(value: str, rng: np.random.Generator) -> str:
    """A key with the same exponent and another modulus, of which the leading 16 bits are kept."""
    # How the leading bits of a product of primes are distributed depends on the program that made
    # them; given these, the others are uniform among odd numbers without small factors, unless one
    # factors the modulus.
    key = parse_ssh_rsa(value)
    assert key is not None
    free = key.modulus.bit_length() - _KEPT_BITS
    while True:
        drawn = int.from_bytes(rng.bytes((free + 7) // 8))
        low = drawn >> (-free % 8)  # without the bits beyond ``free`` that whole bytes bring
        kept = (key.modulus >> free) << free
        modulus = kept | low | 1
        if _no_small_factor(modulus):
            return ssh_rsa_text(RsaKey(key.exponent, modulus))


def _rsa_bits(value: str) -> float:
    key = parse_ssh_rsa(value)
    assert key is not None
    return float(key.modulus.bit_length() - _KEPT_BITS - 1)


RSA = Kind(
    name="ssh_rsa",
    pattern=r"ssh-rsa AAAAB3NzaC1yc2EAAAA[A-Za-z0-9+/]+={0,2}",
    check=check_rsa,
    draw=_draw_rsa,
    bits=_rsa_bits,
    example=(
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQCrMZ0q6mNlPOZcz3ptbhUOhNHB7i0wh9OZEQxUrG5J26ziC9fq5d"
        "X5MsmRia/JPxc3nznNUxKOYd9Btl+aTB6idMyqZRg1iuCmi56mRWa7IW3NvU0CETPv9hBf9nty5aP09kYVgHY17slD"
        "zAB4dlD52iU2ApdzjH4855ZJJhJo3H2dQp9XFE2S7PoIoe+pCO80skTGy3ZIJ+3yUMucgROEOpMyg8KWC7YY0x1+5s"
        "OCsxCAYgp3W/cm+gDXduhlwp3+VWk/rqTux4jDYWOZ691zUfo/wBo9ZnrKT65B0OgxdRPdz3PaE9V0SsiBR9BlCwhJ"
        "oGt7yMZ9NO+kvfrN5Lkv"
    ),
    not_beside="-=+/",
)
