"""`score_texts`: every attack from one forward pass per text."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from paperlib.attacks.language.formulas import (
    ATTACKS,
    NEIGHBOURS,
    OWN_PASS,
    PREFIX,
    REFERENCE,
    mean_log_prob,
    mean_margin,
    own_pass,
    ratio,
)
from paperlib.attacks.language.statistics import TokenStatistics, token_statistics
from paperlib.attacks.language.windows import (
    Encoded,
    check_texts,
    check_vocabulary,
    context_length,
    encode,
    prefix_tokens,
    windows,
)


def score_texts(
    model: Any,
    tokenizer: Any,
    texts: Sequence[str],
    *,
    attacks: Sequence[str] | None = None,
    contexts: Sequence[str] | None = None,
    k: float = 0.2,
    batch_size: int = 32,
    max_length: int | None = None,
    reference: Any = None,
    reference_tokenizer: Any = None,
    prefix: str | None = None,
    neighbours: Sequence[Sequence[str]] | None = None,
    share_context: bool = True,
) -> pd.DataFrame:
    """Membership scores of texts; higher means member.

    With t tokens scored, p the model's probabilities given all before, and z its logits:

    - ``loss``: mean of log p(token).
    - ``min_k``: mean of the lowest int(k t) log p(token), of at least one.
    - ``min_k_pp``: the same of (log p(token) - mean) / sd, both over the vocabulary under p.
    - ``zlib``: ``loss`` over the compressed length of the text in bytes.
    - ``hinge``: mean of z(token) - max of the other z.
    - ``ratio``, ``difference`` (with ``reference``): minus the quotient of the two models' losses, and
      ``loss`` minus that of the reference model.
    - ``recall``, ``recall_hinge`` (with ``prefix``): ``loss`` (``hinge``) after the prefix over ``loss``
      (``hinge``) without it.
    - ``neighbourhood`` (with ``neighbours``): ``loss`` minus its mean over the neighbours.

    Every token of the text is scored except one that nothing precedes: without a context the first, unless
    the tokenizer puts a start token there. A context that does not fit the model loses its beginning; a text
    longer than the model's context is scored in windows that overlap by half, each token once.

    Args:
        model: A causal language model of the transformers library, in any number format and on any device.
        tokenizer: Tokenizer of the model; a padding token is not needed.
        texts: Non-empty texts, such as identifiers, shape (n,).
        attacks: Names from the list above; None takes all that the other arguments allow.
        contexts: Text before each text in its document, shape (n,), never scored; None for texts alone.
        k: Share of tokens for ``min_k`` and ``min_k_pp``, in (0, 1].
        batch_size: Texts per batch.
        max_length: Tokens per window; None takes the model's context.
        reference: Another causal language model.
        reference_tokenizer: Tokenizer of that model; None takes ``tokenizer``.
        prefix: Text of non-members to put before everything, at most half the context.
        neighbours: Neighbours of each text, at least one; they get its context. `causal_neighbours`,
            `masked_neighbours` and `random_neighbours` give some.
        share_context: Compute a context that several texts have in common once.

    Returns:
        One row per text, one column per attack.

    Raises:
        ValueError: Empty texts, unknown attacks or such that miss an argument, mismatched lengths, a text
            of one token that nothing precedes, values out of range, or a model that returns NaN.

    Source:
        Loss: Yeom et al. (2018). Min-K%: Shi et al. (2024). Min-K%++: Zhang et al. (2024). zlib and the
        reference ratio: Carlini et al. (2021). Hinge: Carlini et al. (2022). ReCaLL: Xie et al. (2024).
        Neighbourhood: Mattern et al. (2023).
    """
    wanted = _wanted(attacks, reference, prefix, neighbours)
    if not 0 < k <= 1:
        raise ValueError(f"k: expected a share in (0, 1], got {k!r}")
    checked = check_texts("texts", texts)
    scorer = _Scorer(batch_size, max_length, share_context)
    encoded = encode(tokenizer, checked, contexts)
    margins = bool({"hinge", "recall_hinge"} & set(wanted))
    own = scorer.tokens(model, tokenizer, encoded, standardize="min_k_pp" in wanted, margins=margins)
    columns: dict[str, Any] = dict(own_pass(checked, own, k))
    if reference is not None and set(wanted) & set(REFERENCE):
        same = reference_tokenizer is None
        theirs = encoded if same else encode(reference_tokenizer, checked, contexts)
        with_theirs = tokenizer if same else reference_tokenizer
        other = scorer.tokens(reference, with_theirs, theirs, names=("reference", "texts"))
        columns["ratio"] = lambda i: -ratio(mean_log_prob(own[i]), mean_log_prob(other[i]))
        columns["difference"] = lambda i: mean_log_prob(own[i]) - mean_log_prob(other[i])
    if prefix is not None and set(wanted) & set(PREFIX):
        after = scorer.tokens(model, tokenizer, encoded, prefix=prefix, margins="recall_hinge" in wanted)
        columns["recall"] = lambda i: ratio(mean_log_prob(after[i]), mean_log_prob(own[i]))
        columns["recall_hinge"] = lambda i: ratio(mean_margin(after[i]), mean_margin(own[i]))
    if neighbours is not None and "neighbourhood" in wanted:
        means = scorer.neighbour_means(model, tokenizer, checked, contexts, neighbours)
        columns["neighbourhood"] = lambda i: mean_log_prob(own[i]) - means[i]
    return pd.DataFrame({name: [columns[name](i) for i in range(len(checked))] for name in wanted})


class _Scorer:
    """The options that every pass of one call shares."""

    def __init__(self, batch_size: int, max_length: int | None, share: bool) -> None:
        self._batch_size, self._max_length, self._share = batch_size, max_length, share

    def tokens(
        self,
        model: Any,
        tokenizer: Any,
        encoded: Sequence[Encoded],
        *,
        prefix: str | None = None,
        standardize: bool = False,
        margins: bool = False,
        names: tuple[str, str] = ("model", "texts"),
    ) -> list[TokenStatistics]:
        limit = context_length(model, tokenizer, self._max_length)
        before = () if prefix is None else prefix_tokens(tokenizer, prefix, limit)
        check_vocabulary(model, encoded, before)
        special = getattr(tokenizer, "all_special_ids", ())
        return token_statistics(
            model,
            windows(encoded, limit, prefix=before, special=special),
            len(encoded),
            batch_size=self._batch_size,
            share=self._share,
            standardize=standardize,
            margins=margins,
            names=names,
        )

    def neighbour_means(
        self,
        model: Any,
        tokenizer: Any,
        texts: Sequence[str],
        contexts: Sequence[str] | None,
        neighbours: Sequence[Sequence[str]],
    ) -> list[float]:
        """Mean ``loss`` score of each text's neighbours."""
        if len(neighbours) != len(texts):
            raise ValueError(f"neighbours: expected {len(texts)} lists, one per text, got {len(neighbours)}")
        sizes = [len(check_texts(f"neighbours[{i}]", some)) for i, some in enumerate(neighbours)]
        flat = [text for some in neighbours for text in some]
        around = None
        if contexts is not None:
            around = [context for context, size in zip(contexts, sizes, strict=True) for _ in range(size)]
        encoded = encode(tokenizer, flat, around)
        statistics = self.tokens(model, tokenizer, encoded, names=("model", "neighbours, all in one list: "))
        values = [mean_log_prob(one) for one in statistics]
        ends = pd.Series(sizes).cumsum().tolist()
        return [sum(values[end - size : end]) / size for end, size in zip(ends, sizes, strict=True)]


def _wanted(attacks: Sequence[str] | None, reference: Any, prefix: Any, neighbours: Any) -> tuple[str, ...]:
    """The attacks to compute.

    Raises:
        ValueError: Unknown, none, twice the same, or one whose argument is missing.
    """
    needs = [("reference", REFERENCE, reference), ("prefix", PREFIX, prefix)]
    needs.append(("neighbours", NEIGHBOURS, neighbours))
    possible = (*OWN_PASS, *(name for _, names, given in needs if given is not None for name in names))
    if attacks is None:
        return possible
    chosen = tuple([attacks] if isinstance(attacks, str) else attacks)
    if not chosen or len(set(chosen)) < len(chosen) or set(chosen) - set(ATTACKS):
        raise ValueError(f"attacks: expected different names of {', '.join(ATTACKS)}; got {attacks!r}")
    for argument, names, given in needs:
        if given is None and (missing := sorted(set(chosen) & set(names))):
            raise ValueError(f"{argument}: needed for {', '.join(missing)}, got None")
    return chosen
