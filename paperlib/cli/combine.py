"""``paperlib combine``: one bound from the scores of several training runs."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paperlib.cli import options
from paperlib.cli.audits.scores import paragraphs
from paperlib.cli.gate import Wishes, with_wishes

if TYPE_CHECKING:
    from paperlib.core import Coins, MembershipScores, ScoreAudit


_ALIKE = 20  # common records whose coins fall alike by chance in one pair of files in a million


@with_wishes
def combine(
    files: list[str],
    planned: int | None = None,
    coins: list[Path] | None = None,
    score_column: str | None = None,
    member_column: str | None = None,
    kind: options.Kind | None = None,
    losses: bool = False,
    id_column: str | None = None,
    unit: str | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    guess: options.Guess = "adaptive",
    design: options.Design = "randomized",
    seed: int = 0,
    *,
    wishes: Wishes,
) -> int:
    """Audit a training procedure from several runs, each with its own coins: one lower bound."""
    import numpy as np

    from paperlib.audits import Audits, ScoreAudit
    from paperlib.audits.scores import rounded
    from paperlib.bounds import combine_runs, rank_scores
    from paperlib.core import Coins
    from paperlib.io import file_sha256, read_scores
    from paperlib.words.claims import unit_sentence
    from paperlib.words.coins import membership_assumption, one_example, seed_warnings

    kind = options.kind_of(kind, losses)
    about = wishes.checked(*files, *map(str, coins or ()))
    tossed = [Coins.load(one) for one in coins or ()]
    _check_own(tossed, len(files))
    loaded = [
        read_scores(
            file,
            score_column=score_column,
            member_column=member_column,
            kind=kind,
            id_column=id_column,
            unit_column=unit,
            coins=own,
        )
        for file, own in zip(files, tossed or [None] * len(files), strict=True)
    ]
    inputs = {
        file: next(iter(one.checksums.values())) for file, one in zip(files, loaded, strict=True)
    }
    if len(set(inputs.values())) < len(files):
        raise ValueError(
            "FILE: two of the files have the same content; one run counts once, leave one out"
        )
    runs = [one.scores for one in loaded]
    names = [[""] * len(one.scores) if one.ids is None else [*one.ids] for one in loaded]
    split = [np.split(one, [run.member.size]) for one, run in zip(names, runs, strict=True)]
    members_first = np.concatenate([part for side in zip(*split, strict=True) for part in side])
    main = ScoreAudit(
        title="Several training runs, every threshold",
        kind="lower bound",
        purpose=(
            "The main number: a lower bound on epsilon of the training procedure, from all of "
            "its runs."
        ),
        result=combine_runs(
            runs,
            planned=planned,
            ids=None if tossed else names,
            delta=delta,
            confidence=confidence,
            guess=guess,
            design=design,
            seed=seed,
        ),
    )
    main = _with_equal_scores(main, files, runs)
    main = main.with_claim("" if unit is None else unit_sentence(unit))
    for number, own in enumerate(tossed):
        own.check_alone(design, unit)
        example = "" if number else one_example(own)
        main = main.with_claim(example, f"run {number + 1}: {membership_assumption(own)}")
    main = main.with_claim("", **_facts_of_runs(tossed, unit))
    reading = tuple(
        f"{file}: {said}"
        for file, one in zip(files, loaded, strict=True)
        for said in (*one.warnings, *rounded(one.scores))
    )
    reading += tuple(
        f"run {number}: {said}" for number, own in enumerate(tossed, 1) for said in seed_warnings(own)
    )
    inputs |= {str(one): file_sha256(one) for one in coins or ()}
    source = {"Input": "; ".join(f"{one.source}, read as {one.kind}" for one in loaded)}
    source["Scores"] = "share of the run's examples that rank below"
    audits = Audits(rank_scores(runs), (main,), design, reading=reading)
    document = audits.document(
        title=f"Privacy audit of {len(files)} training runs",
        **wishes.parts_of_scores(about, source, inputs),
        ids=None if any(one.ids is None for one in loaded) else members_first,
    )
    opening = "\n".join(
        f"Run {number}: {one.source}, read as {one.kind}: {one.scores.member.size} members, "
        f"{one.scores.nonmember.size} non-members"
        for number, one in enumerate(loaded, 1)
    )
    return wishes.deliver(document, "combined", paragraphs(opening, audits, document))


def _with_equal_scores(
    audit: "ScoreAudit", files: "Sequence[str]", runs: "Sequence[MembershipScores]"
) -> "ScoreAudit":
    """The audit, with a refusal for each run whose scores are all one value."""
    from paperlib.audits.scores import equal_scores

    refusals = list(audit.result.refusals) if audit.result is not None else []
    for file, run in zip(files, runs, strict=True):
        refusal = equal_scores(run)
        if refusal is not None:
            refusals.append(replace(refusal, sentence=f"{file}: {refusal.sentence}"))
    return audit.with_claim("", refusals=tuple(refusals))


def _facts_of_runs(tossed: "Sequence[Coins]", unit: str | None) -> dict[str, Any]:
    """What one record of all runs is; each run has coins of its own, so that none is named."""
    from paperlib.audits.records import record_facts

    if not tossed:
        return record_facts(unit=unit or "")
    return record_facts(coins=tossed[0]) | {"coins": ""}


def _check_own(tossed: "Sequence[Coins]", runs: int) -> None:
    """Refuse (ValueError) coins files that are not one for each run, with coins of its own."""
    if not tossed:
        return
    if len(tossed) != runs:
        raise ValueError(
            f"--coins: {len(tossed)} files for {runs} runs; give one for each, in their order"
        )
    if len({(one.unit, one.copies) for one in tossed}) > 1:
        raise ValueError(
            "--coins: what has a coin differs between the runs; combine runs of one kind alone"
        )
    for (first, one), (second, other) in combinations(enumerate(tossed, 1), 2):
        fell = dict(zip(one.ids, one.included.tolist(), strict=True))
        pairs = zip(other.ids, other.included.tolist(), strict=True)
        alike = [fell[name] == side for name, side in pairs if name in fell]
        if one.commitment == other.commitment or (len(alike) >= _ALIKE and all(alike)):
            raise ValueError(
                f"--coins: runs {first} and {second} share their coins; models trained on one toss "
                "are one run, so give one of them"
            )
