"""One-run audit of a family of trade-off curves (f-DP), stronger than (epsilon, delta) where
training has such a curve.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from paperlib.bounds.claims.audit import MU_GRID, right_guesses
from paperlib.bounds.claims.curves import Profile, gaussian_profile, profile_of_points
from paperlib.bounds.claims.ordered_claims import ClaimTest
from paperlib.bounds.many_runs.gaussian_dp import gaussian_dp_epsilon
from paperlib.bounds.one_run.f_dp import Family, f_dp_parameter
from paperlib.bounds.one_run.fair_coins import (
    adjacency_of,
    fair_game,
    score_facts,
    score_warnings,
)
from paperlib.bounds.one_run.guesses import dyadic_path, guess_path
from paperlib.core.checks import check_choice, check_confidence, check_delta
from paperlib.core.direction import check_scores, reversed_direction
from paperlib.core.options import Design, Sides
from paperlib.core.results import AuditResult
from paperlib.core.scores import MembershipScores
from paperlib.words import directions
from paperlib.words.designs import CONDITIONS
from paperlib.words.one_run import f_dp_assumptions, f_dp_claim, f_dp_headline

FdpGuess = Literal["adaptive", Sides]
# Epsilons of the cells (`ordered_claims`), nats; no audit of fewer than e^28 guesses shows more.
_EPSILON_GRID = 0.02 * 1.1 ** np.arange(77.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class FdpResult(AuditResult):
    """Lower bound on the parameter of a family of trade-off curves; fields not listed as in
    `OneRunResult`.

    Attributes:
        epsilon: The bound as epsilon at ``delta``, nats.
        parameter: The bound on the family's own parameter (mu for "gaussian", else epsilon).
        tests: Numbers of guesses that share the error; 1 for "adaptive".
    """

    epsilon: float
    parameter: float
    family: str
    delta: float
    confidence: float
    correct: int
    guesses: int
    total: int
    tests: int
    ceiling: float

    @property
    def headline(self) -> str:
        return f_dp_headline(self)


def family_profile(family: Family, parameter: float, delta: float = 0.0) -> Profile:
    """The privacy profile of a family's curve: delta at each epsilon of 0 or more.

    Args:
        family: "gaussian" (``parameter`` is mu), "laplace" or "approximate" (epsilon, nats).
        parameter: Above 0.
        delta: Delta of "approximate", in [0, 1).
    """
    if family == "gaussian":
        return gaussian_profile(parameter)
    if family == "laplace":
        return lambda epsilon: np.maximum(0.0, -np.expm1((epsilon - parameter) / 2))
    return profile_of_points([parameter], [delta])


class _ParameterBound(NamedTuple):
    """What the guesses of an audit show of a family's parameter."""

    parameter: float  # lower bound, 0 or more
    ceiling: float  # that of a perfect attack
    correct: int  # right guesses
    guesses: int
    tests: int  # numbers of guesses that share the error


def audit_f_dp(
    scores: MembershipScores,
    *,
    delta: float = 1e-5,
    confidence: float = 0.95,
    family: Family = "gaussian",
    guess: FdpGuess = "adaptive",
    design: Design = "randomized",
    seed: int = 0,
) -> FdpResult:
    """Lower-bound the parameter of a trade-off curve from one training run.

    Other arguments and errors are those of `audit_one_run`.

    Guarantee:
        If training satisfies f-DP for a curve of this family, the bound exceeds its parameter with
        probability at most ``1 - confidence``. The epsilon read off a Gaussian or Laplace curve
        says nothing outside the family. Ties are broken at random.

    Args:
        delta: Delta at which epsilon is read off a Gaussian curve, in (0, 1); delta of
            "approximate".
        family: "gaussian" (mu), "laplace" (epsilon) or "approximate" (epsilon at ``delta``).
        guess: "adaptive": the order of `audit_one_run`, with bets on every guess (`audit_curve`).
            "both" or "members": numbers of guesses fixed in advance, with an error for each, as
            published (`f_dp_parameter`): weaker where few records leak much, stronger where all
            leak a little.

    Source:
        Ours (book, the claim of an accountant); Mahloujifar, Melis and Chaudhuri (2024),
        arXiv:2410.22235, for counts fixed in advance.

    >>> rng = np.random.default_rng(0)
    >>> scores = MembershipScores(rng.normal(1, 1, 500), rng.normal(0, 1, 500))
    >>> audit_f_dp(scores).parameter > 0.4
    True
    """
    delta, confidence = check_delta(delta), check_confidence(confidence)
    check_choice("guess", guess, FdpGuess)
    check_choice("family", family, Family)
    if family == "gaussian" and delta == 0:
        raise ValueError(
            "delta: a Gaussian trade-off curve has no finite epsilon at delta = 0; give delta > 0"
        )
    refusals = directions.refusals(reversed_direction(check_scores("scores", scores)))
    scores = fair_game(scores, design, seed=seed)
    bound_of = _adaptive_bound if guess == "adaptive" else partial(_bound_of_counts, sides=guess)
    bound = bound_of(scores, family=family, delta=delta, confidence=confidence, seed=seed)
    epsilon, ceiling = bound.parameter, bound.ceiling
    if family == "gaussian":
        epsilon, ceiling = gaussian_dp_epsilon(np.array([epsilon, ceiling]), delta).tolist()
    shown_delta = 0.0 if family == "laplace" else delta
    claim = f_dp_claim(
        family,
        bound.parameter,
        epsilon,
        shown_delta,
        confidence,
        adjacency_of(design),
        ceiling=ceiling,
    )
    return FdpResult(
        claim=claim,
        condition=CONDITIONS[design],
        assumptions=f_dp_assumptions(design, family, delta, guess, bound.tests),
        refusals=refusals,
        warnings=score_warnings(scores, design),
        **score_facts(scores, design),
        epsilon=epsilon,
        parameter=bound.parameter,
        family=family,
        delta=shown_delta,
        confidence=confidence,
        correct=bound.correct,
        guesses=bound.guesses,
        total=len(scores),
        tests=bound.tests,
        ceiling=ceiling,
    )


def _adaptive_bound(
    scores: MembershipScores, *, family: Family, delta: float, confidence: float, seed: int
) -> _ParameterBound:
    """The bound of bets on the guesses in the order of the adaptive search; arguments as for
    `audit_f_dp`.
    """
    right = right_guesses(scores, seed)
    grid = MU_GRID if family == "gaussian" else _EPSILON_GRID
    profile_at: Callable[[float], Profile] = partial(family_profile, family, delta=delta)
    total, error = len(scores), 1 - confidence

    def last_refuted(guesses: np.ndarray) -> float:
        """The largest parameter refuted by guesses that are right where this says so."""
        return ClaimTest(guesses, total, error).last_refuted(grid, profile_at) or 0.0

    ceiling = last_refuted(np.ones(total, dtype=bool))
    return _ParameterBound(
        parameter=last_refuted(right),
        ceiling=ceiling,
        correct=int(right.sum()),
        guesses=right.size,
        tests=1,
    )


def _bound_of_counts(
    scores: MembershipScores,
    *,
    sides: Sides,
    family: Family,
    delta: float,
    confidence: float,
    seed: int,
) -> _ParameterBound:
    """The largest bound over numbers of guesses fixed in advance; arguments as for `audit_f_dp`."""
    values, labels = scores.oriented().pooled()
    # Coins for ties, from another stream of the seed than a game.
    coins = np.random.default_rng([seed, 1]).random(values.size)
    # Ranks, those of tied scores in random order: the test holds for counts fixed in advance alone.
    untied = np.argsort(np.lexsort((coins, values)))
    path, tests = dyadic_path(guess_path(MembershipScores.from_labels(untied, labels), sides))
    most = np.array([scores.member.size if sides == "members" else path.total])
    bounds = f_dp_parameter(
        np.append(path.correct, most),  # the last one is that of a perfect attack
        np.append(path.guesses, most),
        total=path.total,
        confidence=1 - (1 - confidence) / tests,
        family=family,
        delta=delta,
    )
    strongest = int(np.argmax(bounds[:-1]))
    return _ParameterBound(
        parameter=float(bounds[strongest]),
        ceiling=float(bounds[-1]),
        correct=int(path.correct[strongest]),
        guesses=int(path.guesses[strongest]),
        tests=tests,
    )
