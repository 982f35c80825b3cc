"""What a text shows of the order of its tokens: pairs, places, and the frame that texts share, such
as keys, turns and templates.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import combinations, pairwise
from typing import Any, cast

import numpy as np

_FRAME_TOKENS = 24  # of the commonest: their pairs in a text are 276 features at most
_EDGE = 8  # tokens at the start and at the end of a text whose places count
_HASHED = 2**20  # columns; memory stays bounded where texts are long


def order_features(tokens: Sequence[Sequence[Hashable]]) -> Any:
    """Which features of order stand in which text, a sparse matrix of shape (texts, features).

    Features are neighbouring tokens, tokens with one between them, the first and last tokens with
    their places, and the order of the tokens that at least half of the texts have: neighbours and
    threes among these alone, whatever stands between, and which of two comes first. Membership is
    not asked, so that a test on one half may use features of all texts.

    Args:
        tokens: Tokens of each text, as numbers or as strings.
    """
    from sklearn.feature_extraction.text import HashingVectorizer

    frame = frame_tokens(tokens)

    def features(text: Sequence[Hashable]) -> list[str]:
        """The names of the features that stand in one text."""
        return [*_pairs(text), *_edges(text), *_frame(text, frame)]

    vectorizer: Any = HashingVectorizer(
        analyzer=cast(Any, features),
        n_features=_HASHED,
        binary=True,
        norm=cast(Any, None),
        alternate_sign=False,
    )
    standing = vectorizer.transform(tokens)
    # What stands in a single text cannot be learned on one half and seen on the other.
    return standing[:, np.flatnonzero(standing.getnnz(axis=0) > 1)]


def frame_tokens(tokens: Sequence[Sequence[Hashable]]) -> frozenset[Hashable]:
    """The tokens that at least half of the texts have, the 24 commonest at most."""
    counts = Counter[Hashable]()
    for text in tokens:
        counts.update(list(dict.fromkeys(text)))
    commonest = counts.most_common(_FRAME_TOKENS)
    return frozenset(token for token, texts in commonest if 2 * texts >= len(tokens))


def _pairs(text: Sequence[Hashable]) -> list[str]:
    """Neighbouring tokens, and tokens with one between them."""
    neighbours = [f"pair {first} {second}" for first, second in pairwise(text)]
    around = zip(text, text[2:], strict=False)
    return [*neighbours, *(f"around {first} {second}" for first, second in around)]


def _edges(text: Sequence[Hashable]) -> list[str]:
    """The first and the last tokens with their places, and one feature that every text has: a
    matrix without columns cannot be learned from.
    """
    first = [f"start {index} {token}" for index, token in enumerate(text[:_EDGE])]
    last = [f"end {index} {token}" for index, token in enumerate(text[: -_EDGE - 1 : -1])]
    return ["text", *first, *last]


def _frame(text: Sequence[Hashable], frame: frozenset[Hashable]) -> list[str]:
    """The order of those tokens of a text that are in ``frame``, as names of features: neighbours
    and threes among these alone, and which of two comes first.
    """
    common = [token for token in text if token in frame]
    twos = [f"next {first} {second}" for first, second in pairwise(common)]
    threes = [
        f"next {first} {second} {third}"
        for first, second, third in zip(common, common[1:], common[2:], strict=False)
    ]
    first_places = dict.fromkeys(common)
    before = [f"before {first} {second}" for first, second in combinations(first_places, 2)]
    return [*twos, *threes, *before]
