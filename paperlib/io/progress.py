"""A progress bar on the terminal; silent when ``PAPERLIB_PROGRESS=0``, as everywhere in this
package.
"""

import os
import sys

from tqdm.std import tqdm

from paperlib.core.visible import stream_below, visible_text

_LONGEST_LABEL = 60  # characters


def progress_bar(
    total: int, *, label: str, unit: str = "it", initial: int = 0, show: bool = True
) -> tqdm:
    """A bar to ``update`` on stderr, of ``total`` steps, of which ``initial`` are done; ``unit``
    is what a step is called. Nothing is printed where ``show`` is false.
    """
    silent = not show or os.environ.get("PAPERLIB_PROGRESS") == "0"
    return tqdm(
        total=total,
        desc=visible_text(label, _LONGEST_LABEL),
        unit=unit,
        initial=initial,
        disable=silent,
        file=stream_below(sys.stderr),
        leave=False,
    )
