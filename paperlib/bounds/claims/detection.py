"""What the test of a claim could have seen: how much less noise than claimed it would have shown,
with the strongest attack.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from paperlib.bounds.claims.bets import Limits, highest_stake, limits_of
from paperlib.bounds.claims.curves import Profile
from paperlib.bounds.one_run.adaptive import ends_of, reveal
from paperlib.bounds.one_run.detection import fewest_with
from paperlib.core import FloatArray
from paperlib.core.checks import check_confidence, check_counts, check_in
from paperlib.core.intervals import share_interval
from paperlib.words.audits import claimed_curves as words

_STEP = 1.1  # from one factor to the next
_STEPS = 24  # up to 9.8 times less noise
_LAST = 60.0  # nats; log-odds that are drawn
_LAST_DELTA = 1e-10  # beyond which a record counts as exposed
_POINTS = 4_000  # log-odds of a law
_AT_MOST = 4_000_000  # examples of the audits simulated for one factor
SIMULATIONS = (40, 120)  # audits simulated for one factor: the fewest, and the most


@dataclass(frozen=True, kw_only=True)
class ClaimLimit:
    """The least factor between claimed and true noise that an audit shows; ``power`` is that of the
    call.

    Attributes:
        factor: The noise is so many times smaller than claimed; None if 9.8 times would not be
            seen.
        shown: How many of the simulated audits refuted the claim at this factor, or at 9.8.
        simulations: Their number.
        low, high: 95 % interval of the chance to refute it, of which ``low`` is at least ``power``
            where a factor is given.
    """

    factor: float | None
    power: float
    shown: int
    simulations: int
    low: float
    high: float

    @property
    def sentence(self) -> str:
        """What the audit would have seen, and what that does not cover."""
        return words.detection(self)


def limit_of_claim(
    with_noise: Callable[[float], Profile],
    total: int,
    *,
    confidence: float = 0.95,
    power: float = 0.8,
    simulations: int | None = None,
    seed: int = 0,
) -> ClaimLimit:
    """How much less noise than claimed an audit of ``total`` examples would have shown.

    Audits of a training with less noise are simulated, with the strongest attack that its curve
    allows, of each record by itself. A weaker attack shows less.

    Args:
        with_noise: The profile at so many times the claimed noise, as of `ClaimedCurve`.
        confidence: Of the test, in (0, 1).
        power: Share of the audits that must refute the claim, in (0, 1).
        simulations: Audits simulated for each factor tried; None: 40 to 120, fewer of large audits.

    Raises:
        ValueError: No example, no simulation, or a confidence or power outside (0, 1).

    >>> from paperlib.bounds.claims.curves import gaussian_profile
    >>> limit = limit_of_claim(lambda noise: gaussian_profile(0.5 / noise), 400, simulations=60)
    >>> 1.5 < limit.factor < 3
    True
    """
    size = int(check_counts("total", total, minimum=1))
    error, power = 1 - check_confidence(confidence), check_in("(0, 1)", "power", power)
    if simulations is None:
        simulations = int(np.clip(_AT_MOST // size, *SIMULATIONS))
    audits = int(check_counts("simulations", simulations, minimum=1))
    limits = limits_of([with_noise(1.0)], size, error)
    shown: dict[int, int] = {}  # by step, a power of 1.1, how many of the audits refute the claim

    def often(step: int) -> bool:
        """Whether audits of a noise 1.1^step times smaller are surely shown often enough."""
        law = law_of_log_odds(with_noise(_STEP**-step))
        shown[step] = _shown(law, limits, size, audits, seed)
        return share_interval(shown[step], audits)[0] >= power

    step = fewest_with(often, _STEPS)
    hits = shown[_STEPS if step is None else step]
    low, high = share_interval(hits, audits)
    return ClaimLimit(
        factor=None if step is None else _STEP**step,
        power=power,
        shown=hits,
        simulations=audits,
        low=low,
        high=high,
    )


def law_of_log_odds(profile: Profile) -> tuple[FloatArray, FloatArray]:
    """How strongly the output of a mechanism tells a record's coin, if it has just this curve in
    both directions.

    Returns:
        Sizes of the log-odds of the coin, nats, rising, the last one infinite, and the chance of
        each; both of shape (points + 1,).
    """
    # With and without the record the output has the laws P and Q, of ratio L = P / Q. In x =
    # e^epsilon, delta = E_Q (L - x)+ has the slope -Q(L > x): where it bends by b, Q(L = x) = b and
    # P(L = x) = x b. The coin's log-odds are log x there, and by symmetry -log x as often, so that
    # the size log x has the chance (1 + x) b. L = 1 counts once, with chance b; the slope left of
    # it follows from delta(x) = 1 - x + x delta(1 / x). What delta has left at the end is infinite.
    fine = np.linspace(0.0, _LAST, 600)
    last = fine[int(np.argmax(np.append(profile(fine[:-1]) <= _LAST_DELTA, True)))]
    log_odds = np.linspace(0.0, max(float(last), 0.1), _POINTS)
    x, delta = np.exp(log_odds), profile(log_odds)
    slope = np.append(np.diff(delta) / np.diff(x), 0.0)
    mirrored = delta[0] - 1.0 - slope[0]
    bends = np.diff(slope, prepend=mirrored)
    chances = np.append(bends * (1.0 + x), delta[-1])
    chances[0] = bends[0]
    chances = np.maximum(chances, 0.0)
    return np.append(log_odds, np.inf), chances / chances.sum()


def _shown(
    law: tuple[FloatArray, FloatArray], limits: Limits, total: int, audits: int, seed: int
) -> int:
    """How many audits refute the claim, of ``audits`` simulated ones of ``total`` records each,
    whose coins have the ``law`` of `law_of_log_odds`.
    """
    right = np.zeros((audits, total), dtype=bool)
    guesses = np.zeros(audits, dtype=np.int64)
    for number in range(audits):
        made = _guesses(law, total, np.random.default_rng([seed, number]))
        guesses[number] = made.size
        right[number, : made.size] = made
    return int(np.count_nonzero(highest_stake(right, limits, guesses) >= 1))


def _guesses(
    law: tuple[FloatArray, FloatArray], total: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Whether each guess of one audit is right, shape (guesses,), in the adaptive order of the true
    log-odds; each of ``total`` records draws the size of its log-odds from the law.
    """
    values, chances = law
    drawn = np.searchsorted(np.cumsum(chances)[:-1], rng.random(total), side="right")
    log_odds = values[drawn]
    members = rng.random(total) < 0.5
    # Which side the output points to: the true one with the chance that the log-odds say.
    points_to_member = np.where(rng.random(total) < expit(log_odds), members, ~members)
    # Tied log-odds in random order.
    strength = drawn + rng.random(total)
    return reveal(ends_of(np.where(points_to_member, strength, -strength)), members).right
