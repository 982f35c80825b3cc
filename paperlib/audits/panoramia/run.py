"""Games with pools: attacks are trained, chosen on a validation part, and judged once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd

from paperlib.attacks.learned import fit_best
from paperlib.attacks.learned.interface import AttackInputs, LossScore
from paperlib.audits.panoramia.game import AuditConfig, Flags, GameSplit
from paperlib.audits.panoramia.pools import Pool, Pools, Target, pools_cache
from paperlib.audits.panoramia.results import AUDITS, AuditName, TargetAudits, TargetScores
from paperlib.bounds import audit_panoramia
from paperlib.core import FloatArray, MembershipScores
from paperlib.core.checks import check_choice
from paperlib.core.options import RecallSearch
from paperlib.io.sources import code_tag
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

    Args:
        pools: Examples of each kind, and what all models say of them.
        config: Sizes of the games, attacks and repetitions.
        targets: Names of the targets to audit; None for all of the pools.
        audits: Which audits; those with real non-members are left out of pools without any.

    Raises:
        ValueError: A target or audit that there is not, or pools too small for these games.
    """
    names = pools.target_names if targets is None else tuple(targets)
    for name in names:
        check_choice("targets", name, pools.target_names)
    for audit in audits:
        check_choice("audits", audit, AUDITS)
    if pools.nonmembers is None:  # there is nothing to compare with
        audits = [audit for audit in audits if audit == "panoramia"]
    judged: list[TargetScores] = []
    for seed in progress(range(config.seed, config.seed + config.repetitions), label="games"):
        judged += _judged(pools, config, names, audits, seed)
    return TargetAudits(tuple(judged), config)


def _judged(
    pools: Pools,
    config: AuditConfig,
    names: Sequence[str],
    audits: Sequence[AuditName],
    seed: int,
) -> list[TargetScores]:
    """Scores of the targets ``names`` in the games of one seed: those of PANORAMIA for each target,
    then, target by target, those of the audits with real non-members.
    """
    by_name = {target.name: target for target in pools.targets}
    judged: list[TargetScores] = []
    if "panoramia" in audits:
        scores = _cached_scores(pools, config, names, pools.generated, seed)
        judged += [_target_scores(by_name[name], "panoramia", seed, scores) for name in names]
    on_nonmembers = _nonmember_scores(pools, config, names, audits, seed)
    for name in names:
        for audit, scores in on_nonmembers.items():
            judged.append(_target_scores(by_name[name], audit, seed, scores))
    return judged


def _nonmember_scores(
    pools: Pools,
    config: AuditConfig,
    names: Sequence[str],
    audits: Sequence[AuditName],
    seed: int,
) -> dict[AuditName, Scores]:
    """By audit, the scores of the games on real non-members that are asked for: "rm_rn", in which
    attacks learn, and "o1", in which the target's loss is the score; none without non-members.
    """
    games: dict[AuditName, Scores] = {}
    nonmembers = pools.nonmembers
    if nonmembers is None:
        return games
    if "rm_rn" in audits:
        games["rm_rn"] = _cached_scores(pools, config, names, nonmembers, seed)
    if "o1" in audits:
        losses: Inputs = {
            name: (pools.members.inputs(target=name), nonmembers.inputs(target=name))
            for name in names
        }
        # The game of the same seed has the same coins.
        game = _split(losses, config, seed, learned=pools.learned)
        games["o1"] = game.judge(dict.fromkeys(losses, LossScore()))
    return games


def _target_scores(target: Target, audit: AuditName, seed: int, game: Scores) -> TargetScores:
    """The scores of one target in a game, beside the baseline's, shape (m,), or none, shape
    (0,).
    """
    scores, membership = game
    baseline = scores.get(None, np.empty(0))
    return TargetScores(target, audit, seed, baseline, scores[target.name], membership)


def baseline_by_helper(pools: Pools, config: AuditConfig) -> pd.DataFrame:
    """What the baseline shows without a helper, with each, and with all of them (PANORAMIA, Tables
    2 and 5): one row for each of these, game and search, with the columns helper ("none", "all" or
    a name), seed, search, c_lb (nats) and auc.
    """
    names = tuple(helper.name for helper in pools.helpers if not helper.placebo)
    # By the name of a row, the helpers that the baseline sees.
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
    """PANORAMIA's rows of `TargetAudits.table` where attacks are trained on ``sizes`` examples
    (Figures 2, 9 and 11), each an even number, which the column train holds.
    """
    tables: list[pd.DataFrame] = []
    for size in sizes:
        smaller = replace(config, train=size)
        audits = audit_pools(pools, smaller, targets=targets, audits=["panoramia"])
        tables.append(audits.table.assign(train=size))
    return pd.concat(tables, ignore_index=True)


def _cached_scores(
    pools: Pools, config: AuditConfig, names: Sequence[str], others: Pool, seed: int
) -> Scores:
    """Scores of one game, from disk where these pools were played so before.

    Args:
        names: Targets whose attacks are played.
        others: What members are told from: generated examples or real non-members.
        seed: Of the game's split and coins.

    Returns:
        Scores of the baseline and of the attack on each target by name, and who is a member, all of
            shape (m,).
    """
    inputs = _inputs(pools, config, names, others)

    def compute() -> dict[str, Any]:
        """Play the game: the scores stacked, shape (names, m), and who is a member, (m,)."""
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


def _inputs(pools: Pools, config: AuditConfig, names: Sequence[str], others: Pool) -> Inputs:
    """What the attack on each target sees, after what the baseline sees of generated examples.

    In the form "helpers" both see all helpers, and the baseline a placebo in the place of the
    target; in that of the paper the baseline sees the synthetic helper, and attacks none.
    """
    placebos = tuple(helper.name for helper in pools.helpers if helper.placebo)
    if config.form == "helpers":
        helpers = tuple(helper.name for helper in pools.helpers if not helper.placebo)
        of_baseline = (*placebos[:1], *helpers)
    else:
        helpers = ()
        synthetic = tuple(helper.name for helper in pools.helpers if helper.data == "synthetic")
        of_baseline = synthetic[:1]
    inputs: Inputs = {}
    if others is pools.generated:
        inputs[None] = (
            pools.members.inputs(helpers=of_baseline),
            others.inputs(helpers=of_baseline),
        )
    for name in names:
        inputs[name] = (
            pools.members.inputs(helpers=helpers, target=name),
            others.inputs(helpers=helpers, target=name),
        )
    return inputs


def _split(
    inputs: Inputs, config: AuditConfig, seed: int, twins: bool = False, learned: int = 0
) -> GameSplit:
    """The game of a seed, with the sizes of the settings; twins and learned are those of `Pools`. A
    ValueError for pools too small.
    """
    sizes = {"train": config.train, "validation": config.validation, "test": config.test}
    test_seed = config.seed if config.same_test else None
    return GameSplit(inputs, **sizes, seed=seed, test_seed=test_seed, twins=twins, learned=learned)


def _play(inputs: Inputs, config: AuditConfig, seed: int, twins: bool, learned: int) -> Scores:
    """The scores of one game: all attacks are trained, stopped and chosen on the validation part,
    and judged once; twins and learned are those of `Pools`.
    """
    game = _split(inputs, config, seed, twins, learned)
    criterion = _Bound(config.searches[0], config.confidence)
    fit = partial(
        fit_best, config.attacks, criterion=criterion, restarts=config.restarts, seed=seed
    )
    return game.judge({name: fit(game.train(name), game.validation(name)) for name in inputs})


@dataclass(frozen=True)
class _Bound:
    """What settings of attacks are chosen by: the bound c_lb itself, and where bounds are equal, as
    often 0 on few examples, the AUC.
    """

    search: RecallSearch
    confidence: float

    def c_lb(self, scores: FloatArray, membership: Flags) -> float:
        """The bound of a test of real against generated examples, nats, from scores and membership,
        shape (n,) each.
        """
        options: dict[str, Any] = {"search": self.search, "confidence": self.confidence}
        return audit_panoramia(scores, scores, membership, **options).c_lb

    def __call__(self, scores: FloatArray, membership: Flags) -> float:
        """The larger, the better an attack with these scores, both of shape (n,)."""
        auc = MembershipScores.from_labels(scores, membership).auc()
        return self.c_lb(scores, membership) + 1e-3 * auc
