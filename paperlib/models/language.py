"""Causal language models: any of the Hugging Face hub or a folder, and small ones from scratch."""

import os
import pickle
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import huggingface_hub
import torch
import transformers
import yaml
from safetensors import SafetensorError
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers.models.auto.tokenization_auto import get_tokenizer_config

from paperlib.core.checks import check_at_least, check_choice
from paperlib.models.devices import default_device
from paperlib.models.folders import ADAPTER, base_of_adapter, check_model_folder, check_rank
from paperlib.models.shapes import (
    ShapeError,
    check_layers,
    check_stored,
    config_faults,
    weight_faults,
    without_weights,
)

NO_REMOTE_CODE = {"trust_remote_code": False}
"""Of every ``from_pretrained`` and ``from_config``: no code that comes with a model is run, and the
user is not asked whether it shall be."""

DTYPES = ("auto", "float32", "bfloat16", "float16", "int8")

PINNED: Mapping[str, str] = yaml.safe_load(
    Path(__file__).with_name("pinned.yaml").read_text(encoding="utf-8")
)
"""Commits of models on the hub, by name, that are loaded where no revision is given."""

_FEWEST_TOKENS = 16
END_OF_TEXT = "<|endoftext|>"


@dataclass(frozen=True, kw_only=True)
class LanguageModelConfig:
    """Shape of a small GPT of the Pythia family (GPT-NeoX), and the seed of its initial weights."""

    width: int = 128
    layers: int = 1
    heads: int = 4
    context: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse (ValueError) numbers out of range, and a width that the heads cannot share."""
        check_at_least(
            1, width=self.width, layers=self.layers, heads=self.heads, context=self.context
        )
        if self.width % (2 * self.heads):
            raise ValueError(
                f"width: expected a multiple of twice the heads ({2 * self.heads}), got "
                f"{self.width}"
            )


def load_language_model(
    name: str | Path, *, dtype: str = "auto", device: str | None = None, revision: str | None = None
) -> tuple[Any, Any]:
    """A causal language model, in evaluation mode, and its tokenizer, by name on the hub or by
    folder.

    Args:
        dtype: "auto" (as stored), "float32", "bfloat16", "float16", or "int8" (through
            bitsandbytes: linear layers but the last keep weights of 8 bits).
        device: "cpu", "cuda:0", ..., or "auto": all GPUs, through accelerate. None takes CUDA or
            the CPU.
        revision: Commit, branch or tag on the hub; None takes the commit of `PINNED`, or the main
            branch of a model that is not there.

    Raises:
        ValueError: Files that are missing or damaged, a config.json of a model that its weights do
            not hold, code of the model's own, a model that sees tokens to come, or an unknown dtype
            or device.
        ModuleNotFoundError: A package that the model, dtype or device needs.
    """
    check_choice("dtype", dtype, DTYPES)
    target = device if device == "auto" else str(default_device(device))
    options: dict[str, Any] = dict(NO_REMOTE_CODE)
    options |= _pin(name, revision)
    loading = dict(options)
    is_spread = target == "auto" or dtype == "int8"  # accelerate puts it on its devices
    if is_spread:
        _need("accelerate", f"dtype {dtype!r} on device {target!r}")
        loading["device_map"] = target
    if (Path(name) / ADAPTER).is_file():
        _need("peft", "a LoRA adapter")
    if dtype == "int8":
        _need("bitsandbytes", "dtype 'int8'")
        loading["quantization_config"] = transformers.BitsAndBytesConfig(load_in_8bit=True)
    else:
        loading["dtype"] = dtype
    _check_shape(name, revision)
    with weight_faults(str(name)), _failures_in_one_line(name, revision), _bars_on_terminals():
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(name), **options)
        if len(tokenizer) < _FEWEST_TOKENS:  # without its files, an empty one is made
            raise ValueError(f"its tokenizer has {len(tokenizer)} tokens.")
        loaded: Any = transformers.AutoModelForCausalLM.from_pretrained(
            str(name), output_loading_info=True, **loading
        )
    model, report = loaded
    absent = sorted(map(str, (*report["missing_keys"], *report["mismatched_keys"])))
    if absent:
        raise ValueError(
            f"name: {len(absent)} weights of the model are not in {name}, such as {absent[0]}, and "
            "would be random; save the model itself, without what torch.compile, DDP or peft put "
            "around it"
        )
    if not is_spread:
        model = model.to(target)
    model = model.eval()
    check_causal(model, f"name: in {name}")
    return model, tokenizer


def _pin(name: str | Path, revision: str | None = None) -> dict[str, str]:
    """The revision as an option of ``from_pretrained``: the one given, or that of `PINNED`; empty
    for a folder and for a name without one.
    """
    if not revision and not Path(name).is_dir():
        revision = PINNED.get(str(name))
    return {"revision": revision} if revision else {}


def check_causal(model: Any, where: str) -> None:
    """Refuse (ValueError) a model in which a token sees those behind it, as in BERT.

    ``where`` begins the message, such as "name: in a/folder".
    """
    # Two texts that differ in their last token alone: the others' logits may not.
    device = model.get_input_embeddings().weight.device
    tokens = torch.tensor(
        [[1, 2, 3, 4], [1, 2, 3, 5]], device="cpu" if device.type == "meta" else device
    )
    with torch.inference_mode():
        logits = model(input_ids=tokens, use_cache=False).logits[:, :3].float()
    if not torch.allclose(*logits, rtol=0.01, atol=0.01, equal_nan=True):
        raise ValueError(f"{where} a token sees those behind it; give a model that writes text")


def _check_shape(name: str | Path, revision: str | None) -> None:
    """Refuse (ValueError) a model, or the base of an adapter, of a shape that no computer holds, or
    that the weights in its folder do not hold.
    """
    config = _config(name, revision)
    parameters = _count(name, config)
    check_stored(parameters, _holder_of_config(name))
    width = getattr(config.get_text_config(), "hidden_size", None)
    if isinstance(width, int):
        check_rank(Path(name), width)


def parameter_count(name: str | Path) -> int:
    """Number of parameters of a model of the hub or in a folder, from its config.json alone; of an
    adapter, those of its base.

    Raises:
        ValueError: A config that is missing or damaged, or by which no model can be built.
    """
    return _count(name, _config(name))


def _count(name: str | Path, config: Any) -> int:
    """Number of parameters of the model that a config describes."""
    with _failures_in_one_line(_holder_of_config(name)):
        return int(without_weights(config, _where(name)).num_parameters())


def _where(name: str | Path) -> str:
    """What begins a message on the config.json of a model."""
    return f"name: in {_holder_of_config(name)}"


def _holder_of_config(name: str | Path) -> Path:
    """The folder, or name on the hub, that has the config.json of the model: for a LoRA adapter
    that of its base, for any other model ``name`` itself.
    """
    return base_of_adapter(Path(name)) or Path(name)


def model_stamp(name: str | Path) -> dict[str, Any]:
    """What identifies a model in a cache, as values of JSON by name: its config, and its commit on
    the hub (None elsewhere) or name, size and time of change of each file of its folder and, for a
    LoRA adapter, of its base's folder.

    Raises:
        ValueError: A config that is missing or damaged.
    """
    config = _config(name)
    stamps: list[list[Any]] = []
    # Both folders of an adapter; the one folder of any other model, once.
    for folder in dict.fromkeys((Path(name), _holder_of_config(name))):
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            if path.is_file():
                stamps.append([path.name, path.stat().st_size, path.stat().st_mtime_ns])
    commit = getattr(config, "_commit_hash", None)
    return {"name": str(name), "config": config.to_json_string(), "commit": commit, "files": stamps}


def _config(name: str | Path, revision: str | None = None) -> Any:
    """The config.json of a model, or of an adapter's base, as transformers reads it.

    Raises:
        ValueError: In one line, what is missing or damaged.
    """
    check_model_folder(name)
    source = str(_holder_of_config(name))
    pinned = _pin(source, None if source != str(name) else revision)
    with config_faults(_where(name)), _failures_in_one_line(source, revision):
        content, _ = transformers.PreTrainedConfig.get_config_dict(source, **pinned)
        check_layers(content, _where(name))
        return transformers.AutoConfig.from_pretrained(source, **NO_REMOTE_CODE, **pinned)


@contextmanager
def _bars_on_terminals() -> Iterator[None]:
    """Hides the bars of transformers and of its downloads where stderr is no terminal: in a log,
    each step of a bar is a line. `PAPERLIB_PROGRESS=0` hides them everywhere.
    """
    bars = transformers.utils.logging
    is_silent = os.environ.get("PAPERLIB_PROGRESS") == "0" or not sys.stderr.isatty()
    if not (is_silent and bars.is_progress_bar_enabled()):
        yield
        return
    bars.disable_progress_bar()
    try:
        yield
    finally:
        bars.enable_progress_bar()


@contextmanager
def _failures_in_one_line(name: str | Path, revision: str | None = None) -> Iterator[None]:
    """Says in a ValueError of one line why a model or its tokenizer cannot be loaded.

    What transformers and torch say is left out where it advises to run code of the model's folder:
    ``trust_remote_code=True`` for its classes, ``weights_only=False`` for pickled weights.
    """
    check_model_folder(name)
    try:
        yield
    except ShapeError:
        raise
    except (OSError, ValueError, ImportError) as error:
        if _brings_code(name):
            raise ValueError(
                f"name: {name} needs code of its own (auto_map in its JSON files), which is never "
                "run here; save it in a form that transformers knows without such code"
            ) from None
        raise ValueError(_missing(str(name), error, revision)) from error
    except (SafetensorError, pickle.UnpicklingError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"name: the weights in {name} are damaged or hold more than numbers "
            f"({type(error).__name__}); save them again with save_pretrained, as *.safetensors"
        ) from None


def _brings_code(name: str | Path) -> bool:
    """Whether a model or its tokenizer names classes of its own, which lie beside it."""
    settings: list[dict[str, Any]] = []
    # Of files that are missing, or no JSON, `_missing` tells.
    with suppress(OSError, ValueError):
        settings.append(transformers.PreTrainedConfig.get_config_dict(str(name))[0])
    with suppress(OSError, ValueError):
        settings.append(get_tokenizer_config(str(name)))
    return any("auto_map" in content for content in settings)


def _missing(name: str, error: Exception, revision: str | None) -> str:
    """One line: what was not found of the model ``name``, and what to fetch and where to put it;
    ``error`` is that of transformers.
    """
    message = str(error).strip().splitlines()[0]
    folder = Path(name)
    if folder.is_dir():
        lacks = " and ".join(_lacking(folder)) or "none of them"
        return (
            f"name: expected a folder with config.json, weights (*.safetensors) and a tokenizer "
            f"(tokenizer.json); {name!r} lacks {lacks}: {message}"
        )
    cache = Path(huggingface_hub.constants.HF_HUB_CACHE)
    asked = "".join(f" --revision {revision}" for revision in _pin(name, revision).values())
    return (
        "name: expected a folder with a model and its tokenizer or a name on the Hugging Face hub, "
        f"got {name!r}: {message} Where there is a network, run 'hf download {name}{asked}' and "
        f"copy the folder models--{name.replace('/', '--')} of its cache into {cache}, or name the "
        "folder that has the files"
    )


def _lacking(folder: Path) -> list[str]:
    """What of a model the folder has no file of: "config.json", "weights", "tokenizer"."""
    patterns = {
        "config.json": ["config.json"],
        "weights": ["*.safetensors", "*.bin"],
        "tokenizer": ["tokenizer*", "vocab.*"],
    }
    if (folder / ADAPTER).is_file():
        patterns["config.json"] = [ADAPTER]  # the other is in the folder of its base
        patterns["weights"] = ["adapter_model.safetensors"]
    lacking: list[str] = []
    for name, alternatives in patterns.items():
        if not any(any(folder.glob(pattern)) for pattern in alternatives):
            lacking.append(name)
    return lacking


def _need(package: str, purpose: str) -> None:
    """Refuse to go on without a package that transformers would miss later, in many lines."""
    if find_spec(package) is None:
        raise ModuleNotFoundError(f"{purpose} needs {package}: pip install {package}", name=package)


def new_language_model(
    config: LanguageModelConfig, vocabulary: int
) -> "transformers.GPTNeoXForCausalLM":
    """A small GPT with fresh weights from the seed of ``config``, without dropout, its output layer
    untied as in Pythia; ``vocabulary`` is its number of tokens, of which 0 starts and ends a text.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        shape = transformers.GPTNeoXConfig(
            vocab_size=vocabulary,
            hidden_size=config.width,
            intermediate_size=4 * config.width,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            max_position_embeddings=config.context,
            hidden_dropout=0.0,
            attention_dropout=0.0,
            bos_token_id=0,
            eos_token_id=0,
        )
        return transformers.GPTNeoXForCausalLM(shape).eval()


def train_tokenizer(
    texts: Iterable[str], vocabulary: int, *, context: int
) -> "transformers.PreTrainedTokenizerFast":
    """A byte-level BPE tokenizer like GPT-2's: 256 bytes, a token for the end of a text, and
    more, up to ``vocabulary`` tokens; ``context`` is the most that a model takes at once.

    Raises:
        ValueError: A vocabulary below 257.
    """
    check_at_least(257, vocabulary=vocabulary)
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    bpe.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=vocabulary,
            special_tokens=[END_OF_TEXT],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return wrap_tokenizer(bpe.to_str(), context=context)


def wrap_tokenizer(text: str, *, context: int) -> "transformers.PreTrainedTokenizerFast":
    """The tokenizer that ``tokenizers`` wrote as JSON, with one token for start and end of a text;
    ``context`` is the most tokens that its model takes.
    """
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(text),
        bos_token=END_OF_TEXT,
        eos_token=END_OF_TEXT,
        model_max_length=context,
    )
