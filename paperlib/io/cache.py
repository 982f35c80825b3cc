"""A cache of named arrays, found again by the configuration that made them."""

import dataclasses
import errno
import hashlib
import io
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from filelock import SoftFileLease, Timeout

from paperlib.io.budget import stop_if_spent
from paperlib.io.files import (
    OutputError,
    canonical_json,
    config_hash,
    output_error,
    reason_of,
    write_bytes,
)
from paperlib.io.temporary import temporary_folder

T = TypeVar("T")
Arrays = dict[str, np.ndarray]
_NO_ROOM = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
)
"""Errors of a disk, on which work goes on without keeping."""
_not_kept: set[str] = set()  # folders of which this process has said so


@dataclass(frozen=True)
class Cache:
    """Arrays on disk, one file per configuration, in a folder that is made when the first one is
    written.

    An entry carries the checksum of its content and the configuration itself: one that is damaged,
    or of another configuration, counts as absent. Nothing is ever unpickled.
    """

    folder: Path

    def get(self, config: Mapping[str, Any], compute: Callable[[], Mapping[str, Any]]) -> Arrays:
        """The arrays of ``config``: read if a sound entry exists, else computed and kept.

        Processes that ask at one time, on machines that share the folder, compute it once (see
        `lease`). On a full or read-only disk, or without permission to write, the arrays are
        computed and not kept, which a line on stderr says once for each folder.

        Args:
            config: Everything the arrays depend on: typed configurations, seed, checksum of the
                data, and `code_tag` of the module that computes them. Dataclasses count with their
                type.

        Raises:
            OutputError: The folder of the cache is a file.
            BudgetSpent: The arrays are missing, and the time of the run is over.
            ValueError: ``config`` holds something JSON has no word for, or ``compute`` returned
                something other than arrays of numbers, truth values or text.
        """
        with ExitStack() as stack:
            held = lease(self.path(config).with_suffix(".lease"), lambda: self.find(config))
            try:
                entry = stack.enter_context(held)
            except OutputError as error:
                _go_on_without_keeping(self.folder, error)
                entry = None
            if entry is not None:
                return entry
            stop_if_spent()
            arrays = _checked({name: np.asarray(value) for name, value in compute().items()})
            try:
                self.put(config, arrays)
            except OutputError as error:
                _go_on_without_keeping(self.folder, error)
            return arrays

    def resumed(
        self, config: Mapping[str, Any], compute: Callable[[Path], Mapping[str, Any]]
    ) -> Arrays:
        """The arrays of ``config``, read or computed and kept as by `get`, with its errors, where
        the computation can go on after a stop.

        ``compute`` is handed the path of a file for its state, which it may find there, and which
        is removed in the end. Where the cache cannot be written, it is in a temporary folder.
        """
        checkpoint = self.path(config).with_suffix(".checkpoint")

        def computed() -> Mapping[str, Any]:
            """What ``compute`` returns, with its checkpoint where the cache can be written, else in
            a folder that is removed.
            """
            if _is_writable(self.folder):
                return compute(checkpoint)
            with temporary_folder(Path(tempfile.gettempdir()), "paperlib-") as folder:
                return compute(folder / checkpoint.name)

        arrays = self.get(config, computed)
        with suppress(OSError):  # of a read-only disk
            checkpoint.unlink(missing_ok=True)
        return arrays

    def find(self, config: Mapping[str, Any]) -> Arrays | None:
        """The arrays of ``config`` by name, or None when there is no sound entry."""
        path = self.path(config)
        if not path.is_file():
            return None
        # A line with the checksum of the rest, a line with the configuration, then the arrays.
        head, _, body = path.read_bytes().partition(b"\n")
        stored, _, arrays = body.partition(b"\n")
        if head != _head(body) or stored != _text(config):
            return None
        try:
            with np.load(io.BytesIO(arrays), allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        except (ValueError, OSError, zipfile.BadZipFile):
            return None

    def put(self, config: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Keep arrays under ``config``, in one piece or not at all.

        Raises:
            OutputError: The file cannot be written.
            ValueError: ``config`` holds something JSON has no word for, or an array of objects.
        """
        _checked(arrays)
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **dict(arrays))
        body = _text(config) + b"\n" + buffer.getvalue()
        write_bytes(self.path(config), _head(body) + b"\n" + body)

    def path(self, config: Mapping[str, Any]) -> Path:
        """Path of the entry of ``config``, which need not exist."""
        return self.folder / f"{config_hash(typed(config))}.cache"


def _checked(arrays: Mapping[str, np.ndarray]) -> Arrays:
    """The arrays; a ValueError for one of objects, which is never kept."""
    for name, values in arrays.items():
        if values.dtype.hasobject:
            raise ValueError(
                f"{name}: expected an array of numbers, truth values or text, got objects"
            )
    return dict(arrays)


def _go_on_without_keeping(folder: Path, error: OSError) -> None:
    """Say once for each folder, on stderr, that nothing is kept there; raise the error where it is
    not the disk (full, read-only, without permission).
    """
    cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
    if cause.errno not in _NO_ROOM:
        raise error
    if str(folder) not in _not_kept:
        _not_kept.add(str(folder))
        print(f"{folder}: {reason_of(cause)}; what is computed is not kept", file=sys.stderr)


def _is_writable(folder: Path) -> bool:
    """Whether a file can be written in a folder, which is made if it is not there: a byte is tried,
    since a full disk tells nothing before.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
            file.flush()
    except OSError:
        return False
    return True


def typed(value: Any) -> Any:
    """A configuration in which every dataclass names its type, so that no two types give the same
    key.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        values = {field.name: typed(getattr(value, field.name)) for field in fields}
        return {"": type(value).__qualname__, **values}
    if isinstance(value, Mapping):
        return {str(name): typed(item) for name, item in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, tuple | list):
        return [typed(item) for item in cast(list[Any], value)]
    return value


def _text(config: Mapping[str, Any]) -> bytes:
    return canonical_json(typed(config)).encode("utf-8")


def _head(body: bytes) -> bytes:
    return b"paperlib-cache-1 " + hashlib.sha256(body).hexdigest().encode()


@contextmanager
def lease(
    path: Path, ready: Callable[[], T | None], *, seconds: float = 120.0
) -> Iterator[T | None]:
    """Hold the lease on making something while the block runs, or hand over what another process
    made.

    Guarantee:
        Of many processes that ask at one time, one gets None and holds the lease; the others wait,
        and get what ``ready`` finds, or the lease if its holder failed, died, or did not renew it.
        No process waits longer than ``seconds`` for one that is dead, and not at all if that one
        ran on the same machine and its parent has noticed its end.

    Args:
        path: File of the lease, removed at the end; an OutputError if it cannot be written.
        ready: What is to be made; None as long as it is missing. Asked again once the lease is
            held.
        seconds: Age at which a lease counts as lost, above 0; its holder renews it six times as
            often. Each waiting process counts from the last renewal that it saw, so that clocks
            need not agree.
    """
    ready_now = ready()
    held = SoftFileLease(path, lease_duration=seconds, heartbeat_interval=seconds / 6)
    if ready_now is None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            held.acquire(cancel_check=lambda: ready() is not None)
        except Timeout:  # another process made it
            pass
        except OSError as error:
            raise output_error(path, error) from error
        ready_now = ready()
    try:
        yield ready_now
    finally:
        held.release()
