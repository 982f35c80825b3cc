"""What PANORAMIA's two tests take for granted: levels, relaxations, and where the coins come
from.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paperlib.bounds.one_run.fair_coins import IMPLAUSIBLE, draw_game, fair_coin_p_value
from paperlib.core import IntArray
from paperlib.core.checks import check_choice, check_confidence, check_delta, check_nonnegative
from paperlib.core.options import Design


@dataclass(frozen=True)
class Terms:
    """What both tests take for granted, checked: arguments of `audit_panoramia`."""

    confidence: float  # of both bounds together, in (0, 1)
    gamma: float  # probability of a set on which closeness may fail, in [0, 1)
    delta: float  # of (epsilon, delta)-DP, in [0, 1)
    known_c: float | None  # c of the generator where it is known, nats, 0 or more
    design: Design
    seed: int  # of a game

    def __post_init__(self) -> None:
        """Refuse (ValueError) numbers out of range, and keep them as float."""
        check_choice("design", self.design, Design)
        object.__setattr__(self, "confidence", check_confidence(self.confidence))
        object.__setattr__(self, "delta", check_delta(self.delta))
        object.__setattr__(self, "gamma", check_delta(self.gamma, "gamma"))
        if self.known_c is not None:
            object.__setattr__(self, "known_c", check_nonnegative("known_c", self.known_c))

    @property
    def level(self) -> float:
        """Error of each test, in (0, 1/2]."""
        error = 1 - self.confidence
        return error / 2 if self.known_c is None else min(error, 0.5)

    @property
    def relaxations(self) -> tuple[float, float]:
        """Relaxation of the baseline's test, and of the attack's."""
        return self.gamma, self.gamma + self.delta - self.gamma * self.delta

    def shown(self, flags: NDArray[np.bool_]) -> IntArray:
        """Positions of the examples that the game shows, rising, of ``flags``, True for a member,
        shape (m,).

        Raises:
            ValueError: Counts that fair coins do not give, or too few examples for a game.
        """
        members, others = np.flatnonzero(flags), np.flatnonzero(~flags)
        if self.design == "game":
            drawn = draw_game("membership", members.size, others.size, seed=self.seed)
            return np.sort(np.concatenate([members[drawn[0]], others[drawn[1]]]))
        if fair_coin_p_value(members.size, others.size) < IMPLAUSIBLE:
            raise ValueError(
                f"membership: {members.size} members and {others.size} generated examples are "
                "implausible under fair coins; show a member or a generated point by a fair coin "
                "for each place, or pass design='game' to draw such a subsample here"
            )
        return np.arange(flags.size)
