"""Runs on other images, made once and kept with the book: their table and the sample grid of the first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from paperlib.io import read_result
from paperlib.papers.measured import kept_file, measured_table

_OWN, _HELPERS = "panoramia (paper form)", "panoramia (helpers form)"
_NAMES = {
    "train_metric": "train_accuracy",
    "test_metric": "test_accuracy",
    f"{_OWN} c_lb": "c_lb",
    f"{_OWN} c+eps_lb": "c_plus_eps_lb",
    "eps_tilde": "eps_tilde",
    "helpers_eps_tilde": "helpers_eps_tilde",
    "rm_rn (paper form) value": "rm_rn",
    "o1 (paper form) value": "o1",
}


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """Runs of the page on images that were made before, equal but for the seed."""

    table: pd.DataFrame  # of `whole_table`, with the seed of the run in front
    origin: str  # date and place of the run, as text
    parameters: Mapping[str, Any]
    grid: NDArray[np.uint8]  # sample images, shape (height, width, 3)

    @property
    def means(self) -> pd.DataFrame:
        """Means over models, with the deviation of eps-tilde; accuracies in per cent, bounds in nats."""
        table = self.table.copy()
        for name, form in (("eps_tilde", _OWN), ("helpers_eps_tilde", _HELPERS)):
            table[name] = table[f"{form} c+eps_lb"] - table[f"{form} c_lb"]
        models = table.rename(columns=_NAMES).groupby(["target", "null"], sort=False)
        means, raised = models[list(_NAMES.values())].mean(), ["eps_tilde", "helpers_eps_tilde"]
        means[["train_accuracy", "test_accuracy"]] *= 100
        means[raised] = means[raised].clip(lower=0)
        return means.assign(eps_tilde_sd=models["eps_tilde"].std()).reset_index()


def measured_run(path: str) -> MeasuredRun | None:
    """Runs kept as a table with the ending .csv, its result file (.json) and its sample grid (.png)."""
    found = measured_table(path)
    if found is None:
        return None
    table, origin = found
    if missing := [name for name in ("seed", f"{_OWN} c_lb", f"{_HELPERS} c_lb") if name not in table]:
        raise ValueError(f"measured: {path} lacks {', '.join(missing)}; measure it anew")
    samples = kept_file(path).with_suffix(".png")
    if not samples.is_file():
        raise ValueError(f"measured: {path} has no sample grid beside it ({samples.name})")
    with Image.open(samples, formats=("PNG",)) as image:
        grid = np.asarray(image.convert("RGB"))
    return MeasuredRun(table, origin, read_result(samples.with_suffix(".json")).parameters, grid)
