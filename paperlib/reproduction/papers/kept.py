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
    """Arrays of a stage by name, computed once and then read from the user's cache.

    Args:
        config: Settings that the arrays depend on, as values of JSON.
        compute: Computes the arrays.
        code: Name of a module; the arrays are computed anew when the source that it reaches, the
            config, torch or the device changes.
    """
    return resumed_arrays(config, lambda _: compute(), code=code)


def resumed_arrays(
    config: Mapping[str, Any], compute: Callable[[Path], Mapping[str, Any]], *, code: str
) -> dict[str, np.ndarray]:
    """Arrays of a stage by name, computed once and then read from the user's cache, where a stopped
    computation goes on.

    Args:
        config: Settings that the arrays depend on, as values of JSON.
        compute: Computes the arrays; its argument is the file of a checkpoint, which it may write
            and from which it goes on.
        code: Name of a module; the arrays are computed anew when the source that it reaches, the
            config, torch or the device changes.
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
    """The result of each unit of a sweep, computed once and then read from ``folder``.

    Args:
        function: From a list of units to a list of their results.
        units: What is computed, each by itself, such as the settings of a model.
        folder: Where results are kept; they count as long as the code of ``function``, the data,
            torch and the device are the same.
        data: Identifies what is trained on, as values of JSON.
        options: Further arguments of `run_sweep`.
    """
    version = config_hash({"code": code_tag(function.__module__), "data": data, **machine()})
    return dict(run_sweep(function, units, folder=folder, version=version, **options))
