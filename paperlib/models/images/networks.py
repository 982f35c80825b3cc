"""Networks of our own: an MLP, fixed random features, CNNs and wide residual networks."""

import math
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, avg_pool2d, conv2d, relu

SMALL_SIDE = 64  # pixels; larger images get the stem and patches that are usual on ImageNet
# Added to the standard deviation of a patch of pixels from -1 to 1: flat ones stay flat.
_CONTRAST = 20 / 255
_WHITENING = 0.1  # added to the variances of normalised patches before they are whitened
_THRESHOLD = 0.25  # below which a filter's answer counts as nothing
_DRAWN = 20_000  # patches that the whitening is computed from


def norm_layer(channels: int, group_norm: bool) -> nn.Module:
    """Batch norm, or group norm with up to 32 groups, which DP-SGD can use."""
    if group_norm:
        return nn.GroupNorm(math.gcd(channels, 32), channels)
    return nn.BatchNorm2d(channels)


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
    """Random features of flat images, never trained, of a Gaussian kernel (Rahimi and Recht,
    2007).
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
    """A linear layer on ``width`` random features, or with ``hidden`` units an MLP of one hidden
    layer.
    """
    body = (nn.Linear(width, hidden), nn.ReLU()) if hidden else ()
    features = CosineFeatures(channels * side * side, width)
    return nn.Sequential(nn.Flatten(), features, *body, nn.Linear(hidden or width, outputs))


def cnn(channels: int, side: int, outputs: int, width: int) -> nn.Module:
    """Two convolutions of ``width`` and ``2 width`` channels, pooled once, and one hidden layer; no
    norms.
    """
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


def cnn4(
    channels: int, side: int, outputs: int, width: int, *, group_norm: bool = False
) -> nn.Module:
    """Four convolutional layers, each halving the image, and a linear layer; with 40 outputs
    CelebA's CNN.
    """
    if side < 16:
        raise ValueError(f"side: expected 16 or more for cnn4, got {side}")
    widths = [channels, width, 2 * width, 4 * width, 8 * width]
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [
            nn.Conv2d(before, after, 3, padding=1, bias=False),
            norm_layer(after, group_norm),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, outputs)
    )


class _Block(nn.Module):
    """Norm, ReLU, convolution, twice, and the way around it."""

    def __init__(self, inputs: int, outputs: int, stride: int, group_norm: bool) -> None:
        super().__init__()
        self.norm1 = norm_layer(inputs, group_norm)
        self.norm2 = norm_layer(outputs, group_norm)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        is_same_shape = inputs == outputs and stride == 1
        self.around = (
            None if is_same_shape else nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)
        )

    def forward(self, x: Tensor) -> Tensor:
        entry = relu(self.norm1(x))
        shortcut = x if self.around is None else self.around(entry)
        return shortcut + self.conv2(relu(self.norm2(self.conv1(entry))))


class WideResNet(nn.Module):
    """WRN-depth-width of Zagoruyko and Komodakis (2016), arXiv:1605.07146, Table 1, without
    dropout.
    """

    def __init__(
        self, depth: int, width: int, channels: int, outputs: int, *, group_norm: bool = False
    ) -> None:
        super().__init__()
        if depth < 10 or (depth - 4) % 6:
            raise ValueError(f"depth: expected 6 n + 4 with n of 1 or more, got {depth}")
        widths = [16, 16 * width, 32 * width, 64 * width]
        blocks: list[nn.Module] = []
        for group, (before, after) in enumerate(pairwise(widths)):
            # The first block of a group widens, and all but the first group halve the image.
            blocks.append(_Block(before, after, 1 if group == 0 else 2, group_norm))
            for _ in range((depth - 4) // 6 - 1):
                blocks.append(_Block(after, after, 1, group_norm))
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
        return self.head(adaptive_avg_pool2d(features, 1).flatten(1))


class PatchFeatures(nn.Module):
    """Answers of random patches, of images that must not be audited, as filters; Coates and Ng
    (2011).
    """

    def __init__(self, images: Tensor, *, filters: int, seed: int, side: int = 6) -> None:
        super().__init__()
        rng = torch.Generator().manual_seed(seed)
        count, step = max(_DRAWN, filters), torch.arange(side)
        which = torch.randint(len(images), (count,), generator=rng)
        rows, columns = torch.randint(images.shape[-1] - side + 1, (2, count), generator=rng)
        below, across = (rows[:, None] + step)[:, :, None], columns[:, None, None] + step
        drawn = images[which[:, None, None], :, below, across].permute(0, 3, 1, 2).flatten(1)
        drawn = (drawn - drawn.mean(1, keepdim=True)) / (
            drawn.var(1, keepdim=True) + _CONTRAST**2
        ).sqrt()
        centre = drawn.mean(0)
        variances, directions = torch.linalg.eigh(torch.cov(drawn.T))
        whitening = directions @ torch.diag((variances + _WHITENING).rsqrt()) @ directions.T
        chosen = nn.functional.normalize((drawn[:filters] - centre) @ whitening) @ whitening
        self.filters = nn.Buffer(chosen.unflatten(1, (images.shape[1], side, side)))
        self.offsets = nn.Buffer((chosen @ centre)[:, None, None])
        self.means, self.scales = (
            nn.Buffer(torch.zeros(8 * filters)),
            nn.Buffer(torch.ones(8 * filters)),
        )
        seen = self(images[: min(len(images), 2_000)])
        self.means, self.scales = nn.Buffer(seen.mean(0)), nn.Buffer(seen.std(0) + 1e-3)

    def forward(self, x: Tensor) -> Tensor:
        """Features of mean 0 and variance about 1, shape (B, 8 filters)."""
        side, pixels = self.filters.shape[-1], self.filters[0].numel()
        mean = avg_pool2d(x.mean(1, keepdim=True), side, stride=1)
        variance = avg_pool2d((x**2).mean(1, keepdim=True), side, stride=1) - mean**2
        spread = (variance.clamp(min=0) * pixels / (pixels - 1) + _CONTRAST**2).sqrt()
        answer = (
            conv2d(x, self.filters) - mean * self.filters.sum((1, 2, 3))[:, None, None]
        ) / spread
        both = (
            torch.cat([answer - self.offsets, self.offsets - answer], dim=1)
            .sub_(_THRESHOLD)
            .relu_()
        )
        return (adaptive_avg_pool2d(both, 2).flatten(1) - self.means) / self.scales
