"""Classifiers of images by name, from fresh or from pretrained weights, and their outputs."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, interpolate

from paperlib.core.checks import check_at_least, check_choice
from paperlib.core.packages import optional_package
from paperlib.models.devices import as_tensor, evaluating
from paperlib.models.images.networks import SMALL_SIDE, WideResNet, cnn, cnn4, cosine, mlp
from paperlib.models.losses import cross_entropy

_VIT = "vit_small_patch16_224"


@dataclass(frozen=True, kw_only=True)
class ImageArchitecture:
    """Which classifier of ``ARCHITECTURES``, for images of which shape.

    Attributes:
        outputs: Classes, or attributes where each image has several labels.
        width: Hidden units of "mlp", random features of "cosine" and "cosine-mlp", channels of the
            first layer of "cnn" and "cnn4"; others ignore it.
        group_norm: Group norm for batch norm, so that DP-SGD can train it.
        pretrained: Start from ImageNet weights (ViT and the torchvision ResNets), which are
            downloaded.
    """

    name: str
    channels: int
    side: int
    outputs: int
    width: int = 16
    group_norm: bool = False
    pretrained: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse (ValueError) an unknown name, numbers out of range, and weights that do not
        exist.
        """
        check_choice("name", self.name, tuple(ARCHITECTURES))
        if self.channels not in (1, 3):
            raise ValueError(f"channels: expected 1 or 3, got {self.channels}")
        check_at_least(1, side=self.side, outputs=self.outputs, width=self.width)
        if self.pretrained and (self.name not in PRETRAINED or self.group_norm):
            raise ValueError(
                f"pretrained: expected one of {', '.join(PRETRAINED)} without group_norm, got "
                f"{self.name!r}"
            )


def build_image_model(architecture: ImageArchitecture) -> nn.Module:
    """The classifier, with fresh parameters from its seed (or pretrained ones), on the CPU.

    Raises:
        ValueError: A side too small for the architecture.
        RuntimeError: Pretrained weights cannot be downloaded.
        ModuleNotFoundError: The package of the architecture (timm, torchvision) is not installed.

    >>> cnn = ImageArchitecture(name="cnn", channels=1, side=7, outputs=10, width=2)
    >>> model = build_image_model(cnn)
    >>> model(torch.zeros(3, 1, 7, 7)).shape
    torch.Size([3, 10])
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(architecture.seed)
        return ARCHITECTURES[architecture.name](architecture)


def classifier_for(images: Any, name: str, outputs: int, **options: Any) -> nn.Module:
    """The classifier of an `ImageArchitecture` for images of shape (n, channels, side, side);
    ``options`` are its further settings.

    Raises:
        ValueError: A name or an option that `ImageArchitecture` refuses, or too small a side.
    """
    _, channels, side, _ = images.shape
    architecture = ImageArchitecture(
        name=name, channels=channels, side=side, outputs=outputs, **options
    )
    return build_image_model(architecture)


def parameters_of(architecture: ImageArchitecture) -> int:
    """Number of trainable parameters, found without making them; errors are those of
    `build_image_model`.

    >>> parameters_of(ImageArchitecture(name="wrn-28-10", channels=3, side=32, outputs=10))
    36479194
    """
    with torch.device("meta"):
        model = ARCHITECTURES[architecture.name](architecture)
        return sum(values.numel() for values in model.parameters())


def _small(make: Callable[..., nn.Module], shape: ImageArchitecture) -> nn.Module:
    """A network of our own that takes a width."""
    return make(shape.channels, shape.side, shape.outputs, shape.width)


def _wide(depth: int, width: int, shape: ImageArchitecture) -> nn.Module:
    """WRN-depth-width, for images of any side."""
    return WideResNet(depth, width, shape.channels, shape.outputs, group_norm=shape.group_norm)


def _cnn4(shape: ImageArchitecture) -> nn.Module:
    return cnn4(shape.channels, shape.side, shape.outputs, shape.width, group_norm=shape.group_norm)


def _resnet(name: str, shape: ImageArchitecture) -> nn.Module:
    """A ResNet of torchvision, changed to the shape's channels, side and outputs."""
    from paperlib.models.images.resnet import resnet  # torchvision takes seconds to import

    return resnet(
        name,
        shape.channels,
        shape.side,
        shape.outputs,
        group_norm=shape.group_norm,
        pretrained=shape.pretrained,
    )


class PretrainedClassifier(nn.Module):
    """A model of timm that is shown our images in its size and with its mean and std."""

    def __init__(self, model: nn.Module, side: int, mean: Tensor, std: Tensor) -> None:
        """``model`` takes images of ``side`` pixels a side, less ``mean`` and over ``std``, both
        (3, 1, 1), of pixels from 0 to 1.
        """
        super().__init__()
        self.model = model
        self.side = side
        self.mean = nn.Buffer(mean)
        self.std = nn.Buffer(std)

    def forward(self, x: Tensor) -> Tensor:
        """Logits (B, outputs) of images as numbers from -1 to 1, grey (B, 1, ...) or in colour."""
        large = interpolate(x, size=(self.side, self.side), mode="bilinear", antialias=True)
        from_0_to_1 = (large.expand(-1, 3, -1, -1) + 1) / 2
        return self.model((from_0_to_1 - self.mean) / self.std)


def pretrained_classifier(
    name: str, outputs: int, *, weights: Mapping[str, Tensor] | None = None, seed: int = 0
) -> nn.Module:
    """A model of timm with weights from elsewhere (ImageNet, by most names) and a new last layer.

    ``weights`` are tensors by name, as timm publishes them; None downloads them. The seed is the
    layer's.

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
                raise ValueError(
                    f"weights: these are not the weights of timm's {name} ({error})"
                ) from error
            raise RuntimeError(
                f"timm: the weights of {name} cannot be downloaded ({error}). Fetch its "
                "model.safetensors where there is a network, and name the file as 'weights'"
            ) from error
        model.reset_classifier(outputs)
    settings: dict[str, Any] = model.pretrained_cfg  # how timm shows images to the model
    mean = torch.tensor(settings["mean"])[:, None, None]
    std = torch.tensor(settings["std"])[:, None, None]
    return PretrainedClassifier(model, settings["input_size"][-1], mean, std)


def _vit_small(shape: ImageArchitecture) -> nn.Module:
    """ViT-small of timm; small images are cut into 8 by 8 patches, since 16 pixels would leave
    few.
    """
    if shape.pretrained:
        return pretrained_classifier(_VIT, shape.outputs, seed=shape.seed)
    return optional_package("timm", "images", "vit-small").create_model(
        _VIT,
        img_size=shape.side,
        patch_size=16 if shape.side > SMALL_SIDE else max(1, shape.side // 8),
        in_chans=shape.channels,
        num_classes=shape.outputs,
    )


PRETRAINED = ("resnet18", "resnet50", "resnet101", "vit-small")
"""Architectures with ImageNet weights."""

ARCHITECTURES: Mapping[str, Callable[[ImageArchitecture], nn.Module]] = MappingProxyType(
    {
        "mlp": partial(_small, mlp),
        "cosine": partial(_small, cosine),
        "cosine-mlp": partial(_small, partial(cosine, hidden=64)),
        "cnn": partial(_small, cnn),
        "cnn4": _cnn4,
        "resnet18": partial(_resnet, "resnet18"),
        "resnet50": partial(_resnet, "resnet50"),
        "resnet101": partial(_resnet, "resnet101"),
        "wrn-28-2": partial(_wide, 28, 2),
        "wrn-28-10": partial(_wide, 28, 10),
        "wrn-16-4": partial(_wide, 16, 4),
        "vit-small": _vit_small,
    }
)
"""Names of architectures to what builds them."""


def as_input(images: Any) -> Tensor:
    """uint8 pixels (n, channels, side, side) as float32 from -1 to 1: what every classifier here
    takes.

    Raises:
        ValueError: Another type or number of axes.
    """
    pixels = as_tensor(images)
    if pixels.dtype != torch.uint8 or pixels.ndim != 4:
        raise ValueError(
            "images: expected uint8 of shape (n, channels, side, side), "
            f"got {pixels.dtype} {tuple(pixels.shape)}"
        )
    return pixels.float() / 127.5 - 1


def image_logits(module: nn.Module, images: Any, *, batch: int = 1024) -> Tensor:
    """Logits of uint8 images (n, channels, side, side), shape (n, outputs), float32, on the CPU;
    the module's mode stays as it was.

    Raises:
        ValueError: Images that `as_input` refuses.
    """
    return _collected(module, images, batch, module)


def image_features(module: nn.Module, images: Any, *, batch: int = 1024) -> Tensor:
    """Inputs of the last linear layer, shape (n, features), float32, on the CPU: the model's
    representation of each uint8 image (n, channels, side, side).

    Raises:
        ValueError: A module without a linear layer, or images that `as_input` refuses.
    """
    linears = [layer for layer in module.modules() if isinstance(layer, nn.Linear)]
    if not linears:
        raise ValueError("module: expected one with a linear layer at its end")
    last_inputs: list[Tensor] = []  # what the hook saw in the latest pass
    hook = linears[-1].register_forward_hook(
        lambda _, inputs, __: last_inputs.append(inputs[0].flatten(1))
    )

    def features(x: Tensor) -> Tensor:
        """What the last linear layer is given for pixels (B, ...) from -1 to 1, (B, features)."""
        module(x)
        return last_inputs.pop()

    try:
        return _collected(module, images, batch, features)
    finally:
        hook.remove()


def image_losses(logits: Any, labels: Any) -> Tensor:
    """Cross-entropy of each image, nats, float64, shape (n,), from logits (n, outputs) and class
    numbers (n,); the mean over attributes where labels are 0 or 1, (n, outputs).

    Raises:
        ValueError: Labels that do not fit.
    """
    targets = as_tensor(labels)
    if targets.ndim == 1:
        return cross_entropy(logits, targets)
    scores = as_tensor(logits).double()
    if scores.shape != targets.shape:
        expected = f"shape {tuple(scores.shape)} as the logits"
        raise ValueError(f"labels: expected {expected}, got {tuple(targets.shape)}")
    return binary_cross_entropy_with_logits(scores, targets.double(), reduction="none").mean(dim=1)


def _collected(module: nn.Module, images: Any, batch: int, outputs: Any) -> Tensor:
    """``outputs``, a function of pixels from -1 to 1, of all images, float32, on the CPU; ``batch``
    images at a time.
    """
    device = next(module.parameters()).device
    collected: list[Tensor] = []
    with evaluating(module):
        for pixels in as_tensor(images).split(batch):
            collected.append(outputs(as_input(pixels.to(device))).float().cpu())
    return torch.cat(collected)
