"""How often the test of a claimed curve refutes mechanisms at their own curve: its level.

``python -m paperlib.reproduction.validity.claimed_levels FILE`` writes the table of the book.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit, log_ndtr

from paperlib.bounds.claims.audit import right_guesses
from paperlib.bounds.claims.bets import highest_stake, limits_of
from paperlib.bounds.claims.curves import Profile, gaussian_profile
from paperlib.bounds.one_run.adaptive import Flags
from paperlib.core import FloatArray, MembershipScores
from paperlib.core.intervals import share_interval

ERROR = 0.05  # level of the test: the largest share of sound claims that it may refute
SIMULATIONS = 2_000  # audits of each mechanism and size
EXAMPLES = (200, 1_000)  # sizes of an audit
FIRST = 50  # audits whose count stands beside that of all, so that a test can simulate them again


@dataclass(frozen=True)
class OwnCurve:
    """A mechanism and its exact privacy profile: the smallest delta at each epsilon, nats."""

    draw: Callable[[np.random.Generator, Flags], FloatArray]  #: coins, shape (m,) → scores, (m,)
    profile: Profile


def _answers(rng: np.random.Generator, coins: Flags, log_odds: float) -> FloatArray:
    """Scores, -1 or 1, that tell each coin with these log-odds, nats."""
    told = np.where(rng.random(coins.size) < expit(log_odds), coins, ~coins)
    return np.where(told, 1.0, -1.0)


def _answers_profile(log_odds: float, told: float = 0.0) -> Profile:
    """Profile of `_answers` where a coin is told with this chance in place of its answer."""

    def delta(epsilon: FloatArray) -> FloatArray:
        # P[right answer] - e^epsilon P[wrong answer]; a told coin gives itself away.
        answered = np.maximum(0.0, expit(log_odds) - np.exp(epsilon) * expit(-log_odds))
        return np.asarray(told + (1 - told) * answered)

    return delta


def _telling(rng: np.random.Generator, coins: Flags, log_odds: float, told: float) -> FloatArray:
    """`_answers`, where a coin is told with this chance: a score of -2 or 2."""
    is_told = rng.random(coins.size) < told
    return np.where(is_told, np.where(coins, 2.0, -2.0), _answers(rng, coins, log_odds))


def _laplace_profile(scale: float) -> Profile:
    """Profile of Laplace noise of this scale on 0 or 1."""
    return lambda epsilon: np.maximum(0.0, -np.expm1((epsilon - 1 / scale) / 2))


def _sampled(rng: np.random.Generator, coins: Flags, sigma: float, rate: float) -> FloatArray:
    """Gaussian noise on whether the record is there and was drawn, with chance ``rate``."""
    is_drawn = coins & (rng.random(coins.size) < rate)
    return is_drawn + sigma * rng.standard_normal(coins.size)


def _sampled_profile(sigma: float, rate: float) -> Profile:
    """Profile of `_sampled`, the larger of the two directions.

    With and without the record the densities have the ratio 1 - rate + rate e^((x - 1/2)/sigma^2),
    which rises in x: delta is the excess of one density over e^epsilon times the other, summed over
    the outputs beyond the x at which the ratio is e^epsilon, or e^-epsilon in the other direction.
    """

    def ends(ratio: FloatArray) -> FloatArray:
        """The x at which the densities have this ratio; -inf where it is larger everywhere."""
        with np.errstate(divide="ignore"):
            excess = np.log(np.maximum(ratio - (1 - rate), 0.0) / rate)
        return 0.5 + sigma**2 * excess

    def delta(epsilon: FloatArray) -> FloatArray:
        """The larger excess at each epsilon, nats, of the same shape."""
        odds = np.exp(epsilon)
        # Outputs above ``top`` are likelier with the record by more than e^epsilon, those below
        # ``bottom`` without it.
        top, bottom = ends(odds), ends(1 / odds)

        def above(x: FloatArray) -> FloatArray:
            """Chance of an output above x with the record."""
            drawn = rate * np.exp(log_ndtr((1 - x) / sigma))
            return drawn + (1 - rate) * np.exp(log_ndtr(-x / sigma))

        def below(x: FloatArray) -> FloatArray:
            """Chance of an output below x with the record."""
            drawn = rate * np.exp(log_ndtr((x - 1) / sigma))
            return drawn + (1 - rate) * np.exp(log_ndtr(x / sigma))

        with_record = above(top) - odds * np.exp(log_ndtr(-top / sigma))
        without = np.exp(log_ndtr(bottom / sigma)) - odds * below(bottom)
        return np.maximum(0.0, np.maximum(with_record, without))

    return delta


def _mixed(rng: np.random.Generator, coins: Flags) -> FloatArray:
    """Little noise for all records with chance 1/10, much noise otherwise."""
    mu = 2.0 if rng.random() < 0.1 else 0.5
    return mu * coins + rng.standard_normal(coins.size)


def _mixed_profile(epsilon: FloatArray) -> FloatArray:
    """Profile of `_mixed`, whose output may tell which noise was drawn."""
    return 0.1 * gaussian_profile(2.0)(epsilon) + 0.9 * gaussian_profile(0.5)(epsilon)


def _common(rng: np.random.Generator, coins: Flags) -> FloatArray:
    """`_answers` with log-odds that all records share, drawn from those of a Gaussian curve."""
    return _answers(rng, coins, abs(rng.normal(0.5, 1.0)))


MECHANISMS: dict[str, OwnCurve] = {
    "Gaussian, mu = 1": OwnCurve(
        lambda rng, coins: coins + rng.standard_normal(coins.size), gaussian_profile(1.0)
    ),
    "Laplace, epsilon 1": OwnCurve(
        lambda rng, coins: coins + rng.laplace(size=coins.size), _laplace_profile(1.0)
    ),
    "sampled Gaussian, sigma = 0.5, q = 0.3": OwnCurve(
        lambda rng, coins: _sampled(rng, coins, 0.5, 0.3), _sampled_profile(0.5, 0.3)
    ),
    "randomized response, epsilon 1": OwnCurve(
        lambda rng, coins: _answers(rng, coins, 1.0), _answers_profile(1.0)
    ),
    "mixture of mu = 0.5 and, at 10 %, mu = 2": OwnCurve(_mixed, _mixed_profile),
    "randomized response, a record told at 0.5 %": OwnCurve(
        lambda rng, coins: _telling(rng, coins, 0.5, 0.005), _answers_profile(0.5, 0.005)
    ),
    "one log-odds for all records, mu = 1": OwnCurve(_common, gaussian_profile(1.0)),
}


def refuted_audits(name: str, examples: int, audits: int) -> Flags:
    """Whether each of so many audits of a mechanism refutes its own curve, shape (audits,): whether
    bets on its guesses, which start with a part of the allowed error, reach a stake of 1.

    Args:
        name: Of the mechanism, a key of `MECHANISMS`.
        examples: Examples of each audit.
        audits: Number of audits, each with coins and noise of its own.
    """
    mechanism = MECHANISMS[name]
    limits = limits_of([mechanism.profile], examples, ERROR)
    # Of each audit whether each guess is right; a guess may be left out, so some have fewer.
    right = np.zeros((audits, examples), dtype=bool)
    guesses = np.zeros(audits, dtype=np.int64)
    for number in range(audits):
        rng = np.random.default_rng([number, examples, *name.encode()])
        coins = rng.random(examples) < 0.5
        scores = MembershipScores.from_labels(mechanism.draw(rng, coins), coins)
        is_right = right_guesses(scores, number)  # of each guess in turn, shape (guesses,)
        guesses[number] = is_right.size
        right[number, : is_right.size] = is_right
    return highest_stake(right, limits, guesses) >= 1


def level_table(audits: int = SIMULATIONS, sizes: tuple[int, ...] = EXAMPLES) -> pd.DataFrame:
    """A row for each mechanism and each of the ``sizes``, in examples: how many of so many audits
    refute the mechanism's own curve, with the Clopper-Pearson 95 % interval of their share, which
    may be at most ``ERROR``, and how many of the first 50 do.
    """
    rows: list[dict[str, object]] = []
    for name in MECHANISMS:
        for examples in sizes:
            refuted = refuted_audits(name, examples, audits)
            low, high = share_interval(int(refuted.sum()), audits)
            rows.append(
                {
                    "mechanism": name,
                    "examples": examples,
                    "audits": audits,
                    "refuted": int(refuted.sum()),
                    "low": round(low, 4),
                    "high": round(high, 4),
                    "refuted_of_first_50": int(refuted[:FIRST].sum()),
                }
            )
    return pd.DataFrame(rows)


if __name__ == "__main__":
    level_table().to_csv(Path(sys.argv[1]), index=False)
