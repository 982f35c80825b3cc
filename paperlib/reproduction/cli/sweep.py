"""``paperlib sweep``: one notebook over many parameter values, in many processes or on many
machines.
"""

import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paperlib.reproduction import running
from paperlib.reproduction.cli.options import Notebook, Profile

if TYPE_CHECKING:
    from paperlib.reproduction.running import Unit
    from paperlib.reproduction.sweeps import Place

EXAMPLES = {
    "sweep": """
paperlib sweep panoramia_images -p seed=0..4 --profile paper --dry-run
paperlib sweep output_set_gain -p trials=20,50 -p seed=0..9 --workers 4
paperlib sweep panoramia_dp -p seed=0..99 --scheduler slurm:queue.yaml
# both lists, and both texts, which hold commas, are tried:
paperlib sweep output_set_shapes -p sizes='[1,2];[3]' -p data='["a,b","c"]'
""",
}
"""What help shows below each command, one call a line."""


_MOST_LISTED = 20  # settings, or failed runs, that are printed
_LONGEST_NAME = 100  # characters of a table's name, which becomes a file name


def sweep_notebook(
    notebook: Notebook,
    *,
    parameter: Annotated[
        list[str] | None,
        typer.Option("-p", "--parameter", help="Values of one parameter, name=values; repeatable."),
    ] = None,
    profile: Profile = "default",
    scheduler: Annotated[
        str,
        typer.Option(
            help=(
                "local; tcp://HOST:8786 of a running Dask scheduler; slurm, as in dask-jobqueue's"
                " own file; slurm:FILE.yaml or jobqueue:FILE.yaml. Default: PAPERLIB_SCHEDULER, "
                "else local."
            )
        ),
    ] = "",
    workers: Annotated[
        int | None,
        typer.Option(
            help=(
                "Parallel runs: local processes (default: one per GPU, else one per core; 0: this"
                " process alone), or most jobs of a batch system (default: jobs in its file)."
            )
        ),
    ] = None,
    retries: Annotated[int, typer.Option(help="New attempts of a run that lost its worker.")] = 3,
    name: Annotated[str, typer.Option(help="Name of the table; default: profile and values.")] = "",
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print the plan and the script of batch jobs; start nothing."
        ),
    ] = False,
    table: Annotated[
        bool,
        typer.Option("--table", help="Write the table and print the outcomes of finished runs."),
    ] = False,
) -> None:
    """Run one notebook over many values, here or on a cluster.

    Each combination of parameter values is a run, stored in runs/sweep/NOTEBOOK. A finished run is
    never repeated, so the same command continues after an interrupt or a lost machine. A failing
    run does not stop the others. The output is a table with a row per run, and for each setting the
    outcomes of all its seeds together.
    """
    from paperlib.core.checks import check_at_least
    from paperlib.reproduction.sweeps import SweepError, sweep_place

    if Path(name).name != name:
        raise ValueError(f"--name: expected a name without folders; got {name!r}")
    assignments = parameter or []
    project = running.find_project()
    units = running.plan_units(
        project, notebook, profile=profile, given=running.parse_assignments(assignments)
    )
    table_name = name or _table_name(profile, assignments)
    path = running.sweep_folder(project, units[0].stem) / f"{table_name}.csv"
    check_at_least(0, retries=retries, workers=1 if workers is None else workers)
    if table:
        _show_results(units, path, {})
        return
    destination = (
        None if workers == 0 else sweep_place(scheduler, workers=workers, named_by="--scheduler")
    )
    _print_plan(units, destination)
    if dry_run:
        return
    failed: dict[Unit, str] = {}
    message = ""
    try:
        for _ in running.run_notebook_units(units, place=destination, retries=retries):
            pass
    except SweepError as error:
        failed = {unit: _cause(cause) for unit, cause in error.failures}
        message = _failure_message(failed, len(units)) if failed else str(error)
    except KeyboardInterrupt:
        kept = f"{_finished(units)} of {len(units)} runs are finished and kept"
        print(f"\n{kept}; the same command goes on", file=sys.stderr)
        raise
    _show_results(units, path, failed)
    if message:
        raise running.NotebookError(message)


def _table_name(profile: str, assignments: list[str]) -> str:
    """A file name that says profile and values; a long one is cut, and ends in a hash of all."""
    from paperlib.io.files import config_hash

    name = re.sub(r"[^\w.,=+-]+", "-", ",".join([profile, *assignments]))
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}-{config_hash({'': name})[:8]}"
    return name


def _cause(error: object) -> str:
    """A run's error in one line: its first line, with the cell and the message, and the last one
    where that names the log.
    """
    lines = str(error).splitlines() or [type(error).__name__]
    has_log = len(lines) > 1 and lines[-1].startswith("No result")
    return f"{lines[0]} ({lines[-1]})" if has_log else lines[0]


def _failure_message(failed: "dict[Unit, str]", units: int) -> str:
    """How many runs failed, and the first of them with their causes."""
    lines = [f"{len(failed)} of {units} runs failed; the others are kept"]
    for unit, cause in list(failed.items())[:_MOST_LISTED]:
        lines.append(f"  {unit!r}: {cause}")
    if len(failed) > _MOST_LISTED:
        lines.append(f"  and {len(failed) - _MOST_LISTED} more, all in the table")
    return "\n".join(lines)


def _print_plan(units: "list[Unit]", destination: "Place | None") -> None:
    """Print how many runs there are, where they run, and what they need."""
    from paperlib.reproduction.sweeps import job_script

    project = units[0].project
    stem = units[0].stem
    profile = units[0].profile
    finished = _finished(units)
    print(f"{stem}, profile {profile}: {len(units)} runs, {finished} of them finished")
    settings = Counter(unit.setting for unit in units)
    for words, count in list(settings.items())[:_MOST_LISTED]:
        print(f"    {words}: {count} runs")
    if len(settings) > _MOST_LISTED:
        print(f"    and {len(settings) - _MOST_LISTED} more settings")
    print(f"Where: {_where(destination)}")
    at_one_time = 1 if destination is None or destination.address else destination.workers
    _print_needs(running.mean_run(project, stem, profile), len(units) - finished, at_one_time)
    print(f"Kept in {running.sweep_folder(project, stem)}")
    script = None if destination is None else job_script(destination)
    if script:
        print(f"Each job:\n{script.strip()}")


def _where(destination: "Place | None") -> str:
    """Where runs take place, in words."""
    from paperlib.reproduction.sweeps import visible_devices

    if destination is None:
        return "this process"
    if destination.address:
        return f"the workers of {destination.address}"
    if destination.system:
        return f"{destination.system}, at most {destination.workers} jobs"
    devices = visible_devices()
    each = f", one GPU each ({', '.join(devices)})" if devices else ""
    return f"{destination.workers} processes of this machine{each}"


def _print_needs(mean_run: tuple[float, float] | None, left: int, at_one_time: int) -> None:
    """Print time and disk for the runs that are left, by the mean seconds and bytes of a run."""
    if mean_run is None:
        print("Time and disk: unknown, as no such run is finished")
        return
    seconds, size = mean_run
    hours = left * seconds / 3600
    print(
        f"Time: {seconds:.1f} s a run (mean of finished ones), {hours:.2g} hours for the "
        f"{left} left, {hours / at_one_time:.2g} with {at_one_time} at one time"
    )
    print(
        f"Disk: {size / 1e6:.2f} MB a run, {left * size / 1e6:.1f} MB for {left} left, "
        "beside caches"
    )


def _finished(units: "list[Unit]") -> int:
    """Number of runs with a result."""
    return sum(unit.result() is not None for unit in units)


def _show_results(units: "list[Unit]", path: Path, failed: "dict[Unit, str]") -> None:
    """Print the outcomes of each setting, and write the table of all runs to ``path``; ``failed``
    has the errors of this sweep, a line each.
    """
    if path.parent.is_dir():
        # Makes a network file system look for what other machines wrote.
        list(path.parent.iterdir())
    for setting, (seeds, outcomes) in running.pooled_by_setting(units).items():
        print(f"\n{setting}: {seeds} finished")
        for target, outcome in outcomes.items():
            print(f"    {target}: {outcome}")
    running.write_table(path, units, failed)
    print(f"\nTable: {path}")
