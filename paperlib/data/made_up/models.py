"""Made-up language models in the layout of the Hugging Face cache: true shapes, random weights."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from paperlib.core.packages import optional_package
from paperlib.data.made_up.texts import sample

_REVISION = "made-up"
_END = "<|endoftext|>"
_PIECES = 1_200  # tokens that the tokenizer learns; the models' vocabularies are larger
_package = partial(optional_package, extra="language", purpose="writing made-up language models")

CONFIGS: Mapping[str, Mapping[str, Any]] = json.loads(
    Path(__file__).with_suffix(".json").read_text("utf-8")
)
"""Published shapes, by the name on the hub."""


def write(folder: Path) -> None:
    """Write the models into the folder hub of a data folder, which is a ``HF_HOME``."""
    # A byte-level BPE as ``tokenizers`` writes it, with the token for the end of a text at 0.
    parts = _package("tokenizers")
    alphabet = parts.pre_tokenizers.ByteLevel.alphabet()
    bpe = parts.Tokenizer(parts.models.BPE())
    bpe.pre_tokenizer = parts.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = parts.decoders.ByteLevel()
    settings = {"vocab_size": _PIECES, "special_tokens": [_END], "initial_alphabet": alphabet}
    bpe.train_from_iterator(
        sample(2_000), parts.trainers.BpeTrainer(**settings, show_progress=False)
    )
    tokenizer = json.loads(bpe.to_str())
    for name, shape in CONFIGS.items():
        place = snapshot(folder, name)
        (place / "config.json").write_text(json.dumps(shape, indent=1), encoding="utf-8")
        end = int(shape["eos_token_id"])
        # With the end of a text where the model's shape has it.
        context = int(shape.get("n_positions", 2048))
        whole = json.loads(json.dumps(tokenizer))
        vocabulary = whole["model"]["vocab"]
        vocabulary[_END] = whole["added_tokens"][0]["id"] = end
        (place / "tokenizer.json").write_text(json.dumps(whole), encoding="utf-8")
        (place / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
        merges = [" ".join(one) for one in whole["model"]["merges"]]
        (place / "merges.txt").write_text(
            "\n".join(["#version: 0.2", *merges, ""]), encoding="utf-8"
        )
        about = {
            "bos_token": _END,
            "eos_token": _END,
            "unk_token": _END,
            "model_max_length": context,
            "tokenizer_class": "GPT2TokenizerFast" if end else "GPTNeoXTokenizerFast",
        }
        (place / "tokenizer_config.json").write_text(json.dumps(about), encoding="utf-8")
        torch, transformers = _package("torch"), _package("transformers")
        config = transformers.AutoConfig.from_pretrained(place)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model: Any = transformers.AutoModelForCausalLM.from_config(config)
        model.to(getattr(torch, str(config.dtype).removeprefix("torch."))).save_pretrained(place)


def snapshot(folder: Path, name: str) -> Path:
    """Folder of a model's files in the hub's cache below ``folder``, with the reference that leads
    there.
    """
    model = folder / "hub" / "hub" / f"models--{name.replace('/', '--')}"
    place = model / "snapshots" / _REVISION
    for one in (place, model / "refs"):
        one.mkdir(parents=True, exist_ok=True)
    (model / "refs" / "main").write_text(_REVISION, encoding="utf-8")
    return place
