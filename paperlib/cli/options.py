"""Options that several commands share, and what the shell completes for them."""

import math
from pathlib import Path
from typing import Annotated, Literal

import typer


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


def _epsilon(value: float | None) -> float | None:
    """An epsilon that was given, or None; NaN and infinity would make every comparison pass."""
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise typer.BadParameter(f"expected an epsilon of 0 or more, got {value:g}")
    return value


Notebook = Annotated[
    str, typer.Argument(help="Name of a notebook; see `paperlib list`.", autocompletion=notebook_names)
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
        help="Profile of parameters: smoke, default, rehearsal, paper, ...", autocompletion=profile_names
    ),
]

ScoreColumn = Annotated[
    str | None, typer.Option(help="Score column. Default: the one with a usual name, such as score or loss.")
]
MemberColumn = Annotated[
    str | None, typer.Option(help="Membership column. Default: the one with a usual name, such as member.")
]
Kind = Annotated[
    Literal["scores", "losses"] | None,
    typer.Option(
        help="scores: higher values point to members; losses: lower values do. Default: by the column's "
        "name; needed where the name does not say it."
    ),
]
Losses = Annotated[bool, typer.Option("--losses", help="The same as --kind losses.")]
Delta = Annotated[float, typer.Option(help="Delta of the DP guarantee that is tested, in [0, 1).")]
Confidence = Annotated[float, typer.Option(help="Confidence level of each number by itself, in (0, 1).")]
GuessOption = Annotated[
    Literal["adaptive", "both", "members", "nonmembers", "grid"],
    typer.Option(
        help="Guess on the end of the scores that is right more often so far, on both ends, on likely "
        "members or likely non-members only, or over a grid of pairs."
    ),
]
DesignOption = Annotated[
    Literal["randomized", "game", "played"],
    typer.Option(
        help="randomized: fair coins chose the members before training; game: no coins were tossed, so this "
        "audit tosses them and shows a part of the examples; played: fair coins chose after training who is "
        "shown."
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of all random splits, 0 or more.")]

FailAbove = Annotated[
    float | None,
    typer.Option(
        "--fail-above",
        metavar="EPS",
        callback=_epsilon,
        help="Exit code 3 if the main epsilon is above EPS, or if the audit cannot answer.",
    ),
]
ClaimedEpsilon = Annotated[
    float | None,
    typer.Option(
        "--claimed-epsilon",
        metavar="EPS",
        callback=_epsilon,
        help="Epsilon that the training is said to have: the verdict says whether it is refuted.",
    ),
]
Junit = Annotated[
    Path | None, typer.Option("--junit", metavar="FILE", help="Write the outcome as JUnit XML, for a CI.")
]
AboutFile = Annotated[
    Path | None,
    typer.Option(
        "--about",
        metavar="FILE",
        help="YAML with model, version, owner, trained, data, contact and notes, for the report.",
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document, and write a report only with --output.")
]
Output = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Path of the HTML report. Default: NAME-audit.html in this folder, with a number where that is "
        "the report of other data.",
    ),
]
