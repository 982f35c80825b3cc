"""PANORAMIA on the user's data: a target, known members, and defaults for the rest."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from paperlib.attacks.learned import Attack, BoostedTrees
from paperlib.audits.panoramia.config import AuditConfig
from paperlib.audits.panoramia.game import sizes_for
from paperlib.audits.panoramia.pools import Helper, Pool, Pools, Target
from paperlib.audits.panoramia.run import audit_pools
from paperlib.bounds.one_run.audit import OneRunResult
from paperlib.bounds.panoramia import PanoramiaResult
from paperlib.core import FloatArray, MembershipScores, RecallSearch

Batch = tuple[Any, ...]
Model = Callable[..., ArrayLike]
"""Takes a batch and returns one loss for each example, lower where the model knows it, shape (n,); or a table
(n, k) whose first column is the loss."""

YOURS = Target("yours")


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditData:
    """Members, generated points and helpers, whatever the kind of data.

    Attributes:
        members: Arguments with which the target gives the members' losses: (rows,), (images, labels) or
            (texts,). None of the members was seen by the generator or by a helper.
        generated: The same for generated points that no helper has seen.
        nonmembers: The same for real examples the target was not trained on, or None.
        helpers: Models that never saw the members.
        examples: Function from a batch to an attack's view of the examples, shape (n, ...).
        attacks: Attacks to choose from.
        warnings: Warnings that belong beside the result, for instance about the generator.
    """

    members: Batch
    generated: Batch
    nonmembers: Batch | None = None
    helpers: Mapping[Helper, Model] = field(default_factory=dict)
    examples: Callable[..., NDArray[Any]]
    attacks: tuple[Attack, ...] = (BoostedTrees(), BoostedTrees(leaves=4, learning_rate=0.2))
    warnings: tuple[str, ...] = ()

    def pools(self, target: Model) -> Pools:
        """Pools with the losses of the target and of every helper.

        Raises:
            ValueError: A model that does not give one finite number for each example; it is named.
        """

        def pool(batch: Batch) -> Pool:
            examples = np.asarray(self.examples(*batch))
            helpers = {
                helper.name: columns(f"helper {helper.name!r}", model(*batch), len(examples))
                for helper, model in self.helpers.items()
            }
            return Pool(examples, helpers, {YOURS.name: columns("target", target(*batch), len(examples))})

        others = None if self.nonmembers is None else pool(self.nonmembers)
        parts = pool(self.members), pool(self.generated), others
        return Pools(*parts, (YOURS,), tuple(self.helpers), warnings=self.warnings)


@dataclass(frozen=True, eq=False)
class PanoramiaAudit:
    """The audit of a target on the user's data.

    Attributes:
        result: PANORAMIA's result of the first game, with claim, assumptions and warnings.
        real: The lower bound of the same attack on real non-members; None where there are none.
        games: Numbers of every game, as `TargetAudits.table`; the claim is the first game's.
        scores: Scores of the attack in the first game.
        config: Settings of the audit.
    """

    result: PanoramiaResult
    real: OneRunResult | None
    games: pd.DataFrame
    scores: MembershipScores
    config: AuditConfig

    def __str__(self) -> str:
        return str(self.result)

    def _repr_html_(self) -> str:
        return self.result._repr_html_()


class AuditOptions(TypedDict, total=False):
    """Options of `audit_model` that the audits of every kind of data take too."""

    known_c: float | None
    search: RecallSearch
    delta: float
    gamma: float
    confidence: float
    repetitions: int
    restarts: int


def audit_model(
    target: Model,
    brought: AuditData,
    *,
    known_c: float | None = None,
    search: RecallSearch = "anytime",
    delta: float = 0.0,
    gamma: float = 0.0,
    confidence: float = 0.95,
    repetitions: int = 3,
    restarts: int = 5,
    seed: int = 0,
) -> PanoramiaAudit:
    """Measure the leakage of a target on known members.

    Guarantee:
        That of `audit_panoramia`, for the first game. Attacks are trained and chosen on other members than
        those of the test.

    Args:
        target: Function from a batch to losses.
        brought: Members, generated points and helpers.
        known_c: c of the generator in nats, 0 or more (0 for identifiers); None where it is not known.
        search: Search over recall levels, "anytime" or "union".
        delta: Delta of the (epsilon, delta)-DP that is tested, in [0, 1).
        gamma: Probability of a set on which the closeness of the generator may fail, in [0, 1).
        confidence: Confidence level of the claim, in (0, 1).
        repetitions: Games with different splits, 1 or more, to show their spread; the first makes the claim.
        restarts: Trainings of the best attack, 1 or more, of which the best on validation data is kept.
        seed: Seed of the first game, 0 or more.

    Raises:
        ValueError: Too few members, losses that are not one finite number each, or a number out of range.
    """
    pools = brought.pools(target)
    sizes: dict[str, Any] = sizes_for(min(len(pool) for pool in pools.by_kind().values()))
    config = AuditConfig(
        **sizes,
        attacks=brought.attacks,
        searches=(search,),
        restarts=restarts,
        repetitions=repetitions,
        confidence=confidence,
        seed=seed,
    )
    audits = audit_pools(pools, config)
    first = audits.select("panoramia", seed=seed)[0]
    result = first.panoramia(search, confidence, known_c=known_c, delta=delta, gamma=gamma)
    real = audits.select("rm_rn", seed=seed)
    return PanoramiaAudit(
        result=replace(result, warnings=(*result.warnings, *brought.warnings)),
        real=real[0].one_run(search, confidence, delta=delta) if real else None,
        games=audits.table,
        scores=MembershipScores.from_labels(first.attack, first.membership),
        config=config,
    )


def columns(name: str, values: ArrayLike, count: int) -> FloatArray:
    """One model's numbers as a table, shape (n, k).

    Raises:
        ValueError: Other than one row for each example.

    >>> columns("target", [0.5, 1.5], 2).shape
    (2, 1)
    """
    table = np.asarray(values, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != count or not table.shape[1]:
        raise ValueError(
            f"{name}: expected one loss for each of {count} examples, shape ({count},) or ({count}, k), got "
            f"{np.asarray(values).shape}"
        )
    return table
