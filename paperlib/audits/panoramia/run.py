"""Games with pools: attacks are trained, chosen on a validation part, and judged once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
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
Scores = tuple[Mapping[str | None, FloatArray], Flags]
"""Scores of each attack on the test part, and membership."""


def audit_pools(
    pools: Pools,
    config: AuditConfig,
    *,
    targets: Sequence[str] | None = None,
    audits: Sequence[AuditName] = AUDITS,
) -> TargetAudits:
    """Audit targets in repeated games, which share split, coins and baseline (PANORAMIA, Algorithm
    1).
    """
    names = pools.target_names if targets is None else tuple(targets)
    for name in names:
        check_choice("targets", name, pools.target_names)
    for audit in audits:
        check_choice("audits", audit, AUDITS)
    if pools.nonmembers is None:  # there is nothing to compare with
        audits = [audit for audit in audits if audit == "panoramia"]
    by_name, judged = {target.name: target for target in pools.targets}, list[TargetScores]()
    for seed in progress(range(config.seed, config.seed + config.repetitions), label="games"):
        if "panoramia" in audits:
            scores, membership = _cached_scores(pools, config, names, pools.generated, seed)
            judged += (
                TargetScores(
                    by_name[name], "panoramia", seed, scores[None], scores[name], membership
                )
                for name in names
            )
        games: dict[AuditName, Scores] = {}
        others = pools.nonmembers
        if others is not None and "rm_rn" in audits:
            games["rm_rn"] = _cached_scores(pools, config, names, others, seed)
        if others is not None and "o1" in audits:
            losses: Inputs = {
                name: (pools.members.inputs(target=name), others.inputs(target=name))
                for name in names
            }
            # The game of the same seed has the same coins.
            game = _split(losses, config, seed, learned=pools.learned)
            games["o1"] = game.judge(dict.fromkeys(losses, LossScore()))
        for name in names:
            for audit, (scores, membership) in games.items():
                judged.append(
                    TargetScores(by_name[name], audit, seed, np.empty(0), scores[name], membership)
                )
    return TargetAudits(tuple(judged), config)


def baseline_by_helper(pools: Pools, config: AuditConfig) -> pd.DataFrame:
    """The baseline's bound c_lb and its AUC without a helper, with each, and with all: Tables 2 and
    5.
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
    for seed in range(config.seed, config.seed + config.repetitions):
        scores, membership = _play(inputs, config, seed, pools.twins, pools.learned)
        for name, values in scores.items():
            for search in config.searches:
                bound = _Bound(search, config.confidence).c_lb(values, membership)
                auc = MembershipScores.from_labels(values, membership).auc()
                rows.append(
                    {"helper": name, "seed": seed, "search": search, "c_lb": bound, "auc": auc}
                )
    return pd.DataFrame(rows)


def over_training_size(
    pools: Pools, config: AuditConfig, sizes: Sequence[int], *, targets: Sequence[str] | None = None
) -> pd.DataFrame:
    """PANORAMIA's rows for attacks trained on fewer examples (Figures 2, 9 and 11), with
    ``train``.
    """
    parts = [
        audit_pools(
            pools, replace(config, train=size), targets=targets, audits=["panoramia"]
        ).table.assign(train=size)
        for size in sizes
    ]
    return pd.concat(parts, ignore_index=True)


def _cached_scores(
    pools: Pools, config: AuditConfig, names: Sequence[str], others: Pool, seed: int
) -> Scores:
    """Scores of one game, from disk where these pools were played so before."""
    with_helpers = config.form == "helpers"
    helpers = tuple(one.name for one in pools.helpers if with_helpers and not one.placebo)
    inputs: Inputs = {}
    if others is pools.generated:  # the baseline's, too
        synthetic = tuple(one.name for one in pools.helpers if one.data == "synthetic")
        placebos = tuple(one.name for one in pools.helpers if one.placebo)
        seen = (*placebos[:1], *helpers) if with_helpers else synthetic[:1]
        inputs[None] = pools.members.inputs(helpers=seen), others.inputs(helpers=seen)
    for name in names:
        inputs[name] = (
            pools.members.inputs(helpers=helpers, target=name),
            others.inputs(helpers=helpers, target=name),
        )

    def compute() -> dict[str, Any]:
        twins = pools.twins and others is pools.generated
        scores, membership = _play(inputs, config, seed, twins, pools.learned)
        return {"scores": np.stack([scores[name] for name in inputs]), "membership": membership}

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
            "trees": version("scikit-learn"),
        }
        arrays = pools_cache().get(key, compute)
    return dict(zip(inputs, arrays["scores"], strict=True)), arrays["membership"].astype(bool)


def _split(
    inputs: Inputs, config: AuditConfig, seed: int, twins: bool = False, learned: int = 0
) -> GameSplit:
    sizes = {"train": config.train, "validation": config.validation, "test": config.test}
    test_seed = config.seed if config.same_test else None
    return GameSplit(inputs, **sizes, seed=seed, test_seed=test_seed, twins=twins, learned=learned)


def _play(inputs: Inputs, config: AuditConfig, seed: int, twins: bool, learned: int) -> Scores:
    """One game: train all attacks, stop and choose on the validation part, judge once."""
    game = _split(inputs, config, seed, twins, learned)
    criterion = _Bound(config.searches[0], config.confidence)
    fit = partial(
        fit_best, config.attacks, criterion=criterion, restarts=config.restarts, seed=seed
    )
    return game.judge({name: fit(game.train(name), game.validation(name)) for name in inputs})


@dataclass(frozen=True)
class _Bound:
    """The bound itself; where bounds are equal (often 0 on few examples) the AUC decides."""

    search: RecallSearch
    confidence: float

    def c_lb(self, scores: FloatArray, membership: Flags) -> float:
        """The bound of a test of real against generated examples, nats."""
        options: dict[str, Any] = {"search": self.search, "confidence": self.confidence}
        return audit_panoramia(scores, scores, membership, **options).c_lb

    def __call__(self, scores: FloatArray, membership: Flags) -> float:
        auc = MembershipScores.from_labels(scores, membership).auc()
        return self.c_lb(scores, membership) + 1e-3 * auc
