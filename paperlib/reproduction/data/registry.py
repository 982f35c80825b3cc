"""Data sets by name: what each one is, and `load` and `load_images`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from types import MappingProxyType
from typing import Any, TypeVar

from paperlib.core.checks import check_choice
from paperlib.data.dataset import Dataset
from paperlib.reproduction.data.images.celeba import load_celeba
from paperlib.reproduction.data.images.cifar10 import load_cifar10, load_cifar10_part
from paperlib.reproduction.data.images.mnist5k import load_mnist5k
from paperlib.reproduction.data.images.pixels import ImageSet
from paperlib.reproduction.data.tables import adult, purchase, randhie

Loaded = TypeVar("Loaded")


@dataclass(frozen=True)
class Source:
    """An entry of the registry: a loader, whose keyword arguments are the options of `load`, and
    its data.

    Attributes:
        source: Who made the data, and where they come from.
        licence: Under which licence.
        sha256s: Pinned checksums of the original files, by name; empty where none is known or
            needed.
    """

    loader: Callable[..., Dataset]
    source: str
    licence: str
    sha256s: Mapping[str, str] = field(default_factory=dict[str, str])


REGISTRY: Mapping[str, Source] = MappingProxyType(
    {
        "adult": Source(adult.load_adult, adult.SOURCE, adult.LICENCE, adult.SHA256S),
        "purchase100": Source(purchase.load_purchase100, purchase.SOURCE, purchase.LICENCE),
        "purchase100_like": Source(
            purchase.generate_purchase100_like, purchase.LIKE_SOURCE, purchase.LIKE_LICENCE
        ),
        "randhie": Source(randhie.load_randhie, randhie.SOURCE, randhie.LICENCE, randhie.SHA256S),
    }
)
"""Every table this package can load."""

IMAGE_SETS: Mapping[str, Callable[..., ImageSet]] = MappingProxyType(
    {
        "mnist5k": load_mnist5k,
        "cifar10": load_cifar10,
        "cifar10_part": load_cifar10_part,
        "celeba": load_celeba,
    }
)
"""Names of image sets to their loaders; the first ships inside a dependency, the others need files.
"""


def load(name: str, **options: Any) -> Dataset:
    """Load a data set of ``REGISTRY`` by name, with the options of its loader, such as ``seed``.

    Raises:
        ValueError: An unknown name or option, or a file with unexpected content.
        DataUnavailableError: Its files are not on this machine and cannot be fetched.

    >>> load("purchase100_like", n_train=100, n_test=50).train_x.shape
    (100, 600)
    """
    loaders = {entry_name: entry.loader for entry_name, entry in REGISTRY.items()}
    return _load(name, loaders, options)


def load_images(name: str, **options: Any) -> ImageSet:
    """Load a set of ``IMAGE_SETS`` by name, with the options and errors of `load`."""
    return _load(name, IMAGE_SETS, options)


def _load(
    name: str, loaders: Mapping[str, Callable[..., Loaded]], options: Mapping[str, Any]
) -> Loaded:
    """What the loader of this name returns; a ValueError for an unknown name or option."""
    check_choice("name", name, loaders)
    allowed = tuple(signature(loaders[name]).parameters)
    unknown = sorted(set(options) - set(allowed))
    if unknown:
        names = ", ".join(map(repr, unknown))
        raise ValueError(
            f"{name}: no option {names}; its options are: {', '.join(allowed) or 'none'}"
        )
    return loaders[name](**options)
