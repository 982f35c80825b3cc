"""Settings of experiments and printed facts, in a YAML file beside the module that uses them."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml


@cache
def settings_beside(module: str) -> Any:
    """What the YAML file of a module's path says, lists as tuples."""
    return _tuples(yaml.safe_load(Path(module).with_suffix(".yaml").read_text("utf-8")))


def _tuples(value: Any) -> Any:
    """The same value, with tuples for the lists in it at any depth."""
    if isinstance(value, dict):
        return {name: _tuples(item) for name, item in value.items()}
    if isinstance(value, list):
        return tuple(_tuples(item) for item in value)
    return value
