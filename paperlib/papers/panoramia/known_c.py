"""Identifiers as generated non-members: c is 0 by construction, so the audit bounds epsilon itself."""

from typing import Any

import numpy as np
import pandas as pd

from paperlib.attacks.learned import BoostedTrees
from paperlib.audits.candidate_features import audit_candidate_features
from paperlib.audits.candidates import CandidateScores
from paperlib.audits.panoramia.game import AuditConfig
from paperlib.audits.panoramia.pools import Pool, Pools, Target
from paperlib.audits.panoramia.results import TargetScores
from paperlib.audits.panoramia.run import audit_pools
from paperlib.bounds import audit_one_run, audit_output_set, audit_ranks, score_margins
from paperlib.core import FloatArray, MembershipScores

TARGET = "trained"


def identifier_audit(identifiers: int, **settings: Any) -> AuditConfig:
    """15 % of the identifiers to learn on, 10 % to choose on, the rest to judge on; other settings as given.

    >>> config = identifier_audit(200)
    >>> config.train, config.validation, config.test
    (60, 40, 150)
    """
    learned, chosen = round(0.15 * identifiers), round(0.1 * identifiers)
    sizes = {"train": 2 * learned, "validation": 2 * chosen, "test": identifiers - learned - chosen}
    trees = BoostedTrees(rounds=30, leaves=4, smallest_leaf=5, learning_rate=0.2)
    return AuditConfig(**sizes, attacks=(trees,), restarts=5, **settings)


def identifier_pools(scores: CandidateScores, *, trained: bool = True) -> Pools:
    """Identifiers as members, one alternative of each as generated points, and one target."""
    values = scores.values[(scores.groups > 0) == trained]
    order = [scores.attacks.index("loss"), *(i for i, name in enumerate(scores.attacks) if name != "loss")]
    signs = np.array([-1.0, *np.ones(len(order) - 1)])  # column 0 is a loss: lower means member

    def pool(column: int) -> Pool:
        return Pool(np.zeros((len(values), 1)), {}, {TARGET: values[:, column][:, order] * signs})

    target = Target(TARGET, "trained" if trained else "null", 0)
    return Pools(pool(0), pool(1), None, (target,), twins=True)


def bounds_side_by_side(
    scores: CandidateScores,
    *,
    attack: str = "loss",
    repetitions: int = 5,
    confidence: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Six valid lower bounds on epsilon (replacement) from the same identifiers and the same model."""
    at, found = scores.attacks.index(attack), []
    for trained in (True, False):
        told = scores.values[(scores.groups > 0) == trained]
        values = told[:, :, at]
        audit = identifier_audit(len(values), repetitions=repetitions, confidence=confidence, seed=seed)
        games = audit_pools(identifier_pools(scores, trained=trained), audit).select("panoramia")
        known = [one.panoramia("anytime", confidence, known_c=0.0).c_plus_epsilon_lb for one in games]
        sets = [_output_set(one, confidence) for one in games]
        learned = audit_candidate_features(told, np.zeros(len(told)), confidence=confidence, seed=seed)
        margins = score_margins(values[:, 0], values[:, 1:])
        ranks = _ranks(values, confidence), _ranks(values, confidence, margins), learned.epsilon
        found.append([np.mean(known), np.mean(sets), _one_run(values, confidence, seed), *ranks])
    rows = [
        ("PANORAMIA with c = 0", "trained attack, 1 alternative each, guesses members"),
        ("output set", "the same scores, the region chosen on one half"),
        ("one run", f"{attack}, 1 alternative each, guesses both"),
        ("ranks", f"{attack}, {scores.values.shape[1] - 1} alternatives each, tight bound"),
        ("ranks, surest sets", f"{attack}, the same alternatives, guesses where its margin is largest"),
        ("ranks, learned order", "all scores, the same alternatives, learns from the sets revealed before"),
    ]
    bounds = pd.DataFrame(rows, columns=["bound", "uses"])
    return bounds.assign(epsilon=found[0], null=found[1])


def _output_set(judged: TargetScores, confidence: float) -> float:
    """The best region of an attack's scores, chosen on one half and judged on the other."""
    scores = MembershipScores.from_labels(judged.attack, judged.membership)
    return audit_output_set(*scores.split(seed=0), confidence=confidence, design="played").epsilon


def _one_run(values: FloatArray, confidence: float, seed: int) -> float:
    """A fair coin for each identifier shows it or its alternative: the two would tell on each other."""
    shown = np.random.default_rng(seed).random(len(values)) < 0.5
    scores = MembershipScores(values[shown, 0], values[~shown, 1])
    return audit_one_run(scores, confidence=confidence, design="played").epsilon


def _ranks(values: FloatArray, confidence: float, margins: FloatArray | None = None) -> float:
    ranks = 1 + (values[:, 1:] >= values[:, :1]).sum(axis=1)
    sizes = np.full(len(values), values.shape[1])
    return audit_ranks(ranks, sizes, top=1, confidence=confidence, margins=margins).epsilon
