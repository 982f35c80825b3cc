"""Scores of the judged games, the three audits computed from them, and the check with a null
target.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, sqrt
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from paperlib.audits.panoramia.game import AuditConfig, Flags
from paperlib.audits.panoramia.pools import Target
from paperlib.bounds import audit_one_run, audit_panoramia
from paperlib.bounds.one_run.audit import OneRunResult
from paperlib.bounds.one_run.search import RECALL_SEARCHES, Search
from paperlib.bounds.panoramia import PanoramiaResult
from paperlib.core import FloatArray, MembershipScores
from paperlib.core.checks import check_in
from paperlib.core.intervals import auc_difference_interval
from paperlib.core.options import Guess, RecallSearch
from paperlib.words.audits.panoramia_data import null_outcome
from paperlib.words.designs import CONDITIONS, coin_assumption
from paperlib.words.one_run import one_run_assumptions

NULL = Target("null", "null")
LIMIT = 0.1
"""Nats: a null passes where the whole interval of its mean lies within this much of 0."""
AuditName = Literal["panoramia", "rm_rn", "o1"]
"""PANORAMIA; the same attack on real non-members (RM;RN); the target's loss on real non-members,
O(1).
"""
AUDITS: tuple[AuditName, ...] = get_args(AuditName)


@dataclass(frozen=True)
class NullCheck:
    """Epsilon~ of a null target: one trained like the target, but never on the example it is asked
    about.
    """

    mean: float  # of c_plus_eps_lb - c_lb over games, not clipped, nats
    low: float  # ends of its 95 % t-interval, infinite after one game
    high: float
    games: int  # they share one null target: other trainings could differ by more

    @classmethod
    def of(cls, differences: FloatArray) -> "NullCheck":
        """The check from c_plus_eps_lb - c_lb of the null target in each game, one or more,
        nats.
        """
        games = differences.size
        mean, half = float(differences.mean()), inf
        if games > 1:
            half = float(stdtrit(games - 1, 0.975) * differences.std(ddof=1) / sqrt(games))
        return cls(mean, mean - half, mean + half, games)

    @property
    def passes(self) -> bool:
        """Whether the interval lies within `LIMIT` of 0."""
        return self.low >= -LIMIT and self.high <= LIMIT

    def __str__(self) -> str:
        return null_outcome(self, LIMIT)


@dataclass(frozen=True)
class AucGain:
    """How far the attack, which uses the model, ranks better than the baseline, which does not."""

    attack: float  #: area under the ROC curve
    baseline: float  #: of the same examples
    low: float  #: ends of the interval of attack - baseline
    high: float
    confidence: float


@dataclass(frozen=True, eq=False)
class TargetScores:
    """Scores of m test examples of one game, higher means member, for one target and one audit."""

    target: Target
    audit: AuditName
    seed: int
    baseline: FloatArray  # empty but for "panoramia"
    attack: FloatArray
    membership: Flags

    def first(self, size: int) -> "TargetScores":
        """The game on the first ``size`` examples, 2 or more: they are in random order. A
        ValueError where there are fewer.
        """
        check_in(f"[2, {self.membership.size}]", "size", size)
        return replace(
            self,
            baseline=self.baseline[:size],
            attack=self.attack[:size],
            membership=self.membership[:size],
        )

    def auc_gain(self, confidence: float) -> AucGain:
        """What the model adds to the area under the curve, in an audit "panoramia", which alone has
        a baseline; the interval holds with this confidence, in (0, 1).
        """
        attack = MembershipScores.from_labels(self.attack, self.membership)
        baseline = MembershipScores.from_labels(self.baseline, self.membership)
        low, high = auc_difference_interval(attack, baseline, confidence=confidence)
        return AucGain(attack.auc(), baseline.auc(), low, high, confidence)

    def row(self, search: RecallSearch, confidence: float, **options: Any) -> dict[str, Any]:
        """One row of the table of results: target, seed, audit, search, bounds in nats (NaN where
        this audit has none), AUCs and m, the number of examples.

        Args:
            search: Over recall levels, as for `audit_panoramia`.
            confidence: Of each bound, in (0, 1).
            options: delta, gamma and known_c of `audit_panoramia`.
        """
        if self.audit == "panoramia":
            numbers = self._panoramia_numbers(search, confidence, **options)
        else:  # the audits with real non-members know delta alone
            numbers = self._one_run_numbers(search, confidence, options.get("delta", 0.0))
        return {
            "target": self.target.name,
            "seed": self.seed,
            "audit": self.audit,
            "search": search,
            **numbers,
            "mia_auc": MembershipScores.from_labels(self.attack, self.membership).auc(),
            "m": self.membership.size,
        }

    def _panoramia_numbers(
        self, search: RecallSearch, confidence: float, **options: Any
    ) -> dict[str, float]:
        """The columns of the audit with generated non-members: bounds in nats, with eps NaN where c
        is not known, and the baseline's AUC.
        """
        result = self.panoramia(search, confidence, **options)
        return {
            "c_lb": result.c_lb,
            "c_plus_eps_lb": result.c_plus_epsilon_lb,
            # Not clipped: a mean over games of what is clipped would show a leak where there is
            # none.
            "eps_tilde": result.c_plus_epsilon_lb - result.c_lb,
            "eps": np.nan if result.epsilon is None else result.epsilon,
            "ceiling": result.ceiling,
            "baseline_auc": MembershipScores.from_labels(self.baseline, self.membership).auc(),
        }

    def _one_run_numbers(
        self, search: RecallSearch, confidence: float, delta: float
    ) -> dict[str, float]:
        """The columns of an audit with real non-members: eps, its bound, and ceiling, the bound of
        perfect guesses, in nats; those of generated non-members are NaN.
        """
        perfect = replace(self, attack=self.membership.astype(np.float64))
        return {
            **dict.fromkeys(("c_lb", "c_plus_eps_lb", "eps_tilde", "baseline_auc"), np.nan),
            "eps": self.one_run(search, confidence, delta=delta).epsilon,
            "ceiling": perfect.one_run(search, confidence, delta=delta).epsilon,
        }

    def panoramia(self, search: RecallSearch, confidence: float, **options: Any) -> PanoramiaResult:
        """Result of the audit with generated non-members; arguments as those of
        `audit_panoramia`.
        """
        scores = self.baseline, self.attack, self.membership
        return audit_panoramia(*scores, search=search, confidence=confidence, **options)

    def one_run(
        self, search: RecallSearch, confidence: float, *, delta: float = 0.0
    ) -> OneRunResult:
        """Result of the audit with real non-members, with the claim of a game that tossed its coins
        itself, at this confidence and ``delta``: of "rm_rn" by guesses of members alone, of "o1" by
        pairs of counts of both guesses from a grid.
        """
        scores = MembershipScores.from_labels(self.attack, self.membership)
        guess: Guess = "grid"
        thresholds: Search = "bonferroni"
        if self.audit == "rm_rn":
            guess = "members"
            thresholds = RECALL_SEARCHES[search]
        result = audit_one_run(
            scores,
            guess=guess,
            thresholds=thresholds,
            confidence=confidence,
            delta=delta,
            design="played",
        )
        # The warnings are about coins that somebody else tossed, and left out; the sentences of
        # refusals are added again.
        return replace(
            result,
            condition=CONDITIONS["game"],
            assumptions=one_run_assumptions(coin_assumption("game"), guess, result.search),
            warnings=(),
        )


@dataclass(frozen=True, eq=False)
class TargetAudits:
    """Audits of several targets in repeated games."""

    judged: tuple[TargetScores, ...]
    config: AuditConfig
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])  # as of `TargetScores.row`

    @property
    def search(self) -> RecallSearch:
        """The first search over recall levels, which verdicts are about."""
        return self.config.searches[0]

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per target, game, audit and search; bounds in nats, eps_tilde not clipped at
        0.
        """
        rows: list[dict[str, Any]] = []
        for game in self.judged:
            for search in self.config.searches:
                row = game.row(search, self.config.confidence, **self.options)
                rows.append({**game.target.row(), **row})
        return pd.DataFrame(rows).assign(form=self.config.form)

    @property
    def null(self) -> NullCheck | None:
        """The check with a null target; None without one."""
        rows = self.table[self.table["null"] & (self.table["audit"] == "panoramia")]
        if rows.empty:
            return None
        return NullCheck.of((rows["c_plus_eps_lb"] - rows["c_lb"]).to_numpy(dtype=np.float64))

    def summary(self) -> pd.DataFrame:
        """Means over games; see `means_over_games`."""
        return means_over_games(self.table)

    def select(
        self, audit: AuditName = "panoramia", *, target: str | None = None, seed: int | None = None
    ) -> tuple[TargetScores, ...]:
        """Scores of one audit in every game, or only those of a target or of a game's seed."""
        games = [game for game in self.judged if game.audit == audit]
        if target is not None:
            games = [game for game in games if game.target.name == target]
        if seed is not None:
            games = [game for game in games if game.seed == seed]
        return tuple(games)

    def curves(
        self,
        search: RecallSearch | None = None,
        *,
        target: str | None = None,
        seed: int | None = None,
    ) -> pd.DataFrame:
        """Curves of PANORAMIA's two tests, as `PanoramiaResult.curve`, with target, seed and
        ceiling.

        Raises:
            ValueError: No such game.
        """
        curves: list[pd.DataFrame] = []
        for game in self.select("panoramia", target=target, seed=seed):
            result = game.panoramia(search or self.search, self.config.confidence, **self.options)
            curves.append(
                result.curve.assign(target=game.target.name, seed=game.seed, ceiling=result.ceiling)
            )
        if not curves:
            raise ValueError(f"curves: no game of PANORAMIA with target {target!r} and seed {seed}")
        return pd.concat(curves, ignore_index=True)

    def over_test_size(self, sizes: Sequence[int]) -> pd.DataFrame:
        """Rows of `TargetScores.row` by the first search, on the first examples of each test.

        ``sizes`` are numbers of examples, from 2 to the size of the test; a game whose first
        examples are all members or all others has no row.
        """
        rows: list[dict[str, Any]] = []
        for size in sizes:
            for game in self.judged:
                membership = game.membership[:size]
                if membership.any() and not membership.all():
                    first = game.first(size)
                    rows.append(first.row(self.search, self.config.confidence, **self.options))
        return pd.DataFrame(rows)


def means_over_games(table: pd.DataFrame, *, by: Sequence[str] = ()) -> pd.DataFrame:
    """Means over games of rows as in `TargetAudits.table`, apart for columns ``by``.

    Returns:
        One row per target, audit, form and search: games, means of bounds (nats) and AUCs, value
        (that of eps, or of eps_tilde where there is none, at least 0), value_sd (its standard
        deviation over games) and value_t (half the width of its 95 % t-interval).
    """
    # The intervals are about games on the same pools, not about other generators and targets.
    difference = table["c_plus_eps_lb"] - table["c_lb"]
    frame = table.assign(value=table["eps"].fillna(difference))
    keys = [*by, "target", "null", "epochs", "dp_epsilon", "audit", "form", "search"]
    groups = frame.groupby(keys, sort=False, dropna=False)
    means = groups[["c_lb", "c_plus_eps_lb", "value", "ceiling", "baseline_auc", "mia_auc"]].mean()
    games = groups.size()
    spread = groups["value"].std()
    # After the mean: means of clipped values would show a leak where none is.
    means["value"] = means["value"].clip(lower=0)
    means.insert(0, "games", games)
    means["value_sd"] = spread
    means["value_t"] = stdtrit(np.maximum(games - 1, 1), 0.975) * spread / np.sqrt(games)
    return means.reset_index()
