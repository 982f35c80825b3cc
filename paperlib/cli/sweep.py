"""``paperlib sweep``: one notebook over many parameter values, in many processes or on many
machines.
"""

import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from paperlib import running
from paperlib.cli.options import Notebook, Profile

if TYPE_CHECKING:
    from paperlib.io import Place
    from paperlib.running import Unit

_MOST_LISTED = 20
_LONGEST_NAME = 100


def sweep_notebook(
    notebook: Notebook,
    parameter: list[str] | None = None,
    profile: Profile = "default",
    scheduler: str = "",
    workers: int | None = None,
    retries: int = 3,
    name: str = "",
    dry_run: bool = False,
    table: bool = False,
) -> None:
    """Run one notebook with all combinations of parameter values, here or on a cluster.

    Each combination is a run, stored in runs/sweep/NOTEBOOK. A finished run is never repeated, so
    the same command continues after an interrupt or a lost machine. A failing run does not stop the
    others. The output is a table with a row per run, and for each setting the outcomes of all its
    seeds together.
    """
    from paperlib.core import check_at_least
    from paperlib.io import SweepError, config_hash, sweep_place

    given = parameter or []
    project = running.find_project()
    units = running.plan_units(
        project, notebook, profile=profile, given=running.parse_assignments(given)
    )
    if not name:  # it says the values as far as a file name can
        name = re.sub(r"[^\w.,=+-]+", "-", ",".join([profile, *given]))
        if len(name) > _LONGEST_NAME:
            name = f"{name[:_LONGEST_NAME]}-{config_hash({'': name})[:8]}"
    path = running.sweep_folder(project, units[0].stem) / f"{name}.csv"
    check_at_least(0, retries=retries, workers=1 if workers is None else workers)
    if table:
        _show_results(units, path, {})
        return
    place = None if workers == 0 else sweep_place(scheduler, workers=workers, said_by="--scheduler")
    _print_plan(units, place)
    if dry_run:
        return
    failed: dict[Unit, str] = {}
    message = ""
    try:
        for _ in running.run_notebook_units(units, place=place, retries=retries):
            pass
    except SweepError as error:
        for (
            unit,
            cause,
        ) in error.failures:  # the cell and the message of its error, and where its log is
            lines = str(cause).splitlines() or [type(cause).__name__]
            logged = len(lines) > 1 and lines[-1].startswith("No result")
            failed[unit] = f"{lines[0]} ({lines[-1]})" if logged else lines[0]
        listed = [f"  {unit!r}: {said}" for unit, said in list(failed.items())[:_MOST_LISTED]]
        if len(failed) > _MOST_LISTED:
            listed.append(f"  and {len(failed) - _MOST_LISTED} more, all in the table")
        head = f"{len(failed)} of {len(units)} runs failed; the others are kept"
        message = "\n".join([head, *listed]) if failed else str(error)
    except KeyboardInterrupt:
        kept = f"{_finished(units)} of {len(units)} runs are finished and kept"
        print(f"\n{kept}; the same command goes on", file=sys.stderr)
        raise
    _show_results(units, path, failed)
    if message:
        raise running.NotebookError(message)


def _print_plan(units: "list[Unit]", place: "Place | None") -> None:
    from paperlib.io import job_script, visible_devices

    project, stem, profile = units[0].project, units[0].stem, units[0].profile
    finished = _finished(units)
    left = len(units) - finished
    print(f"{stem}, profile {profile}: {len(units)} runs, {finished} of them finished")
    settings = Counter(unit.setting for unit in units)
    for words, count in list(settings.items())[:_MOST_LISTED]:
        print(f"    {words}: {count} runs")
    if len(settings) > _MOST_LISTED:
        print(f"    and {len(settings) - _MOST_LISTED} more settings")
    if place is None:
        where = "this process"
    elif place.address:
        where = f"the workers of {place.address}"
    elif place.system:
        where = f"{place.system}, at most {place.workers} jobs"
    else:
        devices = visible_devices()
        each = f", one GPU each ({', '.join(devices)})" if devices else ""
        where = f"{place.workers} processes of this machine{each}"
    print(f"Where: {where}")
    mean = running.mean_run(project, stem, profile)
    if mean is None:
        print("Time and disk: unknown, as no such run is finished")
    else:
        seconds, size = mean
        hours = left * seconds / 3600
        at_one_time = 1 if place is None or place.address else place.workers
        print(
            f"Time: {seconds:.1f} s a run (mean of finished ones), {hours:.2g} hours for the "
            f"{left} left, {hours / at_one_time:.2g} with {at_one_time} at one time"
        )
        print(
            f"Disk: {size / 1e6:.2f} MB a run, {left * size / 1e6:.1f} MB for {left} left, "
            "beside caches"
        )
    print(f"Kept in {running.sweep_folder(project, stem)}")
    if place is not None and (script := job_script(place)):
        print(f"Each job:\n{script.strip()}")


def _finished(units: "list[Unit]") -> int:
    return sum(unit.result() is not None for unit in units)


def _show_results(units: "list[Unit]", path: Path, failed: "dict[Unit, str]") -> None:
    if path.parent.is_dir():
        list(
            path.parent.iterdir()
        )  # makes a network file system look for what other machines wrote
    for words, (seeds, said) in running.pooled_by_setting(units).items():
        print(f"\n{words}: {seeds} finished")
        for target, outcome in said.items():
            print(f"    {target}: {outcome}")
    running.write_table(path, units, failed)
    print(f"\nTable: {path}")
