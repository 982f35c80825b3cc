"""Options that several commands share, and what the shell completes for them."""

from pathlib import Path
from typing import Annotated, Literal

import typer


def names_of(pattern: str) -> list[str]:
    """Names that the shell can complete; none outside a checkout."""
    from paperlib.running.project import find_project

    try:
        folder = find_project().notebooks
    except ValueError:
        return []
    return sorted(path.stem for path in folder.glob(pattern))


Notebook = Annotated[
    str,
    typer.Argument(
        help="Name of a notebook; see `paperlib list`.", autocompletion=lambda: names_of("*.ipynb")
    ),
]
Assignments = Annotated[
    list[str] | None, typer.Argument(help="Parameters as name=value, the same as with -p.")
]
Parameters = Annotated[
    list[str] | None, typer.Option("-p", "--parameter", help="One parameter, name=value; repeatable.")
]
Profile = Annotated[
    str,
    typer.Option(
        help="Profile of parameters: smoke, default, rehearsal, paper, ...",
        autocompletion=lambda: names_of("profiles/*.yaml"),
    ),
]

ScoreColumn = Annotated[
    str | None, typer.Option(help="Score column. Default: a column with a usual name, such as score or loss.")
]
MemberColumn = Annotated[
    str | None, typer.Option(help="Membership column. Default: a column with a usual name, such as member.")
]
Kind = Annotated[
    Literal["scores", "losses"] | None,
    typer.Option(
        help="scores: higher values indicate members; losses: lower values do. Default: by the column's "
        "name; required if the name does not show it."
    ),
]
Losses = Annotated[bool, typer.Option("--losses", help="The same as --kind losses.")]
IdColumn = Annotated[
    str | None,
    typer.Option(
        help="Column that names each example, for the report's most exposed ones; names must differ between "
        "runs. Default: id, record_id or example_id."
    ),
]
Unit = Annotated[
    str | None,
    typer.Option(
        help="Column that identifies one record, such as a customer or an id with several rows: the values "
        "of its rows are averaged, and the claim is about one unit."
    ),
]
CoinsFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File of `paperlib coins` with the membership of each id."),
]
Delta = Annotated[float, typer.Option(help="Delta of the DP guarantee that is tested, in [0, 1).")]
Confidence = Annotated[float, typer.Option(help="Confidence level of each number by itself, in (0, 1).")]
GuessOption = Annotated[
    Literal["adaptive", "both", "members", "nonmembers", "grid"],
    typer.Option(
        help="Where to guess: at the end of the scores with more right guesses so far (adaptive), at both "
        "ends, on likely members or likely non-members only, or over a grid of pairs."
    ),
]
DesignOption = Annotated[
    Literal["randomized", "game", "played"],
    typer.Option(
        help="randomized: fair coins chose the members before training; game: no coins were tossed, so this "
        "audit tosses them and uses a part of the examples; played: fair coins chose the shown examples "
        "after training."
    ),
]
Dtype = Annotated[
    Literal["auto", "float32", "bfloat16", "float16", "int8"], typer.Option(help="Number format.")
]
Device = Annotated[
    str, typer.Option(help="cpu, cuda:0, ..., or auto for all GPUs. Default: a GPU if there is one.")
]
Seed = Annotated[int, typer.Option(help="Seed of all random splits, 0 or more.")]


def kind_of(kind: Kind, losses: bool) -> Literal["scores", "losses"] | None:
    """One answer of the options --kind and --losses; a ValueError where they contradict each other."""
    if losses and kind == "scores":
        raise ValueError("--losses: contradicts --kind scores")
    return "losses" if losses else kind
