"""Small networks of our own: an MLP, networks on random features, a CNN, and the CelebA target's CNN."""

import math

import torch
from torch import Tensor, nn

from paperlib.models.images.norms import norm_layer


def mlp(channels: int, side: int, outputs: int, width: int) -> nn.Module:
    """Two hidden layers of ``width`` units on the pixels."""
    pixels = channels * side * side
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(pixels, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, outputs),
    )


class CosineFeatures(nn.Module):
    """Random features of flat images, never trained: only images near one another have similar ones.

    Source: Rahimi and Recht, Random Features for Large-Scale Kernel Machines (2007); a Gaussian kernel.
    """

    def __init__(self, pixels: int, width: int) -> None:
        super().__init__()
        length = 0.2 * math.sqrt(pixels)  # of the kernel
        self.frequencies = nn.Buffer(torch.randn(pixels, width) / length)
        self.phases = nn.Buffer(2 * math.pi * torch.rand(width))

    def forward(self, x: Tensor) -> Tensor:
        """Features of mean square 1, shape (B, width)."""
        return math.sqrt(2) * torch.cos(x @ self.frequencies + self.phases)


def cosine(channels: int, side: int, outputs: int, width: int, hidden: int = 0) -> nn.Module:
    """A linear layer on ``width`` random features, or with ``hidden`` units an MLP of one hidden layer."""
    body = (nn.Linear(width, hidden), nn.ReLU()) if hidden else ()
    features = CosineFeatures(channels * side * side, width)
    return nn.Sequential(nn.Flatten(), features, *body, nn.Linear(hidden or width, outputs))


def cnn(channels: int, side: int, outputs: int, width: int) -> nn.Module:
    """Two convolutions of ``width`` and ``2 width`` channels, pooled once, and one hidden layer; no norms."""
    pooled = max(1, side // 2)
    return nn.Sequential(
        nn.Conv2d(channels, width, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveMaxPool2d(pooled) if side < 2 else nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(2 * width * pooled * pooled, 4 * width),
        nn.ReLU(),
        nn.Linear(4 * width, outputs),
    )


def cnn4(channels: int, side: int, outputs: int, width: int, *, group_norm: bool = False) -> nn.Module:
    """Four convolutional layers, each halving the image (a side of 16 or more), and a linear layer.

    With 40 outputs this is the multi-label CNN of CelebA; the paper states four layers and no widths.
    """
    if side < 16:
        raise ValueError(f"side: expected 16 or more for cnn4, got {side}")
    layers: list[nn.Module] = []
    for at in range(4):
        inputs, out = (channels if at == 0 else width * 2 ** (at - 1)), width * 2**at
        layers += [
            nn.Conv2d(inputs, out, 3, padding=1, bias=False),
            norm_layer(out, group_norm),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, outputs))
