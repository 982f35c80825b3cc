"""CIFAR-10: the official binary files, or an archive of exact pixels of a part of it."""

import tarfile
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from paperlib.data.errors import unavailable
from paperlib.data.pictures import PictureSet
from paperlib.io import DownloadError, data_folder, fetch, file_sha256

SOURCE = "Krizhevsky (2009), Learning multiple layers of features from tiny images, CIFAR-10"
LICENCE = "none stated; made for research, cite Krizhevsky (2009)"
CLASSES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
FOLDER = "cifar-10-batches-bin"
ARCHIVE = "cifar-10-binary.tar.gz"
ARCHIVE_SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
ADDRESS = f"https://www.cs.toronto.edu/~kriz/{ARCHIVE}"
TRAIN_FILES = tuple(f"data_batch_{at}.bin" for at in range(1, 6))
TEST_FILE = "test_batch.bin"
PICTURES_PER_FILE = 10_000
MEANS = (0.49140, 0.48216, 0.44653)
_ROW = 1 + 3 * 32 * 32

PART_FILE = "cifar10_part.npz"
PART_SHA256 = "bae6e73408c30ff7674b14fb84a187c622b30257f19cb7f1723f016ee706d108"


def load_cifar10() -> PictureSet:
    """All of CIFAR-10: 50,000 training and 10,000 test pictures, 32 by 32 in colour.

    Looks in the data folder for the official folder ``cifar-10-batches-bin`` or its archive, else fetches the
    archive. (The files for Python hold pickles, which can run any code; they are not read.)

    Raises:
        DataUnavailableError: The files are not there and cannot be fetched.
        ValueError: A file is cut short or has other content.
    """
    folder = data_folder()
    files = _files(folder)
    parts = [read_rows(content, name, pictures=PICTURES_PER_FILE) for name, content in files.items()]
    pixels, labels = (np.concatenate(values) for values in zip(*parts, strict=True))
    split = PICTURES_PER_FILE * len(TRAIN_FILES)
    check_content(pixels[:split], labels[:split], folder)
    return PictureSet(
        train_x=pixels[:split],
        train_y=labels[:split],
        test_x=pixels[split:],
        test_y=labels[split:],
        name="cifar10",
        source=SOURCE,
        licence=LICENCE,
        sha256s={ARCHIVE: ARCHIVE_SHA256},
        class_names=CLASSES,
    )


def read_rows(
    content: bytes, name: str, *, pictures: int = PICTURES_PER_FILE
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Pixels (n, 3, 32, 32) and labels (n,) of one official binary file.

    Args:
        content: Rows of one byte for the class and 3,072 for the pixels, red, green, blue.
        name: What the errors call it.
        pictures: Rows it must have.

    Raises:
        ValueError: Another size, or a class above 9.
    """
    if len(content) != pictures * _ROW:
        raise ValueError(
            f"{name}: expected {pictures} rows of {_ROW} bytes, got {len(content)} bytes; it is not whole"
        )
    rows = np.frombuffer(content, dtype=np.uint8).reshape(pictures, _ROW)
    labels = rows[:, 0].astype(np.int64)
    if labels.max() >= len(CLASSES):
        raise ValueError(
            f"{name}: expected classes 0 to 9, got {labels.max()}; this is not CIFAR-10's binary form"
        )
    return np.ascontiguousarray(rows[:, 1:]).reshape(-1, 3, 32, 32), labels


def check_content(pixels: NDArray[np.uint8], labels: NDArray[np.int64], folder: Path) -> None:
    """Refuse training pictures that are not CIFAR-10's: its classes are equally frequent, its means known.

    Raises:
        ValueError: Other class counts, or other mean colours.
    """
    counts = np.bincount(labels, minlength=len(CLASSES))
    means = pixels.mean(axis=(0, 2, 3), dtype=np.float64) / 255
    if np.ptp(counts) or not np.allclose(means, MEANS, atol=1e-5):
        raise ValueError(
            f"{folder}: expected CIFAR-10's training pictures (mean colours {MEANS}, equally frequent "
            f"classes), got mean colours {means.round(5).tolist()} and {counts.tolist()} pictures per class"
        )


def _files(folder: Path) -> dict[str, bytes]:
    wanted = (*TRAIN_FILES, TEST_FILE)
    if (folder / FOLDER).is_dir():
        missing = [name for name in wanted if not (folder / FOLDER / name).is_file()]
        if missing:
            raise ValueError(
                f"{folder / FOLDER}: expected {', '.join(wanted)}; missing: {', '.join(missing)}"
            )
        return {name: (folder / FOLDER / name).read_bytes() for name in wanted}
    path = folder / ARCHIVE
    if not path.is_file():
        try:
            fetch(ADDRESS, path, sha256=ARCHIVE_SHA256)
        except DownloadError as error:
            raise unavailable(
                "CIFAR-10", f"{FOLDER} and no {ARCHIVE}", folder, ADDRESS, [str(error)]
            ) from None
    return _unpacked(path, wanted)


def _unpacked(path: Path, wanted: tuple[str, ...]) -> dict[str, bytes]:
    if (digest := file_sha256(path)) != ARCHIVE_SHA256:
        raise ValueError(
            f"{path}: expected SHA-256 {ARCHIVE_SHA256}, got {digest}; remove it to fetch it again"
        )
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for item in archive:
                name = Path(item.name).name
                file = archive.extractfile(item) if name in wanted else None
                if file is not None:
                    found[name] = file.read()
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise ValueError(f"{path}: damaged or cut short ({error}); remove it to fetch it again") from None
    if missing := [name for name in wanted if name not in found]:
        raise ValueError(f"{path}: expected {', '.join(wanted)} in it; missing: {', '.join(missing)}")
    return {name: found[name] for name in wanted}


def load_cifar10_part(*, sha256: str | None = PART_SHA256) -> PictureSet:
    """A part of CIFAR-10: its first 10,000 training and first 2,000 test pictures, exact pixels.

    Reads ``cifar10_part.npz`` of the data folder: arrays train_images, train_labels, test_images, test_labels
    (uint8, pictures last axis colour) and class_names.

    Args:
        sha256: Checksum the file must have; None takes any file of this form.

    Raises:
        DataUnavailableError: The file is not there; it is nowhere to be fetched, "cifar10" has all of it.
        ValueError: Another checksum or form.
    """
    path = data_folder() / PART_FILE
    if not path.is_file():
        raise unavailable("This part of CIFAR-10", PART_FILE, data_folder(), ADDRESS, [])
    digest = file_sha256(path)
    if sha256 is not None and digest != sha256:
        raise ValueError(f"{path}: expected SHA-256 {sha256}, got {digest}")
    names = ("train_images", "train_labels", "test_images", "test_labels")
    with np.load(path, allow_pickle=False) as archive:
        if missing := [name for name in names if name not in archive.files]:
            raise ValueError(f"{path}: expected the arrays {', '.join(names)}; missing: {', '.join(missing)}")
        train_x, train_y, test_x, test_y = (archive[name] for name in names)
    return PictureSet(
        train_x=np.ascontiguousarray(np.moveaxis(train_x, 3, 1)),
        train_y=train_y.astype(np.int64),
        test_x=np.ascontiguousarray(np.moveaxis(test_x, 3, 1)),
        test_y=test_y.astype(np.int64),
        name="cifar10_part",
        source=f"{SOURCE}: the first training batch, and 2,000 of the test batch",
        licence=LICENCE,
        sha256s={PART_FILE: digest},
        class_names=CLASSES,
    )
