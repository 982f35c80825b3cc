"""Where c is known: a toy generator whose density is, and identifiers, of which c is 0 by
construction.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from paperlib.attacks.learned import BoostedTrees
from paperlib.audits.candidate_features import audit_candidate_features
from paperlib.audits.candidates import CandidateScores
from paperlib.audits.panoramia.game import AuditConfig, Flags
from paperlib.audits.panoramia.pools import Pool, Pools, Target
from paperlib.audits.panoramia.run import audit_pools
from paperlib.bounds import (
    audit_one_run,
    audit_output_set,
    audit_panoramia,
    audit_ranks,
    score_margins,
)
from paperlib.core import FloatArray, MembershipScores, check_at_least, check_in, check_nonnegative
from paperlib.report import progress


@dataclass(frozen=True, kw_only=True)
class ToyWorld:
    """Points that carry a mark or not; generated points carry it less often; a model that
    answers.
    """

    # c of the generator, nats: ``log(P_real[mark] / P_generated[mark])``; no point has a larger
    # ratio
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
        """The c that a baseline can see which takes the mark for its opposite in this share of the
        points.
        """
        real, made = self._shares(weakness)
        return float(np.log(real / made))

    def play(
        self, weakness: float, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray, FloatArray, Flags]:
        """Best scores of the baseline, and of attacks that see more and the same; membership; each
        (m,).
        """
        member = rng.random(self.m) < 0.5
        marked = rng.random(self.m) < self.mark * np.exp(np.where(member, 0.0, -self.c))
        seen = marked ^ (rng.random(self.m) < weakness)
        right = rng.random(self.m) < expit(np.where(member, self.epsilon, -self.epsilon))
        answer = self.epsilon * (2.0 * right - 1)
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
    audit = partial(audit_panoramia, confidence=confidence, search="anytime")
    rows: list[tuple[object, ...]] = []
    for weakness in progress(weaknesses, label="baselines"):
        seen = world.seen_c(weakness)
        limits = {"sees more": world.c + world.epsilon - seen, "sees the same": world.epsilon}
        for game in range(repetitions):
            baseline, *attacks, member = world.play(weakness, rng)
            for (attack, limit), scores in zip(limits.items(), attacks, strict=True):
                one = audit(baseline, scores, member)
                known = audit(baseline, scores, member, known_c=world.c)
                bounds = one.c_lb, one.c_plus_epsilon_lb, one.epsilon_tilde, known.epsilon or 0.0
                rows.append((weakness, game, attack, *bounds, seen, limit))
    named = ["c_lb", "c_plus_eps_lb", "eps_tilde", "known_c"]
    return pd.DataFrame(rows, columns=["weakness", "game", "attack", *named, "seen_c", "limit"])


def identifier_pools(scores: CandidateScores, *, trained: bool = True) -> Pools:
    """Identifiers as members, one alternative of each as generated points, and one target."""
    values = scores.values[(scores.groups > 0) == trained]
    order = [
        scores.attacks.index("loss"),
        *(i for i, name in enumerate(scores.attacks) if name != "loss"),
    ]
    signs = np.array([-1.0, *np.ones(len(order) - 1)])  # column 0 is a loss: lower means member

    def pool(column: int) -> Pool:
        return Pool(
            np.zeros((len(values), 1)), {}, {"trained": values[:, column][:, order] * signs}
        )

    target = Target("trained", "trained" if trained else "null", 0)
    return Pools(pool(0), pool(1), None, (target,), twins=True)


def bounds_side_by_side(
    scores: CandidateScores,
    *,
    attack: str = "loss",
    repetitions: int = 5,
    confidence: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Six valid lower bounds on epsilon (replacement) from the same identifiers and the same
    model.
    """
    at, found = scores.attacks.index(attack), dict[str, dict[str, Any]]()
    trees = BoostedTrees(rounds=30, leaves=4, smallest_leaf=5, learning_rate=0.2)
    how: dict[str, Any] = {"confidence": confidence, "seed": seed}
    for trained in (True, False):
        every = scores.values[(scores.groups > 0) == trained]
        values, count = every[:, :, at], len(every)
        learned, chosen = round(0.15 * count), round(0.1 * count)
        sizes = {"train": 2 * learned, "validation": 2 * chosen, "test": count - learned - chosen}
        audit = AuditConfig(**sizes, attacks=(trees,), restarts=5, repetitions=repetitions, **how)
        games = audit_pools(identifier_pools(scores, trained=trained), audit).select("panoramia")
        known = [
            one.panoramia("anytime", confidence, known_c=0.0).c_plus_epsilon_lb for one in games
        ]
        halves = (
            MembershipScores.from_labels(one.attack, one.membership).split(seed=0) for one in games
        )
        sets = [
            audit_output_set(*pair, confidence=confidence, design="played").epsilon
            for pair in halves
        ]
        # A fair coin for each identifier shows it or its alternative: the two would tell on each
        # other.
        shown = np.random.default_rng(seed).random(count) < 0.5
        one_run = MembershipScores(values[shown, 0], values[~shown, 1])
        margins = score_margins(values[:, 0], values[:, 1:])
        found["epsilon" if trained else "null"] = {
            "PANORAMIA with c = 0": np.mean(known),
            "output set": np.mean(sets),
            "one run": audit_one_run(one_run, confidence=confidence, design="played").epsilon,
            "ranks": _ranks(values, confidence),
            "ranks, surest sets": _ranks(values, confidence, margins),
            "ranks, learned order": audit_candidate_features(every, np.zeros(count), **how).epsilon,
        }
    return pd.DataFrame(found).rename_axis("bound").reset_index()


def _ranks(values: FloatArray, confidence: float, margins: FloatArray | None = None) -> float:
    ranks = 1 + (values[:, 1:] >= values[:, :1]).sum(axis=1)
    sizes = np.full(len(values), values.shape[1])
    return audit_ranks(ranks, sizes, top=1, confidence=confidence, margins=margins).epsilon
