"""Settings of small GPTs."""

from dataclasses import dataclass

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
        """The model's shape, with further fields of it in ``options``, such as its context."""
        return LanguageModelConfig(width=self.width, layers=self.layers, seed=self.seed, **options)

    def training(self) -> TrainingConfig:
        """Its training, by Adam."""
        shared = ("epochs", "batch_size", "learning_rate", "seed")
        return TrainingConfig(optimizer="adam", **{name: getattr(self, name) for name in shared})

    def parameters(self) -> int:
        """Number of parameters of the model."""
        return new_language_model(self.shape(), self.vocabulary).num_parameters()
