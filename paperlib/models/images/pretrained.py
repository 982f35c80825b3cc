"""Classifiers that start from weights trained on other images, by a name of timm."""

import difflib
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from paperlib.core.packages import optional_package


class PretrainedClassifier(nn.Module):
    """A model of timm that is shown our images in its size and with its mean and std, both (3, 1, 1)."""

    def __init__(self, model: nn.Module, side: int, mean: Tensor, std: Tensor) -> None:
        super().__init__()
        self.model, self.side = model, side
        self.mean, self.std = nn.Buffer(mean), nn.Buffer(std)

    def forward(self, x: Tensor) -> Tensor:
        """Logits (B, outputs) of images as numbers from -1 to 1, grey (B, 1, ...) or in colour."""
        large = interpolate(x, size=(self.side, self.side), mode="bilinear", antialias=True)
        colour = large.expand(-1, 3, -1, -1)
        return self.model(((colour + 1) / 2 - self.mean) / self.std)


def pretrained_classifier(
    name: str, outputs: int, *, weights: Mapping[str, Tensor] | None = None, seed: int = 0
) -> nn.Module:
    """A model of timm with weights from elsewhere (ImageNet, by most names) and a new last layer.

    ``weights`` are tensors by name, as timm publishes them; None downloads them. The seed is the layer's.

    Raises:
        ValueError: A name that timm does not know, or weights of another model.
        RuntimeError: The weights cannot be downloaded.
    """
    timm = optional_package("timm", "images", "a model by its name in timm")
    if not timm.is_model(name):
        close = difflib.get_close_matches(name, timm.list_models(), n=3)
        raise ValueError(f"timm: no model {name!r}; close names: {', '.join(close) or 'none'}")
    overlay = {} if weights is None else {"pretrained_cfg_overlay": {"state_dict": dict(weights)}}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:  # with its own classes: only then does timm insist that every weight fits
            model = timm.create_model(name, pretrained=True, **overlay)
        except (OSError, RuntimeError, KeyError) as error:
            if weights is not None:
                raise ValueError(f"weights: these are not the weights of timm's {name} ({error})") from error
            raise RuntimeError(
                f"timm: the weights of {name} cannot be downloaded ({error}). Fetch its model.safetensors "
                "where there is a network, and name the file as 'weights'"
            ) from error
        model.reset_classifier(outputs)
    shown: dict[str, Any] = model.pretrained_cfg
    mean, std = (torch.tensor(shown[key])[:, None, None] for key in ("mean", "std"))
    return PretrainedClassifier(model, shown["input_size"][-1], mean, std)
