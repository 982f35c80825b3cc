"""A grid of images."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from paperlib.papers.panoramia.images.grids import image_grid


def test_rows_show_the_first_images_side_by_side():
    images = np.arange(5, dtype=np.uint8)[:, None, None, None] * np.ones((1, 1, 7, 7), np.uint8)
    colour = np.zeros((2, 3, 7, 7), np.uint8)
    colour[1, 2] = 99
    fig = image_grid({"grey": images, "colour": colour}, columns=3)
    grey, coloured = (axes.images[0].get_array() for axes in fig.axes)
    assert grey.shape == (7, 3 * 7 + 2)
    assert [int(grey[0, at]) for at in (0, 7, 8, 15, 16)] == [0, 255, 1, 255, 2]
    assert coloured.shape == (7, 2 * 7 + 1, 3)
    assert coloured[0, -1].tolist() == [0, 0, 99]
    assert [axes.get_title(loc="left") for axes in fig.axes] == ["grey", "colour"]
    plt.close(fig)


def test_bad_rows_are_named():
    with pytest.raises(ValueError, match="rows: expected at least one"):
        image_grid({})
    with pytest.raises(ValueError, match="x: expected images"):
        image_grid({"x": np.zeros((2, 7, 7), np.uint8)})
    plt.close("all")
