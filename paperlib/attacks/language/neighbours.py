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
    in_inference_mode,
    in_parts,
    token_rows,
    windows,
)
from paperlib.core import FloatArray, IntArray
from paperlib.core.checks import check_at_least

_SPARE = 4  # proposals per neighbour: some give the same text, or none; chosen
_FORBIDDEN = -1e30  # log-probability of what is never proposed; finite, so that differences are
_ROUNDS = 50  # of random neighbours, before a text counts as having too few; chosen


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
        count: Neighbours of each text, 1 or more.
        contexts: Text before each text; the model reads it, and it is not changed.
        batch_size: Windows of tokens in a pass, 1 or more.
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
    # share: what texts of a batch begin with alike, such as a context, is read once.
    rows = token_rows(model, cut, search.proposals, batch_size=batch_size, share=True)
    replaceable = [np.arange(window.first, len(window.tokens)) for window in search.encoded]
    return search.best(replaceable, rows)


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
        texts: Non-empty texts, shape (n,).
        count: Neighbours of each text, 1 or more.
        contexts: Text before each text; the model reads it, and it is not changed.
        batch_size: Masked texts per batch: every place takes a pass of its own, with the mask
            there.
        max_length: Most tokens around the masked one; None takes the model's context.

    Returns:
        For each text its neighbours, the best first, different from it and from each other.

    Raises:
        ValueError: A tokenizer without a mask, or one that does not give back the text it took, a
            text with fewer neighbours, a model that returns NaN.

    Source:
        Mattern et al. (2023), who put strong dropout on the token's embedding in place of a mask.
    """
    mask = getattr(tokenizer, "mask_token_id", None)
    if mask is None:
        raise ValueError("tokenizer: has no mask token; causal_neighbours takes a causal model")
    search = _Search(tokenizer, texts, contexts, count)
    limit = context_length(model, tokenizer, max_length)
    replaceable = [search.replaceable(window) for window in search.encoded]
    jobs: list[tuple[tuple[int, ...], int]] = []
    for window, indices in zip(search.encoded, replaceable, strict=True):
        jobs += [(window.tokens, index) for index in indices.tolist()]
    tables: list[Tensor] = []
    with in_inference_mode(model):
        for start in range(0, len(jobs), batch_size):
            logits, targets = _masked_logits(model, jobs[start : start + batch_size], mask, limit)
            tables.append(in_parts(search.proposals, logits, targets).double().cpu())
    table = torch.cat(tables).numpy()
    if not np.isfinite(table).all():
        raise ValueError(
            "model: returned NaN; load it in a wider number format, or mend its weights"
        )
    ends = np.cumsum([len(indices) for indices in replaceable])
    return search.best(replaceable, np.split(table, ends[:-1]))


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
        texts: Non-empty texts, shape (n,).
        corpus: Texts whose tokens are counted, such as generated identifiers.
        count: Neighbours of each text, 1 or more.
        replaced: Tokens replaced in each neighbour, or all where there are fewer.
        contexts: Text before each text, which is not changed.

    Returns:
        For each text its neighbours, in no order, different from it and from each other.

    Raises:
        ValueError: A corpus with fewer than two different tokens, a tokenizer that does not give
            back the text it took, or a text with fewer neighbours.
    """
    check_at_least(1, replaced=replaced)
    search = _Search(tokenizer, texts, contexts, count)
    frequencies = search.frequencies(check_texts("corpus", corpus))
    rng = np.random.default_rng(seed)
    neighbours: list[list[str]] = []
    for window in search.encoded:
        indices = search.replaceable(window)
        rounds = _draws(window, indices, frequencies, count, replaced, rng)
        neighbours.append(search.different(window, rounds))
    return neighbours


class _Search:
    """Texts whose neighbours are searched: which tokens may be replaced and by what, and which
    results are texts of their own.
    """

    def __init__(
        self, tokenizer: Any, texts: Sequence[str], contexts: Sequence[str] | None, count: int
    ) -> None:
        """A search for ``count`` neighbours of each text; a ValueError where the tokenizer does not
        give back a text, with what stands before it, as it was.
        """
        check_at_least(1, count=count)
        self._tokenizer = tokenizer
        self._count = count
        self._texts = check_texts("texts", texts)
        self.encoded = encode(tokenizer, self._texts, contexts)
        self._contexts = contexts or [""] * len(self._texts)
        self._banned: list[int] = sorted(getattr(tokenizer, "all_special_ids", ()))
        decoded = self._decoded([window.tokens for window in self.encoded])
        whole = zip(self._texts, self._contexts, decoded, strict=True)
        for index, (text, context, back) in enumerate(whole):
            if back != context + text:
                raise ValueError(
                    f"tokenizer: gives back {back[-40:]!r} for texts[{index}], {text[-40:]!r}, so "
                    "a neighbour would differ in more than a token; take one that keeps letter "
                    "case and blanks"
                )

    def _decoded(self, table: Sequence[Sequence[int]]) -> list[str]:
        options = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        return self._tokenizer.batch_decode([list(row) for row in table], **options)

    def replaceable(self, window: Window) -> IntArray:
        """Indices of the tokens of a window that are scored and not special, shape (places,)."""
        indices = [
            index
            for index in range(window.first, len(window.tokens))
            if window.tokens[index] not in self._banned
        ]
        return np.array(indices, dtype=np.int64)

    def frequencies(self, corpus: Sequence[str]) -> FloatArray:
        """Share of each token in the tokens of all texts of ``corpus``, special ones left out: 0 to
        1, shape (vocabulary,).

        Raises:
            ValueError: Fewer than two different tokens.
        """
        output = self._tokenizer(list(corpus), return_attention_mask=False, verbose=False)
        tokens = np.concatenate(output["input_ids"]).astype(int)
        counts = np.bincount(tokens, minlength=len(self._tokenizer)).astype(float)
        counts[self._banned] = 0
        different = int((counts > 0).sum())
        if different < 2:
            raise ValueError(f"corpus: expected two different tokens or more, got {different}")
        return counts / counts.sum()

    def proposals(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The k best replacements of each target token v: the logs of their p(w) / (1 - p(v)), the
        best first, then the tokens w themselves; (n, 2 k).

        Args:
            logits: Of the model at the places of the targets, shape (n, vocabulary).
            targets: Tokens v that stand there, shape (n,).
        """
        logits = logits[:, : len(self._tokenizer)]  # a model may have logits of no token behind
        log_probs = logits.float().log_softmax(-1)
        target_log_prob = log_probs.gather(-1, targets[:, None])
        log_probs.scatter_(-1, targets[:, None], _FORBIDDEN)
        log_probs[:, self._banned] = _FORBIDDEN
        # log(1 - p(v)); the clamp keeps it finite where the model is certain of v.
        log_others = torch.log(-torch.expm1(target_log_prob.clamp(max=-1e-7)))
        k = min(_SPARE * self._count, logits.shape[-1] - 1)
        # The clamp forbids tokens of -inf too, which a model excludes by itself: differences of
        # infinite numbers would be NaN.
        best = log_probs.clamp(min=_FORBIDDEN).topk(k, dim=-1)
        # One tensor of numbers, since a pass over texts returns one table per text.
        return torch.cat([best.values - log_others, best.indices.to(best.values.dtype)], -1)

    def best(self, replaceable: Sequence[IntArray], rows: Sequence[FloatArray]) -> list[list[str]]:
        """The best neighbours of each text.

        Args:
            replaceable: Indices of tokens in each text's window, shape (tokens,); those of special
                tokens are passed over.
            rows: The `proposals` at these tokens, shape (tokens, 2 k).
        """
        neighbours: list[list[str]] = []
        for window, indices, table in zip(self.encoded, replaceable, rows, strict=True):
            log_ratios, tokens = (half.copy() for half in np.split(table, 2, axis=1))
            is_banned = [window.tokens[index] in self._banned for index in indices]
            log_ratios[is_banned] = _FORBIDDEN
            allowed = (log_ratios > _FORBIDDEN / 2).sum()
            # All proposals at all places in one ranking: a number in it is place * k + proposal.
            ranking = np.argsort(-log_ratios, axis=None, kind="stable")[:allowed]
            replaced = indices[ranking // log_ratios.shape[1]]
            new = tokens.ravel()[ranking].astype(int)
            neighbours.append(self.different(window, _replaced(window, replaced, new, self._count)))
        return neighbours

    def different(self, window: Window, rounds: Iterator[IntArray]) -> list[str]:
        """The first ``count`` neighbours of a text that differ from it and from each other, leave
        its context as it is and decode to whole letters; a ValueError where there are fewer.

        Each round is a table of token numbers, a candidate per row, shape (candidates, length).
        """
        text = self._texts[window.text]
        context = self._contexts[window.text]
        different: dict[str, None] = {}  # in their order
        for table in rounds:
            for whole in self._decoded(table.tolist()):
                new = whole[len(context) :]
                if whole.startswith(context) and _is_neighbour(new, text):
                    different[new] = None
            if len(different) >= self._count:
                return list(different)[: self._count]
        raise ValueError(
            f"count: {text[:40]!r} has {len(different)} neighbours, expected {self._count}; ask "
            "for fewer, or leave it out"
        )


def _is_neighbour(new: str, text: str) -> bool:
    """Whether ``new`` is a neighbour of ``text``: another text, not empty, with no more bytes that
    do not decode to letters.
    """
    # Such bytes decode to the replacement character.
    return new not in ("", text) and new.count("\ufffd") <= text.count("\ufffd")


def _masked_logits(
    model: Any, jobs: Sequence[tuple[tuple[int, ...], int]], mask: int, limit: int
) -> tuple[Tensor, Tensor]:
    """Logits at the masked place of each job, shape (n, vocabulary), and the tokens that stood
    there, shape (n,).

    Args:
        jobs: Tokens of a text, and the index of the one to mask.
        mask: Token that stands for a masked one.
        limit: Most tokens that the model reads at once.
    """
    kept: list[Tensor] = []  # at most ``limit`` tokens of each, around the one that is masked
    masked: list[int] = []  # its index in them
    for tokens, index in jobs:
        # The masked token in the middle, unless tokens before or behind would be missing.
        start = max(0, min(index - limit // 2, len(tokens) - limit))
        kept.append(torch.tensor(tokens[start : start + limit]))
        masked.append(index - start)
    inputs = pad_sequence(kept, batch_first=True)
    present = pad_sequence([torch.ones_like(tokens) for tokens in kept], batch_first=True)
    rows = torch.arange(len(jobs))
    columns = torch.tensor(masked)
    targets = inputs[rows, columns]
    inputs[rows, columns] = mask
    device = device_of(model)
    logits = model(input_ids=inputs.to(device), attention_mask=present.to(device)).logits
    return logits[rows.to(device), columns.to(device)], targets.to(device)


def _replaced(window: Window, indices: IntArray, tokens: IntArray, size: int) -> Iterator[IntArray]:
    """Rounds of token numbers, shape (at most ``size``, length): in each row the token at the next
    one of ``indices`` is replaced by the next one of ``tokens``.
    """
    for start in range(0, len(indices), size):
        columns = indices[start : start + size]
        table = np.tile(np.array(window.tokens), (len(columns), 1))
        table[np.arange(len(columns)), columns] = tokens[start : start + size]
        yield table


def _draws(
    window: Window,
    replaceable: IntArray,
    frequencies: FloatArray,
    count: int,
    replaced: int,
    rng: np.random.Generator,
) -> Iterator[IntArray]:
    """Rounds of ``count`` random neighbours, as token numbers, shape (count, length): in each
    ``replaced`` different places of ``replaceable``, with tokens drawn by ``frequencies`` but for
    the token that stands there.
    """
    tokens = np.array(window.tokens)
    ends = np.cumsum(frequencies)
    last = np.flatnonzero(frequencies)[-1]  # draws rounded up to the total give this token
    for _ in range(_ROUNDS):
        # The first places of a random order are drawn without replacement.
        order = np.argsort(rng.random((count, len(replaceable))), axis=1)
        places = replaceable[order[:, :replaced]]
        present = tokens[places]
        # By the inverse of the distribution function without the token that is there: draws behind
        # it jump over its share.
        draw = rng.random(present.shape) * (ends[-1] - frequencies[present])
        is_behind = draw >= ends[present] - frequencies[present]
        draw += np.where(is_behind, frequencies[present], 0.0)
        table = np.tile(tokens, (count, 1))
        new = np.minimum(np.searchsorted(ends, draw, side="right"), last)
        np.put_along_axis(table, places, new, axis=1)
        yield table
