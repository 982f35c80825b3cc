"""Image sets by name."""

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from paperlib.data.images.celeba import load_celeba
from paperlib.data.images.cifar10 import load_cifar10, load_cifar10_part
from paperlib.data.images.mnist5k import load_mnist5k
from paperlib.data.images.pixels import ImageSet

IMAGE_SETS: Mapping[str, Callable[..., ImageSet]] = MappingProxyType(
    {
        "mnist5k": load_mnist5k,
        "cifar10": load_cifar10,
        "cifar10_part": load_cifar10_part,
        "celeba": load_celeba,
    }
)
"""Names of image sets to their loaders; the first ships inside a dependency, the others need files."""


def load_images(name: str, **options: Any) -> ImageSet:
    """Load images by name.

    Args:
        name: A key of ``IMAGE_SETS``.
        options: Options of its loader.

    Raises:
        ValueError: An unknown name or option, or a file with unexpected content.
        DataUnavailableError: Its files are not on this machine and cannot be fetched.
    """
    if name not in IMAGE_SETS:
        raise ValueError(f"name: expected one of {', '.join(map(repr, IMAGE_SETS))}, got {name!r}")
    known = tuple(inspect.signature(IMAGE_SETS[name]).parameters)
    if unknown := sorted(set(options) - set(known)):
        raise ValueError(
            f"{name}: no option {', '.join(unknown)}; its options are: {', '.join(known) or 'none'}"
        )
    return IMAGE_SETS[name](**options)
