"""What PANORAMIA's two tests take for granted: levels, relaxations, and where the coins come
from.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paperlib.bounds.one_run.fair_coins import IMPLAUSIBLE, draw_game, fair_coin_p_value
from paperlib.core import IntArray, check_choice
from paperlib.core.checks import check_confidence, check_delta, check_nonnegative
from paperlib.core.options import Design


@dataclass(frozen=True)
class Terms:
    """What both tests take for granted, checked: arguments of `audit_panoramia`."""

    confidence: float
    gamma: float
    delta: float
    known_c: float | None
    design: Design
    seed: int

    def __post_init__(self) -> None:
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

    @property
    def condition(self) -> str:
        """What must stand beside the number."""
        if self.known_c is None:
            return (
                "a measurement: it speaks of leakage only if no better baseline could tell real "
                "from generated records"
            )
        return (
            f"assumes that the generator's c is at most {self.known_c:g} by construction: it "
            "speaks of replacing one record"
        )

    def shown(self, flags: NDArray[np.bool_]) -> IntArray:
        """Positions of the examples that the game shows, rising; ValueError for implausible
        coins.
        """
        members, others = np.flatnonzero(flags), np.flatnonzero(~flags)
        if self.design == "game":
            shown = draw_game("membership", members.size, others.size, seed=self.seed)
            return np.sort(np.concatenate([members[shown[0]], others[shown[1]]]))
        if fair_coin_p_value(members.size, others.size) < IMPLAUSIBLE:
            raise ValueError(
                f"membership: {members.size} members and {others.size} generated examples are "
                "implausible under fair coins; show a member or a generated point by a fair coin "
                "for each place, or pass design='game' to draw such a subsample here"
            )
        return np.arange(flags.size)


def assumptions(order: str, total: int, terms: Terms) -> tuple[str, ...]:
    """What a result takes for granted; ``order`` is "learned" or a search over ``total`` recall
    levels.
    """
    shown = (
        "a fair coin decided for each audit example whether it is a real member or a "
        "generated point"
    )
    if terms.design == "game":
        shown += (
            f": drawn here with seed {terms.seed}. Another seed gives another result; picking the "
            "largest over seeds is a search that the confidence does not cover"
        )
    correction = {
        "union": (
            f"the threshold search is corrected by a union bound over {total} recall levels "
            "per test"
        ),
        "anytime": (
            "every guess count is tested at once by a supermartingale in the order of the scores"
        ),
        "learned": "every guess count is tested at once by a supermartingale; which example is "
        "guessed next, and which is only looked at, depends on nothing but the features and the "
        "coins revealed before it",
    }[order]
    gamma, known_c = terms.gamma, terms.known_c
    closeness = "the generator gives every point at least e^-c of its true probability"
    if gamma > 0:
        closeness += f", outside a set of true probability {gamma:g}"
    shared = "the two tests share the error equally"
    if known_c is None:
        rest = (
            "epsilon~ speaks of leakage only if the baseline is as good at telling real from "
            "generated points as the target's information allows; check it with a null model, a "
            "target that never saw the members, for which epsilon~ must be 0"
        )
    else:
        shared = "the attack's test has the whole error; the baseline's is a check of c beside it"
        rest = f"the generator's c is at most {known_c:g} by construction, not by estimation"
    sees = "scores"
    fixed = (
        "attack, baseline and their settings were fixed on other examples; this test split is "
        "touched once"
    )
    if order == "learned":
        sees = "features"
        fixed = (
            "features, model and settings were fixed without a look at these coins, which are "
            "used once"
        )
    return (
        shown,
        closeness,
        (
            f"the baseline's {sees} depend on the examples alone; generated points are independent "
            "of the model"
        ),
        f"{shared}; {correction}",
        fixed,
        rest,
    )
