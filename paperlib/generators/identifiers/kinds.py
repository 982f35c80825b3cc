"""The table of kinds: to add one, write its entry, put it here and into the table of the tests."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd

from paperlib.generators.identifiers.digests import (
    GIT_SHORT_HASH,
    NPM_DIGEST,
    SERIAL_VERSION_UID,
    UUID,
    WHEEL_DIGEST,
    hex_digest,
)
from paperlib.generators.identifiers.keys import (
    BITCOIN_BASE58,
    BITCOIN_BECH32,
    ED25519,
    ETHEREUM,
    RSA,
)
from paperlib.generators.identifiers.kind import Form, Kind

# Shortened URLs, whose codes a service drew.
_LOWER = "0123456789abcdefghijklmnopqrstuvwxyz"
_ALL = _LOWER + _LOWER[10:].upper()
_VIDEO = _ALL + "-_"


@dataclass(frozen=True)
class _Service:
    """A service: its alphabet, the lengths of its codes, and how many letters tell only the
    time.
    """

    alphabet: str
    lengths: tuple[int, ...]
    kept: int
    last: str = ""  # letters of the last place, where it holds fewer bits


# Codes of bit.ly, tinyurl.com and goo.gl once counted upwards: their first letter is kept.
SERVICES = {
    "bit.ly": _Service(_ALL, (6, 7), 1),
    "goo.gl": _Service(_ALL, (5, 6), 1),
    "tinyurl.com": _Service(_LOWER, (7, 8), 1),
    "is.gd": _Service(_ALL, (6,), 1),
    "t.co": _Service(_ALL, (10,), 0),
    "youtu.be": _Service(_VIDEO, (11,), 0, "AEIMQUYcgkosw048"),  # 64 bits in base64
}


def _split(value: str) -> tuple[str, _Service, str]:
    """What stands before the last slash of a link, the service, and the code."""
    head, code = value.rsplit("/", 1)
    return head, SERVICES[head.split("//", 1)[1].removeprefix("www.")], code


def check_link(value: str) -> Form:
    """The form of a shortened URL: its service and the length of the code. Not valid, with the
    reason, are other codes than the service writes, and codes without digits, small or (where the
    service has them) capital letters, which a person may have chosen.
    """
    _, service, code = _split(value)
    if len(code) not in service.lengths:
        return Form("code of another length", False)
    if not set(code) <= set(service.alphabet) or (service.last and code[-1] not in service.last):
        return Form("code of another alphabet", False)
    classes = [any(map(str.isdigit, code)), any(map(str.islower, code))]  # whether each occurs
    if service.alphabet != _LOWER:
        classes.append(any(map(str.isupper, code)))
    if not all(classes):
        return Form("may be words or a number", False)
    return Form(f"{value.split('/')[2].removeprefix('www.')}, {len(code)}", True)


def _draw_link(value: str, rng: np.random.Generator) -> str:
    """A link to the same service with a code drawn anew, of which the service fixes the first
    letters and the alphabet of the last.
    """
    head, service, code = _split(value)
    numbers = rng.integers(0, len(service.alphabet), len(code))
    drawn = [service.alphabet[number] for number in numbers]
    drawn[: service.kept] = code[: service.kept]
    if service.last:
        drawn[-1] = service.last[rng.integers(len(service.last))]
    return f"{head}/{''.join(drawn)}"


def _link_bits(value: str) -> float:
    _, service, code = _split(value)
    free = len(code) - service.kept - bool(service.last)
    return free * math.log2(len(service.alphabet)) + math.log2(len(service.last) or 1)


_HOSTS = "|".join(host.replace(".", r"\.") for host in SERVICES)
SHORT_LINK = Kind(
    name="short_url",
    pattern=rf"https?://(?:www\.)?(?:{_HOSTS})/[0-9A-Za-z_-]{{5,11}}",
    check=check_link,
    draw=_draw_link,
    bits=_link_bits,
    example="https://bit.ly/3xK9aQz",
    not_beside="-/%+",
)

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
            hex_digest(
                "sha256", 64, "82cab51240f007318177bd6059258a10491b9a50b67870d99208604cbc0b6c9e"
            ),
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
    """The kinds of these names, in the table's order, all for None.

    Raises:
        ValueError: A name that is not in `KINDS`, or no name.
    """
    if names is None:
        return tuple(KINDS.values())
    requested = {names} if isinstance(names, str) else set(names)
    unknown = sorted(requested - set(KINDS))
    if unknown:
        raise ValueError(
            f"kinds: expected some of {', '.join(KINDS)}; got {', '.join(map(repr, unknown))}"
        )
    if not requested:
        raise ValueError(f"kinds: expected at least one of {', '.join(KINDS)}; got none")
    return tuple(kind for name, kind in KINDS.items() if name in requested)


def kinds_table() -> pd.DataFrame:
    """One row per kind: kind, bits of entropy (of the example), example and pattern."""
    return pd.DataFrame(
        {
            "kind": kind.name,
            "bits": kind.bits(kind.example),
            "example": kind.example,
            "pattern": kind.pattern,
        }
        for kind in KINDS.values()
    )
