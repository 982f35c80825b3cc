"""Files of the data folder: found and checked, or an error with the steps that provide them."""

import json
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from paperlib.io import data_folder
from paperlib.io.files import DATA_VARIABLE, file_sha256

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

    Args:
        what: What errors call the data set.
        source: Where errors send the user for it.

    Raises:
        DataUnavailableError: There is no such file.
        ValueError: It has another content.
    """
    path = data_folder() / name
    if not path.is_file():
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

    Raises:
        ValueError: Another SHA-256 than ``expected``, hexadecimal.
    """
    if made_up():
        manifest = json.loads((data_folder() / MANIFEST).read_text(encoding="utf-8"))
        name = path.relative_to(data_folder()).as_posix()
        expected = manifest["sha256"].get(name, "of no made-up file")
    digest = file_sha256(path)
    if digest != expected:
        raise ValueError(
            f"{path}: expected SHA-256 {expected}, got {digest}; remove it and get it again"
        )


def contents(path: Path, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file of these names in a folder or a gzipped archive, one by one.

    Raises:
        ValueError: A damaged archive, or (after those that are there) one that lacks a file.
    """
    present: list[str] = []
    files = _folder_files(path, names) if path.is_dir() else _archive_files(path, names)
    for name, content in files:
        present.append(name)
        if content is not None:
            yield name, content
    missing = [name for name in names if name not in present]
    if missing:
        lists = f"missing: {', '.join(missing)}; found: {', '.join(present) or 'nothing'}"
        raise ValueError(f"{path}: expected {', '.join(names)} in it; {lists}")


def _folder_files(folder: Path, names: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
    """Name of each file of a folder, sorted, and its content; None for a file that is not in
    ``names``.
    """
    for name in sorted(file.name for file in folder.iterdir() if file.is_file()):
        yield name, (folder / name).read_bytes() if name in names else None


def _archive_files(path: Path, names: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
    """Name of each file of an archive, in its order and without its folder, and its content; None
    for a file that is not in ``names``. A ValueError where the archive is damaged.
    """
    try:
        with tarfile.open(path, "r:gz") as archive:
            for item in archive:
                if item.isfile():
                    name = Path(item.name).name
                    file = archive.extractfile(item) if name in names else None
                    yield name, None if file is None else file.read()
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise ValueError(
            f"{path}: damaged or cut short ({error}); remove it and get it again"
        ) from None
