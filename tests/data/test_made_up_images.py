"""Made-up images: read by the official loaders, and classes and attributes leave their mark."""

import json
import os
import sys
from subprocess import run

import numpy as np
import pytest

from paperlib.data.files import MANIFEST
from paperlib.data.images import cifar10
from paperlib.data.made_up import images, made_up_variables
from paperlib.data.registry import load_images
from paperlib.io import file_sha256


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("made-up")
    with pytest.MonkeyPatch.context() as patch:
        images.write(made)
        sums = {cifar10.ARCHIVE: file_sha256(made / cifar10.ARCHIVE)}
        (made / MANIFEST).write_text(json.dumps({"sha256": sums}))
        for name, value in made_up_variables(made).items():
            patch.setenv(name, value)
        yield made


def test_cifar10_has_its_size_its_means_and_classes_that_show(folder):
    found = load_images("cifar10")
    assert (len(found.train_x), len(found.test_x)) == (50_000, 10_000)
    assert found.sha256s[cifar10.ARCHIVE] == file_sha256(folder / cifar10.ARCHIVE) != cifar10.ARCHIVE_SHA256
    colours = found.train_x.mean(axis=(2, 3))
    centres = np.stack([colours[found.train_y == at].mean(axis=0) for at in range(10)])
    nearest = ((found.test_x.mean(axis=(2, 3))[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    assert 0.5 < (nearest == found.test_y).mean() < 0.95
    rows = found.train_x[:2000].reshape(2000, -1)
    assert len(np.unique(rows, axis=0)) == 2000


def test_faces_have_forty_attributes_that_show(folder):
    found = load_images("celeba")
    assert found.train_x.shape[1:] == (3, 128, 128)
    assert (len(found.train_x), len(found.test_x), found.outputs) == (321, 79, 40)
    light = found.train_x[:, :, 70:78, 8:16].mean(axis=(1, 2, 3))  # the first patch of the fifth row
    has = found.train_y.astype(bool)
    gaps = [light[has[:, at]].mean() - light[~has[:, at]].mean() for at in range(40)]
    assert int(np.argmax(gaps)) == 4 * 5
    assert max(gaps) > 50


@pytest.mark.parametrize("name", ["vit_small_patch16_224", "resnet101.tv_in1k"])
def test_timm_finds_the_weights_without_a_network(folder, name):
    """In a process of its own, which reads the hub's variables at its start, as a run's kernel does."""
    code = f"from paperlib.models.images import pretrained_classifier as p; print(p({name!r}, 3).side)"
    found = run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert found.stdout == "224\n", found.stderr
