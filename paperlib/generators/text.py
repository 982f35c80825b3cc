"""Generated text: a causal language model fine-tuned on members, and sampled after held prompts."""

import copy
import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from paperlib.core import FloatArray, IntArray
from paperlib.core.checks import check_at_least, check_choice, check_in
from paperlib.io.files import config_hash
from paperlib.training.fitting import Checkpoints, Saved, seeded, train_epochs
from paperlib.training.language.fitting import scheduled_steps

Weights = Mapping[str, Tensor]
PRECISIONS = ("float32", "bfloat16")
# Tokens from which on the loss is computed along the last axis, as memory lies.
_LARGE_VOCABULARY = 10_000
_LOGITS = 2**30  # of a batch whose losses are computed
_LOGITS_ON_A_CPU = 2**25


@dataclass(frozen=True, kw_only=True)
class ChunkTraining:
    """Settings of training a causal language model on chunks of one length.

    Attributes:
        epochs: Most passes over the chunks, 0 or more.
        last: Pass after which training ends, though its learning rate is that of all; 0 makes all.
        learning_rate: Largest learning rate of AdamW: it rises over a tenth of the steps, then
            falls as a cosine to a tenth.
        weight_decay: Weight decay of AdamW, 0 or more.
        patience: Epochs without a lower validation loss before training ends; 0, or no validation
            chunks, never ends it early.
        precision: "float32", or "bfloat16" to train under autocast; the weights stay in float32.
    """

    epochs: int = 3
    last: int = 0
    batch_size: int = 64
    learning_rate: float = 2e-3
    weight_decay: float = 0.01
    patience: int = 0
    seed: int = 0
    precision: str = "float32"

    def __post_init__(self) -> None:
        """Refuse (ValueError) an unknown precision, and numbers out of range."""
        check_choice("precision", self.precision, PRECISIONS)
        check_at_least(0, epochs=self.epochs, patience=self.patience, seed=self.seed)
        check_in(f"[0, {self.epochs}]", "last", self.last)
        check_at_least(1, batch_size=self.batch_size)
        check_in("(0, inf)", "learning_rate", self.learning_rate)


@dataclass(frozen=True, eq=False)
class TrainedOnChunks:
    """Result of training on chunks."""

    train: tuple[float, ...]  # mean loss of each epoch while training, nats per token
    validation: tuple[float, ...]  # mean loss after each epoch; empty without validation chunks
    best: int  # epoch of the lowest validation loss, counted from 1; the last without validation
    kept: Mapping[int, Weights] = field(repr=False)  # weights after the epochs asked for


def with_start(model: Any, chunks: ArrayLike) -> Tensor:
    """Chunks (n, length) behind the token that starts a text, lest their first have no loss; shape
    (n, 1 + length), on the model's device.

    Raises:
        ValueError: No table of whole numbers, or tokens that the model does not know.
    """
    tokens = np.asarray(chunks)
    vocabulary = int(model.config.vocab_size)
    if tokens.ndim != 2 or not tokens.size or tokens.dtype.kind not in "iu":
        raise ValueError(
            f"chunks: expected whole numbers in shape (n, length), got {tokens.dtype} "
            f"{tokens.shape}"
        )
    if tokens.min() < 0 or tokens.max() >= vocabulary:
        raise ValueError(
            f"chunks: expected tokens from 0 to {vocabulary - 1}, got {tokens.min()} to "
            f"{tokens.max()}"
        )
    start = np.full((len(tokens), 1), model.config.bos_token_id or 0)
    rows = np.concatenate([start, tokens], axis=1)
    return torch.as_tensor(rows, dtype=torch.long, device=model.device)


def token_losses(
    model: Any, chunks: ArrayLike, *, batch_size: int = 256, precision: str = "float32"
) -> FloatArray:
    """Loss of each token given those before it in its chunk, nats, shape (n, length).

    Args:
        chunks: Token numbers, shape (n, length).
        batch_size: Most chunks in a pass; fewer where their logits would fill the memory.
        precision: "float32", or "bfloat16" for products (autocast).

    Raises:
        ValueError: No table of whole numbers, or tokens that the model does not know.
    """
    tokens = with_start(model, chunks)
    most_logits = _LOGITS_ON_A_CPU if model.device.type == "cpu" else _LOGITS
    most_rows = most_logits // (tokens.shape[1] * model.config.vocab_size)
    batches = tokens.split(max(1, min(batch_size, most_rows)))
    with torch.inference_mode(), _autocast(model, precision):
        losses = [_losses(model, batch).cpu() for batch in batches]
    return torch.cat(losses).numpy().astype(np.float64)


def _losses(model: Any, batch: Tensor) -> Tensor:
    """Loss of each token but the first of its row, shape (B, length), with gradients."""
    logits = model(input_ids=batch, use_cache=False).logits[:, :-1]
    following = batch[:, 1:]
    # Both ways give the same but for rounding; which is faster depends on the vocabulary's size.
    if logits.shape[2] < _LARGE_VOCABULARY:
        return cross_entropy(logits.transpose(1, 2).float(), following, reduction="none")
    losses = cross_entropy(logits.flatten(0, 1).float(), following.flatten(), reduction="none")
    return losses.view(len(batch), -1)


def _autocast(model: Any, precision: str) -> torch.autocast:
    return torch.autocast(model.device.type, torch.bfloat16, enabled=precision == "bfloat16")


def train_on_chunks(
    model: Any,
    chunks: ArrayLike,
    *,
    training: ChunkTraining,
    validation: ArrayLike | None = None,
    keep: tuple[int, ...] = (),
    checkpoint: Path | None = None,
    between: float = 600.0,
) -> TrainedOnChunks:
    """Train a causal language model in place on chunks of tokens, shape (n, length).

    With validation chunks, (k, length), it ends at its best epoch, unless weights are to be copied
    after the epochs ``keep``. A ``checkpoint`` is written after the first epoch that ends
    ``between`` seconds or more after the last one; called again with the same arguments, training
    goes on from it to the same result.

    Raises:
        ValueError: No table of whole numbers, or tokens that the model does not know.
        CheckpointError: The checkpoint is damaged or of another training.
        TrainingDiverged: The training loss stopped being finite.
    """
    tokens = with_start(model, chunks)
    state = _ChunkState(training.seed)
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=training.learning_rate,
        weight_decay=training.weight_decay,
        fused=True,
    )
    steps_per_epoch = -(-len(tokens) // training.batch_size)  # rounded up
    steps = training.epochs * steps_per_epoch
    learn = scheduled_steps(model, optimizer, steps=steps, rising=steps // 10, each=steps_per_epoch)

    def one_epoch(epoch: int) -> float:
        """Learn from all chunks once, note the validation loss, and return the mean training loss,
        nats.
        """
        order = torch.randperm(len(tokens), generator=state.order).to(tokens.device)
        total = torch.zeros((), device=tokens.device)
        model.train()
        with seeded(training.seed, epoch + 1, model.device):  # what dropout leaves out
            for rows in order.split(training.batch_size):
                with _autocast(model, training.precision):
                    loss = _losses(model, tokens[rows]).mean()
                learn(loss, epoch)
                total += loss.detach() * len(rows)
        model.eval()
        if validation is not None:
            losses = token_losses(model, validation, precision=training.precision)
            state.losses.append(float(losses.mean()))
            if state.losses[-1] == min(state.losses) and not keep:
                state.best = _weights(model)
        if epoch + 1 in keep:
            state.kept[epoch + 1] = _weights(model)
        return float(total) / len(tokens)

    def is_last(epoch: int) -> bool:
        """Whether the validation loss has not improved for ``patience`` epochs; never without
        validation chunks.
        """
        if not state.losses:
            return False
        epochs_since_best = epoch - int(np.argmin(state.losses))  # both count from 0
        return 0 < training.patience <= epochs_since_best

    checksum = hashlib.sha256(tokens.cpu().numpy().tobytes()).hexdigest()
    run = {"settings": config_hash(asdict(training)), "chunks": checksum}
    train = train_epochs(
        one_epoch,
        # ``last`` shortens the training and not its schedule, which has been made.
        replace(training, epochs=training.last or training.epochs, last=0),
        model.device,
        Checkpoints(
            saved=Saved(checkpoint, run, seconds=between),
            stateful={"model": model, "optimizer": optimizer, "chunks": state},
        ),
        is_last=is_last,
        progress=False,
    )
    if state.best is not None:
        model.load_state_dict(state.best)
    model.eval()
    best = int(np.argmin(state.losses)) + 1 if state.losses else len(train)
    return TrainedOnChunks(train, tuple(state.losses), best, state.kept)


class _ChunkState:
    """What a training on chunks goes on from, besides its model and optimizer."""

    def __init__(self, seed: int) -> None:
        """The state before the first epoch; ``seed`` is of the order of the chunks."""
        self.order = torch.Generator().manual_seed(seed)
        self.losses: list[float] = []  # on validation chunks, of each epoch
        self.kept: dict[int, Weights] = {}  # by epoch, from 1
        self.best: Weights | None = None  # after the epoch of the lowest of these losses

    def state_dict(self) -> dict[str, Any]:
        """All of it, the order as the state of its generator."""
        return vars(self) | {"order": self.order.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to what `state_dict` returned."""
        self.order.set_state(state["order"].cpu())
        self.losses = state["losses"]
        self.kept = state["kept"]
        self.best = state["best"]


def _weights(model: Any) -> Weights:
    return {name: values.detach().clone() for name, values in model.state_dict().items()}


@dataclass(frozen=True, kw_only=True)
class TextGenerator:
    """A language model fine-tuned on text of the members' distribution, and sampled after held
    prompts.

    Attributes:
        length: Tokens of a generated chunk, as many as a member has.
        prompt: Tokens of the prompt before it, which is not part of the chunk.
        held_share: Share of the passages that give prompts, and decide when training ends.
        top_k: The likeliest tokens that are drawn from; 0 takes all. The paper has 200 of 50,257.
        temperature: Divisor of the logits, above 0.
        samples_per_prompt: Uses of each prompt before one is drawn again, 1 or more.

    Source:
        PANORAMIA, appendix C.2.
    """

    length: int = 64
    prompt: int = 64
    held_share: float = 0.3
    top_k: int = 200
    temperature: float = 1.0
    samples_per_prompt: int = 8
    training: ChunkTraining = field(default_factory=lambda: ChunkTraining(epochs=10, patience=1))

    def __post_init__(self) -> None:
        """Refuse (ValueError) numbers out of range."""
        check_at_least(1, length=self.length, samples_per_prompt=self.samples_per_prompt)
        check_at_least(0, prompt=self.prompt, top_k=self.top_k)
        check_in("(0, 1)", "held_share", self.held_share)
        check_in("(0, inf)", "temperature", self.temperature)

    def fit(self, passages: ArrayLike, *, base: Any) -> "FittedTextGenerator":
        """Fine-tune a copy of ``base``, a causal language model.

        Args:
            passages: Tokens of consecutive text, shape (n, prompt + length), or chunks as long as a
                prompt, as in the paper; the last rows are held for prompts, so that passages of one
                document should follow each other.

        Raises:
            ValueError: Passages of another length, or too few of them.
        """
        rows = np.asarray(passages)
        widths = sorted({self.prompt, self.prompt + self.length} - {0})
        if rows.ndim != 2 or rows.shape[1] not in widths:
            allowed = " or ".join(f"(n, {width})" for width in widths)
            raise ValueError(f"passages: expected shape {allowed}, got {rows.shape}")
        held = round(self.held_share * len(rows))
        if held < 1 or held == len(rows):
            raise ValueError(
                f"passages: {len(rows)} are too few to hold {self.held_share:.0%} of them"
            )
        model = copy.deepcopy(base)
        trained = train_on_chunks(
            model, rows[:-held], training=self.training, validation=rows[-held:]
        )
        return FittedTextGenerator(self, model, rows[-held:, : self.prompt], trained)


@dataclass(frozen=True, eq=False)
class FittedTextGenerator:
    """A fine-tuned language model with its prompts."""

    settings: TextGenerator
    model: Any = field(repr=False)
    prompts: NDArray[Any] = field(repr=False)  # shape (k, prompt)
    trained: TrainedOnChunks

    def sample(self, n: int, seed: int, *, batch_size: int = 512) -> IntArray:
        """Chunks that continue prompts drawn from the held ones, shape (n, length).

        Raises:
            ValueError: ``n`` below 0.
        """
        check_at_least(0, n=n)
        rng = np.random.default_rng(seed)
        uses = self.settings.samples_per_prompt
        rounds = -(-n // (len(self.prompts) * uses))  # rounded up
        # In each round all prompts, in an order of its own, each ``uses`` times in a row.
        orders = [rng.permutation(len(self.prompts)) for _ in range(rounds)]
        chosen = np.repeat(np.array(orders, dtype=np.int64), uses)[:n]
        coins = torch.Generator(self.model.device).manual_seed(int(rng.integers(2**62)))
        chunks = [np.empty((0, self.settings.length), dtype=np.int64)]
        for start in range(0, n, batch_size):
            prompts = self.prompts[chosen[start : start + batch_size]]
            chunks.append(continue_prompts(self.model, prompts, self.settings, coins))
        return np.concatenate(chunks)


def continue_prompts(
    model: Any, prompts: NDArray[Any], settings: TextGenerator, coins: Any
) -> IntArray:
    """One continuation of each prompt, token numbers of shape (n, length), drawn token by token.

    Args:
        prompts: Token numbers, shape (n, prompt); no column starts texts from nothing.
        settings: Which has ``length``, ``top_k`` and ``temperature``.
        coins: A generator of torch on the model's device.
    """
    start = torch.full((len(prompts), 1), model.config.bos_token_id or 0, device=model.device)
    tokens = torch.as_tensor(prompts, dtype=torch.long, device=model.device)
    inputs = torch.cat([start, tokens], dim=1)
    drawn: list[Tensor] = []
    memory: Any = None  # keys and values of all tokens so far
    with torch.inference_mode():
        for _ in range(settings.length):
            with _autocast(model, settings.training.precision):
                answer = model(input_ids=inputs, past_key_values=memory, use_cache=True)
            memory = answer.past_key_values
            logits = answer.logits[:, -1].float() / settings.temperature
            if 0 < settings.top_k < logits.shape[1]:
                top = logits.topk(settings.top_k)
                places = torch.multinomial(torch.softmax(top.values, 1), 1, generator=coins)
                inputs = top.indices.gather(1, places)
            else:
                inputs = torch.multinomial(torch.softmax(logits, 1), 1, generator=coins)
            drawn.append(inputs)  # the next pass reads these alone: ``memory`` has the others
    return torch.cat(drawn, dim=1).cpu().numpy()


def copied_share(generated: ArrayLike, text: ArrayLike, *, length: int) -> float:
    """Share of the chunks of tokens, (n, t), that hold ``length`` consecutive tokens of a row of
    ``text``, (k, u); from 0 to 1.

    Raises:
        ValueError: ``length`` below 1, or longer than a chunk or a row of the text.
    """
    chunks = np.asarray(generated)
    real = np.asarray(text)
    check_in(f"[1, {min(chunks.shape[1], real.shape[1])}]", "length", length)
    runs_of_text = {run.tobytes() for run in _runs(real, length)}
    is_copied = np.array([run.tobytes() in runs_of_text for run in _runs(chunks, length)])
    return float(is_copied.reshape(len(chunks), -1).any(axis=1).mean())


def _runs(rows: NDArray[Any], length: int) -> NDArray[np.int64]:
    """All runs of consecutive tokens of rows (n, t), row after row, shape (n * (t - length + 1),
    length).
    """
    windows = np.lib.stride_tricks.sliding_window_view(rows.astype(np.int64), length, axis=1)
    return np.ascontiguousarray(windows).reshape(-1, length)


@dataclass(frozen=True)
class CopiedText:
    """How much of a generator's training text its chunks repeat, as shares of the chunks."""

    run: int  # tokens in a row that count as repeated
    copied: float  # share of generated chunks that hold such a run of the training text
    by_chance: float  # share of chunks of other real text that do

    @property
    def is_notable(self) -> bool:
        """Whether generated chunks repeat it by 2 points more than other real text does."""
        return self.copied > self.by_chance + 0.02


def copied_text(
    generated: IntArray, trained_on: IntArray, real: IntArray, *, length: int
) -> CopiedText:
    """Compare generated chunks and other real ones with training text, all tokens by number in rows
    of ``length`` or longer, by runs of three quarters of ``length`` tokens.

    Raises:
        ValueError: Rows that are shorter than such a run.
    """
    run = max(1, round(0.75 * length))
    return CopiedText(
        run=run,
        copied=copied_share(generated, trained_on, length=run),
        by_chance=copied_share(real, trained_on, length=run),
    )
