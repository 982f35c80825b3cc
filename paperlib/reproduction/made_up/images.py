"""Made-up images in the official layouts: CIFAR-10, CelebA, and weights of two models of timm."""

import gzip
import io
import tarfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.core.packages import optional_package
from paperlib.reproduction.data.images import celeba, cifar10
from paperlib.reproduction.made_up.models import snapshot

_FACES = 400  # images of CelebA
_ATTRIBUTES = 40  # of each, as in CelebA
_SHARES = (0.8034, 0.0981, 0.0985)  # training, validation and test part of CelebA
_GRID = (8, 5)  # one patch of a face for each attribute
_FACE = (178, 218)  # width and height
_package = partial(optional_package, extra="images", purpose="writing made-up weights")

WEIGHTS = ("vit_small_patch16_224.augreg_in21k_ft_in1k", "resnet101.tv_in1k")
"""Models of timm whose weights are written."""


def write(folder: Path) -> None:
    """Write the files below a data folder, with images that say something of their classes."""
    _write_cifar10(folder)
    _write_celeba(folder / celeba.FOLDER)
    timm = _package("timm")
    torch = _package("torch")
    for name in WEIGHTS:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            weights: Any = timm.create_model(name, pretrained=False).state_dict()
        path = snapshot(folder, f"timm/{name}") / "model.safetensors"
        _package("safetensors.torch").save_file(weights, path)


def _write_cifar10(folder: Path) -> None:
    """The archive of CIFAR-10: noise of 4 by 4 squares in a hue for each class."""
    rng = np.random.default_rng(0)
    size = cifar10.IMAGES_PER_FILE
    classes = len(cifar10.CLASSES)
    hues = np.random.default_rng(1).integers(-30, 31, (classes, 3))
    with (  # without the time of writing
        gzip.GzipFile(folder / cifar10.ARCHIVE, "wb", compresslevel=1, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name in (*cifar10.TRAIN_FILES, cifar10.TEST_FILE):
            labels = rng.permutation(np.arange(size) % classes).astype(np.uint8)
            # Grey values that a hue of at most 30 leaves within a byte.
            squares = rng.integers(70, 171, (size, 3, 4, 4)) + hues[labels][:, :, None, None]
            enlarged = squares.astype(np.uint8).repeat(8, axis=2).repeat(8, axis=3)
            pixels = _with_means(enlarged)
            rows = np.concatenate([labels[:, None], pixels.reshape(size, -1)], axis=1).tobytes()
            entry = tarfile.TarInfo(f"{cifar10.FOLDER}/{name}")
            entry.size = len(rows)
            archive.addfile(entry, io.BytesIO(rows))


def _with_means(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The same images (n, 3, side, side) with the mean colours of CIFAR-10, as nearly as its loader
    asks for: changed in place.
    """
    count = pixels[:, 0].size  # pixels of a channel in all images
    for channel, mean in enumerate(cifar10.MEANS):
        missing = round(mean * 255 * count) - int(pixels[:, channel].sum(dtype=np.int64))
        for_all, rest = divmod(missing, count)
        # As many whole images as the rest has pixels for get 1 more.
        images_of_rest = rest // pixels[0, 0].size
        pixels[:, channel] += np.uint8(for_all % 256)  # below 0, the same modulo 256
        pixels[:images_of_rest, channel] += np.uint8(1)
    return pixels


def _write_celeba(folder: Path) -> None:
    """Faces in JPEG with one patch for each attribute, lighter where the face has it."""
    from PIL import Image  # needed only here

    rng = np.random.default_rng(2)
    attributes = rng.random((_FACES, _ATTRIBUTES)) < rng.uniform(0.1, 0.6, _ATTRIBUTES)
    images = folder / celeba.IMAGES
    images.mkdir(parents=True)
    names = [f"{number:06d}.jpg" for number in range(1, _FACES + 1)]
    for name, row in zip(names, attributes, strict=True):
        light = np.where(row, 170, 90)[:, None] + rng.integers(-40, 41, (_ATTRIBUTES, 3))
        face = Image.fromarray(light.astype(np.uint8).reshape(*_GRID, 3)).resize(_FACE)
        face.save(images / name, "JPEG", quality=75)
    (folder / celeba.ATTRIBUTES).write_text(_attribute_list(names, attributes), encoding="utf-8")
    (folder / celeba.PARTITION).write_text(_partition_list(names), encoding="utf-8")


def _attribute_list(names: list[str], attributes: NDArray[np.bool_]) -> str:
    """CelebA's list of attributes: their number of images, their names, and 1 or -1 for each."""
    lines = [str(_FACES), " ".join(f"Attribute_{number + 1}" for number in range(_ATTRIBUTES))]
    for name, row in zip(names, attributes, strict=True):
        signs = ["1" if has_attribute else "-1" for has_attribute in row]
        lines.append(" ".join([name, *signs]))
    return "\n".join([*lines, ""])


def _partition_list(names: list[str]) -> str:
    """CelebA's list of parts: 0, 1 or 2 for each image, by the shares of the parts in order."""
    ends = np.round(np.cumsum(_SHARES) * _FACES)
    splits = np.searchsorted(ends, np.arange(len(names)), "right")
    lines = [f"{name} {split}" for name, split in zip(names, splits, strict=True)]
    return "\n".join([*lines, ""])
