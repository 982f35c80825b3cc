"""``paperlib identifiers``: digests of public packages as a corpus for ``paperlib audit-lm``."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

Day = Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"])]


def identifiers(
    out: Path,
    packages: list[str] | None = None,
    lock: list[Path] | None = None,
    before: Day = None,
    after: Day = None,
    digest: list[str] | None = None,
    index: str = "",
) -> None:
    """Write digests of public packages as a corpus, for a model whose training text is not
    available.

    The training text may contain digests uploaded before it was collected, but no later ones. An
    audit of a pack of later digests should find nothing, except at its error rate. It checks the
    cut-off and the audit.
    """
    from paperlib.data.text.packages import PYPI, write_pack

    if not packages and not lock:
        raise ValueError("PACKAGES: name packages on PyPI, or lock files with --lock")
    if not out.name.endswith(".jsonl.gz"):
        raise ValueError(f"--out: {out} has to end in .jsonl.gz")
    pack = write_pack(
        out,
        packages or (),
        locks=lock or (),
        digests=list(dict.fromkeys(digest or ["sha256"])),
        before=before and before.date(),
        after=after and after.date(),
        index=index or PYPI,
    )
    days = sorted(entry["day"] for entry in pack.entries if "day" in entry)
    for name in pack.empty:
        print(f"Warning: {name} has no such file in these days")
    span = f", uploaded from {days[0]} to {days[-1]}" if days else ""
    print(f"{out}: {len(pack.entries):,} digests{span}\nThen: paperlib audit-lm MODEL {out}")
