"""Games with pools: attacks are trained, chosen on a validation part, and judged once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from paperlib.attacks.learned import AttackInputs, LossScore, fit_best
from paperlib.audits.panoramia.game import AuditConfig, Flags, GameSplit
from paperlib.audits.panoramia.pools import Pool, Pools, pools_cache
from paperlib.audits.panoramia.results import AUDITS, AuditName, TargetAudits, TargetScores
from paperlib.bounds import audit_panoramia
from paperlib.core import FloatArray, MembershipScores, RecallSearch, check_choice
from paperlib.io import code_tag
from paperlib.report import progress

Inputs = dict[str | None, tuple[AttackInputs, AttackInputs]]
"""Target's name, or None for the baseline, to what its attack sees of members and of others."""


def audit_pools(
    pools: Pools,
    config: AuditConfig,
    *,
    targets: Sequence[str] | None = None,
    audits: Sequence[AuditName] = AUDITS,
) -> TargetAudits:
    """Audit targets in repeated games.

    All targets of a game share its split, its coins and the baseline. Games on kept pools are kept too, but
    those with an attack defined outside this library are played each time.

    ``targets`` names some, None all; audits with real non-members are left out where there are none.

    Raises:
        ValueError: Unknown names, or too few examples.

    Source:
        PANORAMIA, Algorithm 1 and section 5.2.
    """
    names = pools.target_names if targets is None else tuple(targets)
    for name in names:
        check_choice("targets", name, pools.target_names)
    for audit in audits:
        check_choice("audits", audit, AUDITS)
    if pools.nonmembers is None:
        audits = [audit for audit in audits if audit == "panoramia"]
    seeds = range(config.seed, config.seed + config.repetitions)
    games = [list(_game(pools, config, names, audits, seed)) for seed in progress(seeds, label="games")]
    judged = [replace(one, seed=seed) for seed, game in zip(seeds, games, strict=True) for one in game]
    return TargetAudits(tuple(judged), config)


def baseline_by_helper(pools: Pools, config: AuditConfig) -> pd.DataFrame:
    """The baseline's bound without a helper, with each helper, and with all: Tables 2 and 5.

    Returns:
        One row per helper and game: helper, seed, search, c_lb (nats), auc.
    """
    names = tuple(helper.name for helper in pools.helpers if not helper.placebo)
    choices: dict[str, tuple[str, ...]] = {"none": (), **{name: (name,) for name in names}}
    if len(names) > 1:
        choices["all"] = names
    inputs: Inputs = {
        name: (pools.members.inputs(helpers=seen), pools.generated.inputs(helpers=seen))
        for name, seen in choices.items()
    }
    rows = []
    seeds = range(config.seed, config.seed + config.repetitions)
    games = [_play(inputs, config, seed, pools.twins, pools.learned) for seed in seeds]
    for seed, (scores, membership) in zip(seeds, games, strict=True):
        for name, own in scores.items():
            for search in config.searches:
                bound = _one_sided_bound(own, membership, search, config.confidence)
                auc = MembershipScores.from_labels(own, membership).auc()
                rows.append({"helper": name, "seed": seed, "search": search, "c_lb": bound, "auc": auc})
    return pd.DataFrame(rows)


def over_training_size(
    pools: Pools, config: AuditConfig, sizes: Sequence[int], *, targets: Sequence[str] | None = None
) -> pd.DataFrame:
    """PANORAMIA's rows for attacks trained on fewer examples (Figures 2, 9 and 11), with ``train``."""
    parts = [
        audit_pools(pools, replace(config, train=size), targets=targets, audits=["panoramia"]).table.assign(
            train=size
        )
        for size in sizes
    ]
    return pd.concat(parts, ignore_index=True)


def _game(
    pools: Pools, config: AuditConfig, names: Sequence[str], audits: Sequence[AuditName], seed: int
) -> Iterator[TargetScores]:
    targets = {target.name: target for target in pools.targets}
    if "panoramia" in audits:
        scores, membership, seconds = _kept(pools, config, names, pools.generated, seed)
        for name in names:
            both = scores[None], scores[name]
            yield TargetScores(targets[name], "panoramia", seed, *both, membership, seconds)
    if pools.nonmembers is None:
        return
    found: dict[AuditName, tuple[Mapping[str | None, FloatArray], Flags, float]] = {}
    if "rm_rn" in audits:
        found["rm_rn"] = _kept(pools, config, names, pools.nonmembers, seed)
    if "o1" in audits:
        found["o1"] = *_losses(pools, pools.nonmembers, config, names, seed), 0.0
    for name in names:
        for audit, (scores, membership, seconds) in found.items():
            yield TargetScores(targets[name], audit, seed, np.empty(0), scores[name], membership, seconds)


def _kept(
    pools: Pools, config: AuditConfig, names: Sequence[str], others: Pool, seed: int
) -> tuple[Mapping[str | None, FloatArray], Flags, float]:
    """Scores of one game, from disk where these pools were played so before; seconds it took for each."""
    inputs = _inputs(pools, config, names, others)

    def compute() -> dict[str, Any]:
        start = perf_counter()
        twins = pools.twins and others is pools.generated
        scores, membership = _play(inputs, config, seed, twins, pools.learned)
        found = {"scores": np.stack([scores[name] for name in inputs]), "membership": membership}
        return {**found, "seconds": np.array((perf_counter() - start) / len(inputs))}

    modules = sorted({type(attack).__module__ for attack in config.attacks})
    # A change in the code of an attack from elsewhere would not be noticed.
    if not pools.key or not all(name.startswith("paperlib.") for name in modules):
        arrays = compute()
    else:
        key = {
            "game": replace(config, searches=config.searches[:1], repetitions=1, seed=seed),
            "test part": config.seed if config.same_test else seed,
            "pools": pools.key,
            "targets": names,
            "generated": others is pools.generated,
            "code": code_tag(__name__, *modules),
        }
        arrays = pools_cache().get(key, compute)
    scores = dict(zip(inputs, np.asarray(arrays["scores"]), strict=True))
    return scores, arrays["membership"].astype(bool), float(arrays["seconds"])


def _losses(
    pools: Pools, others: Pool, config: AuditConfig, names: Sequence[str], seed: int
) -> tuple[Mapping[str | None, FloatArray], Flags]:
    """Minus the loss of each target on the test part: the game of the same seed has the same coins."""
    inputs: Inputs = {name: (pools.members.inputs(target=name), others.inputs(target=name)) for name in names}
    return _split(inputs, config, seed, learned=pools.learned).judge(dict.fromkeys(inputs, LossScore()))


def _inputs(pools: Pools, config: AuditConfig, names: Sequence[str], others: Pool) -> Inputs:
    """Inputs of the baseline, where others are generated, and of the attack on each target."""
    with_helpers = config.form == "helpers"
    helpers = tuple(one.name for one in pools.helpers if with_helpers and not one.placebo)
    inputs: Inputs = {}
    if others is pools.generated:
        synthetic = tuple(one.name for one in pools.helpers if one.data == "synthetic")
        placebos = tuple(one.name for one in pools.helpers if one.placebo)
        seen = (*placebos[:1], *helpers) if with_helpers else synthetic[:1]
        inputs[None] = pools.members.inputs(helpers=seen), others.inputs(helpers=seen)
    for name in names:
        inputs[name] = (
            pools.members.inputs(helpers=helpers, target=name),
            others.inputs(helpers=helpers, target=name),
        )
    return inputs


def _split(
    inputs: Inputs, config: AuditConfig, seed: int, twins: bool = False, learned: int = 0
) -> GameSplit:
    sizes = {"train": config.train, "validation": config.validation, "test": config.test}
    test_seed = config.seed if config.same_test else None
    return GameSplit(inputs, **sizes, seed=seed, test_seed=test_seed, twins=twins, learned=learned)


def _play(
    inputs: Inputs, config: AuditConfig, seed: int, twins: bool, learned: int
) -> tuple[Mapping[str | None, FloatArray], Flags]:
    """One game: train all attacks, stop and choose on the validation part, judge once."""
    game = _split(inputs, config, seed, twins, learned)
    criterion = _Bound(config.searches[0], config.confidence)
    fitted = {
        name: fit_best(
            config.attacks,
            game.train(name),
            game.validation(name),
            criterion=criterion,
            restarts=config.restarts,
            seed=seed,
        )
        for name in inputs
    }
    return game.judge(fitted)


@dataclass(frozen=True)
class _Bound:
    """The bound itself; where bounds are equal (often 0 on few examples) the AUC decides."""

    search: RecallSearch
    confidence: float

    def __call__(self, scores: FloatArray, membership: Flags) -> float:
        bound = _one_sided_bound(scores, membership, self.search, self.confidence)
        return bound + 1e-3 * MembershipScores.from_labels(scores, membership).auc()


def _one_sided_bound(scores: FloatArray, membership: Flags, search: RecallSearch, confidence: float) -> float:
    return audit_panoramia(scores, scores, membership, search=search, confidence=confidence).c_lb
