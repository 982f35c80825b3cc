"""Errors of missing data, with the steps that provide them."""

from pathlib import Path

from paperlib.io.folders import DATA_VARIABLE


class DataUnavailableError(FileNotFoundError):
    """A data set is neither on this machine nor can be fetched; the message names the file and its folder."""


def unavailable(what: str, files: str, folder: Path, address: str, tried: list[str]) -> DataUnavailableError:
    """The error for a data set that is not on this machine.

    Args:
        what: The data set.
        files: Names of the missing files.
        folder: The folder looked in.
        address: Address of a page to fetch them from.
        tried: Error of each attempt to download; may be empty.
    """
    failed = f" Downloading failed: {'; '.join(tried)}." if tried else ""
    return DataUnavailableError(
        f"{what} is not at hand: {folder} holds no {files}.{failed} "
        f"Fetch them from {address} and put them into that folder, or set {DATA_VARIABLE} to the folder "
        "that has them."
    )
