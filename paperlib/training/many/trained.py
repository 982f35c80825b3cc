"""Trained MLPs of one shape, and their logits and losses on records."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from paperlib.models import MLP, margin_loss
from paperlib.models.arrays import check_labels
from paperlib.training.batches import check_records
from paperlib.training.config import TrainingConfig
from paperlib.training.private.ghost import forward

# Numbers in one block of a forward pass over many records: 64 MiB in float32.
_BLOCK = 2**24


class DivergenceWarning(RuntimeWarning):
    """Some models of an ensemble ended with parameters that are not finite; the others are fine."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MLPEnsemble:
    """Trained MLPs of one shape, in the order of their configs.

    Attributes:
        parameters: Shape (K, size), laid out as ``MLP.views`` reads them.
        diverged: Models whose parameters are not finite, with the epoch, from 1; their logits are NaN.
    """

    configs: tuple[TrainingConfig, ...]
    parameters: Tensor
    diverged: dict[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.configs)

    @property
    def mlp(self) -> MLP:
        """The shape of all models."""
        return MLP(self.configs[0].widths, self.configs[0].activation)

    def model(self, index: int) -> nn.Module:
        """Model ``index`` as a module of its own."""
        return self.mlp.module(self.parameters[range(len(self))[index]])

    def state(self) -> dict[str, Any]:
        """Tensors and plain values that ``torch.save`` writes and ``weights_only=True`` reads."""
        return {
            "configs": [config.to_dict() for config in self.configs],
            "diverged": dict(self.diverged),
            "parameters": self.parameters,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "MLPEnsemble":
        """The ensemble whose ``state`` this is."""
        configs = tuple(TrainingConfig.from_dict(values) for values in state["configs"])
        return cls(configs=configs, diverged=dict(state["diverged"]), parameters=state["parameters"])

    def logits(self, x: Any) -> Tensor:
        """Logits of every model on every record (n, inputs), shape (K, n, outputs), on the models' device."""
        return torch.cat([self._forward(block) for block in self._blocks(x)], dim=1)

    def margin_losses(self, x: Any, y: Any) -> np.ndarray:
        """``paperlib.models.margin_loss`` of every model on every record, float64, shape (K, n)."""
        return self._map(x, y, margin_loss)

    def accuracies(self, x: Any, y: Any) -> np.ndarray:
        """Share of the records that each model gets right, shape (K,)."""

        def is_right(logits: Tensor, labels: Tensor) -> Tensor:
            if logits.shape[-1] == 1:
                return (logits[..., 0] > 0) == (labels.to(logits.device) == 1)
            return logits.argmax(-1) == labels.to(logits.device)

        return self._map(x, y, is_right).mean(axis=1)

    def _map(self, x: Any, y: Any, function: Callable[[Tensor, Tensor], Tensor]) -> np.ndarray:
        labels, blocks = check_labels(y, torch.iinfo(torch.int32).max, len(x)), self._blocks(x)
        pairs = zip(blocks, labels.split([len(block) for block in blocks]), strict=True)
        return np.concatenate([function(self._forward(a), b).cpu().numpy().T for a, b in pairs]).T

    def _blocks(self, x: Any) -> Sequence[Tensor]:
        """Records that are answered at a time, so that memory stays bounded."""
        records = check_records(x, self.mlp.inputs).to(self.parameters.device)
        return records.split(max(1, _BLOCK // (len(self) * max(self.mlp.widths))))

    @torch.inference_mode()
    def _forward(self, records: Tensor) -> Tensor:
        mlp = self.mlp
        layers, copies = mlp.views(self.parameters), records.expand(len(self), *records.shape)
        return forward(layers, copies, mlp.activation)[1]
