"""The attack on text: a network on tokens beside the losses that several models give them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding

from paperlib.attacks.learned.interface import AttackInputs, Labelled
from paperlib.attacks.learned.loss_summaries import sequences_and_summaries
from paperlib.attacks.learned.stacked_networks import BestWeights, Together, Weights, mean_losses
from paperlib.core import FloatArray
from paperlib.models.devices import default_device
from paperlib.models.language import load_language_model


@dataclass(frozen=True, kw_only=True)
class TextClassifier:
    """A network on tokens, a network on loss sequences, and a feed-forward layer on both.

    First the losses' network is trained alone, so that the tokens cannot drown it, then everything;
    the weights with the lowest validation loss of all are kept.

    Attributes:
        tokens: Length of a chunk.
        pretrained: Name or folder of a language model that reads the tokens, such as "gpt2"; empty
            takes a small convolution over embeddings that are learned.
        buckets: Number of buckets that tokens of the small network are folded into.
        epochs: Largest number of passes of each phase.
        patience: Passes without a lower validation loss before a phase ends.
        reader_rate: Learning rate of the pretrained model's own weights.
        precision: "float32", or "bfloat16" to run the pretrained model under autocast.
        dropout: Share of the feed-forward layer's values left out in training, in [0, 1).

    Source:
        PANORAMIA, appendix C.2: GPT-2 as sequence classifier, the loss sequence, a feed-forward
        layer, weight decay, and optimisation in two phases.
    """

    tokens: int
    pretrained: str = ""
    buckets: int = 1024
    width: int = 16
    epochs: int = 12
    patience: int = 2
    batch_size: int = 64
    learning_rate: float = 3e-3
    reader_rate: float = 5e-5
    precision: str = "float32"
    weight_decay: float = 0.1
    dropout: float = 0.1

    @property
    def name(self) -> str:
        """Name in tables."""
        return f"text classifier ({self.pretrained or 'small'}) with loss sequence"

    def fit(
        self, train: Labelled, validation: Labelled, *, seeds: Sequence[int]
    ) -> "list[FittedTextClassifier]":
        """One fitted classifier for each seed, in their order.

        Each is trained in two phases that end early, by the loss on ``validation``. Without
        ``pretrained`` the networks of all seeds share their steps.

        Args:
            train, validation: Examples are tokens by number, whole numbers of shape (n, tokens).
                Losses have 1 + tokens columns for each of k models that were asked, the mean and
                then that of each token, nats: shape (n, k * (1 + tokens)); k may be 0.
            seeds: Seeds of weights, batches and dropout, 0 or more.

        Raises:
            ValueError: Another number of columns of losses.
        """
        groups = [[seed] for seed in seeds] if self.pretrained else [list(seeds)]
        return [fitted for group in groups for fitted in self._trained(train, validation, group)]

    def _trained(
        self, train: Labelled, validation: Labelled, seeds: list[int]
    ) -> "list[FittedTextClassifier]":
        """The networks of ``seeds``, trained side by side on inputs scaled as the training part's.

        Fitted classifiers share one module and each know the number of their network.
        """
        sequences, table = sequences_and_summaries(train.inputs, self.tokens)
        # Mean and deviation of each column of both; the small number keeps constant columns finite.
        scale = tuple(
            (columns.mean(axis=0), columns.std(axis=0) + 1e-6) for columns in (sequences, table)
        )
        device = default_device()
        network = _Networks(self, sequences.shape[1], table.shape[1], seeds).to(device)
        data: list[tuple[Inputs, Tensor]] = []
        for labelled in (train, validation):
            members = torch.as_tensor(labelled.membership, dtype=torch.float32, device=device)
            data.append((_inputs(labelled.inputs, self.tokens, scale, device), members))
        orders = [torch.Generator().manual_seed(seed) for seed in seeds]  # of batches, and dropout
        if sequences.shape[1]:  # without losses, there is nothing to train alone
            self._phase(network, data, orders, alone=True)
        self._phase(network, data, orders, alone=False)
        network.eval()
        return [FittedTextClassifier(self, network, index, scale) for index in range(len(seeds))]

    def _phase(
        self,
        network: "_Networks",
        data: "list[tuple[Inputs, Tensor]]",
        orders: list[torch.Generator],
        *,
        alone: bool,
    ) -> None:
        """Train until no validation loss falls any more; each network ends at its lowest, start
        included.

        ``data`` are inputs and membership of the training and of the validation part; ``alone``
        trains on losses without the tokens.
        """
        (inputs, members), (held, held_members) = data

        def minus_losses() -> Tensor:
            """Minus the validation loss of each network as it is, nats, shape (networks,)."""
            return -mean_losses(_logits(network, held, alone=alone), held_members)

        optimizer = self._optimizer(network)
        best = BestWeights(network, minus_losses())
        # Passes since each network's lowest loss, shape (networks,). One that ran out of patience
        # trains on beside the others, and its weights are no longer kept.
        waited = torch.zeros(len(orders), dtype=torch.int64, device=members.device)
        for _ in range(self.epochs):
            self._epoch(network, optimizer, inputs, members, orders, alone=alone)
            lower = best.update(minus_losses(), waited < self.patience)
            waited = torch.where(lower, 0, waited + 1)
            if (waited >= self.patience).all():
                break
        best.restore()

    def _optimizer(self, network: "_Networks") -> torch.optim.Optimizer:
        """One for all weights; those of a pretrained reader have their own learning rate."""
        groups: list[dict[str, Any]] = [{"params": list(network.weights.values())}]
        if network.reader is not None:
            groups.append({"params": list(network.reader.parameters()), "lr": self.reader_rate})
        return torch.optim.AdamW(
            groups, lr=self.learning_rate, weight_decay=self.weight_decay, fused=True
        )

    def _epoch(
        self,
        network: "_Networks",
        optimizer: torch.optim.Optimizer,
        inputs: "Inputs",
        members: Tensor,
        orders: list[torch.Generator],
        *,
        alone: bool,
    ) -> None:
        """One pass over the training part.

        Args:
            inputs: Of the n examples of the training part.
            members: 1 for a member, else 0, shape (n,).
            orders: For each network what draws its order of the examples, and its dropout.
            alone: Train on losses without the tokens.
        """
        network.train()
        count = len(members)
        device = members.device
        # The order of each network, (networks, n).
        rows = torch.stack([torch.randperm(count, generator=order) for order in orders])
        rows = rows.to(device)
        drawn = torch.stack([torch.rand(count, self.width, generator=order) for order in orders])
        # Dropout: 0 for what is left out; what stays is larger, so that the mean stays.
        factors = ((drawn >= self.dropout) / (1 - self.dropout)).to(device)
        for batch in torch.arange(count, device=device).split(self.batch_size):
            rows_of_batch = rows[:, batch]
            optimizer.zero_grad()
            tokens, windows, table = (values[rows_of_batch] for values in inputs)
            logits = network(tokens, windows, table, alone=alone, left_in=factors[:, batch])
            mean_losses(logits, members[rows_of_batch]).sum().backward()
            optimizer.step()


Inputs = tuple[Tensor, Tensor, Tensor]
"""Tokens (n, T), windows of loss sequences (n, T, 3 * models), and summaries (n, columns)."""


def _logits(network: "_Networks", inputs: Inputs, *, alone: bool = False) -> Tensor:
    """Log odds of membership by every network for every example, shape (networks, n)."""
    network.eval()
    with torch.inference_mode():
        tokens, windows, table = inputs
        logits: list[Tensor] = []
        for rows in torch.arange(len(tokens), device=tokens.device).split(512):
            batch = (tokens[None, rows], windows[None, rows], table[None, rows])
            logits.append(network(*batch, alone=alone).T)
        return torch.cat(logits).T


def _inputs(
    inputs: AttackInputs, tokens: int, scale: Sequence[Any], device: torch.device
) -> Inputs:
    """Tokens, and windows of scaled sequences and scaled summaries, as tensors.

    ``scale`` has mean and deviation of the sequences, then of the summaries.
    """
    scaled: list[Tensor] = []
    unscaled = sequences_and_summaries(inputs, tokens)
    for values, (mean, deviation) in zip(unscaled, scale, strict=True):
        standard = (values - mean) / deviation
        scaled.append(torch.as_tensor(standard, dtype=torch.float32, device=device))
    sequences, table = scaled
    read = torch.as_tensor(inputs.examples.astype(np.int64), device=device)
    return read, _windows(sequences.transpose(1, 2)), table


def _windows(sequences: Tensor) -> Tensor:
    """Each place with its neighbours, zeros past the ends: (..., T, channels) to (..., T, 3 *
    channels).
    """
    padded = torch.nn.functional.pad(sequences, (0, 0, 1, 1))
    return torch.cat([padded[..., :-2, :], sequences, padded[..., 2:, :]], dim=-1)


class _Networks(Together):
    """Networks of one shape, one per seed: tokens, loss sequences and their summaries to one logit
    each.
    """

    def __init__(
        self, settings: TextClassifier, models: int, columns: int, seeds: list[int]
    ) -> None:
        """Untrained networks, one for each seed.

        Args:
            models: Models that gave losses; 0 leaves the loss sequences out.
            columns: Summaries of the losses; 0 leaves them out.
        """
        width = settings.width
        reader = None
        text_width = width  # numbers that the reader of the tokens gives for a text
        # In the order in which weights are drawn, which fixes them for a seed.
        shapes = {"last": (width, 1)}
        if settings.pretrained:  # a reader belongs to a single network
            reader = load_language_model(settings.pretrained, dtype="float32")[0].base_model
            text_width = int(reader.config.hidden_size)
        else:
            shapes["text"] = (3 * width, width)
        joint_inputs = text_width
        if models:
            shapes["sequence"] = (3 * models, width)
            joint_inputs += 2 * width  # mean and maximum over the sequence
        if columns:
            shapes["table"] = (columns, width)
            joint_inputs += width
        shapes["joint"] = (joint_inputs, width)
        buckets = 0 if settings.pretrained else settings.buckets
        super().__init__([_first_weights(shapes, buckets, width, seed) for seed in seeds])
        self.settings = settings
        self.reader = reader
        self.text_width = text_width

    def forward(
        self,
        tokens: Tensor,
        windows: Tensor,
        table: Tensor,
        *,
        alone: bool,
        left_in: Tensor | None = None,
    ) -> Tensor:
        """Log odds of membership (networks, n); with 1 on the first axis all networks read the same
        inputs.

        Args:
            tokens: Shape (networks or 1, n, T).
            windows: Loss of each token and its neighbours, (networks or 1, n, T, 3 * models).
            table: Summaries of the losses, (networks or 1, n, columns).
            alone: Do without the tokens: zeros stand for what their reader gives.
            left_in: Factors of dropout, (networks, n, width); None outside training.
        """
        networks = len(self.weights["last"])
        examples = tokens.shape[1]
        if alone:
            columns = [windows.new_zeros((networks, examples, self.text_width))]
        else:
            columns = [self._text(tokens)]
        if "sequence" in self.weights:
            hidden = self.linear("sequence", windows.flatten(1, 2)).relu()
            hidden = hidden.unflatten(1, (examples, -1))
            columns += [hidden.mean(2), hidden.amax(2)]
        if "table" in self.weights:
            columns.append(self.linear("table", table))
        joint = self.linear("joint", torch.cat(columns, dim=2)).relu()
        return self.linear("last", joint if left_in is None else joint * left_in)[:, :, 0]

    def _text(self, tokens: Tensor) -> Tensor:
        """The reader's numbers of tokens (networks or 1, n, T), shape (networks, n, text_width)."""
        if self.reader is not None:
            in_bfloat16 = self.settings.precision == "bfloat16"
            with torch.autocast(tokens.device.type, torch.bfloat16, enabled=in_bfloat16):
                hidden = self.reader(input_ids=tokens[0], use_cache=False).last_hidden_state
            # At the last token, which alone has read all others; a reader is of one network.
            return hidden[None, :, -1].float()
        embeddings = self.weights["embedding"]
        networks, buckets, width = embeddings.shape
        # One table of embeddings, network after network, and where each network's rows begin in it.
        first_row = buckets * torch.arange(networks, device=tokens.device)[:, None, None]
        embedded = embedding(tokens % buckets + first_row, embeddings.view(-1, width))
        hidden = self.linear("text", _windows(embedded).flatten(1, 2)).relu()
        return hidden.unflatten(1, (tokens.shape[1], -1)).mean(2)  # over the tokens of a text


def _first_weights(
    shapes: dict[str, tuple[int, int]], buckets: int, width: int, seed: int
) -> Weights:
    """Weights and biases of layers (inputs, outputs) as torch's own layers begin, and embeddings of
    ``buckets`` tokens where there are any.
    """
    generator = torch.Generator().manual_seed(seed)
    weights: dict[str, Tensor] = {}
    for name, (inputs, outputs) in shapes.items():
        for key, shape in ((name, (inputs, outputs)), (f"{name} bias", (1, outputs))):
            weights[key] = (2 * torch.rand(shape, generator=generator) - 1) / inputs**0.5
    if buckets:
        weights["embedding"] = torch.randn(buckets, width, generator=generator)
    return weights


@dataclass(frozen=True, eq=False)
class FittedTextClassifier:
    """One of the networks after training, with the means and deviations that its inputs are scaled
    by.
    """

    settings: TextClassifier
    network: Any = field(repr=False)
    index: int  # of the network
    scale: tuple[tuple[FloatArray, FloatArray], ...] = field(repr=False)

    def scores(self, inputs: AttackInputs) -> FloatArray:
        """Log odds of being a member, shape (n,)."""
        device = next(self.network.parameters()).device
        tensors = _inputs(inputs, self.settings.tokens, self.scale, device)
        return _logits(self.network, tensors)[self.index].double().cpu().numpy()
