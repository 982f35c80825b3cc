"""Names of notebooks and profiles as the shell completes them."""

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


Notebook = Annotated[str, typer.Argument(autocompletion=lambda: names_of("*.ipynb"))]
Profile = Annotated[str, typer.Option(autocompletion=lambda: names_of("profiles/*.yaml"))]
