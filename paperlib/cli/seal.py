"""``paperlib seal``: what an audit will do, decided before training, and a hash of it to publish."""

from pathlib import Path
from typing import Annotated

import typer

EPILOG = (
    "A plan:  coins: 5f0c...  (the hash that `paperlib coins` printed)   score: loss   direction: lower   "
    "delta: 1e-5   limit: 3   mechanism: DP-SGD, clipping 1, noise 0.8   "
    "Examples:  paperlib seal plan.yaml   |   After training:  paperlib audit scores.csv --coins "
    "train.coins.json --plan plan.sealed.json"
)


def seal(
    plan: Annotated[
        Path,
        typer.Argument(
            help="YAML with coins, score and direction; as you need delta, confidence, guess, unit, "
            "claimed_epsilon, limit and scores (the file to be audited); in your own words model, attack, "
            "mechanism, accountant, sampling and notes."
        ),
    ],
) -> None:
    """Seal the plan of an audit before training, after the coins are tossed.

    Writes NAME.sealed.json beside NAME.yaml, and prints its hash. `paperlib audit --plan` runs as planned and
    refuses anything else. A hash that was published before training shows that the plan is as old; by itself
    it shows neither when it was made nor that no other plan was sealed.
    """
    from paperlib.audits import seal_plan

    sealed = seal_plan(plan)
    path = plan.with_suffix(".sealed.json")
    sealed.save(path)
    print(
        f"{path}: the plan, sealed on {sealed.sealed}\n"
        f"Hash of the plan, to be published before training: {sealed.hash}\n"
        "Publish this one alone, where others keep the date: a hash does not show when it was made, nor that "
        "no other plan was sealed\n"
        f"After training: paperlib audit {sealed.scores or 'scores.csv'} --coins FILE --plan {path}"
    )
