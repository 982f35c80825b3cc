"""A world where the generator's density is known: c is computed, and so is what a weak baseline hides."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from scipy.special import expit

from paperlib.audits.panoramia.game import Flags
from paperlib.bounds import PanoramiaResult, audit_panoramia
from paperlib.core import FloatArray, check_at_least, check_in, check_nonnegative
from paperlib.report import progress


@dataclass(frozen=True, kw_only=True)
class ToyWorld:
    """Points that carry a mark or not; generated points carry it less often; a model that answers."""

    # c of the generator, nats: ``log(P_real[mark] / P_generated[mark])``; no point has a larger ratio
    c: float = 0.7
    epsilon: float = 1.0  # nats that the model's answer about a point adds to its odds, exactly
    mark: float = 0.5  # share of the real points that carry the mark, in (0, 1)
    m: int = 2_000  # points shown in a game

    def __post_init__(self) -> None:
        check_nonnegative("c", self.c)
        check_nonnegative("epsilon", self.epsilon)
        check_in("(0, 1)", "mark", self.mark)
        check_at_least(2, m=self.m)

    def seen_c(self, weakness: float) -> float:
        """The c that a baseline can see which takes the mark for its opposite in this share of the points.

        >>> world = ToyWorld()
        >>> round(world.seen_c(0.0), 12), round(world.seen_c(0.5), 12)
        (0.7, 0.0)
        """
        real, made = self._shares(weakness)
        return float(np.log(real / made))

    def play(
        self, weakness: float, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray, FloatArray, Flags]:
        """One game: scores of the baseline, of an attack that sees marks as they are, of an attack that sees
        them as the baseline does, and membership, each of shape (m,); the scores are the best there are."""
        member = rng.random(self.m) < 0.5
        marked = rng.random(self.m) < self.mark * np.exp(np.where(member, 0.0, -self.c))
        seen = marked ^ (rng.random(self.m) < weakness)
        told = rng.random(self.m) < expit(np.where(member, self.epsilon, -self.epsilon))
        answer = self.epsilon * (2.0 * told - 1)
        more, same = self._odds(marked, 0.0) + answer, self._odds(seen, weakness) + answer
        return seen.astype(np.float64), more, same, member

    def _shares(self, wrong: float) -> FloatArray:
        """Real and generated points that seem to carry the mark."""
        check_in("[0, 0.5]", "weakness", wrong)
        shares = self.mark * np.exp([0.0, -self.c])
        return (1 - wrong) * shares + wrong * (1 - shares)

    def _odds(self, marked: Flags, wrong: float) -> FloatArray:
        real, made = self._shares(wrong)
        return np.where(marked, np.log(real / made), np.log((1 - real) / (1 - made)))


def weaken_baseline(
    world: ToyWorld,
    weaknesses: tuple[float, ...],
    *,
    repetitions: int = 50,
    confidence: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """How far epsilon~ is from epsilon as the baseline sees less, by the anytime search."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, object]] = []
    for weakness in progress(weaknesses, label="baselines"):
        seen = world.seen_c(weakness)
        limits = {"sees more": world.c + world.epsilon - seen, "sees the same": world.epsilon}
        audits = partial(_audited_game, world, weakness, rng, confidence)
        games = [audits() for _ in range(repetitions)]
        for game, found in enumerate(games):
            for (attack, limit), (one, known) in zip(limits.items(), found, strict=True):
                rows.append(
                    {
                        "weakness": weakness,
                        "game": game,
                        "attack": attack,
                        "c_lb": one.c_lb,
                        "c_plus_eps_lb": one.c_plus_epsilon_lb,
                        "eps_tilde": one.epsilon_tilde,
                        "known_c": known.epsilon or 0.0,
                        "seen_c": seen,
                        "limit": limit,
                    }
                )
    return pd.DataFrame(rows)


def _audited_game(
    world: ToyWorld, weakness: float, rng: np.random.Generator, confidence: float
) -> list[tuple[PanoramiaResult, PanoramiaResult]]:
    """Audits without and with known c, of the attack that sees more and of the one that sees the same."""
    baseline, *attacks, member = world.play(weakness, rng)
    audit = partial(audit_panoramia, confidence=confidence, search="anytime")
    return [
        (audit(baseline, scores, member), audit(baseline, scores, member, known_c=world.c))
        for scores in attacks
    ]
