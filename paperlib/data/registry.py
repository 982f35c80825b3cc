"""Data sets by name: what each one is, and `load`."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from paperlib.data.dataset import Dataset
from paperlib.data.tables import adult, purchase, randhie


@dataclass(frozen=True, kw_only=True)
class Source:
    """An entry of the registry.

    Attributes:
        source: Authors of the data, and the place where they are published.
        licence: Licence of the data.
        sha256s: Pinned checksums of the original files, by name; empty where none is known or needed.
        real: True if the rows are about real people, and not generated.
        needs_files: True if it comes from the data folder or the network, not from a package.
        loader: Makes the `Dataset`; its keyword arguments are the options of `load`.
    """

    source: str
    licence: str
    sha256s: Mapping[str, str]
    real: bool
    needs_files: bool
    loader: Callable[..., Dataset]

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options that `load` takes for this data set."""
        return tuple(inspect.signature(self.loader).parameters)


REGISTRY: Mapping[str, Source] = MappingProxyType(
    {
        "adult": Source(
            source=adult.SOURCE,
            licence=adult.LICENCE,
            sha256s=adult.SHA256S,
            real=True,
            needs_files=True,
            loader=adult.load_adult,
        ),
        "purchase100": Source(
            source=purchase.SOURCE,
            licence=purchase.LICENCE,
            sha256s={},
            real=True,
            needs_files=True,
            loader=purchase.load_purchase100,
        ),
        "purchase100_like": Source(
            source=purchase.LIKE_SOURCE,
            licence=purchase.LIKE_LICENCE,
            sha256s={},
            real=False,
            needs_files=False,
            loader=purchase.generate_purchase100_like,
        ),
        "randhie": Source(
            source=randhie.SOURCE,
            licence=randhie.LICENCE,
            sha256s={"randhie (values)": randhie.SHA256},
            real=True,
            needs_files=False,
            loader=randhie.load_randhie,
        ),
    }
)
"""Every data set this package can load."""


def load(name: str, **options: Any) -> Dataset:
    """Load a data set by name.

    Args:
        name: A key of ``REGISTRY``: "adult", "purchase100", "purchase100_like" or "randhie".
        options: Options of its loader, such as ``seed``.

    Returns:
        The training part and the rest, with source, licence and checksums.

    Raises:
        ValueError: An unknown name or option, or a file with unexpected content.
        DataUnavailableError: Its files are not on this machine and cannot be fetched.

    >>> load("purchase100_like", n_train=100, n_test=50).train_x.shape
    (100, 600)
    """
    if name not in REGISTRY:
        raise ValueError(f"name: expected one of {', '.join(map(repr, REGISTRY))}, got {name!r}")
    entry = REGISTRY[name]
    if unknown := sorted(set(options) - set(entry.options)):
        known = ", ".join(entry.options) or "none"
        raise ValueError(f"{name}: no option {', '.join(map(repr, unknown))}; its options are: {known}")
    return entry.loader(**options)
