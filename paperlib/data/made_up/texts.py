"""Made-up texts in the official layouts."""

from pathlib import Path


def write(folder: Path, *, full: bool) -> None:
    """Write the files below ``folder``: of the official sizes if ``full``, else small ones."""
