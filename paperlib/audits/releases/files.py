"""A release, members and non-members from files: tables, texts, or folders of images."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.audits.releases.rows import Rows
from paperlib.core.reading import read_frames
from paperlib.core.reading.tables import decoded, named, open_source

_ARRAYS = (".npz", ".npy")


def read_rows(
    paths: Sequence[str], *, text_column: str = "", id_column: str = ""
) -> tuple[list[Rows], list[str] | None]:
    """Rows of each file, the release first, and names of all rows but those of the release.

    Args:
        paths: CSV, JSON lines or Parquet; ``.txt`` with one text a line; a folder of images, or NPZ or NPY
            with one array of them.
        text_column: Column that is audited as text; by default a table with one column, of text, is texts.
        id_column: Column that names rows, in all files but perhaps the release; it is not compared.

    Raises:
        ValueError: A file that is none of these, no such column, images of different sizes.
        FileNotFoundError: There is no such file.
    """
    kinds = [_kind(path) for path in paths]
    if set(kinds) == {"table"}:
        return _frames(paths, text_column, id_column)
    if text_column or id_column:
        option = "text-column" if text_column else "id-column"
        raise ValueError(f"--{option}: {paths[0]} has no columns")
    readers = {
        "images": _pictures,
        "array": _array,
        "lines": _lines,
        "table": lambda path: _frames([path])[0][0],
    }
    rows = [readers[kind](path) for kind, path in zip(kinds, paths, strict=True)]
    if set(kinds[1:]) == {"images"}:
        return rows, [f"{path}/{name}" for path in paths[1:] for name in _files(path)]
    return rows, None


def _kind(path: str) -> str:
    if Path(path).is_dir():
        return "images"
    name = path.lower()
    return (
        "array"
        if name.endswith(_ARRAYS)
        else "lines"
        if name.removesuffix(".gz").endswith(".txt")
        else "table"
    )


def _frames(paths: Sequence[str], text: str = "", ids: str = "") -> tuple[list[Rows], list[str] | None]:
    frames, names = read_frames(paths), None
    for option, column, least in (("text-column", text, 0), ("id-column", ids, 1)):
        for path, frame in zip(paths[least:], frames[least:], strict=True):
            if column and column not in frame:
                raise ValueError(f"--{option}: {path} has no column {column!r}; it has {list(frame)}")
    if ids:
        names = [str(name) for frame in frames[1:] for name in frame[ids]]
        frames = [frame.drop(columns=ids, errors="ignore") for frame in frames]
    for path, frame in zip(paths, frames, strict=True) if text else ():
        if not frame[text].map(lambda cell: isinstance(cell, str)).all():
            raise ValueError(
                f"{path}: column {text!r} holds no text, or not in every row; fill or drop these"
            )
    if text:
        return [frame[text].tolist() for frame in frames], names
    if all(
        frame.shape[1] == 1 and frame.iloc[:, 0].map(lambda cell: isinstance(cell, str)).all()
        for frame in frames
    ):
        return [frame.iloc[:, 0].tolist() for frame in frames], names
    return list(frames), names


def _lines(path: str) -> list[str]:
    source = open_source(path)
    with named(source):
        return [line.strip() for line in decoded(source.data).splitlines() if line.strip()]


def _array(path: str) -> NDArray[Any]:
    source = open_source(path)
    with named(source):
        try:
            content: Any = np.load(path, allow_pickle=False)
            names = list(getattr(content, "files", [""]))
            name = "images" if "images" in names else names[0] if len(names) == 1 else None
            if name is None:
                raise ValueError(f"expected one array, or one called images, got {', '.join(names)}")
            return content[name] if name else content
        except (OSError, EOFError, ValueError) as error:
            raise ValueError(f"expected images in NPZ or NPY: {error}") from None


def _files(folder: str) -> list[str]:
    files = (one.relative_to(folder) for one in Path(folder).rglob("*") if one.is_file())
    return sorted(one.as_posix() for one in files if not any(part.startswith(".") for part in one.parts))


def _pictures(folder: str) -> NDArray[Any]:
    from PIL import Image, UnidentifiedImageError

    pictures: list[NDArray[Any]] = []
    for name in _files(folder):
        try:
            with Image.open(Path(folder) / name) as picture:
                grey = picture.mode in ("1", "L", "I;16", "I", "F")
                pictures.append(np.asarray(picture.convert("L" if grey else "RGB")))
        except (OSError, UnidentifiedImageError):
            raise ValueError(f"{folder}: {name} is no image; move away what is none") from None
    if not pictures:
        raise ValueError(f"{folder}: there are no images")
    shapes = {picture.shape for picture in pictures}
    if len(shapes) > 1:
        raise ValueError(
            f"{folder}: images of several sizes or modes, such as {min(shapes)} and {max(shapes)}"
        )
    return np.stack(pictures)
