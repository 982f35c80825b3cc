"""One forward pass per text: numbers for the model's prediction of each token."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from itertools import groupby, islice
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from paperlib.attacks.language.windows import Window
from paperlib.core import FloatArray, check_at_least

# Logits handled at once: memory does not grow with batch x vocabulary, and on a CPU they stay in its cache.
_AT_ONCE = {"cpu": 2**18}
_AT_ONCE_ELSEWHERE = 2**24
_WORTH_SHARING = 4  # tokens that several windows must have in common before they are computed once
_SMALLEST_VARIANCE = 1e-12  # of log-probabilities: 0 where the model is certain or knows nothing

Rows = Callable[[Tensor, Tensor], Tensor]
"""From logits, shape (n, vocabulary), and the tokens that followed, shape (n,), to numbers, shape (n, k)."""


def token_rows(
    model: Any,
    windows: Sequence[Window],
    rows: Rows,
    *,
    batch_size: int,
    share: bool,
    names: tuple[str, str] = ("model", "texts"),
) -> list[FloatArray]:
    """For each text ``rows`` of its scored tokens, shape (tokens, k), from one pass over all windows."""
    # Batches of similar lengths are padded on the right with token 0 and masked: in a causal model nothing to
    # the left sees it. In a torch.distributed group (``accelerate launch``) each process, with the model on
    # its own GPU, takes its share of the batches and gets all results.
    check_at_least(1, batch_size=batch_size)
    share = share and not getattr(model, "_is_stateful", False)
    process, processes = 0, 1
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        process, processes = torch.distributed.get_rank(), torch.distributed.get_world_size()
    by_window: dict[int, FloatArray] = {}
    with evaluating(model):
        for common, numbers in islice(_batches(windows, batch_size, share), process, None, processes):
            batch = [windows[number] for number in numbers]
            table = in_parts(rows, *_scored_logits(model, batch, common)).double().cpu().numpy()
            counts = [len(window.tokens) - window.first for window in batch]
            finite = np.isfinite(table).all(axis=1)
            if not finite.all():
                text = np.repeat([window.text for window in batch], counts)[finite.argmin()]
                raise ValueError(
                    f"{names[0]}: returned NaN or infinity for {int((~finite).sum())} of {len(table)} tokens "
                    f"of a batch, first in {names[1]}[{text}]; load it in a wider number format (bfloat16 or "
                    "float32), or mend its weights"
                )
            by_window |= zip(numbers, np.split(table, np.cumsum(counts)[:-1]), strict=True)
    if processes > 1:
        everyone: list[Any] = [None] * processes
        torch.distributed.all_gather_object(everyone, by_window)
        by_window = {number: part for one in everyone for number, part in one.items()}
    by_text = groupby(range(len(windows)), key=lambda number: windows[number].text)
    return [np.concatenate([by_window[number] for number in numbers]) for _, numbers in by_text]


def in_parts(rows: Rows, logits: Tensor, targets: Tensor) -> Tensor:
    """``rows`` of logits and targets, a part at a time that fits into memory."""
    step = max(1, _AT_ONCE.get(logits.device.type, _AT_ONCE_ELSEWHERE) // logits.shape[-1])
    parts = zip(logits.split(step), targets.split(step), strict=True)
    return torch.cat([rows(part, chosen) for part, chosen in parts])


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Without dropout and gradients; the model's mode is put back afterwards."""
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(training)


def _batches(windows: Sequence[Window], size: int, share: bool) -> Iterator[tuple[int, list[int]]]:
    """Numbers of the windows of a batch, after the number of tokens they all begin with (0: not worth it)."""
    groups: dict[int | None, list[int]] = {}
    for number, window in enumerate(windows):
        groups.setdefault(window.group if share else None, []).append(number)
    parts, alone = list[tuple[int, list[int]]](), list[int]()
    for group, numbers in groups.items():
        common = 0
        if group is not None and len(numbers) > 1:
            tokens = [windows[at].tokens for at in numbers]
            first, last = min(tokens), max(tokens)
            # Short of the token that predicts the first scored one.
            limit = min(windows[at].first for at in numbers) - 1
            common = next((at for at in range(limit) if first[at] != last[at]), limit)
        if common < _WORTH_SHARING:
            alone += numbers
        else:
            parts.append((common, numbers))
    for common, numbers in [*parts, (0, alone)]:
        ordered = sorted(numbers, key=lambda at: -len(windows[at].tokens))  # the largest batch fails first
        yield from ((common, ordered[start : start + size]) for start in range(0, len(ordered), size))


def _scored_logits(model: Any, batch: Sequence[Window], common: int) -> tuple[Tensor, Tensor]:
    """Logits that predict the scored tokens of a batch, shape (tokens, vocabulary), and these tokens."""
    device = device_of(model)
    rows = [torch.tensor(window.tokens) for window in batch]
    tokens = pad_sequence(rows, batch_first=True)
    present = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
    scored = pad_sequence([torch.arange(len(w.tokens)) >= w.first for w in batch], batch_first=True)
    inputs = {"input_ids": tokens[:, common:].to(device), "attention_mask": present.to(device)}
    if common:
        cache = deepcopy(model(input_ids=tokens[:1, :common].to(device), use_cache=True).past_key_values)
        cache.batch_repeat_interleave(len(batch))
        logits = model(**inputs, past_key_values=cache, use_cache=True).logits
    else:
        logits = model(**inputs, use_cache=False).logits
    scored, targets = scored[:, common + 1 :], tokens[:, common + 1 :]
    return logits[:, :-1][scored.to(logits.device)], targets[scored].to(logits.device)


def device_of(model: Any) -> torch.device:
    """Device of the inputs; a model whose weights accelerate keeps elsewhere moves the inputs itself."""
    device = next(model.parameters()).device
    return torch.device("cpu") if device.type == "meta" else device


def token_statistics(
    logits: Tensor, targets: Tensor, *, standardize: bool = False, margins: bool = False
) -> Tensor:
    """The numbers of `TokenStatistics` for each target, shape (n, 3); 0 for the one that is not wanted."""
    logits, targets = logits.float(), targets[:, None]
    log_probs = logits.log_softmax(-1)
    log_prob = log_probs.gather(-1, targets)[:, 0]
    standardized = margin = torch.zeros_like(log_prob)
    if standardize:
        # A forbidden token (probability 0) adds nothing; the variance is around the mean, lest it cancel.
        probs = log_probs.clamp_(min=-1e4).exp()
        mean = torch.linalg.vecdot(probs, log_probs)
        variance = torch.linalg.vecdot(probs, log_probs.sub_(mean[:, None]).square_())
        standardized = (log_prob - mean) / variance.clamp(min=_SMALLEST_VARIANCE).sqrt()
    if margins:
        largest, place = logits.max(-1)
        hit = place == targets[:, 0]
        if hit.any():  # only there the second largest is needed
            largest[hit] = logits[hit].scatter(-1, targets[hit], -torch.inf).amax(-1)
        margin = logits.gather(-1, targets)[:, 0] - largest
    return torch.stack([log_prob, standardized, margin], -1)
