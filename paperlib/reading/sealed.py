"""Sealed files: content and its SHA-256, read as it was written or refused."""

import json
import os
from collections.abc import Mapping
from os import PathLike
from typing import Any, cast

from paperlib.core.sealed import sealed_hash, sealed_text
from paperlib.reading.files import read_file


def write_sealed(path: str | PathLike[str], content: Mapping[str, Any]) -> None:
    """Write content and hash, for the owner's eyes alone, on disk when it returns.

    Raises:
        ValueError: A file is there, which stays.
        OSError: It cannot be written, such as on a full disk; then there is none.
    """
    text = json.dumps(
        {**content, "hash": sealed_hash(sealed_text(content))}, indent=1, sort_keys=True
    )
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        what = str(content["format"]).removeprefix("paperlib ")
        raise ValueError(f"{path}: exists already; a {what} file is never overwritten") from None
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(f"{text}\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        os.unlink(path)
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    except BaseException:
        os.unlink(path)
        raise


def read_sealed(
    path: str | PathLike[str] | Mapping[str, Any], form: str, version: int, *, by: str
) -> dict[str, Any]:
    """The content of a sealed file, or of its JSON as a mapping, without the hash.

    Args:
        path: The file, or the mapping.
        form: The format that the content must name, such as "paperlib coins".
        version: The version that it must name.
        by: What writes such files, for the message.

    Raises:
        ValueError: Another format or version, or content that was changed after it was sealed.
        OSError: There is no such file.
    """
    what = form.removeprefix("paperlib ")
    if isinstance(path, Mapping):
        path, content = what, dict(path)
    else:
        text = read_file(os.fspath(path))
        try:
            content = json.loads(text.decode("utf-8"))
        except (ValueError, RecursionError):  # lists within lists without end
            content = None
    values = cast(dict[str, Any], content if isinstance(content, dict) else {})
    if values.get("format") != form:
        raise ValueError(f"{path}: is no {what} file; {by} write one")
    if values.get("version") != version:
        raise ValueError(
            f"{path}: has version {values.get('version')!r}; this paperlib reads {version}"
        )
    stated, actual = values.pop("hash", None), sealed_hash(sealed_text(values))
    if stated != actual:
        raise ValueError(
            f"{path}: was changed after it was sealed (hash {stated}, of its content {actual}); "
            "use an unchanged copy"
        )
    return values
