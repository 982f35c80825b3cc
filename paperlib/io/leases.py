"""Leases: one process at a time makes a file, on one machine or on many that share a folder."""

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from paperlib.io.files import output_error

T = TypeVar("T")

LEASE_SECONDS = 120.0
"""Age at which a lease that nobody renewed is taken over; its holder renews it six times as often."""
_RENEWALS = 6
_FIRST_POLL, _LONGEST_POLL = 0.02, 2.0


@contextmanager
def lease(path: Path, ready: Callable[[], T | None], *, seconds: float = LEASE_SECONDS) -> Iterator[T | None]:
    """Hold the lease on making something while the block runs, or hand over what another process made.

    Guarantee:
        Of many processes that ask at one time, one gets None and holds the lease; the others wait, and get
        what ``ready`` finds, or the lease if its holder failed, died, or did not renew it. No process waits
        longer than ``seconds`` for one that is dead, and not at all if that one ran on the same machine.

    Args:
        path: File of the lease, which holds its owner; removed at the end. Its folder is made.
        ready: Finds what is to be made; None as long as it is missing. Asked again once the lease is held.
        seconds: Age at which a lease counts as lost, above 0. Measured by each waiting process from when it
            last saw a renewal, so that clocks of machines need not agree.

    Raises:
        OutputError: The file cannot be written.
    """
    mine = _Owner.new()
    watch = _Watch(path, seconds)
    while (found := ready()) is None and not _created(path, mine):
        watch.wait_or_take_over()
    if found is not None:
        yield found
        return
    try:
        with _renewed(path, mine, seconds / _RENEWALS):
            yield ready()
    finally:
        if _Owner.of(path) == mine:
            path.unlink(missing_ok=True)


@dataclass(frozen=True)
class _Owner:
    """Who holds a lease; each has a word of its own, since processes come and go with the same number."""

    host: str
    process: int
    word: str

    @classmethod
    def new(cls) -> "_Owner":
        return cls(_host(), os.getpid(), uuid.uuid4().hex)

    @classmethod
    def of(cls, path: Path) -> "_Owner | None":
        """The owner that a file names; None without a file, or while its owner has still to write it."""
        try:
            host, process, word = path.read_text(encoding="utf-8").split("\n")
            return cls(host, int(process), word)
        except (OSError, ValueError):
            return None

    def __str__(self) -> str:
        return f"{self.host}\n{self.process}\n{self.word}"

    @property
    def is_dead(self) -> bool:
        """Whether the process is known to have ended, which only its own machine can tell."""
        if self.host != _host() or os.name == "nt":
            return False
        try:
            os.kill(self.process, 0)
            stat = Path(f"/proc/{self.process}/stat").read_text(encoding="utf-8", errors="replace")
        except ProcessLookupError:
            return True
        except OSError:
            return False  # the process of another user, or a system without /proc
        return stat.rpartition(")")[2].split()[0] in "ZX"


@cache
def _host() -> str:
    """This machine; in a container with process numbers of its own, that container."""
    try:
        numbers = os.readlink("/proc/self/ns/pid")
    except OSError:
        numbers = ""
    return f"{socket.gethostname()} {numbers}".strip()


def _created(path: Path, owner: _Owner) -> bool:
    """Whether this call made the file; creating it is the one step that two cannot both succeed in."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise output_error(path, error) from error
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    except FileExistsError:
        return False
    except OSError as error:
        raise output_error(path, error) from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(str(owner))
    except OSError as error:
        path.unlink(missing_ok=True)
        raise output_error(path, error) from error
    return True


class _Watch:
    """Looks at the lease of another process until it is free, and takes it over once it is lost."""

    def __init__(self, path: Path, seconds: float) -> None:
        self._path, self._seconds = path, seconds
        self._pause = _FIRST_POLL
        self._seen: tuple[int, _Owner | None] | None = None
        self._since = 0.0

    def wait_or_take_over(self) -> None:
        try:
            # Opened first: on a network file system this is what fetches a file's present state.
            owner = _Owner.of(self._path)
            seen = (self._path.stat().st_mtime_ns, owner)
        except FileNotFoundError:
            return  # it is free
        now = time.monotonic()
        if seen != self._seen:
            self._seen, self._since = seen, now
        if (owner is not None and owner.is_dead) or now - self._since > self._seconds:
            _take_away(self._path, owner)
            return
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, _LONGEST_POLL)


def _take_away(path: Path, lost: _Owner | None) -> None:
    """Remove the lease of a lost owner, but not the lease of one that took it over in the meantime."""
    away = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        path.rename(away)  # succeeds for one process
    except OSError:
        return
    if _Owner.of(away) != lost:
        with suppress(OSError):
            os.link(away, path)
    away.unlink(missing_ok=True)


@contextmanager
def _renewed(path: Path, owner: _Owner, every: float) -> Iterator[None]:
    """Renew a lease, by the time of its file, for as long as the block runs and the lease is held."""
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(every) and _Owner.of(path) == owner:
            with suppress(OSError):
                os.utime(path)

    thread = threading.Thread(target=renew, name=f"lease {path.name}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
