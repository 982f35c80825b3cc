"""``paperlib audit``: read scores, run every audit that they allow, print and write the results."""

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from paperlib.audits import Audits, audit_scores
from paperlib.cli.gate import Wishes, finish, report_name, report_path
from paperlib.core import ScoreAudit, ScoreMeasures, check_confidence, check_delta, json_ready
from paperlib.io import LoadedScores, read_scores, write_text
from paperlib.report import About, Verdict, audit_report, plain_verdict, read_about
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
    _check_outputs(wishes, file, nonmembers)
    about = About() if wishes.about is None else read_about(wishes.about)
    loaded = read_scores(file, nonmembers, **columns)
    audits = audit_scores(loaded.scores, unit=columns.get("unit_column"), **options)
    audits = replace(audits, reading=(*loaded.warnings, *audits.reading))
    first = audits.reversed
    warnings = tuple(dict.fromkeys(filter(None, [first, *audits.reading, *audits.headline.warnings])))
    verdict = plain_verdict(
        audits.headline, claimed_epsilon=wishes.claimed_epsilon, warnings=warnings, kind=audits.audits[0].kind
    )
    facts = _facts(loaded)
    content = json_ready(
        {
            **audits.to_dict(), "verdict": verdict.to_dict(), "about": about.to_dict(),
            "provenance": facts, "inputs": loaded.checksums, "claimed_epsilon": wishes.claimed_epsilon,
        }
    )  # fmt: skip
    name = report_name(file)
    report = report_path(wishes.output, name, as_json=wishes.as_json, inputs=loaded.checksums)
    if report is not None:
        page = audit_report(
            loaded.scores, tuple(audits), title=f"Privacy audit of {_title(file)}", facts=facts,
            verdict=verdict, measures=audits.measures, about=about, ids=loaded.ids, groups=loaded.groups,
            data=content, warnings=warnings,
        )  # fmt: skip
        write_text(report, page)
    if wishes.as_json:
        print(json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False))
    else:
        shown = [_read(loaded), *_answer(verdict, warnings)]
        shown += [_measures(audits.measures)] if first else _numbers(audits)
        print("\n\n".join(filter(None, [*shown, _next(verdict)])) + "\n")
        print(f"Report: {report}{_moved(report, name, wishes.output)}")
    main = audits.headline
    return finish(
        name=name, epsilon=None if first else main.epsilon, headline="" if first else main.headline,
        claim="" if first else main.claim, warnings=warnings, fail_above=wishes.fail_above,
        junit=wishes.junit, ceiling=main.ceiling,
    )  # fmt: skip


def _check_outputs(wishes: Wishes, *inputs: str | None) -> None:
    """Refuse to write over what is read.

    Raises:
        ValueError: An output is one of the inputs.
    """
    for option, path in (("--output", wishes.output), ("--junit", wishes.junit)):
        if path is not None and any(path.resolve() == Path(one).resolve() for one in inputs if one):
            raise ValueError(f"{option}: {path} is the input; name another file")


def _title(file: str) -> str:
    return "standard input" if file == "-" else Path(file).name


def _moved(report: Path | None, name: str, asked: Path | None) -> str:
    """Why the report has a number in its name, if it has one."""
    usual = f"{name}-audit.html"
    if asked is not None or report is None or report.name == usual:
        return ""
    return f" ({usual} is the report of other data)"


def _facts(loaded: LoadedScores) -> dict[str, str]:
    return {
        "Input": f"{loaded.source}, read as {loaded.kind}",
        **{f"SHA-256 of {name}": digest for name, digest in loaded.checksums.items()},
        "Command": shlex.join(["paperlib", *sys.argv[1:]]),
        **report_conditions("paperlib", "numpy", "scipy"),
    }


def _read(loaded: LoadedScores) -> str:
    scores = loaded.scores
    points = "higher" if scores.higher_means_member else "lower"
    return (
        f"{loaded.source}, read as {loaded.kind} ({points} values point to members): "
        f"{scores.member.size} members, {scores.nonmember.size} non-members"
    )


def _answer(verdict: Verdict, warnings: tuple[str, ...]) -> list[str]:
    """The warnings that the verdict does not repeat, and the verdict."""
    said = " ".join(verdict.sentences)
    beside = [f"Warning: {text}" for text in warnings if text not in said]
    return ["\n".join(beside), "\n".join(verdict.sentences)]


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


def _next(verdict: Verdict) -> str:
    steps = [f"  - {step}" for step in verdict.next_steps]
    return "\n".join(["Next:", *steps]) if steps else ""
