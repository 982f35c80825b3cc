"""``paperlib audit-release``: what a synthetic table, texts or images tell of the rows they were
made of.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from paperlib.cli.gate import Wishes, with_wishes
from paperlib.cli.options import Design

if TYPE_CHECKING:
    from paperlib.core import Coins


@with_wishes
def audit_release(
    release: str,
    members: str,
    nonmembers: str | None = None,
    text_column: str = "",
    id_column: str = "",
    secret: str = "",
    coins: Path | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    design: Design = "randomized",
    seed: int = 0,
    *,
    unit: str = "",
    group_column: list[str] | None = None,
    wishes: Wishes,
) -> int:
    """Audit a synthetic release of an unknown generator, with rows from which it was made and
    held-out rows.

    The bound is about the whole process that made the release. The report also has rates of
    disclosure.
    """
    from paperlib.audits import audit_release as audit_rows
    from paperlib.audits.releases.files import read_rows
    from paperlib.core import Coins

    paths = [release, members]
    if nonmembers is not None:
        paths.append(nonmembers)
    about_file = wishes.checked(*paths, coins and str(coins))
    sealed = None if coins is None else Coins.load(coins)
    column = _column_of_names(id_column, unit, sealed)
    groups = group_column or []
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
    facts = wishes.parts(about_file, {"Release": release, "Members": members, **others}, seed=seed)
    document = audit.document(title=f"Privacy audit of the release {Path(release).name}", **facts)
    best = audit.exposed.head(5).to_string(index=False)
    exposed = f"Members that stand out most (release_row: the nearest row of the release):\n{best}"
    answer = [" ".join(document.verdict.sentences), str(document.answers[0]).strip()]
    reading = "\n".join(f"Note: {note}" for note in audit.reading)
    return wishes.deliver(document, release, [*answer, reading, audit.rates_text(), exposed])


def _column_of_names(id_column: str, unit: str, coins: "Coins | None") -> str:
    """The column that names the records: that of the units, else of ids, else of the coins; a
    ValueError where these contradict each other.
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
