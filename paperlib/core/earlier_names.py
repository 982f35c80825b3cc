"""Names that a package exported before, which work until the next release and name their place."""

import importlib
import warnings
from collections.abc import Callable, Mapping


def with_earlier_names(
    package: str, load: Callable[[str], object], places: Mapping[str, str]
) -> Callable[[str], object]:
    """``__getattr__`` of a package that also finds its earlier names.

    Args:
        package: The package's dotted name.
        load: The package's ``__getattr__`` for the names that it exports.
        places: Each earlier name and the module or package that has it.

    Returns:
        A function of a name. An earlier name comes from its place, with a `DeprecationWarning`
        that says where it is; every other name goes to ``load``, with its AttributeError.
    """

    def attribute(name: str) -> object:
        """The package's attribute of this name, or what an earlier name stood for, with a
        warning.
        """
        if name not in places:
            return load(name)
        warnings.warn(
            f"{package} no longer exports {name}: write from {places[name]} import {name}",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(importlib.import_module(places[name]), name)

    return attribute
