"""Leases: one process at a time makes a file, on one machine or on many that share a folder."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from filelock import SoftFileLease, Timeout

from paperlib.io.files import output_error

T = TypeVar("T")

LEASE_SECONDS = 120.0
"""Age at which a lease that nobody renewed is taken over; its holder renews it six times as often."""


@contextmanager
def lease(path: Path, ready: Callable[[], T | None], *, seconds: float = LEASE_SECONDS) -> Iterator[T | None]:
    """Hold the lease on making something while the block runs, or hand over what another process made.

    Guarantee:
        Of many processes that ask at one time, one gets None and holds the lease; the others wait, and get
        what ``ready`` finds, or the lease if its holder failed, died, or did not renew it. No process waits
        longer than ``seconds`` for one that is dead, and not at all if that one ran on the same machine and
        its parent has noticed its end.

    Args:
        path: File of the lease, which holds its owner; removed at the end. Its folder is made.
        ready: Finds what is to be made; None as long as it is missing. Asked again once the lease is held.
        seconds: Age at which a lease counts as lost, above 0. Measured by each waiting process from when it
            last saw a renewal, so that clocks of machines need not agree.

    Raises:
        OutputError: The file cannot be written.
    """
    found = ready()
    held = SoftFileLease(path, lease_duration=seconds, heartbeat_interval=seconds / 6)
    if found is None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            held.acquire(cancel_check=lambda: ready() is not None)
        except Timeout:  # another process made it
            pass
        except OSError as error:
            raise output_error(path, error) from error
        found = ready()
    try:
        yield found
    finally:
        held.release()
