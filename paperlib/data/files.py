"""Files of the data folder: found and checked, or an error with the steps that provide them."""

import json
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from paperlib.io import data_folder, file_sha256
from paperlib.io.files import DATA_VARIABLE

MANIFEST = "MADE-UP.json"
"""File that marks a data folder as made up; it holds the checksums of the files."""


class DataUnavailableError(FileNotFoundError):
    """A data set is neither on this machine nor can be fetched; the message names the file and its
    folder.
    """


def unavailable(
    what: str, files: str, folder: Path, address: str, tried: Sequence[str] = ()
) -> DataUnavailableError:
    """The error for missing files; ``tried`` holds the error of each attempt to download."""
    failed = f" Downloading failed: {'; '.join(tried)}." if tried else ""
    return DataUnavailableError(
        f"{what} is not at hand: {folder} holds no {files}.{failed} "
        f"Fetch them from {address} and put them into that folder, or set {DATA_VARIABLE} to the "
        "folder that has them."
    )


def data_file(what: str, name: str, sha256: str | None, source: str) -> Path:
    """A file that is never fetched, by its name in the data folder; any content where ``sha256`` is
    None.
    """
    if not (path := data_folder() / name).is_file():
        raise unavailable(what, name, data_folder(), f"its source ({source})")
    if sha256 is not None:
        check_sha256(path, sha256)
    return path


def made_up() -> bool:
    """Whether the data folder holds made-up data: what is measured on it never counts as a
    result.
    """
    return (data_folder() / MANIFEST).is_file()


def check_sha256(path: Path, expected: str) -> None:
    """Refuse a file of another content: in a folder of made-up data, one that its manifest does not
    have.
    """
    if made_up():
        known = json.loads((data_folder() / MANIFEST).read_text(encoding="utf-8"))["sha256"]
        expected = known.get(path.relative_to(data_folder()).as_posix(), "of no made-up file")
    if (digest := file_sha256(path)) != expected:
        raise ValueError(
            f"{path}: expected SHA-256 {expected}, got {digest}; remove it and get it again"
        )


def contents(path: Path, wanted: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Name and content of each wanted file of a folder or of a gzipped archive, one after the
    other.
    """
    found: list[str] = []
    if path.is_dir():
        found = sorted(file.name for file in path.iterdir() if file.is_file())
        for name in found:
            if name in wanted:
                yield name, (path / name).read_bytes()
    else:
        try:
            with tarfile.open(path, "r:gz") as archive:
                for item in filter(tarfile.TarInfo.isfile, archive):
                    found.append(name := Path(item.name).name)
                    if name in wanted and (file := archive.extractfile(item)) is not None:
                        yield name, file.read()
        except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
            raise ValueError(
                f"{path}: damaged or cut short ({error}); remove it and get it again"
            ) from None
    if missing := [name for name in wanted if name not in found]:
        lists = f"missing: {', '.join(missing)}; found: {', '.join(found) or 'nothing'}"
        raise ValueError(f"{path}: expected {', '.join(wanted)} in it; {lists}")
