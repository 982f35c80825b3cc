"""Audits that learn where to guess: several signals per example in place of one score."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paperlib.audits.claimed import tested_curve
from paperlib.audits.planned.sealed_plan import SealedPlan, record_facts
from paperlib.bounds.claims.audit import CurveResult, check_adjacency, outcome_of
from paperlib.bounds.claims.curves import ClaimedCurve
from paperlib.bounds.claims.ordered_claims import ClaimTest
from paperlib.bounds.one_run.adaptive import Bets, Bettor, Proposal, ends_of, reveal
from paperlib.bounds.one_run.fair_coins import (
    adjacency_of,
    coin_warnings,
    fair_game,
)
from paperlib.bounds.one_run.guesses import GuessPath, bets_path, no_guess
from paperlib.bounds.one_run.search import Hypothesis, RecallTest, every_count, recall_test
from paperlib.bounds.panoramia import PanoramiaResult, panoramia_result
from paperlib.bounds.panoramia_terms import Terms
from paperlib.core import Coins, FloatArray, IntArray, MembershipScores
from paperlib.core.checks import (
    as_floats,
    as_rows,
    check_choice,
    check_confidence,
    check_delta,
    check_ids,
    check_index,
    find_ties,
    unit_means,
)
from paperlib.core.column_names import check_features
from paperlib.core.facts import NAMES_GIVEN
from paperlib.core.near_rows import near_rows_share_coins, principal_axes
from paperlib.core.options import Design
from paperlib.core.results import AuditResult, table
from paperlib.words.audits import claimed_curves
from paperlib.words.audits import features as words
from paperlib.words.claims import ceiling_note, lower_bound_claim, unit_sentence
from paperlib.words.coins import one_example, sealed_assumptions, seed_warnings
from paperlib.words.designs import (
    CONDITIONS,
    THE_PROCEDURE,
    near_rows,
    score_assumptions,
    tie_warnings,
)

if TYPE_CHECKING:
    import pandas as pd

Flags = NDArray[np.bool_]

FIRST_SHARE = 0.02  # share of the coins that are looked at, at random, before the first fit
RECALL_SHARE = 0.1  # of those of PANORAMIA: its bounds rest on the few surest guesses
REFIT = 1.2  # growth of the revealed coins from one fit to the next
_FEWEST = 20  # rows that a feature agrees with by chance in one of a million audits, at most
_LEARNING, _ROW_ORDER = 1, 4  # streams of a seed: no two draws of an audit are from one
_KNOTS = 6  # of the curve of a feature; chosen
_CURVED = 0.3  # scale of the curved parts beside the straight ones: curves are shrunk more


class Classifier(Protocol):
    """What is needed of a scikit-learn classifier."""

    def fit(self, X: FloatArray, y: Flags) -> Any:
        """Learn from rows, shape (n, features), and their membership, (n,)."""

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Chances of the two classes, non-member first, shape (n, 2)."""
        ...


class AdditiveModel:
    """A smooth additive logistic regression: fast, and hardly overfits a few hundred coins.

    ``curves`` is the scale of the curved parts beside the straight ones: more lets them bend more.
    """

    # A pipeline of the same parts spends a third of its time on checks between them.
    def __init__(self, *, curves: float = _CURVED) -> None:
        """Set up scaling, splines and the logistic regression on both, none of them fitted."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.preprocessing import SplineTransformer, StandardScaler

        self._scaler: Any = StandardScaler()
        self._scale = curves
        self._last = LogisticRegression(max_iter=300)
        self._curves: Any = SplineTransformer(
            n_knots=_KNOTS, knots="quantile", extrapolation="linear"
        )

    def fit(self, X: FloatArray, y: Flags) -> None:
        """Learn from rows, shape (n, features), and their membership, (n,)."""
        scaled = self._scaler.fit_transform(X)
        self._last.fit(np.hstack([scaled, self._scale * self._curves.fit_transform(scaled)]), y)

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Chance of each row, (n, features), to be of a non-member and of a member: (n, 2)."""
        scaled = self._scaler.transform(X)
        return self._last.predict_proba(
            np.hstack([scaled, self._scale * self._curves.transform(scaled)])
        )


class LearnedOrder:
    """Bettor: proposes the examples of whose membership a model, fitted on the revealed coins, is
    surest.
    """

    # Choosing examples by their features does not change the chance of membership given the
    # features, so a model may learn from coins that were bet on as well as from those looked at.
    # Members are read where a coin is revealed, nowhere else.
    def __init__(
        self,
        features: FloatArray,
        members: Flags,
        model: Classifier,
        rng: np.random.Generator,
        *,
        only_members: bool = False,
    ) -> None:
        """Start with a random order, in which every example is guessed to be a member.

        Args:
            features: What the model learns from, shape (m, d).
            members: Membership, shape (m,).
            model: Fitted to the revealed coins, again and again.
            rng: Draws the order of the start and of equally sure examples.
            only_members: Guess "member" alone, the likeliest first.
        """
        self._features = features  # (m, d)
        self._members = members  # (m,)
        self._model = model
        self._only_members = only_members  # guess "member" alone
        self._shuffle = rng.permutation(members.size)  # which of equally sure examples come first
        self._order = self._shuffle  # examples, the surest first; revealed ones leave it
        self._guess = np.ones(members.size, dtype=bool)  # of each example: a member
        self._next_fit = 0.0  # revealed coins at which the model is fitted again

    def next_size(self, revealed: Flags) -> int:
        """How many examples must be guessed together since they are equally sure: 1 while any is
        left, since ties are broken at random, and 0 at the end. ``revealed`` has shape (m,).
        """
        return 0 if revealed.all() else 1

    def propose(self, count: int, revealed: Flags) -> Proposal:
        """The ``count`` unrevealed examples that the model is surest of, and what it guesses; it is
        fitted again when a fifth more are revealed. ``revealed`` has shape (m,).
        """
        if count and revealed.sum() >= self._next_fit:
            self._fit(revealed)
        order = self._order[~revealed[self._order]]
        self._order = order
        return Proposal(order[:count], self._guess[order[:count]])

    def _fit(self, revealed: Flags) -> None:
        """Learn from the revealed coins which examples to guess next, and what; ``revealed`` has
        shape (m,). The order stays as it was where all revealed ones are of one class.
        """
        self._next_fit = REFIT * float(revealed.sum())
        labels = self._members[revealed]
        if labels.all() or not labels.any():
            return  # nothing to learn from one class: the order of before is kept
        with warnings.catch_warnings():
            # The bound holds in any order, of an unfinished fit too.
            warnings.filterwarnings("ignore", message=".*converge.*")
            self._model.fit(self._features[revealed], labels)
        chance = np.asarray(self._model.predict_proba(self._features), float)[:, 1]
        self._guess = (chance > 0.5) | self._only_members
        sure = chance if self._only_members else np.abs(chance - 0.5)
        # The surest first; equally sure ones in the random order of the start.
        surest_first = np.argsort(-sure[self._shuffle], kind="stable")
        self._order = self._shuffle[surest_first]


def learned_bets(
    others: Sequence[Bettor],
    learned: LearnedOrder,
    members: Flags,
    rng: np.random.Generator,
    share: float = FIRST_SHARE,
) -> Bets:
    """Bets of a learned order, numbered last, beside others, on examples whose membership is
    ``members``, shape (m,).

    A ``share`` of the coins, drawn by ``rng``, is looked at before the first bet.
    """
    looks = rng.permutation(members.size)[: math.ceil(share * members.size)]
    return reveal([*others, learned], members, looks, leader=len(others))


def learned_path(bets: Bets, scores: FloatArray) -> GuessPath:
    """The guesses of the bets, of examples with these scores, shape (m,); a path without a guess
    where none was made.
    """
    return bets_path(bets, scores) if bets.stop.any() else no_guess(scores.size)


@dataclass(frozen=True, kw_only=True, eq=False)
class FeaturesResult(AuditResult):
    """Lower bound on epsilon from one training run and several signals per example."""

    epsilon: float  #: nats
    delta: float
    confidence: float
    correct: int  #: right guesses where the bound is reached
    guesses: int  #: guesses made there
    learned: int  #: those of the learned order; the ends of the first column made the others
    total: int  #: audit examples, abstentions and looks included
    ceiling: float  #: the bound if every guess were right, nats
    curve_guesses: IntArray
    curve_correct: IntArray
    curve_bound: FloatArray
    claim_test: CurveResult | None = None  #: of a claimed curve; None where none is claimed

    @property
    def headline(self) -> str:
        return words.headline(self)

    def to_dict(self) -> dict[str, Any]:
        test = self.claim_test
        return {**super().to_dict(), "claim_test": None if test is None else test.to_dict()}

    @property
    def curve(self) -> "pd.DataFrame":
        """At most 200 counts of guesses, one row each: guesses, correct (right ones among them) and
        bound (nats, corrected for the search).
        """
        columns = (self.curve_guesses, self.curve_correct, self.curve_bound)
        return table(dict(zip(("guesses", "correct", "bound"), columns, strict=True)))


def audit_features(
    features: Any,
    membership: ArrayLike | Coins,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    design: Design = "randomized",
    seed: int = 0,
    model: Classifier | None = None,
    unit: Sequence[Any] | None = None,
    plan: SealedPlan | None = None,
    claimed: object = None,
) -> FeaturesResult:
    """Lower-bound epsilon from several signals per example, learning where to guess.

    A few coins are looked at. A model then learns membership from the revealed coins, bets on the
    examples it is surest of, and is fitted again as more are revealed, unless an end of the first
    column does better.

    Guarantee:
        Exceeds the epsilon of (epsilon, delta)-DP training with probability at most
        ``1 - confidence``, search and learning included, whatever the features and the model.
        Adjacency as in `audit_one_run`.

    Args:
        features: Finite signals of each example, shape (m, d) or (m,), such as losses at several
            epochs. In the first column, best the strongest, higher means member (negate a loss).
            With coins as membership a mapping from ids to rows, or a DataFrame with the column of
            ids.
        membership: 1 for a member, 0 for a non-member, decided by fair coins, shape (m,); or these
            `Coins`.
        delta, confidence, design: As for `audit_one_run`.
        seed: Seed of the first looks, of ties and of the game, 0 or more.
        model: Classifier with scikit-learn's ``fit`` and ``predict_proba``, fitted about twenty
            times; by default a smooth additive logistic regression.
        unit: Name of each row's unit, such as a user, shape (m,), whose rows are averaged and are
            one record.
        plan: What was planned for these coins: direction "higher", and as score the columns of a
            DataFrame, such as "late, early". Options that differ are refused, as are a seed and a
            model.
        claimed: A whole trade-off curve that is tested on the same guesses, as one hypothesis, as
            for `audit_scores`; the test is the result's ``claim_test``.

    Raises:
        ValueError: Features that are not finite, not one row per example, the membership or row
            numbers, counts that fair coins would not give, copies of rows, a unit on both sides, a
            value out of range.

    Source:
        This project: a predictable order in the supermartingale of `audit_one_run`.

    >>> rng = np.random.default_rng(0)
    >>> member, difficulty = rng.random(2000) < 0.5, 2 * rng.normal(size=2000)
    >>> loss = rng.normal(size=2000) + difficulty - 1.5 * member
    >>> audit_features(np.column_stack([loss, difficulty]), member).epsilon > 2
    True
    """
    delta, confidence = check_delta(delta), check_confidence(confidence)
    check_choice("design", design, Design)
    tested = tested_curve(claimed, plan)
    if tested is not None:
        check_adjacency(tested, design)
    coins = membership if isinstance(membership, Coins) else None
    if plan is not None:
        options = {"delta": delta, "confidence": confidence, "design": design}
        _check_followed(plan, coins, features, options)
        if seed or model is not None:
            raise ValueError("plan: it settles neither a seed nor a model; leave both out")
    if coins is not None:
        coins.check_alone(design, unit)
    records = _records(features, membership, unit)
    records = _game_of(records, design, seed)
    rows, members = records.rows, records.members
    rng = np.random.default_rng([seed, _LEARNING])
    learned = LearnedOrder(rows, members, AdditiveModel() if model is None else model, rng)
    ends = ends_of(rows[:, 0])
    bets = learned_bets(ends, learned, members, rng)
    path = learned_path(bets, rows[:, 0])
    best = every_count(path, Hypothesis(delta, 1 - confidence), 2)
    guesses = int(path.guesses[best.at])
    curve = best.shown()
    ceiling = best.ceiling()
    claim = lower_bound_claim(
        best.epsilon, delta, confidence, adjacency_of(design), ceiling=ceiling
    )
    example = _example(coins, unit)
    learning = (THE_PROCEDURE, *sealed_assumptions(coins, plan))
    reading = (
        *records.warnings,
        *coin_warnings(int(members.sum()), int((~members).sum()), design),
    )
    facts = record_facts(coins=coins, plan=plan, unit="" if unit is None else NAMES_GIVEN)
    claim_test = None
    if tested is not None:
        test = ClaimTest(bets.right, members.size, 1 - confidence)
        assumed = (*claimed_curves.learned_assumptions(design), *learning)
        claim_test = _claim_test(test, tested, design, assumed, reading, facts)
    return FeaturesResult(
        claim=" ".join(filter(None, [claim, example])),
        condition=CONDITIONS[design],
        assumptions=(*score_assumptions(design), words.learned_order(best.words), *learning),
        warnings=reading,
        notes=(ceiling_note(members.size, ceiling),),
        epsilon=best.epsilon,
        delta=delta,
        confidence=confidence,
        correct=int(path.correct[best.at]),
        guesses=guesses,
        learned=int((bets.bettor[:guesses] == len(ends)).sum()),
        total=members.size,
        ceiling=ceiling,
        adjacency=adjacency_of(design),
        design=design,
        direction="higher",
        **facts,
        claim_test=claim_test,
        curve_guesses=path.guesses[curve],
        curve_correct=path.correct[curve],
        curve_bound=best.bounds(curve),
    )


class _Records(NamedTuple):
    """What is audited, one row per record."""

    rows: FloatArray  #: features, shape (m, d)
    members: Flags  #: shape (m,)
    warnings: tuple[str, ...]  #: of the coins and of copies


def _claim_test(
    test: ClaimTest,
    claimed: ClaimedCurve,
    design: Design,
    assumptions: tuple[str, ...],
    warnings: tuple[str, ...],
    facts: dict[str, Any],
) -> CurveResult:
    """The result of the test of a claimed curve on guesses in a learned order; ``facts`` are its
    fields on records, coins and plan, as `record_facts` gives them.
    """
    return CurveResult(
        **outcome_of(test, claimed, design),
        condition=CONDITIONS[design],
        assumptions=assumptions,
        warnings=warnings,
        adjacency=adjacency_of(design),
        design=design,
        direction="higher",
        **facts,
    )


def _check_followed(
    plan: SealedPlan, coins: Coins | None, features: Any, options: dict[str, Any]
) -> None:
    """Refuse (ValueError) options, coins and columns of features other than planned."""
    used = {**options, "kind": "scores", "guess": "adaptive"}
    if coins is not None and hasattr(features, "columns"):
        columns = [str(column) for column in features.columns if column != coins.column]
        used["score_column"] = ", ".join(columns)
    plan.follow(coins, used)


def _records(features: Any, membership: ArrayLike | Coins, unit: Sequence[Any] | None) -> _Records:
    """The checked features and membership of each record, which is a row or, where units are
    named, the mean of a unit's rows; with warnings of coins, copies and near rows.

    Raises:
        ValueError: What `audit_features` refuses of features, membership and units.
    """
    flags: Any = membership
    reading: tuple[str, ...] = ()
    if isinstance(membership, Coins):
        features, flags = membership.values(features), membership.included
        reading = seed_warnings(membership)
    check_index("membership", features, flags)
    rows = checked_features("features", features)
    members = checked_membership(rows, flags)
    if unit is not None:
        return _Records(*_unit_rows(rows, members, unit), reading)
    if isinstance(membership, Coins) and membership.unit:
        return _Records(rows, members, reading)
    ties = tie_warnings(find_ties("features", rows[members], rows[~members]))
    near = near_rows_warnings("features", rows, members)
    return _Records(rows, members, (*reading, *ties, *near))


def near_rows_warnings(name: str, rows: FloatArray, members: Flags) -> tuple[str, ...]:
    """A warning where rows that are near to each other are on one side more often than coins
    explain whose chance changes smoothly with the features: several may share a coin.

    Args:
        name: What the warning calls the rows.
        rows: Features, finite, shape (n, d).
        members: Whether each row is a member, shape (n,).

    Returns:
        One sentence, or none.
    """
    chances = np.full(len(rows), members.mean())
    if rows.shape[1] > 1:
        # Along the principal axes: what tells members may be how two losses differ.
        model = AdditiveModel(curves=1.0)
        axes = principal_axes(rows)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*converge.*")
            model.fit(axes, members)
        chances = model.predict_proba(axes)[:, 1]
    return (near_rows(name),) if near_rows_share_coins(rows, members, chances) else ()


def _unit_rows(rows: FloatArray, members: Flags, unit: Sequence[Any]) -> tuple[FloatArray, Flags]:
    """The mean features of each of u units, shape (u, d), and its membership, shape (u,); a
    ValueError for a unit on both sides. ``unit`` names that of each row.
    """
    names = np.asarray(unit, dtype=object)
    means, _ = unit_means(np.column_stack([rows, members.astype(float)]), names.tolist())
    check_ids(names[members].tolist(), names[~members].tolist(), unit=True)
    return checked_features("features", means[:, :-1]), means[:, -1] == 1


def _game_of(records: _Records, design: Design, seed: int) -> _Records:
    """The records that the game of ``design`` shows, drawn and shuffled by the seed."""
    # Shuffled, since a model may look at neighbouring rows, and members often stand together.
    order = np.random.default_rng([seed, _ROW_ORDER]).permutation(records.members.size)
    members = records.members[order]
    # The game of audits of scores, on positions in their stead.
    positions = MembershipScores.from_labels(np.arange(members.size), members)
    played = fair_game(positions, design, seed=seed)  # positions of the records in the game
    order = order[np.sort(played.pooled()[0]).astype(np.int64)]
    return records._replace(rows=records.rows[order], members=records.members[order])


def _example(coins: Coins | None, unit: Sequence[Any] | None) -> str:
    """The sentence of a claim on what one record is; "" where it is one row."""
    if unit is not None:
        return unit_sentence(NAMES_GIVEN)
    return one_example(coins) if coins else ""


def audit_panoramia_features(
    baseline_features: ArrayLike,
    attack_features: ArrayLike,
    membership: ArrayLike,
    *,
    confidence: float = 0.95,
    gamma: float = 0.0,
    delta: float = 0.0,
    known_c: float | None = None,
    design: Design = "randomized",
    seed: int = 0,
    model: Classifier | None = None,
) -> PanoramiaResult:
    """Measure leakage with generated non-members, learning from the audit's own coins.

    Baseline and attack learn while they are judged, as in `audit_features`; one coin in ten is
    looked at.

    Guarantee:
        That of `audit_panoramia`, search and learning included, whatever the features and the
        model: only with ``known_c`` there is a lower bound on epsilon.

    Args:
        baseline_features: What anyone sees of each example, finite, shape (m, d) or (m,): its
            columns, the outputs of models that never saw the members. The first is best higher for
            real examples.
        attack_features: What the target says of each example, shape (m, k) or (m,), the first best
            higher for members (negate a loss). The attack sees the baseline's features too.
        membership: 1 for a real member, 0 for a generated example, shape (m,).
        confidence, gamma, delta, known_c, design: As for `audit_panoramia`.
        seed, model: As for `audit_features`; each test fits the model.

    Raises:
        ValueError: Features that are not finite or of other shapes, or a number out of range.

    Source:
        PANORAMIA, Propositions 1 to 4; the learned orders are this project's, as in
        `audit_features`.

    >>> rng = np.random.default_rng(0)
    >>> member, difficulty = rng.random(2000) < 0.5, 2 * rng.normal(size=2000)
    >>> loss = rng.normal(size=2000) + difficulty - 1.5 * member
    >>> result = audit_panoramia_features(difficulty, -loss, member)
    >>> result.c_lb < 0.1, result.c_plus_epsilon_lb > 1.5
    (True, True)
    """
    terms = Terms(confidence, gamma, delta, known_c, design, seed)
    for name, features in (
        ("baseline_features", baseline_features),
        ("attack_features", attack_features),
    ):
        check_index(name, features, membership)
    baseline = checked_features("baseline_features", baseline_features)
    target = checked_features("attack_features", attack_features)
    if len(target) != len(baseline):
        raise ValueError(
            f"attack_features: expected {len(baseline)} rows like baseline_features, got "
            f"{len(target)}"
        )
    members = checked_membership(np.column_stack([baseline, target]), membership)
    in_game = terms.shown(members)
    members = members[in_game]
    attack_rows = np.column_stack([target, baseline])[in_game]
    learner = AdditiveModel() if model is None else model
    gamma, with_delta = terms.relaxations
    of_baseline, of_attack = Hypothesis(gamma, terms.level), Hypothesis(with_delta, terms.level)
    tests = (
        learned_test("baseline", baseline[in_game], members, of_baseline, learner, [seed, 1]),
        learned_test("mia", attack_rows, members, of_attack, learner, [seed, 2]),
    )
    return panoramia_result(tests, members, terms, learned=True)


def learned_test(
    name: Literal["baseline", "mia"],
    rows: FloatArray,
    members: Flags,
    hypothesis: Hypothesis,
    model: Classifier,
    seed: Sequence[int],
) -> RecallTest:
    """One of the two tests: the guesses "member" in a learned order, beside the top of the first
    column.

    ``rows`` are features, shape (m, d), and ``members`` is shape (m,); the model is fitted anew as
    coins are revealed, and ``seed`` draws the order of the rows and the first looks.
    """
    # If, given the coins revealed before, each positive guess is right with probability at most e^x
    # / (1 + e^x), up to failures of mean m delta / (2 (1 + e^x)) with the hypothesis's delta, the
    # bound exceeds x with probability at most the hypothesis's error.
    rng = np.random.default_rng(seed)
    order = rng.permutation(members.size)  # a model may look at neighbouring rows
    rows, members = rows[order], members[order]
    learned = LearnedOrder(rows, members, model, rng, only_members=True)
    bets = learned_bets(ends_of(rows[:, 0])[:1], learned, members, rng, RECALL_SHARE)
    return recall_test(
        name,
        every_count(learned_path(bets, rows[:, 0]), hypothesis, 1),
        int(members.sum()),
        "anytime",
    )


def checked_features(name: str, features: ArrayLike) -> FloatArray:
    """Finite features, shape (m, d), from a row of d values or one value per example.

    Raises:
        ValueError: Another shape, values that are no finite numbers, or names of columns that are
            no features; the message begins with ``name``.
    """
    check_features(name, getattr(features, "columns", ()))
    rows = as_rows(name, features)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(
            f"{name}: expected one row per example, 1 or more columns, got shape {rows.shape}"
        )
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        raise ValueError(
            f"{name}: {bad.sum()} of {len(rows)} rows hold NaN or infinity (first at row "
            f"{bad.argmax()}); fix or drop them, whatever their membership"
        )
    return rows


def checked_membership(rows: FloatArray, membership: ArrayLike) -> Flags:
    """True for members, shape (m,), of examples with features ``rows``, shape (m, d).

    Raises:
        ValueError: Flags that are not 0 and 1, a class without examples, or, of 20 rows or more, a
            column that is the membership itself or numbers the rows.
    """
    flags = as_floats("membership", membership)
    # For its errors: other numbers than 0 and 1, another length, or one class alone.
    MembershipScores.from_labels(np.arange(len(rows)), flags)
    columns = rows.T
    is_membership = (columns == flags).all(axis=1) | (columns == 1 - flags).all(axis=1)
    numbers_rows = (np.diff(columns) == 1).all(axis=1)
    wrong = is_membership | numbers_rows
    if wrong.any() and len(rows) >= _FEWEST:
        raise ValueError(
            f"features: column {wrong.argmax()} is the membership itself, or numbers the rows; "
            "leave it out"
        )
    return flags.astype(bool)
