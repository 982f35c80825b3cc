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

_EXAMPLE_SHA512 = (
    "7d433af307953816461a30fac947bf0dfd430e5718d749775fb03c6752c545fc"
    "06fa507cdeba6404458e8be45c153b99ba0dfbfc050298043b65853126b24472"
)

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            hex_digest("md5", 32, "2f6b8d1c90e4a7353b1e64d7f08a5c92"),
            hex_digest("sha1", 40, "08e6a90dc43c2bd0c80f21d90ea44f1e75ab1506"),
            hex_digest("sha256", 64, "82cab51240f007318177bd6059258a10491b9a50b67870d99208604cbc0b6c9e"),
            hex_digest("sha512", 128, _EXAMPLE_SHA512),
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
    """One row per kind: kind, bits of entropy (of the example), example and pattern."""
    return pd.DataFrame(
        {"kind": kind.name, "bits": kind.bits(kind.example), "example": kind.example, "pattern": kind.pattern}
        for kind in KINDS.values()
    )
