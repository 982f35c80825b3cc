"""Made-up data: read by the loaders of the true data, the same every time, and never taken for the truth."""

import itertools
import json

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from paperlib.audits.corpus import corpus_identifiers, open_corpus
from paperlib.data import load
from paperlib.data.files import MANIFEST, check_sha256, made_up
from paperlib.data.made_up import made_up_folder, made_up_variables
from paperlib.data.made_up.models import snapshot
from paperlib.data.text.dialogues import persona_chat
from paperlib.data.text.sets import text_documents
from paperlib.generators.identifiers import PAPER_KINDS
from paperlib.io import file_sha256


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield made_up_folder()


@pytest.fixture
def chosen(folder, monkeypatch):
    for name, value in made_up_variables(folder).items():
        monkeypatch.setenv(name, value)
    return folder


def test_tables_are_read_by_the_official_loaders_and_can_be_learned(chosen):
    adult, purchase = load("adult"), load("purchase100")
    assert (len(adult.train_y), len(adult.test_y)) == (1_400, 700)
    assert 0.2 < adult.train_y.mean() < 0.3
    assert purchase.train_x.shape == (1_005, 600)
    assert purchase.classes == 100


def test_the_folder_is_written_once_and_always_the_same(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    again = made_up_folder()
    written = (again / MANIFEST).stat().st_mtime_ns
    assert made_up_folder() == again
    assert (again / MANIFEST).stat().st_mtime_ns == written
    assert (again / MANIFEST).read_bytes() == (folder / MANIFEST).read_bytes()


def test_a_pinned_checksum_gives_way_to_the_manifest_and_to_nothing_else(chosen, tmp_path, monkeypatch):
    assert made_up()
    path = chosen / "adult.data"
    assert json.loads((chosen / MANIFEST).read_text())["sha256"]["adult.data"] == file_sha256(path)
    check_sha256(path, "the checksum of the true file")
    (tmp_path / MANIFEST).write_text(json.dumps({"sha256": {}}))
    (tmp_path / "adult.data").write_text("a true file among made-up ones")
    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path))
    with pytest.raises(ValueError, match="of no made-up file"):
        check_sha256(tmp_path / "adult.data", file_sha256(tmp_path / "adult.data"))


def test_true_files_are_still_checked(tmp_path, monkeypatch):
    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path))
    (tmp_path / "adult.data").write_text("39, State-gov")
    assert not made_up()
    with pytest.raises(ValueError, match="expected SHA-256 00"):
        check_sha256(tmp_path / "adult.data", "00")


def test_texts_are_read_by_the_official_loaders_and_hold_every_kind_of_identifier(chosen):
    articles = text_documents("wikitext103")
    assert len(articles) == 90
    assert len(set(articles)) == 90
    assert articles[0].startswith(" = ")
    turns = persona_chat()[0].splitlines()
    assert [turn[:3] for turn in turns[:2]] == ["A: ", "B: "]
    corpora = {"nid_corpus": 14, "pile_test_subsets": 12, "pile_train": 6, "pile_test": 6, "dolma": 7,
               "proof_pile_2_test": 2}  # fmt: skip
    for name, subsets in corpora.items():
        found = corpus_identifiers(open_corpus(name))
        assert {one.kind for one in found} == set(PAPER_KINDS), name
        assert len({one.subset for one in found}) == subsets, name
        assert all(one.occurrences == 1 for one in found)


def test_words_of_a_text_can_be_learned(chosen):
    """A word is followed by a few others alone, so that a model has something to learn."""
    words = " ".join(text_documents("wikitext103")).split()
    followers: dict[str, set[str]] = {}
    for one, other in itertools.pairwise(words):
        followers.setdefault(one, set()).add(other)
    common = sorted(len(found) for found in followers.values())[len(followers) // 2]
    assert 3 <= common <= 20


@pytest.mark.parametrize("name", ["gpt2", "EleutherAI/pythia-70m"])
def test_hub_models_have_their_published_shape_and_a_tokenizer_that_fits(folder, name):
    place = snapshot(folder, name)
    config = AutoConfig.from_pretrained(place)
    parameters = {"gpt2": 124_439_808, "EleutherAI/pythia-70m": 70_426_624}[name]
    with torch.device("meta"):
        assert AutoModelForCausalLM.from_config(config).num_parameters() == parameters
    tokenizer = AutoTokenizer.from_pretrained(place)
    assert tokenizer.eos_token_id == config.eos_token_id < config.vocab_size
    text = "md5: 83a5ef2c9d0b3e71f6a8c3d25b190e47"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    assert (place / "model.safetensors").is_file()
