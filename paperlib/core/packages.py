"""Other packages: imported when they are used, and their messages kept off the page."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any


def optional_package(name: str, extra: str, purpose: str) -> Any:
    """The module of a package that is installed with an extra of this one.

    Args:
        name: Of the module.
        extra: Of this package.
        purpose: What needs it, the beginning of the message.

    Raises:
        ModuleNotFoundError: It is missing; the message says how to get it.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{purpose} needs {error.name}: install the extra {extra!r} of this package (`paperlib "
            "doctor` shows how)",
            name=error.name,
        ) from None


@contextmanager
def quiet(name: str, level: int) -> Generator[None]:
    """Hide what the package ``name`` logs below ``level``, one of ``logging``, while the block
    runs, and leave its logger as it was.
    """
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)
