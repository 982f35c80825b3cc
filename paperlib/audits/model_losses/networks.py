"""Losses of torch modules."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from paperlib.audits.model_losses.batches import batches_of
from paperlib.audits.model_losses.evaluation import evaluated, moved
from paperlib.audits.model_losses.rule import LossRule
from paperlib.audits.model_losses.values import as_losses, gathered, row_count
from paperlib.core import FloatArray


def network_losses(
    model: torch.nn.Module,
    data: Any,
    *,
    loss: Callable[[Any, Any], Any] | None,
    batch_size: int | None,
    device: Any,
    progress: bool | None,
) -> FloatArray:
    """Losses of a module's outputs for every record, by ``loss`` or else by `LossRule`.

    Args:
        model: Any module.
        data: What `batches_of` takes.
        loss: Function from outputs and targets of a batch to losses, shape (n,), or None.
        batch_size: Records per batch; None for the loader's own, or 256.
        device: Device to compute on; None for the model's own.
        progress: Whether a bar is shown.

    Raises:
        ValueError: What `batches_of` and `LossRule` refuse, and losses of another shape or not finite.
    """
    weights = (one.dtype for one in model.parameters() if one.is_floating_point())
    batches, total = batches_of(data, batch_size, next(weights, torch.get_default_dtype()))
    rule = LossRule()

    def of_batch(batch: Any) -> FloatArray:
        inputs, targets = _divided(batch)
        outputs = _outputs(model, moved(inputs, place))
        if loss is None:
            return as_losses(rule.losses(outputs, targets), row_count(targets), "model")
        return as_losses(loss(outputs, moved(targets, place)), row_count(targets), "loss")

    with evaluated(model, device) as place:
        found = gathered(of_batch, batches, total=total, progress=progress)
    rule.check_end()
    return found


def _divided(batch: Any) -> tuple[Any, Any]:
    """Inputs and targets of a batch."""
    if isinstance(batch, Mapping):
        if "labels" not in batch:
            raise ValueError(
                f"data: expected batches with 'labels', got one with {', '.join(map(str, batch))}"
            )
        return {name: value for name, value in batch.items() if name != "labels"}, batch["labels"]
    if isinstance(batch, tuple | list) and len(batch) == 2:
        return batch[0], batch[1]
    size = f" of {len(batch)}" if isinstance(batch, tuple | list) else ""
    raise ValueError(
        "data: expected batches (inputs, targets) or dictionaries with 'labels', got "
        f"{type(batch).__name__}{size}"
    )


def _outputs(model: torch.nn.Module, inputs: Any) -> Any:
    if isinstance(inputs, Mapping):
        outputs = model(**inputs)
    else:
        outputs = model(*inputs) if isinstance(inputs, tuple | list) else model(inputs)
    return getattr(outputs, "logits", outputs)
