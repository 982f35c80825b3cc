"""Wide residual networks, as published."""

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from paperlib.models.images.norms import norm_layer


class _Block(nn.Module):
    """Norm, ReLU, convolution, twice, and the way around it."""

    def __init__(self, inputs: int, outputs: int, stride: int, group_norm: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = norm_layer(inputs, group_norm), norm_layer(outputs, group_norm)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        same = inputs == outputs and stride == 1
        self.around = None if same else nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        entry = relu(self.norm1(x))
        shortcut = x if self.around is None else self.around(entry)
        return shortcut + self.conv2(relu(self.norm2(self.conv1(entry))))


class WideResNet(nn.Module):
    """WRN-depth-width: three groups of blocks with 16, 32 and 64 times ``width`` channels.

    Source:
        Zagoruyko and Komodakis (2016), arXiv:1605.07146, Table 1, without dropout.
    """

    def __init__(
        self, depth: int, width: int, channels: int, outputs: int, *, group_norm: bool = False
    ) -> None:
        super().__init__()
        if depth < 10 or (depth - 4) % 6:
            raise ValueError(f"depth: expected 6 n + 4 with n of 1 or more, got {depth}")
        widths = [16, 16 * width, 32 * width, 64 * width]
        blocks: list[nn.Module] = []
        for group in range(3):
            for at in range((depth - 4) // 6):
                inputs = widths[group] if at == 0 else widths[group + 1]
                stride = 2 if at == 0 and group > 0 else 1
                blocks.append(_Block(inputs, widths[group + 1], stride, group_norm))
        self.entry = nn.Conv2d(channels, 16, 3, padding=1, bias=False)
        self.blocks = nn.Sequential(*blocks)
        self.norm = norm_layer(widths[3], group_norm)
        self.head = nn.Linear(widths[3], outputs)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Logits, shape (B, outputs)."""
        features = relu(self.norm(self.blocks(self.entry(x))))
        return self.head(torch.flatten(nn.functional.adaptive_avg_pool2d(features, 1), 1))
