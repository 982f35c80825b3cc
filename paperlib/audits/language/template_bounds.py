"""Bounds on what a program of others may take while it writes one text: memory and time.

A chat template cannot reach a file, but it can multiply a text or count without an end.
"""

import signal
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

SECONDS = 10.0
"""Processor time for one text."""
MEMORY = 1 << 30
"""Bytes beyond those that the process has, for one text."""
_EVERY = 0.5  # seconds; a program may swallow the first interruption
_SIZES = Path("/proc/self/statm")


class TakesTooMuchError(RuntimeError):
    """A program took more time than it may."""


@contextmanager
def bounded() -> Generator[None]:
    """Within, too much memory is a MemoryError, and too much time a `TakesTooMuchError`.

    Memory is bounded on Linux, time where there are timers (not on Windows) and in the main thread.
    """
    with ExitStack() as stack:
        stack.enter_context(_bounded_memory())
        stack.enter_context(_bounded_time())
        yield


@contextmanager
def _bounded_memory() -> Generator[None]:
    """Within, the process may ask for `MEMORY` bytes above what it has now, or for less where a
    limit of the system is lower; afterwards the limit is as it was.
    """
    try:
        import resource

        pages = int(_SIZES.read_text("ascii").split()[0])  # of the address space, now
    except (ImportError, OSError):
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + MEMORY
    limits = [limit]
    for earlier in (soft, hard):
        if earlier != resource.RLIM_INFINITY:
            limits.append(earlier)
    resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def _bounded_time() -> Generator[None]:
    """A timer on the processor time, which interrupts the main thread."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not hasattr(signal, "setitimer"):
        yield
        return
    handler = signal.signal(signal.SIGVTALRM, _interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS, _EVERY)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, handler)


def _interrupt(number: int, frame: Any) -> None:
    raise TakesTooMuchError(f"it took more than {SECONDS:.0f} s of processor time")
