"""The three audits of a target: PANORAMIA, the same with real non-members (RM;RN), and O(1)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from paperlib.attacks.learned import Attack, AttackInputs, LossScore, fit_best
from paperlib.audits.panoramia.config import AuditConfig
from paperlib.audits.panoramia.game import Flags, GameScores, GameSplit
from paperlib.audits.panoramia.pools import Pools, pools_cache
from paperlib.bounds import audit_one_run, audit_panoramia
from paperlib.core import FloatArray, MembershipScores, check_choice
from paperlib.io import code_tag
from paperlib.report import progress

AUDITS = ("panoramia", "rm_rn", "o1")
SYNTHETIC = "synthetic"
"""The helper that the paper's baseline sees: trained on generated data."""

_ONE_RUN = {"union": "bonferroni", "anytime": "anytime"}


@dataclass(frozen=True, eq=False)
class TargetScores:
    """Scores on the test part of one game, for one target and one audit.

    Attributes:
        target: Its name.
        audit: "panoramia", "rm_rn" or "o1".
        seed: Of the game.
        baseline: Scores of the baseline, higher means member; empty but for "panoramia".
        attack: Scores of the attack.
        membership: Who is a member.
    """

    target: str
    audit: str
    seed: int
    baseline: FloatArray
    attack: FloatArray
    membership: Flags

    def first(self, size: int) -> "TargetScores":
        """The game on the first ``size`` examples: they are in random order."""
        if not 2 <= size <= self.membership.size:
            raise ValueError(f"size: expected 2 to {self.membership.size}, got {size}")
        parts = {name: getattr(self, name)[:size] for name in ("baseline", "attack", "membership")}
        return replace(self, **parts)

    def row(self, search: str, confidence: float, **options: Any) -> dict[str, Any]:
        """What this audit finds: one row of the table."""
        found = self._panoramia if self.audit == "panoramia" else self._one_run
        return {
            "target": self.target,
            "seed": self.seed,
            "audit": self.audit,
            "search": search,
            **found(search, confidence, **options),
            "mia_auc": _scores(self.attack, self.membership).auc(),
            "m": self.membership.size,
        }

    def panoramia(self, search: str, confidence: float, **options: Any) -> Any:
        """The result of the audit with generated non-members."""
        return audit_panoramia(
            self.baseline,
            self.attack,
            self.membership,
            confidence=confidence,
            **{"search": search, **options},
        )

    def one_run(self, search: str, confidence: float) -> Any:
        """The result of the audit with real non-members."""
        kind: Any = {"rm_rn": "members", "o1": "grid"}[self.audit]
        paid: Any = _ONE_RUN[search] if self.audit == "rm_rn" else "bonferroni"
        return audit_one_run(
            _scores(self.attack, self.membership), guess=kind, thresholds=paid, confidence=confidence
        )

    def _panoramia(self, search: str, confidence: float, **options: Any) -> dict[str, float]:
        result = self.panoramia(search, confidence, **options)
        return {
            "c_lb": result.c_lb,
            "c_plus_eps_lb": result.c_plus_epsilon_lb,
            "eps_tilde": result.epsilon_tilde,
            "eps": np.nan if result.epsilon is None else result.epsilon,
            "ceiling": result.ceiling,
            "baseline_auc": _scores(self.baseline, self.membership).auc(),
        }

    def _one_run(self, search: str, confidence: float) -> dict[str, float]:
        missing = dict.fromkeys(("c_lb", "c_plus_eps_lb", "eps_tilde", "baseline_auc"), np.nan)
        perfect = replace(self, attack=self.membership.astype(np.float64))
        return {
            **missing,
            "eps": self.one_run(search, confidence).epsilon,
            "ceiling": perfect.one_run(search, confidence).epsilon,
        }


@dataclass(frozen=True, eq=False)
class TargetAudits:
    """What was found of all targets.

    Attributes:
        table: One row per target, game, audit and search: target, null, epochs, dp_epsilon, seed, audit,
            form, search, c_lb, c_plus_eps_lb, eps_tilde, eps (for "rm_rn" and "o1"), ceiling,
            baseline_auc, mia_auc, m. Bounds in nats.
        judged: The scores behind the rows.
        config: How it was done.
    """

    table: pd.DataFrame
    judged: tuple[TargetScores, ...]
    config: AuditConfig

    def summary(self) -> pd.DataFrame:
        """Mean over games, standard deviation, and half the width of the 95 % t-interval of the mean.

        Columns: target, null, epochs, dp_epsilon, audit, form, search, games, then c_lb, c_plus_eps_lb and
        ``value`` (eps_tilde, or eps where non-members are real) with ``value_sd`` and ``value_t``. The
        interval speaks of games on the same pools, not of other generators and targets.
        """
        frame = self.table.assign(value=self.table["eps_tilde"].fillna(self.table["eps"]))
        keys = ["target", "null", "epochs", "dp_epsilon", "audit", "form", "search"]
        groups = frame.groupby(keys, sort=False, dropna=False)
        means = groups[["c_lb", "c_plus_eps_lb", "value", "ceiling", "baseline_auc", "mia_auc"]].mean()
        games, spread = groups.size(), groups["value"].std()
        means.insert(0, "games", games)
        means["value_sd"] = spread
        means["value_t"] = stdtrit(np.maximum(games - 1, 1), 0.975) * spread / np.sqrt(games)
        return means.reset_index()

    def select(self, audit: str = "panoramia", **wanted: Any) -> tuple[TargetScores, ...]:
        """Scores of one audit, for the targets or seeds asked for (``target=``, ``seed=``)."""
        return tuple(
            one
            for one in self.judged
            if one.audit == audit and all(getattr(one, name) == value for name, value in wanted.items())
        )

    def curves(self, search: str | None = None, **wanted: Any) -> pd.DataFrame:
        """Curves of PANORAMIA's two tests, as `PanoramiaResult.curve`, with target, seed and ceiling."""
        way = search or self.config.searches[0]
        parts = []
        for one in self.select("panoramia", **wanted):
            result = one.panoramia(way, self.config.confidence)
            parts.append(result.curve.assign(target=one.target, seed=one.seed, ceiling=result.ceiling))
        if not parts:
            raise ValueError(f"curves: no game of PANORAMIA with {wanted}")
        return pd.concat(parts, ignore_index=True)

    def over_test_size(self, sizes: Sequence[int], search: str | None = None) -> pd.DataFrame:
        """The table's rows again, on the first ``sizes`` examples of each test part.

        Raises:
            ValueError: A size below 2 or above the test part.
        """
        way = search or self.config.searches[0]
        rows = [
            one.first(size).row(way, self.config.confidence)
            for size in sizes
            for one in self.judged
            if _has_both(one.membership[:size])
        ]
        return pd.DataFrame(rows)


def audit_pools(
    pools: Pools,
    config: AuditConfig,
    *,
    targets: Sequence[str] | None = None,
    audits: Sequence[str] = AUDITS,
) -> TargetAudits:
    """Audit targets in repeated games.

    All targets of a game share its split, its coins and the baseline. Games on kept pools are kept too, but
    those with an attack of your own are played each time.

    Args:
        pools: Examples and what models say of them.
        config: How.
        targets: Names; None takes all.
        audits: Of "panoramia", "rm_rn" and "o1"; the last two are left out where there are no non-members.

    Raises:
        ValueError: Unknown names, or too few examples.

    Source:
        PANORAMIA, Algorithm 1 and section 5.2.
    """
    names = pools.targets if targets is None else tuple(targets)
    for name in names:
        check_choice("targets", name, pools.targets)
    for audit in audits:
        check_choice("audits", audit, AUDITS)
    if pools.nonmembers is None:
        audits = [audit for audit in audits if audit == "panoramia"]
    judged: list[TargetScores] = []
    for at in progress(range(config.repeats), label="games"):
        judged += _game(pools, config, names, audits, config.seed + at)
    return TargetAudits(_table(pools, config, judged), tuple(judged), config)


def baseline_by_helper(pools: Pools, config: AuditConfig) -> pd.DataFrame:
    """The baseline's bound without a helper, with each helper, and with all: Tables 2 and 5.

    Returns:
        One row per helper and game: helper, seed, search, c_lb (nats), auc.
    """
    choices: dict[str, tuple[str, ...]] = {"none": (), **{name: (name,) for name in pools.helpers}}
    if len(pools.helpers) > 1:
        choices["all"] = pools.helpers
    rows = []
    for seed in range(config.seed, config.seed + config.repeats):
        views = {
            name: (pools.members.views(helpers=seen), pools.generated.views(helpers=seen))
            for name, seen in choices.items()
        }
        judged = _play(views, config, seed)
        for name in choices:
            scores = judged.scores[name]
            for search in config.searches:
                bound = _one_sided_bound(scores, judged.membership, search, config.confidence)
                auc = _scores(scores, judged.membership).auc()
                rows.append({"helper": name, "seed": seed, "search": search, "c_lb": bound, "auc": auc})
    return pd.DataFrame(rows)


def over_training_size(
    pools: Pools, config: AuditConfig, sizes: Sequence[int], *, targets: Sequence[str] | None = None
) -> pd.DataFrame:
    """PANORAMIA's rows again for attacks trained on fewer examples (Figures 2, 9 and 11), with ``train``."""
    parts = [
        audit_pools(pools, replace(config, train=size), targets=targets, audits=["panoramia"]).table.assign(
            train=size
        )
        for size in sizes
    ]
    return pd.concat(parts, ignore_index=True)


def _game(
    pools: Pools, config: AuditConfig, names: Sequence[str], audits: Sequence[str], seed: int
) -> Iterator[TargetScores]:
    if "panoramia" in audits:
        judged = _kept(pools, config, names, "generated", seed)
        for name in names:
            yield TargetScores(
                name, "panoramia", seed, judged.scores["baseline"], judged.scores[name], judged.membership
            )
    real = [audit for audit in audits if audit != "panoramia"]
    if real:
        judged = _kept(pools, config, names, "nonmembers", seed)
        for name in names:
            for audit in real:
                scores = judged.scores[name if audit == "rm_rn" else f"loss of {name}"]
                yield TargetScores(name, audit, seed, np.empty(0), scores, judged.membership)


def _kept(pools: Pools, config: AuditConfig, names: Sequence[str], kind: str, seed: int) -> GameScores:
    """The scores of one game, from disk where these pools were played on in this way before."""

    def compute() -> dict[str, Any]:
        judged = _play(_views(pools, config, names, kind), config, seed)
        return {"membership": judged.membership, **judged.scores}

    if not pools.key or not _is_ours(config.attacks):
        arrays = {name: np.asarray(values) for name, values in compute().items()}
    else:
        key = {
            "game": replace(config, searches=config.searches[:1], repeats=1, seed=seed),
            "pools": pools.key,
            "targets": names,
            "kind": kind,
            "code": code_tag(__name__, *sorted({type(attack).__module__ for attack in config.attacks})),
        }
        arrays = pools_cache().get(key, compute)
    scores = {name: values for name, values in arrays.items() if name != "membership"}
    return GameScores(scores, arrays["membership"].astype(bool))


def _is_ours(attacks: Sequence[Attack]) -> bool:
    """Whether the library's code decides what they do: no change of another attack would be noticed."""
    return all(type(attack).__module__.startswith("paperlib.") for attack in attacks)


def _views(
    pools: Pools, config: AuditConfig, names: Sequence[str], kind: str
) -> dict[str, tuple[AttackInputs, AttackInputs]]:
    others = pools.by_kind()[kind]
    all_helpers = pools.helpers if config.form == "helpers" else ()

    def pair(**given: Any) -> tuple[AttackInputs, AttackInputs]:
        return pools.members.views(**given), others.views(**given)

    views = {name: pair(helpers=all_helpers, target=name) for name in names}
    if kind == "nonmembers":
        return views | {f"loss of {name}": pair(target=name) for name in names}
    seen = all_helpers or ((SYNTHETIC,) if SYNTHETIC in pools.helpers else ())
    return {"baseline": pair(helpers=seen), **views}


def _play(
    views: Mapping[str, tuple[AttackInputs, AttackInputs]], config: AuditConfig, seed: int
) -> GameScores:
    """One game: train all attacks, choose on the validation part, judge once."""
    game = GameSplit(views, train=config.train, validation=config.validation, test=config.test, seed=seed)
    fitted = {}
    for name in views:
        if name.startswith("loss of "):
            fitted[name] = LossScore()
            continue
        fitted[name] = fit_best(
            config.attacks,
            game.train(name),
            game.validation(name),
            criterion=_criterion(config),
            restarts=config.restarts,
            seed=seed,
        )
    return game.judge(fitted)


def _criterion(config: AuditConfig) -> Any:
    """The bound itself; where bounds are equal (often 0 on few examples) the AUC decides."""

    def value(scores: FloatArray, membership: Flags) -> float:
        bound = _one_sided_bound(scores, membership, config.searches[0], config.confidence)
        return bound + 1e-3 * _scores(scores, membership).auc()

    return value


def _one_sided_bound(scores: FloatArray, membership: Flags, search: Any, confidence: float) -> float:
    return audit_panoramia(scores, scores, membership, search=search, confidence=confidence).c_lb


def _table(pools: Pools, config: AuditConfig, judged: Sequence[TargetScores]) -> pd.DataFrame:
    rows = [one.row(search, config.confidence) for one in judged for search in config.searches]
    about = pools.table[["target", "null", "epochs", "dp_epsilon"]]
    return about.merge(pd.DataFrame(rows).assign(form=config.form), on="target", how="right")


def _scores(scores: FloatArray, membership: Flags) -> MembershipScores:
    return MembershipScores.from_labels(scores, membership)


def _has_both(membership: Flags) -> bool:
    return bool(membership.any() and not membership.all())
