"""The attacks as formulas on a model's prediction of each token; higher means member."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from paperlib.core import FloatArray

OWN_PASS = ("loss", "min_k", "min_k_pp", "zlib", "hinge")
REFERENCE = ("ratio", "difference")
PREFIX = ("recall", "recall_hinge")
NEIGHBOURS = ("neighbourhood",)

ATTACKS = (*OWN_PASS, *REFERENCE, *PREFIX, *NEIGHBOURS)
"""Names of all attacks: five need nothing else, the others a reference model, a prefix or neighbours."""


class TokenStatistics(NamedTuple):
    """Statistics of the model's predictions of the scored tokens of one text, in their order.

    Attributes:
        log_prob: Log-probability of each token, nats, shape (t,).
        standardized: (log p - mean) / standard deviation over the vocabulary, shape (t,).
        margin: Logit of the token minus the largest of the others, shape (t,).
    """

    log_prob: FloatArray
    standardized: FloatArray
    margin: FloatArray


def mean_log_prob(tokens: TokenStatistics) -> float:
    """Minus the loss: mean log-probability of the tokens (Yeom et al., 2018)."""
    return _mean(tokens.log_prob)


def mean_margin(tokens: TokenStatistics) -> float:
    """Hinge: mean of each token's logit minus the largest other one (Carlini et al., 2022)."""
    return _mean(tokens.margin)


def mean_lowest(values: FloatArray, k: float) -> float:
    """Mean of the lowest share ``k`` of the values, of at least one.

    Source:
        Shi et al. (2024), who take ``int(k * n)`` of n tokens; that is none for fewer than 1 / k tokens.

    >>> mean_lowest(np.array([-1.0, -5.0, -3.0, -2.0]), 0.5), mean_lowest(np.array([-2.0, -1.0]), 0.2)
    (-4.0, -2.0)
    """
    return _mean(np.sort(values)[: max(1, int(k * values.size))])


def _mean(values: FloatArray) -> float:
    """The mean; ``values.mean()`` has checks that take longer than the sum of a few tokens."""
    return float(np.add.reduce(values) / values.size)


def zlib_bytes(text: str) -> int:
    """Length of the compressed text, in bytes.

    >>> zlib_bytes("aaaaaaaaaaaaaaaaaaaaaaaa") < zlib_bytes("a8f3k2lq9xz7v1m4c6b0d5e2")
    True
    """
    return len(zlib.compress(text.encode("utf-8", errors="surrogatepass")))


def own_pass(
    texts: Sequence[str], tokens: Sequence[TokenStatistics], k: float
) -> Mapping[str, Callable[[int], float]]:
    """The attacks that need one pass of the audited model, each a function of the text's number."""
    return {
        "loss": lambda i: mean_log_prob(tokens[i]),
        "min_k": lambda i: mean_lowest(tokens[i].log_prob, k),
        "min_k_pp": lambda i: mean_lowest(tokens[i].standardized, k),
        "zlib": lambda i: mean_log_prob(tokens[i]) / zlib_bytes(texts[i]),
        "hinge": lambda i: mean_margin(tokens[i]),
    }


def ratio(numerator: float, denominator: float) -> float:
    """A quotient that stays finite: the denominator keeps its sign and at least 1e-12 of size.

    >>> ratio(-3.0, -2.0), ratio(1.0, 0.0)
    (1.5, 1000000000000.0)
    """
    sign = -1.0 if denominator < 0 else 1.0
    return numerator / (sign * max(abs(denominator), 1e-12))
