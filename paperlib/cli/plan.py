"""``paperlib plan``: what an audit could show, or how many examples it needs, before anyone
trains.
"""

from pathlib import Path
from typing import Annotated

import typer

from paperlib.cli import options

EXAMPLES = {
    "plan": """
paperlib plan --m 1000 --delta 1e-5
paperlib plan --epsilon 2 --auc 0.7
paperlib plan --m 10000 --pilot scores.csv
paperlib plan --epsilon 1 --pilot nll.csv --losses
""",
}
"""What help shows below each command, one call a line."""


def plan(
    *,
    m: Annotated[
        int | None, typer.Option(help="Number of audit examples, each included by a fair coin.")
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="Epsilon to show: prints the fewest examples for a share --power of audits."
        ),
    ] = None,
    power: Annotated[
        float,
        typer.Option(help="Probability that an audit shows the planned epsilon, in [0.5, 0.99]."),
    ] = 0.8,
    auc: Annotated[
        float | None,
        typer.Option(help="Expected AUC of the attack, in [0.5, 1). Default: a perfect attack."),
    ] = None,
    pilot: Annotated[
        Path | None,
        typer.Option(
            help="Scores of a pilot attack, in a file as for `paperlib audit`; or use --auc."
        ),
    ] = None,
    nonmembers: Annotated[
        Path | None, typer.Option(help="Non-members' scores of the pilot, if in a separate file.")
    ] = None,
    score_column: options.ScoreColumn = None,
    member_column: options.MemberColumn = None,
    kind: options.Kind = None,
    losses: options.Losses = False,
    delta: Annotated[
        float, typer.Option(help="Delta of the DP guarantee to be tested, in [0, 1).")
    ] = 0.0,
    confidence: Annotated[
        float, typer.Option(help="Confidence level of the bound, in (0, 1).")
    ] = 0.95,
    guess: options.Guess = "adaptive",
    simulations: Annotated[
        int | None,
        typer.Option(help="Simulated audits. Default: 100, five times as many with --epsilon."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulation.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    read_limit: options.ReadLimit = None,
) -> None:
    """Plan an audit: what it can show, or how many examples.

    It says which epsilon m examples can show, or how many examples an epsilon needs. The plan
    simulates audits by the attack, a perfect one without --auc or --pilot. It prints the bound that
    a share --power of audits reaches, the mean bound, and the range of 80 % of the bounds.
    """
    from paperlib.bounds import plan_audit
    from paperlib.core.checks import check_in
    from paperlib.io import read_scores
    from paperlib.io.files import canonical_json

    kind = options.kind_of(kind, losses)
    if m is None and epsilon is None:
        raise ValueError("give --m, the examples at hand, or --epsilon, the bound to be shown")
    if m is not None and epsilon is not None:
        raise ValueError("--epsilon: contradicts --m; give one of the two")
    if auc is not None and pilot is not None:
        raise ValueError("--auc: contradicts --pilot; give one of the two")
    if pilot is not None:
        attack = read_scores(
            pilot, nonmembers, score_column=score_column, member_column=member_column, kind=kind
        ).scores
    # Options about a file of scores say nothing without one.
    elif any(value is not None for value in (nonmembers, score_column, member_column, kind)):
        raise ValueError(
            "--pilot: is missing; the other options about a file of scores describe it"
        )
    else:  # an AUC, or None for a perfect attack
        attack = None if auc is None else check_in("[0.5, 1)", "--auc", auc)
    planned = plan_audit(
        m,
        delta,
        confidence,
        epsilon=epsilon,
        power=power,
        attack=attack,
        guess=guess,
        simulations=simulations,
        seed=seed,
    )
    content = {"headline": planned.headline, **planned.to_dict()}
    print(canonical_json(content, indent=1, is_ascii=True) if as_json else planned)
