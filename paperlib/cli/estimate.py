"""``paperlib estimate``: what a run would cost."""

import csv
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from io import StringIO
from pathlib import Path

from paperlib.io import write_text
from paperlib.running import NotebookError, find_project, parse_assignments, plan
from paperlib.running.cost.estimate import Estimate, estimate, summary_row, table_of


def estimate_notebooks(
    notebook: str,
    given: list[str],
    *,
    profile: str,
    every: bool,
    own_data: bool,
    cell_seconds: float,
    as_json: bool,
    file: Path | None,
) -> None:
    """Estimate one notebook, or all of a profile; the options are those of ``paperlib estimate --help``.

    Raises:
        NotebookError: With ``every``, a notebook of which nothing was measured.
        ValueError: An unknown notebook, profile or parameter, or a file that is no table of estimates.
    """
    project = find_project()
    values = parse_assignments(given)
    if every and (notebook or values):
        raise ValueError("--all: expected no notebook and no parameters beside it")
    if not every and not notebook:
        raise ValueError(f"notebook: expected one of {', '.join(project.stems()) or 'none yet'}, or --all")
    stems = project.stems() if every else [notebook]
    jobs = [plan(project, stem, profile=profile, given=values) for stem in stems]
    if file is not None:
        _rows(file)
    found = list[Estimate]()
    for job in jobs:
        started = time.monotonic()
        _say(f"{job.stem}, profile {profile}: measuring a few steps of each loop")
        found.append(estimate(job, made_up=not own_data, cell_seconds=cell_seconds, say=_say))
        _say(f"{job.stem}: {time.monotonic() - started:.0f} s")
        if file is not None:
            keep_row(file, found[-1])
    print(json.dumps([asdict(one) for one in found], indent=1) if as_json else _text(found))
    if failed := [one.notebook for one in found if one.stopped and not one.stages]:
        raise NotebookError(f"nothing was measured of: {', '.join(failed)}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _rows(file: Path) -> dict[tuple[str, str], dict[str, str]]:
    """Rows of a table of estimates, by notebook and profile; none where there is no file yet."""
    if not file.exists():
        return {}
    with file.open(encoding="utf-8", newline="") as lines:
        reader = csv.DictReader(lines)
        rows = {(row.get("notebook", ""), row.get("profile", "")): row for row in reader}
        if (found := reader.fieldnames) and "not counted" in found and all(map(all, rows)):
            return rows
    raise ValueError(f"--csv: {file} is no table of estimates; name another file")


def keep_row(file: Path, one: Estimate) -> None:
    """Put the row of this notebook into the table, in the place of an earlier one; other rows stay."""
    row = summary_row(one)
    rows = {**_rows(file), (one.notebook, one.profile): row}
    text = StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(row), extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows[key] for key in sorted(rows))
    write_text(file, text.getvalue())


def _text(found: Sequence[Estimate]) -> str:
    if len(found) > 1:
        rows = [summary_row(one) for one in found]
        parts = [_aligned([list(rows[0]), *([str(value) for value in row.values()] for row in rows)])]
    else:
        parts = [_details(found[0])]
    notes = list(dict.fromkeys(note for one in found for note in one.notes))
    return "\n".join([*parts, "", *(f"- {note}" for note in notes)])


def _details(one: Estimate) -> str:
    lines = [
        f"{one.notebook}, profile {one.profile}",
        "",
        _aligned(table_of(one)),
        "",
        f"GPU memory {one.gpu_memory_gb:.1f} GB, disk {one.disk_gb:.2f} GB, of it {one.download_gb:.2f} GB "
        "downloads. A star: counted, not timed.",
    ]
    lines += [f"Not counted, since a cell stopped: {stop}" for stop in one.stopped]
    return "\n".join(lines)


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)
