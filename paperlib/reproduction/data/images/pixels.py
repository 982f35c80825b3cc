"""`ImageSet`: images to train on, others from the same population, and the sets known by name."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageSet:
    """Images to train on and others, uint8 of shape (n, channels, side, side), and their labels.

    Labels are int64: class numbers, shape (n,), or 0 and 1 per attribute, shape (n, attributes), by
    the names in ``class_names``. ``name`` is that of the set, ``source`` and ``licence`` say where
    it comes from, and ``sha256s`` has checksums by what they are of.

    Raises:
        ValueError: Arrays of another type or of shapes that do not fit.
    """

    train_x: Pixels
    train_y: NDArray[np.int64]
    test_x: Pixels
    test_y: NDArray[np.int64]
    name: str
    source: str
    licence: str
    sha256s: Mapping[str, str]
    class_names: tuple[str, ...]

    def __post_init__(self) -> None:
        self._check_side("train", self.train_x, self.train_y)
        self._check_side("test", self.test_x, self.test_y)

    def _check_side(self, side: str, x: Pixels, y: NDArray[np.int64]) -> None:
        """Refuse (ValueError) images of another shape than the training images, and labels that do
        not fit; ``side`` is "train" or "test".
        """
        check_images(f"{side}_x", x)
        if x.shape[1:] != self.train_x.shape[1:]:
            raise ValueError(
                f"{side}_x: expected images of shape {self.train_x.shape[1:]}, got {x.shape[1:]}"
            )
        if len(y) != len(x) or y.dtype != np.int64 or y.ndim not in (1, 2):
            raise ValueError(f"{side}_y: expected {len(x)} int64 labels, got {y.dtype} {y.shape}")

    def __repr__(self) -> str:
        return (
            f"ImageSet({self.name!r}, {len(self.train_x)} training and {len(self.test_x)} other "
            f"images of shape {self.train_x.shape[1:]})"
        )

    @property
    def multi_label(self) -> bool:
        """Whether each image has one 0 or 1 per attribute, and not one class."""
        return self.train_y.ndim == 2

    @property
    def outputs(self) -> int:
        """Number of classes, or of attributes."""
        return len(self.class_names)


def check_images(name: str, images: NDArray[np.generic]) -> None:
    """Refuse (ValueError, which begins with ``name``) anything but uint8 images of shape (n, 1 or
    3, side, side).
    """
    shape = images.shape
    if (
        images.dtype != np.uint8
        or images.ndim != 4
        or shape[1] not in (1, 3)
        or shape[2] != shape[3]
    ):
        raise ValueError(
            f"{name}: expected uint8 images (n, 1 or 3, side, side), got {images.dtype} {shape}"
        )


def shrink(images: Pixels, side: int) -> Pixels:
    """Images (n, channels, side, side) of a smaller ``side``, which divides the old one; each pixel
    the mean of a square of old ones, rounded.

    Raises:
        ValueError: No divisor, or no uint8 images.
    """
    check_images("images", images)
    old = images.shape[-1]
    if side < 1 or old % side:
        raise ValueError(f"side: expected a divisor of {old}, got {side}")
    blocks = images.reshape(*images.shape[:2], side, old // side, side, old // side)
    return np.rint(blocks.mean(axis=(3, 5))).astype(np.uint8)


def posterise(images: Pixels, levels: int) -> Pixels:
    """Images of the same shape with ``levels`` evenly spaced values, 2 to 256, each pixel the
    nearest one.

    Raises:
        ValueError: ``levels`` out of range.
    """
    if not 2 <= levels <= 256:
        raise ValueError(f"levels: expected 2 to 256, got {levels}")
    steps = levels - 1
    nearest = np.rint(np.arange(256) * (steps / 255))  # number of the level, for each pixel value
    return np.rint(nearest * (255 / steps)).astype(np.uint8)[images]
