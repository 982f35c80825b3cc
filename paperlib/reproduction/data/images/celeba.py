"""CelebA: faces with 40 attributes, from the official files in the data folder."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paperlib.core.checks import check_at_least
from paperlib.data.files import unavailable
from paperlib.io import data_folder
from paperlib.io.files import file_sha256
from paperlib.io.progress import progress_bar
from paperlib.reproduction.data.images.pixels import ImageSet, Pixels

SOURCE = "Liu, Luo, Wang and Tang (2015), Deep learning face attributes in the wild, CelebA"
LICENCE = "non-commercial research; may not be passed on, so it is never fetched"
ADDRESS = "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html"
FOLDER = "celeba"
IMAGES = "img_align_celeba"
ATTRIBUTES = "list_attr_celeba.txt"
PARTITION = "list_eval_partition.txt"
_AT_ONCE = 1024  # images between two steps of the progress bar


def load_celeba(*, side: int = 128, limit: int | None = None) -> ImageSet:
    """Faces, cut to the middle square and scaled to ``side`` pixels, with 40 attributes.

    The data folder (or ``celeba/`` in it) holds ``img_align_celeba`` of 178 by 218 images,
    ``list_attr_celeba.txt`` and ``list_eval_partition.txt``. The training part is the official one;
    ``limit`` takes the first images of each part.

    Raises:
        DataUnavailableError: A file is not there.
        ValueError: A file is damaged or of another form.
    """
    check_at_least(1, side=side)
    folder = _folder()
    attributes = _read_attributes(folder / ATTRIBUTES)
    partition = _read_partition(folder / PARTITION, attributes.index)
    train = attributes[partition == 0][:limit]
    test = attributes[partition > 0][:limit]
    if train.empty or test.empty:
        raise ValueError(f"{folder / PARTITION}: expected images of part 0 and of part 1 or 2")
    paths = [folder / IMAGES / name for name in (*train.index, *test.index)]
    pixels = _read_images(paths, side)
    return ImageSet(
        train_x=pixels[: len(train)],
        train_y=train.to_numpy(),
        test_x=pixels[len(train) :],
        test_y=test.to_numpy(),
        name="celeba",
        source=SOURCE,
        licence=LICENCE,
        sha256s={name: file_sha256(folder / name) for name in (ATTRIBUTES, PARTITION)},
        class_names=tuple(attributes.columns),
    )


def _folder() -> Path:
    """The folder with all three official files; a DataUnavailableError, which names them, where
    there is none.
    """
    base = data_folder()
    for folder in (base / FOLDER, base):
        if all((folder / name).exists() for name in (IMAGES, ATTRIBUTES, PARTITION)):
            return folder
    files = f"{FOLDER}/{IMAGES}, {ATTRIBUTES} and {PARTITION}"
    raise unavailable("CelebA", files, base, ADDRESS)


def _read_attributes(path: Path) -> pd.DataFrame:
    """0 or 1 for each image (index: its file name) and attribute (column), in the file's order; a
    ValueError for a file of another form, or one that is cut short.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    if len(lines) < 3 or not lines[0].strip().isdecimal():
        raise ValueError(
            f"{path}: expected the number of images, then the names of the attributes, then rows"
        )
    names = lines[1].split()
    rows = [line.split() for line in lines[2:] if line.strip()]
    if len(rows) != int(lines[0]):
        raise ValueError(
            f"{path}: expected {lines[0].strip()} rows, got {len(rows)}; the file is not whole"
        )
    for row in rows:
        if len(row) != len(names) + 1 or not set(row[1:]) <= {"-1", "1"}:
            raise ValueError(
                f"{path}: expected a name and {len(names)} times -1 or 1, got "
                f"{' '.join(row[:4])}..."
            )
    signs = np.array([row[1:] for row in rows], dtype=np.int64)
    return pd.DataFrame((signs + 1) // 2, index=[row[0] for row in rows], columns=names)


def _read_partition(path: Path, images: Iterable[str]) -> NDArray[np.int64]:
    """The official part of each of the ``images``, file names: 0 for training, 1 for validation and
    2 for test, shape (n,); a ValueError for a file of another form, or that lacks an image.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [line.split() for line in lines if line.strip()]
    if any(len(row) != 2 or row[1] not in ("0", "1", "2") for row in rows):
        raise ValueError(f"{path}: expected an image and 0, 1 or 2 in each line")
    part_of = {name: int(number) for name, number in rows}
    missing = [name for name in images if name not in part_of]
    if missing:
        raise ValueError(f"{path}: {len(missing)} images have no part, such as {missing[0]}")
    return np.array([part_of[name] for name in images], dtype=np.int64)


def _read_images(paths: Sequence[Path], side: int) -> Pixels:
    """All images, shape (n, 3, side, side), decoded by several threads."""
    pixels = np.empty((len(paths), 3, side, side), dtype=np.uint8)

    def read(index: int) -> None:
        """Read the image of this number into its place of the array."""
        pixels[index] = _read_image(paths[index], side)

    with (  # Pillow decodes beside Python
        ThreadPoolExecutor() as threads,
        progress_bar(len(paths), label="CelebA", unit="image") as bar,
    ):
        for start in range(0, len(paths), _AT_ONCE):
            indices = range(start, min(start + _AT_ONCE, len(paths)))
            list(threads.map(read, indices))
            bar.update(len(indices))
    return pixels


def _read_image(path: Path, side: int) -> Pixels:
    """The middle square of an image, scaled, shape (3, side, side); a ValueError for a file that is
    no readable image.
    """
    from PIL import Image, UnidentifiedImageError  # needed only here

    try:
        with Image.open(path) as image:
            width, height = image.size
            cut = min(width, height)
            left = (width - cut) // 2
            top = (height - cut) // 2
            square = image.convert("RGB").crop((left, top, left + cut, top + cut))
            scaled = square.resize((side, side), Image.Resampling.BILINEAR)
    except (FileNotFoundError, UnidentifiedImageError, OSError) as error:
        raise ValueError(f"{path}: not a readable image ({error})") from None
    return np.moveaxis(np.asarray(scaled), 2, 0)
