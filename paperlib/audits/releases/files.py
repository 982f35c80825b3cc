"""A release, members and non-members from files: tables, texts, or folders of images."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paperlib.audits.releases.records import check_record_columns
from paperlib.audits.releases.rows import Rows
from paperlib.reading import read_frames
from paperlib.reading.folders import visible_files
from paperlib.reading.headers import array_names, load_arrays
from paperlib.reading.limits import TooLargeError, check_size
from paperlib.reading.tables import decoded, named, open_source

if TYPE_CHECKING:
    import pandas as pd

_PIXEL_BYTES = 8  # of one pixel, in the image and in the array of all
_WITH_NONMEMBERS = 3  # files: the release, members and non-members


def read_rows(
    paths: Sequence[str],
    *,
    text_column: str = "",
    id_column: str = "",
    group_columns: Sequence[str] = (),
) -> tuple[list[Rows], list[str] | None]:
    """Rows of each file, the release first; and names of the rows of all files but the release, in
    order, or None where nothing names them.

    Args:
        paths: Tables, files of texts or arrays, or folders of images: the release, members and, if
            there are any, non-members.
        text_column: Column of tables whose texts are the rows; "" for all columns.
        id_column: Column of tables with the names; "" for none. Images have those of their files.
        group_columns: Columns beside the texts of which each row is a record of its own.

    Raises:
        ValueError: Files that cannot be read as these, a column that is not there, or one beside
            the texts that names units of several of them.
    """
    kinds = [_kind(path) for path in paths]
    if set(kinds) == {"table"}:
        return _tables(paths, text_column, id_column, group_columns)
    if text_column or id_column:
        raise ValueError(f"--{'text' if text_column else 'id'}-column: not every file is a table")
    readers: dict[str, Callable[[str], Rows]] = {
        "folder": _images,
        "array": _array,
        "lines": _lines,
        "table": lambda path: _tables([path], "", "", ())[0][0],
    }
    rows = [readers[kind](path) for kind, path in zip(kinds, paths, strict=True)]
    if set(kinds[1:]) == {"folder"}:
        names = [f"{path}/{name.as_posix()}" for path in paths[1:] for name in visible_files(path)]
        return rows, names
    return rows, None


def _kind(path: str) -> str:
    """What a path holds, by its name: a folder, an array, lines of text or a table."""
    name = path.lower().removesuffix(".gz")
    if Path(path).is_dir():
        return "folder"
    if name.endswith((".npz", ".npy")):
        return "array"
    return "lines" if name.endswith(".txt") else "table"


def _tables(
    paths: Sequence[str], text_column: str, id_column: str, group_columns: Sequence[str]
) -> tuple[list[Rows], list[str] | None]:
    """Tables of the files, or their texts where a column was named or is the only one; and names
    of the rows of all but the first file, where the column of ids was named.
    """
    if text_column and text_column == id_column:
        raise ValueError(
            f"column {id_column!r}: it cannot be both the text that is audited and the names of "
            "the records; name another column for one of them, or leave the names out"
        )
    frames = read_frames(paths)
    _check_columns("text-column", text_column, paths, frames)
    _check_columns("id-column", id_column, paths[1:], frames[1:])
    names = None
    if id_column:
        names = [str(name) for frame in frames[1:] for name in frame[id_column]]
        frames = [frame.drop(columns=id_column, errors="ignore") for frame in frames]
    texts = _columns_of_text(paths, frames, text_column)
    if text_column and len(frames) == _WITH_NONMEMBERS:
        check_record_columns(*frames[1:], names=names, groups=[text_column, *group_columns])
    return (list(frames) if texts is None else texts), names


def _columns_of_text(
    paths: Sequence[str], frames: "list[pd.DataFrame]", text_column: str
) -> list[Rows] | None:
    """The texts of each table: of the column that was named, or of the only one; None of tables
    with more, or with other cells than text.
    """
    if text_column:
        return [_texts(path, frame, text_column) for path, frame in zip(paths, frames, strict=True)]
    if any(frame.shape[1] != 1 for frame in frames):
        return None
    columns = [frame.iloc[:, 0].tolist() for frame in frames]
    return list(columns) if all(map(_are_texts, columns)) else None


def _check_columns(
    option: str, column: str, paths: Sequence[str], frames: "Sequence[pd.DataFrame]"
) -> None:
    """Refuse (ValueError) the column of an option, such as "id-column", unless it is empty, or in
    the tables of all paths.
    """
    for path, frame in zip(paths, frames, strict=True):
        if column and column not in frame:
            raise ValueError(f"--{option}: {path} has no column {column!r}; it has {list(frame)}")


def _texts(path: str, frame: "pd.DataFrame", column: str) -> list[str]:
    """The texts of a column of the table at ``path``; a ValueError where it holds other cells."""
    cells: list[Any] = frame[column].tolist()
    if not _are_texts(cells):
        raise ValueError(f"{path}: column {column!r} holds other cells than text")
    return cells


def _are_texts(cells: list[Any]) -> bool:
    return all(isinstance(cell, str) for cell in cells)


def _lines(path: str) -> list[str]:
    """The lines of a text file, stripped, but for empty ones."""
    source = open_source(path)
    with named(source):
        lines = (line.strip() for line in decoded(source.data).splitlines())
        return [line for line in lines if line]


def _array(path: str) -> NDArray[Any]:
    """The array of an NPY file, or of an NPZ file the one named images, else its first.

    Raises:
        TooLargeError: An array above the limit of memory.
        ValueError: No array; the message names the file.
    """
    source = open_source(path)
    with named(source):
        try:
            names = array_names(source.data)
            chosen = ["images"] if "images" in names else names[:1]
            return load_arrays(source.data, chosen)[0]
        except TooLargeError:
            raise
        except ValueError as error:
            raise ValueError(f"expected images in NPZ or NPY: {error}") from None


def _images(folder: str) -> NDArray[Any]:
    """The images of a folder, in the order of their names, shape (n, height, width) or with
    channels behind.

    Raises:
        TooLargeError: Images above the limit of memory.
        ValueError: A file that is no image, none, or images of several sizes.
    """
    from PIL import Image

    images: list[NDArray[Any]] = []
    pixels = 0  # as the images' headers claim them
    for name in visible_files(folder):
        try:
            with Image.open(Path(folder) / name) as image:
                pixels += image.width * image.height
                check_size(_PIXEL_BYTES * pixels, f"{folder}: {pixels:,} pixels")
                # Other modes, such as those with a palette or transparency, become RGB.
                is_plain = image.mode in ("L", "RGB", "I", "I;16", "F")
                images.append(np.asarray(image if is_plain else image.convert("RGB")))
        except (OSError, Image.DecompressionBombError):
            raise ValueError(f"{folder}: {name} is no image; move away what is none") from None
    shapes = {image.shape for image in images}
    if not shapes:
        raise ValueError(f"{folder}: there are no images")
    if len(shapes) > 1:
        raise ValueError(
            f"{folder}: there are images of several sizes, such as {min(shapes)} and {max(shapes)}"
        )
    return np.stack(images)
