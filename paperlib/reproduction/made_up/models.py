"""Made-up language models in the layout of the Hugging Face cache: true shapes, random weights."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from paperlib.core.packages import optional_package
from paperlib.reproduction.made_up.texts import sample

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
    tokenizer = _trained_tokenizer()
    for name, shape in CONFIGS.items():
        target = snapshot(folder, name)
        _write_json(target / "config.json", shape, indent=1)
        _write_tokenizer(target, tokenizer, shape)
        _write_weights(target)


def _trained_tokenizer() -> str:
    """A byte-level BPE as ``tokenizers`` writes it, with the token for the end of a text at 0."""
    tokenizers = _package("tokenizers")
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE())
    bpe.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=_PIECES,
        special_tokens=[_END],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(sample(2_000), trainer)
    return bpe.to_str()


def _write_tokenizer(folder: Path, tokenizer: str, shape: Mapping[str, Any]) -> None:
    """Write the tokenizer's files of a model into its folder, with the token for the end of a text
    at the number that the model's config, ``shape``, has.
    """
    content = json.loads(tokenizer)
    end = int(shape["eos_token_id"])
    vocabulary = content["model"]["vocab"]
    vocabulary[_END] = end
    content["added_tokens"][0]["id"] = end
    _write_json(folder / "tokenizer.json", content)
    _write_json(folder / "vocab.json", vocabulary)
    merges = [" ".join(pair) for pair in content["model"]["merges"]]
    lines = ["#version: 0.2", *merges, ""]
    (folder / "merges.txt").write_text("\n".join(lines), encoding="utf-8")
    settings = {
        "bos_token": _END,
        "eos_token": _END,
        "unk_token": _END,
        "model_max_length": int(shape.get("n_positions", 2048)),
        # Of Pythia the end of a text has the number 0.
        "tokenizer_class": "GPT2TokenizerFast" if end else "GPTNeoXTokenizerFast",
    }
    _write_json(folder / "tokenizer_config.json", settings)


def _write_weights(folder: Path) -> None:
    """Write random weights, the same in each call, of the model whose config.json is in the folder,
    in the number format that it names.
    """
    torch = _package("torch")
    transformers = _package("transformers")
    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model: Any = transformers.AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    dtype = getattr(torch, str(config.dtype).removeprefix("torch."))
    model.to(dtype).save_pretrained(folder)


def _write_json(path: Path, content: Mapping[str, Any], *, indent: int | None = None) -> None:
    path.write_text(json.dumps(content, indent=indent), encoding="utf-8")


def snapshot(folder: Path, name: str) -> Path:
    """Make the folder of a model's files in the hub's cache below a data folder, named after the
    commit that is loaded, with the reference that leads there; ``name`` is that on the hub.
    """
    from paperlib.models.language import PINNED  # needs torch, which is optional

    model = folder / "hub" / "hub" / f"models--{name.replace('/', '--')}"
    revision = PINNED.get(name, _REVISION)
    files = model / "snapshots" / revision
    references = model / "refs"
    files.mkdir(parents=True, exist_ok=True)
    references.mkdir(parents=True, exist_ok=True)
    (references / "main").write_text(revision, encoding="utf-8")
    return files
