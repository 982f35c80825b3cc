"""Quality of generated images: the filter that drops obvious fakes, and the kernel distance."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import nn

from paperlib.core import FloatArray
from paperlib.core.checks import check_at_least, check_in
from paperlib.models.images import classifier_for, image_logits
from paperlib.training.images import ImageTraining, fit_images


@dataclass(frozen=True, kw_only=True)
class FakeFilter:
    """A vanilla classifier of real and generated images, which drops fakes it is sure of.

    Attributes:
        threshold: Chance of being generated above which an image is dropped, in (0.5, 1]; 1 drops
            nothing and trains nothing.
        width: Width of "mlp", "cnn" and "cnn4", 1 or more.
        epochs: Passes over the real and as many generated images.

    Source:
        PANORAMIA, appendix C.1, Generator.
    """

    threshold: float = 0.8
    architecture: str = "cnn"
    width: int = 16
    epochs: int = 8

    def __post_init__(self) -> None:
        check_in("(0.5, 1]", "threshold", self.threshold)

    def fit(
        self, real: Any, generated: Any, *, seed: int = 0, progress: bool = True
    ) -> "FittedFilter":
        """Train on what the generator was trained on, and on images that it made for nothing else.

        ``real`` and ``generated`` are uint8, shape (n, channels, side, side) and (m, channels,
        side, side).

        Raises:
            ValueError: Images of another type or shape.
            TrainingDiverged: The loss stopped being finite.
        """
        if self.threshold == 1:
            return FittedFilter(None, self.threshold)
        x = np.concatenate([real, generated])
        y = np.arange(len(x)) >= len(real)  # class 1: generated
        network = classifier_for(x, self.architecture, 2, width=self.width, seed=seed)
        config = ImageTraining(epochs=self.epochs, weight_decay=1e-2, seed=seed)
        fitted = fit_images(network, x, y, config=config, progress=progress)
        return FittedFilter(fitted.module, self.threshold)


@dataclass(frozen=True, eq=False)
class FittedFilter:
    """The filter after training."""

    module: nn.Module | None  # None where nothing is dropped
    threshold: float

    def keeps(self, images: Any) -> NDArray[np.bool_]:
        """Which of the images, uint8 of shape (n, channels, side, side), stay: a flag each, shape
        (n,). Where it may drop some, a ValueError for images of another type.
        """
        if self.module is None:
            return np.ones(len(images), dtype=bool)
        chance_of_being_generated = image_logits(self.module, images).softmax(dim=1)[:, 1].numpy()
        return chance_of_being_generated <= self.threshold


def kernel_distance(
    first: ArrayLike, second: ArrayLike, *, subset: int = 500, subsets: int = 10, seed: int = 0
) -> tuple[float, float]:
    """Kernel distance of features (n, d) and (m, d): 0 on average if both come from one
    distribution.

    The squared maximum mean discrepancy with the kernel (x y / d + 1)^3, without bias, averaged
    over random ``subsets`` of at most ``subset`` points each; with features of an Inception network
    this is KID.

    Args:
        subset: Most points of each subset, 2 or more.
        subsets: Number of subsets, 1 or more.

    Returns:
        Mean over subsets, and its standard error; NaN for a single subset.

    Raises:
        ValueError: Fewer than two points, widths that differ, or too small subsets or too few.

    Source:
        Binkowski, Sutherland, Arbel and Gretton (2018), arXiv:1801.01401, section 4.
    """
    x, y = (np.asarray(values, dtype=np.float64) for values in (first, second))
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1] or min(len(x), len(y)) < 2:
        raise ValueError(
            f"first, second: expected (n, d) and (m, d), 2 rows or more, got {x.shape} and "
            f"{y.shape}"
        )
    check_at_least(2, subset=subset)
    check_at_least(1, subsets=subsets)
    size = min(subset, len(x), len(y))
    rng = np.random.default_rng(seed)
    distances: list[float] = []
    for _ in range(subsets):
        some_x = x[rng.permutation(len(x))[:size]]
        some_y = y[rng.permutation(len(y))[:size]]
        # A point's kernel with itself is left out: it would make the mean within too large.
        within = sum(_mean_of_pairs(_kernel(points, points)) for points in (some_x, some_y))
        distances.append(float(within - 2 * _kernel(some_x, some_y).mean()))
    standard_error = np.std(distances, ddof=1) / np.sqrt(subsets) if subsets > 1 else np.nan
    return float(np.mean(distances)), float(standard_error)


def _mean_of_pairs(kernel: FloatArray) -> float:
    """Mean of a kernel (n, n) over pairs of different points."""
    size = len(kernel)
    return (kernel.sum() - np.trace(kernel)) / (size * (size - 1))


def _kernel(x: FloatArray, y: FloatArray) -> FloatArray:
    return (x @ y.T / x.shape[1] + 1) ** 3
