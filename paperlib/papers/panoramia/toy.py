"""A world where the generator's density is known: c is computed, and so is what a weak baseline hides."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from paperlib.audits.panoramia.game import Flags
from paperlib.bounds import audit_panoramia
from paperlib.core import FloatArray, check_choice, check_confidence, check_nonnegative
from paperlib.report import progress


@dataclass(frozen=True, kw_only=True)
class ToyWorld:
    """Points that carry a mark or not; generated points carry it less often; a model that answers.

    Attributes:
        c: c of the generator, nats: ``log(P_real[mark] / P_generated[mark])``; no point has a larger ratio.
        epsilon: Nats that the model's answer about a point adds to its odds, exactly.
        mark: Share of the real points that carry the mark, in (0, 1).
        m: Points shown in a game.

    Raises:
        ValueError: A value out of range.
    """

    c: float = 0.7
    epsilon: float = 1.0
    mark: float = 0.5
    m: int = 2_000

    def __post_init__(self) -> None:
        check_nonnegative("c", self.c)
        check_nonnegative("epsilon", self.epsilon)
        if not 0 < self.mark < 1:
            raise ValueError(f"mark: expected a share in (0, 1), got {self.mark}")
        if self.m < 2:
            raise ValueError(f"m: expected 2 or more, got {self.m}")

    def seen_c(self, weakness: float) -> float:
        """The c that a baseline can see which takes the mark for its opposite in this share of the points.

        >>> world = ToyWorld()
        >>> round(world.seen_c(0.0), 12), round(world.seen_c(0.5), 12)
        (0.7, 0.0)
        """
        real, made = self.mark, self.mark * np.exp(-self.c)
        wrong = check_weakness(weakness)
        seen = [(1 - wrong) * share + wrong * (1 - share) for share in (real, made)]
        return float(np.log(seen[0] / seen[1]))

    def measured(self, weakness: float) -> float:
        """What epsilon~ comes to in the largest games, if the attack sees marks as they are."""
        return self.c + self.epsilon - self.seen_c(weakness)

    def play(
        self, weakness: float, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray, FloatArray, Flags]:
        """One game: scores of the baseline, of an attack that sees marks as they are, of an attack that sees
        them as the baseline does, and membership, each of shape (m,); the scores are the best there are."""
        wrong = check_weakness(weakness)
        member = rng.random(self.m) < 0.5
        marked = rng.random(self.m) < self.mark * np.exp(np.where(member, 0.0, -self.c))
        seen = marked ^ (rng.random(self.m) < wrong)
        told = rng.random(self.m) < expit(np.where(member, self.epsilon, -self.epsilon))
        answer = self.epsilon * (2.0 * told - 1)
        return (
            seen.astype(np.float64),
            self._odds(marked, 0.0) + answer,
            self._odds(seen, wrong) + answer,
            member,
        )

    def _odds(self, marked: Flags, wrong: float) -> FloatArray:
        shares = np.array([self.mark, self.mark * np.exp(-self.c)])
        shares = (1 - wrong) * shares + wrong * (1 - shares)
        with_mark, without = np.log(shares[0] / shares[1]), np.log((1 - shares[0]) / (1 - shares[1]))
        return np.where(marked, with_mark, without)


def weaken_baseline(
    world: ToyWorld,
    weaknesses: tuple[float, ...],
    *,
    repetitions: int = 50,
    search: str = "anytime",
    confidence: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """How far epsilon~ is from epsilon as the baseline sees less.

    Args:
        world: The world, with its c and epsilon.
        weaknesses: Shares of the marks that the baseline sees wrongly, each in [0, 0.5].
        repetitions: Number of games for each, 1 or more.
        search: "union" or "anytime".
        confidence: Confidence level of each game, in (0, 1).
        seed: Seed of the games, 0 or more.

    Returns:
        One row per weakness, game and attack ("sees more", "sees the same"): weakness, game, attack, c_lb,
        c_plus_eps_lb, eps_tilde, known_c (the lower bound when c is told), seen_c and limit (what c_lb and
        epsilon~ tend to as m grows; "sees the same" tends to epsilon). Nats.
    """
    check_confidence(confidence)
    way: Any = check_choice("search", search, ("union", "anytime"))
    rng = np.random.default_rng(seed)
    rows: list[dict[str, object]] = []
    for weakness in progress(weaknesses, label="baselines"):
        for game in range(repetitions):
            baseline, more, same, member = world.play(weakness, rng)
            for attack, scores in (("sees more", more), ("sees the same", same)):
                found = audit_panoramia(baseline, scores, member, confidence=confidence, search=way)
                limit = world.measured(weakness) if attack == "sees more" else world.epsilon
                rows.append(
                    {
                        "weakness": weakness,
                        "game": game,
                        "attack": attack,
                        "c_lb": found.c_lb,
                        "c_plus_eps_lb": found.c_plus_epsilon_lb,
                        "eps_tilde": found.epsilon_tilde,
                        "known_c": max(0.0, found.c_plus_epsilon_lb - world.c),
                        "seen_c": world.seen_c(weakness),
                        "limit": limit,
                    }
                )
    return pd.DataFrame(rows)


def check_weakness(weakness: float) -> float:
    """Return ``weakness`` as a share in [0, 0.5].

    Raises:
        ValueError: It is not.
    """
    if not 0 <= weakness <= 0.5:
        raise ValueError(f"weakness: expected a share in [0, 0.5], got {weakness}")
    return float(weakness)
