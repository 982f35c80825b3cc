"""Neighbours of texts for the neighbourhood attack: the same text with a token replaced."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paperlib.attacks.language.statistics import at_once, evaluating, token_rows
from paperlib.attacks.language.windows import Encoded, check_texts, context_length, encode, windows
from paperlib.core import FloatArray, IntArray, check_at_least

_SPARE = 4  # proposals per neighbour wanted: some give the same text, or none
_FORBIDDEN = -1e30
_ROUNDS = 50


def causal_neighbours(
    model: Any,
    tokenizer: Any,
    texts: Sequence[str],
    *,
    count: int = 25,
    contexts: Sequence[str] | None = None,
    batch_size: int = 32,
    max_length: int | None = None,
) -> list[list[str]]:
    """Replace the token that a causal model, such as the audited one, would most readily replace.

    A replacement w of the token v at some place is as good as p(w) / (1 - p(v)), p being the model's
    probabilities there. The ``count`` best ones over all places are the neighbours, the best first. All
    places of a text take one pass.

    Args:
        model: A causal language model.
        tokenizer: Tokenizer of the model.
        texts: Non-empty texts, shape (n,).
        count: Neighbours of each text.
        contexts: Text before each text; the model reads it, and it is not changed.
        batch_size: Texts per batch.
        max_length: Tokens per window; None takes the model's context.

    Returns:
        For each text its neighbours, different from it and from each other: for `score_texts`.

    Raises:
        ValueError: A tokenizer that does not give back the text it took, a text with fewer neighbours, a
            model that returns NaN.

    Source:
        Mattern et al. (2023). They ask a masked model (BERT) that sees both sides, with dropout
        on the embedding of the token in question; a causal model sees only the text before. Tokens are
        replaced here, not words.
    """
    checked, encoded = _encoded(tokenizer, texts, contexts, count)
    banned, width = _special(tokenizer), _SPARE * count
    rows = token_rows(
        model,
        windows(encoded, context_length(model, tokenizer, max_length)),
        len(encoded),
        lambda logits, targets: _proposals(logits[:, : len(tokenizer)], targets, banned, width),
        batch_size=batch_size,
        share=True,
    )
    places = [np.arange(one.first, len(one.tokens)) for one in encoded]
    return _all_best(tokenizer, checked, encoded, contexts, places, rows, count)


def masked_neighbours(
    model: Any,
    tokenizer: Any,
    texts: Sequence[str],
    *,
    count: int = 25,
    contexts: Sequence[str] | None = None,
    batch_size: int = 32,
    max_length: int | None = None,
) -> list[list[str]]:
    """`causal_neighbours` by a masked model, which sees both sides of each token.

    Every place takes a pass of its own, with the mask there.

    Args:
        model: A masked language model, of any tokenizer: its neighbours are texts.
        tokenizer: Tokenizer of the model, one that keeps letter case and blanks, such as RoBERTa's.
        texts: Texts as for `causal_neighbours`.
        count: Number of neighbours of each text, as there.
        contexts: Text before each text, as there.
        batch_size: Masked texts per batch.
        max_length: Limit in tokens, as there.

    Returns:
        As `causal_neighbours`.

    Raises:
        ValueError: A tokenizer without a mask, and as `causal_neighbours`.

    Source:
        Mattern et al. (2023). They put strong dropout on the embedding of the token, so that
        some of it is seen; here it is masked.
    """
    mask = getattr(tokenizer, "mask_token_id", None)
    if mask is None:
        raise ValueError("tokenizer: has no mask token; causal_neighbours takes a causal model")
    checked, encoded = _encoded(tokenizer, texts, contexts, count)
    banned, width = _special(tokenizer), _SPARE * count
    places = [_replaceable(one, banned) for one in encoded]
    limit = context_length(model, tokenizer, max_length)
    jobs = [(one.tokens, int(place)) for one, some in zip(encoded, places, strict=True) for place in some]
    parts = list[Tensor]()
    with evaluating(model):
        for start in range(0, len(jobs), batch_size):
            logits, targets = _masked_logits(model, jobs[start : start + batch_size], mask, limit)
            logits = logits[:, : len(tokenizer)]  # some models have room for more
            step = at_once(logits)
            chunks = zip(logits.split(step), targets.split(step), strict=True)
            parts += [_proposals(some, chosen, banned, width).double().cpu() for some, chosen in chunks]
    table = torch.cat(parts).numpy()
    if not np.isfinite(table).all():
        raise ValueError("model: returned NaN; load it in a wider number format, or mend its weights")
    rows = np.split(table, np.cumsum([len(some) for some in places])[:-1])
    return _all_best(tokenizer, checked, encoded, contexts, places, rows, count)


def random_neighbours(
    tokenizer: Any,
    texts: Sequence[str],
    *,
    corpus: Sequence[str],
    count: int = 25,
    replaced: int = 1,
    contexts: Sequence[str] | None = None,
    seed: int = 0,
) -> list[list[str]]:
    """Replace tokens at random places by others drawn as often as they occur in a corpus; no model is asked.

    Args:
        tokenizer: Tokenizer of the audited model.
        texts: Non-empty texts, shape (n,).
        corpus: Texts whose tokens are counted, such as generated identifiers.
        count: Neighbours of each text.
        replaced: Tokens replaced in each neighbour, or all where there are fewer.
        contexts: Text before each text; it is not changed.
        seed: Seed of the places and tokens.

    Returns:
        As `causal_neighbours`, in no order.

    Raises:
        ValueError: A corpus with fewer than two different tokens, and as `causal_neighbours`.
    """
    check_at_least(1, replaced=replaced)
    checked, encoded = _encoded(tokenizer, texts, contexts, count)
    banned = _special(tokenizer)
    frequencies = _frequencies(tokenizer, check_texts("corpus", corpus), banned)
    rng, around = np.random.default_rng(seed), contexts or [""] * len(checked)
    chosen = list[list[str]]()
    for text, one, context in zip(checked, encoded, around, strict=True):
        drawn = _draws(one, _replaceable(one, banned), frequencies, count, replaced, rng)
        chosen.append(_different(tokenizer, text, context, drawn, count))
    return chosen


def _encoded(
    tokenizer: Any, texts: Sequence[str], contexts: Sequence[str] | None, count: int
) -> tuple[list[str], list[Encoded]]:
    check_at_least(1, count=count)
    checked = check_texts("texts", texts)
    encoded = encode(tokenizer, checked, contexts)
    around = contexts or [""] * len(checked)
    back = _decoded(tokenizer, [one.tokens for one in encoded])
    for index, (text, context, given) in enumerate(zip(checked, around, back, strict=True)):
        if given != context + text:
            raise ValueError(
                f"tokenizer: gives back {given[-40:]!r} for texts[{index}], {text[-40:]!r}, so a neighbour "
                "would differ in more than a token; take one that keeps letter case and blanks"
            )
    return checked, encoded


def _special(tokenizer: Any) -> list[int]:
    return sorted(getattr(tokenizer, "all_special_ids", ()))


def _replaceable(one: Encoded, banned: Sequence[int]) -> IntArray:
    places = range(one.first, len(one.tokens))
    return np.array([at for at in places if one.tokens[at] not in banned], dtype=np.int64)


def _proposals(logits: Tensor, targets: Tensor, banned: Sequence[int], width: int) -> Tensor:
    """The best replacements of each target: their log p(w) / (1 - p(v)), then their numbers, (n, 2 k)."""
    log_probs = logits.float().log_softmax(-1)
    own = log_probs.gather(-1, targets[:, None])
    log_probs.scatter_(-1, targets[:, None], _FORBIDDEN)
    log_probs[:, list(banned)] = _FORBIDDEN
    left = torch.log(-torch.expm1(own.clamp(max=-1e-7)))  # log(1 - p(v))
    best = log_probs.clamp(min=_FORBIDDEN).topk(min(width, logits.shape[-1] - 1), dim=-1)
    return torch.cat([best.values - left, best.indices.to(best.values.dtype)], -1)


def _masked_logits(
    model: Any, jobs: Sequence[tuple[tuple[int, ...], int]], mask: int, limit: int
) -> tuple[Tensor, Tensor]:
    """Logits at the masked place of each job, shape (n, vocabulary), and the tokens that stood there."""
    starts = [max(0, min(place - limit // 2, len(tokens) - limit)) for tokens, place in jobs]
    kept = [tokens[start : start + limit] for (tokens, _), start in zip(jobs, starts, strict=True)]
    length = max(map(len, kept))
    inputs = torch.zeros(len(jobs), length, dtype=torch.long)
    present = torch.zeros(len(jobs), length, dtype=torch.long)
    at = torch.tensor([place - start for (_, place), start in zip(jobs, starts, strict=True)])
    for row, tokens in enumerate(kept):
        inputs[row, : len(tokens)] = torch.tensor(tokens)
        present[row, : len(tokens)] = 1
    rows = torch.arange(len(jobs))
    targets = inputs[rows, at]
    inputs[rows, at] = mask
    place = next(model.parameters()).device
    logits = model(input_ids=inputs.to(place), attention_mask=present.to(place)).logits
    return logits[rows.to(place), at.to(place)], targets.to(place)


def _all_best(
    tokenizer: Any,
    texts: Sequence[str],
    encoded: Sequence[Encoded],
    contexts: Sequence[str] | None,
    places: Sequence[IntArray],
    rows: Sequence[FloatArray],
    count: int,
) -> list[list[str]]:
    banned, around = set(_special(tokenizer)), contexts or [""] * len(texts)
    neighbours = list[list[str]]()
    for text, one, context, some, table in zip(texts, encoded, around, places, rows, strict=True):
        values, tokens = (half.copy() for half in np.split(table, 2, axis=1))
        values[[one.tokens[at] in banned for at in some]] = _FORBIDDEN
        order = np.argsort(-values, axis=None, kind="stable")[: (values > _FORBIDDEN / 2).sum()]
        ordered = _replaced_by(one, some[order // values.shape[1]], tokens.ravel()[order].astype(int), count)
        neighbours.append(_different(tokenizer, text, context, ordered, count))
    return neighbours


def _replaced_by(one: Encoded, places: IntArray, tokens: IntArray, size: int) -> Iterator[IntArray]:
    """Token numbers of neighbours in order, shape (at most ``size``, length) each."""
    for start in range(0, len(places), size):
        at, new = places[start : start + size], tokens[start : start + size]
        table = np.tile(np.array(one.tokens), (len(at), 1))
        table[np.arange(len(at)), at] = new
        yield table


def _different(tokenizer: Any, text: str, context: str, drawn: Iterator[IntArray], count: int) -> list[str]:
    """The first different neighbours that leave the context as it is and whose bytes are letters."""
    different = dict[str, None]()
    unknown = text.count("\ufffd")
    for table in drawn:
        for whole in _decoded(tokenizer, table.tolist()):
            new = whole[len(context) :]
            if whole.startswith(context) and new not in ("", text) and new.count("\ufffd") <= unknown:
                different[new] = None
        if len(different) >= count:
            return list(different)[:count]
    raise ValueError(
        f"count: {text[:40]!r} has {len(different)} neighbours, expected {count}; "
        "ask for fewer, or leave it out"
    )


def _decoded(tokenizer: Any, table: Sequence[Sequence[int]]) -> list[str]:
    rows = [list(row) for row in table]
    return tokenizer.batch_decode(rows, skip_special_tokens=True, clean_up_tokenization_spaces=False)


def _frequencies(tokenizer: Any, corpus: Sequence[str], banned: Sequence[int]) -> FloatArray:
    tokens = np.concatenate(tokenizer(list(corpus), return_attention_mask=False, verbose=False)["input_ids"])
    counts = np.bincount(tokens.astype(int), minlength=len(tokenizer)).astype(np.float64)
    counts[list(banned)] = 0
    if (counts > 0).sum() < 2:
        raise ValueError(f"corpus: expected two different tokens or more, got {int((counts > 0).sum())}")
    return counts / counts.sum()


def _draws(
    one: Encoded,
    places: IntArray,
    frequencies: FloatArray,
    count: int,
    replaced: int,
    rng: np.random.Generator,
) -> Iterator[IntArray]:
    """Rounds of random neighbours: places without repetition, tokens by their frequency without the own."""
    tokens, ends = np.array(one.tokens), np.cumsum(frequencies)
    last = np.flatnonzero(frequencies)[-1]
    for _ in range(_ROUNDS):
        chosen = places[np.argsort(rng.random((count, len(places))), axis=1)[:, :replaced]]
        own = tokens[chosen]
        draw = rng.random(own.shape) * (ends[-1] - frequencies[own])
        draw += np.where(draw >= ends[own] - frequencies[own], frequencies[own], 0.0)  # jump over the own
        table = np.tile(tokens, (count, 1))
        new = np.minimum(np.searchsorted(ends, draw, side="right"), last)
        np.put_along_axis(table, chosen, new, axis=1)
        yield table
