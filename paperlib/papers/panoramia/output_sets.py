"""Optimal output sets and learned orders beside PANORAMIA's searches over recall."""

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from paperlib.audits.features import audit_panoramia_features
from paperlib.audits.panoramia.game import AuditConfig, Flags
from paperlib.audits.panoramia.pools import Pool, Pools, Target
from paperlib.audits.panoramia.results import TargetAudits, TargetScores
from paperlib.audits.panoramia.run import audit_pools
from paperlib.bounds import SelectionRule, fit_output_set, one_run_epsilon, ratio_scores
from paperlib.core import FloatArray, MembershipScores

CHOSEN_FOR: dict[str, Literal["both", "members"]] = {
    "output set": "members",
    "output set chosen for both sides": "both",
}
EVERY_LEVEL = "output sets of every level"
_HALF, _QUARTER = 1 / 2, 1 / 4  # of the examples, to choose a set on, and to order scores by


def output_set_bounds(audits: TargetAudits) -> pd.DataFrame:
    """Output sets beside the searches over recall: target, null, seed, way, examples, and three
    bounds.
    """
    # The bounds of a game hold together at the confidence of the audits: who of the judged examples
    # is a member changes neither set nor order. Guesses are "member" alone, as Propositions 1 and 2
    # require.
    confidence = audits.config.confidence
    rows: list[dict[str, Any]] = []
    for judged in audits.select("panoramia"):
        first, second = _cut(judged, _HALF)
        ways: list[tuple[str, TargetScores, dict[str, Any]]] = []
        for way, guess in CHOSEN_FOR.items():
            c_lb, both = (
                set_bound(*fitted, *scores, (1 - confidence) / 2, guess=guess)
                for fitted, scores in zip(_labelled(first), _labelled(second), strict=True)
            )
            ways.append(
                (way, second, {"c_lb": c_lb, "c_plus_eps_lb": both, "eps_tilde": both - c_lb})
            )
        ordered = by_ratio(*_cut(judged, _QUARTER))
        ways.append((EVERY_LEVEL, ordered, ordered.row("anytime", confidence)))
        for search in audits.config.searches:
            ways.append((f"{search}, second half", second, second.row(search, confidence)))
            ways.append((f"{search}, all", judged, judged.row(search, confidence)))
        about = {
            "target": judged.target.name,
            "null": judged.target.kind == "null",
            "seed": judged.seed,
        }
        for way, part, row in ways:
            bounds = {name: row[name] for name in ("c_lb", "c_plus_eps_lb", "eps_tilde")}
            rows.append({**about, "way": way, "examples": part.membership.size, **bounds})
    return pd.DataFrame(rows)


def ratio_correlation(audits: TargetAudits, target: str) -> float:
    """Rank correlation of ratio and attack's score, mean over games: near 1, sets gain little."""
    parts = [_cut(one, _QUARTER) for one in audits.select("panoramia", target=target)]
    return float(
        np.mean([spearmanr(by_ratio(*part).attack, part[1].attack).statistic for part in parts])
    )


def simulated_bounds(*, repetitions: int = 5, examples: int = 840, seed: int = 0) -> pd.DataFrame:
    """`output_set_bounds` where the scores' densities are known, and the baseline's scores are
    noise.
    """

    def higher(rng: np.random.Generator, member: Flags) -> FloatArray:
        return member + rng.normal(size=member.size)

    def inner(rng: np.random.Generator, member: Flags) -> FloatArray:
        outer = rng.normal(rng.choice([-2.0, 2.0], member.size), 0.6)
        return np.where(
            member & (rng.random(member.size) < 0.4), rng.normal(0, 0.3, member.size), outer
        )

    drawn = []
    for name, attack in (("higher scores", higher), ("inner region", inner)):
        for game in range(repetitions):
            rng = np.random.default_rng(1000 * seed + game)
            flags = rng.random(examples) < 0.5
            scores = rng.normal(size=examples), attack(rng, flags)
            drawn.append(TargetScores(Target(name), "panoramia", game, *scores, flags))
    return output_set_bounds(
        TargetAudits(tuple(drawn), AuditConfig(train=2, validation=2, test=examples))
    )


def set_bound(
    scores: FloatArray,
    membership: Flags,
    judged_scores: FloatArray,
    judged: Flags,
    level: float,
    *,
    guess: Literal["both", "members"] = "members",
) -> float:
    """Bound, with this error, of guesses inside a set fitted on other scores; 0 without a guess."""
    rule = SelectionRule(guess=guess)
    fitted = MembershipScores.from_labels(scores, membership)
    chosen = fit_output_set(fitted, confidence=1 - level, total=judged.size, rule=rule)
    guesses = chosen.guess(judged_scores) == 1
    if not guesses.any():
        return 0.0
    return float(
        one_run_epsilon(int(judged[guesses].sum()), int(guesses.sum()), confidence=1 - level)
    )


def by_ratio(selection: TargetScores, judged: TargetScores) -> TargetScores:
    """The judged examples with each score replaced by the log-ratio that the selection estimates
    for it.
    """
    baseline, attack = (
        ratio_scores(MembershipScores.from_labels(*fitted), scores)
        for fitted, (scores, _) in zip(_labelled(selection), _labelled(judged), strict=True)
    )
    return replace(judged, baseline=baseline, attack=attack)


def _labelled(scores: TargetScores) -> list[tuple[FloatArray, Flags]]:
    """Scores of baseline and attack, each with who is a member."""
    return [(scores.baseline, scores.membership), (scores.attack, scores.membership)]


def _cut(judged: TargetScores, share: float) -> tuple[TargetScores, TargetScores]:
    """The first examples, and the rest; they are in random order."""
    at = int(share * judged.membership.size)
    names = ("baseline", "attack", "membership")
    return judged.first(at), replace(judged, **{name: getattr(judged, name)[at:] for name in names})


_MOST_COLUMNS = 100  # of an example's own numbers that a smooth model learns from


def learned_orders(pools: Pools, audits: TargetAudits, names: Sequence[str]) -> pd.DataFrame:
    """The judged games, and as many whole games of learned orders, which set nothing aside for
    training.
    """
    if pools.twins:
        raise ValueError(
            "pools: learned orders draw a whole game, which pools of twins do not allow"
        )
    config, pair = audits.config, (pools.members, pools.generated)
    seen = np.concatenate([_baseline(pool) for pool in pair])
    membership = np.arange(len(seen)) < len(pools.members)
    trained = audits.table[audits.table["audit"] == "panoramia"]
    trained = trained.assign(audit="trained attack, " + trained["search"])
    parts = list[pd.DataFrame]()
    for name in names:
        start = perf_counter()
        not_kept, once = replace(pools, key=""), replace(config, repetitions=1)
        audit_pools(
            not_kept, once, targets=[name], audits=["panoramia"]
        )  # played again for its seconds
        parts.append(trained[trained["target"] == name].assign(seconds=perf_counter() - start))
        said = np.concatenate([_signed(pool.targets[name]) for pool in pair])
        rows = list[tuple[float, ...]]()
        for seed in range(config.seed, config.seed + config.repetitions):
            start = perf_counter()
            result = audit_panoramia_features(
                seen, said, membership, confidence=config.confidence, design="game", seed=seed
            )
            bounds = result.c_lb, result.c_plus_epsilon_lb, perf_counter() - start
            rows.append((result.members + result.nonmembers, *bounds))
        learned = pd.DataFrame(rows, columns=["m", "c_lb", "c_plus_eps_lb", "seconds"])
        parts.append(learned.assign(target=name, audit="learned orders"))
    columns = ["c_lb", "c_plus_eps_lb", "seconds"]
    means = (
        pd.concat(parts).groupby(["target", "audit", "m"], sort=False)[columns].mean().reset_index()
    )
    means.insert(5, "eps_tilde", (means["c_plus_eps_lb"] - means["c_lb"]).clip(lower=0))
    return means


def _baseline(pool: Pool) -> FloatArray:
    """The helpers' columns, then the example's own numbers."""
    columns = [_signed(values) for values in pool.helpers.values()]
    own = pool.examples.reshape(len(pool), -1)
    if own.dtype.kind in "biuf" and own.shape[1] <= _MOST_COLUMNS:
        columns.append(own)
    return np.column_stack([np.zeros((len(pool), 0)), *columns])


def _signed(outputs: FloatArray) -> FloatArray:
    """Outputs of a model, the loss in column 0 turned: higher means member."""
    return np.column_stack([-outputs[:, 0], outputs[:, 1:]])
