"""The command line: what each command takes, and its help.

Each command imports what it needs when it runs, so that help and completion answer at once.
"""

import os
from typing import Annotated

import typer

import paperlib
from paperlib.cli import audit, audit_data, audit_lm, plan
from paperlib.cli.guard import DEBUG_VARIABLE
from paperlib.cli.options import Assignments, Notebook, Parameters, Profile

app = typer.Typer(
    help="Audit the privacy of machine-learning models without retraining them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Examples:  paperlib audit my_scores.csv   |   paperlib audit my_scores.csv --fail-above 3   |   "
    "paperlib --debug audit my_scores.csv",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"paperlib {paperlib.__version__}")
        raise typer.Exit


@app.callback()
def common(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help=f"Show the traceback of an error; also with {DEBUG_VARIABLE}=1.")
    ] = False,
) -> None:
    """Options of the command itself."""
    context.ensure_object(dict)["debug"] |= debug
    if debug and DEBUG_VARIABLE not in os.environ:
        os.environ[DEBUG_VARIABLE] = "1"  # for the notebooks that the command runs
        context.call_on_close(lambda: os.environ.pop(DEBUG_VARIABLE, None))


app.command("audit", epilog=audit.EPILOG)(audit.audit)
app.command("audit-data", epilog=audit_data.EPILOG)(audit_data.audit_data)
app.command("audit-lm", epilog=audit_lm.EPILOG)(audit_lm.audit_lm)
app.command("plan", epilog=plan.EPILOG)(plan.plan)


@app.command(
    epilog="Examples:  paperlib run output_set_gain -p trials=20 -p seed=1 --profile smoke   |   "
    "paperlib run --all --profile default --jobs 2   |   paperlib run --all --seed 1"
)
def run(
    notebook: Notebook = "",
    assignments: Assignments = None,
    parameter: Parameters = None,
    profile: Profile = "default",
    every: Annotated[
        bool, typer.Option("--all", help="Run every notebook that changed, for the book.")
    ] = False,
    jobs: Annotated[int, typer.Option(help="Number of notebooks run at one time with --all.")] = 2,
    book: Annotated[bool, typer.Option("--book", help="Put this one run into the book.")] = False,
    seed: Annotated[
        int | None,
        typer.Option(help="Run once more with this seed, for the outcomes; the pages stay as they are."),
    ] = None,
    measured: Annotated[
        bool,
        typer.Option(
            "--measured", help="Put the result file with the committed ones, book/measured/PROFILE."
        ),
    ] = False,
) -> None:
    """Run one notebook with checked parameters into a new folder below runs/, or all into the book."""
    from paperlib.cli import notebooks

    given = [*(assignments or []), *(parameter or [])]
    notebooks.run(
        notebook, given, profile=profile, every=every, jobs=jobs, book=book, seed=seed, measured=measured
    )


@app.command(
    epilog="Values:  seed=0..4 (both ends)   epochs=20,50,100   sizes='[1,2];[3]' (of a parameter that is a "
    'list)   data=\'["a,b","c"]\' (texts that hold commas).   '
    "Examples:  paperlib sweep panoramia_images -p seed=0..4 --profile paper --dry-run   |   "
    "paperlib sweep output_set_gain -p trials=20,50 -p seed=0..9 --workers 4   |   "
    "paperlib sweep panoramia_dp -p seed=0..99 --profile paper --scheduler slurm:queue.yaml --workers 50"
)
def sweep(
    notebook: Notebook,
    parameter: Annotated[
        list[str] | None,
        typer.Option("-p", "--parameter", help="Values of one parameter, name=values; repeatable."),
    ] = None,
    profile: Profile = "default",
    scheduler: Annotated[
        str,
        typer.Option(
            help="local; tcp://HOST:8786 of a running Dask scheduler; slurm, as dask-jobqueue's own file "
            "sets it up; slurm:FILE.yaml or jobqueue:FILE.yaml. Default: PAPERLIB_SCHEDULER, or else local."
        ),
    ] = "",
    workers: Annotated[
        int | None,
        typer.Option(
            help="Runs at one time: local processes (default: one a GPU, or else one a core; 0: this process "
            "alone), or most jobs of a batch system (default: jobs in its file)."
        ),
    ] = None,
    retries: Annotated[int, typer.Option(help="New attempts of a run that lost its worker.")] = 3,
    name: Annotated[str, typer.Option(help="Name of the table; default: profile and values.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan, and the script of batch jobs; start nothing.")
    ] = False,
    table: Annotated[
        bool, typer.Option("--table", help="Write the table and print the outcomes of what is finished.")
    ] = False,
) -> None:
    """Run one notebook with all combinations of parameter values, here or on a cluster.

    Each combination is a run that is kept in runs/sweep/NOTEBOOK. A finished one is never repeated, so the
    same command goes on after an interrupt or a lost machine. A failing run stops no other. At the end come a
    table with a row per run, and for each setting the outcomes of all its seeds together.
    """
    from paperlib.cli.sweep import sweep_notebook

    sweep_notebook(
        notebook, parameter or [], profile=profile, scheduler=scheduler, workers=workers, retries=retries,
        name=name, dry_run=dry_run, table=table,
    )  # fmt: skip


@app.command("list", epilog="Example:  paperlib list --profile paper")
def list_notebooks(profile: Profile = "default") -> None:
    """List the notebooks with their parameters, what they reproduce, and the verdicts of their last run."""
    from paperlib.cli import notebooks

    notebooks.list_notebooks(profile)


@app.command(epilog="Example:  PAPERLIB_DATA=/data paperlib doctor")
def doctor() -> None:
    """Show what is installed, the hardware, where data is looked for, and where files can be written."""
    from paperlib.cli.doctor import doctor

    doctor()
