"""Train a small causal language model on documents, plainly or with DP-SGD."""

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from torch import Tensor
from torch.nn.functional import cross_entropy

from paperlib.training.batches import generator, poisson_batches, shuffled
from paperlib.training.config import TrainingConfig
from paperlib.training.fit import TrainingDiverged
from paperlib.training.progress import progress_bar

_NO_TOKEN = -100  # what torch's cross-entropy leaves out


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedLanguageModel:
    """A trained language model.

    Attributes:
        model: In evaluation mode, on the device it was trained on.
        config: How it was trained.
        losses: Mean loss per document of each epoch, nats per token, seen while training.
    """

    model: Any
    config: TrainingConfig
    losses: tuple[float, ...]


def fit_language_model(
    model: Any,
    documents: Sequence[Sequence[int]],
    *,
    config: TrainingConfig,
    warmup: float = 0.1,
    progress: bool = True,
) -> FittedLanguageModel:
    """Train on documents, with DP-SGD if ``config`` has a clipping norm.

    The loss of a document is the mean over its tokens, the first left out. Without DP the learning rate rises
    over the first steps, then falls as a cosine to a tenth, and gradients are cut at norm 1. With DP it is
    constant, every document is in every batch by its own coin, its own gradient is clipped (through Opacus),
    and noise is added to the sum.

    Guarantee:
        With DP, ``privacy_of(config, len(documents))`` for adding or removing one document, as `fit_dp`.

    Args:
        model: A causal language model, trained in place; with DP, its layers must be such that Opacus can
            form each document's gradient (GPT-NeoX with untied embeddings, for instance).
        documents: Token numbers, at least 2 each; documents of one length train fastest.
        config: ``optimizer`` "adam" or "sgd"; no microbatches.
        warmup: Share of the steps over which the learning rate rises, without DP.
        progress: Whether to show a bar.

    Raises:
        ValueError: No document, one of fewer than 2 tokens, or averages of groups to be clipped.
        TrainingDiverged: The loss stopped being finite.
    """
    if config.groups is not None:
        raise ValueError(f"config: expected microbatches None, got {config.microbatches}")
    tokens = _padded(documents).to(next(model.parameters()).device)
    trainer = _private(model, tokens, config) if config.is_private else _plain(model, tokens, config, warmup)
    losses: list[float] = []
    with (
        trainer as one_epoch,
        progress_bar(config.epochs, label="training", unit="epoch", show=progress) as bar,
    ):
        model.train()
        for epoch in range(config.epochs):
            losses.append(one_epoch(epoch))
            if not math.isfinite(losses[-1]):
                raise TrainingDiverged(
                    f"the training loss is {losses[-1]} in epoch {epoch + 1}; lower learning_rate"
                )
            bar.update()
    model.zero_grad(set_to_none=True)
    return FittedLanguageModel(model=model.eval(), config=config, losses=tuple(losses))


def document_losses(model: Any, tokens: Tensor) -> Tensor:
    """Mean loss over the tokens of each document, the first left out, shape (n,).

    Args:
        model: Causal language model.
        tokens: Shape (n, length), padded at the end with -100.
    """
    present = tokens != _NO_TOKEN
    logits = model(input_ids=tokens.clamp(min=0), attention_mask=present.long()).logits[:, :-1]
    each = cross_entropy(logits.transpose(1, 2).float(), tokens[:, 1:], reduction="none")
    return each.sum(1) / present[:, 1:].sum(1)


def _padded(documents: Sequence[Sequence[int]]) -> Tensor:
    if not len(documents):
        raise ValueError("documents: expected at least one, got none")
    lengths = [len(document) for document in documents]
    if min(lengths) < 2:
        raise ValueError(
            f"documents: expected 2 tokens or more, got {min(lengths)} at index {lengths.index(min(lengths))}"
        )
    table = torch.full((len(documents), max(lengths)), _NO_TOKEN, dtype=torch.long)
    for row, document in enumerate(documents):
        table[row, : len(document)] = torch.as_tensor(document)
    return table


def _optimizer(model: Any, config: TrainingConfig) -> torch.optim.Optimizer:
    if config.optimizer == "adam":
        return torch.optim.Adam(model.parameters(), lr=config.learning_rate, betas=(0.9, 0.98), fused=True)
    return torch.optim.SGD(model.parameters(), lr=config.learning_rate, momentum=config.momentum, fused=True)


@contextmanager
def _plain(model: Any, tokens: Tensor, config: TrainingConfig, warmup: float) -> Iterator[Any]:
    optimizer = _optimizer(model, config)
    steps = max(1, config.steps(len(tokens)))
    rising = max(1, round(warmup * steps))

    def share(step: int) -> float:
        return min(1.0, (step + 1) / rising) * (0.55 + 0.45 * math.cos(math.pi * min(1.0, step / steps)))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, share)

    def one_epoch(epoch: int) -> float:
        total = 0.0
        order = torch.from_numpy(shuffled(config.seed, epoch, len(tokens)))
        for batch in order.split(config.batch_size):
            optimizer.zero_grad()
            loss = document_losses(model, _trimmed(tokens[batch])).mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += float(loss.detach()) * len(batch)
        return total / len(tokens)

    yield one_epoch


@contextmanager
def _private(model: Any, tokens: Tensor, config: TrainingConfig) -> Iterator[Any]:
    per_document = GradSampleModule(model, loss_reduction="sum")
    optimizer = DPOptimizer(
        _optimizer(model, config),
        noise_multiplier=config.noise_multiplier,
        max_grad_norm=config.clip_norm or 0.0,
        expected_batch_size=config.expected_batch(len(tokens)),
    )
    steps, rate = config.steps_per_epoch(len(tokens)), config.sampling_rate(len(tokens))

    def one_epoch(epoch: int) -> float:
        optimizer.generator = generator(config.seed, "noise", epoch, tokens.device)
        batches = poisson_batches(config.seed, epoch, len(tokens), rate=rate, steps=steps)
        total = 0.0
        for step in range(steps):
            optimizer.zero_grad()
            batch = torch.from_numpy(batches.batch(step))
            # An empty batch is a step of noise alone; one document of weight 0 gives its shapes.
            weight = 1.0 if len(batch) else 0.0
            loss = document_losses(per_document, tokens[batch if len(batch) else [0]]).sum() * weight
            loss.backward()
            optimizer.step()
            total += float(loss.detach())
        return total / max(1, len(batches.records))

    try:
        with warnings.catch_warnings():
            # Token numbers need no gradient of their own, and torch says so at every first layer.
            warnings.filterwarnings("ignore", message="Full backward hook is firing")
            yield one_epoch
    finally:
        per_document.to_standard_module()


def _trimmed(tokens: Tensor) -> Tensor:
    """Without columns in which no document has a token."""
    return tokens[:, : int((tokens != _NO_TOKEN).sum(1).max())]
