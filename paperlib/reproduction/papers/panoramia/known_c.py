"""Where c is known: a toy generator whose density is, and identifiers, of which c is 0 by
construction.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

from paperlib.attacks.learned import BoostedTrees
from paperlib.audits.candidate_features import audit_candidate_features
from paperlib.audits.candidates import CandidateScores
from paperlib.audits.panoramia.game import AuditConfig, Flags
from paperlib.audits.panoramia.pools import Pool, Pools, Target
from paperlib.audits.panoramia.results import TargetScores
from paperlib.audits.panoramia.run import audit_pools
from paperlib.bounds import (
    audit_one_run,
    audit_output_set,
    audit_panoramia,
    audit_ranks,
    score_margins,
)
from paperlib.core import FloatArray, MembershipScores
from paperlib.core.checks import check_at_least, check_in, check_nonnegative
from paperlib.report import progress


class ToyGame(NamedTuple):
    """Best scores on the points of a game, and who is real, each of shape (m,)."""

    baseline: FloatArray  # 1 where the baseline sees the mark, 0 elsewhere
    sees_more: FloatArray  # log-odds, nats, of an attack that sees every mark rightly
    sees_the_same: FloatArray  # log-odds, nats, of an attack that sees marks as the baseline does
    member: Flags  # True for real points


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
        """Refuse (ValueError) numbers out of range."""
        check_nonnegative("c", self.c)
        check_nonnegative("epsilon", self.epsilon)
        check_in("(0, 1)", "mark", self.mark)
        check_at_least(2, m=self.m)

    def seen_c(self, weakness: float) -> float:
        """The c that a weak baseline can see, nats: the log-ratio of real to generated points that
        seem to carry the mark.

        Args:
            weakness: Share of the points, in [0, 0.5], of which it sees the opposite.
        """
        real, made = self._shares(weakness)
        return float(np.log(real / made))

    def play(self, weakness: float, rng: np.random.Generator) -> ToyGame:
        """A game in which a fair coin shows a real or a generated point in each of m places.

        Args:
            weakness: Share of the points, in [0, 0.5], of which the baseline sees the opposite.
            rng: Of coins, marks, mistakes and answers, in this order.
        """
        member = rng.random(self.m) < 0.5
        # Generated points have the mark e^c times less often.
        marked = rng.random(self.m) < self.mark * np.exp(np.where(member, 0.0, -self.c))
        seen = marked ^ (rng.random(self.m) < weakness)  # by the baseline, at times wrongly
        # The model answers by randomized response, whose log odds are plus or minus epsilon.
        yes = rng.random(self.m) < expit(np.where(member, self.epsilon, -self.epsilon))
        answer = self.epsilon * (2.0 * yes - 1)
        sees_more = self._odds(marked, 0.0) + answer
        sees_the_same = self._odds(seen, weakness) + answer
        return ToyGame(seen.astype(np.float64), sees_more, sees_the_same, member)

    def _shares(self, wrong: float) -> FloatArray:
        """Shares of the real and of the generated points that seem to carry the mark where this
        share is seen wrongly, shape (2,).
        """
        check_in("[0, 0.5]", "weakness", wrong)
        shares = self.mark * np.exp([0.0, -self.c])
        return (1 - wrong) * shares + wrong * (1 - shares)

    def _odds(self, marked: Flags, wrong: float) -> FloatArray:
        """Log-odds that points are real, nats, from a mark that is seen wrongly at this rate."""
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
    """How far epsilon~ is from epsilon as the baseline sees less, by the anytime search.

    Args:
        world: Whose c and epsilon are known.
        weaknesses: Shares of the points, in [0, 0.5], of which the baseline sees the opposite.
        repetitions: Games at each weakness.
        confidence: Of each bound, in (0, 1).
        seed: Of all games.

    Returns:
        A row for each game and attack: the bounds, epsilon with c known (``known_c``), the c that
            the baseline can see (``seen_c``), and what epsilon~ tends to with more points
            (``limit``); nats.
    """
    rng = np.random.default_rng(seed)
    audit = partial(audit_panoramia, confidence=confidence, search="anytime")
    rows: list[dict[str, object]] = []
    for weakness in progress(weaknesses, label="baselines"):
        seen_c = world.seen_c(weakness)
        for game in range(repetitions):
            points = world.play(weakness, rng)
            for attack, scores, limit in (
                # The attack finds all of c + epsilon, of which what the baseline sees is taken off.
                ("sees more", points.sees_more, world.c + world.epsilon - seen_c),
                ("sees the same", points.sees_the_same, world.epsilon),
            ):
                bounds = audit(points.baseline, scores, points.member)
                with_known_c = audit(points.baseline, scores, points.member, known_c=world.c)
                rows.append(
                    {
                        "weakness": weakness,
                        "game": game,
                        "attack": attack,
                        "c_lb": bounds.c_lb,
                        "c_plus_eps_lb": bounds.c_plus_epsilon_lb,
                        "eps_tilde": bounds.epsilon_tilde,
                        "known_c": with_known_c.epsilon or 0.0,
                        "seen_c": seen_c,
                        "limit": limit,
                    }
                )
    return pd.DataFrame(rows)


def identifier_pools(scores: CandidateScores, *, trained: bool = True) -> Pools:
    """Identifiers as members, one alternative of each as generated points, and one target.

    Args:
        scores: Of identifiers (candidate 0) and their alternatives, by attack; higher for members.
        trained: Take the identifiers that the model was trained on (``groups`` above 0); False
            takes those that it never saw, for which it is a null target.
    """
    values = scores.values[(scores.groups > 0) == trained]  # (identifiers, candidates, attacks)
    loss = scores.attacks.index("loss")
    others = [column for column in range(len(scores.attacks)) if column != loss]
    signs = np.array([-1.0, *np.ones(len(others))])  # column 0 is a loss: lower means member

    def pool(candidate: int) -> Pool:
        """The candidates of this number as examples, with the model's outputs on them."""
        outputs = values[:, candidate][:, [loss, *others]] * signs
        no_features = np.zeros((len(values), 1))  # attacks see the outputs alone
        return Pool(no_features, {}, {"trained": outputs})

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

    Args:
        scores: Of identifiers and their alternatives, by attack.
        attack: The one whose scores "one run" and "ranks" take; games and the learned order take
            all.
        repetitions: Games, over which the two bounds of games are means.
        confidence: Of each bound, in (0, 1).
        seed: Of coins, games and learned orders.

    Returns:
        A row for each bound; columns "epsilon", of the identifiers that were trained on, and
            "null", of the others (nats).

    Raises:
        ValueError: An attack that ``scores`` lack.
    """
    column = scores.attacks.index(attack)
    bounds: dict[str, dict[str, Any]] = {}
    for name, trained in (("epsilon", True), ("null", False)):
        every_attack = scores.values[(scores.groups > 0) == trained]
        values = every_attack[:, :, column]
        games = _games(scores, trained, repetitions, confidence, seed)
        # A fair coin for each identifier shows it or its first alternative, never both: each would
        # give the other away.
        heads = np.random.default_rng(seed).random(len(values)) < 0.5
        one_run = MembershipScores(values[heads, 0], values[~heads, 1])
        margins = score_margins(values[:, 0], values[:, 1:])
        learned_order = audit_candidate_features(
            every_attack, np.zeros(len(values)), confidence=confidence, seed=seed
        )
        bounds[name] = {
            "PANORAMIA with c = 0": np.mean([_with_c_zero(game, confidence) for game in games]),
            "output set": np.mean([_with_output_set(game, confidence) for game in games]),
            "one run": audit_one_run(one_run, confidence=confidence, design="played").epsilon,
            "ranks": _with_ranks(values, confidence),
            "ranks, surest sets": _with_ranks(values, confidence, margins),
            "ranks, learned order": learned_order.epsilon,
        }
    return pd.DataFrame(bounds).rename_axis("bound").reset_index()


def _games(
    scores: CandidateScores, trained: bool, repetitions: int, confidence: float, seed: int
) -> tuple[TargetScores, ...]:
    """PANORAMIA's games on the identifiers that were trained on, or on those that were not.

    Attacks learn from 15 % of them, 10 % choose the attack, and the rest are judged (chosen).
    """
    count = int(((scores.groups > 0) == trained).sum())
    to_learn = round(0.15 * count)
    to_choose = round(0.1 * count)
    audit = AuditConfig(
        train=2 * to_learn,  # of both sides, as of those that choose
        validation=2 * to_choose,
        test=count - to_learn - to_choose,
        attacks=(BoostedTrees(rounds=30, leaves=4, smallest_leaf=5, learning_rate=0.2),),
        restarts=5,
        repetitions=repetitions,
        confidence=confidence,
        seed=seed,
    )
    return audit_pools(identifier_pools(scores, trained=trained), audit).select("panoramia")


def _with_c_zero(game: TargetScores, confidence: float) -> float:
    """PANORAMIA's bound on epsilon where c is 0."""
    return game.panoramia("anytime", confidence, known_c=0.0).c_plus_epsilon_lb


def _with_output_set(game: TargetScores, confidence: float) -> float:
    """The bound of an output set that half of the examples choose and the others judge."""
    labelled = MembershipScores.from_labels(game.attack, game.membership)
    selection, judged = labelled.split(seed=0)
    return audit_output_set(selection, judged, confidence=confidence, design="played").epsilon


def _with_ranks(values: FloatArray, confidence: float, margins: FloatArray | None = None) -> float:
    """The bound of how often an identifier's score is above those of all its alternatives."""
    ranks = 1 + (values[:, 1:] >= values[:, :1]).sum(axis=1)
    sizes = np.full(len(values), values.shape[1])
    return audit_ranks(ranks, sizes, top=1, confidence=confidence, margins=margins).epsilon
