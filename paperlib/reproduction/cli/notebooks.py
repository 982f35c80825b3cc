"""``paperlib run`` and ``paperlib list``: the notebooks of a checkout."""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from paperlib.io.budget import UNTIL_VARIABLE, BudgetSpent
from paperlib.reproduction import running
from paperlib.reproduction.cli.options import Notebook, Profile

EXAMPLES = {
    "run": """
paperlib run output_set_gain -p trials=20 -p seed=1 --profile smoke
paperlib run --all --profile default --jobs 2
paperlib run --all --seed 1
paperlib run panoramia_images --profile gpu --minutes 9
""",
    "list": """
paperlib list --profile paper
paperlib list --profile gpu --costs
""",
}
"""What help shows below each command, one call a line."""


_P = "PAPERLIB_P"
"""What ``make run`` leaves in the environment: its P as it was typed."""
_FROM = "PAPERLIB_FROM"
"""What ``make run`` leaves in the environment: the folder it was called from."""
CUT = 75
"""The exit code of a run whose time was over (EX_TEMPFAIL of sysexits); the same goes on."""


def run(
    notebook: Notebook = "",
    assignments: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME=VALUE", help="Parameters as name=value, the same as with -p."),
    ] = None,
    *,
    parameter: Annotated[
        list[str] | None,
        typer.Option("-p", "--parameter", help="One parameter, name=value; repeatable."),
    ] = None,
    profile: Profile = "default",
    every: Annotated[
        bool, typer.Option("--all", help="Run every notebook that changed, for the book.")
    ] = False,
    jobs: Annotated[int, typer.Option(help="Number of notebooks run at one time with --all.")] = 2,
    book: Annotated[bool, typer.Option("--book", help="Add this run to the book.")] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="Run again with this seed, for the outcomes; the pages do not change."
        ),
    ] = None,
    measured: Annotated[
        bool,
        typer.Option(
            "--measured",
            help="Store the result file with the committed ones, book/measured/PROFILE.",
        ),
    ] = False,
    minutes: Annotated[
        float | None,
        typer.Option(
            help="Stop after so many minutes (exit code 75): the same command then goes on."
        ),
    ] = None,
) -> None:
    """Run one notebook, or all of them into the book.

    Parameters are checked. One notebook gets a new folder below runs/.
    """
    project = running.find_project()
    typed = running.split_assignments(os.environ.pop(_P, ""))
    values = running.parse_assignments([*(assignments or []), *(parameter or []), *typed])
    folder = Path(os.environ.pop(_FROM, "") or Path.cwd())
    is_aside = not (every or book or seed is not None)
    if measured and (not is_aside or project.made_up(profile)):
        raise ValueError(
            "--measured: expected one run on true data, without --all, --book and --seed"
        )
    if minutes is not None:
        _check_minutes(minutes, is_aside=is_aside)
    _check_gpu(project, profile)
    if every:
        if notebook or values:
            raise ValueError("--all: expected no notebook and no parameters beside it")
        _run_all(project, profile, jobs, seed)
        return
    if not notebook:
        raise ValueError(
            f"notebook: expected one of {', '.join(project.stems()) or 'none yet'}, or --all"
        )
    # Paths of a kept run are those of its profile, which are seen from the checkout.
    is_kept = book or seed is not None
    job = running.plan(
        project,
        notebook,
        profile=profile,
        given=values,
        seed=seed,
        where=project.root if is_kept else folder,
    )
    if seed is not None:
        _keep_run(job, is_alone=not (values or book))
    elif book:
        running.run_into_book(job)
    else:
        _run_within(minutes, partial(_run_aside, job, folder, measured=measured))


def _check_gpu(project: "running.Project", profile: str) -> None:
    """Refuse a profile sized for a GPU where torch finds none: it would train for days."""
    if not project.needs_gpu(profile):
        return
    import torch

    if not torch.cuda.is_available():
        raise ValueError(
            f"--profile {profile}: expected a GPU, and torch finds none on this machine; "
            "--profile rehearsal_gpu runs the same code here with small counts"
        )


def _check_minutes(minutes: float, *, is_aside: bool) -> None:
    """Refuse a time that is none, and one for runs that the book keeps."""
    if not 0 < minutes < float("inf"):
        raise ValueError(f"--minutes: expected a number above 0, got {minutes}")
    if not is_aside:
        raise ValueError("--minutes: expected one run, without --all, --book and --seed")


def _run_within(minutes: float | None, run: Callable[[], None]) -> None:
    """Run to the end, or end the command with the exit code `CUT` where so many minutes are not
    enough; None sets no limit.
    """
    from paperlib.reproduction.running.execute import variables_set

    until = {} if minutes is None else {UNTIL_VARIABLE: str(time.time() + 60 * minutes)}
    try:
        with variables_set(until):
            run()
    except BudgetSpent as spent:
        print(spent, file=sys.stderr)
        raise typer.Exit(CUT) from None


def _keep_run(job: "running.Job", *, is_alone: bool) -> None:
    """Run a notebook with a seed of its own, and keep its outcomes beside those of other seeds; a
    ValueError where other options stand beside the seed, so that it is not ``is_alone``.
    """
    if not is_alone:
        raise ValueError("--seed: expected neither parameters nor --book beside it; see -p seed=1")
    print(f"Kept for the outcomes: {running.keep_run(job)}")


def _run_all(project: "running.Project", profile: str, jobs: int, seed: int | None) -> None:
    """Run all notebooks; an error names those that failed."""
    say = partial(print, flush=True)
    failed = running.run_all(project, profile=profile, jobs=jobs, seed=seed, say=say)
    if failed:
        raise running.NotebookError(f"failed: {', '.join(failed)}; the other notebooks are done")


def _run_aside(job: "running.Job", folder: Path, *, measured: bool) -> None:
    """Run a notebook into a folder of its own and print its outcomes, with paths as seen from
    ``folder``; ``measured`` adds its result file to those that are committed.
    """
    from paperlib.io import read_result
    from paperlib.reproduction.running.execute import PAGE, RESULT

    run_folder = running.run_aside(job)
    result = read_result(run_folder / RESULT)
    for target, outcome in running.outcomes(result).items():
        print(f"{target}: {outcome}")
    for answer in running.answers_in(result):
        print(f"{answer.words(folder)}\n")
    print(f"Executed notebook: {run_folder / PAGE}\nResult file:       {run_folder / RESULT}")
    if measured:
        print(f"To be committed:   {_copied_to_measured(job, run_folder / RESULT)}")


def _copied_to_measured(job: "running.Job", result_file: Path) -> Path:
    """Copy a result file to the committed ones, and return the path there: one of the same
    parameters is replaced, one of others stays, and the new one gets a hash behind its name.
    """
    from paperlib.io import read_result
    from paperlib.io.files import write_bytes

    target = job.project.measured / job.profile / f"{job.stem}.json"
    parameters = read_result(result_file).parameters
    if target.exists() and read_result(target).parameters != parameters:
        target = target.with_stem(f"{job.stem}-{job.fingerprint[:8]}")
    write_bytes(target, result_file.read_bytes())
    return target


def list_notebooks(
    *,
    profile: Profile = "default",
    costs: Annotated[
        bool,
        typer.Option(
            "--costs", help="Count instead what the targets for one GPU ask of it, by stage."
        ),
    ] = False,
) -> None:
    """List the notebooks with parameters and last verdicts.

    It also says what each of them reproduces.
    """
    from paperlib.reproduction.exhibits import targets

    project = running.find_project()
    if costs:
        _write_costs(project, profile)
        return
    results = {result.notebook: result for result in running.book_results(project)}
    rows = targets().to_dict("records")
    for stem in project.stems():
        values = running.plan(project, stem, profile=profile).parameters
        print(f"{stem}: {_title(project.notebook(stem))}")
        for item in running.notebook_parameters(project.notebook(stem)):
            print(f"    {replace(item, default=values[item.name])}")
        result = results.get(stem)
        outcomes = {} if result is None else running.outcomes(result)
        for row in rows:
            if stem in str(row["notebook"]).split("; "):
                print(f"    reproduces {row['id']}: {outcomes.get(row['id'], 'not yet')}")
        if result is not None:
            print(f"    last run: {result.provenance['date']}, profile {result.profile}")
        print()


def _write_costs(project: "running.Project", profile: str) -> None:
    """Count the stages of the profile gpu, print a sum for each notebook, and write the table that
    the book shows, in which times that were measured stay; a ValueError for another profile.
    """
    if profile != "gpu":
        raise ValueError(f"--costs: expected --profile gpu, got {profile!r}")
    import pandas as pd

    from paperlib.io.files import write_text
    from paperlib.reproduction.papers.chip_costs import chip_costs, with_measured

    table = chip_costs(lambda stem: running.plan(project, stem, profile=profile).parameters)
    path = project.measured / "estimates" / "chip_costs.csv"
    table = with_measured(table, pd.read_csv(path) if path.is_file() else None)
    write_text(path, table.to_csv(index=False, float_format="%.4g"))
    for stem, stages in table.groupby("notebook", sort=False):
        total = stages[["PFLOP", "estimate, s"]].sum()
        print(f"{stem}: {total['PFLOP']:.3g} PFLOP, {total['estimate, s']:.0f} s at 40 % of peak")
    print(f"By stage: {path.relative_to(project.root)}")


def _title(notebook: Path) -> str:
    """The first heading of a notebook in its Markdown cells, without marks; "(no title)"
    for none.
    """
    from paperlib.reproduction.running.parameters import read_notebook

    for cell in read_notebook(notebook).cells:
        if cell.cell_type != "markdown":
            continue
        for line in cell.source.splitlines():
            if line.startswith("#"):
                return line.lstrip("# ").replace("\\", "")
    return "(no title)"
