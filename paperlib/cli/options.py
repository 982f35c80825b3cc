"""What several commands take: a type for each option, with its help and its limits.

A command names the type and its default, as in ``delta: options.Delta = 0.0``. What one command
alone takes stands in its own signature.
"""

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from paperlib.core import options as core_options

if TYPE_CHECKING:
    from paperlib.bounds.claims.curves import ClaimedCurve as TestedCurve


def _epsilon(value: float | None) -> float | None:
    """An epsilon that was given, or None; NaN and infinity would make every comparison pass."""
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise typer.BadParameter(f"expected an epsilon of 0 or more, got {value:g}")
    return value


def _question_texts(names: list[str] | None) -> list[str]:
    """Names of public texts whose questions a report answers, each once; none without the
    option.

    Raises typer.BadParameter for the name of no text.
    """
    known = get_args(core_options.Questions)
    for name in names or ():
        if name not in known:
            raise typer.BadParameter(f"expected one of {', '.join(known)}, got {name}")
    return list(dict.fromkeys(names or ()))


def _hold_read_limit(context: typer.Context, limit: str | None) -> str | None:
    """Let a limit of memory, such as "16GB", hold while the command runs; as an environment
    variable it reaches the processes that the command starts. None keeps the limit of the
    environment.

    Returns the limit as it was given, as the callback of an option does. Raises ValueError for what
    is no size, here or in the environment.
    """
    from paperlib.reading.limits import READ_LIMIT_VARIABLE, parse_size, read_limit

    if limit is None:
        read_limit()  # a variable that holds no size is refused at once
        return None
    parse_size(limit, "--read-limit")
    before = os.environ.get(READ_LIMIT_VARIABLE)
    os.environ[READ_LIMIT_VARIABLE] = limit
    context.call_on_close(lambda: _set_variable(READ_LIMIT_VARIABLE, before))
    return limit


def in_a_folder(path: Path | None) -> Path | None:
    """An output whose folder is there: a folder that nobody made is more often mistyped than
    wanted, and this is known before anything is computed.

    Raises:
        typer.BadParameter: There is no such folder.
    """
    if path is not None and not path.parent.is_dir():
        raise typer.BadParameter(
            f"there is no folder {path.parent}; make it first, or name a file in one that is there"
        )
    return path


def _set_variable(name: str, value: str | None) -> None:
    """Set an environment variable; None removes it."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


ScoreColumn = Annotated[
    str | None,
    typer.Option(help="Score column. Default: a column with a usual name, such as score or loss."),
]
MemberColumn = Annotated[
    str | None,
    typer.Option(help="Membership column. Default: a column with a usual name, such as member."),
]
Kind = Annotated[
    Literal["scores", "losses"] | None,
    typer.Option(
        help=(
            "scores: higher values indicate members; losses: lower values do. Default: by the"
            " column's name; required if the name does not show it."
        )
    ),
]
Losses = Annotated[bool, typer.Option("--losses", help="The same as --kind losses.")]
IdColumn = Annotated[
    str | None,
    typer.Option(
        help=(
            "Column that names each example, for the report's most exposed ones; names must "
            "differ between runs. Default: id, record_id or example_id."
        )
    ),
]
Unit = Annotated[
    str | None,
    typer.Option(
        help=(
            "Column that identifies one record, such as a customer or an id with several "
            "rows: the values of its rows are averaged, and the claim is about one unit."
        )
    ),
]
Coins = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File of `paperlib coins` with the membership of each id."),
]
Delta = Annotated[float, typer.Option(help="Delta of the DP guarantee that is tested, in [0, 1).")]
Confidence = Annotated[
    float, typer.Option(help="Confidence level of each number by itself, in (0, 1).")
]
Guess = Annotated[
    core_options.Guess,
    typer.Option(
        help=(
            "Where to guess: at the end of the scores with more right guesses so far "
            "(adaptive), at both ends, on likely members or likely non-members only, or over "
            "a grid of pairs."
        )
    ),
]
Design = Annotated[
    core_options.Design,
    typer.Option(
        help=(
            "randomized: fair coins chose the members before training; game: no coins were "
            "tossed, so this audit tosses them and uses a part of the examples; played: fair "
            "coins chose the shown examples after training."
        )
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random splits.")]
Claimed = Annotated[
    str | None,
    typer.Option(
        metavar="CURVE",
        help=(
            "Claimed mechanism, whose whole trade-off curve is tested: gaussian(sigma=1.0, "
            "q=0.01, steps=1000) for DP-SGD, or gaussian(mu=0.5)."
        ),
    ),
]
ClaimedCurve = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Table with the columns epsilon and delta, pairs of one claim; tested like --claimed.",
    ),
]
ClaimedEpsilon = Annotated[
    float | None,
    typer.Option(
        metavar="EPS",
        callback=_epsilon,
        help="Claimed epsilon of training: the verdict says whether it is refuted.",
    ),
]
FailAbove = Annotated[
    float | None,
    typer.Option(
        metavar="EPS",
        callback=_epsilon,
        help="Exit code 3 if the main epsilon is above EPS, or if the audit cannot answer.",
    ),
]
Junit = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", callback=in_a_folder, help="Write the outcome as JUnit XML, for CI."
    ),
]
About = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help=("YAML with model, version, owner, trained, data, contact and notes, for the report."),
    ),
]
Questions = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        callback=_question_texts,
        help=(
            "Answer the questions of a public text in the report: edpb (Opinion 28/2024), nist-226 "
            "(SP 800-226) or aisvs (OWASP, 1.0); repeatable."
        ),
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        callback=in_a_folder,
        help=(
            "Path of the HTML report. Default: NAME-audit.html in this folder, with a number "
            "if this file is the report of other data."
        ),
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document, and write a report only with --output."),
]
ReadLimit = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        callback=_hold_read_limit,
        help=(
            "Most memory that reading one file may take, judged by sizes before content, such"
            f" as 16GB; also PAPERLIB_READ_LIMIT. Default: {core_options.READ_LIMIT >> 30} GiB, or"
            " half of the memory where that is less."
        ),
    ),
]
LanguageModel = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="Causal language model: a folder, or a name on the Hugging Face hub."
    ),
]
Corpus = Annotated[
    str,
    typer.Argument(
        metavar="CORPUS",
        help=(
            "File or folder of text (a file is one document), JSON lines or Parquet (a line "
            "or row is one), a known corpus by name, or a pack that `paperlib identifiers` "
            "wrote."
        ),
    ),
]
On = Annotated[
    Literal["all", "completions"],
    typer.Option(
        help=(
            "What training took its loss from: all of each text, or completions of prompts "
            "and the turns of the assistant alone (JSON lines of chats, by the model's "
            "template)."
        )
    ),
]
Identifiers = Annotated[
    list[str] | None,
    typer.Option(metavar="KIND", help="Kind of identifiers to look for; repeatable. Default: all."),
]
Limit = Annotated[
    int, typer.Option(min=10, help="Maximum number of identifiers; a random sample is drawn.")
]
Before = Annotated[
    int, typer.Option(min=0, help="Characters before each identifier that the model sees.")
]
BatchSize = Annotated[int, typer.Option(min=1, help="Texts per batch.")]
Dtype = Annotated[
    Literal["auto", "float32", "bfloat16", "float16", "int8"], typer.Option(help="Number format.")
]
Device = Annotated[
    str,
    typer.Option(help="cpu, cuda:0, ..., or auto for all GPUs. Default: a GPU if there is one."),
]
Out = Annotated[
    Path,
    typer.Option(
        metavar="PATH",
        callback=in_a_folder,
        help=(
            "Output for the training records, in the form of DATA. The same folder gets "
            "NAME.coins.json and NAME.audit, the records with a coin, to be scored after "
            "training."
        ),
    ),
]
Id = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help=(
            "Column that names each record. Default: id, record_id or example_id, else a hash"
            " of the record's contents. A file of a folder is named by its path."
        ),
    ),
]
SecretSeed = Annotated[
    int | None,
    typer.Option(
        min=0,
        help=(
            "Seed of all random draws, for tests and tutorials: anyone who knows it knows the"
            " coins. Default: the randomness of the operating system."
        ),
    ),
]


def kind_of(kind: Kind, losses: bool) -> Kind:
    """One answer of the options --kind and --losses, None where neither is given; a ValueError
    where they contradict each other.
    """
    if losses and kind == "scores":
        raise ValueError("--losses: contradicts --kind scores")
    return "losses" if losses else kind


def curve_of(claimed: str | None, file: Path | None) -> "TestedCurve | None":
    """The claimed curve of --claimed (a mechanism, in text) or --claimed-curve (a table), or None.

    Raises:
        ValueError: Both are given, or one that cannot be read.
    """
    from paperlib.audits.claimed import claimed_curve, read_claimed_curve

    if claimed is not None and file is not None:
        raise ValueError("--claimed-curve: give it or --claimed, not both")
    if file is not None:
        return read_claimed_curve(file)
    return None if claimed is None else claimed_curve(claimed)
