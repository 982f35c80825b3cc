"""Texts that were inserted into a public pretraining run, beside texts that were not: members are
known.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paperlib.core.checks import check_at_least, check_choice
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

    #: what is scored of each inserted text: its suffix, or all of it where it has none
    members: Tokens
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
    columns = _columns_of(condition, _folder(source))
    members, nonmembers = _sides(columns)
    left_out = len(columns["membership"]) - len(members) - len(nonmembers)
    if limit is not None:
        check_at_least(1, limit=limit)
        rng = np.random.default_rng(seed)
        members = _sample(members, limit, rng)
        nonmembers = _sample(nonmembers, limit, rng)
    copies = Counter(columns["duplication"][row] for row in members)
    member_contexts, member_texts = _texts(columns, members)
    nonmember_contexts, nonmember_texts = _texts(columns, nonmembers)
    return Insertions(
        members=member_texts,
        nonmembers=nonmember_texts,
        member_contexts=member_contexts,
        nonmember_contexts=nonmember_contexts,
        condition=condition,
        copies=copies.most_common(1)[0][0],
        left_out=left_out,
    )


def _columns_of(condition: str, folder: Path) -> dict[str, list[Any]]:
    """The columns of the data set by their names, with the rows of one condition.

    Raises:
        ValueError: No Parquet files in the folder, files that lack a column, or no such condition.
    """
    import pyarrow.compute as compute
    from pyarrow import dataset

    files = sorted(map(str, folder.rglob("*.parquet")))
    if not files:
        raise ValueError(f"source: expected Parquet files in {folder}, found none")
    table = dataset.dataset(files, format="parquet")
    missing = [name for name in _COLUMNS if name not in table.schema.names]
    if missing:
        raise ValueError(
            f"source: needs columns {', '.join(_COLUMNS)}; {folder} lacks {', '.join(missing)}"
        )
    conditions = table.to_table(columns=["condition"])["condition"].unique().to_pylist()
    check_choice("condition", condition, tuple(sorted(conditions)))
    return table.to_table(filter=compute.field("condition") == condition).to_pydict()


def _sample(numbers: list[int], limit: int, rng: np.random.Generator) -> list[int]:
    """At most ``limit`` of the row numbers of a side, drawn at random, in their order."""
    if len(numbers) <= limit:
        return numbers
    return sorted(rng.permutation(numbers)[:limit])


def _texts(columns: dict[str, list[Any]], numbers: list[int]) -> tuple[Tokens, Tokens]:
    """Of the rows of one side, by their ``numbers``, the tokens before what is scored, a list for
    each row, and the tokens that are scored.
    """
    contexts: Tokens = []
    scored: Tokens = []
    for row in numbers:
        context, text = _cut(
            columns["input_ids"][row], columns["suffix_start"][row], columns["example_idx"][row]
        )
        contexts.append(context)
        scored.append(text)
    return contexts, scored


def _sides(columns: dict[str, list[Any]]) -> tuple[list[int], list[int]]:
    """Row numbers of the members and of the non-members whose text stands there once; a ValueError
    where one side is missing.
    """
    membership = columns["membership"]
    if set(membership) != {0, 1}:
        raise ValueError(f"membership: expected 0 and 1, both, got {sorted(set(membership))}")
    texts = [tuple(text) for text in columns["input_ids"]]
    times = Counter(texts)
    members: list[int] = []
    nonmembers: list[int] = []
    for row, text in enumerate(texts):
        if times[text] == 1:
            side = members if membership[row] == 1 else nonmembers
            side.append(row)
    return members, nonmembers


def _cut(tokens: list[int], start: int, example: int) -> tuple[list[int], list[int]]:
    """The tokens before a suffix, and the suffix, which begins at index ``start``; without one,
    where ``start`` is the number of tokens, the first token and the others.

    A ValueError, which names the number ``example`` of the text, for another ``start``.
    """
    if not 1 <= start <= len(tokens) or len(tokens) < 2:
        raise ValueError(
            f"suffix_start: expected 1 to {len(tokens)}, the length, got {start} in example "
            f"{example}"
        )
    cut = start if start < len(tokens) else 1
    return tokens[:cut], tokens[cut:]


def _folder(source: str | Path) -> Path:
    """The folder of a data set: one that is given, or the hub's copy, which is fetched if need
    be.
    """
    for folder in (Path(source).expanduser(), data_folder() / Path(source).name):
        if folder.is_dir():
            return folder
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
        message = str(error).strip().splitlines()[0]
        address = f"huggingface.co/datasets/{source}"
        files = f"folder {Path(source).name}"
        raise unavailable(str(source), files, data_folder(), address, [message]) from None
