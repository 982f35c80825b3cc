"""Settings of small GPTs, and a cache of what was computed with them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from paperlib.io import Cache, code_tag, user_cache_folder
from paperlib.models.devices import default_device
from paperlib.models.language import LanguageModelConfig, new_language_model
from paperlib.training import TrainingConfig


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
        return LanguageModelConfig(width=self.width, layers=self.layers, seed=self.seed, **options)

    def training(self) -> TrainingConfig:
        return TrainingConfig(
            epochs=self.epochs,
            batch_size=self.batch_size,
            optimizer="adam",
            learning_rate=self.learning_rate,
            seed=self.seed,
        )

    def parameters(self) -> int:
        return new_language_model(self.shape(), self.vocabulary).num_parameters()


def cached_arrays(
    config: Mapping[str, Any], compute: Callable[[], Mapping[str, Any]], *, code: str
) -> dict[str, np.ndarray]:
    """Arrays of a stage, from the user's cache if the same ``config`` and code gave them before."""
    # A change of what the module ``code`` reaches makes them stale, and so does another device or torch.
    machine = {"torch": torch.__version__, "device": default_device().type}
    return Cache(user_cache_folder() / "language").get({**config, **machine, "code": code_tag(code)}, compute)
