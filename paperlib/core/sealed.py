"""Sealed content: its text and the SHA-256 of it, which shows later, if it was published, that
nothing was changed. `paperlib.reading.sealed` has the files.
"""

import hashlib
import json


def sealed_text(content: object) -> str:
    """Content as the text that its hash is of: the same for equal content, in ASCII."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def sealed_hash(text: str) -> str:
    """SHA-256 of a text, as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def check_loaded(coins: object, plan: object = None) -> None:
    """Refuse (ValueError) anything else than coins and a plan, or None, such as the path of their
    file.
    """
    for name, value, kind in (("coins", coins, "Coins"), ("plan", plan, "SealedPlan")):
        if value is not None and not hasattr(value, "seal"):
            got = type(value).__name__
            raise ValueError(
                f"{name}: expected {kind}, got {got}; read a file with {kind}.load(path)"
            )
