"""``paperlib audit``: read scores, run every audit that they allow, print and write the results."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from paperlib.audits import Audits, audit_scores
from paperlib.cli.gate import Wishes, command_line, deliver
from paperlib.core import ScoreAudit, ScoreMeasures, check_confidence, check_delta
from paperlib.io import LoadedScores, read_scores
from paperlib.report.provenance import report_conditions


def audit_file(
    file: str,
    nonmembers: str | None,
    columns: Mapping[str, str | None],
    options: Mapping[str, Any],
    wishes: Wishes,
) -> int:
    """Audit the scores of one file, or of a file of members and one of non-members; the exit code.

    Args:
        file: File of scores, or "-" for standard input.
        nonmembers: File of the non-members' scores, or None.
        columns: Options of `read_scores`.
        options: Options of `audit_scores`.
        wishes: What to print and write.

    Raises:
        OutputError: The report or the JUnit file cannot be written.
        ValueError: A file that cannot be read as scores, or scores that do not allow the main audit.
    """
    check_confidence(options["confidence"])
    check_delta(options["delta"])
    about = wishes.checked(file, nonmembers)
    loaded = read_scores(file, nonmembers, **columns)
    audits = audit_scores(loaded.scores, unit=columns.get("unit_column"), **options)
    audits = replace(audits, reading=(*loaded.warnings, *audits.reading))
    document = audits.document(
        title=f"Privacy audit of {'standard input' if file == '-' else Path(file).name}",
        facts={
            "Input": f"{loaded.source}, read as {loaded.kind}",
            **{f"SHA-256 of {name}": digest for name, digest in loaded.checksums.items()},
            "Command": command_line(),
            **report_conditions("paperlib", "numpy", "scipy"),
        },
        inputs=loaded.checksums,
        about=about,
        claimed_epsilon=wishes.claimed_epsilon,
        ids=loaded.ids,
        groups=loaded.groups,
    )
    sentences = "\n".join(document.verdict.sentences)
    beside = [f"Warning: {text}" for text in document.warnings if text not in sentences]
    numbers = [_measures(audits.measures)] if audits.reversed else _numbers(audits)
    return deliver(document, file, wishes, [_read(loaded), "\n".join(beside), sentences, *numbers])


def _read(loaded: LoadedScores) -> str:
    scores = loaded.scores
    points = "higher" if scores.higher_means_member else "lower"
    return (
        f"{loaded.source}, read as {loaded.kind} ({points} values point to members): "
        f"{scores.member.size} members, {scores.nonmember.size} non-members"
    )


def _numbers(audits: Audits) -> list[str]:
    """The main number with its condition and claim, how well the scores tell, and the side audits."""
    main = audits.headline
    return [
        "\n".join(filter(None, [main.headline, main.condition, main.claim, *main.notes])),
        _measures(audits.measures),
        "\n".join(["Other audits, each at its own confidence:", *map(_other, audits.audits[1:])]),
    ]


def _measures(measures: ScoreMeasures) -> str:
    low, high = measures.auc_interval
    lines = [f"AUC {measures.auc:.4f} [{low:.4f}, {high:.4f}] at confidence {measures.confidence:g}"]
    for rate in measures.rates:
        if rate.true_positive_rate is None or rate.interval is None:
            lines.append(f"{rate.name}: {rate.note}")
        else:
            lines.append(
                f"{rate.name} {rate.true_positive_rate:.4f} [{rate.interval[0]:.4f}, {rate.interval[1]:.4f}]"
            )
    return "\n".join(lines)


def _other(audit: ScoreAudit) -> str:
    line = f"  {audit.title} ({audit.kind}): "
    if audit.result is None:
        return f"{line}not possible: {audit.refused}"
    return "\n    Warning: ".join([line + audit.result.headline, *audit.result.warnings])
