"""Images of PANORAMIA's tests: who is in which part, and the labels that targets are trained on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paperlib.core import IntArray
from paperlib.core.checks import check_at_least, check_choice, check_in
from paperlib.reproduction.data.images.pixels import ImageSet, Pixels, posterise, shrink
from paperlib.reproduction.data.registry import load_images

PARTS = ("generator", "members", "nonmembers", "others")
_STORED: tuple[str, ...] = ("generator", "members", "others", "nonmembers")
"""The order in memory: what targets are trained on is one block."""
_AT_ONCE = 4096  # images that are prepared at a time


@dataclass(frozen=True, kw_only=True)
class ImageSplit:
    """Which images, and how many go where."""

    dataset: str = "mnist5k"  # a name of ``paperlib.reproduction.data.registry.IMAGE_SETS``
    side: int | None = 7  # pixels along a side after averaging squares; None keeps the images' own
    levels: int = 5  # grey values per channel, 2 to 256
    generator: int = 1400  # images of D_G, which the generator is trained on
    members: int = 1200  # images of D_in
    nonmembers: int = 1200  # real images that no target sees
    others: int = 1200  # images in the members' place for null targets; 0 where there is none
    label_noise: float = 0.3  # share of all images, real and generated, whose class is drawn anew
    # "": all images are one pool, and targets are trained on D_G and the members. "official", as in
    # the paper: real non-members are of the data set's own test part, and targets are trained on
    # the others too
    parts: str = ""
    seed: int = 0  # of the parts and the labels

    def __post_init__(self) -> None:
        """Refuse (ValueError) unknown parts, and numbers out of range."""
        check_choice("parts", self.parts, ("", "official"))
        check_in("[0, 1]", "label_noise", self.label_noise)
        check_at_least(2, generator=self.generator, members=self.members)
        check_at_least(0, nonmembers=self.nonmembers, others=self.others)

    def trained_on(self, *, null: bool = False) -> tuple[str, ...]:
        """Parts that a target, or a null target, is trained on, the generator's training images
        first.
        """
        if null:
            return ("generator", "others")
        if self.parts == "official":
            return ("generator", "members", "others")
        return ("generator", "members")


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Images, their true labels, and the labels given to models."""

    x: Pixels  # uint8, shape (n, channels, side, side)
    true: NDArray[np.int64]  # class numbers (n,), or 0 and 1 per attribute (n, attributes)
    y: NDArray[np.int64]  # labels with noise, of the same shape

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True, eq=False)
class Images:
    """The parts of a data set."""

    split: ImageSplit
    parts: dict[str, LabelledImages]  # by the names of `PARTS`
    outputs: int  # classes, or attributes
    name: str
    sha256s: dict[str, str]  # file names to their SHA-256
    pixels: Pixels  # the images of all parts as one array, which these are views of

    @property
    def multi_label(self) -> bool:
        """Whether each image has several labels."""
        return self.parts["members"].y.ndim == 2

    def together(self, names: Sequence[str]) -> tuple[Pixels, NDArray[np.int64]]:
        """Images, shape (n, channels, side, side), and labels, (n,) or (n, attributes), of the
        named parts, one after the other.

        Images of parts that lie in memory as one block are a view of it, and not copied.
        """
        parts = [self.parts[name] for name in names]
        first = _STORED.index(names[0])
        in_one_block = tuple(names) == _STORED[first : first + len(names)]
        if in_one_block:
            start = sum(len(self.parts[name]) for name in _STORED[:first])
            x = self.pixels[start : start + sum(map(len, parts))]
        else:
            x = np.concatenate([images.x for images in parts])
        return x, np.concatenate([images.y for images in parts])


def split_images(split: ImageSplit) -> Images:
    """Load images, and deal them out to the parts at random.

    Raises:
        ValueError: The data set is unknown, or has too few images for the split.
    """
    loaded = load_images(split.dataset)
    rng = np.random.default_rng(split.seed)
    rows = _dealt(split, len(loaded.train_x), len(loaded.test_x), rng)
    labels = np.concatenate([loaded.train_y, loaded.test_y])
    pixels = _prepared(loaded, np.concatenate([rows[name] for name in _STORED]), split)
    ends = np.cumsum([len(rows[name]) for name in _STORED])[:-1]
    x: dict[str, Pixels] = dict(zip(_STORED, np.split(pixels, ends), strict=True))
    labelled: dict[str, LabelledImages] = {}
    for name, numbers in rows.items():
        true = labels[numbers]
        y = noisy_labels(true, split.label_noise, loaded.outputs, rng)
        labelled[name] = LabelledImages(x[name], true, y)
    return Images(split, labelled, loaded.outputs, loaded.name, dict(loaded.sha256s), pixels)


def _dealt(
    split: ImageSplit, train: int, test: int, rng: np.random.Generator
) -> dict[str, IntArray]:
    """Numbers of the images of each part, by name.

    The data set's ``train`` training images are numbered first, and then its ``test`` test images.
    With "official" parts the real non-members are test images alone. Raises ValueError where the
    data set has too few images.
    """
    sizes = {name: int(getattr(split, name)) for name in PARTS}
    held_out = sizes["nonmembers"] if split.parts == "official" else 0
    total = sum(sizes.values())
    if total > train + test or held_out > test:
        listed = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise ValueError(
            f"members: {split.dataset} has {train + test} images, and {total} were "
            f"asked for ({listed}); its test part has {test}"
        )
    if split.parts == "":
        return _cut(rng.permutation(train + test), sizes)
    test_rows = train + rng.permutation(test)
    others = rng.permutation(np.concatenate([np.arange(train), test_rows[held_out:]]))
    rows = _cut(others, {name: size for name, size in sizes.items() if name != "nonmembers"})
    rows["nonmembers"] = test_rows[:held_out]
    return {name: rows[name] for name in PARTS}


def _cut(rows: IntArray, sizes: Mapping[str, int]) -> dict[str, IntArray]:
    """The first rows in pieces of these sizes, by name."""
    ends = np.cumsum(list(sizes.values()))
    return dict(zip(sizes, np.split(rows[: ends[-1]], ends[:-1]), strict=True))


def _prepared(loaded: ImageSet, rows: IntArray, split: ImageSplit) -> Pixels:
    """The images of these numbers, training images counted first, shrunk and with fewer grey
    values, as one array, uint8 (n, channels, side, side).
    """
    channels, own_side = loaded.train_x.shape[1], loaded.train_x.shape[-1]
    side = split.side or own_side
    train = len(loaded.train_x)
    pixels = np.empty((len(rows), channels, side, side), dtype=np.uint8)
    for start in range(0, len(rows), _AT_ONCE):
        numbers = rows[start : start + _AT_ONCE]
        block = pixels[start : start + _AT_ONCE]  # a view
        of_train = numbers < train
        block[of_train] = _reduced(loaded.train_x[numbers[of_train]], split)
        block[~of_train] = _reduced(loaded.test_x[numbers[~of_train] - train], split)
    return pixels


def _reduced(x: Pixels, split: ImageSplit) -> Pixels:
    """Images at the side and with the grey values that the split asks for."""
    small = shrink(x, split.side) if split.side else x
    return posterise(small, split.levels)


def noisy_labels(
    labels: NDArray[np.int64], share: float, classes: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Labels of which a share is drawn anew, so that some stay what they were.

    Args:
        labels: Class numbers (n,), or 0 and 1 per attribute (n, attributes).
        share: Of the labels that are drawn anew, in [0, 1]; each by itself.
        classes: Number of classes, each drawn as often; attributes are fair coins.
        rng: Of the labels, and of which are drawn anew.
    """
    values = 2 if labels.ndim == 2 else classes
    drawn = rng.integers(0, values, labels.shape)
    return np.where(rng.random(labels.shape) < share, drawn, labels)
