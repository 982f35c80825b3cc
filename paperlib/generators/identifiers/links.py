"""Shortened URLs: codes that a service drew."""

import math
from dataclasses import dataclass

import numpy as np

from paperlib.generators.identifiers.kind import Form, Kind

_LOWER = "0123456789abcdefghijklmnopqrstuvwxyz"
_ALL = _LOWER + _LOWER[10:].upper()
_VIDEO = _ALL + "-_"


@dataclass(frozen=True)
class _Service:
    """A service: its alphabet, the lengths of its codes, and how many letters tell only the time."""

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


def _parts(value: str) -> tuple[str, _Service, str]:
    head, code = value.rsplit("/", 1)
    return head, SERVICES[head.split("//", 1)[1].removeprefix("www.")], code


def check_link(value: str) -> Form:
    """The form of a shortened URL; a code without a class of letters may be a person's choice."""
    _, service, code = _parts(value)
    if len(code) not in service.lengths:
        return Form("code of another length", False)
    if not set(code) <= set(service.alphabet) or (service.last and code[-1] not in service.last):
        return Form("code of another alphabet", False)
    classes = [any(map(str.isdigit, code)), any(map(str.islower, code))]
    if service.alphabet != _LOWER:
        classes.append(any(map(str.isupper, code)))
    if not all(classes):
        return Form("may be words or a number", False)
    return Form(f"{value.split('/')[2].removeprefix('www.')}, {len(code)}", True)


def _draw_link(value: str, rng: np.random.Generator) -> str:
    head, service, code = _parts(value)
    drawn = [service.alphabet[at] for at in rng.integers(0, len(service.alphabet), len(code))]
    drawn[: service.kept] = code[: service.kept]
    if service.last:
        drawn[-1] = service.last[rng.integers(len(service.last))]
    return f"{head}/{''.join(drawn)}"


def _link_bits(value: str) -> float:
    _, service, code = _parts(value)
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
