"""PANORAMIA on the user's data: a target, known members, and defaults for the rest."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypedDict, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paperlib.attacks.learned import Attack, BoostedTrees
from paperlib.audits.document import AuditDocument, answer_of
from paperlib.audits.panoramia.folds import (
    MOST,
    ModelByKind,
    Shares,
    out_of_fold,
    shared_sizes,
    shares_of,
)
from paperlib.audits.panoramia.game import AuditConfig, sizes_for
from paperlib.audits.panoramia.pools import (
    FOLDS,
    KINDS,
    PLACEBO,
    Batch,
    Helper,
    Model,
    Pools,
    Target,
    Trainer,
    appended,
    check_model,
    columns,
    pools_of,
    take,
)
from paperlib.audits.panoramia.results import LIMIT, NULL, AucGain, NullCheck, TargetAudits
from paperlib.audits.panoramia.run import audit_pools
from paperlib.audits.releases.rows import check_one_draw
from paperlib.bounds.one_run.audit import OneRunResult
from paperlib.bounds.panoramia import PanoramiaResult
from paperlib.core import FloatArray, IntArray, MembershipScores, ScoreAudit
from paperlib.core.checks import check_at_least
from paperlib.core.options import RecallSearch
from paperlib.core.results import round_down, round_up
from paperlib.report.audit.tables import TableSection
from paperlib.words.audits import panoramia_data as words

Result = TypeVar("Result", PanoramiaResult, OneRunResult)
YOURS = Target("yours")
_FEW = 8  # rows that are asked twice
_STEADY = 0.05  # relative: how far apart losses may lie in reduced precision


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditData:
    """Members, generated points and helpers, whatever the kind of data.

    A batch holds the arguments with which the target gives losses: (rows,), (images, labels) or
    (texts,). ``train`` trains helpers on D_G and, out of fold, on members that are not judged; None
    leaves these out.
    """

    members: Batch  #: neither the generator nor one of ``helpers`` saw one
    generated: Batch  #: no helper has seen one
    nonmembers: Batch | None = None  #: real examples the target was not trained on
    known: Batch | None = None  #: real examples that the generator learned (D_G), if they are there
    helpers: Mapping[Helper, Model] = field(default_factory=dict)
    train: Trainer | None = None
    folds: int = 4  #: models of each such helper, 2 or more
    #: share of the members, in (0, 1); None leaves helpers enough to learn
    judged: float | None = None
    examples: Callable[..., NDArray[Any]]  #: from a batch to an attack's view of it, shape (n, ...)
    attacks: tuple[Attack, ...] = (BoostedTrees(), BoostedTrees(leaves=4, learning_rate=0.2))
    warnings: tuple[str, ...] = ()  #: stand beside the result
    #: column that names the units, of each of which one row was drawn, or
    #: `paperlib.core.facts.NAMES_GIVEN` where no column does; "" where an example is a row
    unit: str = ""

    def __post_init__(self) -> None:
        check_at_least(2, folds=self.folds)

    @property
    def batches(self) -> dict[str, Batch]:
        """The batches there are, by kind."""
        batches = zip(KINDS, (self.members, self.generated, self.nonmembers), strict=True)
        return {kind: batch for kind, batch in batches if batch is not None}

    @property
    def smallest(self) -> int:
        """Number of examples of the kind that has fewest."""
        return min(len(batch[0]) for batch in self.batches.values())

    @property
    def shares(self) -> Shares:
        """How the members are shared out where helpers learn some of them."""
        members = len(self.members[0])
        return shares_of(members, pool=self.smallest, folds=self.folds, judged=self.judged)

    def pools(self, target: Model, *, null: bool = False, seed: int = 0) -> Pools:
        """Pools with the losses of the target and of every helper.

        With ``train`` they have two helpers more: one that baseline and attack ask, and a placebo,
        which the baseline asks where the attack asks the target. ``null`` adds a target trained on
        D_G and all members, each example asked of a model that did not learn it.
        """
        learned = 0 if self.train is None else self.shares.learned
        views = {kind: np.asarray(self.examples(*batch)) for kind, batch in self.batches.items()}

        def outputs(name: str, model: Model) -> dict[str, FloatArray]:
            """What a model says of the examples of each kind, shape (n, k), checked."""
            return {
                kind: columns(name, model(*batch), len(views[kind]))
                for kind, batch in self.batches.items()
            }

        targets = {YOURS: outputs("target", target)}
        _check_steady(target, self.members, targets[YOURS]["members"])
        if "nonmembers" in views:
            sides = [views["members"], views["nonmembers"]]
            order = np.random.default_rng(seed).permutation(sum(map(len, sides)))
            rows = np.concatenate(sides).reshape(len(order), -1)[order]
            check_one_draw(rows, order < len(sides[0]), seed)
        helpers: dict[Helper, dict[str, FloatArray]] = {}
        for helper, model in self.helpers.items():
            helpers[helper] = outputs(f"helper {helper.name!r}", model)
        # Each fold adds its number to a seed: a hundred apart, no two trainings share one.
        if self.train is not None:
            helpers[FOLDS] = self._out_of_fold(FOLDS.name, learned, seed + 100)
            helpers[PLACEBO] = self._out_of_fold(PLACEBO.name, learned, seed + 200)
        if null:
            targets[NULL] = self._out_of_fold(NULL.name, len(self.members[0]), seed + 300)
        return pools_of(views, targets, helpers, warnings=self.warnings, learned=learned)

    def _out_of_fold(self, name: str, learned: int, seed: int) -> dict[str, FloatArray]:
        """What models trained by the user say of each example, each asked of one that did not learn
        it.

        Args:
            name: How messages call these models.
            learned: Number of members, the first ones, that are shared out to folds.
            seed: Of the folds; the training of fold k gets ``seed + k``.

        Returns:
            Columns by kind of example, shape (n, k).

        Raises:
            ValueError: No function to train with, or one that returns no model.
        """
        train, batches = self.train, self.batches
        if train is None:
            raise ValueError(f"train: expected a function that trains the {name} target, got None")
        label = f"train_again ({name})"

        def learn(rows: IntArray, fold: int) -> ModelByKind:
            """A model trained on known examples and the members of these numbers, as a function of
            kind and rows.
            """
            members = take(self.members, rows)
            batch = members if self.known is None else appended(self.known, members)
            model = check_model(label, train(*batch, seed + fold))
            return lambda kind, asked: columns(
                label, model(*take(batches[kind], asked)), asked.size
            )

        sizes = {kind: len(batch[0]) for kind, batch in batches.items()}
        return out_of_fold(learn, sizes, learned=learned, folds=self.folds, seed=seed, label=label)


@dataclass(frozen=True, eq=False)
class PanoramiaAudit:
    """The audit of a target on the user's data."""

    result: PanoramiaResult  #: of the first game
    #: The lower bound of the same attack on real non-members; it holds if these come from the
    #: distribution of the members.
    real: OneRunResult | None
    null: NullCheck | None  #: what a null target gives in the same games
    games: pd.DataFrame  #: one row per target, null or not, game, audit and search, bounds in nats
    scores: MembershipScores  #: of the attack in the first game
    auc_gain: AucGain  #: over the baseline, on the examples of the first game
    config: AuditConfig

    @property
    def headline(self) -> str:
        """The number on one line, and whether a null target was found to give 0."""
        return self.result.headline

    def document(self, *, subject: str = "", **fields: Any) -> AuditDocument:
        """The audit as text, JSON and page; the main number is a lower bound where there is one.

        ``subject`` is what was audited, as the answers name it; ``fields`` are further ones of
        `AuditDocument`, such as ``facts``.
        """
        result, null = self.result, self.null
        generated = ScoreAudit(
            title=words.GENERATED_TITLE,
            purpose=words.GENERATED_PURPOSE,
            kind="measurement" if result.epsilon is None else "lower bound",
            result=result,
        )
        audits = [generated]
        limits = [self._limit()]
        if self.real is not None:
            real = ScoreAudit(
                title=words.REAL_TITLE,
                kind="lower bound",
                purpose=words.REAL_PURPOSE,
                result=self.real,
            )
            index = 0 if result.epsilon is None else 1
            audits.insert(index, real)
            limits.insert(index, (self.real.epsilon, self.real.ceiling))
        answers = [
            answer_of(audit.result, about=words.answer_name(subject, audit.title))
            for audit in audits
            if audit.result
        ]
        return AuditDocument(
            title=words.TITLE,
            scores=self.scores,
            audits=tuple(audits),
            answers=tuple(answers),
            limits=tuple(limits),
            design="game",
            sections=(_auc_section(self.auc_gain),),
            more={
                "epsilon_tilde": result.epsilon_tilde,
                "auc_gain": asdict(self.auc_gain),
                "null": None if null is None else {**asdict(null), "passes": null.passes},
            },
            **fields,
        )

    def _limit(self) -> tuple[float | None, float]:
        """The number of the audit with generated non-members that the user's limit is compared
        with, and the most that it could have been, both in nats.

        The number is the lower bound on epsilon, or without one the measurement epsilon~; None
        where that is too low to say anything, as a null target shows.
        """
        result, null = self.result, self.null
        c = result.c_lb if result.known_c is None else result.known_c
        ceiling = max(0.0, result.ceiling - c)
        if result.epsilon is not None:
            return result.epsilon, ceiling
        # The attack sees more than the baseline, so it should do as well on a null target, which
        # gives 0 then. A mean below -LIMIT, with which the null does not pass, shows an attack that
        # is weaker than the baseline: the measurement of the user's target is too low as well.
        if null is not None and null.mean < -LIMIT:
            return None, ceiling
        return result.epsilon_tilde, ceiling

    def __str__(self) -> str:
        return str(self.result)

    def _repr_html_(self) -> str:
        return self.result._repr_html_()


def _auc_section(gain: AucGain) -> TableSection:
    """The section of the report with the areas under the curve of attack and baseline, and the
    interval of their difference.
    """
    low, high = round_down(gain.low), round_up(gain.high)
    difference = f"{gain.attack - gain.baseline:+.3f} [{low:+.3f}, {high:+.3f}]"
    return TableSection(
        title=words.AUC_TITLE,
        headings=words.AUC_HEADINGS,
        rows=[(f"{gain.attack:.3f}", f"{gain.baseline:.3f}", difference)],
        note=words.auc_note(gain),
        style="short",
    )


def _check_steady(target: Model, batch: Batch, losses: FloatArray) -> None:
    """Refuse (ValueError) a target that gives a row other losses among other rows, or the next
    time: the first eight of a batch are asked again, which had ``losses``, shape (n, k).
    """
    if not np.isfinite(losses).all():
        return  # named where the losses are used
    few = np.arange(min(_FEW, len(losses)))
    again = columns("target", target(*take(batch, few)), len(few))
    if not np.allclose(losses[few], again, rtol=_STEADY, atol=_STEADY * losses.std()):
        raise ValueError(
            "target: the losses of a row change from call to call; call model.eval(), scale "
            "nothing by the rows of a call, and look nothing up by their index"
        )


class AuditOptions(TypedDict, total=False):
    """Options of `audit_model` that the audits of every kind of data take too."""

    known_c: float | None
    search: RecallSearch
    delta: float
    gamma: float
    confidence: float
    repetitions: int | None
    restarts: int


def audit_model(
    target: Model,
    data: AuditData,
    *,
    train_again: Trainer | None = None,
    known_c: float | None = None,
    search: RecallSearch = "anytime",
    delta: float = 0.0,
    gamma: float = 0.0,
    confidence: float = 0.95,
    repetitions: int | None = None,
    restarts: int = 5,
    seed: int = 0,
) -> PanoramiaAudit:
    """Measure the leakage of a target on known members.

    Guarantee:
        That of `audit_panoramia`, for the first game. Attacks are trained and chosen on other
        members than those of the test, and no helper learns a member of the test.

    Args:
        target: Function from a batch to losses.
        data: The members, the generated points and, where they are there, real non-members.
        train_again: Function from a batch and, after it, a seed to a function like ``target``,
            which trains the same model in the same way. It is called twice per fold in the place of
            ``data.train`` and, unless c is known, as often as there are folds for a null target,
            which is audited beside yours: its models never learned the example they are asked
            about, so that it should give 0.
        known_c: How far, in nats, the generator is from the members' distribution at most, if that
            is known; 0 for one that draws from it. None measures it by the baseline, which does
            not ask the target.
        search, delta, gamma, confidence: As for `audit_panoramia`.
        repetitions: Games with different splits, 1 or more (2 for a null); the first makes the
            claim. None plays 10 with ``train_again``, else 3.
        restarts: Trainings of the best attack, 1 or more, of which validation data choose one.
        seed: Seed of the first game, the folds and the trainings, 0 or more.

    Raises:
        ValueError: Too few members, losses that are not one finite number each, or a number out of
            range.
    """
    if train_again is not None:
        data = replace(data, train=train_again)
    if known_c is not None:
        # No baseline measures c then, so its helpers need not learn many members: unless the user
        # says how many are judged, these are the largest share.
        data = replace(data, judged=data.judged or MOST)
    config = AuditConfig(
        **_sizes(data),
        attacks=data.attacks,
        searches=(search,),
        restarts=restarts,
        seed=seed,
        repetitions=repetitions or (3 if train_again is None else 10),
        confidence=confidence,
    )
    pools = data.pools(target, null=train_again is not None and known_c is None, seed=seed)
    judged = audit_pools(pools, config, audits=["panoramia"]).judged
    if pools.nonmembers is not None:
        # RM;RN, the same attack on real non-members, and O(1), the target's loss on them. Neither
        # has a baseline, so there is nothing that a null target would check.
        judged += audit_pools(pools, config, targets=[YOURS.name], audits=["rm_rn", "o1"]).judged
    options: dict[str, Any] = {"known_c": known_c, "delta": delta, "gamma": gamma}
    audits = TargetAudits(judged, config, options)
    first = audits.select("panoramia", target=YOURS.name, seed=seed)[0]
    result = first.panoramia(search, confidence, **options)
    null = audits.null
    warnings = [*result.warnings, *data.warnings]
    beside = ""
    if known_c is None:  # where c is known, neither a weak baseline nor a null target matters
        warnings += _baseline_warnings(data)
        beside = str(null or words.NULL_NOT_CHECKED)
    real: OneRunResult | None = None
    on_nonmembers = audits.select("rm_rn", seed=seed)
    if on_nonmembers:
        real = _with_unit(on_nonmembers[0].one_run(search, confidence, delta=delta), data.unit)
    return PanoramiaAudit(
        result=replace(_with_unit(result, data.unit), beside=beside, warnings=tuple(warnings)),
        real=real,
        null=null,
        games=audits.table,
        scores=MembershipScores.from_labels(first.attack, first.membership),
        auc_gain=first.auc_gain(confidence),
        config=config,
    )


def _sizes(data: AuditData) -> dict[str, Any]:
    """Numbers of examples of training, validation and test, by their names in `AuditConfig`, which
    leave helpers members to learn where they learn some.
    """
    if data.train is None:
        return sizes_for(data.smallest)
    return shared_sizes(data.shares, data.smallest)


def _baseline_warnings(data: AuditData) -> tuple[str, ...]:
    """Why the baseline may be weak; empty where helpers learn enough."""
    if data.train is not None:
        return data.shares.warnings
    if data.helpers:
        return ()
    return (words.NO_HELPERS,)


def _with_unit(result: Result, unit: str) -> Result:
    """The result, whose claim says what one example is where it is no row ("" for a row)."""
    if not unit:
        return result
    return replace(result, claim=f"{result.claim} {words.unit_sentence(unit)}", unit=unit)
