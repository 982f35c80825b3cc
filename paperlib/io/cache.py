"""A cache of named arrays, found again by the configuration that made them."""

import dataclasses
import hashlib
import io
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from filelock import SoftFileLease, Timeout

from paperlib.io.files import canonical_json, config_hash, output_error, write_bytes

T = TypeVar("T")
Arrays = dict[str, np.ndarray]

_MAGIC = b"paperlib-cache-1"
_LEASE_SECONDS = 120.0


@dataclass(frozen=True)
class Cache:
    """Arrays on disk, one file per configuration.

    An entry carries the checksum of its content and the configuration itself. An entry that is
    damaged, or belongs to another configuration, counts as absent: it is computed and written
    again. Nothing is ever unpickled.

    Args:
        folder: Folder of the entries; made when the first one is written.
    """

    folder: Path

    def get(self, config: Mapping[str, Any], compute: Callable[[], Mapping[str, Any]]) -> Arrays:
        """The arrays of ``config``: read if a sound entry exists, else computed and kept.

        Processes that ask at one time, on machines that share the folder, compute an entry once: one of
        them holds the entry's lease, and the others wait for what it keeps (see `lease`).

        Args:
            config: Everything the arrays depend on: typed configurations, seed, checksum of the data, and
                `code_tag` of the module that computes them. Dataclasses count with their type.
            compute: Makes the arrays; called only when there is no sound entry.

        Raises:
            OutputError: The entry cannot be written.
            ValueError: ``config`` holds something JSON has no word for, or ``compute`` returned
                something other than arrays of numbers, truth values or text.

        >>> import tempfile
        >>> cache = Cache(Path(tempfile.mkdtemp()))
        >>> cache.get({"seed": 0}, lambda: {"losses": [1.0, 2.0]})["losses"]
        array([1., 2.])
        >>> cache.get({"seed": 0}, lambda: {"losses": "not called again"})["losses"]
        array([1., 2.])
        """
        with lease(self.path(config).with_suffix(".lease"), lambda: self.find(config)) as entry:
            if entry is not None:
                return entry
            arrays = {name: np.asarray(value) for name, value in compute().items()}
            self.put(config, arrays)
            return arrays

    def find(self, config: Mapping[str, Any]) -> Arrays | None:
        """The arrays of ``config``, or None when there is no sound entry."""
        path = self.path(config)
        return _decode(path.read_bytes(), _text(config)) if path.is_file() else None

    def put(self, config: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Keep arrays under ``config``, in one piece or not at all.

        Raises:
            OutputError: The entry cannot be written.
            ValueError: An array holds Python objects.
        """
        write_bytes(self.path(config), _encode(_text(config), arrays))

    def path(self, config: Mapping[str, Any]) -> Path:
        """Path of the entry of ``config``, which need not exist."""
        return self.folder / f"{config_hash(typed(config))}.cache"


def typed(value: Any) -> Any:
    """A configuration in which every dataclass names its type, so that no two types give the same key.

    >>> @dataclass(frozen=True)
    ... class Trees:
    ...     leaves: int
    >>> typed({"attack": Trees(4)})
    {'attack': {'': 'Trees', 'leaves': 4}}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: typed(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"": type(value).__qualname__, **parts}
    if isinstance(value, Mapping):
        return {str(name): typed(one) for name, one in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, tuple | list):
        return [typed(one) for one in cast(list[Any], value)]
    return value


def _text(config: Mapping[str, Any]) -> str:
    return canonical_json(typed(config))


def _encode(config: str, arrays: Mapping[str, np.ndarray]) -> bytes:
    for name, values in arrays.items():
        if values.dtype.hasobject:
            raise ValueError(f"{name}: expected an array of numbers, truth values or text, got objects")
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **dict(arrays))
    body = config.encode("utf-8") + b"\n" + buffer.getvalue()
    return _MAGIC + b" " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def _decode(data: bytes, config: str) -> Arrays | None:
    head, _, body = data.partition(b"\n")
    if head != _MAGIC + b" " + hashlib.sha256(body).hexdigest().encode():
        return None
    stored, _, arrays = body.partition(b"\n")
    if stored != config.encode("utf-8"):
        return None
    try:
        with np.load(io.BytesIO(arrays), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, OSError, zipfile.BadZipFile):
        return None


@contextmanager
def lease(
    path: Path, ready: Callable[[], T | None], *, seconds: float = _LEASE_SECONDS
) -> Iterator[T | None]:
    """Hold the lease on making something while the block runs, or hand over what another process made.

    Guarantee:
        Of many processes that ask at one time, one gets None and holds the lease; the others wait, and get
        what ``ready`` finds, or the lease if its holder failed, died, or did not renew it. No process waits
        longer than ``seconds`` for one that is dead, and not at all if that one ran on the same machine and
        its parent has noticed its end.

    Args:
        path: File of the lease, which holds its owner; removed at the end. Its folder is made.
        ready: Finds what is to be made; None as long as it is missing. Asked again once the lease is held.
        seconds: Age at which a lease counts as lost, above 0; its holder renews it six times as often. Each
            waiting process measures it from the last renewal that it saw, so clocks need not agree.

    Raises:
        OutputError: The file cannot be written.
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
