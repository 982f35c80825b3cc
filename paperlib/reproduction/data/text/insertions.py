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
    rows = _rows_of(condition, _folder(source))
    members, nonmembers = _sides(rows)
    left_out = len(rows["membership"]) - len(members) - len(nonmembers)
    if limit is not None:
        check_at_least(1, limit=limit)
        rng = np.random.default_rng(seed)
        members = _sample(members, limit, rng)
        nonmembers = _sample(nonmembers, limit, rng)
    copies = Counter(rows["duplication"][row] for row in members)
    member_contexts, member_texts = _texts(rows, members)
    nonmember_contexts, nonmember_texts = _texts(rows, nonmembers)
    return Insertions(
        members=member_texts,
        nonmembers=nonmember_texts,
        member_contexts=member_contexts,
        nonmember_contexts=nonmember_contexts,
        condition=condition,
        copies=copies.most_common(1)[0][0],
        left_out=left_out,
    )


def _rows_of(condition: str, folder: Path) -> dict[str, list[Any]]:
    """The columns of the data set, with the rows of one condition."""
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


def _sample(side: list[int], limit: int, rng: np.random.Generator) -> list[int]:
    """At most ``limit`` rows of a side, drawn at random, in their order."""
    if len(side) <= limit:
        return side
    return sorted(rng.permutation(side)[:limit])


def _texts(rows: dict[str, list[Any]], side: list[int]) -> tuple[Tokens, Tokens]:
    """Tokens before the text of each row, and tokens of the text that is scored.

    Args:
        rows: The columns of the data set by their names, as `_rows_of` gives them.
        side: Numbers of the rows of one side.
    """
    contexts: Tokens = []
    scored: Tokens = []
    for row in side:
        context, text = _cut(
            rows["input_ids"][row], rows["suffix_start"][row], rows["example_idx"][row]
        )
        contexts.append(context)
        scored.append(text)
    return contexts, scored


def _sides(rows: dict[str, list[Any]]) -> tuple[list[int], list[int]]:
    """Rows of the members and of the non-members whose text stands there once."""
    if set(rows["membership"]) != {0, 1}:
        raise ValueError(
            f"membership: expected 0 and 1, both, got {sorted(set(rows['membership']))}"
        )
    texts = [tuple(text) for text in rows["input_ids"]]
    times = Counter(texts)
    members: list[int] = []
    nonmembers: list[int] = []
    for row, text in enumerate(texts):
        if times[text] == 1:
            side = members if rows["membership"][row] == 1 else nonmembers
            side.append(row)
    return members, nonmembers


def _cut(tokens: list[int], start: int, example: int) -> tuple[list[int], list[int]]:
    """What stands before a suffix, and the suffix; without one, the first token and the others."""
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
