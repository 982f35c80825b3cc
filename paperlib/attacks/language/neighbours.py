"""Neighbours of texts for the neighbourhood attack: the same text with a token replaced."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from paperlib.attacks.language.windows import (
    Window,
    check_texts,
    context_length,
    device_of,
    encode,
    evaluating,
    in_parts,
    token_rows,
    windows,
)
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

    A replacement w of the token v at some place is as good as p(w) / (1 - p(v)), p being the
    model's probabilities there. The ``count`` best ones over all places are the neighbours, the
    best first.

    Args:
        model, tokenizer: A causal language model and its tokenizer.
        texts: Non-empty texts, shape (n,).
        contexts: Text before each text; the model reads it, and it is not changed.
        max_length: Tokens per window; None takes the model's context.

    Returns:
        For each text its neighbours, different from it and from each other: for `score_texts`.

    Raises:
        ValueError: A tokenizer that does not give back the text it took, a text with fewer
            neighbours, a model that returns NaN.

    Source:
        Mattern et al. (2023). They replace words and ask a masked model (BERT) with dropout on the
        embedding of the token in question; a causal model sees only the text before.
    """
    search = _Search(tokenizer, texts, contexts, count)
    cut = windows(model, tokenizer, search.encoded, max_length=max_length)
    rows = token_rows(model, cut, search.proposals, batch_size=batch_size, share=True)
    places = [np.arange(one.first, len(one.tokens)) for one in search.encoded]
    return search.best(places, rows)


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

    Args:
        model: A masked language model, of any tokenizer: its neighbours are texts.
        tokenizer: Tokenizer of the model, one that keeps letter case and blanks, such as RoBERTa's.
        texts, count, contexts, max_length: As for `causal_neighbours`.
        batch_size: Masked texts per batch: every place takes a pass of its own, with the mask
            there.

    Raises:
        ValueError: A tokenizer without a mask, and as `causal_neighbours`.

    Source:
        Mattern et al. (2023), who put strong dropout on the token's embedding in place of a mask.
    """
    mask = getattr(tokenizer, "mask_token_id", None)
    if mask is None:
        raise ValueError("tokenizer: has no mask token; causal_neighbours takes a causal model")
    search = _Search(tokenizer, texts, contexts, count)
    limit = context_length(model, tokenizer, max_length)
    places = [search.replaceable(one) for one in search.encoded]
    by_text = zip(search.encoded, places, strict=True)
    jobs = [(one.tokens, at) for one, some in by_text for at in some.tolist()]
    parts = list[Tensor]()
    with evaluating(model):
        for start in range(0, len(jobs), batch_size):
            logits, targets = _masked_logits(model, jobs[start : start + batch_size], mask, limit)
            parts.append(in_parts(search.proposals, logits, targets).double().cpu())
    table = torch.cat(parts).numpy()
    if not np.isfinite(table).all():
        raise ValueError(
            "model: returned NaN; load it in a wider number format, or mend its weights"
        )
    return search.best(places, np.split(table, np.cumsum([len(some) for some in places])[:-1]))


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
    """Replace tokens at random places by others drawn as often as they occur in a corpus; no model
    is asked.

    Args:
        tokenizer: Tokenizer of the audited model.
        texts, count, contexts: As for `causal_neighbours`.
        corpus: Texts whose tokens are counted, such as generated identifiers.
        replaced: Tokens replaced in each neighbour, or all where there are fewer.

    Returns:
        As `causal_neighbours`, in no order.

    Raises:
        ValueError: A corpus with fewer than two different tokens, and as `causal_neighbours`.
    """
    check_at_least(1, replaced=replaced)
    search = _Search(tokenizer, texts, contexts, count)
    frequencies = search.frequencies(check_texts("corpus", corpus))
    rng = np.random.default_rng(seed)
    return [
        search.different(
            one, _draws(one, search.replaceable(one), frequencies, count, replaced, rng)
        )
        for one in search.encoded
    ]


class _Search:
    """Texts whose neighbours are wanted: what may replace a token, and which results are different
    texts.
    """

    def __init__(
        self, tokenizer: Any, texts: Sequence[str], contexts: Sequence[str] | None, count: int
    ) -> None:
        check_at_least(1, count=count)
        self._tokenizer, self._count = tokenizer, count
        self._texts = check_texts("texts", texts)
        self.encoded = encode(tokenizer, self._texts, contexts)
        self._contexts = contexts or [""] * len(self._texts)
        self._banned: list[int] = sorted(getattr(tokenizer, "all_special_ids", ()))
        back = self._decoded([one.tokens for one in self.encoded])
        for index, (text, context, given) in enumerate(
            zip(self._texts, self._contexts, back, strict=True)
        ):
            if given != context + text:
                raise ValueError(
                    f"tokenizer: gives back {given[-40:]!r} for texts[{index}], {text[-40:]!r}, so "
                    "a neighbour would differ in more than a token; take one that keeps letter "
                    "case and blanks"
                )

    def _decoded(self, table: Sequence[Sequence[int]]) -> list[str]:
        options = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        return self._tokenizer.batch_decode([list(row) for row in table], **options)

    def replaceable(self, one: Window) -> IntArray:
        """Places of tokens that are scored and not special."""
        places = range(one.first, len(one.tokens))
        return np.array([at for at in places if one.tokens[at] not in self._banned], dtype=np.int64)

    def frequencies(self, corpus: Sequence[str]) -> FloatArray:
        """How often each token occurs, shape (vocabulary,); special ones count as 0."""
        rows = self._tokenizer(list(corpus), return_attention_mask=False, verbose=False)[
            "input_ids"
        ]
        counts = np.bincount(
            np.concatenate(rows).astype(int), minlength=len(self._tokenizer)
        ).astype(float)
        counts[self._banned] = 0
        if (counts > 0).sum() < 2:
            raise ValueError(
                f"corpus: expected two different tokens or more, got {int((counts > 0).sum())}"
            )
        return counts / counts.sum()

    def proposals(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The best replacements of each target: their log p(w) / (1 - p(v)), then their numbers,
        (n, 2 k).
        """
        logits = logits[:, : len(self._tokenizer)]  # some models have room for more
        log_probs = logits.float().log_softmax(-1)
        own = log_probs.gather(-1, targets[:, None])
        log_probs.scatter_(-1, targets[:, None], _FORBIDDEN)
        log_probs[:, self._banned] = _FORBIDDEN
        left = torch.log(-torch.expm1(own.clamp(max=-1e-7)))  # log(1 - p(v))
        width = min(_SPARE * self._count, logits.shape[-1] - 1)
        best = log_probs.clamp(min=_FORBIDDEN).topk(width, dim=-1)
        return torch.cat([best.values - left, best.indices.to(best.values.dtype)], -1)

    def best(self, places: Sequence[IntArray], rows: Sequence[FloatArray]) -> list[list[str]]:
        """The best neighbours of each text, from the proposals at its places."""
        neighbours = list[list[str]]()
        for one, some, table in zip(self.encoded, places, rows, strict=True):
            values, tokens = (half.copy() for half in np.split(table, 2, axis=1))
            values[[one.tokens[at] in self._banned for at in some]] = _FORBIDDEN
            order = np.argsort(-values, axis=None, kind="stable")[: (values > _FORBIDDEN / 2).sum()]
            at, new = some[order // values.shape[1]], tokens.ravel()[order].astype(int)
            neighbours.append(self.different(one, _replaced(one, at, new, self._count)))
        return neighbours

    def different(self, one: Window, drawn: Iterator[IntArray]) -> list[str]:
        """The first different neighbours that leave the context as it is and whose bytes are
        letters.
        """
        text, context = self._texts[one.text], self._contexts[one.text]
        different = dict[str, None]()
        unknown = text.count("\ufffd")
        for table in drawn:
            for whole in self._decoded(table.tolist()):
                new = whole[len(context) :]
                if (
                    whole.startswith(context)
                    and new not in ("", text)
                    and new.count("\ufffd") <= unknown
                ):
                    different[new] = None
            if len(different) >= self._count:
                return list(different)[: self._count]
        found = f"{text[:40]!r} has {len(different)} neighbours, expected {self._count}"
        raise ValueError(f"count: {found}; ask for fewer, or leave it out")


def _masked_logits(
    model: Any, jobs: Sequence[tuple[tuple[int, ...], int]], mask: int, limit: int
) -> tuple[Tensor, Tensor]:
    """Logits at the masked place of each job, shape (n, vocabulary), and the tokens that stood
    there.
    """
    starts = [max(0, min(place - limit // 2, len(tokens) - limit)) for tokens, place in jobs]
    begun = zip(jobs, starts, strict=True)
    kept = [torch.tensor(tokens[start : start + limit]) for (tokens, _), start in begun]
    inputs = pad_sequence(kept, batch_first=True)
    present = pad_sequence([torch.ones_like(tokens) for tokens in kept], batch_first=True)
    rows, at = (
        torch.arange(len(jobs)),
        torch.tensor([place for _, place in jobs]) - torch.tensor(starts),
    )
    targets = inputs[rows, at]
    inputs[rows, at] = mask
    device = device_of(model)
    logits = model(input_ids=inputs.to(device), attention_mask=present.to(device)).logits
    return logits[rows.to(device), at.to(device)], targets.to(device)


def _replaced(one: Window, places: IntArray, tokens: IntArray, size: int) -> Iterator[IntArray]:
    """Token numbers of neighbours in order, shape (at most ``size``, length) each."""
    for start in range(0, len(places), size):
        at, new = places[start : start + size], tokens[start : start + size]
        table = np.tile(np.array(one.tokens), (len(at), 1))
        table[np.arange(len(at)), at] = new
        yield table


def _draws(
    one: Window,
    places: IntArray,
    frequencies: FloatArray,
    count: int,
    replaced: int,
    rng: np.random.Generator,
) -> Iterator[IntArray]:
    """Rounds of random neighbours: places without repetition, tokens by their frequency without the
    own.
    """
    tokens, ends = np.array(one.tokens), np.cumsum(frequencies)
    last = np.flatnonzero(frequencies)[-1]
    for _ in range(_ROUNDS):
        chosen = places[np.argsort(rng.random((count, len(places))), axis=1)[:, :replaced]]
        own = tokens[chosen]
        draw = rng.random(own.shape) * (ends[-1] - frequencies[own])
        draw += np.where(
            draw >= ends[own] - frequencies[own], frequencies[own], 0.0
        )  # jump over the own
        table = np.tile(tokens, (count, 1))
        new = np.minimum(np.searchsorted(ends, draw, side="right"), last)
        np.put_along_axis(table, chosen, new, axis=1)
        yield table
