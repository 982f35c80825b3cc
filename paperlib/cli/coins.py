"""``paperlib coins``: one fair coin for each record, before training, and what to train on."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

EPILOG = (
    "Examples:  paperlib coins data.csv --out train.csv   |   paperlib coins data.parquet --out "
    "train.parquet --id customer --audit-fraction 0.1   |   paperlib coins visits.csv --out train.csv --unit "
    "patient   |   paperlib coins images --out train_images   |   After training:  paperlib audit scores.csv "
    "--coins train.coins.json"
)


def coins(
    data: Annotated[
        str,
        typer.Argument(
            help="What you would train on: CSV, TSV, JSON lines, Parquet, a folder of files such as images, "
            "or a list of ids (.txt, one a line)."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="PATH",
            help="Where the records to train on go, in the form of DATA. Beside it are written "
            "NAME.coins.json and NAME.audit, the records that have a coin, to be scored after training.",
        ),
    ],
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Column that names each record. Default: the one called id, record_id or example_id, else a "
            "hash of what the record holds. A file of a folder is named by its path.",
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of what has a coin, such as a user: its rows share it."),
    ] = None,
    audit_fraction: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Share of the records that get a coin, drawn at random, in (0, 1]; all others are trained "
            "on.",
        ),
    ] = 1.0,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Seed of the coins, for tests and tutorials: whoever knows it knows the coins. Default: the "
            "randomness of the operating system.",
        ),
    ] = None,
) -> None:
    """Toss a fair coin for each record before training: heads is trained on, tails is left out.

    An audit of the trained model then bounds the epsilon of the training for adding or removing a record. The
    coins file holds ids and coins: keep it from those who compute the scores. Its hash may be published: it
    tells nothing of the coins, and shows later that none was changed.
    """
    import numpy as np

    from paperlib.core import did_you_mean, toss_coins
    from paperlib.io import MADE_ID, open_records, write_text

    if unit and id_column:
        raise ValueError("--unit: contradicts --id; the unit is what has a coin and is named in the scores")
    records = open_records(data)
    if not str(out).lower().endswith(records.ending):
        raise ValueError(f"--out: {out} gets the form of {data}; let it end in {records.ending}")
    if not records.ending and out.resolve().is_relative_to(Path(data).resolve()):
        raise ValueError(f"--out: {out} is a part of {data}; name a place beside it")
    stem = out.name[: len(out.name) - len(records.ending)]
    to_score = out.with_name(f"{stem}.audit{records.ending or '.txt'}")
    sealed = out.with_name(f"{stem}.coins.json")
    for path in (out, to_score, sealed):
        if path.exists():
            raise ValueError(f"{path}: exists already, and nothing is overwritten; give another --out")

    column = unit or id_column or records.id_column()
    if column and column not in records.columns:
        known = ", ".join(map(repr, records.columns)) or "none"
        near = did_you_mean(column, records.columns)
        raise ValueError(f"{data}: no column {column!r}; the columns are {known}{near}")
    digests = records.digests(column)
    made = digests if column is None and records.names is None else None
    names = made or records.names or records.cells(column or "")
    copies = _copies(digests, names if column else range(len(names)))
    same = f"{copies:,} of {len(names):,} records are the same as another one"
    if copies and not column:
        raise ValueError(
            f"{data}: {same}; copies must share a coin, or the one that is trained on gives the other away: "
            "keep one of each, or say with --unit COLUMN what has a coin, or with --id COLUMN that they are "
            "different records"
        )
    called = column or ("id" if made is None else MADE_ID)
    tossed = toss_coins(names, seed=seed, fraction=audit_fraction, unit=unit or "", column=called)
    keep, with_coin = tossed.training(names), set(tossed.ids)
    audited = np.array([name in with_coin for name in names])
    records.write(out, keep, None)
    if records.names is None:
        records.write(to_score, audited, made)
    else:
        write_text(to_score, "".join(f"{name}\n" for name in tossed.ids))
    tossed.save(sealed)

    for warning in tossed.warnings:
        print(f"Warning: {warning}")
    if copies:
        print(f"Warning: {same}, but for {column!r}; if they are copies, give them one coin with --unit")
    of = f"units of {unit!r}" if unit else "records"
    print(
        f"{len(tossed.ids):,} coins for {tossed.records:,} {of}, {int(tossed.included.sum()):,} heads\n"
        f"{out}: {int(keep.sum()):,} of {len(names):,} records, to train on\n"
        f"{to_score}: {int(audited.sum()):,} records with a coin, to be scored after training by their "
        f"{called!r}\n"
        f"{sealed}: the coins, not to be seen by those who compute the scores\n"
        f"Hash of the coins, to be published before training: {tossed.commitment}\n"
        "To fix before training what the audit will do: paperlib seal plan.yaml\n"
        f"After training: paperlib audit scores.csv --coins {sealed}"
    )


def _copies(digests: Sequence[str], names: Iterable[str | int]) -> int:
    """Number of records that hold the same as one of another name."""
    first: dict[str, str | int] = {}
    pairs = zip(digests, names, strict=True)
    shared = {digest for digest, name in pairs if first.setdefault(digest, name) != name}
    return sum(digest in shared for digest in digests if digest)
