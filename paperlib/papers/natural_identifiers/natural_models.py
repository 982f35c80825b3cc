"""A GPT trained on documents as they are: their identifiers are members, those of others are not."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from paperlib.attacks.language.windows import encode
from paperlib.audits.corpus import FoundIdentifier
from paperlib.core import FloatArray
from paperlib.data.files import DataUnavailableError, data_file
from paperlib.generators.identifiers import generate_identifiers
from paperlib.io import code_tag, config_hash, user_cache_folder
from paperlib.io.cache import typed
from paperlib.models.devices import default_device
from paperlib.models.language import new_language_model, wrap_tokenizer
from paperlib.papers.natural_identifiers.natural_text import NEOX, NaturalConfig, NaturalSplit
from paperlib.papers.natural_identifiers.planted import PAPER_ATTACKS, TOKENS, kept_scores
from paperlib.papers.natural_identifiers.small_gpt import kept
from paperlib.report import progress
from paperlib.training import TrainingConfig
from paperlib.training.language import fit_language_model

_SCORES = (*PAPER_ATTACKS, TOKENS)
PREFIXED = ("recall", "recall_hinge")
"""Attacks that read every string twice."""
_TOGETHER = 100  # identifiers that are scored and kept together
_BETWEEN = 120.0  # seconds between two checkpoints of a training
_FILE, _HUB = "gpt_neox_20b_tokenizer.json", "EleutherAI/gpt-neox-20b"


def natural_tokenizer(name: str) -> Any:
    """The tokenizer of GPT-NeoX-20B from the data folder, else from the hub; or one of a file."""
    if name != NEOX:
        with open(name, encoding="utf-8") as file:
            return wrap_tokenizer(file.read(), context=10**9)
    try:
        path = data_file(name, _FILE, None, f"huggingface.co/{_HUB}, tokenizer.json")
    except DataUnavailableError as error:
        try:
            return transformers.AutoTokenizer.from_pretrained(_HUB)
        except (OSError, ValueError):
            raise error from None
    return wrap_tokenizer(path.read_text(encoding="utf-8"), context=10**9)


class NarrowTokenizer:
    """A tokenizer whose tokens are numbered by their place among those that occur.

    A table with a row for each of 50,277 tokens would be most of a small model, and most of it never used.
    """

    is_fast = True
    all_special_ids: tuple[int, ...] = ()

    def __init__(self, tokenizer: Any, used: np.ndarray, *, context: int) -> None:
        self._tokenizer = tokenizer
        self._place = {token: place for place, token in enumerate(used.tolist())}
        self.model_max_length = context

    def __call__(self, texts: Sequence[str], **options: Any) -> dict[str, Any]:
        """As the tokenizer; KeyError for a text with a token that is not used."""
        found, place = self._tokenizer(list(texts), **options), self._place
        return {**found, "input_ids": [[place[token] for token in row] for row in found["input_ids"]]}


def used_tokens(config: NaturalConfig, split: NaturalSplit, *, generated: int) -> np.ndarray:
    """Tokens of the documents of both sides and of all candidates behind their contexts, in order."""

    def compute() -> Mapping[str, Any]:
        tokenizer = natural_tokenizer(config.tokenizer)
        texts = [*split.texts, *(one.text for one in split.held_out), split.prefix]
        used = {token for row in tokenizer(texts)["input_ids"] for token in row}
        for one in _identifiers(split):
            candidates = [one.value, *generate_identifiers(one.value, generated, config.seed)]
            windows = encode(tokenizer, candidates, [one.before] * len(candidates))
            used |= {token for window in windows for token in window.tokens}
        return {"tokens": np.array(sorted(used))}

    about = {"tokenizer": config.tokenizer, "seed": config.seed, "generated": generated}
    stage = {"stage": "natural tokens", **about, "split": _hash(split)}
    used = kept(stage, compute, code=__name__)["tokens"]
    if len(used) > config.vocabulary:
        raise ValueError(f"vocabulary: expected {len(used)} or more, the tokens that occur, got "
                         f"{config.vocabulary}")  # fmt: skip
    return used


def natural_model(config: NaturalConfig, split: NaturalSplit, used: np.ndarray) -> tuple[Any, Any]:
    """The model trained on one side and its tokenizer; a training that was cut short goes on.

    It is trained and stays on a GPU if there is one.
    """
    shape = config.shape(context=2 * config.window)
    tokenizer = NarrowTokenizer(natural_tokenizer(config.tokenizer), used, context=shape.context)
    model: Any = new_language_model(shape, config.vocabulary)
    stage = {"stage": "natural model", "config": config, "split": _hash(split), "used": _hash(used.tolist())}

    checkpoint = _checkpoint(stage)

    def train() -> Mapping[str, Any]:
        rows = tokenizer(split.texts, verbose=False)["input_ids"]
        examples = [row[at : at + config.window] for row in rows for at in range(0, len(row), config.window)]
        with _precision(config):
            fit_language_model(
                model.to(default_device()),
                [one for one in examples if len(one) > 1],
                config=_training(config),
                checkpoint=checkpoint,
                between=_BETWEEN,
            )
        return {name: tensor.cpu().numpy() for name, tensor in model.state_dict().items()}

    weights = kept(stage, train, code=__name__)
    checkpoint.unlink(missing_ok=True)
    model.load_state_dict({name: torch.from_numpy(values.copy()) for name, values in weights.items()})
    return model.to(default_device()), tokenizer


def _checkpoint(stage: Mapping[str, Any]) -> Path:
    """File of an unfinished training, one for each stage and state of the code."""
    name = config_hash(typed({**stage, "torch": torch.__version__, "code": code_tag(__name__)}))
    folder = user_cache_folder() / "language"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}.pt"


def _training(config: NaturalConfig) -> TrainingConfig:
    return TrainingConfig(
        epochs=config.epochs,
        batch_size=config.batch_size,
        optimizer="adam",
        learning_rate=config.learning_rate,
        seed=config.seed,
    )


def natural_values(config: NaturalConfig, split: NaturalSplit, *, generated: int) -> FloatArray:
    """Train on one side, score both, members first: shape (n, 1 + generated, scores), higher: member.

    The scores are the paper's attacks and the number of tokens. Those of `PREFIXED` are NaN but for the first
    ``prefixed`` identifiers of each side. Scores are kept in parts, so that a run that was cut short goes on.
    """
    used = used_tokens(config, split, generated=generated)
    load = cache(lambda: natural_model(config, split, used))
    stage = {"stage": "natural scores", "config": config, "split": _hash(split)}
    plain = [name for name in _SCORES if name not in PREFIXED]

    def scores(part: _Part) -> FloatArray:
        chosen, prefixed = part
        values = kept_scores(
            {**stage, "part": [one.value for one in chosen]},
            load,
            chosen,
            generated=generated,
            seed=config.seed,
            attacks=_SCORES if prefixed else plain,
            prefix=split.prefix,
            code=__name__,
        )
        found = np.full((*values.shape[:2], len(_SCORES)), np.nan)
        found[..., [at for at, name in enumerate(_SCORES) if prefixed or name in plain]] = values
        return found

    parts = [part for side in (split.members, split.non_members) for part in _parts(side, config.prefixed)]
    with _precision(config):
        found = [scores(part) for part in progress(parts, label="identifiers")]
    return np.concatenate(found)


_Part = tuple[Sequence[FoundIdentifier], bool]


def _parts(side: Sequence[FoundIdentifier], prefixed: int) -> list[_Part]:
    ordered = iter(side)
    first = list(islice(ordered, prefixed))
    return [
        (some[at : at + _TOGETHER], some is first)
        for some in (first, list(ordered))
        for at in range(0, len(some), _TOGETHER)
    ]


def _identifiers(split: NaturalSplit) -> list[FoundIdentifier]:
    return [*split.members, *split.non_members]


def _precision(config: NaturalConfig) -> AbstractContextManager[Any]:
    """Matrices are multiplied in the format of the configuration; weights stay float32.

    Without the cache of autocast: it would keep rounded weights over the steps of a training.
    """
    device, rounded = default_device().type, config.dtype == "bfloat16"
    return torch.autocast(device, torch.bfloat16, enabled=rounded, cache_enabled=False)


def _hash(value: Any) -> str:
    return config_hash({"value": value})
