"""`record`: one line per paper table or figure, kept in the result file and shown with its verdict."""

import dataclasses
import difflib
import hashlib
import html
import json
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from paperlib.report.display import Bundle, one_line, results_folder, show
from paperlib.report.printed import PAPERS, target_ids, targets

RECORDS_FILE = "records.jsonl"
"""Name of the file in the run's folder to which `record` adds one line per call."""

USED_DATA_FILE = "used_data.jsonl"
"""Name of the file in the run's folder to which `used_data` adds one line per data set."""

REDUCED = "reduced: "


@dataclass(frozen=True, kw_only=True)
class Record:
    """What a run found about one table or figure of a paper.

    Attributes:
        target: Id of the table or figure in the list of targets.
        holds: True if the run shows what the list says it must show.
        scale: "paper", or "reduced: " followed by what is smaller.
        paper: The paper's headline number, in words.
        ours: Our number, in words.
        note: The reason for a difference; may be empty.
    """

    target: str
    holds: bool
    scale: str
    paper: str
    ours: str
    note: str = ""

    def __post_init__(self) -> None:
        _check_target(self.target)
        if self.scale != "paper" and not (
            self.scale.startswith(REDUCED) and self.scale[len(REDUCED) :].strip()
        ):
            raise ValueError(f"scale: expected 'paper' or 'reduced: <what is smaller>', got {self.scale!r}")

    @property
    def verdict(self) -> str:
        """The finding in a few words."""
        size = (
            "at the paper's scale" if self.scale == "paper" else f"at {self.scale.replace(':', ' scale:', 1)}"
        )
        return f"{'Holds' if self.holds else 'Does not hold'} {size}"

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON-ready values."""
        return dataclasses.asdict(self)


def record(*, target: str, holds: bool, scale: str, paper: str, ours: str, note: str = "") -> None:
    """State whether a paper's table or figure is reproduced; show it, and keep it in the result file.

    Args:
        target: An id of the list of targets, such as ``"output-sets-figure-01"``.
        holds: Verdict, computed from what the list says the reproduction must show.
        scale: ``"paper"``, or ``"reduced: <what>"`` for smaller data, models or trials.
        paper: Headline number of the paper.
        ours: Number of this run.
        note: Reason for a difference; may be empty.

    Raises:
        ValueError: An unknown target, a ``holds`` that is not true or false, an unknown scale, empty words.

    >>> record(target="output-sets-figure-01", holds=True, scale="paper",
    ...        paper="4 and 3 intervals", ours="4 and 3 intervals")
    Optimal Output Sets, Figure 1. Holds at the paper's scale. Paper: 4 and 3 intervals. Ours: ...
    """
    finding = Record(
        target=target,
        holds=_as_bool(holds),
        scale=scale,
        paper=one_line("paper", paper),
        ours=one_line("ours", ours),
        note=" ".join(note.split()),
    )
    _append(RECORDS_FILE, finding.to_dict())
    show(_bundle(finding))


def used_data(name: str, content: bytes | np.ndarray) -> str:
    """Note in the result file which data a run used, by checksum.

    Args:
        name: Name of the data set.
        content: Bytes of the data, or the array they were read into.

    Returns:
        The SHA-256 as 64 hexadecimal digits.

    >>> used_data("nothing", b"")[:8]
    'e3b0c442'
    """
    raw = content if isinstance(content, bytes) else np.ascontiguousarray(content).tobytes()
    digest = hashlib.sha256(raw).hexdigest()
    _append(USED_DATA_FILE, {"name": one_line("name", name), "sha256": digest})
    return digest


def _append(file_name: str, line: dict[str, Any]) -> None:
    folder = results_folder()
    if folder is not None:
        with (folder / file_name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, sort_keys=True, ensure_ascii=False) + "\n")


def _check_target(target: str) -> None:
    known = target_ids()
    if target not in known:
        near = difflib.get_close_matches(target, known, n=3, cutoff=0.5) or list(known)
        raise ValueError(f"target: {target!r} is not in the list of targets; did you mean {', '.join(near)}?")


def _as_bool(holds: Any) -> bool:
    if not isinstance(holds, bool | np.bool_):
        kind = "a number" if isinstance(holds, numbers.Number) else type(holds).__name__
        raise ValueError(f"holds: expected True or False, got {kind} {holds!r}")
    return bool(holds)


def _bundle(finding: Record) -> Bundle:
    place = describe_target(finding.target)
    text = f"{place}. {finding.verdict}. Paper: {finding.paper}. Ours: {finding.ours}."
    if finding.note:
        text += f" {finding.note}"
    kind = "tip" if finding.holds else "warning"
    note = f"\n\n{finding.note}" if finding.note else ""
    markdown = (
        f"````{{admonition}} {place}: {finding.verdict[0].lower()}{finding.verdict[1:]}\n:class: {kind}\n\n"
        f"Paper: {finding.paper}. Ours: {finding.ours}.{note}\n````\n"
    )
    return Bundle(html=f"<p><strong>{html.escape(text)}</strong></p>", markdown=markdown, text=text)


def describe_target(target: str) -> str:
    """A target's place in its paper.

    >>> describe_target("output-sets-figure-01")
    'Optimal Output Sets, Figure 1'
    """
    row = targets().set_index("id").loc[target]
    return f"{PAPERS[str(row['paper'])]}, {row['item']}"
