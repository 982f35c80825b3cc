"""``paperlib audit-release``: what a synthetic table, texts or images tell of the rows they were
made of.
"""

from pathlib import Path

from paperlib.cli.gate import Wishes, with_wishes
from paperlib.cli.options import Design


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
    if sealed is not None and nonmembers is None:
        id_column = id_column or sealed.column
    rows, ids = read_rows(paths, text_column=text_column, id_column=id_column)
    audit = audit_rows(
        *rows,
        ids=ids,
        coins=sealed,
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
