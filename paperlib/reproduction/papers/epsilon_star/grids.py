"""The grids behind Figures 1 and 2 at several sizes."""

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

import pandas as pd

from paperlib.core.checks import check_choice
from paperlib.reproduction.papers.epsilon_star.landscape_models import LandscapeConfig
from paperlib.reproduction.papers.settings import settings_beside

SIZES = ("smoke", "default", "gpu", "paper", "rehearsal")
ARCHITECTURES = ("", "tanh-128")


def landscape_config(
    dataset: str, *, size: str = "default", architecture: str = "", models: int = 0
) -> LandscapeConfig:
    """The grid of a data set, with ``models`` of each strategy, 0 for the grid's own number.

    A ValueError for an unknown data set, size or architecture, "" for the plain one.
    """
    configs = settings_beside(__file__)
    check_choice("dataset", dataset, tuple(configs))
    check_choice("size", size, SIZES)
    check_choice("architecture", architecture, ARCHITECTURES)
    config = LandscapeConfig(dataset=dataset, **configs[dataset][size])
    if models:
        config = replace(config, seeds=models)
    return replace(config, widths=(128,), activation="tanh") if architecture else config


def grids(configs: Iterable[LandscapeConfig]) -> pd.DataFrame:
    """The settings of grids, a column for each data set."""
    columns = {config.dataset: pd.Series(asdict(config)).map(_shown) for config in configs}
    table = pd.DataFrame(columns)
    table.insert(0, "setting", table.index.str.replace("_", " "))
    return table.drop(index=["dataset", "seed", "confidence"]).reset_index(drop=True)


def _shown(value: Any) -> str:
    """A setting as a table shows it; None, of microbatches, is "each record"."""
    if value is None:
        return "each record"
    if isinstance(value, tuple | list):
        nested = any(isinstance(item, tuple | list) for item in value)
        return ("; " if nested else ", ").join(map(_shown, value)) or "–"
    return f"{value:g}" if isinstance(value, float) else str(value)
