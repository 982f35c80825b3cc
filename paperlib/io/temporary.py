"""Temporary files and folders whose names say which process made them, so that those of killed
processes go.
"""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from socket import gethostname

_cleaned: set[str] = set()  # folders in which this process has looked for leftovers


def temporary_file(folder: Path, name: str) -> tuple[int, str]:
    """Handle and path of a new file in ``folder``, whose hidden name begins like ``name``.

    What killed processes of this user left there is removed. An OSError if it cannot be made.
    """
    remove_leftovers(folder)
    # A file's name may have 255 bytes.
    return tempfile.mkstemp(dir=folder, prefix=f".{name[:40]}.{_mark()}", suffix=".part")


@contextmanager
def temporary_folder(parent: Path, name: str) -> Iterator[Path]:
    """A new folder in ``parent`` for this user alone, whose name begins with ``name``, and which is
    removed at the end of the block.

    What killed processes of this user left in ``parent`` is removed. An OSError if it cannot be
    made.
    """
    remove_leftovers(parent)
    folder = Path(tempfile.mkdtemp(dir=parent, prefix=f"{name}{_mark()}"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files and folders of dead processes of this user and machine, once for each
    process and folder.
    """
    key = os.path.abspath(folder)
    if key in _cleaned or os.name != "posix":  # elsewhere a process cannot be asked for safely
        return
    _cleaned.add(key)
    ours = re.compile(rf".+{_machine()}-(\d+)-[a-z0-9_]{{8}}(\.part)?")
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            named = ours.fullmatch(entry.name)
            if named is not None and _is_dead(int(named[1])):
                _remove(entry)


def _remove(entry: "os.DirEntry[str]") -> None:
    """Remove a file or folder if it is this user's; a link is not followed."""
    with suppress(OSError):
        if entry.stat(follow_symlinks=False).st_uid != os.getuid():
            return
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            os.unlink(entry.path)


def _mark() -> str:
    """The part of a temporary name that tells the machine and the process."""
    return f"{_machine()}-{os.getpid()}-"


@cache
def _machine() -> str:
    """Eight digits for this machine, or container: within it a process has a number of its own."""
    try:
        numbers = os.readlink("/proc/self/ns/pid")
    except OSError:  # no Linux
        numbers = ""
    return hashlib.sha256(f"{gethostname()} {numbers}".encode()).hexdigest()[:8]


def _is_dead(process: int) -> bool:
    """Whether no process of this machine has this number."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # of another user
        return False
    return False
