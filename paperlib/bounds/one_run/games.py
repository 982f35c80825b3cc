"""How far the bound of a drawn game depends on its seed."""

from collections.abc import Callable
from dataclasses import dataclass

from paperlib.core import check_at_least
from paperlib.core.results import AuditResult, round_down


@dataclass(frozen=True)
class GameSpread:
    """Bounds of games that differ in their seed alone.

    Attributes:
        lowest: Smallest bound, nats.
        mean: Mean bound, nats.
        highest: Largest bound, nats; to report it is a search that no confidence covers.
        games: Number of games.
    """

    lowest: float
    mean: float
    highest: float
    games: int

    def __str__(self) -> str:
        low, mean, high = (f"{round_down(value):.3f}" for value in (self.lowest, self.mean, self.highest))
        return (
            f"{self.games} games with other seeds: lowest {low}, mean {mean}, highest {high}; picking the "
            "largest is a search that the confidence does not cover"
        )


def game_spread(audit: Callable[..., AuditResult], *, games: int = 10, seed: int = 0) -> GameSpread:
    """Bounds of the games that follow the one reported, which is that of ``seed``.

    Args:
        audit: Audit that takes ``design`` and ``seed``, its scores given already:
            ``partial(audit_one_run, scores, delta=1e-5)``.
        games: Number of games, 1 or more; their seeds are seed + 1, seed + 2, ... .
        seed: Seed of the game that is reported, 0 or more.

    Raises:
        ValueError: No games, or an audit that has no epsilon.

    >>> import numpy as np
    >>> from functools import partial
    >>> from paperlib import MembershipScores, audit_one_run
    >>> rng = np.random.default_rng(0)
    >>> scores = MembershipScores(rng.normal(1, 1, 300), rng.normal(0, 1, 500))
    >>> spread = game_spread(partial(audit_one_run, scores), games=3)
    >>> 0 < spread.lowest < spread.mean < spread.highest
    True
    """
    check_at_least(1, games=games)
    found: list[float] = []
    for one in range(seed + 1, seed + games + 1):
        epsilon = audit(design="game", seed=one).epsilon
        if epsilon is None:
            raise ValueError("audit: its result has no epsilon to compare; give known_c to audit_panoramia")
        found.append(epsilon)
    return GameSpread(min(found), sum(found) / games, max(found), games)
