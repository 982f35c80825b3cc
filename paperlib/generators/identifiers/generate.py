"""Other identifiers from the source of a found one."""

import hashlib
import re

import numpy as np

from paperlib.core import check_at_least
from paperlib.generators.identifiers.kind import Form, Identifier
from paperlib.generators.identifiers.kinds import checked_kinds
from paperlib.generators.identifiers.scan import as_identifier

_ATTEMPTS = 1_000


def generate_identifiers(identifier: Identifier | str, count: int, seed: int) -> list[str]:
    """Draw identifiers that could have stood in the place of a found one.

    Guarantee:
        If the found value was drawn at random as its kind says, it and the generated ones are exchangeable.
        Letter case, prefix, version bits, length, sign and the leading bits of an RSA modulus are the same in
        all of them, and each passes the kind's check with the same form, checksums included.

    Args:
        identifier: The found one, or its text.
        count: Number of values, 0 or more.
        seed: At least 0. The value is part of the seed: two identifiers never share their draws.

    Returns:
        ``count`` values, all different, also from the found one, letter case aside where it says nothing.

    Raises:
        ValueError: A text that is no identifier, an unknown kind, a negative count or seed, or more values
            than the kind has.

    Source:
        Natural identifiers, Appendix A.

    >>> value = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
    >>> generate_identifiers(value, 1, seed=0) == generate_identifiers(value, 1, seed=0)
    True
    """
    check_at_least(0, count=count, seed=seed)
    found = as_identifier(identifier) if isinstance(identifier, str) else identifier
    (kind,) = checked_kinds([found.kind])
    fits = isinstance(found.value, str) and re.fullmatch(kind.pattern, found.value, re.ASCII)
    form = kind.check(found.value) if fits else Form("of another pattern", False)
    if not form.valid:
        raise ValueError(f"identifier: expected a valid {kind.name}, got {found.value!r} ({form.name})")
    digest = hashlib.sha256(f"{kind.name} {found.value}".encode()).digest()
    rng = np.random.default_rng([seed, *np.frombuffer(digest, dtype=np.uint32).tolist()])
    seen, drawn, failed = {kind.key(found.value)}, list[str](), 0
    while len(drawn) < count:
        value = kind.draw(found.value, rng)
        if kind.key(value) in seen or kind.check(value) != form:
            failed += 1
            if failed > _ATTEMPTS * (1 + len(drawn)):
                raise ValueError(
                    f"count: found only {len(drawn)} of {count} values of the form {form.name!r} "
                    f"of {kind.name}"
                )
            continue
        seen.add(kind.key(value))
        drawn.append(value)
    return drawn
