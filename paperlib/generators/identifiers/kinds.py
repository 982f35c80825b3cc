"""The table of kinds: to add one, write its entry, put it here and into the table of the tests."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import pandas as pd

from paperlib.generators.identifiers.digests import (
    GIT_SHORT_HASH,
    NPM_DIGEST,
    SERIAL_VERSION_UID,
    UUID,
    WHEEL_DIGEST,
    hex_digest,
)
from paperlib.generators.identifiers.keys import BITCOIN_BASE58, BITCOIN_BECH32, ED25519, ETHEREUM, RSA
from paperlib.generators.identifiers.kind import Kind
from paperlib.generators.identifiers.links import SHORT_LINK

_EMPTY_SHA512 = (
    "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce"
    "47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"
)

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            hex_digest("md5", 32, "d41d8cd98f00b204e9800998ecf8427e"),
            hex_digest("sha1", 40, "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            hex_digest("sha256", 64, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            hex_digest("sha512", 128, _EMPTY_SHA512),
            ETHEREUM,
            SERIAL_VERSION_UID,
            UUID,
            WHEEL_DIGEST,
            NPM_DIGEST,
            ED25519,
            RSA,
            BITCOIN_BASE58,
            BITCOIN_BECH32,
            SHORT_LINK,
            GIT_SHORT_HASH,
        )
    }
)
"""Every kind of identifier, by name."""

PAPER_KINDS = ("sha1", "md5", "sha256", "serial_version_uid", "sha512", "ethereum")
"""The kinds that the paper counts, in the order of its Table 2."""


def checked_kinds(names: Iterable[str] | None) -> tuple[Kind, ...]:
    """The kinds of these names, in the table's order; all for None.

    Raises:
        ValueError: An unknown name, or none at all.
    """
    wanted = set(KINDS) if names is None else {names} if isinstance(names, str) else set(names)
    if unknown := sorted(wanted - set(KINDS)):
        raise ValueError(f"kinds: expected some of {', '.join(KINDS)}; got {', '.join(map(repr, unknown))}")
    if not wanted:
        raise ValueError(f"kinds: expected at least one of {', '.join(KINDS)}; got none")
    return tuple(kind for name, kind in KINDS.items() if name in wanted)


def kinds_table() -> pd.DataFrame:
    """Name, entropy in bits (of the example), pattern and an example of every kind.

    >>> float(kinds_table().set_index("kind").loc["uuid", "bits"])
    122.0
    """
    return pd.DataFrame(
        {"kind": kind.name, "bits": kind.bits(kind.example), "example": kind.example, "pattern": kind.pattern}
        for kind in KINDS.values()
    )
