"""Language models by name and by folder: what is found, what is missing, and what their shapes tell."""

import os
import shutil

import huggingface_hub
import pytest
import torch

from paperlib.models import language
from paperlib.models.devices import fast_products
from tests.refusals import refused


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory):
    """The files of a snapshot, as the hub's cache has them, in a folder of any name."""
    folder = tmp_path_factory.mktemp("anywhere") / "my-model"
    language.new_language_model(
        language.LanguageModelConfig(width=16, heads=2, context=16), 260
    ).save_pretrained(folder)
    language.train_tokenizer(["to be or not to be"], 260, context=16).save_pretrained(folder)
    return folder


def test_a_snapshot_folder_is_loaded_by_its_path_and_its_stamp_changes_with_the_weights(snapshot, tmp_path):
    model, tokenizer = language.load_language_model(snapshot)
    assert len(tokenizer) == model.config.vocab_size == 260
    assert language.parameter_count(snapshot) == model.num_parameters()
    shutil.copytree(snapshot, tmp_path, dirs_exist_ok=True)
    before = language.model_stamp(tmp_path)
    assert language.model_stamp(tmp_path) == before
    os.utime(tmp_path / "model.safetensors", ns=(1, 1))
    assert language.model_stamp(tmp_path) != before


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "tokenizer*"])
def test_a_folder_that_lacks_a_part_is_told_which_in_one_line(snapshot, tmp_path, missing):
    shutil.copytree(snapshot, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns(missing))
    words = {"model.safetensors": "weights", "tokenizer*": "tokenizer"}.get(missing, missing)
    refused(rf"name: expected a folder with .* lacks {words}", language.load_language_model, tmp_path)


def test_offline_a_name_is_found_in_the_cache_or_the_error_says_what_to_fetch_and_where(
    snapshot, tmp_path, monkeypatch
):
    place = tmp_path / "models--ORG--here"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("abc")
    (place / "snapshots").mkdir()
    (place / "snapshots" / "abc").symlink_to(snapshot)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    model, _ = language.load_language_model("ORG/here")
    assert model.num_parameters() == language.parameter_count("ORG/here")
    for name in (tmp_path / "nothing here", "not a/valid/name"):
        refused("name: expected a folder with ", language.load_language_model, name)
    said = refused("hf download ORG/missing", language.load_language_model, "ORG/missing")
    assert f"models--ORG--missing of its cache into {tmp_path}" in said


def test_fast_products_end_where_they_began():
    before = torch.backends.cuda.matmul.allow_tf32
    for allowed in (True, False):
        with fast_products(allowed=allowed):
            assert torch.backends.cuda.matmul.allow_tf32 == (before or allowed)
        assert torch.backends.cuda.matmul.allow_tf32 == before
