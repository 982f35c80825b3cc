"""Images of PANORAMIA's tests: who is in which part, and the labels that targets are trained on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paperlib.core import IntArray, check_at_least, check_choice, check_in
from paperlib.data.images.pixels import ImageSet, Pixels, posterise, shrink
from paperlib.data.registry import load_images

PARTS = ("generator", "members", "nonmembers", "others")
_STORED: tuple[str, ...] = ("generator", "members", "others", "nonmembers")
"""The order in memory: what targets are trained on is one block."""
_AT_ONCE = 4096  # images that are prepared at a time


@dataclass(frozen=True, kw_only=True)
class ImageSplit:
    """Which images, and how many go where."""

    dataset: str = "mnist5k"  # a name of ``paperlib.data.registry.IMAGE_SETS``
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
        check_choice("parts", self.parts, ("", "official"))
        check_in("[0, 1]", "label_noise", self.label_noise)
        check_at_least(2, generator=self.generator, members=self.members)
        check_at_least(0, nonmembers=self.nonmembers, others=self.others)

    def trained_on(self, *, null: bool = False) -> tuple[str, ...]:
        """Parts that a target is trained on, D_G first."""
        if null:
            return ("generator", "others")
        return (
            ("generator", "members", "others")
            if self.parts == "official"
            else ("generator", "members")
        )


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
        """Images and labels of some parts, one after the other; one block in memory is not
        copied.
        """
        parts = [self.parts[name] for name in names]
        at = _STORED.index(names[0])
        if tuple(names) == _STORED[at : at + len(names)]:
            start = sum(len(self.parts[name]) for name in _STORED[:at])
            x = self.pixels[start : start + sum(map(len, parts))]
        else:
            x = np.concatenate([part.x for part in parts])
        return x, np.concatenate([part.y for part in parts])


def split_images(split: ImageSplit) -> Images:
    """Load images, and deal them out at random."""
    loaded = load_images(split.dataset)
    rng = np.random.default_rng(split.seed)
    rows = _dealt(split, len(loaded.train_x), len(loaded.test_x), rng)
    labels = np.concatenate([loaded.train_y, loaded.test_y])
    pixels = _taken(loaded, np.concatenate([rows[part] for part in _STORED]), split)
    ends = np.cumsum([len(rows[part]) for part in _STORED])[:-1]
    x: dict[str, Pixels] = dict(zip(_STORED, np.split(pixels, ends), strict=True))
    parts = {}
    for part, chosen in rows.items():
        given = noisy_labels(labels[chosen], split.label_noise, loaded.outputs, rng)
        parts[part] = LabelledImages(x[part], labels[chosen], given)
    return Images(split, parts, loaded.outputs, loaded.name, dict(loaded.sha256s), pixels)


def _dealt(
    split: ImageSplit, train: int, test: int, rng: np.random.Generator
) -> dict[str, IntArray]:
    """Places of each part among all images, the training part's first."""
    sizes = {part: int(getattr(split, part)) for part in PARTS}
    held = sizes["nonmembers"] if split.parts == "official" else 0
    if sum(sizes.values()) > train + test or held > test:
        wanted = ", ".join(f"{part} {size}" for part, size in sizes.items())
        raise ValueError(
            f"members: {split.dataset} has {train + test} images, and {sum(sizes.values())} were "
            f"asked for ({wanted}); its test part has {test}"
        )
    if split.parts == "":
        dealt = rng.permutation(train + test)[: sum(sizes.values())]
        rows = np.split(dealt, np.cumsum(list(sizes.values()))[:-1])
        return dict(zip(PARTS, rows, strict=True))
    own = train + rng.permutation(test)
    rest = rng.permutation(np.concatenate([np.arange(train), own[held:]]))
    seen = [part for part in PARTS if part != "nonmembers"]
    rows = np.split(
        rest[: sum(sizes.values()) - held], np.cumsum([sizes[part] for part in seen])[:-1]
    )
    found = {**dict(zip(seen, rows, strict=True)), "nonmembers": own[:held]}
    return {part: found[part] for part in PARTS}


def _taken(loaded: ImageSet, rows: IntArray, split: ImageSplit) -> Pixels:
    """The images of these places, shrunk and with fewer grey values, as one array."""
    side, train = split.side or loaded.train_x.shape[-1], len(loaded.train_x)
    pixels = np.empty((len(rows), loaded.train_x.shape[1], side, side), dtype=np.uint8)
    for start in range(0, len(rows), _AT_ONCE):
        chosen = rows[start : start + _AT_ONCE]
        first = chosen < train
        for here, x, places in (
            (first, loaded.train_x, chosen),
            (~first, loaded.test_x, chosen - train),
        ):
            taken = x[places[here]]
            small = taken if split.side is None else shrink(taken, side)
            pixels[start : start + _AT_ONCE][here] = posterise(small, split.levels)
    return pixels


def noisy_labels(
    labels: NDArray[np.int64], share: float, classes: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Labels of which a share is drawn anew: any class alike, or any attribute by a fair coin."""
    drawn = rng.integers(0, 2 if labels.ndim == 2 else classes, labels.shape)
    return np.where(rng.random(labels.shape) < share, drawn, labels)
