"""Which attack to use: several settings and seeds, judged on the validation part alone."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.attacks.learned.views import Attack, AttackInputs, FittedAttack, ManySeeds
from paperlib.core import FloatArray

Criterion = Callable[[FloatArray, NDArray[np.bool_]], float]


def fit_best(
    attacks: Sequence[Attack],
    train: AttackInputs,
    membership: NDArray[np.bool_],
    *,
    validation: AttackInputs,
    validation_membership: NDArray[np.bool_],
    criterion: Criterion,
    restarts: int = 5,
    seed: int = 0,
) -> FittedAttack:
    """Train attacks, and keep the one that does best on the validation part.

    Every setting is trained once; the best of them is trained anew from other seeds until it has been
    trained ``restarts`` times, and the best of these is kept. The first of equals wins. Settings that can
    train several seeds at once (`ManySeeds`) do so.

    Args:
        attacks: Settings to choose from, at least one.
        train: What is trained on.
        membership: Who of it is a member, shape (n,).
        validation: What settings and seeds are chosen on.
        validation_membership: Who of it is a member.
        criterion: From scores and membership to a number, higher is better, such as the bound itself.
        restarts: Trainings of the best setting, 1 or more.
        seed: Of the first training.

    Raises:
        ValueError: No attack, no try, one kind of example only, or scores that are not finite.

    Source:
        PANORAMIA, appendix C.2: the best of 5 initialisations on the validation part.
    """
    if not attacks:
        raise ValueError("attacks: expected at least one, got none")
    if restarts < 1:
        raise ValueError(f"restarts: expected 1 or more, got {restarts}")
    for name, flags in (("membership", membership), ("validation_membership", validation_membership)):
        if flags.all() or not flags.any():
            raise ValueError(f"{name}: both kinds are needed, got {flags.size} of one kind")

    held: dict[str, Any] = {"validation": validation, "validation_membership": validation_membership}

    def judged(attack: Attack, fitted: FittedAttack) -> tuple[float, FittedAttack]:
        return criterion(_finite(attack, fitted.scores(validation)), validation_membership), fitted

    first = [judged(attack, attack.fit(train, membership, **held, seed=seed)) for attack in attacks]
    best = attacks[int(np.argmax([value for value, _ in first]))]
    seeds = range(seed + 1, seed + restarts)
    if isinstance(best, ManySeeds):
        again = best.fit_seeds(train, membership, **held, seeds=seeds) if seeds else []
    else:
        again = [best.fit(train, membership, **held, seed=at) for at in seeds]
    found = [max(first, key=lambda pair: pair[0]), *(judged(best, fitted) for fitted in again)]
    return max(found, key=lambda pair: pair[0])[1]


def _finite(attack: Attack, scores: FloatArray) -> FloatArray:
    if not np.isfinite(scores).all():
        raise ValueError(f"attacks: {attack.name} gave scores that are NaN or infinite; change its settings")
    return scores
