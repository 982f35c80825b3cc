"""What experiments computed, kept in the user's cache until settings, code, data, torch or device
change.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paperlib.io import Cache, user_cache_folder
from paperlib.io.files import config_hash
from paperlib.io.sources import code_tag
from paperlib.models.devices import default_device
from paperlib.reproduction.sweeps import run_sweep


def machine() -> dict[str, str]:
    """What numbers may depend on beside settings, code and data."""
    return {"torch": torch.__version__, "device": default_device().type}


def cached_arrays(
    config: Mapping[str, Any], compute: Callable[[], Mapping[str, Any]], *, code: str
) -> dict[str, np.ndarray]:
    """Arrays of a stage that ``config`` and what the module ``code`` reaches determine.

    ``code`` is the name of a module; the arrays of ``compute`` are kept until either changes.
    """
    return resumed_arrays(config, lambda _: compute(), code=code)


def resumed_arrays(
    config: Mapping[str, Any], compute: Callable[[Path], Mapping[str, Any]], *, code: str
) -> dict[str, np.ndarray]:
    """As `cached_arrays`; ``compute`` is handed the path of a checkpoint, from which a run goes
    on.
    """
    key = {**config, **machine(), "code": code_tag(code)}
    return Cache(user_cache_folder() / "language").resumed(key, compute)


def kept_runs(
    function: Callable[..., Any],
    units: Sequence[Any],
    *,
    folder: Path,
    data: Any = None,
    **options: Any,
) -> dict[Any, Any]:
    """The result of each unit of `run_sweep`, in ``folder``; ``data`` identifies what is trained
    on.
    """
    version = config_hash({"code": code_tag(function.__module__), "data": data, **machine()})
    return dict(run_sweep(function, units, folder=folder, version=version, **options))
