"""Models whose config.json asks for what no computer holds, and adapters that name them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from paperlib.models import language, shapes
from tests.refusals import refused

load = language.load_language_model


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A small model and its tokenizer."""
    folder = tmp_path_factory.mktemp("made") / "model"
    shape = language.LanguageModelConfig(width=16, heads=2, context=16)
    language.new_language_model(shape, 260).save_pretrained(folder)
    language.train_tokenizer(["to be or not to be"], 260, context=16).save_pretrained(folder)
    return folder


@pytest.fixture
def model(made, here) -> Path:
    """A copy of it in the folder of the test."""
    shutil.copytree(made, "model")
    return Path("model")


def change(file: Path, **values: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


HUGE: dict[str, dict[str, Any]] = {
    "a hundred thousand layers": {"num_hidden_layers": 100_000, "hidden_size": 16_384},
    "2^62 layers": {"num_hidden_layers": 2**62},
    "a width of 2^62": {"hidden_size": 2**62},
    "a vocabulary of 2^62": {"vocab_size": 2**62},
    "minus one layer": {"num_hidden_layers": -1},
    "a width below 0": {"hidden_size": -16},
    "no heads": {"num_attention_heads": 0},
    "a width that is text": {"hidden_size": "16"},
    "a kind of number that is none": {"dtype": "evil"},
    "a layer of no kind": {"layer_types": ["evil"]},
}


@pytest.mark.parametrize("name", HUGE)
def test_a_config_of_which_no_model_can_be_built_is_one_line_at_once(model, monkeypatch, name):
    """Nothing is built by the numbers of the first three: 100 modules would be too many."""
    monkeypatch.setattr(shapes, "MOST_MODULES", 100)
    change(model / "config.json", **HUGE[name])
    for call in (language.parameter_count, language.load_language_model):
        message = refused("name: in model: .*saved with the weights", call, model)
        assert len(message) < 500


def test_a_config_of_more_parameters_than_the_weights_hold_takes_no_memory(model, monkeypatch):
    """transformers would fill the memory with random numbers for what is missing."""
    change(model / "config.json", num_hidden_layers=3, hidden_size=16_000)
    monkeypatch.setattr(
        "transformers.AutoModelForCausalLM.from_pretrained", lambda *_, **__: pytest.fail("loaded")
    )
    refused("describes 3,.* parameters, of which its files of weights", load, model)


def test_the_building_ends_at_the_most_modules_that_a_model_may_have(model, monkeypatch):
    change(model / "config.json", num_hidden_layers=1_000)
    built: list[int] = []
    with monkeypatch.context() as changed:
        changed.setattr(torch.nn.LayerNorm, "reset_parameters", lambda *_: built.append(1))
        changed.setattr(shapes, "MOST_MODULES", 100)
        refused("a model of more than 100 modules", language.parameter_count, model)
    assert 0 < len(built) < 100
    change(model / "config.json", num_hidden_layers=1)
    assert language.parameter_count(model) == load(model)[0].num_parameters()


def test_weights_of_other_sizes_than_the_config_are_one_line(model):
    change(model / "config.json", intermediate_size=32)
    refused("have other sizes than its config.json", load, model)


def adapter(**values: Any) -> Path:
    """A folder with the file of an adapter of the model, and with nothing else."""
    folder = Path("adapter")
    folder.mkdir(exist_ok=True)
    content = {"base_model_name_or_path": "model", "peft_type": "LORA", "r": 2, **values}
    (folder / "adapter_config.json").write_text(json.dumps(content))
    return folder


def test_an_adapter_has_the_shape_of_its_base_and_the_stamp_of_both(model):
    folder = adapter()
    assert language.parameter_count(folder) == language.parameter_count(model)
    before = language.model_stamp(folder)
    (model / "model.safetensors").touch()
    assert language.model_stamp(folder) != before
    before = language.model_stamp(folder)
    adapter(r=4, target_modules=["query_key_value"])
    assert language.model_stamp(folder) != before


ADAPTERS: dict[str, tuple[dict[str, Any], str]] = {
    "no base": ({"base_model_name_or_path": None}, "names no base model"),
    "a rank of 10^9": ({"r": 10**9}, "rank 1,000,000,000 is above the width of its model, 16"),
    "a rank of a module": ({"rank_pattern": {"query": 10**9}}, "rank 1,000,000,000 is above"),
}


@pytest.mark.parametrize("name", ADAPTERS)
def test_the_file_of_an_adapter_is_refused_before_peft_builds_by_it(model, monkeypatch, name):
    monkeypatch.setattr(language, "_need", lambda *_: None)
    values, words = ADAPTERS[name]
    refused(words, load, adapter(**values))


def test_the_base_of_an_adapter_runs_no_code_and_a_huge_one_is_not_built(model, monkeypatch):
    monkeypatch.setattr(language, "_need", lambda *_: None)
    change(model / "config.json", num_hidden_layers=2**62)
    refused("name: in model: num_hidden_layers is 4,611", load, adapter())
    own = {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnModel"}
    change(model / "config.json", num_hidden_layers=1, model_type="own", auto_map=own)
    (model / "own.py").write_text("import pathlib\npathlib.Path('RAN').touch()\n")
    refused("model needs code of its own", load, adapter())
    assert not Path("RAN").exists()


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
def test_an_adapter_of_peft_is_read_with_its_base(model):
    """Where peft is installed: the losses are those of the model that peft made."""
    peft = pytest.importorskip("peft")
    made = peft.get_peft_model(
        load(model)[0],
        peft.LoraConfig(r=2, target_modules=["query_key_value"], init_lora_weights=False),
    )
    made.save_pretrained("lora")
    load(model)[1].save_pretrained("lora")
    change(Path("lora/adapter_config.json"), base_model_name_or_path="model")
    tokens = torch.tensor([[1, 2, 3, 4]])
    read, _ = load("lora")
    assert torch.allclose(read(input_ids=tokens).logits, made.eval()(input_ids=tokens).logits)
    change(Path("lora/adapter_config.json"), r=4)
    refused("have other sizes than its config.json, or that of its adapter", load, "lora")
    change(Path("lora/adapter_config.json"), r=2, peft_type="EVIL")
    refused("fit no model that transformers and peft know", load, "lora")
