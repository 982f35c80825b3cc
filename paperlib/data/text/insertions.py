"""Texts that were inserted into a public pretraining run, beside texts that were not: members are
known.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paperlib.core import check_at_least, check_choice
from paperlib.data.files import unavailable
from paperlib.io import data_folder

TOAA = "sbordt/TOAA-Membership-Inference"
"""Conversations with suffixes, inserted once, 4 or 16 times (Bordt and Pawelczyk, 2026, ODC-BY);
the models are ``sbordt/OLMo-2-179M-Exp`` (trained on the members) and ``sbordt/OLMo-2-179M`` (on
neither side).
"""
_COLUMNS = ("condition", "membership", "duplication", "input_ids", "suffix_start", "example_idx")

Tokens = list[list[int]]


@dataclass(frozen=True, eq=False)
class Insertions:
    """Texts of one condition, as the numbers of their tokens: for `paperlib.audit_texts`."""

    members: (
        Tokens  #: what is scored of each inserted text: its suffix, or all of it where it has none
    )
    nonmembers: Tokens
    member_contexts: Tokens  #: what stands before
    nonmember_contexts: Tokens
    condition: str
    copies: int  #: how often each member was inserted
    left_out: int  #: texts that stand there twice, on one side or on both


def read_insertions(
    condition: str, *, source: str | Path = TOAA, limit: int | None = None, seed: int = 0
) -> Insertions:
    """The members and non-members of one condition, such as "random_8tok_16x".

    The card of the data set says that both sides have one format and, for suffixes that are random
    or a model's, one procedure; it does not say that fair coins chose the side, and members of a
    "rare" condition share one suffix that non-members do not have: `paperlib.audit_texts` looks for
    such differences.

    Args:
        source: Name on the Hugging Face hub, or a folder with the data set's Parquet files.
        limit: Most texts of each side, a random sample; None takes all.

    Raises:
        DataUnavailableError: A data set that is neither on this machine nor can be fetched.
        ValueError: An unknown condition, or files of another layout.

    Source:
        Train Once, Answer All (arXiv 2509.23383);
        huggingface.co/datasets/sbordt/TOAA-Membership-Inference.
    """
    import pyarrow.compute as compute
    from pyarrow import dataset

    folder = _folder(source)
    if not (files := sorted(map(str, folder.rglob("*.parquet")))):
        raise ValueError(f"source: expected Parquet files in {folder}, found none")
    table = dataset.dataset(files, format="parquet")
    if missing := [name for name in _COLUMNS if name not in table.schema.names]:
        raise ValueError(
            f"source: needs columns {', '.join(_COLUMNS)}; {folder} lacks {', '.join(missing)}"
        )
    known = table.to_table(columns=["condition"])["condition"].unique().to_pylist()
    check_choice("condition", condition, tuple(sorted(known)))
    rows = table.to_table(filter=compute.field("condition") == condition).to_pydict()
    sides = _sides(rows)
    left_out = len(rows["membership"]) - sum(map(len, sides))
    rng = np.random.default_rng(seed)
    if limit is not None:
        check_at_least(1, limit=limit)
        sides = [
            side if len(side) <= limit else sorted(rng.permutation(side)[:limit]) for side in sides
        ]
    texts, contexts = list[Tokens](), list[Tokens]()
    for side in sides:
        cut = [
            _cut(rows["input_ids"][at], rows["suffix_start"][at], rows["example_idx"][at])
            for at in side
        ]
        contexts.append([before for before, _ in cut])
        texts.append([scored for _, scored in cut])
    copies = Counter(rows["duplication"][at] for at in sides[0])
    return Insertions(
        *texts,
        *contexts,
        condition=condition,
        copies=copies.most_common(1)[0][0],
        left_out=left_out,
    )


def _sides(rows: dict[str, list[Any]]) -> list[list[int]]:
    """Places of the members and of the non-members whose text stands there once."""
    if set(rows["membership"]) != {0, 1}:
        raise ValueError(
            f"membership: expected 0 and 1, both, got {sorted(set(rows['membership']))}"
        )
    texts = [tuple(text) for text in rows["input_ids"]]
    times = Counter(texts)
    once = [at for at, text in enumerate(texts) if times[text] == 1]
    return [[at for at in once if rows["membership"][at] == side] for side in (1, 0)]


def _cut(tokens: list[int], start: int, example: int) -> tuple[list[int], list[int]]:
    """What stands before a suffix, and the suffix; without one, the first token and the others."""
    if not 1 <= start <= len(tokens) or len(tokens) < 2:
        raise ValueError(
            f"suffix_start: expected 1 to {len(tokens)}, the length, got {start} in example "
            f"{example}"
        )
    at = start if start < len(tokens) else 1
    return tokens[:at], tokens[at:]


def _folder(source: str | Path) -> Path:
    """The folder of a data set: one that is given, or the hub's copy, which is fetched if need
    be.
    """
    for given in (Path(source).expanduser(), data_folder() / Path(source).name):
        if given.is_dir():
            return given
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    options = {"repo_type": "dataset", "allow_patterns": ["*.parquet"]}
    try:
        return Path(huggingface_hub.snapshot_download(str(source), **options))
    except HFValidationError:
        raise ValueError(
            f"source: expected a folder or a name on the hub, got {str(source)!r}"
        ) from None
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        said, address = str(error).strip().splitlines()[0], f"huggingface.co/datasets/{source}"
        folder = f"folder {Path(source).name}"
        raise unavailable(str(source), folder, data_folder(), address, [said]) from None
