"""``paperlib combine``: one bound from the scores of several training runs."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paperlib.cli import options
from paperlib.cli.audits.scores import paragraphs
from paperlib.cli.gate import Wishes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from paperlib.core import AuditResult, Coins, MembershipScores, ScoreAudit
    from paperlib.reading.scores import LoadedScores

EXAMPLES = {
    "combine": """
paperlib combine run1.csv run2.csv run3.csv
paperlib combine runs/*.csv --delta 1e-5 --fail-above 3
paperlib combine runs/*.csv --claimed 'gaussian(sigma=1.0, q=0.01, steps=1000)'
paperlib combine run1.csv run2.csv --coins 1.coins.json --coins 2.coins.json
# after the run of each month:
paperlib combine 2026-*.csv --planned 2400
""",
}
"""What help shows below each command, one call a line."""


_ALIKE = 20
"""Common records whose coins all fall alike by chance in one pair of files in a million (2**-20).
"""


def combine(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help=(
                "One file for each training run, in the order of the runs, as for `paperlib audit`."
            ),
        ),
    ],
    *,
    planned: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=(
                "Largest number of examples of all runs ever, fixed before the first run: the "
                "bounds after each run then hold together. Default: this is the only audit of the"
                " runs."
            ),
        ),
    ] = None,
    coins: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help=(
                "File of `paperlib coins` with the membership; once for each run, in the order of"
                " the runs. Records may then be in several runs, since each run has its own "
                "coins."
            ),
        ),
    ] = None,
    score_column: options.ScoreColumn = None,
    member_column: options.MemberColumn = None,
    kind: options.Kind = None,
    losses: options.Losses = False,
    id_column: options.IdColumn = None,
    unit: options.Unit = None,
    group_column: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help=(
                "Column, such as a site, whose values look like units though each row is a record "
                "of its own."
            ),
        ),
    ] = None,
    delta: options.Delta = 0.0,
    confidence: options.Confidence = 0.95,
    guess: options.Guess = "adaptive",
    design: options.Design = "randomized",
    seed: options.Seed = 0,
    claimed: options.Claimed = None,
    claimed_curve: options.ClaimedCurve = None,
    claimed_epsilon: options.ClaimedEpsilon = None,
    fail_above: options.FailAbove = None,
    junit: options.Junit = None,
    about: options.About = None,
    questions: options.Questions = None,
    output: options.Output = None,
    as_json: options.Json = False,
    read_limit: options.ReadLimit = None,
) -> int:
    """Audit a training procedure: one bound from several runs.

    Each run has its own coins.
    """
    from paperlib.audits.score_results import Audits
    from paperlib.audits.scores import CLAIM
    from paperlib.bounds import combine_runs
    from paperlib.bounds.claims.runs import audit_curve_of_runs
    from paperlib.bounds.one_run.combine import rank_scores
    from paperlib.core import Coins
    from paperlib.io import read_scores
    from paperlib.io.files import file_sha256
    from paperlib.words.claims import unit_sentence

    wishes = Wishes(
        claimed_epsilon=claimed_epsilon,
        fail_above=fail_above,
        junit=junit,
        about=about,
        questions=questions or (),
        output=output,
        as_json=as_json,
    )
    kind = options.kind_of(kind, losses)
    beside = [*(coins or ()), *([] if claimed_curve is None else [claimed_curve])]
    about_file = wishes.checked(*files, *map(str, beside))
    curve = options.curve_of(claimed, claimed_curve)
    tossed = [Coins.load(path) for path in coins or ()]
    _check_coins(tossed, len(files))
    loaded = [
        read_scores(
            file,
            score_column=score_column,
            member_column=member_column,
            kind=kind,
            id_column=id_column,
            unit_column=unit,
            group_column=group_column,
            coins=run_coins,
        )
        for file, run_coins in zip(files, tossed or [None] * len(files), strict=True)
    ]
    inputs = _checksums(files, loaded)
    runs = [run.scores for run in loaded]
    names = [_names(run) for run in loaded]
    settings: dict[str, Any] = {
        "planned": planned,
        "ids": None if tossed else names,  # by coins a record may be in several runs
        "confidence": confidence,
        "design": design,
        "seed": seed,
    }
    result = combine_runs(runs, delta=delta, guess=guess, **settings)
    tests = [_with_equal_scores(_main_audit(result), files, runs)]
    if curve is not None:
        tests.append(replace(CLAIM, result=audit_curve_of_runs(runs, curve, **settings)))
    of_unit = "" if unit is None else unit_sentence(unit)
    stated = [_with_coins(test.with_claim(of_unit), tossed, design, unit) for test in tests]
    for path in beside:
        inputs[str(path)] = file_sha256(path)
    source = {
        "Input": "; ".join(f"{run.source}, read as {run.kind}" for run in loaded),
        "Scores": "share of the run's examples that rank below",
    }
    audits = Audits(
        rank_scores(runs), tuple(stated), design, reading=_warnings(files, loaded, tossed)
    )
    has_names = all(run.ids is not None for run in loaded)
    document = audits.document(
        title=f"Privacy audit of {len(files)} training runs",
        **wishes.parts_of_scores(about_file, source, inputs),
        ids=_members_first(runs, names) if has_names else None,
    )
    return wishes.deliver(document, "combined", paragraphs(_opening(loaded), audits, document))


def _main_audit(result: "AuditResult") -> "ScoreAudit":
    """The result of `combine_runs` with its title and its purpose."""
    from paperlib.core import ScoreAudit
    from paperlib.words.one_run import RUNS_PURPOSE, RUNS_TITLE

    return ScoreAudit(title=RUNS_TITLE, kind="lower bound", purpose=RUNS_PURPOSE, result=result)


def _checksums(files: Sequence[str], loaded: "Sequence[LoadedScores]") -> dict[str, str]:
    """SHA-256 of each file by its name; a ValueError where two files have the same content."""
    sums: dict[str, str] = {}
    for file, run in zip(files, loaded, strict=True):
        sums[file] = next(iter(run.checksums.values()))
    if len(set(sums.values())) < len(files):
        raise ValueError(
            "FILE: two of the files have the same content; one run counts once, leave one out"
        )
    return sums


def _names(run: "LoadedScores") -> list[str]:
    """The name of each example of a run, members first; empty ones where the file has none."""
    return [""] * len(run.scores) if run.ids is None else [*run.ids]


def _members_first(
    runs: "Sequence[MembershipScores]", names: Sequence[list[str]]
) -> "NDArray[np.str_]":
    """The names of all examples in the order of the pooled scores: the members of all runs, then
    their non-members; shape (n,). ``names`` has those of each run, members first.
    """
    import numpy as np

    members: list[str] = []
    nonmembers: list[str] = []
    for run, names_of_run in zip(runs, names, strict=True):
        members += names_of_run[: run.member.size]
        nonmembers += names_of_run[run.member.size :]
    return np.array([*members, *nonmembers])


def _with_coins(
    audit: "ScoreAudit", tossed: "Sequence[Coins]", design: options.Design, unit: str | None
) -> "ScoreAudit":
    """The audit, with what the coins of each run say, and what one record is.

    Raises ValueError for a design or unit that contradicts the coins, and for coins of pairs or of
    versions.
    """
    from paperlib.words.coins import membership_assumption, one_example
    from paperlib.words.one_run import of_run

    for number, coins in enumerate(tossed, 1):
        coins.check_alone(design, unit)
        # What one example is is the same in all runs, as `_check_coins` found: said once.
        example = one_example(coins) if number == 1 else ""
        audit = audit.with_claim(example, of_run(number, membership_assumption(coins)))
    return audit.with_claim("", **_facts_of_runs(tossed, unit))


def _warnings(
    files: Sequence[str], loaded: "Sequence[LoadedScores]", tossed: "Sequence[Coins]"
) -> tuple[str, ...]:
    """Warnings of the files and of the coins, each with its file or with the number of its run."""
    from paperlib.audits.scores import rounded
    from paperlib.words.coins import seed_warnings
    from paperlib.words.one_run import warnings_of_run

    warnings: list[str] = []
    for file, run in zip(files, loaded, strict=True):
        warnings += [f"{file}: {text}" for text in (*run.warnings, *rounded(run.scores))]
    for number, coins in enumerate(tossed, 1):
        warnings += warnings_of_run(number, seed_warnings(coins))
    return tuple(warnings)


def _opening(loaded: "Sequence[LoadedScores]") -> str:
    """What was read of each run, a line each."""
    lines: list[str] = []
    for number, run in enumerate(loaded, 1):
        lines.append(
            f"Run {number}: {run.source}, read as {run.kind}: {run.scores.member.size} members, "
            f"{run.scores.nonmember.size} non-members"
        )
    return "\n".join(lines)


def _with_equal_scores(
    audit: "ScoreAudit", files: "Sequence[str]", runs: "Sequence[MembershipScores]"
) -> "ScoreAudit":
    """The audit, with a refusal for each run whose scores are all one value; ``files`` has the name
    of each run's file.
    """
    from paperlib.audits.scores import equal_scores

    refusals = list(audit.result.refusals) if audit.result is not None else []
    for file, run in zip(files, runs, strict=True):
        refusal = equal_scores(run)
        if refusal is not None:
            refusals.append(replace(refusal, sentence=f"{file}: {refusal.sentence}"))
    return audit.with_claim("", refusals=tuple(refusals))


def _facts_of_runs(tossed: "Sequence[Coins]", unit: str | None) -> dict[str, Any]:
    """Fields of the result that say what one record of all runs is, by name. Each run has coins of
    its own, so that the field ``coins`` names none.
    """
    from paperlib.audits.planned.sealed_plan import record_facts

    if not tossed:
        return record_facts(unit=unit or "")
    return record_facts(coins=tossed[0]) | {"coins": ""}


def _check_coins(tossed: "Sequence[Coins]", runs: int) -> None:
    """Refuse (ValueError) coins that are not one file for each of the ``runs``, of one kind of
    record, and tossed anew for each run.
    """
    if not tossed:
        return
    if len(tossed) != runs:
        raise ValueError(
            f"--coins: {len(tossed)} files for {runs} runs; give one for each, in their order"
        )
    if len({(coins.unit, coins.copies) for coins in tossed}) > 1:
        raise ValueError(
            "--coins: what has a coin differs between the runs; combine runs of one kind alone"
        )
    for (first, coins), (second, other) in combinations(enumerate(tossed, 1), 2):
        if _fell_alike(coins, other):
            raise ValueError(
                f"--coins: runs {first} and {second} share their coins; models trained on one toss "
                "are one run, so give one of them"
            )


def _fell_alike(coins: "Coins", other: "Coins") -> bool:
    """Whether two files hold one toss: the same hash, or coins of at least `_ALIKE` common records
    that all fell alike.
    """
    if coins.commitment == other.commitment:
        return True
    sides = dict(zip(coins.ids, coins.included.tolist(), strict=True))
    alike = [
        sides[name] == side
        for name, side in zip(other.ids, other.included.tolist(), strict=True)
        if name in sides
    ]
    return len(alike) >= _ALIKE and all(alike)
