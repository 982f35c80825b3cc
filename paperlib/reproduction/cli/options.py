"""What the commands of a checkout share: a notebook and a profile, which the shell completes."""

from typing import Annotated

import typer


def names_of(pattern: str) -> list[str]:
    """Names of files below the notebooks, for the shell; none outside a checkout."""
    from paperlib.reproduction.running.project import find_project

    try:
        folder = find_project().notebooks
    except ValueError:
        return []
    return sorted(path.stem for path in folder.glob(pattern))


Notebook = Annotated[
    str,
    typer.Argument(
        metavar="NOTEBOOK",
        autocompletion=lambda: names_of("*.ipynb"),
        help="Name of a notebook; see `paperlib list`.",
    ),
]
Profile = Annotated[
    str,
    typer.Option(
        autocompletion=lambda: names_of("profiles/*.yaml"),
        help="Profile of parameters: smoke, default, rehearsal, paper, ...",
    ),
]
