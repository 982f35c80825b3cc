"""The command line: what each command takes, and its help.

Each command imports what it needs when it runs, so that help and completion answer at once.
"""

import os
from typing import Annotated

import typer

import paperlib
from paperlib.cli import coins, combine, notebooks, plan, seal, sweep
from paperlib.cli.audits import chat, data, identifiers, language_model, release, scores, texts
from paperlib.cli.guard import DEBUG_VARIABLE

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


app.command("audit", epilog=scores.EPILOG)(scores.audit)
app.command("audit-data", epilog=data.EPILOG)(data.audit_data)
app.command("audit-lm", epilog=language_model.EPILOG)(language_model.audit_lm)
app.command("audit-chat", epilog=chat.EPILOG)(chat.audit_chat)
app.command("identifiers", epilog=identifiers.EPILOG)(identifiers.identifiers)
app.command("audit-texts", epilog=texts.EPILOG)(texts.audit_texts)
app.command("audit-release", epilog=release.EPILOG)(release.audit_release)
app.command("combine", epilog=combine.EPILOG)(combine.combine)
app.command("coins", epilog=coins.EPILOG)(coins.coins)
app.command("canaries", epilog=coins.CANARIES_EPILOG)(coins.canaries)
app.command("seal", epilog=seal.EPILOG)(seal.seal)
app.command("verify", epilog=seal.VERIFY_EPILOG)(seal.verify)
app.command("plan", epilog=plan.EPILOG)(plan.plan)
app.command(
    epilog="Examples:  paperlib run output_set_gain -p trials=20 -p seed=1 --profile smoke   |   "
    "paperlib run --all --profile default --jobs 2   |   paperlib run --all --seed 1"
)(notebooks.run)
app.command(
    "sweep",
    epilog="Values:  seed=0..4 (both ends)   epochs=20,50,100   sizes='[1,2];[3]' (of a parameter that is a "
    'list)   data=\'["a,b","c"]\' (texts that hold commas).   '
    "Examples:  paperlib sweep panoramia_images -p seed=0..4 --profile paper --dry-run   |   "
    "paperlib sweep output_set_gain -p trials=20,50 -p seed=0..9 --workers 4   |   "
    "paperlib sweep panoramia_dp -p seed=0..99 --profile paper --scheduler slurm:queue.yaml --workers 50",
)(sweep.sweep_notebook)
app.command("list", epilog="Example:  paperlib list --profile paper")(notebooks.list_notebooks)


@app.command(epilog="Example:  PAPERLIB_DATA=/data paperlib doctor")
def doctor() -> None:
    """Show the installed packages, the hardware, the data folder, and the folders that can be written."""
    from paperlib.cli.doctor import doctor

    doctor()
