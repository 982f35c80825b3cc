"""``paperlib identifiers``: digests of public packages as a corpus for ``paperlib audit-lm``."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from paperlib.cli import options

EXAMPLES = {
    "identifiers": """
paperlib identifiers requests numpy --before 2020-09-01 --out before.jsonl.gz
paperlib identifiers requests numpy --after 2021-01-01 --out after.jsonl.gz
# then:
paperlib audit-lm EleutherAI/pythia-160m before.jsonl.gz
""",
}
"""What help shows below each command, one call a line."""


Day = Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"])]


def identifiers(
    packages: Annotated[
        list[str], typer.Argument(metavar="PACKAGES", help="Names of packages on PyPI.")
    ],
    *,
    out: Annotated[
        Path,
        typer.Option(
            metavar="PATH",
            callback=options.in_a_folder,
            help="The pack to write: NAME.jsonl.gz, a corpus for audit-lm.",
        ),
    ],
    before: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="Only files uploaded before this day (UTC)."),
    ] = None,
    after: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="Only files uploaded on this day or later."),
    ] = None,
    digest: Annotated[
        list[str] | None,
        typer.Option(help="sha256, md5 or blake2b_256 of each file; repeatable. Default: sha256."),
    ] = None,
    index: Annotated[
        str,
        typer.Option(
            envvar="PAPERLIB_PYPI",
            help=(
                "ADDRESS such that ADDRESS/NAME/json is the metadata of a package. Default: PyPI's."
            ),
        ),
    ] = "",
    read_limit: options.ReadLimit = None,
) -> None:
    """Write digests of public packages as a corpus.

    It serves where the training text of a model is not available. That text may contain digests
    uploaded before it was collected, but no later ones. An audit of a pack of later digests should
    find nothing, except at its error rate. It checks the cut-off and the audit.
    """
    from paperlib.data.text.packages import PYPI, write_pack

    if not out.name.endswith(".jsonl.gz"):
        raise ValueError(f"--out: {out} has to end in .jsonl.gz")
    pack = write_pack(
        out,
        packages,
        digests=list(dict.fromkeys(digest or ["sha256"])),
        before=before and before.date(),
        after=after and after.date(),
        index=index or PYPI,
    )
    days = sorted(entry["day"] for entry in pack.entries)
    for name in pack.empty:
        print(f"Warning: {name} has no such file in these days")
    span = f"uploaded from {days[0]} to {days[-1]}"
    print(f"{out}: {len(pack.entries):,} digests, {span}\nThen: paperlib audit-lm MODEL {out}")
