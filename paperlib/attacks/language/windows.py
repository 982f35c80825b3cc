"""From texts to windows of tokens that fit the model, and one forward pass for numbers on each
token.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from paperlib.core import FloatArray, check_at_least, check_list

# Logits handled at once: memory does not grow with batch x vocabulary, and on a CPU they stay in
# its cache.
_AT_ONCE = {"cpu": 2**18}
_AT_ONCE_ELSEWHERE = 2**24
_WORTH_SHARING = 4  # tokens that several windows must have in common before they are computed once
_SMALLEST_VARIANCE = 1e-12  # of log-probabilities: 0 where the model is certain or knows nothing

Rows = Callable[[Tensor, Tensor], Tensor]
"""From logits, shape (n, vocabulary), and the tokens that followed, shape (n,), to numbers, shape
(n, k).
"""
_NO_LIMIT = 10**9  # tokenizers without a limit state absurdly large numbers


@dataclass(frozen=True)
class Window:
    """A stretch of tokens of one text and of what precedes it; those from ``first`` on are scored
    here.
    """

    text: int  # number of the text
    tokens: tuple[int, ...]
    first: int  # at least 1, since nothing predicts the token at 0
    group: int  # texts of one group have the same context, so that their windows may begin alike


def check_texts(name: str, texts: Sequence[str]) -> list[str]:
    """Texts as a list, all of them non-empty."""
    check_list(name, texts)
    checked = list(texts)
    if not checked:
        raise ValueError(f"{name}: expected at least one text, got none")
    for index, text in enumerate(checked):
        if not isinstance(text, str) or not text:
            raise ValueError(f"{name}: expected non-empty strings, got {text!r} at index {index}")
    return checked


def flattened(
    name: str, lists: Sequence[Sequence[str]], contexts: Sequence[str] | None
) -> tuple[list[str], list[str] | None, list[int]]:
    """The texts of all lists in one, the context of each if there are contexts, and the lists'
    lengths.
    """
    checked = [check_texts(f"{name}[{index}]", some) for index, some in enumerate(lists)]
    around = None
    if contexts is not None:
        around = [context for some, context in zip(checked, contexts, strict=True) for _ in some]
    return [text for some in checked for text in some], around, [len(some) for some in checked]


def encode(tokenizer: Any, texts: Sequence[str], contexts: Sequence[str] | None) -> list[Window]:
    """Tokens of each text, after its context if there are contexts, each text in one window of any
    length.
    """
    # Text and context are one string, as in training; a token with letters of both is scored.
    if contexts is None:
        encoded = _numbered(
            [(tokens, 1) for tokens in text_tokens(tokenizer, texts)], [""] * len(texts)
        )
    else:
        if isinstance(contexts, str) or len(contexts) != len(texts):
            given = "one string" if isinstance(contexts, str) else str(len(contexts))
            raise ValueError(f"contexts: expected {len(texts)}, one per text, got {given}")
        divided = _by_offsets if getattr(tokenizer, "is_fast", False) else _apart
        encoded = _numbered(divided(tokenizer, texts, contexts), contexts)
    for index, one in enumerate(encoded):
        if len(one.tokens) <= one.first:
            raise ValueError(
                f"texts: {texts[index][:40]!r} at index {index} has {len(one.tokens)} token(s) and "
                "nothing before them, so none can be scored; leave it out, or give contexts in "
                "Python"
            )
    return encoded


def token_windows(
    texts: Sequence[Any], contexts: Sequence[Any] | None, padding: Any = None
) -> list[Window]:
    """As `encode`, for texts and contexts that are the numbers of their tokens already, without
    padding.
    """
    before = (
        [()] * len(texts)
        if contexts is None
        else [tuple(map(int, context)) for context in contexts]
    )
    if len(before) != len(texts):
        raise ValueError(f"contexts: expected {len(texts)}, one per text, got {len(before)}")
    both = [
        ((*around, *map(int, text)), len(around))
        for around, text in zip(before, texts, strict=True)
    ]
    encoded = _numbered(both, before)
    for index, one in enumerate(encoded):
        if padding is not None and (padding, padding) in (one.tokens[:2], one.tokens[-2:]):
            raise ValueError(
                f"texts: {index} begins or ends with padding, tokens {padding}; leave it out"
            )
        if len(one.tokens) <= one.first or min(one.tokens) < 0:
            raise ValueError(
                "texts: expected token numbers from 0 on, and a token before the first that is "
                f"scored, got {list(texts[index])[:8]} at index {index}"
            )
    return encoded


def _numbered(
    parts: Iterable[tuple[Sequence[int], int]], contexts: Sequence[Hashable]
) -> list[Window]:
    """Windows of the tokens of each text with its context, and of the place of its first scored
    token.
    """
    groups = {context: number for number, context in enumerate(dict.fromkeys(contexts))}
    numbered = enumerate(zip(parts, contexts, strict=True))
    return [
        Window(at, tuple(row), max(1, first), groups[around])
        for at, ((row, first), around) in numbered
    ]


def _by_offsets(
    tokenizer: Any, texts: Sequence[str], contexts: Sequence[str]
) -> Iterator[tuple[list[int], int]]:
    """Tokens up to the text's last, and the place of its first."""
    both = [context + text for text, context in zip(texts, contexts, strict=True)]
    output = tokenizer(
        both, return_offsets_mapping=True, return_attention_mask=False, verbose=False
    )
    for tokens, offsets, context in zip(
        output["input_ids"], output["offset_mapping"], contexts, strict=True
    ):
        inside = [place for place, (_, end) in enumerate(offsets) if end > len(context)]
        yield (tokens[: inside[-1] + 1], inside[0]) if inside else (tokens, len(tokens))


def _apart(
    tokenizer: Any, texts: Sequence[str], contexts: Sequence[str]
) -> Iterator[tuple[list[int], int]]:
    """As `_by_offsets` for tokenizers that give no offsets: the two parts are tokenized by
    themselves.
    """
    for text, context in zip(texts, contexts, strict=True):
        before = tokenizer(context)["input_ids"]
        yield before + tokenizer(text, add_special_tokens=False)["input_ids"], len(before)


def text_tokens(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Tokens of each text, with those that the tokenizer puts before it and without those behind
    it.
    """
    rows = tokenizer(list(texts), return_attention_mask=False, verbose=False)["input_ids"]
    whole = tokenizer("a")["input_ids"]
    alone = tokenizer("a", add_special_tokens=False)["input_ids"]
    at = next((at for at in range(len(whole)) if whole[at : at + len(alone)] == alone), 0)
    behind = len(whole) - len(alone) - at
    return [row[: len(row) - behind] for row in rows]


def context_length(model: Any, tokenizer: Any, max_length: int | None) -> int:
    """Largest number of tokens that the model takes at once, or ``max_length`` if that is given."""
    config = getattr(model, "config", None)
    names = (
        "max_position_embeddings",
        "n_positions",
        "max_sequence_length",
        "max_seq_len",
        "seq_length",
    )
    stated = [getattr(config, name, None) for name in names] + [
        getattr(tokenizer, "model_max_length", None)
    ]
    known = [
        int(value) for value in stated if isinstance(value, int | float) and 1 < value < _NO_LIMIT
    ]
    limit = min(known, default=_NO_LIMIT)
    if max_length is None:
        return limit
    if not 2 <= max_length <= limit:
        raise ValueError(
            f"max_length: expected 2 to {limit}, what the model takes, got {max_length}"
        )
    return max_length


def windows(
    model: Any,
    tokenizer: Any,
    encoded: Sequence[Window],
    *,
    max_length: int | None = None,
    prefix: str | None = None,
) -> list[Window]:
    """Windows that fit the model's context, in the order of the texts; every scored token is scored
    once.
    """
    limit = context_length(model, tokenizer, max_length)
    before, special = list[int](), list[int]()
    if prefix is not None:  # it takes the place of the tokenizer's start tokens
        (before,) = text_tokens(tokenizer, check_texts("prefix", [prefix]))
        special = getattr(tokenizer, "all_special_ids", [])
        if 2 * len(before) > limit:
            raise ValueError(
                f"prefix: expected at most half of the model's {limit} tokens, got {len(before)}"
            )
    room = limit - len(before)
    cut: list[Window] = []
    for one in encoded:
        start = next(
            (at for at, token in enumerate(one.tokens) if token not in special), len(one.tokens)
        )
        for begin, first, end in _spans(len(one.tokens), one.first, room):
            begin = max(begin, min(start, first))
            tokens = (*before, *one.tokens[begin:end])
            cut.append(Window(one.text, tokens, len(before) + first - begin, one.group))
    embeddings = model.get_input_embeddings() if hasattr(model, "get_input_embeddings") else None
    size = getattr(embeddings, "num_embeddings", None)
    largest = max(max(window.tokens) for window in cut)
    if size is not None and largest >= size:
        raise ValueError(
            f"tokenizer: gives token {largest}, the model has tokens 0 to {size - 1}; take the "
            "model's own"
        )
    return cut


def _spans(length: int, first: int, room: int) -> Iterator[tuple[int, int, int]]:
    """(begin, first scored, end) of each window; windows of one text overlap by half."""
    if length - first < room:
        yield max(0, length - room), first, length
        return
    half = room // 2
    begin = max(0, first - half)
    while first < length:
        end = min(length, begin + room)
        yield begin, first, end
        first, begin = end, end - half


def token_rows(
    model: Any,
    windows: Sequence[Window],
    rows: Rows,
    *,
    batch_size: int,
    share: bool,
    names: tuple[str, str] = ("model", "texts"),
) -> list[FloatArray]:
    """For each text ``rows`` of its scored tokens, shape (tokens, k), from one pass over all
    windows.
    """
    # Batches of similar lengths are padded on the right with token 0 and masked: in a causal model
    # nothing to the left sees it. In a torch.distributed group (``accelerate launch``) each
    # process, with the model on its own GPU, takes its share of the batches and gets all results.
    check_at_least(1, batch_size=batch_size)
    share = share and not getattr(model, "_is_stateful", False)
    process, processes = 0, 1
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        process, processes = torch.distributed.get_rank(), torch.distributed.get_world_size()
    by_window: dict[int, FloatArray] = {}
    with evaluating(model):
        for common, numbers in islice(
            _batches(windows, batch_size, share), process, None, processes
        ):
            batch = [windows[number] for number in numbers]
            table = in_parts(rows, *_scored_logits(model, batch, common)).double().cpu().numpy()
            counts = [len(window.tokens) - window.first for window in batch]
            finite = np.isfinite(table).all(axis=1)
            if not finite.all():
                text = np.repeat([window.text for window in batch], counts)[finite.argmin()]
                raise ValueError(
                    f"{names[0]}: returned NaN or infinity for {int((~finite).sum())} of "
                    f"{len(table)} tokens of a batch, first in {names[1]}[{text}]; load it in a "
                    "wider number format (bfloat16 or float32), or mend its weights"
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
    """Without dropout and gradients; the mode of each part of the model is put back afterwards."""
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for part, training in modes:
            part.training = training


def _batches(windows: Sequence[Window], size: int, share: bool) -> Iterator[tuple[int, list[int]]]:
    """Numbers of the windows of a batch, after the number of tokens they all begin with (0: not
    worth it).
    """
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
        ordered = sorted(
            numbers, key=lambda at: -len(windows[at].tokens)
        )  # the largest batch fails first
        yield from (
            (common, ordered[start : start + size]) for start in range(0, len(ordered), size)
        )


def _scored_logits(model: Any, batch: Sequence[Window], common: int) -> tuple[Tensor, Tensor]:
    """Logits that predict the scored tokens of a batch, shape (tokens, vocabulary), and these
    tokens.
    """
    device = device_of(model)
    rows = [torch.tensor(window.tokens) for window in batch]
    tokens = pad_sequence(rows, batch_first=True)
    present = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
    scored = pad_sequence([torch.arange(len(w.tokens)) >= w.first for w in batch], batch_first=True)
    cache = _shared_cache(model, tokens[:1, :common].to(device), len(batch)) if common else None
    start = 0 if cache is None else common
    inputs = {"input_ids": tokens[:, start:].to(device), "attention_mask": present.to(device)}
    shared = {} if cache is None else {"past_key_values": cache}
    logits = model(**inputs, **shared, use_cache=bool(shared)).logits
    scored, targets = scored[:, start + 1 :], tokens[:, start + 1 :]
    return logits[:, :-1][scored.to(logits.device)], targets[scored].to(logits.device)


def _shared_cache(model: Any, tokens: Tensor, times: int) -> Any:
    """What the model keeps of the tokens, once for each text; None where not all of it can be
    repeated.
    """
    cache: Any = deepcopy(getattr(model(input_ids=tokens, use_cache=True), "past_key_values", None))
    for part in (cache, *getattr(cache, "layers", ())):
        # Layers with the state of a convolution or a recurrence, as in LFM2, repeat their keys at
        # most.
        if not hasattr(part, "batch_repeat_interleave") or hasattr(part, "conv_states"):
            return None
    cache.batch_repeat_interleave(times)
    return cache


def device_of(model: Any) -> torch.device:
    """Device of the inputs; a model whose weights accelerate keeps elsewhere moves the inputs
    itself.
    """
    device = next(model.parameters()).device
    return torch.device("cpu") if device.type == "meta" else device


def token_statistics(
    logits: Tensor, targets: Tensor, *, standardize: bool = False, margins: bool = False
) -> Tensor:
    """The numbers of `TokenStatistics` for each target, shape (n, 3); 0 for the one that is not
    wanted.
    """
    logits, targets = logits.float(), targets[:, None]
    log_probs = logits.log_softmax(-1)
    log_prob = log_probs.gather(-1, targets)[:, 0]
    standardized = margin = torch.zeros_like(log_prob)
    if standardize:
        # A forbidden token (probability 0) adds nothing; the variance is around the mean, lest it
        # cancel.
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
