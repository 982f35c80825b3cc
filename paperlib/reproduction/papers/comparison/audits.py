"""Every audit of the library on one target, known mechanisms among them: number, sentence, needs
and cost.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from time import perf_counter
from typing import Any, Literal

import numpy as np
import pandas as pd

from paperlib.audits import audit_features, audit_panoramia_features
from paperlib.bounds import (
    audit_clopper_pearson,
    audit_f_dp,
    audit_one_run,
    audit_output_set,
    audit_panoramia,
    audit_ranks,
    epsilon_star,
    ranks_from_scores,
)
from paperlib.bounds.many_runs.gaussian_dp import gaussian_dp_epsilon
from paperlib.core import AuditResult, MembershipScores
from paperlib.core.checks import check_at_least, check_confidence, check_in
from paperlib.reproduction.papers.comparison.targets import AuditTarget
from paperlib.reproduction.papers.settings import settings_beside


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
    rng = np.random.default_rng(config.seed)
    no_leak = _NoisyBit(
        name="no leak", shift=0.0, curve="gaussian", add_remove=0.0, replacement=0.0
    )
    # To replace a record changes two bits: twice the epsilon of Laplace noise, and the root of 2
    # times mu.
    laplace = _NoisyBit(
        name=f"Laplace, ε = {config.epsilon:g}",
        shift=config.epsilon,
        curve="laplace",
        add_remove=config.epsilon,
        replacement=2 * config.epsilon,
    )
    gaussian = _NoisyBit(
        name=f"Gaussian, μ = {config.mu:g}",
        shift=config.mu,
        curve="gaussian",
        add_remove=float(gaussian_dp_epsilon(config.mu, config.delta)),
        replacement=float(gaussian_dp_epsilon(config.mu * 2**0.5, config.delta)),
    )
    return [mechanism.target(config, rng) for mechanism in (no_leak, laplace, gaussian)]


@dataclass(frozen=True, kw_only=True)
class _NoisyBit:
    """A mechanism that shows the bit of membership times ``shift``, plus noise of scale 1."""

    name: str
    shift: float
    curve: Literal["gaussian", "laplace"]  # the noise
    add_remove: float  # its epsilon for adding or removing a record, nats
    replacement: float  # the same for replacing one

    def target(self, config: MechanismConfig, rng: np.random.Generator) -> AuditTarget:
        """Scores drawn from the mechanism: of records with coins, of values among candidates, and
        of one record in many runs. The second signal of a record is noise alone.
        """
        noise = rng.laplace if self.curve == "laplace" else rng.normal
        # Coins of the records of one run, and of one record in as many runs.
        member, in_run = rng.integers(0, 2, (2, config.records)).astype(bool)
        signals = noise(size=(config.records, 2))
        signals[:, 0] += self.shift * member
        sets = noise(size=(config.sets, config.candidates))
        sets[:, 0] += self.shift
        runs = self.shift * in_run + noise(size=config.records)
        return AuditTarget(
            family="known mechanism",
            name=self.name,
            signals=signals,
            member=member,
            sets=sets,
            runs=MembershipScores.from_labels(runs, in_run),
            add_remove=self.add_remove,
            replacement=self.replacement,
            curve=self.curve,
        )


LOWER = "lower bound"
"""A number that is at most epsilon."""
WITHIN = "lower bound within a family"
"""A lower bound if the trade-off curve of training is of the family that was named."""
MEASURED = "measurement"
"""A number that is no bound."""
BOUNDS = (LOWER, WITHIN)
ADD_REMOVE, REPLACEMENT, MODEL = "add/remove", "replacement", "this model"
"""What a number speaks of: neighbouring training sets, or the trained model alone."""
ACCESS = ("coins", "retraining", "nonmembers", "generator", "labels")
"""What an audit may need, as columns of the table."""
_COINS = 3  # stream of a seed, apart from those of the models
_SETTINGS = settings_beside(__file__)


@dataclass(frozen=True, kw_only=True)
class Audit:
    """An audit as the comparison runs it, and what a reader must know of it."""

    name: str  #: in table and figure
    #: from a target, delta, confidence and seed to a result; None where it does not apply
    run: Callable[..., AuditResult | None]
    kind: str = LOWER  #: ``LOWER``, ``WITHIN`` or ``MEASURED``
    speaks_of: str = ADD_REMOVE  #: neighbouring training sets, or the trained model
    needs: tuple[str, ...]  #: names of ``ACCESS`` that it needs on every target
    have: str = ""  #: what else an auditor needs, in words; may be empty
    get: str  #: what its number is, in words
    page: str  #: page of the book that shows how, without its ending


def _ranks(target: AuditTarget, *, seed: int, **options: Any) -> AuditResult:
    """The rank bound on the sets of candidates; equal scores are ordered at random."""
    ranks, sizes = ranks_from_scores(target.sets[:, 0], target.sets[:, 1:], seed=seed)
    return audit_ranks(ranks, sizes, delta_term="sharp", **options)


def _exact(target: AuditTarget, **options: Any) -> AuditResult:
    """PANORAMIA on values that were drawn at random, of which c is 0."""
    # A coin for each set shows the true value or one alternative: the two would tell on each other.
    heads = np.random.default_rng([options["seed"], _COINS]).random(len(target.sets)) < 0.5
    scores = np.where(heads, target.sets[:, 0], target.sets[:, 1])
    return audit_panoramia(
        np.zeros(scores.size), scores, heads, known_c=0.0, design="played", **options
    )


def _fitted(target: AuditTarget, **options: Any) -> AuditResult | None:
    """PANORAMIA against rows of a fitted generator; None where there is none."""
    rows = target.generated
    if rows is None:
        return None
    return audit_panoramia_features(
        rows["features"], rows["signals"], rows["member"], design="game", **options
    )


def _one_run(target: AuditTarget, **options: Any) -> AuditResult:
    """The bound from one run in which each record had its own coin."""
    return audit_one_run(target.scores, **options)


def _one_run_game(target: AuditTarget, **options: Any) -> AuditResult:
    """The bound from one run where nothing is known of how members were chosen: a game draws the
    records that it shows.
    """
    return audit_one_run(target.scores, design="game", **options)


def _learned_order(target: AuditTarget, **options: Any) -> AuditResult:
    """The bound from one run, guessing in an order learned from all signals of a record."""
    return audit_features(target.signals, target.member, **options)


def _f_dp(target: AuditTarget, **options: Any) -> AuditResult:
    """The bound from one run within the family of trade-off curves of the target, as published."""
    return audit_f_dp(target.scores, family=target.curve, guess="both", **options)


def _output_set(target: AuditTarget, *, seed: int, **options: Any) -> AuditResult:
    """An output set chosen on one half of the records and judged on the other."""
    selection, judged = target.scores.split(seed=seed)
    return audit_output_set(selection, judged, seed=seed, **options)


def _epsilon_star(target: AuditTarget, *, seed: int, **options: Any) -> AuditResult:
    """The version of Epsilon* that the losses allow; it draws nothing, so takes no seed."""
    return epsilon_star(target.scores.member, target.scores.nonmember, **options).trusted


def _many_runs(target: AuditTarget, **options: Any) -> AuditResult | None:
    """The bound from runs with a record and without it; None where training is not repeated."""
    if target.runs is None:
        return None
    return audit_clopper_pearson(target.runs, **options)


_RUNS: dict[str, Callable[..., AuditResult | None]] = {
    "one run": _one_run,
    "order learned": _learned_order,
    "f-DP": _f_dp,
    "output set": _output_set,
    "game": _one_run_game,
    "ranks": _ranks,
    "PANORAMIA, c = 0": _exact,
    "PANORAMIA": _fitted,
    "Epsilon*": _epsilon_star,
    "many runs": _many_runs,
}
AUDITS = tuple(Audit(name=name, run=run, **_SETTINGS[name]) for name, run in _RUNS.items())
"""Every audit, fixed before looking: no number is chosen among them."""


def compare_audits(
    targets: Iterable[AuditTarget], *, delta: float = 1e-5, confidence: float = 0.95, seed: int = 0
) -> pd.DataFrame:
    """Run every audit that applies on every target; each number holds at its own confidence
    alone.

    Returns:
        A row for each pair of target and audit: the number (nats) with its ends, the guarantee of
            training that it must not exceed (NaN where that speaks of something else), what the
            result claims, what the audit needs, and seconds.

    Raises:
        ValueError: ``delta`` outside (0, 0.5) or ``confidence`` outside (0, 1).
    """
    check_in("(0, 0.5)", "delta", delta)
    check_confidence(confidence)
    rows: list[dict[str, Any]] = []
    for target, audit in product(targets, AUDITS):
        started = perf_counter()
        result = audit.run(target, delta=delta, confidence=confidence, seed=seed)
        seconds = perf_counter() - started
        if result is None:
            continue
        if audit.run is _fitted and target.generated is not None:
            seconds += float(target.generated["seconds"])
        rows.append(_row(target, audit, result, delta, confidence, seconds))
    return pd.DataFrame(rows)


def _row(
    target: AuditTarget,
    audit: Audit,
    result: AuditResult,
    delta: float,
    confidence: float,
    seconds: float,
) -> dict[str, Any]:
    """What the table says of one result: the bound in nats, what training guarantees at the same
    delta and adjacency, and the time in seconds.

    ``delta`` is that asked for; that of the result may be another one.
    """
    value = result.epsilon
    if value is None:
        value = getattr(result, "epsilon_tilde", np.nan)
    low, high = value, np.inf  # one-sided for a lower bound
    if audit.kind == MEASURED:
        low, high = getattr(result, "interval", None) or (np.nan, np.nan)
    guarantees = {ADD_REMOVE: target.add_remove, REPLACEMENT: target.replacement}
    needs = {*audit.needs}
    if target.labels:
        needs.add("labels")
    return {
        "family": target.family,
        "target": target.name,
        "audit": audit.name,
        "kind": audit.kind,
        "speaks_of": audit.speaks_of,
        "delta": getattr(result, "delta", delta),
        "confidence": confidence,
        "epsilon": value,
        "low": low,
        "high": high,
        "guarantee": guarantees.get(audit.speaks_of, np.nan),
        "add_remove": target.add_remove,
        "replacement": target.replacement,
        "claim": result.claim,
        "condition": result.condition,
        "warnings": "; ".join(result.warnings),
        **{name: name in needs for name in ACCESS},
        "have": audit.have,
        "seconds": seconds,
        "page": audit.page,
    }


def decision_guide(frame: pd.DataFrame) -> pd.DataFrame:
    """What to use, by what an auditor has, from the rows of `compare_audits`."""
    guide = []
    for audit in AUDITS:
        rows = frame[frame["audit"] == audit.name]
        if rows.empty:
            continue
        needed = [name for name in ACCESS if rows[name].any()]
        have = [words for name, words in _SETTINGS["access"].items() if name in needed]
        if audit.have:
            have.append(audit.have)
        guide.append(
            {
                "you_have": "; ".join(have),
                "use": audit.name,
                "page": audit.page,
                "you_get": audit.get,
                "access": ", ".join(needed),
                "seconds": float(rows["seconds"].median()),
            }
        )
    return pd.DataFrame(guide)
