"""Bytes that a run has to download: data sets by the names its parameters have, and the models it loads."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Download:
    """Bytes of what the official source of a data set offers.

    Attributes:
        bytes: Bytes of the file or archive; None where any part of a larger corpus will do.
        source: Who says so.
    """

    bytes: float | None
    source: str


_NAME = re.compile(r"[^=,\s]+")
_HERE = "the file itself"

DOWNLOADS: Mapping[str, Download] = MappingProxyType(
    {
        "cifar10": Download(170_052_171, "cifar-10-binary.tar.gz at the authors' page"),
        "celeba": Download(1_443_490_838 + 26_721_026, "img_align_celeba.zip and list_attr_celeba.txt"),
        "adult": Download(3_974_305 + 2_003_153, "adult.data and adult.test at UCI"),
        "purchase100": Download(2.4e8, "at most: 197,324 rows of 601 values, not packed"),
        "wikitext103": Download(190_230_000, "data set card of Salesforce/wikitext, wikitext-103-v1"),
        "persona_chat": Download(9_824_880, _HERE),
        "pile_test_subsets": Download(8_956_379, _HERE),
        "nid_corpus": Download(9_874_957, _HERE),
        "pile_test": Download(1.3e9, "at most: data set card of EleutherAI/pile_val_test, not packed"),
        "pile_val": Download(1.4e9, "at most: data set card of EleutherAI/pile_val_test, not packed"),
        "pile_train": Download(None, "one of 30 files of the Pile's training part is enough"),
        "dolma": Download(None, "a part of each folder of Dolma 1.7 is enough"),
        "proof_pile_2_test": Download(None, "test parts of Proof-Pile-2"),
    }
)
"""Official sizes, by the names of data sets in parameters."""


def download_bytes(parameters: Mapping[str, Any], models: Mapping[str, float]) -> float:
    """Bytes of the data sets that parameters name, and of the weights of models.

    Args:
        parameters: Parameters of a notebook.
        models: Name of each model loaded to the bytes of its weights.
    """
    return sum(DOWNLOADS[name].bytes or 0.0 for name in named_data(parameters)) + sum(models.values())


def unknown_sizes(parameters: Mapping[str, Any]) -> list[str]:
    """Corpora that parameters name and whose bytes are not counted."""
    return [name for name in named_data(parameters) if DOWNLOADS[name].bytes is None]


def named_data(parameters: Mapping[str, Any]) -> list[str]:
    """Data sets that parameters name, sorted; a text may hold several names, as in MODEL=DATA,DATA."""
    names = {name for text in _texts(parameters.values()) for name in _NAME.findall(text)}
    return sorted(names & {*DOWNLOADS})


def _texts(values: Iterable[Any]) -> Iterable[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            yield from _texts(value.values())
        elif isinstance(value, list | tuple):
            yield from _texts(value)
