"""One forward pass per text: statistics of the model's prediction of each token."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paperlib.attacks.language.windows import Window
from paperlib.core import FloatArray, check_at_least

# Logits handled at once: memory does not grow with batch x vocabulary, and on a CPU they stay in its cache.
_AT_ONCE = {"cpu": 2**18}
_AT_ONCE_ELSEWHERE = 2**24
_WORTH_SHARING = 4  # tokens that several windows must have in common before they are computed once
_SMALLEST_VARIANCE = 1e-12  # of log-probabilities: 0 where the model is certain or knows nothing


@dataclass(frozen=True, eq=False)
class TokenStatistics:
    """Statistics of the model's predictions of the scored tokens of one text, in their order.

    Attributes:
        log_prob: Log-probability of each token, nats, shape (t,).
        standardized: (log p - mean) / standard deviation over the vocabulary, shape (t,).
        margin: Logit of the token minus the largest of the others, shape (t,).
    """

    log_prob: FloatArray
    standardized: FloatArray
    margin: FloatArray


@dataclass
class _Collected:
    """Rows of numbers by text; windows of one text may come in any order."""

    parts: dict[int, dict[int, np.ndarray]] = field(default_factory=dict)

    def add(self, windows: Sequence[tuple[int, Window]], rows: np.ndarray) -> None:
        start = 0
        for order, window in windows:
            count = len(window.tokens) - window.first
            self.parts.setdefault(window.text, {})[order] = rows[start : start + count]
            start += count

    def joined(self, texts: int) -> list[np.ndarray]:
        return [
            np.concatenate([part for _, part in sorted(self.parts[text].items())]) for text in range(texts)
        ]


def token_statistics(
    model: Any,
    windows: Sequence[Window],
    texts: int,
    *,
    batch_size: int,
    share: bool,
    standardize: bool = True,
    margins: bool = True,
    names: tuple[str, str] = ("model", "texts"),
) -> list[TokenStatistics]:
    """Run the model over all windows.

    Windows of similar length share a batch. Batches are padded on the right with token 0 and masked: in a
    causal model nothing to the left sees the padding, so no padding token is needed. Where windows of one
    group begin alike, the common part is computed once.

    In a torch.distributed group (accelerate's ``PartialState`` makes one under ``accelerate launch``) each
    process, with the model on its own GPU, takes its share of the batches and gets all results.

    Args:
        model: A causal language model whose output has ``logits``.
        windows: Windows of all texts.
        texts: Number of texts.
        batch_size: Windows per batch, 1 or more.
        share: True to compute common beginnings once.
        standardize: True if ``standardized`` is needed; else it is 0.
        margins: True if ``margin`` is needed; else it is 0.
        names: Names of the model and of the texts, for messages.

    Returns:
        One entry per text.

    Raises:
        ValueError: The model returns NaN or infinity where a token's probability should be.
    """
    rows = token_rows(
        model,
        windows,
        texts,
        lambda logits, targets: _rows(logits, targets, standardize, margins),
        batch_size=batch_size,
        share=share,
        names=names,
    )
    return [TokenStatistics(*table.T) for table in rows]


def token_rows(
    model: Any,
    windows: Sequence[Window],
    texts: int,
    rows: Callable[[Tensor, Tensor], Tensor],
    *,
    batch_size: int,
    share: bool,
    names: tuple[str, str] = ("model", "texts"),
) -> list[FloatArray]:
    """Some numbers for each scored token, from one pass over all windows as `token_statistics` makes it.

    Args:
        model: A causal language model.
        windows: Windows of all texts.
        texts: Number of texts.
        rows: Function from logits, shape (n, vocabulary), and the tokens that followed, shape (n,), to
            finite numbers, shape (n, k).
        batch_size: Windows per batch, 1 or more.
        share: True to compute common beginnings once.
        names: Names of the model and of the texts, for messages.

    Returns:
        For each text an array of shape (scored tokens, k).

    Raises:
        ValueError: Numbers that are not finite.
    """
    check_at_least(1, batch_size=batch_size)
    collected = _Collected()
    numbered = list(enumerate(windows))
    share = share and not getattr(model, "_is_stateful", False)
    with evaluating(model):
        for number, (common, batch) in enumerate(_batches(numbered, batch_size, share)):
            if number % _processes() == _process():
                logits, targets = _scored_logits(model, [window for _, window in batch], common)
                parts = [
                    rows(part, chosen)
                    for part, chosen in zip(
                        *(x.split(at_once(logits)) for x in (logits, targets)), strict=True
                    )
                ]
                collected.add(batch, _finite(torch.cat(parts), batch, names).double().cpu().numpy())
    return _gathered(collected).joined(texts)


def at_once(logits: Tensor) -> int:
    """Number of rows of logits to handle at one time."""
    return max(1, _AT_ONCE.get(logits.device.type, _AT_ONCE_ELSEWHERE) // logits.shape[-1])


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Without dropout and gradients; the model's mode is put back afterwards."""
    training = bool(getattr(model, "training", False))
    if training:
        model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        if training:
            model.train()


def _batches(
    numbered: Sequence[tuple[int, Window]], size: int, share: bool
) -> Iterator[tuple[int, list[tuple[int, Window]]]]:
    """Batches with the number of tokens that all their windows begin with (0: nothing to gain)."""
    groups: dict[int | None, list[tuple[int, Window]]] = {}
    for item in numbered:
        groups.setdefault(item[1].group if share else None, []).append(item)
    alone: list[tuple[int, Window]] = []
    for group, items in groups.items():
        common = 0 if group is None or len(items) == 1 else _common([window for _, window in items])
        if common < _WORTH_SHARING:
            alone += items
        else:
            yield from ((common, batch) for batch in _by_length(items, size))
    yield from ((0, batch) for batch in _by_length(alone, size))


def _by_length(items: list[tuple[int, Window]], size: int) -> Iterator[list[tuple[int, Window]]]:
    ordered = sorted(items, key=lambda item: -len(item[1].tokens))  # the largest batch fails first
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


def _common(windows: Sequence[Window]) -> int:
    """Tokens that all windows begin with, short of the one that predicts the first scored token."""
    first, last = min(w.tokens for w in windows), max(w.tokens for w in windows)
    limit = min(window.first for window in windows) - 1
    for place in range(min(limit, len(first), len(last))):
        if first[place] != last[place]:
            return place
    return max(0, limit)


def _scored_logits(model: Any, batch: Sequence[Window], common: int) -> tuple[Tensor, Tensor]:
    """Logits that predict the scored tokens of a batch, shape (tokens, vocabulary), and these tokens."""
    lengths = [len(window.tokens) for window in batch]
    length = max(lengths)
    tokens = torch.tensor(
        [[*window.tokens, *[0] * (length - count)] for window, count in zip(batch, lengths, strict=True)]
    )
    places = torch.arange(length)
    mask = places < torch.tensor(lengths)[:, None]
    wanted = mask & (places >= torch.tensor([window.first for window in batch])[:, None])
    inputs = {"input_ids": tokens[:, common:], "attention_mask": mask.long()}
    inputs = {name: value.to(_device(model)) for name, value in inputs.items()}
    if common:
        cache = _cache(model, tokens[:1, :common].to(_device(model)), len(batch))
        logits = model(**inputs, past_key_values=cache, use_cache=True).logits
    else:
        logits = model(**inputs, use_cache=False).logits
    scored = wanted[:, common + 1 :]
    targets = tokens[:, common + 1 :][scored]
    return logits[:, :-1][scored.to(logits.device)], targets.to(logits.device)


def _cache(model: Any, common: Tensor, count: int) -> Any:
    """Keys and values of the common beginning, repeated for each window."""
    cache = deepcopy(model(input_ids=common, use_cache=True).past_key_values)
    cache.batch_repeat_interleave(count)
    return cache


def _rows(logits: Tensor, targets: Tensor, standardize: bool, margins: bool) -> Tensor:
    """Log-probability, standardized log-probability and margin of each target, shape (n, 3)."""
    logits = logits.float()
    chosen = targets[:, None]
    log_probs = logits.log_softmax(-1)
    log_prob = log_probs.gather(-1, chosen)[:, 0]
    nothing = torch.zeros_like(log_prob)
    standardized = _standardized(log_probs, log_prob) if standardize else nothing
    return torch.stack([log_prob, standardized, _margins(logits, targets) if margins else nothing], -1)


def _standardized(log_probs: Tensor, log_prob: Tensor) -> Tensor:
    """(log p - mean) / standard deviation under p; overwrites ``log_probs``.

    The variance is summed around the mean, so that it cannot cancel; a forbidden token (probability 0) adds
    nothing to either.
    """
    log_probs.clamp_(min=-1e4)
    probs = log_probs.exp()
    mean = torch.linalg.vecdot(probs, log_probs)
    log_probs.sub_(mean[:, None]).square_()
    variance = torch.linalg.vecdot(probs, log_probs)
    return (log_prob - mean) / variance.clamp(min=_SMALLEST_VARIANCE).sqrt()


def _margins(logits: Tensor, targets: Tensor) -> Tensor:
    """Logit of each target minus the largest of the others."""
    largest, place = logits.max(-1)
    hit = place == targets
    if hit.any():  # only there the second largest is needed
        largest[hit] = logits[hit].scatter(-1, targets[hit][:, None], -torch.inf).amax(-1)
    return logits.gather(-1, targets[:, None])[:, 0] - largest


def _finite(rows: Tensor, batch: Sequence[tuple[int, Window]], names: tuple[str, str]) -> Tensor:
    if not torch.isfinite(rows).all():
        bad = (~torch.isfinite(rows)).any(-1)
        counts = [len(window.tokens) - window.first for _, window in batch]
        owner = np.repeat([window.text for _, window in batch], counts)
        first = int(owner[int(bad.nonzero()[0])])
        raise ValueError(
            f"{names[0]}: returned NaN or infinity for {int(bad.sum())} of {len(bad)} tokens of a batch, "
            f"first in {names[1]}[{first}]; load it in a wider number format (bfloat16 or float32), or mend "
            "its weights"
        )
    return rows


def _device(model: Any) -> torch.device:
    """Device of the inputs; a model whose weights accelerate keeps elsewhere moves the inputs itself."""
    device = next(model.parameters()).device
    return torch.device("cpu") if device.type == "meta" else device


def _processes() -> int:
    return torch.distributed.get_world_size() if _distributed() else 1


def _process() -> int:
    return torch.distributed.get_rank() if _distributed() else 0


def _distributed() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def _gathered(collected: _Collected) -> _Collected:
    if _processes() == 1:
        return collected
    everyone: list[Any] = [None] * _processes()
    torch.distributed.all_gather_object(everyone, collected.parts)
    merged = _Collected()
    for parts in everyone:
        for text, windows in parts.items():
            merged.parts.setdefault(text, {}).update(windows)
    return merged
