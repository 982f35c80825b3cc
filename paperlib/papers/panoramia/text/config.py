"""What PANORAMIA on text is run with: text, models, generator and helpers."""

from dataclasses import dataclass, replace

from paperlib.core import check_in
from paperlib.generators.text import ChunkTraining
from paperlib.training import TrainingConfig, noise_for


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """Text, target models, generator and helpers; the page on text says what each parameter is."""

    text: str = "documentation"
    base: str = ""
    tokens: int = 16
    chunks_per_document: int = 50
    by_chunk: bool = False
    public: int = 6000
    generator: int = 3500
    members: int = 1500
    nonmembers: int = 1500
    others: int = 1500
    generated: int = 1500
    for_helper: int = 2000
    vocabulary: int = 1024  # tokens of the small base model
    width: int = 64
    layers: int = 1
    base_epochs: int = 4
    epochs: tuple[int, ...] = (3, 6, 12)
    null_epochs: tuple[int, ...] = (3, 12)
    total_epochs: int = 0
    dp_epsilons: tuple[float, ...] = (3.0,)
    dp_delta: float = 1e-5  # of DP-SGD, in (0, 1)
    dp_epochs: int = 3
    dp_batch: int = 256
    dp_learning_rate: float = 1e-3
    prompt: int = 16
    top_k: int = 200
    generator_epochs: int = 6
    helper_epochs: int = 4
    helper_patience: int = 1
    withheld: float = 0.0
    batch_size: int = 32
    learning_rate: float = 3e-3
    precision: str = "float32"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "null_epochs"):
            given = tuple(sorted(getattr(self, name)))
            object.__setattr__(self, name, given)
            if not given or given[0] < 1:
                raise ValueError(f"{name}: expected at least one number of 1 or more, got {given}")
        if self.prompt % self.tokens:
            raise ValueError(f"prompt: expected a multiple of tokens ({self.tokens}), got {self.prompt}")
        if self.by_chunk and self.prompt not in (0, self.tokens):
            raise ValueError(f"prompt: expected {self.tokens} or 0 with by_chunk, got {self.prompt}")
        if self.total_epochs and self.total_epochs < max(self.epochs + self.null_epochs):
            raise ValueError(
                f"total_epochs: expected {max(self.epochs + self.null_epochs)} or more, or 0, "
                f"got {self.total_epochs}"
            )
        check_in("[0, 1)", "withheld", self.withheld)
        if not self.base and not self.public:
            raise ValueError("base: expected a pretrained model, or public chunks to train a small one on")
        for epsilon in self.dp_epsilons:
            check_in("(0, inf)", "dp_epsilons", epsilon)

    @property
    def sizes(self) -> dict[str, int]:
        """Chunks of each role in the order they are dealt; none to the public if the base is pretrained."""
        names = ("public", "generator", "members", "nonmembers", "others")
        dealt = {name: getattr(self, name) for name in names if name != "public" or not self.base}
        return dealt | {"helper": 0 if self.withheld else self.for_helper}

    @property
    def withheld_members(self) -> int:
        """Members that the helper on real chunks is trained on."""
        return round(self.withheld * self.members)

    def training(self, epochs: int, salt: int, *, patience: int = 0, last: int = 0) -> ChunkTraining:
        """How a model is trained without DP."""
        return ChunkTraining(
            epochs=epochs,
            last=last,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            patience=patience,
            seed=self.seed + 1000 * salt,
            precision=self.precision,
        )

    def private_training(self, epsilon: float) -> TrainingConfig:
        """DP-SGD on D_G and members, with the noise that the Renyi accountant asks for."""
        rows = self.generator + self.members
        plan = TrainingConfig(
            epochs=self.dp_epochs,
            batch_size=self.dp_batch,
            optimizer="adam",
            learning_rate=self.dp_learning_rate,
            clip_norm=1.0,
            seed=self.seed,
        )
        noise = noise_for(epsilon, plan.sampling_rate(rows), plan.steps(rows), self.dp_delta)
        return replace(plan, noise_multiplier=noise)
