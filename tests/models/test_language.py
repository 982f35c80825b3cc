"""Language models by name and by folder: what is found, what is missing, and what their shapes
tell.
"""

import ast
import io
import json
import os
import pickle
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import huggingface_hub
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from paperlib.models import language
from paperlib.models.devices import fast_products
from tests.refusals import refused


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory):
    """The files of a snapshot, as the hub's cache has them, in a folder of any name."""
    folder = tmp_path_factory.mktemp("anywhere") / "my-model"
    shape = language.LanguageModelConfig(width=16, heads=2, context=16)
    language.new_language_model(shape, 260).save_pretrained(folder)
    language.train_tokenizer(["to be or not to be"], 260, context=16).save_pretrained(folder)
    return folder


def test_a_snapshot_folder_is_loaded_by_its_path_and_its_stamp_changes_with_the_weights(
    snapshot, tmp_path
):
    model, tokenizer = language.load_language_model(snapshot)
    assert len(tokenizer) == model.config.vocab_size == 260
    assert language.parameter_count(snapshot) == model.num_parameters()
    shutil.copytree(snapshot, tmp_path, dirs_exist_ok=True)
    before = language.model_stamp(tmp_path)
    assert language.model_stamp(tmp_path) == before
    os.utime(tmp_path / "model.safetensors", ns=(1, 1))
    assert language.model_stamp(tmp_path) != before


@pytest.mark.parametrize("is_terminal", [True, False])
def test_loading_shows_a_bar_on_a_terminal_alone(snapshot, is_terminal, monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(shown, "isatty", lambda: is_terminal)
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.delenv("PAPERLIB_PROGRESS", raising=False)
    language.load_language_model(snapshot)
    assert ("Loading weights" in shown.getvalue()) == is_terminal
    assert language.transformers.utils.logging.is_progress_bar_enabled()


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "tokenizer*"])
def test_a_folder_that_lacks_a_part_is_told_which_in_one_line(snapshot, tmp_path, missing):
    shutil.copytree(snapshot, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns(missing))
    words = {"model.safetensors": "weights", "tokenizer*": "tokenizer"}.get(missing, missing)
    refused(
        rf"name: expected a folder with .* lacks {words}", language.load_language_model, tmp_path
    )


def test_offline_a_name_is_found_in_the_cache_or_the_error_says_what_to_fetch(
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


def test_the_models_of_the_papers_have_a_commit_that_is_loaded_unless_another_is_asked_for(
    snapshot, tmp_path, monkeypatch
):
    place = tmp_path / "models--ORG--named"
    (place / "refs").mkdir(parents=True)
    (place / "snapshots").mkdir()
    pinned, moved = "a" * 40, "b" * 40
    (place / "refs" / "main").write_text(moved)
    (place / "snapshots" / pinned).symlink_to(snapshot)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    refused("ORG/named", language.load_language_model, "ORG/named")
    monkeypatch.setattr(language, "PINNED", {"ORG/named": pinned})
    model, _ = language.load_language_model("ORG/named")
    assert model.num_parameters() == language.parameter_count("ORG/named")
    refused("--revision main", language.load_language_model, "ORG/named", revision="main")
    monkeypatch.setattr(language, "PINNED", {"ORG/named": moved})
    refused(f"--revision {moved}", language.load_language_model, "ORG/named")


def test_each_pin_is_a_whole_commit():
    assert {"gpt2", "EleutherAI/pythia-12b", "allenai/OLMo-7B-0424-hf"} <= set(language.PINNED)
    assert all(re.fullmatch("[0-9a-f]{40}", commit) for commit in language.PINNED.values())


@pytest.fixture
def hostile(snapshot, tmp_path):
    """A copy of a good model with a file that would leave a trace if it ran, and that trace."""
    folder, trace = tmp_path / "model", tmp_path / "code_ran"
    shutil.copytree(snapshot, folder)
    (folder / "own.py").write_text(
        f"import pathlib\npathlib.Path({str(trace)!r}).touch()\n"
        "from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, PreTrainedTokenizerFast\n"
        "class OwnConfig(GPTNeoXConfig):\n    model_type = 'own'\n"
        "class OwnModel(GPTNeoXForCausalLM):\n    config_class = OwnConfig\n"
        "class OwnTokenizer(PreTrainedTokenizerFast):\n    pass\n"
    )
    return folder, trace


def changed(path, **content):
    path.write_text(json.dumps({**json.loads(path.read_text()), **content}))


OWN_MODEL = {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnModel"}
OWN_TOKENIZER = {"AutoTokenizer": ["own.OwnTokenizer", "own.OwnTokenizer"]}


@pytest.mark.parametrize("part", ["model", "tokenizer"])
def test_code_of_a_model_is_never_run_and_nobody_is_asked(hostile, monkeypatch, capsys, part):
    folder, trace = hostile
    if part == "model":
        changed(folder / "config.json", model_type="own", auto_map=OWN_MODEL)
    else:
        tokenizer = {"auto_map": OWN_TOKENIZER, "tokenizer_class": "OwnTokenizer"}
        changed(folder / "tokenizer_config.json", **tokenizer)
        changed(folder / "config.json", model_type="own")
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("the user was asked"))
    said = refused("code of its own", language.load_language_model, folder)
    assert "trust_remote_code" not in said + capsys.readouterr().err
    if part == "model":
        refused("code of its own", language.parameter_count, folder)
    assert not trace.exists()


def test_code_beside_a_model_that_transformers_knows_is_left_alone(hostile):
    folder, trace = hostile
    changed(folder / "config.json", auto_map=OWN_MODEL, architectures=["OwnModel"])
    model, _ = language.load_language_model(folder)
    assert type(model) is transformers.GPTNeoXForCausalLM
    assert not trace.exists()


class Trap:
    """A pickle that would make a file."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return open, (str(self.trace), "w")


@pytest.mark.parametrize("damage", ["pickle", "header", "cut"])
def test_damaged_and_pickled_weights_are_one_line_that_advises_nothing_unsafe(hostile, damage):
    folder, trace = hostile
    weights = folder / "model.safetensors"
    content = weights.read_bytes()
    if damage == "pickle":
        weights.unlink()
        (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Trap(trace), protocol=2))
    elif damage == "header":
        weights.write_bytes((2**62).to_bytes(8, "little") + b"{}")
    else:
        weights.write_bytes(content[: len(content) // 2])
    said = refused("are damaged or hold more than numbers", language.load_language_model, folder)
    assert "weights_only" not in said
    assert not trace.exists()


def test_every_call_that_could_run_code_of_a_model_says_not_to():
    """`from_pretrained` and `from_config` of transformers' Auto classes, in the whole package."""
    calls = []
    for path in Path(language.__file__).parents[1].rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if not is_call or node.func.attr not in ("from_pretrained", "from_config"):
                continue
            if "Auto" not in ast.unparse(node.func.value):
                continue
            calls.append(ast.unparse(node))
    assert len(calls) >= 6
    safe = ("trust_remote_code=False", "**NO_REMOTE_CODE", "**options", "**loading")
    assert [call for call in calls if not any(word in call for word in safe)] == []


def test_fast_products_end_where_they_began():
    before = torch.backends.cuda.matmul.allow_tf32
    for allowed in (True, False):
        with fast_products(allowed=allowed):
            assert torch.backends.cuda.matmul.allow_tf32 == (before or allowed)
        assert torch.backends.cuda.matmul.allow_tf32 == before


def test_weights_under_other_names_an_adapter_and_a_model_that_sees_ahead_are_refused(
    snapshot, tmp_path
):
    for name in ("wrapped", "adapter", "bert"):
        shutil.copytree(snapshot, tmp_path / name)
    weights = load_file(snapshot / "model.safetensors")
    wrapped = {f"_orig_mod.{name}": value for name, value in weights.items()}
    save_file(wrapped, tmp_path / "wrapped" / "model.safetensors", metadata={"format": "pt"})
    (tmp_path / "adapter" / "adapter_config.json").write_text("{}")
    settings = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    settings["initializer_range"] = 1.0
    bert = transformers.BertLMHeadModel(transformers.BertConfig(vocab_size=260, **settings))
    bert.save_pretrained(tmp_path / "bert")
    refused("and would be random", language.load_language_model, tmp_path / "wrapped")
    refused("a token sees those behind it", language.load_language_model, tmp_path / "bert")
    if find_spec("peft") is None:
        refused(
            "a LoRA adapter", language.load_language_model, tmp_path / "adapter", error=ImportError
        )
