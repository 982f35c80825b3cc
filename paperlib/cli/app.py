"""The command line: what each command takes, and its help.

Each command imports what it needs when it runs, so that help and completion answer at once.
"""

import os
from pathlib import Path
from typing import Annotated

import typer

import paperlib
from paperlib.cli import audit_data, audit_lm
from paperlib.cli.guard import DEBUG_VARIABLE
from paperlib.cli.options import (
    AboutFile,
    AsJson,
    Assignments,
    ClaimedEpsilon,
    Confidence,
    Delta,
    DesignOption,
    FailAbove,
    GuessOption,
    Junit,
    Kind,
    Losses,
    MemberColumn,
    Notebook,
    Output,
    Parameters,
    Profile,
    ScoreColumn,
    Seed,
)

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


@app.command(
    epilog="Examples:  paperlib audit my_scores.csv   |   paperlib audit losses.parquet --score-column value "
    "--member-column in_train --losses --delta 1e-5   |   paperlib audit members.npy others.npy --kind "
    "losses   |   paperlib audit my_scores.csv --claimed-epsilon 3 --fail-above 3 --junit audit.xml --about "
    "audit.yaml   |   zcat losses.csv.gz | paperlib audit - --json"
)
def audit(
    file: Annotated[
        str,
        typer.Argument(
            help="CSV, Parquet, JSON lines, NPZ, NPY or tensors with a score or loss column and a membership "
            "column (1/0, true/false, in/out); with a second file, the members' scores; - for standard input."
        ),
    ],
    nonmembers: Annotated[str | None, typer.Argument(metavar="[FILE2]", help="Non-members' scores.")] = None,
    score_column: ScoreColumn = None,
    member_column: MemberColumn = None,
    kind: Kind = None,
    losses: Losses = False,
    id_column: Annotated[
        str | None, typer.Option(help="Column that names each example, for the report's most exposed ones.")
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            help="Column that says what one record is, such as a customer or an id with several rows: the "
            "values of its rows are averaged, and the claim is about one unit."
        ),
    ] = None,
    group_column: Annotated[
        str | None, typer.Option(help="Column of groups, for the report's table per group.")
    ] = None,
    delta: Delta = 0.0,
    confidence: Confidence = 0.95,
    guess: GuessOption = "adaptive",
    design: DesignOption = "randomized",
    seed: Seed = 0,
    claimed_epsilon: ClaimedEpsilon = None,
    fail_above: FailAbove = None,
    junit: Junit = None,
    about: AboutFile = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Audit the scores of a trained model: the answer in words, the numbers behind it, and an HTML report."""
    from paperlib.cli.audit import audit_file
    from paperlib.cli.gate import Wishes

    columns = {
        "score_column": score_column, "member_column": member_column, "kind": _kind(kind, losses),
        "id_column": id_column, "group_column": group_column, "unit_column": unit,
    }  # fmt: skip
    options = {"delta": delta, "confidence": confidence, "guess": guess, "design": design, "seed": seed}
    wishes = Wishes(
        claimed_epsilon=claimed_epsilon, fail_above=fail_above, junit=junit, about=about, output=output,
        as_json=as_json,
    )  # fmt: skip
    raise typer.Exit(audit_file(file, nonmembers, columns, options, wishes))


def _kind(kind: str | None, losses: bool) -> str | None:
    """One answer of the options --kind and --losses.

    Raises:
        ValueError: They contradict each other.
    """
    if losses and kind == "scores":
        raise ValueError("--losses: contradicts --kind scores")
    return "losses" if losses else kind


app.command("audit-data", epilog=audit_data.EPILOG)(audit_data.audit_data)
app.command("audit-lm", epilog=audit_lm.EPILOG)(audit_lm.audit_lm)


@app.command(
    epilog="Examples:  paperlib plan --m 1000 --delta 1e-5   |   paperlib plan --epsilon 2 --auc 0.7   |   "
    "paperlib plan --m 10000 --pilot scores.csv   |   paperlib plan --epsilon 1 --pilot nll.csv --losses"
)
def plan(
    m: Annotated[
        int | None, typer.Option("--m", help="Audit examples at hand, each included by a fair coin.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Epsilon to be shown: prints the fewest examples that do on average.")
    ] = None,
    auc: Annotated[
        float | None, typer.Option(help="AUC expected of the attack, in [0.5, 1). Default: a perfect attack.")
    ] = None,
    pilot: Annotated[
        Path | None,
        typer.Option(help="Scores of a pilot attack, in a file as `paperlib audit` reads; else --auc."),
    ] = None,
    nonmembers: Annotated[
        Path | None, typer.Option(help="Non-members' scores of the pilot, if they have a file of their own.")
    ] = None,
    score_column: ScoreColumn = None,
    member_column: MemberColumn = None,
    kind: Kind = None,
    losses: Losses = False,
    delta: Annotated[float, typer.Option(help="Delta of the DP guarantee to be tested, in [0, 1).")] = 0.0,
    confidence: Annotated[float, typer.Option(help="Confidence level of the bound, in (0, 1).")] = 0.95,
    guess: GuessOption = "adaptive",
    simulations: Annotated[
        int | None, typer.Option(help="Simulated audits; default: 100, fewer above 10,000 examples.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the simulation, 0 or more.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Plan an audit: the epsilon that m examples can show, or the examples that an epsilon needs.

    Without --auc or --pilot the plan is for a perfect attack: the ceiling of any audit of this size. With
    one of them, audits by that attack are simulated: their mean bound, and the range of 80 % of them.
    """
    from paperlib.cli.plan import print_plan

    columns = {"score_column": score_column, "member_column": member_column, "kind": _kind(kind, losses)}
    options = {
        "m": m, "epsilon": epsilon, "delta": delta, "confidence": confidence, "guess": guess,
        "simulations": simulations, "seed": seed,
    }  # fmt: skip
    print_plan(auc, pilot, nonmembers, columns, options, as_json=as_json)


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
