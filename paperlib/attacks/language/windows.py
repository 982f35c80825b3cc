"""From texts to windows of tokens that fit the model, and one forward pass for numbers on each
token.
"""

import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from paperlib.core import FloatArray
from paperlib.core.checks import check_at_least, check_list

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
_Row = tuple[list[int], int]
"""Tokens of a text behind its context, and the index of the first one that is scored."""
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
    loss: tuple[bool, ...] | None = (
        None  # of a whole text: which tokens from ``first`` on training learned from; None: all
    )


class StartedTwiceWarning(UserWarning):
    """Texts bring start tokens that the tokenizer puts before them, too; they are read once."""


def check_texts(name: str, texts: Sequence[str]) -> list[str]:
    """Texts as a list; a ValueError that names ``name`` if there is none, or one is empty or no
    string.
    """
    check_list(name, texts)
    checked = list(texts)
    if not checked:
        raise ValueError(f"{name}: expected at least one text, got none")
    for index, text in enumerate(checked):
        if not isinstance(text, str) or not text:
            raise ValueError(f"{name}: expected non-empty strings, got {text!r} at index {index}")
    return checked


class Flattened(NamedTuple):
    """The n texts of k lists in one list."""

    texts: list[str]  # list after list, (n,)
    contexts: list[str] | None  # what stands before each text, (n,); None for nothing
    sizes: list[int]  # number of texts of each list, (k,)


def flattened(
    name: str, lists: Sequence[Sequence[str]], contexts: Sequence[str] | None
) -> Flattened:
    """All texts of several lists in one, their contexts, and the size of each list.

    Args:
        name: What errors call the lists.
        lists: One or more texts in each of k lists.
        contexts: What stands before all texts of a list, shape (k,); None for nothing.

    Raises:
        ValueError: An empty list or text, called ``name[index]``, or not one context for each list.
    """
    checked = [check_texts(f"{name}[{index}]", texts) for index, texts in enumerate(lists)]
    flat = [text for texts in checked for text in texts]
    sizes = [len(texts) for texts in checked]
    if contexts is None:
        return Flattened(flat, None, sizes)
    before: list[str] = []
    for context, size in zip(contexts, sizes, strict=True):
        before += [context] * size
    return Flattened(flat, before, sizes)


def encode(tokenizer: Any, texts: Sequence[str], contexts: Sequence[str] | None) -> list[Window]:
    """Tokens of each text, after its context if there are contexts, each text in one window of any
    length.

    What the tokenizer puts before a text is not scored, and neither is the first token where it
    puts nothing there. Start tokens that a text brings, too, are read once (`_read_once`).

    Raises:
        ValueError: Contexts that are not one per text, or a text of which no token can be scored.
    """
    # Text and context are one string, as in training; a token with letters of both is scored.
    special = _special_tokens(tokenizer)
    if contexts is None:
        rows = _alone(tokenizer, texts, special)
        contexts = [""] * len(texts)
    else:
        _check_contexts(contexts, len(texts))
        divided = _by_offsets if getattr(tokenizer, "is_fast", False) else _apart
        rows = divided(tokenizer, texts, contexts, special)
    encoded = _numbered(_read_once(rows, special), contexts)
    for index, window in enumerate(encoded):
        if len(window.tokens) <= window.first:
            raise ValueError(
                f"texts: {texts[index][:40]!r} at index {index} has {len(window.tokens)} token(s) "
                "and nothing before them, so none can be scored; leave it out, or give contexts in "
                "Python"
            )
    return encoded


def _check_contexts(contexts: Sequence[str], count: int) -> None:
    """Refuse one string, and another number of contexts than of texts."""
    if isinstance(contexts, str):
        raise ValueError(f"contexts: expected {count}, one per text, got one string")
    if len(contexts) != count:
        raise ValueError(f"contexts: expected {count}, one per text, got {len(contexts)}")


def token_windows(
    texts: Sequence[Any], contexts: Sequence[Any] | None, padding: Any = None
) -> list[Window]:
    """Texts and contexts that are the numbers of their tokens already, without padding, as windows
    of any length: one for each text, which holds all of its context and of itself.

    Args:
        texts: Token numbers of each text.
        contexts: Token numbers before each text, which are not scored; None where there are none.
        padding: Token that must not stand twice at an end; None asks for none.

    Raises:
        ValueError: Another number of contexts than of texts, negative numbers, padding at an end,
            or a text of which no token can be scored.
    """
    before: list[tuple[int, ...]] = [()] * len(texts)
    if contexts is not None:
        before = [tuple(map(int, context)) for context in contexts]
    if len(before) != len(texts):
        raise ValueError(f"contexts: expected {len(texts)}, one per text, got {len(before)}")
    both = [
        ((*context, *map(int, text)), len(context))
        for context, text in zip(before, texts, strict=True)
    ]
    encoded = _numbered(both, before)
    for index, window in enumerate(encoded):
        ends = (window.tokens[:2], window.tokens[-2:])
        if padding is not None and (padding, padding) in ends:
            raise ValueError(
                f"texts: {index} begins or ends with padding, tokens {padding}; leave it out"
            )
        if len(window.tokens) <= window.first or min(window.tokens) < 0:
            raise ValueError(
                "texts: expected token numbers from 0 on, and a token before the first that is "
                f"scored, got {list(texts[index])[:8]} at index {index}"
            )
    return encoded


def _numbered(
    tokens_with_first: Iterable[tuple[Sequence[int], int]], contexts: Sequence[Hashable]
) -> list[Window]:
    """The window of each text, from its tokens behind its context, (all tokens, index of the first
    that is scored), and its context; texts of equal contexts are one group.
    """
    groups = {context: number for number, context in enumerate(dict.fromkeys(contexts))}
    encoded: list[Window] = []
    for (tokens, first), context in zip(tokens_with_first, contexts, strict=True):
        encoded.append(Window(len(encoded), tuple(tokens), max(1, first), groups[context]))
    return encoded


class _Special(NamedTuple):
    """What a tokenizer adds to every text: tokens before it, and the number of tokens behind it."""

    before: list[int]
    behind: int


def _special_tokens(tokenizer: Any) -> _Special:
    """What the tokenizer adds to a text, seen at a single letter."""
    whole = tokenizer("a")["input_ids"]
    alone = tokenizer("a", add_special_tokens=False)["input_ids"]
    # Where the letter's own tokens begin among all that the tokenizer gives for it.
    starts = (start for start in range(len(whole)) if whole[start : start + len(alone)] == alone)
    start = next(starts, 0)
    return _Special(whole[:start], len(whole) - len(alone) - start)


def _alone(tokenizer: Any, texts: Sequence[str], special: _Special) -> list[_Row]:
    """Tokens of each text without those that the tokenizer puts behind it."""
    rows = tokenizer(list(texts), return_attention_mask=False, verbose=False)["input_ids"]
    return [(row[: len(row) - special.behind], len(special.before)) for row in rows]


def _by_offsets(
    tokenizer: Any, texts: Sequence[str], contexts: Sequence[str], special: _Special
) -> list[_Row]:
    """Tokens of context and text up to the text's last, and the index of the first token of the
    text.

    A token counts as the text's if it ends behind the context; a text without one gives the whole
    row.
    """
    both = [context + text for text, context in zip(texts, contexts, strict=True)]
    output = tokenizer(
        both, return_offsets_mapping=True, return_attention_mask=False, verbose=False
    )
    rows: list[_Row] = []
    for tokens, offsets, context in zip(
        output["input_ids"], output["offset_mapping"], contexts, strict=True
    ):
        of_text = [index for index, (_, end) in enumerate(offsets) if end > len(context)]
        if of_text:
            rows.append((tokens[: of_text[-1] + 1], of_text[0]))
        else:
            rows.append((tokens, len(tokens)))
    return rows


def _apart(
    tokenizer: Any, texts: Sequence[str], contexts: Sequence[str], special: _Special
) -> list[_Row]:
    """Tokens of context and text, and the index of the first token of the text, by a tokenizer that
    gives no offsets: the two parts are tokenized by themselves.
    """
    rows: list[_Row] = []
    for text, context in zip(texts, contexts, strict=True):
        ((before, _),) = _alone(tokenizer, [context], special)
        rows.append((before + tokenizer(text, add_special_tokens=False)["input_ids"], len(before)))
    return rows


def _read_once(rows: Sequence[_Row], special: _Special) -> list[_Row]:
    """Rows without the start tokens that a text or its context brings and the tokenizer puts there,
    too; a `StartedTwiceWarning` counts the texts that had some.
    """
    kept: list[_Row] = []
    repeating = 0  # texts
    start = len(special.before)
    for tokens, first in rows:
        count = _repeated(tokens[start:], special.before)
        repeating += count > 0
        kept.append(([*tokens[:start], *tokens[start + count :]], max(start, first - count)))
    if repeating:
        warnings.warn(
            f"{repeating:,} of {len(rows):,} texts began with start tokens twice, their own and "
            "the tokenizer's: they are read once",
            StartedTwiceWarning,
            stacklevel=4,  # the line that called the caller of `encode`
        )
    return kept


def _repeated(tokens: Sequence[int], before: Sequence[int]) -> int:
    """How many tokens, from the first on, a text repeats of the start tokens ``before``: the length
    of the longest beginning of ``tokens`` that is a stretch of ``before``.
    """
    count = 0
    for start in range(len(before)):  # where the stretch begins
        length = 0
        for token, special in zip(tokens, before[start:], strict=False):
            if token != special:
                break
            length += 1
        count = max(count, length)
    return count


def text_tokens(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Tokens of each text, with those that the tokenizer puts before it and without those behind
    it; start tokens of a text's own are read once, as in `encode`.
    """
    special = _special_tokens(tokenizer)
    rows = _read_once(_alone(tokenizer, texts, special), special)
    return [tokens for tokens, _ in rows]


def started_twice(tokenizer: Any, texts: Sequence[str]) -> int:
    """How many texts bring start tokens that the tokenizer puts before them, too."""
    special = _special_tokens(tokenizer)
    rows = _alone(tokenizer, texts, special)
    start = len(special.before)
    return sum(_repeated(tokens[start:], special.before) > 0 for tokens, _ in rows)


def context_length(model: Any, tokenizer: Any, max_length: int | None) -> int:
    """Largest number of tokens that the model takes at once, or ``max_length`` if that is given.

    Raises:
        ValueError: A ``max_length`` below 2 or above what model and tokenizer state.
    """
    config = getattr(model, "config", None)
    names = (
        "max_position_embeddings",
        "n_positions",
        "max_sequence_length",
        "max_seq_len",
        "seq_length",
    )
    stated = [getattr(config, name, None) for name in names]
    stated.append(getattr(tokenizer, "model_max_length", None))
    limits = [
        int(value) for value in stated if isinstance(value, int | float) and 1 < value < _NO_LIMIT
    ]
    limit = min(limits, default=_NO_LIMIT)
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

    Args:
        encoded: Each text in one window of any length, as by `encode`.
        max_length: Most tokens of a window, ``prefix`` included; None takes the model's context.
        prefix: Text to put before every window; None for nothing.

    Raises:
        ValueError: A prefix of more than half a window, a length that the model does not take, or
            tokens that it has no embedding of.
    """
    limit = context_length(model, tokenizer, max_length)
    prefix_tokens: list[int] = []
    special: list[int] = []
    if prefix is not None:  # it takes the place of the tokenizer's start tokens
        prefix_tokens = _prefix_tokens(tokenizer, prefix, limit)
        special = getattr(tokenizer, "all_special_ids", [])
    room = limit - len(prefix_tokens)
    cut: list[Window] = []
    for window in encoded:
        start = _first_not_in(special, window.tokens)
        for begin, first, end in _spans(len(window.tokens), window.first, room):
            begin = max(begin, min(start, first))  # start tokens stand before the prefix alone
            tokens = (*prefix_tokens, *window.tokens[begin:end])
            first_in_window = len(prefix_tokens) + first - begin
            cut.append(Window(window.text, tokens, first_in_window, window.group))
    _check_vocabulary(model, cut)
    return cut


def _prefix_tokens(tokenizer: Any, prefix: str, limit: int) -> list[int]:
    """Tokens of the prefix; a ValueError where they take more than half of ``limit``."""
    (tokens,) = text_tokens(tokenizer, check_texts("prefix", [prefix]))
    if 2 * len(tokens) > limit:
        raise ValueError(
            f"prefix: expected at most half of the model's {limit} tokens, got {len(tokens)}"
        )
    return tokens


def _first_not_in(special: Sequence[int], tokens: Sequence[int]) -> int:
    """Index of the first token that is not special; the number of tokens where all are."""
    for index, token in enumerate(tokens):
        if token not in special:
            return index
    return len(tokens)


def _check_vocabulary(model: Any, cut: Sequence[Window]) -> None:
    """Refuse (ValueError) tokens that the model has no embedding of; of a model that does not tell
    its embeddings all pass.
    """
    embeddings = model.get_input_embeddings() if hasattr(model, "get_input_embeddings") else None
    size = getattr(embeddings, "num_embeddings", None)
    largest = max(max(window.tokens) for window in cut)
    if size is not None and largest >= size:
        raise ValueError(
            f"tokenizer: gives token {largest}, the model has tokens 0 to {size - 1}; take the "
            "model's own"
        )


def _spans(length: int, first: int, room: int) -> Iterator[tuple[int, int, int]]:
    """(begin, first scored, end) of each window of one text, in tokens.

    A text of which the scored tokens fit is one window, with as much of what stands before them as
    there is room for. A longer one is cut into windows that overlap by half, so that every scored
    token has half a window before it.

    Args:
        length: Tokens of the text with all that stands before it.
        first: The first token that is scored.
        room: Most tokens of a window.
    """
    # One token at least stands before the first that is scored: hence below, not at most.
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

    Args:
        rows: From logits (n, vocabulary) and the tokens that stand there, (n,), to (n, k).
        batch_size: Windows per batch, 1 or more.
        share: Read what windows of one group begin with alike once; `_batches` says where.
        names: What errors call the model and the texts.

    Raises:
        ValueError: A batch size below 1, or NaN or infinity among the rows.
    """
    # Batches of similar lengths are padded on the right with token 0 and masked: in a causal model
    # nothing to the left sees it. In a torch.distributed group (``accelerate launch``) each
    # process, with the model on its own GPU, takes its share of the batches and gets all results.
    check_at_least(1, batch_size=batch_size)
    # The cache of a stateful model (transformers' mark) does not serve several continuations.
    share = share and not getattr(model, "_is_stateful", False)
    process, processes = _process_of_group()
    batches = islice(_batches(windows, batch_size, share), process, None, processes)
    by_window: dict[int, FloatArray] = {}
    with in_inference_mode(model):
        for common, numbers in batches:
            batch = [windows[number] for number in numbers]
            table = _rows_of_batch(model, batch, rows, common)
            _check_finite(table, batch, names)
            ends = np.cumsum([len(window.tokens) - window.first for window in batch])
            by_window |= zip(numbers, np.split(table, ends[:-1]), strict=True)
    if processes > 1:
        by_window = _of_all_processes(by_window, processes)
    by_text = groupby(range(len(windows)), key=lambda number: windows[number].text)
    return [np.concatenate([by_window[number] for number in numbers]) for _, numbers in by_text]


def _process_of_group() -> tuple[int, int]:
    """Number of this process in its torch.distributed group, and the number of processes."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1


def _of_all_processes(by_window: dict[int, FloatArray], processes: int) -> dict[int, FloatArray]:
    """The results, by number of a window, of all processes of the group, each of which computed
    some of the windows.
    """
    gathered: list[Any] = [None] * processes
    torch.distributed.all_gather_object(gathered, by_window)
    together: dict[int, FloatArray] = {}
    for results in gathered:
        together |= results
    return together


def _rows_of_batch(model: Any, batch: Sequence[Window], rows: Rows, common: int) -> FloatArray:
    """``rows`` of all scored tokens of a batch, shape (tokens, k).

    In a function of its own, so that the logits are freed before those of the next batch.
    """
    logits, targets = _scored_logits(model, batch, common)
    return in_parts(rows, logits, targets).double().cpu().numpy()


def _check_finite(table: FloatArray, batch: Sequence[Window], names: tuple[str, str]) -> None:
    """Refuse (ValueError) NaN and infinity in the rows of a batch's scored tokens, (tokens, k), and
    name the first text that has them; ``names`` are those of model and texts in the error.
    """
    finite = np.isfinite(table).all(axis=1)
    if finite.all():
        return
    texts = [window.text for window in batch for _ in window.tokens[window.first :]]
    text = texts[finite.argmin()]
    raise ValueError(
        f"{names[0]}: returned NaN or infinity for {int((~finite).sum())} of "
        f"{len(table)} tokens of a batch, first in {names[1]}[{text}]; load it in a "
        "wider number format (bfloat16 or float32), or mend its weights"
    )


def in_parts(rows: Rows, logits: Tensor, targets: Tensor) -> Tensor:
    """``rows`` of logits (n, vocabulary) and targets (n,), a part at a time that fits into memory:
    (n, k).
    """
    step = max(1, _AT_ONCE.get(logits.device.type, _AT_ONCE_ELSEWHERE) // logits.shape[-1])
    pieces = zip(logits.split(step), targets.split(step), strict=True)
    return torch.cat([rows(some_logits, some_targets) for some_logits, some_targets in pieces])


@contextmanager
def in_inference_mode(model: Any) -> Iterator[None]:
    """Without dropout and gradients; the mode of each module of the model is put back afterwards.

    What the model computes here cannot be trained with later, which saves memory and time.
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for module, training in modes:
            module.training = training


def _batches(windows: Sequence[Window], size: int, share: bool) -> Iterator[tuple[int, list[int]]]:
    """For each batch the number of tokens that all its windows begin with, which are then read
    once, and the numbers of these windows.

    Only windows of one group share, and where fewer than ``_WORTH_SHARING`` tokens are common none
    do: 0. ``size`` is the most windows of a batch.
    """
    groups: dict[int | None, list[int]] = {}
    for number, window in enumerate(windows):
        groups.setdefault(window.group if share else None, []).append(number)
    sharing: list[tuple[int, list[int]]] = []
    alone: list[int] = []
    for group, numbers in groups.items():
        common = 0
        if group is not None:
            common = _common_tokens([windows[number] for number in numbers])
        if common < _WORTH_SHARING:
            alone += numbers
        else:
            sharing.append((common, numbers))
    for common, numbers in [*sharing, (0, alone)]:
        # Longest first, so that the largest batch fails first where memory is short.
        ordered = sorted(numbers, key=lambda number: -len(windows[number].tokens))
        for start in range(0, len(ordered), size):
            yield common, ordered[start : start + size]


def _common_tokens(windows: Sequence[Window]) -> int:
    """How many tokens all windows begin with, short of the token that predicts the first scored
    one; 0 for a single window.
    """
    if len(windows) < 2:
        return 0
    tokens = [window.tokens for window in windows]
    # What the first and the last in the order of a dictionary have in common, all have.
    first, last = min(tokens), max(tokens)
    limit = min(window.first for window in windows) - 1
    return next((index for index in range(limit) if first[index] != last[index]), limit)


def _scored_logits(model: Any, batch: Sequence[Window], common: int) -> tuple[Tensor, Tensor]:
    """Logits that predict the scored tokens of a batch, shape (tokens, vocabulary), and these
    tokens, shape (tokens,).

    The first ``common`` tokens of all windows are read once where the model can repeat what it
    keeps of them; 0 for none.
    """
    device = device_of(model)
    rows = [torch.tensor(window.tokens) for window in batch]
    tokens = pad_sequence(rows, batch_first=True)
    present = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
    is_scored = [torch.arange(len(window.tokens)) >= window.first for window in batch]
    scored = pad_sequence(is_scored, batch_first=True)
    cache = _shared_cache(model, tokens[:1, :common].to(device), len(batch)) if common else None
    start = 0 if cache is None else common
    inputs = {"input_ids": tokens[:, start:].to(device), "attention_mask": present.to(device)}
    shared = {} if cache is None else {"past_key_values": cache}
    logits = model(**inputs, **shared, use_cache=bool(shared)).logits
    # The logits at a token predict the one behind it; those at the last predict nothing known.
    predicting = logits[:, :-1]
    predicted = tokens[:, start + 1 :]
    scored = scored[:, start + 1 :]
    return predicting[scored.to(logits.device)], predicted[scored].to(logits.device)


def _shared_cache(model: Any, tokens: Tensor, times: int) -> Any:
    """What the model keeps (keys and values) of ``tokens``, (1, common), repeated for ``times``
    texts; None where not all of it can be repeated.
    """
    cache: Any = deepcopy(getattr(model(input_ids=tokens, use_cache=True), "past_key_values", None))
    for layer in (cache, *getattr(cache, "layers", ())):
        # Layers with the state of a convolution or a recurrence, as in LFM2, repeat their keys at
        # most.
        if not hasattr(layer, "batch_repeat_interleave") or hasattr(layer, "conv_states"):
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
    """The numbers of `TokenStatistics` for each target, shape (n, 3); 0 for those that are not
    asked for.

    Args:
        logits: Shape (n, vocabulary).
        targets: Tokens that stand there, shape (n,).
        standardize: Compute (log p - mean) / standard deviation over the vocabulary.
        margins: Compute the target's logit less the largest of the others.
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
        largest, choice = logits.max(-1)
        hit = choice == targets[:, 0]
        if hit.any():  # only there the second largest is needed
            largest[hit] = logits[hit].scatter(-1, targets[hit], -torch.inf).amax(-1)
        margin = logits.gather(-1, targets)[:, 0] - largest
    return torch.stack([log_prob, standardized, margin], -1)
