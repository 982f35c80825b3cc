"""The command line: what each command takes, and its help.

Each command imports what it needs when it runs, so that help and completion answer at once.
"""

import os
from typing import Annotated

import typer

import paperlib
from paperlib.cli import coins, combine, plan, seal
from paperlib.cli.audits import (
    chat,
    data,
    identifiers,
    language_model,
    marks,
    release,
    scores,
    texts,
)
from paperlib.cli.commands import (
    GroupedCommands,
    add_brought_commands,
    add_commands,
    examples_text,
)
from paperlib.cli.guard import DEBUG_VARIABLE

EXAMPLES = {
    "paperlib": """
paperlib audit my_scores.csv
paperlib audit my_scores.csv --fail-above 3
paperlib --debug audit my_scores.csv
""",
    "doctor": """
paperlib doctor
PAPERLIB_DATA=/data paperlib doctor
""",
}
"""What help shows below each command, one call a line."""

app = typer.Typer(
    cls=GroupedCommands,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Audit the privacy of machine-learning models without retraining them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog=examples_text(EXAMPLES["paperlib"]),
)


def _print_version(version: bool) -> None:
    """Print the version and end, where --version was given."""
    if version:
        print(f"paperlib {paperlib.__version__}")
        raise typer.Exit


@app.callback()
def common(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug", help=f"Show the traceback of an error; also with {DEBUG_VARIABLE}=1."
        ),
    ] = False,
) -> None:
    """Options of the command itself."""
    # `guard.main` hands in the settings, with "debug" by PAPERLIB_DEBUG, and reads them after an
    # error.
    context.ensure_object(dict)["debug"] |= debug
    if debug and DEBUG_VARIABLE not in os.environ:
        os.environ[DEBUG_VARIABLE] = "1"  # for the notebooks that the command runs
        context.call_on_close(lambda: os.environ.pop(DEBUG_VARIABLE, None))


def doctor() -> None:
    """Show packages, hardware, and folders for data and runs."""
    from paperlib.cli.doctor import doctor

    doctor()


add_commands(
    app,
    "Audits",
    scores.audit,
    combine.combine,
    data.audit_data,
    language_model.audit_lm,
    chat.audit_chat,
    texts.audit_texts,
    marks.audit_marks,
    release.audit_release,
)
add_commands(app, "Planning, coins and receipts", plan.plan, coins.coins, seal.seal, seal.verify)
add_commands(app, "Texts and identifiers", coins.canaries, marks.mark, identifiers.identifiers)
add_brought_commands(app, "Papers, in a checkout")
add_commands(app, "This installation", doctor)
