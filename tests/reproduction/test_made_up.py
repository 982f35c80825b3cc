"""Made-up data: read by the loaders of the true data, the same every time, and never taken for the
truth.
"""

import itertools
import json
import os
import sys
from subprocess import run

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from paperlib.audits.language.corpus import corpus_identifiers, open_corpus
from paperlib.data.files import MANIFEST, check_sha256, made_up
from paperlib.generators.identifiers import PAPER_KINDS
from paperlib.io.files import file_sha256
from paperlib.reproduction.data import load
from paperlib.reproduction.data.images import cifar10
from paperlib.reproduction.data.registry import load_images
from paperlib.reproduction.data.text.dialogues import persona_chat
from paperlib.reproduction.data.text.sets import text_documents
from paperlib.reproduction.made_up import images, made_up_folder, made_up_variables, models
from paperlib.reproduction.made_up.models import snapshot
from tests.refusals import refused


@pytest.fixture(scope="module")
def folder():
    """In the user's cache, from which the rehearsals of notebooks read it, too."""
    return made_up_folder()


@pytest.fixture
def chosen(folder, monkeypatch):
    for name, value in made_up_variables(folder).items():
        monkeypatch.setenv(name, value)
    return folder


def test_tables_images_and_faces_are_read_by_the_official_loaders_and_can_be_learned(chosen):
    adult, purchase = load("adult"), load("purchase100")
    assert (len(adult.train_y), len(adult.test_y)) == (1_400, 700)
    assert 0.2 < adult.train_y.mean() < 0.3
    assert purchase.train_x.shape == (1_005, 600)
    assert purchase.classes == 100
    found = load_images("cifar10")
    assert (len(found.train_x), len(found.test_x)) == (50_000, 10_000)
    assert (
        found.sha256s[cifar10.ARCHIVE]
        == file_sha256(chosen / cifar10.ARCHIVE)
        != cifar10.ARCHIVE_SHA256
    )
    colours = found.train_x[:5000].mean(axis=(2, 3))
    centres = np.stack([colours[found.train_y[:5000] == at].mean(axis=0) for at in range(10)])
    nearest = ((found.test_x.mean(axis=(2, 3))[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    assert 0.5 < (nearest == found.test_y).mean() < 0.95
    rows = found.train_x[:2000].reshape(2000, -1)
    assert len(np.unique(rows, axis=0)) == 2000
    found = load_images("celeba")
    assert found.train_x.shape[1:] == (3, 128, 128)
    assert (len(found.train_x), len(found.test_x), found.outputs) == (321, 79, 40)
    light = found.train_x[:, :, 70:78, 8:16].mean(
        axis=(1, 2, 3)
    )  # the first patch of the fifth row
    has = found.train_y.astype(bool)
    gaps = [light[has[:, at]].mean() - light[~has[:, at]].mean() for at in range(40)]
    assert int(np.argmax(gaps)) == 4 * 5
    assert max(gaps) > 50


def test_the_folder_is_written_once_and_always_the_same(tmp_path, monkeypatch):
    """With few images and without weights, which take long to write."""
    monkeypatch.setattr(models, "write", lambda folder: None)
    monkeypatch.setattr(images, "WEIGHTS", ())
    monkeypatch.setattr(images, "_FACES", 20)
    monkeypatch.setattr(cifar10, "IMAGES_PER_FILE", 100)
    manifests = []
    for name in ("one", "other"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
        manifest = made_up_folder() / MANIFEST
        written = manifest.stat().st_mtime_ns
        assert made_up_folder() == manifest.parent
        assert manifest.stat().st_mtime_ns == written
        manifests.append(manifest.read_bytes())
    assert manifests[0] == manifests[1]


def test_a_pinned_checksum_gives_way_to_the_manifest_and_to_nothing_else(
    chosen, tmp_path, monkeypatch
):
    assert made_up()
    path = chosen / "adult.data"
    assert json.loads((chosen / MANIFEST).read_text())["sha256"]["adult.data"] == file_sha256(path)
    check_sha256(path, "the checksum of the true file")
    (tmp_path / MANIFEST).write_text(json.dumps({"sha256": {}}))
    (tmp_path / "adult.data").write_text("a true file among made-up ones")
    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path))
    refused(
        "of no made-up file",
        check_sha256,
        tmp_path / "adult.data",
        file_sha256(tmp_path / "adult.data"),
    )
    (tmp_path / MANIFEST).unlink()
    assert not made_up()
    refused("expected SHA-256 00", check_sha256, tmp_path / "adult.data", "00")


def test_texts_are_read_by_the_official_loaders_and_hold_identifiers_and_can_be_learned(chosen):
    articles = text_documents("wikitext103")
    assert len(articles) == 90
    assert len(set(articles)) == 90
    assert articles[0].startswith(" = ")
    turns = persona_chat()[0].splitlines()
    assert [turn[:3] for turn in turns[:2]] == ["A: ", "B: "]
    corpora = {
        "nid_corpus": 14,
        "pile_test_subsets": 12,
        "pile_train": 6,
        "pile_test": 6,
        "dolma": 7,
        "proof_pile_2_test": 2,
    }
    for name, subsets in corpora.items():
        found = corpus_identifiers(open_corpus(name))
        assert {one.kind for one in found} == set(PAPER_KINDS), name
        assert len({one.subset for one in found}) == subsets, name
        assert all(one.occurrences == 1 for one in found)
    words = " ".join(articles).split()
    followers: dict[str, set[str]] = {}
    for one, other in itertools.pairwise(words):
        followers.setdefault(one, set()).add(other)
    common = sorted(map(len, followers.values()))[len(followers) // 2]
    assert 3 <= common <= 20, "few words follow a word, so that a model has something to learn"


@pytest.mark.parametrize(
    ("name", "size"), [("gpt2", 124_439_808), ("EleutherAI/pythia-70m", 70_426_624)]
)
def test_hub_models_have_their_published_shape_and_a_tokenizer_that_fits(folder, name, size):
    place = snapshot(folder, name)
    config = AutoConfig.from_pretrained(place)
    with torch.device("meta"):
        assert AutoModelForCausalLM.from_config(config).num_parameters() == size
    tokenizer = AutoTokenizer.from_pretrained(place)
    assert tokenizer.eos_token_id == config.eos_token_id < config.vocab_size
    text = "md5: 83a5ef2c9d0b3e71f6a8c3d25b190e47"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    assert (place / "model.safetensors").is_file()


def test_timm_finds_the_weights_without_a_network(chosen):
    """In a process of its own, which reads the hub's variables at its start, as a run's kernel
    does.
    """
    code = "from paperlib.models.images.build import pretrained_classifier as found\n"
    code += "print(found('vit_small_patch16_224', 3).side)"
    done = run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.stdout == "224\n", done.stderr
