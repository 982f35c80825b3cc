"""Images as they are: a grid of them, one row per kind."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from paperlib.report.style import WIDTH, panels


def image_grid(rows: Mapping[str, NDArray[np.uint8]], *, columns: int = 12) -> Figure:
    """Images side by side, enlarged without smoothing."""
    if not rows:
        raise ValueError("rows: expected at least one, got none")
    fig, all_axes = panels(len(rows), height=WIDTH / columns + 0.25)
    for axes, (name, images) in zip(all_axes, rows.items(), strict=True):
        if images.ndim != 4 or images.shape[1] not in (1, 3) or not len(images):
            raise ValueError(f"{name}: expected images (n, 1 or 3, side, side), got {images.shape}")
        axes.imshow(
            strip(images[:columns], gap=max(1, images.shape[-1] // 7)),
            cmap="gray",
            vmin=0,
            vmax=255,
            interpolation="nearest",
        )
        axes.set(xticks=[], yticks=[])
        axes.grid(visible=False)
        axes.set_title(name, loc="left", pad=3)
        axes.spines[:].set_visible(False)
    return fig


def strip(images: NDArray[np.uint8], *, gap: int) -> NDArray[np.uint8]:
    """Images in one row with a white gap of some pixels between them, shape (side, width, 1 or 3)."""
    padded = np.pad(images, ((0, 0), (0, 0), (0, 0), (0, gap)), constant_values=255)
    return np.moveaxis(np.concatenate(list(padded), axis=2)[:, :, :-gap], 0, 2)
