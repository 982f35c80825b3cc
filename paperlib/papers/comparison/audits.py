"""Every audit of the library on one target, known mechanisms among them: number, sentence, needs
and cost.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from time import perf_counter
from typing import Any

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
    gaussian_dp_epsilon,
    ranks_from_scores,
)
from paperlib.core import AuditResult, MembershipScores, check_at_least, check_confidence, check_in
from paperlib.papers.comparison.targets import AuditTarget
from paperlib.papers.settings import settings_beside


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
    # To replace a record changes two bits: twice the epsilon of Laplace noise, the root of 2 times
    # mu.
    single, double = (
        float(gaussian_dp_epsilon(config.mu * root, config.delta)) for root in (1.0, 2**0.5)
    )
    known = (
        ("no leak", 0.0, False, 0.0, 0.0),
        (f"Laplace, ε = {epsilon:g}", epsilon, True, epsilon, 2 * epsilon),
        (f"Gaussian, μ = {config.mu:g}", config.mu, False, single, double),
    )
    targets = list[AuditTarget]()
    for name, shift, laplace, add_remove, replacement in known:
        # Scores are the bit times ``shift`` plus noise of scale 1; the second signal tells nothing.
        noise = rng.laplace if laplace else rng.normal
        member, again = rng.integers(0, 2, (2, config.records)).astype(bool)
        signals = noise(size=(config.records, 2))
        signals[:, 0] += shift * member
        sets = noise(size=(config.sets, config.candidates))
        sets[:, 0] += shift
        runs = shift * again + noise(size=config.records)
        target = AuditTarget(
            family="known mechanism",
            name=name,
            signals=signals,
            member=member,
            sets=sets,
            runs=MembershipScores.from_labels(runs, again),
            add_remove=add_remove,
            replacement=replacement,
            curve="laplace" if laplace else "gaussian",
        )
        targets.append(target)
    return targets


LOWER, WITHIN, MEASURED = "lower bound", "lower bound within a family", "measurement"
"""Kinds of numbers; the second holds if the trade-off curve of training is of the family that was
named.
"""
BOUNDS = (LOWER, WITHIN)
ADD_REMOVE, REPLACEMENT, MODEL = "add/remove", "replacement", "this model"
"""What a number speaks of: neighbouring training sets, or the trained model alone."""
ACCESS = ("coins", "retraining", "nonmembers", "generator", "labels")
"""What an audit may need, as columns of the table."""
_SETTINGS = settings_beside(__file__)


@dataclass(frozen=True, kw_only=True)
class Audit:
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
    ranks, sizes = ranks_from_scores(target.sets[:, 0], target.sets[:, 1:], seed=seed)
    return audit_ranks(ranks, sizes, delta_term="sharp", **options)


def _exact(target: AuditTarget, **options: Any) -> AuditResult:
    # A coin for each set shows the true value or one alternative: the two would tell on each other.
    shown = np.random.default_rng([options["seed"], 3]).random(len(target.sets)) < 0.5
    scores = np.where(shown, target.sets[:, 0], target.sets[:, 1])
    return audit_panoramia(
        np.zeros(scores.size), scores, shown, known_c=0.0, design="played", **options
    )


def _fitted(target: AuditTarget, **options: Any) -> AuditResult | None:
    if target.generated is None:
        return None
    rows = (target.generated[name] for name in ("features", "signals", "member"))
    return audit_panoramia_features(*rows, design="game", **options)


_RUNS: dict[str, Callable[..., AuditResult | None]] = {
    "one run": lambda target, **options: audit_one_run(target.scores, **options),
    "order learned": lambda target, **options: audit_features(
        target.signals, target.member, **options
    ),
    "f-DP": lambda target, **options: audit_f_dp(target.scores, family=target.curve, **options),
    "output set": lambda target, seed, **options: audit_output_set(
        *target.scores.split(seed=seed), seed=seed, **options
    ),
    "game": lambda target, **options: audit_one_run(target.scores, design="game", **options),
    "ranks": _ranks,
    "PANORAMIA, c = 0": _exact,
    "PANORAMIA": _fitted,
    "Epsilon*": lambda target, seed, **options: (
        epsilon_star(target.scores.member, target.scores.nonmember, **options).trusted
    ),
    "many runs": lambda target, **options: (
        None if target.runs is None else audit_clopper_pearson(target.runs, **options)
    ),
}
AUDITS = tuple(Audit(name=name, run=run, **_SETTINGS[name]) for name, run in _RUNS.items())
"""Every audit, fixed before looking: no number is chosen among them."""


def compare_audits(
    targets: Iterable[AuditTarget], *, delta: float = 1e-5, confidence: float = 0.95, seed: int = 0
) -> pd.DataFrame:
    """Run every audit that applies on every target; each number holds at its own confidence
    alone.
    """
    check_in("(0, 0.5)", "delta", delta)
    check_confidence(confidence)
    rows = list[dict[str, Any]]()
    for target, audit in product(targets, AUDITS):
        started = perf_counter()
        result = audit.run(target, delta=delta, confidence=confidence, seed=seed)
        seconds = perf_counter() - started
        if result is None:
            continue
        if audit.run is _fitted and target.generated is not None:
            seconds += float(target.generated["seconds"])
        guarantees = {ADD_REMOVE: target.add_remove, REPLACEMENT: target.replacement}
        needs = {*audit.needs, *(("labels",) if target.labels else ())}
        value = (
            result.epsilon
            if result.epsilon is not None
            else getattr(result, "epsilon_tilde", np.nan)
        )
        low, high = value, np.inf  # one-sided for a lower bound
        if audit.kind == MEASURED:
            low, high = getattr(result, "interval", None) or (np.nan, np.nan)
        rows.append(
            {
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
        )
    return pd.DataFrame(rows)


def decision_guide(frame: pd.DataFrame) -> pd.DataFrame:
    """What to use, by what an auditor has, from the rows of `compare_audits`."""
    guide = []
    for audit in AUDITS:
        if (rows := frame[frame["audit"] == audit.name]).empty:
            continue
        needed = [one for one in ACCESS if rows[one].any()]
        have = [words for one, words in _SETTINGS["access"].items() if one in needed]
        guide.append(
            {
                "you_have": "; ".join(filter(None, [*have, audit.have])),
                "use": audit.name,
                "page": audit.page,
                "you_get": audit.get,
                "access": ", ".join(needed),
                "seconds": float(rows["seconds"].median()),
            }
        )
    return pd.DataFrame(guide)
