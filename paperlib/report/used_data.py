"""`used_data`: the checksums of the data behind a run, kept in its result file."""

import hashlib

import numpy as np

from paperlib.report.display import keep_line, one_line

USED_DATA_FILE = "used_data.jsonl"
"""Name of the file in the run's folder to which `used_data` adds one line per data set."""


def used_data(name: str, content: bytes | np.ndarray) -> str:
    """Note in the result file which data a run used, by checksum.

    Args:
        name: Name of the data set.
        content: Bytes of the data, or the array they were read into.

    Returns:
        The SHA-256 as 64 hexadecimal digits.

    >>> used_data("nothing", b"")[:8]
    'e3b0c442'
    """
    raw = content if isinstance(content, bytes) else np.ascontiguousarray(content).tobytes()
    digest = hashlib.sha256(raw).hexdigest()
    keep_line(USED_DATA_FILE, {"name": one_line("name", name), "sha256": digest})
    return digest
