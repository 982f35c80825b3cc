"""Runs on other images, made once and kept with the book: their table and the sample grid of the first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from paperlib.core import round_down
from paperlib.io import read_result
from paperlib.papers.measured import kept_file, measured_table
from paperlib.report import panels

GRID_ROWS = ("D_G", "members", "generated", "generated, more")
"""Rows of a sample grid, from above."""

_OWN, _HELPERS = "panoramia (paper form)", "panoramia (helpers form)"
_SHOWN = {
    "train_metric": "train accuracy",
    "test_metric": "test accuracy",
    f"{_OWN} c_lb": "c_lb",
    f"{_OWN} c+eps_lb": "c+eps_lb",
    "eps~": "eps~",
    "eps~ (helpers in both)": "eps~ (helpers in both)",
    "rm_rn (paper form) value": "RM;RN",
    "o1 (paper form) value": "O(1)",
}


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """Runs of the page on images that were made before, equal but for the seed."""

    table: pd.DataFrame  # of `whole_table`, with the seed of the run in front
    origin: str  # date and place of the run, as text
    parameters: Mapping[str, Any]
    grid: NDArray[np.uint8]  # uint8, shape (height, width, 3)

    @property
    def rows(self) -> pd.DataFrame:
        """What a page shows: means over models (sd: of eps-tilde), accuracies in per cent, else nats."""
        table = self.table.copy()
        for name, form in (("eps~", _OWN), ("eps~ (helpers in both)", _HELPERS)):
            table[name] = table[f"{form} c+eps_lb"] - table[f"{form} c_lb"]
        models = table.rename(columns=_SHOWN).groupby(["target", "null"], sort=False)
        means, raised = models[list(_SHOWN.values())].mean(), ["eps~", "eps~ (helpers in both)"]
        means[["train accuracy", "test accuracy"]] *= 100
        means[raised] = means[raised].clip(lower=0)
        means.insert(5, "sd", models["eps~"].std())
        return means.reset_index()

    @property
    def scale(self) -> str:
        """How large it was, in words."""
        given = self.parameters
        generator, sizes = given["generator"], given["sizes"]
        return (
            f"{given['dataset']} at {given['side'] or 'their own'} pixels a side and {given['levels']} grey "
            f"values per channel, D_G of {sizes[0]} images, {sizes[1]} members, {given['repetitions']} games "
            f"with test parts of {given['test']}; generator: {generator['network']} of width "
            f"{generator['width']}, {generator['steps']} steps"
        )

    @property
    def quality(self) -> str:
        """How good the generator and the baseline were, in words with numbers."""
        one = self.table.drop_duplicates("seed").mean(numeric_only=True)
        return (
            f"kernel distance to the members {one['kid generated']:.2f} of generated images, "
            f"{one['kid nonmembers']:.2f} of real non-members; near duplicates of images of D_G "
            f"{one['near generated']:.1%} and {one['near nonmembers']:.1%}; the baseline's AUC is "
            f"{one[f'{_OWN} baseline auc']:.3f}, its c_lb {round_down(one[f'{_OWN} c_lb'], 2):.2f} of "
            f"at most {one[f'{_OWN} ceiling']:.2f} (means over {self.table['seed'].nunique()} generators)"
        )


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


def grid_figure(run: MeasuredRun) -> tuple[Figure, str]:
    """The sample grid of a run, enlarged without smoothing, and its words."""
    height, width = run.grid.shape[:2]
    fig, (axes,) = panels(height=3.3 * height / width)
    axes.imshow(run.grid, interpolation="nearest")
    places = (np.arange(len(GRID_ROWS)) + 0.5) * (height + 1) / len(GRID_ROWS) - 0.5
    axes.set_yticks(places, GRID_ROWS)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    return fig, f"Rows of small images of {run.parameters['dataset']}: {', '.join(GRID_ROWS)}."
