"""Images of PANORAMIA's tests: who is in which part, and the labels that targets are trained on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paperlib.core import check_at_least, check_in
from paperlib.data.images.pixels import Pixels, posterise, shrink
from paperlib.data.registry import load_images

PARTS = ("generator", "members", "nonmembers", "others")


@dataclass(frozen=True, kw_only=True)
class ImageSplit:
    """Which images, and how many go where."""

    dataset: str = "mnist5k"  # a name of ``paperlib.data.registry.IMAGE_SETS``
    side: int | None = 7  # pixels along a side after averaging squares; None keeps the images' own
    levels: int = 5  # grey values per channel, 2 to 256
    generator: int = 1400  # images of D_G, which the generator is trained on
    members: int = 1200  # images of D_in
    nonmembers: int = 1200  # real images that no target sees
    # images in the place of the members where a null target is trained; 0 where there is none
    others: int = 1200
    label_noise: float = 0.3  # share of all images, real and generated, whose class is drawn anew, in [0, 1]
    seed: int = 0  # of the parts and the labels, 0 or more

    def __post_init__(self) -> None:
        check_in("[0, 1]", "label_noise", self.label_noise)
        check_at_least(2, generator=self.generator, members=self.members)
        check_at_least(0, nonmembers=self.nonmembers, others=self.others)


@dataclass(frozen=True, eq=False)
class Labelled:
    """Images, their true labels, and the labels given to models."""

    x: Pixels  # uint8, shape (n, channels, side, side)
    true: NDArray[np.int64]  # class numbers (n,), or 0 and 1 per attribute (n, attributes)
    y: NDArray[np.int64]  # labels with noise, of the same shape

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True, eq=False)
class Images:
    """The parts of a data set."""

    parts: dict[str, Labelled]  # "generator", "members", "nonmembers" and "others" to their images
    outputs: int  # classes, or attributes
    name: str
    sha256s: dict[str, str]  # file names to their SHA-256

    @property
    def multi_label(self) -> bool:
        """Whether each image has several labels."""
        return self.parts["members"].y.ndim == 2


def split_images(split: ImageSplit) -> Images:
    """Load images, and deal them out at random; training and test part of the data set are one pool.

    Raises:
        ValueError: An unknown data set, or fewer images than asked for.
        DataUnavailableError: Its files are not on this machine and cannot be fetched.

    >>> images = split_images(ImageSplit(generator=10, members=8, nonmembers=6, others=4))
    >>> [images.parts[part].x.shape for part in PARTS]
    [(10, 1, 7, 7), (8, 1, 7, 7), (6, 1, 7, 7), (4, 1, 7, 7)]
    """
    loaded = load_images(split.dataset)
    x, y = np.concatenate([loaded.train_x, loaded.test_x]), np.concatenate([loaded.train_y, loaded.test_y])
    sizes = [getattr(split, part) for part in PARTS]
    if sum(sizes) > len(x):
        raise ValueError(
            f"members: {split.dataset} has {len(x)} images, and {sum(sizes)} were asked for "
            f"({', '.join(f'{part} {size}' for part, size in zip(PARTS, sizes, strict=True))})"
        )
    rng = np.random.default_rng(split.seed)
    rows = np.split(rng.permutation(len(x))[: sum(sizes)], np.cumsum(sizes)[:-1])
    parts = {}
    for part, chosen in zip(PARTS, rows, strict=True):
        pixels = x[chosen] if split.side is None else shrink(x[chosen], split.side)
        given = noisy_labels(y[chosen], split.label_noise, loaded.outputs, rng)
        parts[part] = Labelled(posterise(pixels, split.levels), y[chosen], given)
    return Images(parts, loaded.outputs, loaded.name, dict(loaded.sha256s))


def noisy_labels(
    labels: NDArray[np.int64], share: float, classes: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Labels of which a share is drawn anew: any class alike, or any attribute by a fair coin.

    >>> noisy_labels(np.zeros(3, dtype=np.int64), 0.0, 10, np.random.default_rng(0)).tolist()
    [0, 0, 0]
    """
    drawn = rng.integers(0, 2 if labels.ndim == 2 else classes, labels.shape)
    return np.where(rng.random(labels.shape) < share, drawn, labels)
