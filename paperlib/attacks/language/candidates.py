"""Scores of identifiers and of the generated alternatives that could have stood in their place."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from paperlib.attacks.language.scores import score_texts
from paperlib.attacks.language.windows import check_texts
from paperlib.core import FloatArray


def score_candidates(
    model: Any,
    tokenizer: Any,
    candidates: Sequence[Sequence[str]],
    *,
    contexts: Sequence[str] | None = None,
    **options: Any,
) -> tuple[FloatArray, tuple[str, ...]]:
    """Scores of candidate sets of one size.

    Args:
        model: Causal language model, as for `score_texts`.
        tokenizer: Tokenizer of the model, as for `score_texts`.
        candidates: Each identifier itself, then its generated alternatives: n lists of
            1 + c texts.
        contexts: Text before each identifier in its document, shape (n,); None scores them alone.
        options: Further arguments of `score_texts`.

    Returns:
        Scores, shape (n, 1 + c, attacks), higher means member, and the names of the attacks.

    Raises:
        ValueError: Sets of different sizes or of one text, and the cases of `score_texts`.
    """
    sets = [check_texts(f"candidates[{i}]", some) for i, some in enumerate(candidates)]
    sizes = {len(some) for some in sets}
    if len(sizes) != 1 or min(sizes) < 2:
        raise ValueError(
            f"candidates: expected lists of one size, 2 or more, got sizes {sorted(sizes) or 'none'}"
        )
    (size,) = sizes
    if contexts is not None and len(contexts) != len(sets):
        raise ValueError(f"contexts: expected {len(sets)}, one per identifier, got {len(contexts)}")
    flat = [text for some in sets for text in some]
    around = None if contexts is None else [context for context in contexts for _ in range(size)]
    frame = score_texts(model, tokenizer, flat, contexts=around, **options)
    values = frame.to_numpy(dtype=np.float64).reshape(len(sets), size, frame.shape[1])
    return values, tuple(frame.columns)
