"""``paperlib audit-release``: what a synthetic table, texts or images tell of the rows they were made of."""

from pathlib import Path
from typing import Annotated

import typer

from paperlib.cli.gate import Wishes, with_wishes
from paperlib.cli.options import CoinsFile, Confidence, Delta, DesignOption, Seed

EPILOG = (
    "Examples:  paperlib audit-release synthetic.csv train.csv holdout.csv --design game   |   paperlib "
    "audit-release synthetic.csv train.audit.csv --coins train.coins.json --fail-above 3   |   paperlib "
    "audit-release made.jsonl train.jsonl holdout.jsonl --text-column text   |   paperlib audit-release "
    "made/ train/ holdout/"
)


@with_wishes
def audit_release(
    release: Annotated[
        str,
        typer.Argument(
            help="What was released: CSV, JSON lines or Parquet, .txt with one text a line, a folder of "
            "images, or NPZ or NPY with an array of them."
        ),
    ],
    members: Annotated[str, typer.Argument(help="Rows that it was made of; with --coins all with a coin.")],
    nonmembers: Annotated[
        str | None, typer.Argument(help="Rows like them that it never saw; none with --coins.")
    ] = None,
    text_column: Annotated[
        str, typer.Option(help="Column that is audited as text. Default: the only one, if it holds text.")
    ] = "",
    id_column: Annotated[
        str,
        typer.Option(help="Column that names each row, for the list of exposed ones; it is not compared."),
    ] = "",
    secret: Annotated[
        str, typer.Option(help="Column to be inferred from the others. Default: one is drawn for each row.")
    ] = "",
    coins: CoinsFile = None,
    delta: Delta = 0.0,
    confidence: Confidence = 0.95,
    design: DesignOption = "randomized",
    seed: Seed = 0,
    *,
    wishes: Wishes,
) -> None:
    """Audit a synthetic release whose generator is unknown, with rows it was made of and rows it was not.

    The bound speaks of all that made the release; rates of what it gives away stand beside it.
    """
    from paperlib.audits import audit_release as audit_rows
    from paperlib.audits.releases.files import read_rows
    from paperlib.core import Coins

    paths = [release, members, *([] if nonmembers is None else [nonmembers])]
    about = wishes.checked(*paths, coins and str(coins))
    sealed = None if coins is None else Coins.load(coins)
    if sealed is not None and nonmembers is None:
        id_column = id_column or sealed.column
    rows, ids = read_rows(paths, text_column=text_column, id_column=id_column)
    audit = audit_rows(
        *rows, ids=ids, coins=sealed, secret=secret or None, delta=delta, confidence=confidence,
        design=design, seed=seed,
    )  # fmt: skip
    others = {"Non-members": nonmembers or "", "Coins": str(coins or "")}
    parts = wishes.parts(about, {"Release": release, "Members": members, **others}, seed=seed)
    document = audit.document(title=f"Privacy audit of the release {Path(release).name}", **parts)
    best = audit.exposed.head(5).to_string(index=False)
    exposed = f"Members that stand out most (release_row: the nearest row of the release):\n{best}"
    answer = [" ".join(document.verdict.sentences), str(document.answers[0]).strip()]
    raise typer.Exit(wishes.deliver(document, release, [*answer, audit.rates_text(), exposed]))
