"""Features of images from whitened random patches: fixed filters, never trained."""

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, avg_pool2d, conv2d

_CONTRAST = 20 / 255  # added to the standard deviation of a patch of pixels from -1 to 1: flat ones stay flat
_WHITENING = 0.1  # added to the variances of normalised patches before they are whitened
_THRESHOLD = 0.25  # below which a filter's answer counts as nothing
_DRAWN = 20_000  # patches that the whitening is computed from


class PatchFeatures(nn.Module):
    """Answers of random patches as filters, pooled over quarters of the image.

    The images that filters are drawn from, float, must not be audited: filters are data.

    Source:
        Coates and Ng (2011), The importance of encoding versus training with sparse coding and vector
        quantization; Tramer and Boneh (2021): better at equal epsilon than a small network on pixels.
    """

    def __init__(self, images: Tensor, *, filters: int, seed: int, side: int = 6) -> None:
        super().__init__()
        rng = torch.Generator().manual_seed(seed)
        drawn = _random_patches(images, max(_DRAWN, filters), side, rng)
        drawn = (drawn - drawn.mean(1, keepdim=True)) / (drawn.var(1, keepdim=True) + _CONTRAST**2).sqrt()
        centre = drawn.mean(0)
        variances, directions = torch.linalg.eigh(torch.cov(drawn.T))
        whitening = directions @ torch.diag((variances + _WHITENING).rsqrt()) @ directions.T
        chosen = nn.functional.normalize((drawn[:filters] - centre) @ whitening) @ whitening
        self.filters = nn.Buffer(chosen.unflatten(1, (images.shape[1], side, side)))
        self.offsets = nn.Buffer((chosen @ centre)[:, None, None])
        self.means, self.scales = nn.Buffer(torch.zeros(8 * filters)), nn.Buffer(torch.ones(8 * filters))
        seen = self(images[: min(len(images), 2_000)])
        self.means, self.scales = nn.Buffer(seen.mean(0)), nn.Buffer(seen.std(0) + 1e-3)

    def forward(self, x: Tensor) -> Tensor:
        """Features of mean 0 and variance about 1, shape (B, 8 filters)."""
        side, pixels = self.filters.shape[-1], self.filters[0].numel()
        mean = avg_pool2d(x.mean(1, keepdim=True), side, stride=1)
        variance = avg_pool2d((x**2).mean(1, keepdim=True), side, stride=1) - mean**2
        spread = (variance.clamp(min=0) * pixels / (pixels - 1) + _CONTRAST**2).sqrt()
        answer = (conv2d(x, self.filters) - mean * self.filters.sum((1, 2, 3))[:, None, None]) / spread
        both = torch.cat([answer - self.offsets, self.offsets - answer], dim=1).sub_(_THRESHOLD).relu_()
        return (adaptive_avg_pool2d(both, 2).flatten(1) - self.means) / self.scales


def _random_patches(images: Tensor, count: int, side: int, rng: torch.Generator) -> Tensor:
    """Patches from random places of random images, flat, shape (count, channels side side)."""
    free = images.shape[-1] - side + 1
    which = torch.randint(len(images), (count,), generator=rng)
    rows, columns = torch.randint(free, (2, count), generator=rng)
    step = torch.arange(side)
    across = columns[:, None, None] + step
    taken = images[which[:, None, None], :, (rows[:, None] + step)[:, :, None], across]
    return taken.permute(0, 3, 1, 2).flatten(1)
