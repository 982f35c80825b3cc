"""Small GPTs trained on texts, and what was computed with them, kept."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from paperlib.io import Cache, code_tag, user_cache_folder
from paperlib.models.devices import default_device
from paperlib.models.language import LanguageModelConfig, new_language_model, train_tokenizer
from paperlib.training import TrainingConfig
from paperlib.training.language import fit_language_model

Tokens = Sequence[int]


@dataclass(frozen=True, kw_only=True)
class GptSettings:
    """Shape and training of a small GPT and its tokenizer."""

    vocabulary: int = 1024  #: tokens of the tokenizer
    width: int = 128  #: width of the model
    layers: int = 1  #: layers of the model
    epochs: int = 2  #: passes over the texts
    batch_size: int = 32  #: examples in a step
    learning_rate: float = 3e-3  #: largest learning rate of Adam
    seed: int = 0  #: seed of all random draws, 0 or more

    def shape(self, **options: int) -> LanguageModelConfig:
        """The architecture."""
        return LanguageModelConfig(width=self.width, layers=self.layers, seed=self.seed, **options)

    def parameters(self) -> int:
        """Number of parameters of the model."""
        return new_language_model(self.shape(), self.vocabulary).num_parameters()


def train_gpt(
    texts: Sequence[str],
    settings: GptSettings,
    shape: LanguageModelConfig,
    examples_of: Callable[[Tokens], Sequence[Tokens]],
    *,
    tokenizer_texts: Sequence[str],
) -> tuple[Any, Any]:
    """Train a tokenizer and a model, on a GPU if there is one, and return both.

    ``examples_of`` gives the training examples of one text from its tokens. The tokenizer learns from other
    texts: one that has merged the letters of a member into longer tokens would tell members by their number
    of tokens, whatever the model knows.
    """
    tokenizer = train_tokenizer(tokenizer_texts, settings.vocabulary, context=shape.context)
    model: Any = new_language_model(shape, len(tokenizer))
    tokens = tokenizer(list(texts), verbose=False)["input_ids"]
    training = TrainingConfig(
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        optimizer="adam",
        learning_rate=settings.learning_rate,
        seed=settings.seed,
    )
    examples = [example for text in tokens for example in examples_of(text)]
    fit_language_model(model.to(default_device()), examples, config=training)
    return model, tokenizer


def kept(
    config: Mapping[str, Any], compute: Callable[[], Mapping[str, Any]], *, code: str
) -> dict[str, np.ndarray]:
    """Arrays of one stage, read from the user's cache if the same code computed them before.

    ``config`` holds everything they depend on (name of the stage, typed configurations, texts by checksum);
    device and version of torch are added. A change of what the module ``code`` reaches makes them stale.
    """
    machine = {"torch": torch.__version__, "device": default_device().type}
    return Cache(user_cache_folder() / "language").get({**config, **machine, "code": code_tag(code)}, compute)
