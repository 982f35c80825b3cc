"""Which loss fits a module's outputs and targets; nothing is guessed."""

from typing import Any

import torch
from torch import Tensor

from paperlib.audits.model_losses.batches import as_tensor
from paperlib.models.losses import cross_entropy

_ENOUGH = 32  # rows that all look like probabilities by no chance
_CLOSE = {torch.float64: 1e-6, torch.float32: 1e-4}
_CLOSE_ELSEWHERE = 2e-2  # sums of probabilities in 16 bits
_OWN = "pass loss=, a function from outputs and targets to one loss per record"


class LossRule:
    """Cross entropy for logits and whole numbers, squared error for floating targets of the same shape."""

    # Over all batches: outputs that are all probabilities are no logits, and targets that are all 0, 1 or
    # probabilities are classes, not values of a regression.
    def __init__(self) -> None:
        self._rows = 0
        self._all_probabilities = True
        self._all_classes: bool | None = None

    def losses(self, outputs: Any, targets: Any) -> Tensor:
        """Losses of a batch, float64, shape (n,)."""
        if not isinstance(outputs, Tensor):
            raise ValueError(f"model: expected a tensor as output, got {type(outputs).__name__}; {_OWN}")
        targets = as_tensor(targets).detach().cpu()
        outputs = outputs.detach().cpu()
        shapes = tuple(outputs.shape), tuple(targets.shape)
        floating = outputs.is_floating_point(), targets.is_floating_point()
        if floating == (True, False) and outputs.ndim == 2 and outputs.shape[1] > 1:
            if shapes[1] == shapes[0][:1]:
                self._rows += len(outputs)
                self._all_probabilities &= _are_probabilities(outputs)
                if self._rows >= _ENOUGH and self._all_probabilities:
                    self._refuse_probabilities()
                return cross_entropy(outputs, targets)
        elif floating == (True, True) and shapes[0] == shapes[1] and targets.ndim:
            classes = bool(((targets == 0) | (targets == 1)).all()) or _are_probabilities(targets)
            self._all_classes = classes and self._all_classes is not False
            return (outputs.double() - targets.double()).square().reshape(len(targets), -1).mean(1)
        raise ValueError(_unknown(outputs, targets))

    def check_end(self) -> None:
        """Refuse what all batches together leave in doubt."""
        if self._rows and self._all_probabilities:
            self._refuse_probabilities()
        if self._all_classes:
            raise ValueError(
                "data: all floating targets are 0, 1 or probabilities of classes, so a squared error may "
                f"not be meant; {_OWN}, such as paperlib.models.binary_margin_loss for one logit per record"
            )

    def _refuse_probabilities(self) -> None:
        raise ValueError(
            "model: every output is non-negative and sums to 1, so it is probabilities; return the logits "
            f"before the softmax, or {_OWN}"
        )


def _are_probabilities(values: Tensor) -> bool:
    """Whether every row is non-negative and sums to 1."""
    if values.ndim != 2 or values.shape[1] < 2:
        return False
    close = _CLOSE.get(values.dtype, _CLOSE_ELSEWHERE)
    sums = values.double().sum(1)
    return bool((values >= 0).all() and ((sums - 1).abs() <= close).all())


def _unknown(outputs: Tensor, targets: Tensor) -> str:
    """The message for outputs and targets that no rule fits."""
    given = [f"{str(one.dtype).removeprefix('torch.')} {tuple(one.shape)}" for one in (outputs, targets)]
    hint = ""
    if outputs.numel() == targets.numel() and not targets.is_floating_point():
        hint = ", such as paperlib.models.binary_margin_loss for one logit per record"
    elif outputs.ndim == 3 and not targets.is_floating_point():
        hint = "; of a causal language model losses((model, tokenizer), texts) takes texts"
    return (
        f"data: no loss is certain for outputs {given[0]} and targets {given[1]}; expected (n, classes) and "
        f"whole numbers (n,), or floating targets of the outputs' shape; else {_OWN}{hint}"
    )
