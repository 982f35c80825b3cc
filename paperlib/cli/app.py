"""The command line: options, help texts, completion and exit codes.

Each command imports what it needs when it runs, so that help and completion answer at once.
"""

import signal
import sys
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer

import paperlib

USAGE_ERROR, INTERRUPTED = 2, 130

app = typer.Typer(
    help="Audit the privacy of machine-learning models without retraining them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"paperlib {paperlib.__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of the command itself."""


def _names(pattern: str) -> list[str]:
    """Names that the shell can complete; none outside a checkout."""
    from paperlib.running.project import find_project

    try:
        folder = find_project().notebooks
    except ValueError:
        return []
    return sorted(path.stem for path in folder.glob(pattern))


def notebook_names() -> list[str]:
    return _names("*.ipynb")


def profile_names() -> list[str]:
    return _names("profiles/*.yaml")


Profile = Annotated[
    str,
    typer.Option(
        help="Profile of parameters: smoke, default, rehearsal, paper, ...", autocompletion=profile_names
    ),
]


@app.command(
    epilog="Examples:  paperlib run output_set_gain -p trials=20 -p seed=1 --profile smoke   |   "
    "paperlib run --all --profile default --jobs 2   |   paperlib run --all --seed 1"
)
def run(
    notebook: Annotated[
        str, typer.Argument(help="Name of a notebook; see `paperlib list`.", autocompletion=notebook_names)
    ] = "",
    assignments: Annotated[
        list[str] | None, typer.Argument(help="Parameters as name=value, the same as with -p.")
    ] = None,
    parameter: Annotated[
        list[str] | None, typer.Option("-p", "--parameter", help="One parameter, name=value; repeatable.")
    ] = None,
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
    notebook: Annotated[
        str, typer.Argument(help="Name of a notebook; see `paperlib list`.", autocompletion=notebook_names)
    ],
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


@app.command(
    epilog="Examples:  paperlib estimate panoramia_images --profile paper   |   "
    "paperlib estimate nid_dp_audit -p models=2 --profile paper --json   |   "
    "paperlib estimate --all --profile paper --csv costs.csv"
)
def estimate(
    notebook: Annotated[
        str, typer.Argument(help="Name of a notebook; see `paperlib list`.", autocompletion=notebook_names)
    ] = "",
    assignments: Annotated[
        list[str] | None, typer.Argument(help="Parameters as name=value, the same as with -p.")
    ] = None,
    parameter: Annotated[
        list[str] | None, typer.Option("-p", "--parameter", help="One parameter, name=value; repeatable.")
    ] = None,
    profile: Profile = "paper",
    every: Annotated[bool, typer.Option("--all", help="Estimate every notebook.")] = False,
    own_data: Annotated[
        bool,
        typer.Option(help="Take the data at hand; by default made-up data of the official sizes."),
    ] = False,
    cell_seconds: Annotated[
        float, typer.Option(help="Most seconds of a cell; one that takes longer is named as not counted.")
    ] = 900.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON with every stage.")] = False,
    file: Annotated[
        Path | None, typer.Option("--csv", help="Table that gets a row per notebook; other rows stay.")
    ] = None,
) -> None:
    """Estimate a run's arithmetic, memory, disk, download and hours on some chips, without running it.

    The notebook itself is run on made-up data with every long loop cut to a few measured steps, which takes
    minutes and keeps nothing. What is assumed about chips is printed below the table.
    """
    from paperlib.cli.estimate import estimate_notebooks

    given = [*(assignments or []), *(parameter or [])]
    estimate_notebooks(
        notebook, given, profile=profile, every=every, own_data=own_data, cell_seconds=cell_seconds,
        as_json=as_json, file=file,
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


ScoreColumn = Annotated[str | None, typer.Option(help="Score column; default: score or loss.")]
MemberColumn = Annotated[str | None, typer.Option(help="Membership column; default: member.")]
Kind = Annotated[
    Literal["scores", "losses"] | None,
    typer.Option(
        help="scores: higher values point to members; losses: lower values do. Default: by column name."
    ),
]
Losses = Annotated[bool, typer.Option("--losses", help="The same as --kind losses.")]
GuessOption = Annotated[
    Literal["adaptive", "both", "members", "nonmembers", "grid"],
    typer.Option(
        help="Guess on the end of the scores that is right more often so far, on both ends, on likely "
        "members or likely non-members only, or over a grid of pairs."
    ),
]


@app.command(
    epilog="Examples:  paperlib audit my_scores.csv   |   paperlib audit losses.parquet --score-column nll "
    "--member-column in_train --losses --delta 1e-5   |   paperlib audit members.npy others.npy --kind losses"
)
def audit(
    file: Annotated[
        Path,
        typer.Argument(
            help="CSV, Parquet, NPZ or NPY with a score or loss column and a membership column (1/0, "
            "true/false, in/out); with a second file, the members' scores."
        ),
    ],
    nonmembers: Annotated[Path | None, typer.Argument(metavar="[FILE2]", help="Non-members' scores.")] = None,
    score_column: ScoreColumn = None,
    member_column: MemberColumn = None,
    kind: Kind = None,
    losses: Losses = False,
    delta: Annotated[float, typer.Option(help="Delta of the DP guarantee that is tested, in [0, 1).")] = 0.0,
    confidence: Annotated[
        float, typer.Option(help="Confidence level of each number by itself, in (0, 1).")
    ] = 0.95,
    guess: GuessOption = "adaptive",
    design: Annotated[
        Literal["randomized", "game", "played"],
        typer.Option(
            help="randomized: fair coins chose the members; game: draw a fair-coin subsample; played: fair "
            "coins chose after training who is shown."
        ),
    ] = "randomized",
    seed: Annotated[int, typer.Option(help="Seed of all random splits, 0 or more.")] = 0,
    output: Annotated[
        Path | None, typer.Option(help="Path of the HTML report; default: FILE-audit.html in this folder.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, and write a report only with --output.")
    ] = False,
) -> None:
    """Audit the scores of a trained model: numbers, what each of them supports, and an HTML report."""
    from paperlib.cli.audit import audit_file
    from paperlib.core import check_confidence, check_delta

    check_confidence(confidence)
    check_delta(delta)
    if losses and kind == "scores":
        raise ValueError("--losses: contradicts --kind scores")
    audit_file(
        file,
        nonmembers,
        {
            "score_column": score_column,
            "member_column": member_column,
            "kind": "losses" if losses else kind,
        },
        {"delta": delta, "confidence": confidence, "guess": guess, "design": design, "seed": seed},
        output=output,
        as_json=as_json,
    )


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

    if losses and kind == "scores":
        raise ValueError("--losses: contradicts --kind scores")
    columns = {
        "score_column": score_column, "member_column": member_column, "kind": "losses" if losses else kind,
    }  # fmt: skip
    options = {
        "m": m, "epsilon": epsilon, "delta": delta, "confidence": confidence, "guess": guess,
        "simulations": simulations, "seed": seed,
    }  # fmt: skip
    print_plan(auc, pilot, nonmembers, columns, options, as_json=as_json)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def main() -> None:
    """Run the command; a mistake of the user ends with one message on stderr and exit code 2."""
    signal.signal(signal.SIGTERM, _interrupt)
    sys.exit(_guarded())


def _guarded() -> int:
    try:
        code = app(standalone_mode=False)
        # Typer turns a Ctrl-C into this exit code without a word.
        return _interrupted() if code == INTERRUPTED else code if isinstance(code, int) else 0
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except typer.Exit as stop:
        return stop.exit_code
    except Exception as error:
        return _explained(error)


def _explained(error: Exception) -> int:
    """The exit code after one message on stderr; what is no mistake of the user is raised again."""
    # Typer's usage errors come from the copy of click it carries, which has no public name.
    usage = getattr(error, "format_message", None)
    if usage is not None:
        return _complain(usage(), USAGE_ERROR)
    if isinstance(error, ValueError | FileNotFoundError | PermissionError | IsADirectoryError):
        return _complain(str(error), USAGE_ERROR)

    from paperlib.io import OutputError
    from paperlib.running import NotebookError

    if isinstance(error, OutputError):
        return _complain(str(error), USAGE_ERROR)
    if isinstance(error, NotebookError):
        return _complain(str(error), 1)
    raise error


def _interrupted() -> int:
    return _complain("interrupted; no half-finished result was kept", INTERRUPTED)


def _complain(message: str, code: int) -> int:
    print(f"paperlib: {message}", file=sys.stderr)
    return code
