"""Simulated coverage: how often a reported bound exceeds a truth that is known."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betaincinv

from paperlib.core.intervals import share_interval
from paperlib.reproduction.validity.mechanisms import Mechanism

Trial = Callable[[np.random.Generator], tuple[float, bool]]
"""An audit of data that it draws: the reported bound, nats, and whether it is wrong."""


@dataclass(frozen=True)
class ValidityConfig:
    """Size of the simulation."""

    examples: int = 120  # audit examples m of each audit
    trials: int = 1_000  # audits of each bound; default options and twins get twice as many
    confidence: float = 0.95  # confidence level of every bound, in (0, 1)
    m_delta: float = 1.0  # delta times m in the cases with delta above 0, above 0 and below m
    interval: float = 0.999  # confidence of the interval around each simulated rate
    seed: int = 0  # seed of all random draws, 0 or more; each bound has its own stream

    @property
    def delta(self) -> float:
        """Delta of the cases with delta above 0."""
        return self.m_delta / self.examples


@dataclass(frozen=True)
class Case:
    """One bound on one mechanism."""

    family: str  # group in the table
    bound: str  # the bound or rule, with its search
    mechanism: str  # name of the audited mechanism
    epsilon: float  # true epsilon, nats
    delta: float  # delta at which it is the truth
    trial: Trial  # function from a generator to the reported bound and whether it is wrong
    share: float = 1.0  # audits as a share of the configured number
    valid: bool = True  # whether the library claims the nominal level for it


DEFAULT_SHARE = 2.0  # audits of default options and twins, as a share of the configured number
TWIN: dict[str, Any] = {"share": DEFAULT_SHARE, "valid": False}
"""Options of a case that must be found wrong."""
BOUNDARY = 0.5  # nats of slack up to which a row is a boundary case


def simulate(cases: Iterable[Case], config: ValidityConfig) -> pd.DataFrame:
    """Run every case, and compare its rate of wrong bounds with the nominal level.

    Returns:
        A row for each case: family, bound, mechanism, epsilon (the truth, nats) and delta; trials,
        wrong (of these), rate with its interval low and high, nominal (the rate that is allowed)
        and seen_from (as `seen_from`); mean_bound and slack, nats; boundary, valid and verdict.
    """
    return pd.DataFrame([_row(case, config) for case in cases])


def _row(case: Case, config: ValidityConfig) -> dict[str, Any]:
    """A case's row of `simulate`: its rate of wrong bounds, and what it is compared with."""
    # The name fixes the stream: adding a case changes no other row.
    name = f"{case.family}|{case.bound}|{case.mechanism}".encode()
    rng = np.random.default_rng([config.seed, *name])
    trials = max(2, round(config.trials * case.share))
    outcomes = [case.trial(rng) for _ in range(trials)]
    wrong = sum(is_wrong for _, is_wrong in outcomes)
    low, high = share_interval(wrong, trials, confidence=config.interval)
    nominal = 1 - config.confidence
    bounds = np.array([bound for bound, _ in outcomes])
    slack = case.epsilon - float(np.quantile(bounds, config.confidence))
    return {
        "family": case.family,
        "bound": case.bound,
        "mechanism": case.mechanism,
        "epsilon": case.epsilon,
        "delta": case.delta,
        "trials": trials,
        "wrong": wrong,
        "rate": wrong / trials,
        "low": low,
        "high": high,
        "nominal": nominal,
        "seen_from": seen_from(trials, nominal, config.interval),
        "mean_bound": float(bounds.mean()),
        # nats by which all bounds could rise before the rate passes the nominal level
        "slack": slack,
        # near enough to the level that a bound which is a little too high would show
        "boundary": slack <= BOUNDARY or wrong >= trials * nominal / 2,
        "valid": case.valid,
        "verdict": "above the nominal level" if low > nominal else "consistent with it",
    }


@cache
def seen_from(trials: int, nominal: float, interval: float) -> float:
    """Smallest true rate that is called above the nominal level with probability 0.9, in so many
    trials; or infinity.

    ``nominal`` is a rate in (0, 1), ``interval`` the confidence of the interval around a rate.
    """
    # The lower end for each count of wrong bounds; it rises with the count.
    lower_ends = [
        share_interval(wrong, trials, confidence=interval)[0] for wrong in range(trials + 1)
    ]
    is_above = np.array(lower_ends) > nominal
    if not is_above.any():
        return math.inf
    needed = int(np.argmax(is_above))
    # P[count >= needed] is a beta distribution function of the rate: this rate makes it 0.9.
    return float(betaincinv(needed, trials - needed + 1, 0.9))


def case_of(
    family: str,
    bound: str,
    mechanism: str,
    epsilon: float,
    audit: Callable[[np.random.Generator], Any],
    delta: float = 0.0,
    **fields: Any,
) -> Case:
    """A case whose audit draws its data and returns a bound, or a result with ``.epsilon``.

    A trial is wrong where the bound exceeds ``epsilon``, the mechanism's true one at ``delta``, in
    nats; ``fields`` are further ones of `Case`.
    """

    def trial(rng: np.random.Generator) -> tuple[float, bool]:
        """The bound of one audit, nats, and whether it is above the truth."""
        result = audit(rng)
        value = float(getattr(result, "epsilon", result))
        return value, value > epsilon

    return Case(family, bound, mechanism, epsilon, delta, trial, **fields)


def against(
    family: str, bound: str, mechanism: Mechanism, audit: Callable[..., Any], m: int, **fields: Any
) -> Case:
    """A case whose audit takes the scores of ``m`` examples of a mechanism, as `MembershipScores`.

    ``fields`` are further ones of `Case`, such as the ``share`` of the trials.
    """

    def audit_of_scores(rng: np.random.Generator) -> Any:
        return audit(mechanism.draw(rng, m))

    return case_of(
        family,
        bound,
        mechanism.name,
        mechanism.epsilon,
        audit_of_scores,
        mechanism.delta,
        **fields,
    )
