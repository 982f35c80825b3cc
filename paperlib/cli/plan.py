"""``paperlib plan``: what an audit could show, or how many examples it needs, before anyone
trains.
"""

from pathlib import Path

from paperlib.cli.options import Guess, Kind, kind_of


def plan(
    m: int | None = None,
    epsilon: float | None = None,
    power: float = 0.8,
    auc: float | None = None,
    pilot: Path | None = None,
    nonmembers: Path | None = None,
    score_column: str | None = None,
    member_column: str | None = None,
    kind: Kind | None = None,
    losses: bool = False,
    delta: float = 0.0,
    confidence: float = 0.95,
    guess: Guess = "adaptive",
    simulations: int | None = None,
    seed: int = 0,
    as_json: bool = False,
) -> None:
    """Plan an audit: the epsilon that m examples can show, or the number of examples for an
    epsilon.

    The plan simulates audits by the attack, a perfect one without --auc or --pilot. It prints the
    bound that a share --power of audits reaches, the mean bound, and the range of 80 % of the
    bounds.
    """
    from paperlib.bounds import plan_audit
    from paperlib.core.checks import check_in
    from paperlib.io import read_scores
    from paperlib.io.files import canonical_json

    kind = kind_of(kind, losses)
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
    elif any(value is not None for value in (nonmembers, score_column, member_column, kind)):
        raise ValueError(
            "--pilot: is missing; the other options about a file of scores describe it"
        )
    else:
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
