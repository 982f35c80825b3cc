"""From texts to tokens, and from long texts to windows that fit the model's context."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_NO_LIMIT = 10**9  # tokenizers without a limit state absurdly large numbers


@dataclass(frozen=True)
class Window:
    """A stretch of tokens of one text and of what precedes it; those from ``first`` on are scored here."""

    text: int  # number of the text
    tokens: tuple[int, ...]
    first: int  # at least 1, since nothing predicts the token at 0
    group: int  # texts of one group have the same context, so that their windows may begin alike


def check_texts(name: str, texts: Sequence[str]) -> list[str]:
    """Texts as a list, all of them non-empty."""
    if isinstance(texts, str):
        raise ValueError(f"{name}: expected a sequence of texts, got one string; put it in a list")
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
    """The texts of all lists in one, the context of each if there are contexts, and the lists' lengths."""
    checked = [check_texts(f"{name}[{index}]", some) for index, some in enumerate(lists)]
    around = None
    if contexts is not None:
        around = [context for some, context in zip(checked, contexts, strict=True) for _ in some]
    return [text for some in checked for text in some], around, [len(some) for some in checked]


def encode(tokenizer: Any, texts: Sequence[str], contexts: Sequence[str] | None) -> list[Window]:
    """Tokens of each text, after its context if there are contexts, each text in one window of any length."""
    # Text and context are one string, as in training; a token with letters of both is scored.
    if contexts is None:
        encoded = [Window(at, tuple(tokens), 1, 0) for at, tokens in enumerate(text_tokens(tokenizer, texts))]
    else:
        if isinstance(contexts, str) or len(contexts) != len(texts):
            given = "one string" if isinstance(contexts, str) else str(len(contexts))
            raise ValueError(f"contexts: expected {len(texts)}, one per text, got {given}")
        groups = {context: number for number, context in enumerate(dict.fromkeys(contexts))}
        divided = _by_offsets if getattr(tokenizer, "is_fast", False) else _apart
        encoded = [
            Window(at, tuple(tokens), max(1, first), groups[contexts[at]])
            for at, (tokens, first) in enumerate(divided(tokenizer, texts, contexts))
        ]
    for index, one in enumerate(encoded):
        if len(one.tokens) <= one.first:
            raise ValueError(
                f"texts: {texts[index][:40]!r} at index {index} has {len(one.tokens)} token(s) and nothing "
                "before them, so none can be scored; give contexts, or leave it out"
            )
    return encoded


def token_windows(texts: Sequence[Sequence[int]], contexts: Sequence[Sequence[int]] | None) -> list[Window]:
    """As `encode`, for texts and contexts that are the numbers of their tokens already."""
    before = [()] * len(texts) if contexts is None else [tuple(map(int, context)) for context in contexts]
    if len(before) != len(texts):
        raise ValueError(f"contexts: expected {len(texts)}, one per text, got {len(before)}")
    groups = {context: number for number, context in enumerate(dict.fromkeys(before))}
    encoded = [
        Window(at, (*context, *map(int, text)), max(1, len(context)), groups[context])
        for at, (context, text) in enumerate(zip(before, texts, strict=True))
    ]
    for index, one in enumerate(encoded):
        if len(one.tokens) <= one.first or min(one.tokens) < 0:
            raise ValueError(
                f"texts: expected token numbers from 0 on, and a token before the first that is scored, got "
                f"{list(texts[index])[:8]} at index {index}"
            )
    return encoded


def _by_offsets(
    tokenizer: Any, texts: Sequence[str], contexts: Sequence[str]
) -> Iterator[tuple[list[int], int]]:
    """Tokens up to the text's last, and the place of its first."""
    both = [context + text for text, context in zip(texts, contexts, strict=True)]
    output = tokenizer(both, return_offsets_mapping=True, return_attention_mask=False, verbose=False)
    for tokens, offsets, context in zip(output["input_ids"], output["offset_mapping"], contexts, strict=True):
        inside = [place for place, (_, end) in enumerate(offsets) if end > len(context)]
        yield (tokens[: inside[-1] + 1], inside[0]) if inside else (tokens, len(tokens))


def _apart(tokenizer: Any, texts: Sequence[str], contexts: Sequence[str]) -> Iterator[tuple[list[int], int]]:
    """As `_by_offsets` for tokenizers that give no offsets: the two parts are tokenized by themselves."""
    for text, context in zip(texts, contexts, strict=True):
        before = tokenizer(context)["input_ids"]
        yield before + tokenizer(text, add_special_tokens=False)["input_ids"], len(before)


def text_tokens(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Tokens of each text, with those that the tokenizer puts before it and without those behind it."""
    rows = tokenizer(list(texts), return_attention_mask=False, verbose=False)["input_ids"]
    whole = tokenizer("a")["input_ids"]
    alone = tokenizer("a", add_special_tokens=False)["input_ids"]
    at = next((at for at in range(len(whole)) if whole[at : at + len(alone)] == alone), 0)
    behind = len(whole) - len(alone) - at
    return [row[: len(row) - behind] for row in rows]


def context_length(model: Any, tokenizer: Any, max_length: int | None) -> int:
    """Largest number of tokens that the model takes at once, or ``max_length`` if that is given."""
    config = getattr(model, "config", None)
    names = ("max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len", "seq_length")
    stated = [getattr(config, name, None) for name in names] + [getattr(tokenizer, "model_max_length", None)]
    known = [int(value) for value in stated if isinstance(value, int | float) and 1 < value < _NO_LIMIT]
    limit = min(known, default=_NO_LIMIT)
    if max_length is None:
        return limit
    if not 2 <= max_length <= limit:
        raise ValueError(f"max_length: expected 2 to {limit}, what the model takes, got {max_length}")
    return max_length


def windows(
    model: Any,
    tokenizer: Any,
    encoded: Sequence[Window],
    *,
    max_length: int | None = None,
    prefix: str | None = None,
) -> list[Window]:
    """Windows that fit the model's context, in the order of the texts; every scored token is scored once."""
    limit = context_length(model, tokenizer, max_length)
    before, special = list[int](), list[int]()
    if prefix is not None:  # it takes the place of the tokenizer's start tokens
        (before,) = text_tokens(tokenizer, check_texts("prefix", [prefix]))
        special = getattr(tokenizer, "all_special_ids", [])
        if 2 * len(before) > limit:
            raise ValueError(
                f"prefix: expected at most half of the {limit} tokens that fit the model, got {len(before)}"
            )
    room = limit - len(before)
    cut: list[Window] = []
    for one in encoded:
        start = next((at for at, token in enumerate(one.tokens) if token not in special), len(one.tokens))
        for begin, first, end in _spans(len(one.tokens), one.first, room):
            begin = max(begin, min(start, first))
            tokens = (*before, *one.tokens[begin:end])
            cut.append(Window(one.text, tokens, len(before) + first - begin, one.group))
    embeddings = model.get_input_embeddings() if hasattr(model, "get_input_embeddings") else None
    size = getattr(embeddings, "num_embeddings", None)
    largest = max(max(window.tokens) for window in cut)
    if size is not None and largest >= size:
        raise ValueError(
            f"tokenizer: gives token {largest}, the model has tokens 0 to {size - 1}; take the model's own"
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
