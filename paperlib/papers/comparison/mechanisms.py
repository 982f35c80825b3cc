"""Targets of known epsilon: noise added to the bit of membership."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from paperlib.bounds import gaussian_dp_epsilon
from paperlib.core import FloatArray, MembershipScores, check_at_least
from paperlib.papers.comparison.targets import Target

FAMILY = "known mechanism"
_Noise = Callable[[np.random.Generator, tuple[int, ...]], FloatArray]


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


def known_mechanisms(config: MechanismConfig) -> list[Target]:
    """No leak, Laplace noise and Gaussian noise on the bit of every record.

    To replace a record changes two bits: Laplace noise then guarantees twice its epsilon, and mu-Gaussian DP
    becomes that of mu times the root of 2.

    >>> [target.add_remove for target in known_mechanisms(MechanismConfig())][:2]
    [0.0, 2.0]
    """
    rng = np.random.default_rng(config.seed)
    laplace, gaussian = f"Laplace, ε = {config.epsilon:g}", f"Gaussian, μ = {config.mu:g}"
    single, double = (float(gaussian_dp_epsilon(config.mu * root, config.delta)) for root in (1.0, 2**0.5))
    return [
        _target(config, rng, "no leak", 0.0, _normal, epsilons=(0.0, 0.0)),
        _target(
            config, rng, laplace, config.epsilon, _laplace, epsilons=(config.epsilon, 2 * config.epsilon)
        ),
        _target(config, rng, gaussian, config.mu, _normal, epsilons=(single, double)),
    ]


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return rng.normal(size=shape)


def _laplace(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return rng.laplace(size=shape)


def _target(
    config: MechanismConfig,
    rng: np.random.Generator,
    name: str,
    shift: float,
    noise: _Noise,
    *,
    epsilons: tuple[float, float],
) -> Target:
    """Scores are the bit times ``shift`` plus noise of scale 1; the second signal tells nothing."""
    member, again = rng.integers(0, 2, (2, config.records)).astype(bool)
    signals = noise(rng, (config.records, 2))
    signals[:, 0] += shift * member
    sets = noise(rng, (config.sets, config.candidates))
    sets[:, 0] += shift
    runs = shift * again + noise(rng, (config.records,))
    return Target(
        family=FAMILY,
        name=name,
        signals=signals,
        member=member,
        sets=sets,
        runs=MembershipScores.from_labels(runs, again),
        add_remove=epsilons[0],
        replacement=epsilons[1],
        curve="laplace" if noise is _laplace else "gaussian",
    )
