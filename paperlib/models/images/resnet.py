"""Torchvision's residual networks, with a stem for small images and sums that hooks can follow."""

from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import relu
from torchvision.models import get_model_weights
from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet

from paperlib.models.images.networks import SMALL_SIDE, norm_layer


class _Basic(BasicBlock):
    """The same block; it adds in place, which the hooks of DP-SGD do not allow."""

    def forward(self, x: Tensor) -> Tensor:
        """Two convolutions beside the shortcut, from (B, channels, side, side) to the block's
        shape.
        """
        around = x if self.downsample is None else self.downsample(x)
        return relu(around + self.bn2(self.conv2(relu(self.bn1(self.conv1(x))))))


class _Bottleneck(Bottleneck):
    """The same block; it adds in place, which the hooks of DP-SGD do not allow."""

    def forward(self, x: Tensor) -> Tensor:
        """Three convolutions beside the shortcut, from (B, channels, side, side) to the block's
        shape.
        """
        around = x if self.downsample is None else self.downsample(x)
        out = relu(self.bn2(self.conv2(relu(self.bn1(self.conv1(x))))))
        return relu(around + self.bn3(self.conv3(out)))


_LAYERS: dict[str, tuple[type[Any], list[int]]] = {
    "resnet18": (_Basic, [2, 2, 2, 2]),
    "resnet50": (_Bottleneck, [3, 4, 6, 3]),
    "resnet101": (_Bottleneck, [3, 4, 23, 3]),
}


def resnet(
    name: str,
    channels: int,
    side: int,
    outputs: int,
    *,
    group_norm: bool = False,
    pretrained: bool = False,
) -> nn.Module:
    """A ResNet (arXiv:1512.03385), from pixels (B, channels, side, side) to logits (B, outputs).

    Args:
        name: "resnet18", "resnet50" or "resnet101".
        group_norm: Group norm, which DP-SGD can train, in place of batch norm.
        pretrained: Take ImageNet weights, but for layers of other shapes.

    Raises:
        RuntimeError: The weights cannot be downloaded.
    """
    block, layers = _LAYERS[name]
    model = ResNet(block, layers, norm_layer=partial(norm_layer, group_norm=group_norm))
    if pretrained:
        try:
            model.load_state_dict(get_model_weights(name)["DEFAULT"].get_state_dict(progress=False))
        except OSError as error:
            raise RuntimeError(
                f"pretrained: the ImageNet weights of {name} cannot be downloaded ({error}); train "
                "from scratch, or fetch them where there is a network: torch keeps them under "
                "torch.hub.get_dir()"
            ) from error
    model.fc = nn.Linear(model.fc.in_features, outputs)
    small = side <= SMALL_SIDE  # a 3x3 stem without pooling, as usual on CIFAR
    if small or channels != 3:
        kernel, stride, padding = (3, 1, 1) if small else (7, 2, 3)
        model.conv1 = nn.Conv2d(channels, 64, kernel, stride=stride, padding=padding, bias=False)
    if small:
        model.maxpool = nn.Identity()  # pyright: ignore[reportAttributeAccessIssue]
    model.relu = nn.ReLU()  # torchvision's works in place, which the hooks of DP-SGD do not allow
    return model
