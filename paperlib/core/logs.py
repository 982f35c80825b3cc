"""Messages of other packages, kept off the page."""

import logging
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def quiet(name: str, level: int) -> Generator[None]:
    """Hide what a package logs below ``level``, and leave its logger as it was."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)
