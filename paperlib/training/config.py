"""Settings of one training: frozen, hashable, and written to JSON and back."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from paperlib.core.checks import check_at_least, check_choice, check_in
from paperlib.models.mlp import ACTIVATIONS


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Settings of the training of one classifier.

    With ``clip_norm`` set, training is DP-SGD: each record is in a batch with probability
    batch_size / n, by its own coin, gradients are clipped, and noise of standard deviation
    ``noise_multiplier * clip_norm`` is added to their sum before momentum. Otherwise an epoch goes
    through shuffled batches.

    Attributes:
        widths: Widths of the MLP, inputs first; empty where a module is given instead.
        activation: Between the layers of the MLP, "relu" or "tanh".
        epochs: Passes over the data; an epoch is ceil(n / batch_size) steps.
        batch_size: Records in a batch (expected number under DP-SGD).
        optimizer: "sgd" or "adam" (betas 0.9 and 0.999).
        momentum: Of SGD, in [0, 1); 0 with Adam.
        clip_norm: Largest Euclidean norm of a clipped gradient, above 0; None trains without DP.
        noise_multiplier: Noise in units of ``clip_norm``, 0 or more; needs ``clip_norm`` unless 0.
        microbatches: None, or ``batch_size`` and more, clips each example's gradient. With fewer,
            the batch is dealt into this many groups and each group's *average* gradient is clipped.
            One record then moves a clipped average by up to twice ``clip_norm``, so the
            accountant's epsilon is not a guarantee for a record (see ``record_level``).

    >>> TrainingConfig(widths=(108, 150, 1), epochs=5, batch_size=64, learning_rate=0.01).is_private
    False
    """

    widths: tuple[int, ...] = ()
    epochs: int
    batch_size: int
    optimizer: str = "sgd"
    learning_rate: float
    momentum: float = 0.0
    seed: int = 0
    clip_norm: float | None = None
    noise_multiplier: float = 0.0
    microbatches: int | None = None
    activation: str = "relu"

    def __post_init__(self) -> None:
        """Refuse (ValueError) numbers out of range, and settings that contradict each other."""
        object.__setattr__(self, "widths", tuple(self.widths))
        check_choice("optimizer", self.optimizer, ("sgd", "adam"))
        check_choice("activation", self.activation, ACTIVATIONS)
        check_at_least(0, epochs=self.epochs, seed=self.seed)
        check_at_least(1, batch_size=self.batch_size)
        check_in("(0, inf)", "learning_rate", self.learning_rate)
        check_in("[0, 1)", "momentum", self.momentum)
        if self.optimizer == "adam" and self.momentum:
            raise ValueError(f"momentum: expected 0 with adam, got {self.momentum}")
        check_in("[0, inf)", "noise_multiplier", self.noise_multiplier)
        if self.clip_norm is not None:
            check_in("(0, inf)", "clip_norm", self.clip_norm)
        if self.microbatches is not None:
            check_at_least(1, microbatches=self.microbatches)
        if not self.is_private and (self.noise_multiplier or self.microbatches):
            raise ValueError(
                "clip_norm: expected a number with noise_multiplier or microbatches, got None"
            )

    @property
    def is_private(self) -> bool:
        """Whether gradients are clipped (DP-SGD; with noise 0 nothing is guaranteed)."""
        return self.clip_norm is not None

    @property
    def groups(self) -> int | None:
        """Groups whose average is clipped; None where each example is clipped by itself."""
        if self.microbatches is None or self.microbatches >= self.batch_size:
            return None
        return self.microbatches

    @property
    def record_level(self) -> bool:
        """Whether the accountant's epsilon holds for adding or removing one record."""
        return self.is_private and self.noise_multiplier > 0 and self.groups is None

    @property
    def batch_key(self) -> tuple[Any, ...]:
        """Configs with equal keys train as one stack; the rest may differ from model to model."""
        return (
            self.widths,
            self.activation,
            self.batch_size,
            self.optimizer,
            self.is_private,
            self.groups,
        )

    def steps(self, examples: int) -> int:
        """Optimizer steps in all on ``examples`` records."""
        return self.epochs * self.steps_per_epoch(examples)

    def steps_per_epoch(self, examples: int) -> int:
        """ceil(examples / batch_size)."""
        return -(-examples // self.batch_size)

    def sampling_rate(self, examples: int) -> float:
        """Chance of each record to be in a batch of DP-SGD."""
        return min(1.0, self.batch_size / examples)

    def expected_batch(self, examples: int) -> int:
        """Expected number of records in a batch of DP-SGD, by which a sum of gradients is divided.

        Raises:
            ValueError: More than there are records.
        """
        # The smaller of the two would be a divisor that depends on the data, which DP forbids.
        if self.is_private and self.batch_size > examples:
            raise ValueError(
                f"batch_size: expected at most the {examples} records, got {self.batch_size}"
            )
        return min(self.batch_size, examples)

    def to_dict(self) -> dict[str, Any]:
        """Each field by its name as a value of JSON, widths as a list; ``from_dict`` reads them."""
        return {**asdict(self), "widths": list(self.widths)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "TrainingConfig":
        """The config that ``to_dict`` wrote.

        Raises:
            ValueError: Unknown names, missing ones, or values that a config refuses.
        """
        names = {field.name for field in fields(cls)}
        unknown = sorted(set(values) - names)
        if unknown:
            raise ValueError(
                f"config: unknown {', '.join(unknown)}; known are {', '.join(sorted(names))}"
            )
        missing = sorted({"epochs", "batch_size", "learning_rate"} - set(values))
        if missing:
            raise ValueError(f"config: {', '.join(missing)} missing")
        return cls(**values)
