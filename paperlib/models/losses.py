"""Per-example losses from logits, never from rounded probabilities.

Every function takes logits with any leading axes (for example one per model of an ensemble), labels
of shape (n,), and returns float64 losses with the same leading axes. One output column means a
binary model whose single logit is the log odds of label 1. Labels that do not fit are a ValueError.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from paperlib.models.devices import as_tensor, check_labels


def binary_margin_loss(logits: Any, labels: Any) -> Tensor:
    """The loss ``(1 - 2y)(log f - log(1 - f))``: minus the log odds of the given label, 0 or 1.

    Logits have shape (..., n) or (..., n, 1), losses (..., n), nats. Source: Negoescu et al.,
    Epsilon*, footnote 1.

    Raises:
        ValueError: Labels that are not n of 0 and 1.

    >>> binary_margin_loss([2.0, 2.0], [1, 0]).tolist()
    [-2.0, 2.0]
    """
    log_odds = as_tensor(logits).double()
    is_column = log_odds.ndim > 1 and log_odds.shape[-1] == 1
    if is_column and (len(labels) != 1 or log_odds.shape[-2] == 1):  # else K models on one record
        log_odds = log_odds[..., 0]
    sign = 1 - 2 * check_labels(labels, 2, log_odds.shape[-1]).to(log_odds.device)
    return sign * log_odds


def multiclass_margin_loss(logits: Any, labels: Any) -> Tensor:
    """The loss ``-(log f_y - log(1 - f_y))``: minus the log odds of the given class.

    Logits have shape (..., n, classes), at least 2 classes; labels are 0 to classes - 1, shape
    (n,). Losses are low where the model is sure of the class, shape (..., n), nats. Source:
    Epsilon*, footnote 1.

    Raises:
        ValueError: Fewer than 2 classes, or labels that do not fit.

    >>> round(multiclass_margin_loss([[1.0, 1.0, 1.0, 1.0]], [2]).exp().item(), 9)
    3.0
    """
    scores = as_tensor(logits).double()
    if scores.ndim < 2 or scores.shape[-1] < 2:
        shape = tuple(scores.shape)
        raise ValueError(
            f"logits: expected shape (..., n, classes), 2 classes or more, got {shape}"
        )
    index = _index(scores, labels)
    # Minus the log odds: log of the sum of exp(score) over the other classes, less the given score.
    others = scores.scatter(-1, index, -torch.inf).logsumexp(dim=-1)
    return others - scores.gather(-1, index)[..., 0]


def margin_loss(logits: Any, labels: Any) -> Tensor:
    """`binary_margin_loss` for one output column, `multiclass_margin_loss` for more: from logits
    (..., n), (..., n, 1) or (..., n, classes) to losses (..., n), nats.

    Raises:
        ValueError: Labels that do not fit.
    """
    scores = as_tensor(logits).double()
    if scores.ndim < 2 or scores.shape[-1] == 1:
        return binary_margin_loss(scores, labels)
    return multiclass_margin_loss(scores, labels)


def cross_entropy(logits: Any, labels: Any) -> Tensor:
    """``-log f_y`` of each example, nats, shape (..., n), binary for one output column.

    Logits have shape (..., n, classes) or (..., n, 1), labels (n,).

    Raises:
        ValueError: Logits of fewer than two axes, or labels that do not fit.
    """
    scores = as_tensor(logits).double()
    if scores.ndim < 2:
        raise ValueError(
            "logits: expected shape (..., n, classes), or (..., n, 1) for a binary model, got "
            f"{tuple(scores.shape)}"
        )
    if scores.shape[-1] > 1:
        return scores.logsumexp(dim=-1) - scores.gather(-1, _index(scores, labels))[..., 0]
    classes = check_labels(labels, 2, scores.shape[-2]).to(scores)
    log_odds = scores[..., 0]
    targets = classes.expand(log_odds.shape)
    return binary_cross_entropy_with_logits(log_odds, targets, reduction="none")


def _index(scores: Tensor, labels: Any) -> Tensor:
    """The labels of scores (..., n, classes), as an index (..., n, 1) into their last axis."""
    classes = check_labels(labels, scores.shape[-1], scores.shape[-2]).to(scores.device)
    return classes[:, None].expand(*scores.shape[:-1], 1)
