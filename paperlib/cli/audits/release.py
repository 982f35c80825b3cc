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
            help="The release: CSV, JSON lines or Parquet, .txt with one text per line, a folder of images, "
            "or NPZ or NPY with an array of them."
        ),
    ],
    members: Annotated[str, typer.Argument(help="Rows it was made from; with --coins all with a coin.")],
    nonmembers: Annotated[
        str | None, typer.Argument(help="Held-out rows of the same kind; omit with --coins.")
    ] = None,
    text_column: Annotated[
        str, typer.Option(help="Column to audit as text. Default: the only column, if it is text.")
    ] = "",
    id_column: Annotated[
        str,
        typer.Option(help="Column that names each row in the list of exposed rows; it is not compared."),
    ] = "",
    secret: Annotated[
        str, typer.Option(help="Column to infer from the others. Default: a random one for each row.")
    ] = "",
    coins: CoinsFile = None,
    delta: Delta = 0.0,
    confidence: Confidence = 0.95,
    design: DesignOption = "randomized",
    seed: Seed = 0,
    *,
    wishes: Wishes,
) -> None:
    """Audit a synthetic release of an unknown generator, with rows from which it was made and held-out rows.

    The bound is about the whole process that made the release. The report also has rates of disclosure.
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
