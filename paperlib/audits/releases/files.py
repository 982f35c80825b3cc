"""A release, members and non-members from files: tables, texts, or folders of images."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.audits.releases.rows import Rows
from paperlib.core.reading import read_frames
from paperlib.core.reading.tables import decoded, named, open_source
from paperlib.io.files import visible_files


def read_rows(
    paths: Sequence[str], *, text_column: str = "", id_column: str = ""
) -> tuple[list[Rows], list[str] | None]:
    """Rows of each file, the release first, and names of all but those of the release, if there are
    any.
    """
    kinds = [_kind(path) for path in paths]
    if set(kinds) == {"table"}:
        return _frames(paths, text_column, id_column)
    if text_column or id_column:
        raise ValueError(f"--{'text' if text_column else 'id'}-column: not every file is a table")
    readers: dict[str, Callable[[str], Rows]] = {
        "folder": _pictures,
        "array": _array,
        "lines": _lines,
        "table": lambda path: _frames([path])[0][0],
    }
    rows = [readers[kind](path) for kind, path in zip(kinds, paths, strict=True)]
    if set(kinds[1:]) == {"folder"}:
        return rows, [
            f"{path}/{name.as_posix()}" for path in paths[1:] for name in visible_files(path)
        ]
    return rows, None


def _kind(path: str) -> str:
    name = path.lower().removesuffix(".gz")
    if Path(path).is_dir():
        return "folder"
    return (
        "array"
        if name.endswith((".npz", ".npy"))
        else "lines"
        if name.endswith(".txt")
        else "table"
    )


def _frames(
    paths: Sequence[str], text: str = "", ids: str = ""
) -> tuple[list[Rows], list[str] | None]:
    frames, names = read_frames(paths), None
    for option, column, least in (("text-column", text, 0), ("id-column", ids, 1)):
        for path, frame in zip(paths[least:], frames[least:], strict=True):
            if column and column not in frame:
                raise ValueError(
                    f"--{option}: {path} has no column {column!r}; it has {list(frame)}"
                )
    if ids:
        names = [str(name) for frame in frames[1:] for name in frame[ids]]
        frames = [frame.drop(columns=ids, errors="ignore") for frame in frames]
    columns: list[list[Any]] = [
        frame[[text] if text else frame.columns[:1]].values.ravel().tolist() for frame in frames
    ]
    are_texts = [all(isinstance(cell, str) for cell in column) for column in columns]
    if text and not all(are_texts):
        raise ValueError(
            f"{paths[are_texts.index(False)]}: column {text!r} holds other cells than text"
        )
    if text or (all(are_texts) and all(frame.shape[1] == 1 for frame in frames)):
        return list(columns), names
    return list(frames), names


def _lines(path: str) -> list[str]:
    with named(source := open_source(path)):
        return [line.strip() for line in decoded(source.data).splitlines() if line.strip()]


def _array(path: str) -> NDArray[Any]:
    with named(open_source(path)):
        try:
            content: Any = np.load(path, allow_pickle=False)
            names = getattr(content, "files", [])
            return content["images" if "images" in names else names[0]] if names else content
        except (OSError, EOFError, ValueError) as error:
            raise ValueError(f"expected images in NPZ or NPY: {error}") from None


def _pictures(folder: str) -> NDArray[Any]:
    from PIL import Image

    pictures: list[NDArray[Any]] = []
    for name in visible_files(folder):
        try:
            with Image.open(Path(folder) / name) as picture:
                plain = picture.mode in ("L", "RGB", "I", "I;16", "F")
                pictures.append(np.asarray(picture if plain else picture.convert("RGB")))
        except OSError:
            raise ValueError(f"{folder}: {name} is no image; move away what is none") from None
    shapes = {picture.shape for picture in pictures}
    if len(shapes) != 1:
        found = (
            f"images of several sizes, such as {min(shapes)} and {max(shapes)}"
            if shapes
            else "no images"
        )
        raise ValueError(f"{folder}: there are {found}")
    return np.stack(pictures)
