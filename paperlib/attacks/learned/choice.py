"""Which attack to use: several settings and seeds, compared on the validation part alone."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from paperlib.attacks.learned.interface import Attack, Criterion, FittedAttack, Labelled
from paperlib.core import check_at_least


def fit_best(
    attacks: Sequence[Attack],
    train: Labelled,
    validation: Labelled,
    *,
    criterion: Criterion,
    restarts: int = 5,
    seed: int = 0,
) -> FittedAttack:
    """Train attacks, and keep the one that does best on the validation part.

    Every setting is trained once; the best of them is trained again from other seeds until it has been
    trained ``restarts`` times, and the best of these is kept, the first of equals. One half of the validation
    part decides when a training stops, the other half compares the trained attacks.

    Args:
        attacks: Settings to choose from, at least one.
        train: Examples to train on, members and others.
        validation: Examples to stop trainings and compare settings, two members and two others or more.
        criterion: Function of scores and membership, higher is better, such as the bound itself.
        restarts: Number of trainings of the best setting, 1 or more, from ``seed``, ``seed + 1`` and so on.
        seed: Seed of the first training.

    Raises:
        ValueError: No attack, no restart, too few members or others, or scores that are not finite.

    Source:
        PANORAMIA, appendix C.1 (stopping by the bound) and C.2 (the best of 5 initialisations), there on one
        validation part.
    """
    if not attacks:
        raise ValueError("attacks: expected at least one, got none")
    check_at_least(1, restarts=restarts)
    for name, part, least in (("train", train, 1), ("validation", validation, 2)):
        members = int(part.membership.sum())
        others = part.membership.size - members
        if min(members, others) < least:
            raise ValueError(
                f"{name}: expected {least} or more members and as many others, got {members} and {others}"
            )
    stopping, choice = replace(validation, criterion=criterion).halves()

    def value(attack: Attack, fitted: FittedAttack) -> float:
        scores = fitted.scores(choice.inputs)
        if not np.isfinite(scores).all():
            raise ValueError(
                f"attacks: {attack.name} gave scores that are NaN or infinite; change its settings"
            )
        return choice.value(scores)

    candidates = [attack.fit(train, stopping, seeds=[seed])[0] for attack in attacks]
    values = [value(attack, fitted) for attack, fitted in zip(attacks, candidates, strict=True)]
    if restarts > 1:
        best = attacks[int(np.argmax(values))]
        again = best.fit(train, stopping, seeds=range(seed + 1, seed + restarts))
        candidates += again
        values += [value(best, fitted) for fitted in again]
    return candidates[int(np.argmax(values))]
