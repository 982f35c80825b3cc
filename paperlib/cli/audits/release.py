"""``paperlib audit-release``: what a synthetic table, texts or images tell of the rows they were
made of.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paperlib.cli import options
from paperlib.cli.gate import Wishes

if TYPE_CHECKING:
    from paperlib.core import Coins

EXAMPLES = {
    "audit-release": """
paperlib audit-release synthetic.csv train.csv holdout.csv --design game
paperlib audit-release synthetic.csv train.audit.csv --coins train.coins.json
paperlib audit-release made.jsonl train.jsonl holdout.jsonl --text-column text
paperlib audit-release made/ train/ holdout/
""",
}
"""What help shows below each command, one call a line."""


def audit_release(
    release: Annotated[
        str,
        typer.Argument(
            metavar="RELEASE",
            help=(
                "The release: CSV, JSON lines or Parquet, .txt with one text per line, a folder "
                "of images, or NPZ or NPY with an array of them."
            ),
        ),
    ],
    members: Annotated[
        str,
        typer.Argument(
            metavar="MEMBERS", help="Rows it was made from; with --coins all with a coin."
        ),
    ],
    nonmembers: Annotated[
        str | None,
        typer.Argument(
            metavar="NONMEMBERS", help="Held-out rows of the same kind; omit with --coins."
        ),
    ] = None,
    *,
    text_column: Annotated[
        str, typer.Option(help="Column to audit as text. Default: the only column, if it is text.")
    ] = "",
    id_column: Annotated[
        str,
        typer.Option(
            help="Column that names each row in the list of exposed rows; it is not compared."
        ),
    ] = "",
    secret: Annotated[
        str,
        typer.Option(help="Column to infer from the others. Default: a random one for each row."),
    ] = "",
    coins: options.Coins = None,
    delta: options.Delta = 0.0,
    confidence: options.Confidence = 0.95,
    design: options.Design = "randomized",
    seed: options.Seed = 0,
    unit: Annotated[
        str,
        typer.Option(
            help=(
                "Column that identifies one record, such as a patient with several rows: the "
                "claim is about one unit, and the column is not compared. Coins say it "
                "themselves."
            )
        ),
    ] = "",
    group_column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help=(
                "Column, such as a site, whose values look like units though each row is a record"
                " of its own; can be repeated."
            ),
        ),
    ] = None,
    claimed_epsilon: options.ClaimedEpsilon = None,
    fail_above: options.FailAbove = None,
    junit: options.Junit = None,
    about: options.About = None,
    questions: options.Questions = None,
    output: options.Output = None,
    as_json: options.Json = False,
    read_limit: options.ReadLimit = None,
) -> int:
    """Audit a synthetic release of rows, texts or images.

    Its generator may be unknown; the rows it was made of and held-out rows are needed. The bound is
    about the whole process that made the release. The report also has rates of disclosure.
    """
    from paperlib.audits import audit_release as audit_rows
    from paperlib.audits.releases.files import read_rows
    from paperlib.core import Coins

    wishes = Wishes(
        claimed_epsilon=claimed_epsilon,
        fail_above=fail_above,
        junit=junit,
        about=about,
        questions=questions or (),
        output=output,
        as_json=as_json,
    )
    paths = [release, members]
    if nonmembers is not None:
        paths.append(nonmembers)
    about_file = wishes.checked(*paths, coins and str(coins))
    sealed = None if coins is None else Coins.load(coins)
    column = _column_of_names(id_column, unit, sealed)
    groups = group_column or []
    # Rows of the release, the members and the non-members; names of the rows but the release's.
    rows, names = read_rows(paths, text_column=text_column, id_column=column, group_columns=groups)
    are_units = bool(unit) and sealed is None
    audit = audit_rows(
        *rows,
        ids=None if are_units else names,
        unit=names if are_units else None,
        coins=sealed,
        group_columns=groups,
        secret=secret or None,
        delta=delta,
        confidence=confidence,
        design=design,
        seed=seed,
    )
    others = {"Non-members": nonmembers or "", "Coins": str(coins or "")}
    files = {"Release": release, "Members": members, **others}
    document = audit.document(
        title=f"Privacy audit of the release {Path(release).name}",
        **wishes.parts(about_file, files, seed=seed),
    )
    best = audit.exposed.head(5).to_string(index=False)
    exposed = f"Members that stand out most (release_row: the nearest row of the release):\n{best}"
    answer = [" ".join(document.verdict.sentences), str(document.answers[0]).strip()]
    reading = "\n".join(f"Note: {note}" for note in audit.reading)
    return wishes.deliver(document, release, [*answer, reading, audit.rates_text(), exposed])


def _column_of_names(id_column: str, unit: str, coins: "Coins | None") -> str:
    """The column that names the records: that of the units, else of ids, else of the coins, else
    "".

    Raises:
        ValueError: Two of them contradict each other.
    """
    if unit and id_column and unit != id_column:
        raise ValueError("--id-column: --unit names the records; give one of them")
    column = unit or id_column
    if coins is None:
        return column
    if unit and not coins.unit:
        raise ValueError("--unit: the coins are those of single rows; leave it out")
    if unit and unit != coins.column:
        raise ValueError(f"--unit: the coins are those of {coins.column!r}; leave it out")
    return column or coins.column
