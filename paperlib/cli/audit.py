"""``paperlib audit``: read scores, run every audit that they allow, print and write the results."""

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paperlib.audits import Audits, audit_scores
from paperlib.core import json_ready
from paperlib.io import LoadedScores, file_sha256, read_scores, write_text
from paperlib.report import audit_report
from paperlib.report.provenance import report_conditions


def audit_file(
    file: Path,
    nonmembers: Path | None,
    columns: Mapping[str, str | None],
    options: Mapping[str, Any],
    *,
    output: Path | None,
    as_json: bool,
) -> None:
    """Audit the scores of one file, or of a file of members and one of non-members.

    The options are those of `read_scores`, of `audit_scores`, and of the command (``paperlib audit --help``).

    Raises:
        ValueError: A file that cannot be read as scores, or scores that do not allow the main audit.
    """
    loaded = read_scores(file, nonmembers, **columns)
    audits = audit_scores(loaded.scores, **options)
    facts = _facts(loaded, [path for path in (file, nonmembers) if path is not None])
    report = output or (None if as_json else Path(f"{file.name.partition('.')[0]}-audit.html"))
    if report is not None:
        page = audit_report(loaded.scores, tuple(audits), title=f"Privacy audit of {file.name}", facts=facts)
        write_text(report, page)
    if as_json:
        content = {**audits.to_dict(), "provenance": facts}
        print(json.dumps(json_ready(content), indent=1, sort_keys=True, ensure_ascii=False))
    else:
        _print_audits(loaded, audits)
        print(f"Report: {report}")


def _facts(loaded: LoadedScores, files: list[Path]) -> dict[str, str]:
    return {
        "Input": f"{loaded.source}, read as {loaded.kind}",
        **{f"SHA-256 of {path.name}": file_sha256(path) for path in files},
        "Command": shlex.join(["paperlib", *sys.argv[1:]]),
        **report_conditions("paperlib", "numpy", "scipy"),
    }


def _print_audits(loaded: LoadedScores, audits: Audits) -> None:
    scores = loaded.scores
    print(
        f"{loaded.source}: {scores.member.size} members, {scores.nonmember.size} non-members ({loaded.kind})"
    )
    print(f"AUC {scores.auc():.4f}\n")
    print(f"{audits}\n")
    print("Each number holds at its own confidence; assumptions are in the report (and in --json).")
