"""What PANORAMIA on text is run with: text, models, generator and helpers."""

from dataclasses import dataclass, replace

from paperlib.core import check_in
from paperlib.generators.text import ChunkTraining
from paperlib.training import TrainingConfig, noise_for


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """Text, target models, generator and helpers."""

    text: str = "documentation"  # as for `text_documents`: a known text, a corpus, a file or a folder
    # name or folder of a pretrained model that all others start from, such as "gpt2"; empty trains a small
    # one on ``public`` chunks first
    base: str = ""
    tokens: int = 16  # length of a chunk; the paper has 64
    chunks_per_document: int = 50  # the first ones of each document; the paper has 50
    # True, as in the paper: generator, members, non-members and others share documents, each of which has all
    # its chunks, dealt at random; False deals whole documents
    by_chunk: bool = False
    public: int = 6000  # chunks of other documents that the small base model is trained on
    generator: int = 3500  # chunks of D_G: the generator and targets are trained on these
    members: int = 1500  # chunks of D_in: what targets are trained on and audited for
    nonmembers: int = 1500  # chunks no model is trained on, for RM;RN and O(1)
    others: int = 1500  # chunks that null targets are trained on in the members' place
    generated: int = 1500  # chunks drawn for the audit
    for_helper: int = 2000  # chunks drawn to train the "synthetic" helper; as many real ones train its rival
    vocabulary: int = 1024  # tokens of the small base model
    width: int = 64  # of the small base model
    layers: int = 1  # of the small base model
    base_epochs: int = 4  # passes of the small base model over the public chunks
    epochs: tuple[int, ...] = (3, 6, 12)  # passes over D_G and members: one run, audited at each of these
    null_epochs: tuple[int, ...] = (3, 12)  # epochs at which the null run is audited
    # passes of the targets' run; its learning rate falls over all of them, as do those of the null run and of
    # real helpers, which end where they are asked last; 0 takes the last one audited
    total_epochs: int = 0
    dp_epsilons: tuple[float, ...] = (3.0,)  # targets trained with DP-SGD
    dp_delta: float = 1e-5  # of DP-SGD, in (0, 1)
    dp_epochs: int = 3  # of DP-SGD, 1 or more; one of ``epochs`` and of ``null_epochs``, to compare with
    dp_batch: int = 256  # expected chunks in their batches
    dp_learning_rate: float = 1e-3  # of DP-SGD, above 0
    prompt: int = 16  # tokens of a prompt; the paper has 64
    top_k: int = 200  # likeliest tokens that are drawn from, 0 for all; the paper has 200 of 50,257
    generator_epochs: int = 6  # largest number of epochs of the generator; the best on held-out text is kept
    helper_epochs: int = 4  # passes of these two helpers; the best on a tenth held out is kept; the paper: 60
    helper_patience: int = 1  # epochs without a better one that end their training; 0 makes all passes
    # share of the members that the helper on real chunks is trained on, and that its games then leave out;
    # 0 trains it on other documents
    withheld: float = 0.0
    batch_size: int = 32  # chunks per step, without DP
    learning_rate: float = 3e-3  # largest, without DP
    precision: str = "float32"  # or "bfloat16": training without DP and drawing text under autocast
    seed: int = 0  # of the order of documents, the models and the draws, 0 or more

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
