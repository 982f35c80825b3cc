"""Which attack to use: several settings and seeds, compared on the validation part alone."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from paperlib.attacks.learned.interface import Attack, FittedAttack, Labelled
from paperlib.core import FloatArray, check_at_least

Criterion = Callable[[FloatArray, NDArray[np.bool_]], float]


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
    trained ``restarts`` times, and the best of these is kept. The first of equals wins.

    Args:
        attacks: Settings to choose from, at least one.
        train: Examples to train on, members and others.
        validation: Examples that settings and seeds are compared on, members and others.
        criterion: Function of scores and membership, higher is better, such as the bound itself.
        restarts: Number of trainings of the best setting, 1 or more.
        seed: Seed of the first training; the next ones are ``seed + 1`` and so on.

    Raises:
        ValueError: No attack, no restart, only members or only others, or scores that are not finite.

    Source:
        PANORAMIA, appendix C.2: the best of 5 initialisations on the validation part.
    """
    if not attacks:
        raise ValueError("attacks: expected at least one, got none")
    check_at_least(1, restarts=restarts)
    for name, part in (("train", train), ("validation", validation)):
        if part.membership.all() or not part.membership.any():
            raise ValueError(
                f"{name}: members and others are both needed, got {part.membership.size} of one kind"
            )

    def value(attack: Attack, fitted: FittedAttack) -> float:
        scores = fitted.scores(validation.inputs)
        if not np.isfinite(scores).all():
            raise ValueError(
                f"attacks: {attack.name} gave scores that are NaN or infinite; change its settings"
            )
        return criterion(scores, validation.membership)

    candidates = [attack.fit(train, validation, seeds=[seed])[0] for attack in attacks]
    values = [value(attack, fitted) for attack, fitted in zip(attacks, candidates, strict=True)]
    if restarts > 1:
        best = attacks[int(np.argmax(values))]
        again = best.fit(train, validation, seeds=range(seed + 1, seed + restarts))
        candidates += again
        values += [value(best, fitted) for fitted in again]
    return candidates[int(np.argmax(values))]
