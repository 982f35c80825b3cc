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
_PER_FILTER = 8  # features of a filter: its answers of both signs, in each quarter of the image
_SCALED_BY = 2_000  # images by which features are scaled
_KERNEL_LENGTH = 0.2  # of random features, for each root of a pixel; chosen


def norm_layer(channels: int, group_norm: bool) -> nn.Module:
    """Batch norm, or group norm with up to 32 groups, which DP-SGD can use."""
    if group_norm:
        return nn.GroupNorm(math.gcd(channels, 32), channels)
    return nn.BatchNorm2d(channels)


def mlp(channels: int, side: int, outputs: int, width: int) -> nn.Module:
    """Two hidden layers of ``width`` units on the pixels: images (B, channels, side, side) to
    logits (B, outputs).
    """
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
        """``width`` features of images that are ``pixels`` numbers each, from -1 to 1."""
        super().__init__()
        # Of the kernel; the distance of two images also grows as the root of their pixels.
        length = _KERNEL_LENGTH * math.sqrt(pixels)
        self.frequencies = nn.Buffer(torch.randn(pixels, width) / length)
        self.phases = nn.Buffer(2 * math.pi * torch.rand(width))

    def forward(self, x: Tensor) -> Tensor:
        """Features of mean square 1, shape (B, width), of pixels (B, pixels)."""
        return math.sqrt(2) * torch.cos(x @ self.frequencies + self.phases)


def cosine(channels: int, side: int, outputs: int, width: int, hidden: int = 0) -> nn.Module:
    """A linear layer on ``width`` random features, or with ``hidden`` units an MLP of one hidden
    layer: images (B, channels, side, side) to logits (B, outputs).
    """
    body = (nn.Linear(width, hidden), nn.ReLU()) if hidden else ()
    features = CosineFeatures(channels * side * side, width)
    return nn.Sequential(nn.Flatten(), features, *body, nn.Linear(hidden or width, outputs))


def cnn(channels: int, side: int, outputs: int, width: int) -> nn.Module:
    """Two convolutions of ``width`` and ``2 width`` channels, pooled once, and one hidden layer; no
    norms. Images (B, channels, side, side) to logits (B, outputs).
    """
    pooled = max(1, side // 2)  # side behind the pooling; a single pixel cannot be halved
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
    CelebA's CNN. Images (B, channels, side, side) to logits (B, outputs).

    Args:
        width: Channels of the first layer; each further layer has twice as many.
        group_norm: Group norm, which DP-SGD can train, in place of batch norm.

    Raises:
        ValueError: A side below 16.
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
        """A block from ``inputs`` to ``outputs`` channels; a ``stride`` of 2 halves the image."""
        super().__init__()
        self.norm1 = norm_layer(inputs, group_norm)
        self.norm2 = norm_layer(outputs, group_norm)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        is_same_shape = inputs == outputs and stride == 1
        # Where the shape changes, a 1x1 convolution brings the input to the new one.
        self.around = (
            None if is_same_shape else nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Images (B, inputs, side, side) to (B, outputs, side / stride, side / stride)."""
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
        """Three groups of blocks; ``depth`` counts layers, ``width`` multiplies the channels.

        Raises:
            ValueError: A depth that is not 6 n + 4 with n of 1 or more.
        """
        super().__init__()
        if depth < 10 or (depth - 4) % 6:
            raise ValueError(f"depth: expected 6 n + 4 with n of 1 or more, got {depth}")
        blocks_each = (depth - 4) // 6  # of a group: three groups, two layers a block, 4 around
        widths = [16, 16 * width, 32 * width, 64 * width]
        blocks: list[nn.Module] = []
        for group, (before, after) in enumerate(pairwise(widths)):
            # The first block of a group widens, and all but the first group halve the image.
            blocks.append(_Block(before, after, 1 if group == 0 else 2, group_norm))
            for _ in range(blocks_each - 1):
                blocks.append(_Block(after, after, 1, group_norm))
        self.entry = nn.Conv2d(channels, 16, 3, padding=1, bias=False)
        self.blocks = nn.Sequential(*blocks)
        self.norm = norm_layer(widths[3], group_norm)
        self.head = nn.Linear(widths[3], outputs)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Logits, shape (B, outputs), of images (B, channels, side, side)."""
        features = relu(self.norm(self.blocks(self.entry(x))))
        return self.head(adaptive_avg_pool2d(features, 1).flatten(1))


class PatchFeatures(nn.Module):
    """Answers of random patches, of images that must not be audited, as filters; Coates and Ng
    (2011).
    """

    def __init__(self, images: Tensor, *, filters: int, seed: int, side: int = 6) -> None:
        """Filters of ``side`` pixels a side, from images (n, channels, size, size) as `as_input`
        gives them.
        """
        super().__init__()
        rng = torch.Generator().manual_seed(seed)
        drawn = _random_patches(images, max(_DRAWN, filters), side, rng).flatten(1)
        contrast = (drawn.var(1, keepdim=True) + _CONTRAST**2).sqrt()
        patches = (drawn - drawn.mean(1, keepdim=True)) / contrast
        # Whitened patches vary alike in all directions.
        centre = patches.mean(0)
        variances, directions = torch.linalg.eigh(torch.cov(patches.T))
        whitening = directions @ torch.diag((variances + _WHITENING).rsqrt()) @ directions.T
        # A filter is a whitened patch of norm 1, and its answer the inner product with another
        # whitened patch, whose whitening (the second here) the filter does in advance.
        unit_patches = nn.functional.normalize((patches[:filters] - centre) @ whitening)
        weights = unit_patches @ whitening
        self.filters = nn.Buffer(weights.unflatten(1, (images.shape[1], side, side)))
        self.offsets = nn.Buffer((weights @ centre)[:, None, None])
        # Unscaled at first, to see what there is to scale.
        self.means = nn.Buffer(torch.zeros(_PER_FILTER * filters))
        self.scales = nn.Buffer(torch.ones(_PER_FILTER * filters))
        unscaled = self(images[: min(len(images), _SCALED_BY)])
        self.means = nn.Buffer(unscaled.mean(0))
        self.scales = nn.Buffer(unscaled.std(0) + 1e-3)

    def forward(self, x: Tensor) -> Tensor:
        """Features of mean 0 and variance about 1, shape (B, 8 filters), of images (B, channels,
        size, size).
        """
        side = self.filters.shape[-1]
        numbers = self.filters[0].numel()  # of a patch
        # Mean and spread of the patch around each pixel, as patches were scaled for the filters.
        mean = avg_pool2d(x.mean(1, keepdim=True), side, stride=1)
        variance = avg_pool2d((x**2).mean(1, keepdim=True), side, stride=1) - mean**2
        unbiased = variance.clamp(min=0) * numbers / (numbers - 1)
        spread = (unbiased + _CONTRAST**2).sqrt()
        # The answer to a patch less its mean, without forming that patch.
        answer_to_mean = mean * self.filters.sum((1, 2, 3))[:, None, None]
        answer = (conv2d(x, self.filters) - answer_to_mean) / spread
        both_signs = torch.cat([answer - self.offsets, self.offsets - answer], dim=1)
        above = both_signs.sub_(_THRESHOLD).relu_()
        return (adaptive_avg_pool2d(above, 2).flatten(1) - self.means) / self.scales


def _random_patches(images: Tensor, count: int, side: int, rng: torch.Generator) -> Tensor:
    """Squares of images (n, channels, size, size) at random places, (count, channels, side,
    side).
    """
    which = torch.randint(len(images), (count,), generator=rng)
    first = torch.randint(images.shape[-1] - side + 1, (2, count), generator=rng)
    first_row, first_column = first
    step = torch.arange(side)
    rows = (first_row[:, None] + step)[:, :, None]
    columns = first_column[:, None, None] + step
    # Such an index puts the axis that it takes whole, the channels, last.
    return images[which[:, None, None], :, rows, columns].permute(0, 3, 1, 2)
