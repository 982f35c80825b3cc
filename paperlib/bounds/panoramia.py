"""PANORAMIA: how far a membership attack beats a baseline that never saw the model.

Members are real, non-members come from a generator that is c-close to the real distribution:
it gives every point at least ``e^-c`` of its true probability. A baseline that sees only the
points lower-bounds c; an attack that also sees the model lower-bounds c + epsilon. Both tests
count positive guesses only, since closeness bounds the generator from below only.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paperlib.bounds.one_run.fair_coins import coin_warnings
from paperlib.bounds.one_run.search import RecallTest, run_recall_test
from paperlib.bounds.one_run.tails import epsilon_from_counts
from paperlib.bounds.panoramia_terms import Terms
from paperlib.core import FloatArray, MembershipScores
from paperlib.core.checks import (
    check_choice,
    check_confidence,
    check_counts,
    check_index,
    check_vector,
)
from paperlib.core.direction import reversed_direction
from paperlib.core.options import Design, RecallSearch
from paperlib.core.results import AuditResult, table
from paperlib.words import directions
from paperlib.words import panoramia as words

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, eq=False)
class PanoramiaResult(AuditResult):
    """What PANORAMIA measured, in nats; fields not listed are arguments of `audit_panoramia`.

    Attributes:
        c_lb: Lower bound on the generator's c.
        c_plus_epsilon_lb: Lower bound on c + epsilon.
        epsilon_tilde: ``max(0, c_plus_epsilon_lb - c_lb)``. Not a lower bound on epsilon.
        epsilon: Lower bound on epsilon, only where c is known; else None.
        ceiling: {c+epsilon}_lb of a perfect attack at this size and level.
        beside: What a reader must see beside the number, such as what a null target gave; empty for
            nothing.
    """

    c_lb: float
    c_plus_epsilon_lb: float
    epsilon_tilde: float
    epsilon: float | None
    known_c: float | None
    ceiling: float
    members: int
    nonmembers: int
    gamma: float
    delta: float
    confidence: float
    search: str
    beside: str = ""
    total: int
    guesses: int | None = None
    correct: int | None = None
    _tests: tuple[RecallTest, RecallTest]

    @property
    def most(self) -> float | None:
        """The largest epsilon that so many examples could have shown, nats; None without a known
        c.
        """
        return None if self.known_c is None else max(0.0, self.ceiling - self.known_c)

    @property
    def headline(self) -> str:
        return words.headline(self)

    @property
    def tests(self) -> tuple[RecallTest, RecallTest]:
        """The baseline's test and the membership attack's, in this order."""
        return self._tests

    @property
    def curve(self) -> "pd.DataFrame":
        """Both tests over thresholds: test, recall, guesses, true_positives, precision, bound.

        ``bound`` is corrected for the search: its maximum over the rows of "baseline" is ``c_lb``,
        and over those of "mia" ``c_plus_epsilon_lb``. All thresholds are shown, but of more than
        1,000 whose bounds are costly at most about 1,000, among them that of the largest bound.
        """
        # A property, as in `AuditResult`; ``_curve`` computes it when first asked for and keeps it.
        return self._curve

    @cached_property
    def _curve(self) -> "pd.DataFrame":
        """A row for each number of guesses that is shown, test after test: recall, counts,
        precision, and the bound in nats.
        """
        columns: dict[str, list[Any]] = {}
        for test in self._tests:
            positions = test.shown()
            guesses = test.best.path.guesses[positions]
            true_positives = test.best.path.correct[positions]
            rows = {
                "test": np.full(positions.size, test.name, dtype=object),
                "recall": true_positives / self.members,
                "guesses": guesses,
                "true_positives": true_positives,
                "precision": true_positives / guesses,
                "bound": test.best.bounds(positions),
            }
            for name, values in rows.items():
                columns.setdefault(name, []).append(values)
        return table({name: np.concatenate(values) for name, values in columns.items()})


def panoramia_ceiling(m: int, guesses: int, confidence: float = 0.95) -> float:
    """Bound of a test whose ``guesses`` positive guesses are all right, searching m recall levels.

    ``logit((beta / 2 / m) ** (1 / guesses))`` floored at 0, nats, beta being 1 less the confidence;
    a perfect attack guesses every member (PANORAMIA, section 4.2, with every guess right).

    Args:
        m: Examples of the audit, 1 or more.
        guesses: From 0 to m.
        confidence: Of both of PANORAMIA's bounds together, in (0, 1).

    Raises:
        ValueError: A number out of range.

    >>> round(panoramia_ceiling(10_000, 5_000), 6)
    5.958736
    """
    total = int(check_counts("m", m, minimum=1))
    count = int(check_counts("guesses", guesses))
    if count > total:
        raise ValueError(f"guesses: expected at most m = {total}, got {count}")
    return float(epsilon_from_counts(count, count, (1 - check_confidence(confidence)) / 2 / total))


def audit_panoramia(
    baseline_scores: ArrayLike,
    mia_scores: ArrayLike,
    membership: ArrayLike,
    *,
    confidence: float = 0.95,
    gamma: float = 0.0,
    delta: float = 0.0,
    known_c: float | None = None,
    search: RecallSearch | None = None,
    design: Design = "randomized",
    seed: int = 0,
) -> PanoramiaResult:
    """Measure leakage with generated non-members.

    Guarantee:
        If training is (epsilon, delta)-DP for replacing one record and the generator (c,
        gamma)-close, then c_lb <= c and c_plus_epsilon_lb <= c + epsilon together with probability
        at least ``confidence``. Their difference epsilon_tilde carries no such guarantee; with
        ``known_c`` >= c, ``epsilon`` does, and the two bounds then hold at ``confidence`` each. For
        adding or removing a record the second one bounds c + 2 epsilon, as a hidden member stands
        for each generated point.

    Args:
        baseline_scores: Score of each example from the example alone, higher means real, shape
            (m,).
        mia_scores: Score of each example from the example and the model, shape (m,).
        membership: 1 for a real member, 0 for a generated example, shape (m,).
        confidence: Confidence level of both lower bounds together, in (0, 1). With ``known_c`` the
            claim needs one test, which gets all of the error.
        gamma: Closeness may fail on a set of this probability, in [0, 1).
        delta: Delta of (epsilon, delta)-DP, in [0, 1). Above 0, "union" pays for both as the paper
            does, for guess counts fixed in advance: those of scores without ties. "anytime" holds
            for any.
        known_c: c of the generator where it is known, at least 0; 0 for a generator that draws
            from the true distribution.
        search: "union" tests m recall levels with a union bound, fixed in advance;
            "anytime" tests every guess count at once with a supermartingale. None: "anytime" with
            ``known_c``, else "union", the paper's.
        design: "randomized" or "played" if a fair coin chose member or generated point for each
            example; "game" to draw such coins here by ``seed``, one for each place of a whole game.
        seed: Of that game.

    Raises:
        ValueError: Mismatched lengths, NaN or infinite scores, one class only, counts implausible
            under fair coins, or a number out of range.

    Source:
        PANORAMIA, Propositions 1 to 4, Corollary 1, section 4.2; the baseline's failures have mean
        2 m gamma (Proposition 4 prints 2 m delta), and the game does not support the paper's
        add/remove adjacency. The anytime search and its smaller correction are this project's.

    >>> flags = [1, 0] * 50
    >>> result = audit_panoramia([0.0] * 100, flags, flags)
    >>> round(result.c_lb, 3), round(result.c_plus_epsilon_lb, 3), round(result.ceiling, 3)
    (0.0, 1.712, 1.712)
    """
    search = ("union" if known_c is None else "anytime") if search is None else search
    check_choice("search", search, RecallSearch)
    terms = Terms(confidence, gamma, delta, known_c, design, seed)
    for name, scores in (("baseline_scores", baseline_scores), ("mia_scores", mia_scores)):
        check_index(name, scores, membership)
    baseline, mia, flags = _checked(baseline_scores, mia_scores, membership)
    places = terms.shown(flags)
    flags, (gamma, with_delta) = flags[places], terms.relaxations
    tests = (
        run_recall_test("baseline", baseline[places], flags, terms.level, gamma, search),
        run_recall_test("mia", mia[places], flags, terms.level, with_delta, search),
    )
    result = panoramia_result(tests, flags, terms)
    attacked = MembershipScores.from_labels(mia[places], flags)
    return replace(result, refusals=directions.refusals(reversed_direction(attacked)))


def panoramia_result(
    tests: tuple[RecallTest, RecallTest],
    flags: NDArray[np.bool_],
    terms: Terms,
    *,
    learned: bool = False,
) -> PanoramiaResult:
    """The result of the baseline's and the attack's test.

    Args:
        tests: Of the baseline, and of the attack.
        flags: True for a member, shape (m,).
        terms: What both tests take for granted.
        learned: Whether the orders of the guesses were learned from the coins; the assumptions
            then say so.
    """
    members, known_c = int(flags.sum()), terms.known_c
    nonmembers = flags.size - members
    c_lb, both_lb = tests[0].bound, tests[1].bound
    result = PanoramiaResult(
        claim="",
        condition=words.condition(known_c),
        assumptions=words.assumptions("learned" if learned else tests[1].search, flags.size, terms),
        warnings=(
            *coin_warnings(members, nonmembers, "game" if terms.design == "game" else "played"),
            *words.warnings(tests, known_c),
        ),
        c_lb=c_lb,
        c_plus_epsilon_lb=both_lb,
        epsilon_tilde=max(0.0, both_lb - c_lb),
        epsilon=None if known_c is None or c_lb > known_c else max(0.0, both_lb - known_c),
        known_c=known_c,
        ceiling=tests[1].ceiling,
        members=members,
        nonmembers=nonmembers,
        gamma=terms.gamma,
        delta=terms.delta,
        confidence=terms.confidence,
        search=tests[1].search,
        adjacency="replace",
        design=terms.design,
        direction="higher",
        total=flags.size,
        _tests=tests,
    )
    return replace(result, claim=words.claim(result))


def _checked(
    baseline_scores: ArrayLike, mia_scores: ArrayLike, membership: ArrayLike
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Scores of baseline and attack, and who is a member, as vectors of one length, shape (m,).

    Raises:
        ValueError: Vectors of other lengths, NaN, memberships that are not 0 or 1, or one class
            only.
    """
    baseline, mia = (
        check_vector("baseline_scores", baseline_scores),
        check_vector("mia_scores", mia_scores),
    )
    flags = check_vector("membership", membership)
    for name, values in (("mia_scores", mia), ("membership", flags)):
        if values.size != baseline.size:
            raise ValueError(
                f"{name}: expected {baseline.size} values like baseline_scores, got {values.size}"
            )
    if not np.isin(flags, [0, 1]).all():
        raise ValueError("membership: expected only 0 and 1 (or False and True)")
    if flags.all() or not flags.any():
        present = "members" if flags.all() else "generated examples"
        raise ValueError(f"membership: both classes are needed, got {flags.size} {present} only")
    return baseline, mia, flags.astype(bool)
