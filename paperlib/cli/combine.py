"""``paperlib combine``: one bound from the scores of several training runs."""

from typing import Annotated

import typer

from paperlib.cli import options
from paperlib.cli.audits.scores import paragraphs
from paperlib.cli.gate import Wishes, command_line, with_wishes

EPILOG = (
    "Examples:  paperlib combine run1.csv run2.csv run3.csv   |   paperlib combine runs/*.csv --delta 1e-5 "
    "--fail-above 3   |   after each month's run:  paperlib combine 2026-*.csv --planned 2400"
)


@with_wishes
def combine(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="One file for each training run, in their order, as `paperlib audit` reads it.",
        ),
    ],
    planned: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Most examples of all runs that will ever be given, fixed before the first run: the bounds "
            "after each run then hold together. Default: this is the only look at the runs.",
        ),
    ] = None,
    score_column: options.ScoreColumn = None,
    member_column: options.MemberColumn = None,
    kind: options.Kind = None,
    losses: options.Losses = False,
    id_column: options.IdColumn = None,
    unit: options.Unit = None,
    delta: options.Delta = 0.0,
    confidence: options.Confidence = 0.95,
    guess: options.GuessOption = "adaptive",
    design: options.DesignOption = "randomized",
    seed: options.Seed = 0,
    *,
    wishes: Wishes,
) -> None:
    """Audit a training procedure from several runs of it, each with coins of its own: one lower bound."""
    import numpy as np

    from paperlib.audits import Audits, ScoreAudit
    from paperlib.bounds import combine_runs, rank_scores
    from paperlib.core import unit_sentence
    from paperlib.io import read_scores
    from paperlib.report.provenance import report_conditions

    kind = options.kind_of(kind, losses)
    about = wishes.checked(*files)
    loaded = [
        read_scores(
            file, score_column=score_column, member_column=member_column, kind=kind, id_column=id_column,
            unit_column=unit,
        )
        for file in files
    ]  # fmt: skip
    inputs = {file: next(iter(one.checksums.values())) for file, one in zip(files, loaded, strict=True)}
    if len(set(inputs.values())) < len(files):
        raise ValueError("FILE: two of the files have the same content; one run counts once, leave one out")
    runs = [one.scores for one in loaded]
    names = [[""] * len(one.scores) if one.ids is None else [*one.ids] for one in loaded]
    split = [np.split(one, [run.member.size]) for one, run in zip(names, runs, strict=True)]
    members_first = np.concatenate([part for side in zip(*split, strict=True) for part in side])
    main = ScoreAudit(
        title="Several training runs, every threshold",
        kind="lower bound",
        purpose="The main number: a lower bound on epsilon of the training procedure, from all of its runs.",
        result=combine_runs(
            runs, planned=planned, ids=names, delta=delta, confidence=confidence, guess=guess, design=design,
            seed=seed,
        ),
    )  # fmt: skip
    main = main if unit is None else main.with_claim(unit_sentence(unit))
    reading = tuple(
        f"{file}: {said}" for file, one in zip(files, loaded, strict=True) for said in one.warnings
    )
    audits = Audits(rank_scores(runs), (main,), design, reading=reading)
    document = audits.document(
        title=f"Privacy audit of {len(files)} training runs",
        facts={
            "Input": "; ".join(f"{one.source}, read as {one.kind}" for one in loaded),
            "Scores": "share of the run's examples that rank below",
            **{f"SHA-256 of {name}": digest for name, digest in inputs.items()},
            "Command": command_line(),
            **report_conditions("paperlib", "numpy", "scipy"),
        },
        inputs=inputs,
        about=about,
        claimed_epsilon=wishes.claimed_epsilon,
        ids=None if any(one.ids is None for one in loaded) else members_first,
    )
    opening = "\n".join(
        f"Run {number}: {one.source}, read as {one.kind}: {one.scores.member.size} members, "
        f"{one.scores.nonmember.size} non-members"
        for number, one in enumerate(loaded, 1)
    )
    raise typer.Exit(wishes.deliver(document, "combined", paragraphs(opening, audits, document)))
