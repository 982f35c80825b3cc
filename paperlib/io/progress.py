"""A progress bar on the terminal; silent when ``PAPERLIB_PROGRESS=0``, as everywhere in this
package.
"""

import os
import sys

from tqdm.std import tqdm


def progress_bar(
    total: int, *, label: str, unit: str = "it", initial: int = 0, show: bool = True
) -> tqdm:
    """A bar to ``update``; nothing is printed where ``show`` is false."""
    silent = not show or os.environ.get("PAPERLIB_PROGRESS") == "0"
    return tqdm(
        total=total,
        desc=label,
        unit=unit,
        initial=initial,
        disable=silent,
        file=sys.stderr,
        leave=False,
    )
