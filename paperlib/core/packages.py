"""Packages that only some users need, imported when they are used."""

from importlib import import_module
from typing import Any


def optional_package(name: str, extra: str, purpose: str) -> Any:
    """The module ``name`` of a package of an extra; where it is missing, the error says how to get it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{purpose} needs {error.name}: install the extra {extra!r} of this package (`paperlib doctor` "
            "shows how)",
            name=error.name,
        ) from None
