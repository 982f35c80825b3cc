"""Targets of known epsilon: noise added to the bit of membership."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from paperlib.bounds import gaussian_dp_epsilon
from paperlib.core import MembershipScores, check_at_least
from paperlib.papers.comparison.targets import AuditTarget


@dataclass(frozen=True, kw_only=True)
class MechanismConfig:
    """Sizes and strengths of the known mechanisms."""

    records: int = 1000  #: records, each with its own coin; 20 or more
    sets: int = 300  #: values drawn at random from candidates, 10 or more
    candidates: int = 16  #: candidates of each, the true one included, 2 or more
    epsilon: float = 2.0  #: of Laplace noise, nats, above 0
    mu: float = 1.0  #: of Gaussian noise: distance of the means in standard deviations, above 0
    delta: float = 1e-5  #: at which the epsilon of Gaussian noise is read off
    seed: int = 0  #: of coins and noise, 0 or more

    def __post_init__(self) -> None:
        check_at_least(20, records=self.records)
        check_at_least(10, sets=self.sets)


def known_mechanisms(config: MechanismConfig) -> list[AuditTarget]:
    """No leak, Laplace noise and Gaussian noise on the bit of every record."""
    rng, epsilon = np.random.default_rng(config.seed), config.epsilon
    # To replace a record changes two bits: twice the epsilon of Laplace noise, the root of 2 times mu.
    single, double = (float(gaussian_dp_epsilon(config.mu * root, config.delta)) for root in (1.0, 2**0.5))
    return [
        _target(config, rng, "no leak", 0.0, "gaussian", 0.0, 0.0),
        _target(config, rng, f"Laplace, ε = {epsilon:g}", epsilon, "laplace", epsilon, 2 * epsilon),
        _target(config, rng, f"Gaussian, μ = {config.mu:g}", config.mu, "gaussian", single, double),
    ]


def _target(
    config: MechanismConfig,
    rng: np.random.Generator,
    name: str,
    shift: float,
    curve: Literal["gaussian", "laplace"],
    add_remove: float,
    replacement: float,
) -> AuditTarget:
    """Scores are the bit times ``shift`` plus noise of scale 1; the second signal tells nothing."""
    noise = rng.laplace if curve == "laplace" else rng.normal
    member, again = rng.integers(0, 2, (2, config.records)).astype(bool)
    signals = noise(size=(config.records, 2))
    signals[:, 0] += shift * member
    sets = noise(size=(config.sets, config.candidates))
    sets[:, 0] += shift
    runs = shift * again + noise(size=config.records)
    return AuditTarget(
        family="known mechanism",
        name=name,
        signals=signals,
        member=member,
        sets=sets,
        runs=MembershipScores.from_labels(runs, again),
        add_remove=add_remove,
        replacement=replacement,
        curve=curve,
    )
