"""`score_texts`: every attack from one forward pass per text; and the same for sets of
candidates.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paperlib.attacks.language.completions import LearnedText, encode_learned
from paperlib.attacks.language.windows import (
    Window,
    check_texts,
    context_length,
    encode,
    flattened,
    token_rows,
    token_statistics,
    token_windows,
    windows,
)
from paperlib.core import FloatArray
from paperlib.core.checks import check_at_least, check_in

OWN_PASS = ("loss", "min_k", "min_k_pp", "zlib", "hinge")
REFERENCE = ("ratio", "difference")
PAIRED = ("ez", "wbc")  # need a reference of the same tokenizer
PREFIX = ("recall", "recall_hinge")
NEIGHBOURS = ("neighbourhood",)

ATTACKS = (*OWN_PASS, *REFERENCE, *PAIRED, *PREFIX, *NEIGHBOURS)
"""Names of all attacks: five need nothing else, the others a reference model, a prefix or
neighbours.
"""

COMPARING = (*REFERENCE, *PAIRED)  # those that need a reference
EXTRACTION = "extraction"  # the column that ``split`` adds
_WINDOW_SIZES = np.unique(np.geomspace(2, 40, 10).astype(int))  # of ``wbc``, as published


class TokenStatistics(NamedTuple):
    """Statistics of the model's predictions of the scored tokens of one text, shape (t,) each."""

    log_prob: FloatArray  # nats
    standardized: FloatArray  # (log p - mean) / standard deviation over the vocabulary
    margin: FloatArray  # logit of the token minus the largest of the others


def score_texts(
    model: Any,
    tokenizer: Any,
    texts: Sequence[str] | Sequence[Sequence[int]] | Sequence[LearnedText],
    *,
    attacks: Sequence[str] | None = None,
    contexts: Sequence[str] | Sequence[Sequence[int]] | None = None,
    k: float = 0.2,
    batch_size: int = 32,
    max_length: int | None = None,
    reference: Any = None,
    reference_tokenizer: Any = None,
    prefix: str | None = None,
    neighbours: Sequence[Sequence[str]] | None = None,
    share_context: bool = True,
    split: tuple[int, int] | None = None,
) -> pd.DataFrame:
    """Membership scores of texts, one row per text and one column per attack; higher means member.

    With t tokens scored, p the model's probabilities given all before, and z its logits:

    - ``loss``: mean of log p(token) (Yeom et al., 2018).
    - ``min_k``: mean of the lowest int(k t) log p(token), of at least one (Min-K%, Shi et al.,
      2024).
    - ``min_k_pp``: the same of (log p(token) - mean) / sd, both under p (Min-K%++, Zhang et al.,
      2024).
    - ``zlib``: ``loss`` over the compressed length of the text in bytes (Carlini et al., 2021).
    - ``hinge``: mean of z(token) - max of the other z (Carlini et al., 2022).
    - ``ratio``, ``difference`` (with ``reference``): minus the quotient of the two models' losses
      (Carlini et al., 2021), and ``loss`` minus that of the reference model.
    - ``ez`` (with ``reference``): where the model's first choice is another token, (P - N) / (P +
      N), with P and N the sums of rises and falls of log p(token) from the reference to the model;
      1 where the model errs nowhere (EZ-MIA, Ilic et al., 2026, whose score is P / N).
    - ``wbc`` (with ``reference``): the share of windows of tokens whose log p(token) rises in sum,
      averaged over up to ten window sizes from 2 to 40 (WBC, Chen et al., 2026).
    - ``recall``, ``recall_hinge`` (with ``prefix``): ``loss`` (``hinge``) after the prefix over
      ``loss`` (``hinge``) without it (ReCaLL, Xie et al., 2024).
    - ``neighbourhood`` (with ``neighbours``): ``loss`` minus its mean over them (Mattern et al.,
      2023).

    Every token of the text is scored except one that nothing precedes: without a context the first,
    unless the tokenizer puts start tokens there, which are not scored. A context that does not fit
    the model loses its beginning; a text longer than the model's context is scored in windows that
    overlap by half, each token once.

    Args:
        model: A causal language model of the transformers library, in any number format and on any
            device.
        tokenizer: Tokenizer of the model; a padding token is not needed.
        texts: Non-empty texts, such as identifiers, or lists of the tokenizer's token numbers,
            shape (n,); or texts of which only the tokens that training took its loss from are
            scored, which take neither contexts nor neighbours.
        attacks: Names from the list above; None takes all that the other arguments allow.
        contexts: What stands before each text in its document, text or token numbers as ``texts``,
            never scored; None for texts alone.
        k: Share of tokens for ``min_k`` and ``min_k_pp``, in (0, 1].
        max_length: Tokens per window; None takes the model's context.
        reference_tokenizer: Tokenizer of that model; None takes ``tokenizer``. Another one allows
            neither ``ez`` nor ``wbc``, which compare tokens.
        prefix: Text of non-members to put before everything, at most half the context.
        neighbours: Neighbours of each text, at least one, as of `causal_neighbours`; they get its
            context.
        share_context: Compute a context that several texts have in common once.
        split: Adds the column ``extraction``: log p of the ``split[1]`` tokens that follow the
            first ``split[0]``, start tokens included; NaN for shorter texts. Not with contexts. Of
            texts with a loss on stretches: log p of the first ``split[1]`` tokens of the first
            stretch, behind all that precedes it.

    Raises:
        ValueError: Empty texts, unknown attacks or such that miss an argument, mismatched lengths,
            a text of one token that nothing precedes, values out of range, or a model that returns
            NaN.
    """
    # Only models that read the same tokens can be compared token by token.
    paired = reference if reference_tokenizer is None else None
    chosen = _chosen_attacks(attacks, reference, paired, prefix, neighbours)
    check_in("(0, 1]", "k", k)
    only_texts = reference_tokenizer is not None or neighbours is not None
    encoded, plain = _encoded_texts(tokenizer, texts, contexts, only_texts=only_texts)
    if split is not None:
        _check_split(split, context_length(model, tokenizer, max_length), contexts)
    passes = _Passes(batch_size, max_length, share_context)
    audited = passes.statistics(
        model,
        tokenizer,
        encoded,
        standardize="min_k_pp" in chosen,
        margins=bool({"hinge", "recall_hinge", "ez"} & set(chosen)),
    )
    columns = _own_columns(audited, plain, k)
    before: Any = contexts
    if set(chosen) & set(COMPARING):
        if reference_tokenizer is None:
            other = passes.of_reference(reference, tokenizer, encoded)
        else:
            encoded_there, _ = _encoded_texts(reference_tokenizer, texts, before, only_texts=True)
            other = passes.of_reference(reference, reference_tokenizer, encoded_there)
        columns |= _reference_columns(audited, other)
    if set(chosen) & set(PREFIX):
        margins = "recall_hinge" in chosen
        after = passes.statistics(model, tokenizer, encoded, prefix=prefix, margins=margins)
        columns |= _prefix_columns(audited, after)
    if neighbours is not None and "neighbourhood" in chosen:
        if len(neighbours) != len(plain):
            raise ValueError(
                f"neighbours: expected {len(plain)} lists, one a text, got {len(neighbours)}"
            )
        columns |= _neighbour_columns(audited, passes, model, tokenizer, neighbours, before)
    if split is not None:
        columns |= _extraction_columns(audited, encoded, split)
        chosen = (*chosen, EXTRACTION)
    return _table(columns, chosen, len(plain))


def _encoded_texts(
    tokenizer: Any, texts: Any, contexts: Any, *, only_texts: bool
) -> tuple[list[Window], list[str]]:
    """Texts, lists of token numbers or `LearnedText` as windows, one for each, and as plain texts,
    whose compressed length is needed.

    ``only_texts`` refuses (ValueError) token numbers, where another tokenizer or neighbours need
    the letters.
    """
    listed = list(texts)
    if listed and isinstance(listed[0], LearnedText):
        if contexts is not None:
            raise ValueError("contexts: prompts are in the texts already; leave contexts out")
        return encode_learned(tokenizer, listed), [text.learned for text in listed]
    if not (listed and isinstance(listed[0], list | tuple | np.ndarray)):
        plain = check_texts("texts", texts if hasattr(texts, "__len__") else listed)
        return encode(tokenizer, plain, contexts), plain
    if only_texts:
        raise ValueError(
            "texts: another tokenizer's reference and neighbours need texts, not token numbers"
        )
    encoded = token_windows(listed, contexts, getattr(tokenizer, "pad_token_id", None))
    return encoded, tokenizer.batch_decode([list(map(int, text)) for text in listed])


_Column = Callable[[int], float]
"""From the index of a text to its score by one attack."""


def _table(columns: dict[str, _Column], chosen: Sequence[str], count: int) -> pd.DataFrame:
    """The chosen columns for all texts; others are not computed."""
    return pd.DataFrame({name: list(map(columns[name], range(count))) for name in chosen})


@dataclass(frozen=True)
class _Passes:
    """What all passes of a model over texts have in common."""

    batch_size: int  # windows
    max_length: int | None  # tokens of a window; None takes the model's context
    share_context: bool  # whether a context that several texts have in common is computed once

    def statistics(
        self,
        model: Any,
        tokenizer: Any,
        encoded: Sequence[Window],
        *,
        prefix: str | None = None,
        names: tuple[str, str] = ("model", "texts"),
        **options: bool,
    ) -> list[TokenStatistics]:
        """The statistics of each text, one `TokenStatistics` of arrays of shape (tokens,) per text.

        Args:
            encoded: The texts as tokens, which are cut into windows that the model can take.
            prefix: Text that stands before each of them, without being scored.
            names: What begins an error's message: the model and the texts.
            options: Those of `token_statistics`.
        """
        cut = windows(model, tokenizer, encoded, max_length=self.max_length, prefix=prefix)
        tables = token_rows(
            model,
            cut,
            partial(token_statistics, **options),
            batch_size=self.batch_size,
            share=self.share_context,
            names=names,
        )
        return [
            TokenStatistics(*_with_loss(table, window).T)
            for table, window in zip(tables, encoded, strict=True)
        ]

    def of_reference(
        self, reference: Any, tokenizer: Any, encoded: Sequence[Window]
    ) -> list[TokenStatistics]:
        """The statistics of each text by a reference model, which an error's message names."""
        return self.statistics(reference, tokenizer, encoded, names=("reference", "texts"))


def _with_loss(table: FloatArray, window: Window) -> FloatArray:
    """The rows of the scored tokens that training took its loss from, of all if nothing else is
    said.
    """
    return table if window.loss is None else table[np.array(window.loss)]


def _own_columns(
    audited: Sequence[TokenStatistics], texts: Sequence[str], k: float
) -> dict[str, _Column]:
    """The attacks of `OWN_PASS`, from the statistics and the letters of each text; ``k`` is the
    share of tokens that "min_k" and "min_k_pp" take.
    """
    return {
        "loss": lambda i: _mean(audited[i].log_prob),
        "min_k": lambda i: _mean_lowest(audited[i].log_prob, k),
        "min_k_pp": lambda i: _mean_lowest(audited[i].standardized, k),
        "zlib": lambda i: _mean(audited[i].log_prob) / _compressed_length(texts[i]),
        "hinge": lambda i: _mean(audited[i].margin),
    }


def _reference_columns(
    audited: Sequence[TokenStatistics], other: Sequence[TokenStatistics]
) -> dict[str, _Column]:
    """The attacks of `REFERENCE` and `PAIRED`, from the statistics of both models."""
    # A margin below 0: the model's first choice is another token.
    return {
        "ratio": lambda i: -_ratio(_mean(audited[i].log_prob), _mean(other[i].log_prob)),
        "difference": lambda i: _mean(audited[i].log_prob) - _mean(other[i].log_prob),
        "ez": lambda i: _error_zone(audited[i].log_prob - other[i].log_prob, audited[i].margin < 0),
        "wbc": lambda i: _window_votes(audited[i].log_prob - other[i].log_prob),
    }


def _prefix_columns(
    audited: Sequence[TokenStatistics], after: Sequence[TokenStatistics]
) -> dict[str, _Column]:
    """The attacks of `PREFIX`, from the statistics without and after the prefix."""
    return {
        "recall": lambda i: _ratio(_mean(after[i].log_prob), _mean(audited[i].log_prob)),
        "recall_hinge": lambda i: _ratio(_mean(after[i].margin), _mean(audited[i].margin)),
    }


def _neighbour_columns(
    audited: Sequence[TokenStatistics],
    passes: _Passes,
    model: Any,
    tokenizer: Any,
    neighbours: Sequence[Sequence[str]],
    contexts: Sequence[str] | None,
) -> dict[str, _Column]:
    """The attacks of `NEIGHBOURS`, by a pass over the ``neighbours`` of each text, which stand
    behind its context where there are ``contexts``.
    """
    flat, before, sizes = flattened("neighbours", neighbours, contexts)
    statistics = passes.statistics(
        model,
        tokenizer,
        encode(tokenizer, flat, before),
        names=("model", "neighbours, all in one list: "),
    )
    mean_log_probs = iter([_mean(neighbour.log_prob) for neighbour in statistics])
    # The neighbours of all texts stand in one list: each text takes the next ``size`` of them.
    means = [sum(islice(mean_log_probs, size)) / size for size in sizes]
    return {"neighbourhood": lambda i: _mean(audited[i].log_prob) - means[i]}


def _extraction_columns(
    audited: Sequence[TokenStatistics], encoded: Sequence[Window], split: tuple[int, int]
) -> dict[str, _Column]:
    """Log p of the suffix that follows the prefix, nats; NaN for a text that is shorter than both.

    ``split`` holds the numbers of tokens of prefix and suffix.
    """
    prefix_tokens, suffix_tokens = split

    def log_prob(i: int) -> float:
        """Log p of the suffix of text ``i``, nats; NaN where the text has fewer tokens, or where
        training learned from fewer of them in a row.
        """
        carries_loss = encoded[i].loss  # of each scored token; None: of all of a whole text
        if carries_loss is None:
            start = max(0, prefix_tokens - encoded[i].first)  # among the scored tokens
        elif all(carries_loss[:suffix_tokens]):
            start = 0  # the first scored token begins the first stretch
        else:  # the first stretch is shorter than the suffix
            return np.nan
        suffix = audited[i].log_prob[start : start + suffix_tokens]
        return suffix.sum() if suffix.size == suffix_tokens else np.nan

    return {EXTRACTION: log_prob}


def _compressed_length(text: str) -> int:
    return len(zlib.compress(text.encode("utf-8", errors="surrogatepass")))


def _mean(values: FloatArray) -> float:
    """The mean; ``values.mean()`` has checks that take longer than the sum of a few tokens."""
    return float(np.add.reduce(values) / values.size)


def _mean_lowest(values: FloatArray, k: float) -> float:
    """Mean of the lowest share ``k`` of the values, (t,); Shi et al. take none of fewer than 1 / k,
    here one is taken.
    """
    return _mean(np.sort(values)[: max(1, int(k * values.size))])


def _ratio(numerator: float, denominator: float) -> float:
    """A quotient that stays finite: the denominator keeps its sign and at least 1e-12 of size."""
    sign = -1.0 if denominator < 0 else 1.0
    return numerator / (sign * max(abs(denominator), 1e-12))


def _error_zone(rises: FloatArray, errors: NDArray[np.bool_]) -> float:
    """How one-sided the rises of log p(token), (t,), are at the tokens where the model errs, (t,):
    their sum over the sum of their sizes, in [-1, 1].
    """
    if not errors.any():
        return 1.0  # nothing is left to learn of such a text
    rises_there = rises[errors]
    return _ratio(float(rises_there.sum()), float(np.abs(rises_there).sum()))


def _window_votes(rises: FloatArray) -> float:
    """The share of windows of tokens in which the sum of ``rises``, (t,), is above 0, averaged over
    window sizes, in [0, 1]; a text shorter than a size is one window.
    """
    # The sum over a window is the difference of two cumulative sums.
    sums = np.append(0.0, np.cumsum(rises))
    sizes = np.unique(np.minimum(_WINDOW_SIZES, rises.size))
    return float(np.mean([(sums[size:] > sums[:-size]).mean() for size in sizes]))


def _check_split(split: tuple[int, int], limit: int, contexts: Any) -> None:
    """Refuse (ValueError) a split beside contexts, which are None where there are none, and one
    that does not fit ``limit`` tokens. ``split`` holds the numbers of tokens of prefix and suffix.
    """
    check_at_least(1, prefix_tokens=split[0], suffix_tokens=split[1])
    if contexts is not None:
        raise ValueError("split: takes the prefix from the text itself; leave contexts out")
    if sum(split) > limit:
        both = f"a prefix of {split[0]} and a suffix of {split[1]} tokens do not fit the model"
        raise ValueError(
            f"split: {both}, which takes {limit}; take fewer (--prefix-tokens, --suffix-tokens)"
        )


def _chosen_attacks(
    attacks: Sequence[str] | None, reference: Any, paired: Any, prefix: Any, neighbours: Any
) -> tuple[str, ...]:
    """The names of the attacks to compute: those asked for, or for None all whose argument is not
    None.

    ``paired`` is the reference where it reads the tokens of the audited model. A ValueError if
    there is no attack, or one twice, unknown or without its argument.
    """
    needs = (  # what an error calls the argument, the attacks that need it, and its value
        ("reference", REFERENCE, reference),
        ("reference of the same tokenizer", PAIRED, paired),
        ("prefix", PREFIX, prefix),
        ("neighbours", NEIGHBOURS, neighbours),
    )
    if attacks is None:
        allowed = [names for _, names, value in needs if value is not None]
        return (*OWN_PASS, *chain.from_iterable(allowed))
    chosen = tuple([attacks] if isinstance(attacks, str) else attacks)
    if not chosen or len(set(chosen)) < len(chosen) or set(chosen) - set(ATTACKS):
        raise ValueError(
            f"attacks: expected different names of {', '.join(ATTACKS)}; got {attacks!r}"
        )
    for argument, names, value in needs:
        missing = sorted(set(chosen) & set(names)) if value is None else []
        if missing:
            raise ValueError(f"{argument}: needed for {', '.join(missing)}, got None")
    return chosen


def score_candidates(
    model: Any,
    tokenizer: Any,
    candidates: Sequence[Sequence[str]],
    *,
    contexts: Sequence[str] | None = None,
    **options: Any,
) -> tuple[FloatArray, tuple[str, ...]]:
    """`score_texts` of identifiers and of the generated alternatives that could have stood in their
    place.

    Args:
        model, tokenizer: A causal language model of the transformers library, and its tokenizer.
        options: Further arguments of `score_texts`, such as ``attacks``.
        candidates: Each identifier itself, then its generated alternatives: n lists of 1 + c texts.
        contexts: Text before each identifier in its document, shape (n,); None scores them alone.

    Returns:
        Scores, shape (n, 1 + c, attacks), and the names of the attacks.

    Raises:
        ValueError: Sets of different sizes or of one text, and the cases of `score_texts`.
    """
    if contexts is not None and len(contexts) != len(candidates):
        raise ValueError(
            f"contexts: expected {len(candidates)}, one per identifier, got {len(contexts)}"
        )
    flat, before, sizes = flattened("candidates", candidates, contexts)
    if len(set(sizes)) != 1 or sizes[0] < 2:
        different = sorted(set(sizes)) or "none"
        raise ValueError(
            f"candidates: expected lists of one size, 2 or more, got sizes {different}"
        )
    frame = score_texts(model, tokenizer, flat, contexts=before, **options)
    values = frame.to_numpy(dtype=np.float64).reshape(len(sizes), sizes[0], frame.shape[1])
    return values, tuple(frame.columns)
