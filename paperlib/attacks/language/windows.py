"""From texts to tokens, and from long texts to windows that fit the model's context."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_NO_LIMIT = 10**9  # tokenizers without a limit state absurdly large numbers


@dataclass(frozen=True)
class Encoded:
    """Tokens of one text and of the context before it; those from ``first`` on are scored.

    Attributes:
        tokens: Token numbers.
        first: Place of the first scored token, at least 1 (nothing predicts the token at 0).
        group: Texts of one group have the same context; all are in one group if there is none.
    """

    tokens: tuple[int, ...]
    first: int
    group: int


@dataclass(frozen=True)
class Window:
    """A stretch of tokens that fits the context; those from ``first`` on are scored here.

    Attributes:
        text: Number of the text.
        tokens: Token numbers.
        first: Place of the first scored token in ``tokens``.
        group: Windows of one group may begin alike.
    """

    text: int
    tokens: tuple[int, ...]
    first: int
    group: int


def check_texts(name: str, texts: Sequence[str]) -> list[str]:
    """Texts as a list, all of them non-empty.

    Raises:
        ValueError: One string in place of a sequence, no text at all, an empty one, or one that is no text.
    """
    if isinstance(texts, str):
        raise ValueError(f"{name}: expected a sequence of texts, got one string; put it in a list")
    checked = list(texts)
    if not checked:
        raise ValueError(f"{name}: expected at least one text, got none")
    for index, text in enumerate(checked):
        if not isinstance(text, str) or not text:
            raise ValueError(f"{name}: expected non-empty strings, got {text!r} at index {index}")
    return checked


def encode(tokenizer: Any, texts: Sequence[str], contexts: Sequence[str] | None) -> list[Encoded]:
    """Tokens of each text, after its context if there is one.

    Text and context are tokenized as one string, as they were in training. A token that holds the last
    letters of the context and the first of the text is scored.

    Args:
        tokenizer: Tokenizer of the transformers library; tokens it adds before a text are kept.
        texts: Non-empty.
        contexts: One per text, possibly empty; None scores the texts alone.

    Raises:
        ValueError: Another number of contexts, or a text whose only token nothing precedes.
    """
    if contexts is None:
        encoded = [Encoded(tuple(tokens), 1, 0) for tokens in _tokens(tokenizer, texts)]
    else:
        encoded = _encode_after(tokenizer, texts, contexts)
    for index, one in enumerate(encoded):
        if len(one.tokens) <= one.first:
            raise ValueError(
                f"texts: {texts[index][:40]!r} at index {index} has {len(one.tokens)} token(s) and nothing "
                "before them, so none can be scored; give contexts, or leave it out"
            )
    return encoded


def _encode_after(tokenizer: Any, texts: Sequence[str], contexts: Sequence[str]) -> list[Encoded]:
    if isinstance(contexts, str) or len(contexts) != len(texts):
        given = "one string" if isinstance(contexts, str) else str(len(contexts))
        raise ValueError(f"contexts: expected {len(texts)}, one per text, got {given}")
    groups = {context: number for number, context in enumerate(dict.fromkeys(contexts))}
    if not getattr(tokenizer, "is_fast", False):
        return [
            _joined(tokenizer, text, context, groups[context])
            for text, context in zip(texts, contexts, strict=True)
        ]
    both = [context + text for text, context in zip(texts, contexts, strict=True)]
    output = tokenizer(both, return_offsets_mapping=True, return_attention_mask=False, verbose=False)
    encoded: list[Encoded] = []
    for tokens, offsets, context in zip(output["input_ids"], output["offset_mapping"], contexts, strict=True):
        start = len(context)
        inside = [place for place, (_, end) in enumerate(offsets) if end > start]
        end = inside[-1] + 1 if inside else len(tokens)
        first = max(1, inside[0] if inside else len(tokens))
        encoded.append(Encoded(tuple(tokens[:end]), first, groups[context]))
    return encoded


def _joined(tokenizer: Any, text: str, context: str, group: int) -> Encoded:
    """Without offsets the two parts are tokenized apart."""
    before = tokenizer(context)["input_ids"]
    inside = tokenizer(text, add_special_tokens=False)["input_ids"]
    return Encoded((*before, *inside), max(1, len(before)), group)


def _tokens(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    return tokenizer(list(texts), return_attention_mask=False, verbose=False)["input_ids"]


def check_vocabulary(model: Any, encoded: Sequence[Encoded], before: Sequence[int] = ()) -> None:
    """Whether the model knows every token.

    Raises:
        ValueError: The tokenizer gives tokens that the model has no embedding for.
    """
    embeddings = model.get_input_embeddings() if hasattr(model, "get_input_embeddings") else None
    size = getattr(embeddings, "num_embeddings", None)
    largest = max((max(one.tokens) for one in encoded), default=0)
    largest = max(largest, *before, 0)
    if size is not None and largest >= size:
        raise ValueError(
            f"tokenizer: gives token {largest}, the model has tokens 0 to {size - 1}; take the model's own"
        )


def prefix_tokens(tokenizer: Any, prefix: str, limit: int) -> tuple[int, ...]:
    """Tokens of the text that is put before every other one.

    Raises:
        ValueError: Empty, or longer than half the context.
    """
    (text,) = check_texts("prefix", [prefix])
    (tokens,) = _tokens(tokenizer, [text])
    if 2 * len(tokens) > limit:
        raise ValueError(
            f"prefix: expected at most half of the {limit} tokens that fit the model, got {len(tokens)}"
        )
    return tuple(tokens)


def context_length(model: Any, tokenizer: Any, max_length: int | None) -> int:
    """Largest number of tokens that the model takes at once.

    Raises:
        ValueError: ``max_length`` is below 2 or more than the model takes.
    """
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
    encoded: Sequence[Encoded], limit: int, *, prefix: tuple[int, ...] = (), special: Sequence[int] = ()
) -> list[Window]:
    """Windows of at most ``limit`` tokens in which every scored token is scored once.

    A text that fits is one window. A context that does not fit loses its beginning. A text longer than the
    limit gets windows that overlap by half, so that each token has at least half a window before it.

    Args:
        encoded: Result of `encode`.
        limit: At least 2, and at least twice the prefix.
        prefix: Tokens put before every window.
        special: Start tokens that are left out after a prefix.
    """
    room = limit - len(prefix)
    cut: list[Window] = []
    for text, one in enumerate(encoded):
        skip = _leading(one.tokens, special) if prefix else 0
        for begin, first, end in _spans(len(one.tokens), one.first, room):
            begin = max(begin, min(skip, first))
            tokens = (*prefix, *one.tokens[begin:end])
            cut.append(Window(text, tokens, len(prefix) + first - begin, one.group))
    return cut


def _spans(length: int, first: int, room: int) -> list[tuple[int, int, int]]:
    """(begin, first scored, end) of each window."""
    if length <= room:
        return [(0, first, length)]
    if length - first < room:
        return [(length - room, first, length)]
    half = room // 2
    begin = max(0, first - half)
    spans: list[tuple[int, int, int]] = []
    while first < length:
        end = min(length, begin + room)
        spans.append((begin, first, end))
        first, begin = end, end - half
    return spans


def _leading(tokens: tuple[int, ...], special: Sequence[int]) -> int:
    count = 0
    while count < len(tokens) and tokens[count] in special:
        count += 1
    return count
