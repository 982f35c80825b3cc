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
        """Train in two phases, each ended early by the validation part; small networks share their
        steps.
        """
        groups = [[seed] for seed in seeds] if self.pretrained else [list(seeds)]
        return [fitted for group in groups for fitted in self._trained(train, validation, group)]

    def _trained(
        self, train: Labelled, validation: Labelled, seeds: list[int]
    ) -> "list[FittedTextClassifier]":
        known = sequences_and_summaries(train.inputs, self.tokens)
        scale = tuple((part.mean(axis=0), part.std(axis=0) + 1e-6) for part in known)
        device = default_device()
        network = _Networks(self, known[0].shape[1], known[1].shape[1], seeds).to(device)
        parts = list[tuple[Inputs, Tensor]]()
        for part in (train, validation):
            members = torch.as_tensor(part.membership, dtype=torch.float32, device=device)
            parts.append((_inputs(part.inputs, self.tokens, scale, device), members))
        orders = [torch.Generator().manual_seed(seed) for seed in seeds]
        for alone in (
            (True, False) if known[0].shape[1] else (False,)
        ):  # without losses, nothing to do alone
            self._phase(network, parts, orders, alone)
        network.eval()
        return [FittedTextClassifier(self, network, at, scale) for at in range(len(seeds))]

    def _phase(
        self,
        network: "_Networks",
        parts: "list[tuple[Inputs, Tensor]]",
        orders: list[torch.Generator],
        alone: bool,
    ) -> None:
        """Train until no validation loss falls any more; each network ends at its lowest, start
        included.
        """
        (inputs, members), (held, held_members) = parts

        def value() -> Tensor:
            return -mean_losses(_logits(network, held, alone=alone), held_members)

        groups: list[dict[str, Any]] = [{"params": list(network.weights.values())}]
        if network.reader is not None:
            groups.append({"params": list(network.reader.parameters()), "lr": self.reader_rate})
        optimizer = torch.optim.AdamW(
            groups, lr=self.learning_rate, weight_decay=self.weight_decay, fused=True
        )
        count, device = len(members), members.device
        best = BestWeights(network, value())
        waited = torch.zeros(len(orders), dtype=torch.int64, device=device)
        for _ in range(self.epochs):
            network.train()
            rows = torch.stack([torch.randperm(count, generator=order) for order in orders]).to(
                device
            )
            drawn = torch.stack(
                [torch.rand(count, self.width, generator=order) for order in orders]
            )
            left_in = ((drawn >= self.dropout) / (1 - self.dropout)).to(
                device
            )  # factors of dropout
            for some in torch.arange(count, device=device).split(self.batch_size):
                chosen = rows[:, some]
                optimizer.zero_grad()
                shown = (part[chosen] for part in inputs)
                logits = network(*shown, alone=alone, left_in=left_in[:, some])
                mean_losses(logits, members[chosen]).sum().backward()
                optimizer.step()
            lower = best.update(value(), waited < self.patience)
            waited = torch.where(lower, 0, waited + 1)
            if (waited >= self.patience).all():
                break
        best.restore()


Inputs = tuple[Tensor, Tensor, Tensor]
"""Tokens (n, T), windows of loss sequences (n, T, 3 * models), and summaries (n, columns)."""


def _logits(network: "_Networks", inputs: Inputs, *, alone: bool = False) -> Tensor:
    """Of every network for every example, shape (networks, n)."""
    network.eval()
    with torch.inference_mode():
        places = torch.arange(len(inputs[0]), device=inputs[0].device).split(512)
        logits = [network(*(part[None, rows] for part in inputs), alone=alone).T for rows in places]
        return torch.cat(logits).T


def _inputs(
    inputs: AttackInputs, tokens: int, scale: Sequence[Any], device: torch.device
) -> Inputs:
    """Tokens, and windows of scaled sequences and scaled summaries, as tensors."""
    sequences, table = (
        torch.as_tensor((part - mean) / deviation, dtype=torch.float32, device=device)
        for part, (mean, deviation) in zip(
            sequences_and_summaries(inputs, tokens), scale, strict=True
        )
    )
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
        width, reader, read = settings.width, None, settings.width
        shapes = {"last": (width, 1)}
        if settings.pretrained:  # a reader belongs to a single network
            reader = load_language_model(settings.pretrained, dtype="float32")[0].base_model
            read = int(reader.config.hidden_size)
        else:
            shapes["text"] = (3 * width, width)
        if models:
            shapes["sequence"] = (3 * models, width)
        if columns:
            shapes["table"] = (columns, width)
        shapes["joint"] = (read + width * (2 * bool(models) + bool(columns)), width)
        networks: list[Weights] = []
        for seed in seeds:  # as torch's own layers begin
            order, drawn = torch.Generator().manual_seed(seed), dict[str, Tensor]()
            for name, (inputs, outputs) in shapes.items():
                for key, shape in ((name, (inputs, outputs)), (f"{name} bias", (1, outputs))):
                    drawn[key] = (2 * torch.rand(shape, generator=order) - 1) / inputs**0.5
            if not settings.pretrained:
                drawn["embedding"] = torch.randn(settings.buckets, settings.width, generator=order)
            networks.append(drawn)
        super().__init__(networks)
        self.settings, self.reader, self.read = settings, reader, read

    def forward(
        self,
        tokens: Tensor,
        windows: Tensor,
        table: Tensor,
        *,
        alone: bool,
        left_in: Tensor | None = None,
    ) -> Tensor:
        """Logits (networks, n) of inputs (networks or 1, n, ...)."""
        batch = (len(self.weights["last"]), tokens.shape[1])
        parts = [windows.new_zeros((*batch, self.read)) if alone else self._text(tokens)]
        if "sequence" in self.weights:
            hidden = (
                self.linear("sequence", windows.flatten(1, 2)).relu().unflatten(1, (batch[1], -1))
            )
            parts += [hidden.mean(2), hidden.amax(2)]
        if "table" in self.weights:
            parts.append(self.linear("table", table))
        joint = self.linear("joint", torch.cat(parts, dim=2)).relu()
        return self.linear("last", joint if left_in is None else joint * left_in)[:, :, 0]

    def _text(self, tokens: Tensor) -> Tensor:
        if self.reader is not None:
            in_part = self.settings.precision == "bfloat16"
            with torch.autocast(tokens.device.type, torch.bfloat16, enabled=in_part):
                hidden = self.reader(input_ids=tokens[0], use_cache=False).last_hidden_state
            return hidden[None, :, -1].float()
        embeddings = self.weights["embedding"]
        networks, buckets, width = embeddings.shape
        first = buckets * torch.arange(networks, device=tokens.device)[:, None, None]
        read = embedding(tokens % buckets + first, embeddings.view(-1, width))
        hidden = self.linear("text", _windows(read).flatten(1, 2)).relu()
        return hidden.unflatten(1, (tokens.shape[1], -1)).mean(2)


@dataclass(frozen=True, eq=False)
class FittedTextClassifier:
    """One of the networks after training, with the means and deviations that its inputs are scaled
    by.
    """

    settings: TextClassifier
    network: Any = field(repr=False)
    at: int
    scale: tuple[tuple[FloatArray, FloatArray], ...] = field(repr=False)

    def scores(self, inputs: AttackInputs) -> FloatArray:
        """Log odds of being a member."""
        device = next(self.network.parameters()).device
        tensors = _inputs(inputs, self.settings.tokens, self.scale, device)
        return _logits(self.network, tensors)[self.at].double().cpu().numpy()
