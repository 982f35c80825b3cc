"""Training on documents: batches, loss, learning rate, noise."""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

from paperlib.io.files import config_hash
from paperlib.training.batches import shuffled
from paperlib.training.config import TrainingConfig
from paperlib.training.fitting import (
    Checkpoints,
    Saved,
    make_optimizer,
    private_epochs,
    train_epochs,
)
from paperlib.training.language.clipping import add_clipped_gradients, check_layers


def scheduled_steps(
    model: Any, optimizer: torch.optim.Optimizer, *, steps: int, rising: int, each: int
) -> Callable[[Tensor, int], None]:
    """A function that makes one step by the gradient of a loss, in the epoch of a number from 0.

    Gradients are cut at norm 1.

    Args:
        steps: Steps of the whole training, in which the learning rate falls as a cosine to a tenth.
        rising: The first of them, in which it also rises in a straight line.
        each: Steps of one epoch, which tell where a training goes on from a checkpoint.
    """
    steps = max(1, steps)
    rising = max(1, rising)
    schedule: torch.optim.lr_scheduler.LambdaLR | None = None

    def share(step: int) -> float:
        """The learning rate of a step, from 0, as a share of that of ``optimizer``."""
        fall = 0.55 + 0.45 * math.cos(math.pi * min(1.0, step / steps))  # from 1 to 0.1
        return min(1.0, (step + 1) / rising) * fall

    parameters = list(model.parameters())

    def learn(loss: Tensor, epoch: int) -> None:
        """One step by the gradient of this loss, shape (), in the epoch of this number from 0."""
        nonlocal schedule
        # It is made at the first step, from the optimizer's state, which a checkpoint may have set.
        if schedule is None:
            # torch calls a step an epoch here; -1 stands for none done yet.
            schedule = torch.optim.lr_scheduler.LambdaLR(
                optimizer, share, last_epoch=epoch * each - 1
            )
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()

    return learn


_BETAS = (0.9, 0.98)  # of Adam
_NO_TOKEN = -100  # what torch's cross-entropy leaves out
_TOKENS_AT_ONCE = 8192  # of a batch with DP, so that memory does not grow with the batch


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedLanguageModel:
    """A model in evaluation mode, and the mean loss of each epoch, nats per token, seen while
    training.
    """

    model: Any
    config: TrainingConfig
    losses: tuple[float, ...]


def fit_language_model(
    model: Any,
    documents: Sequence[Sequence[int]],
    *,
    config: TrainingConfig,
    progress: bool = True,
    checkpoint: Path | None = None,
    between: float = 600.0,
) -> FittedLanguageModel:
    """Train on documents, with DP-SGD if ``config`` has a clipping norm.

    The loss of a document is the mean over its tokens, the first left out. Without DP the learning
    rate rises over a tenth of the steps, then falls as a cosine to a tenth; gradients are cut at
    norm 1. With DP it is constant, every document is in every batch by its own coin, its own
    gradient is clipped, and Opacus adds noise to the sum. By ghost clipping memory is near that of
    training without DP. A weight used twice (GPT-2's embedding, tied to its output layer) stays one
    weight.

    Guarantee:
        With DP, ``privacy_of(config, len(documents))`` for adding or removing one document, as
        `fit_dp`. At the first step the sum of the documents' gradients is compared with autograd's.

    Args:
        model: A causal language model, trained in place; with DP, one whose trained weights are all
            in layers Linear, Conv1D, Embedding and LayerNorm, such as GPT-2 and GPT-NeoX.
        documents: Token numbers of each document, at least 2; documents of one length train
            fastest.
        config: Settings of the training; ``widths`` and ``microbatches`` are left at their
            defaults.
        checkpoint: File of a checkpoint; with the same arguments training goes on from it to the
            same result.
        between: Least time between two checkpoints, seconds.

    Raises:
        ValueError: No document, one of fewer than 2 tokens, ``microbatches``, or with DP a model
            with other layers.
        TrainingDiverged: The loss stopped being finite.
        CheckpointError: The checkpoint is damaged or of another run.

    Source:
        Ghost clipping: Li, Tramèr, Liang and Hashimoto (2022), as for PANORAMIA's DP GPT-2
        (Appendix D.9).
    """
    if config.groups is not None:
        raise ValueError(f"config: expected microbatches None, got {config.microbatches}")
    if not len(documents):
        raise ValueError("documents: expected at least one, got none")
    lengths = [len(document) for document in documents]
    shortest = min(lengths)
    if shortest < 2:
        raise ValueError(
            f"documents: expected 2 tokens or more, got {shortest} at index "
            f"{lengths.index(shortest)}"
        )
    rows = [torch.as_tensor(document, dtype=torch.long) for document in documents]
    tokens = pad_sequence(rows, batch_first=True, padding_value=_NO_TOKEN)
    tokens = tokens.to(next(model.parameters()).device)
    checksum = hashlib.sha256(tokens.cpu().numpy().tobytes()).hexdigest()
    run = {"config": config_hash(config.to_dict()), "documents": checksum}
    optimizer = make_optimizer(model, config, betas=_BETAS)
    prepare = _private if config.is_private else _plain
    one_epoch = prepare(model, optimizer, tokens, config)
    model.train()
    checkpoints = Checkpoints(
        saved=Saved(checkpoint, run, seconds=between),
        stateful={"model": model, "optimizer": optimizer},
    )
    losses = train_epochs(one_epoch, config, tokens.device, checkpoints, progress=progress)
    model.zero_grad(set_to_none=True)
    return FittedLanguageModel(model=model.eval(), config=config, losses=losses)


def document_losses(model: Any, tokens: Tensor) -> Tensor:
    """Mean loss of each document, nats per token, (n,), over its tokens but the first; ``tokens``
    are (n, length), padded with -100 on the right, 2 or more in each row.
    """
    present = tokens != _NO_TOKEN
    # What each token is followed by, to be predicted there; nothing behind the last.
    following = torch.cat([tokens[:, 1:], tokens.new_full((len(tokens), 1), _NO_TOKEN)], dim=1)
    inputs = {"input_ids": tokens.clamp(min=0), "attention_mask": present.long()}
    logits = model(**inputs, use_cache=False).logits
    # The loss is 0 at places that no token follows.
    losses = cross_entropy(logits.flatten(0, 1).float(), following.flatten(), reduction="none")
    return losses.view_as(tokens).sum(1) / present[:, 1:].sum(1)


def _plain(
    model: Any, optimizer: torch.optim.Optimizer, tokens: Tensor, config: TrainingConfig
) -> Callable[[int], float]:
    """A function that trains one epoch, by its number from 0, without DP over documents in a random
    order; it returns their mean loss. ``tokens`` are (n, length), padded with -100.
    """
    steps = config.steps(len(tokens))
    learn = scheduled_steps(
        model,
        optimizer,
        steps=steps,
        rising=round(0.1 * steps),
        each=config.steps_per_epoch(len(tokens)),
    )

    def one_epoch(epoch: int) -> float:
        """Learn from all documents once, in an order of this epoch; their mean loss, nats per
        token.
        """
        total = 0.0
        order = torch.from_numpy(shuffled(config.seed, epoch, len(tokens)))
        for batch in order.split(config.batch_size):
            loss = document_losses(model, _trimmed(tokens[batch])).mean()
            learn(loss, epoch)
            total += float(loss.detach()) * len(batch)
        return total / len(tokens)

    return one_epoch


def _private(
    model: Any, plain: torch.optim.Optimizer, tokens: Tensor, config: TrainingConfig
) -> Callable[[int], float]:
    """A function that trains one epoch, by its number from 0, of DP-SGD and returns the mean loss
    of the documents seen, nats per token.

    Args:
        model: A language model; ``plain`` is the optimizer of its weights, to which noise is added.
        tokens: Documents, (n, length), padded with -100.
        config: A private one.

    Raises:
        ValueError: The model has layers whose gradients are not known for each document.
    """
    from opacus.optimizers import DPOptimizerFastGradientClipping  # takes seconds to import

    check_layers(model)
    clip_norm = cast(float, config.clip_norm)  # a private config has one
    optimizer = DPOptimizerFastGradientClipping(
        plain,
        noise_multiplier=config.noise_multiplier,
        max_grad_norm=clip_norm,
        expected_batch_size=config.expected_batch(len(tokens)),
    )
    checked = False  # whether a batch with a document was compared with autograd

    def step(records: Tensor) -> float:
        """One step of DP-SGD on the documents of these numbers, (B,), which may be none; the sum of
        their losses.
        """
        nonlocal checked
        loss = _add_batch(model, tokens[records], clip_norm=clip_norm, check=not checked)
        if len(records):
            checked = True
        else:  # An empty batch is a step of noise alone.
            for parameter in optimizer.params:
                parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return private_epochs(optimizer, config, len(tokens), tokens.device, step)


def _add_batch(model: Any, batch: Tensor, *, clip_norm: float, check: bool) -> float:
    """Add the sum of the documents' clipped gradients to ``.grad``, a few documents at a time;
    returns the sum of their losses, nats per token. ``batch`` is (B, length), padded with -100.
    """
    if not len(batch):
        return 0.0
    total = 0.0
    for documents in batch.split(max(1, _TOKENS_AT_ONCE // batch.shape[1])):
        run = partial(document_losses, model, _trimmed(documents))
        losses = add_clipped_gradients(model, run, len(documents), clip_norm=clip_norm, check=check)
        total += float(losses.sum())
    return total


def _trimmed(tokens: Tensor) -> Tensor:
    """Without columns in which no document has a token."""
    return tokens[:, : int((tokens != _NO_TOKEN).sum(1).max())]
