"""What a bound from one training run, or from several, supports and takes for granted."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paperlib.core.facts import Adjacency
from paperlib.core.options import Design, Guess
from paperlib.core.results import round_down
from paperlib.words.claims import NEIGHBOURS, lower_bound_claim
from paperlib.words.designs import (
    CONDITIONS,
    GUESSED,
    SCORE_DEPENDS,
    THE_PROCEDURE,
    score_assumptions,
    threshold_search,
)

if TYPE_CHECKING:
    from paperlib.bounds.claims.f_dp import FdpResult
    from paperlib.bounds.one_run.audit import OneRunResult
    from paperlib.bounds.output_sets.audit import OutputSetResult


def one_run_headline(result: "OneRunResult") -> str:
    """The bound on one line, with the guesses behind it."""
    records = "pairs" if result.design == "forget" else "examples"
    return f"{_numbers(result)} {records})"


def runs_headline(result: "OneRunResult", runs: int) -> str:
    """The bound from so many runs on one line."""
    return f"{_numbers(result)} examples of {runs} runs)"


def _numbers(result: "OneRunResult") -> str:
    """The bound and its guesses, up to the number of examples; a bracket stays open."""
    return (
        f"ε ≥ {round_down(result.epsilon):.3f} (δ = {result.delta:g}, confidence "
        f"{result.confidence:g}; {result.correct} of {result.guesses} guesses right, "
        f"{result.total}"
    )


def f_dp_headline(result: "FdpResult") -> str:
    """A bound on a family of trade-off curves on one line, as an epsilon and, of Gaussian curves,
    as mu.
    """
    mu = f", mu ≥ {round_down(result.parameter):.3f}" if result.family == "gaussian" else ""
    return (
        f"ε ≥ {round_down(result.epsilon):.3f} (δ = {result.delta:g}, {result.family} f-DP{mu}, "
        f"confidence {result.confidence:g}; {result.correct} of {result.guesses} guesses right, "
        f"{result.total} examples)"
    )


OUTPUT_SET_AUDIT = "an output-set audit"
"""What errors call it."""

EVALUATION_EXAMPLES = "evaluation examples"
"""What its examples are called beside what they can show."""


def output_set_headline(result: "OutputSetResult") -> str:
    """A bound from an output set on one line, with how the set was chosen and its guesses."""
    return (
        f"ε ≥ {round_down(result.epsilon):.3f} (δ = {result.delta:g}, "
        f"confidence {result.confidence:g}, {result.method} output set, "
        f"{result.correct} of {result.guesses} guesses right, {result.total} examples)"
    )


def curve_assumption(family: str, delta: float) -> str:
    """That the trade-off curve of training is one of a family, as the end of a sentence."""
    return {
        "gaussian": "the trade-off curve of training is that of a Gaussian mechanism (mu-GDP)",
        "laplace": "the trade-off curve of training is that of a Laplace mechanism",
        "approximate": f"training is (epsilon, {delta:g})-DP for some epsilon",
    }[family]


def f_dp_claim(
    family: str,
    parameter: float,
    epsilon: float,
    delta: float,
    confidence: float,
    adjacency: Adjacency,
    *,
    ceiling: float,
) -> str:
    """The sentence on a bound on the parameter of a family of trade-off curves.

    Args:
        family: "gaussian", "laplace" or "approximate".
        parameter: The bound on the family's parameter: mu, or epsilon.
        epsilon, delta, confidence, adjacency, ceiling: As in `lower_bound_claim`.
    """
    claim = lower_bound_claim(epsilon, delta, confidence, adjacency, ceiling=ceiling)
    if family == "approximate":
        return claim
    claim += f" This assumes that {curve_assumption(family, delta)} for some parameter."
    # The test is one of mu-GDP itself, whatever the curve of training is: only the epsilon that is
    # read off the curve needs the assumption.
    if family == "gaussian" and parameter > 0:
        claim += (
            f" Without that assumption, training is not mu-GDP under {NEIGHBOURS[adjacency]} for "
            f"any mu below {round_down(parameter):.3f}, with the same confidence."
        )
    return claim


def f_dp_assumptions(
    design: Design, family: str, delta: float, guess: Guess, tests: int
) -> tuple[str, ...]:
    """Conditions of a bound on a trade-off curve, from bets on every guess ("adaptive") or from
    ``tests`` numbers of guesses.
    """
    search = f"error divided by {tests} guess counts fixed in advance"
    if guess == "adaptive":
        search = f"{GUESSED[guess]}; ties are broken at random"
    return (*score_assumptions(design), curve_assumption(family, delta), search)


def one_run_assumptions(coins: str, guess: Guess, search: str) -> tuple[str, ...]:
    """Conditions of a bound from one run.

    Args:
        coins: What is taken for granted of the coins, such as `designs.coin_assumption`.
        guess: The guesses that were made.
        search: How their number was searched, in words.
    """
    return (coins, SCORE_DEPENDS, threshold_search(guess, search), THE_PROCEDURE)


def output_set_assumptions(coins: str, delta: float, guess: str) -> tuple[str, ...]:
    """Conditions of a bound from a set of scores that was chosen on other scores; ``coins`` is what
    is taken for granted of the coins of the evaluation examples.
    """
    conditions = [
        coins,
        SCORE_DEPENDS,
        (
            "the output set was chosen on the selection scores alone; no evaluation example is "
            "among them"
        ),
        THE_PROCEDURE,
    ]
    if guess == "members":
        conditions.append('only "member" is guessed, and abstained elsewhere')
    if delta > 0:
        conditions.append(
            f"delta = {delta:g} counts for every evaluation example, abstentions included"
        )
    return tuple(conditions)


MAYBE_ONE_SPLIT = (
    "all runs have as many members and as many non-members: if that is one split, its "
    "coins count once and the bound does not hold; to check, give a record one name in all "
    "runs (--id-column, in Python ids)"
)
"""The warning about runs of equal sizes."""


def near_counts(counts: list[int], chance: float) -> str:
    """The warning about runs whose numbers of members lie closer together than fair coins make
    them.

    Args:
        counts: Members of each run.
        chance: Bound on the probability of counts at least this close.
    """
    listed = ", ".join(f"{count:,}" for count in counts[:8])
    if len(counts) > 8:
        listed = f"{listed}, ..."
    return (
        f"the runs have {listed} members, closer together than coins of their own make them "
        f"(p = {chance:.2g}): if that is one split, from which rows were lost, or one run under "
        "two names, its coins count once and the bound does not hold; to check, give a record one "
        "name in all runs (--id-column, in Python ids)"
    )


RUNS_TITLE = "Several training runs, every threshold"
RUNS_PURPOSE = (
    "The main number: a lower bound on epsilon of the training procedure, from all of its runs."
)
"""Title and purpose of an audit of several runs."""


def of_run(number: int, text: str) -> str:
    """What is said of one of several runs, with its number, counted from 1, before it."""
    return f"run {number}: {text}"


def warnings_of_run(number: int, warnings: Sequence[str]) -> tuple[str, ...]:
    """The warnings of one of several runs, counted from 1."""
    return tuple(of_run(number, text) for text in warnings)


OF_ALL_RUNS = "It speaks of one training by the procedure that all runs followed."


def runs_condition(design: Design) -> str:
    """What must stand beside a number from several runs."""
    return f"{CONDITIONS[design]}, anew in each run; no run was left out"


def runs_assumptions(design: Design, planned: int | None, search: str) -> tuple[str, ...]:
    """Conditions of a bound from several runs.

    Args:
        design: How membership was decided in each run.
        planned: Most examples of all runs, fixed before the first; None where the runs are looked
            at once.
        search: How the number of guesses was searched, in words.
    """
    own_coins = "no record is given in two runs, since its membership would be the same"
    if design == "randomized":
        own_coins = "no record keeps its coin from one run to another"
    order = [
        "no training depended on the coins of another run",
        "all runs that were made are given, and how many were made did not depend on what they "
        "showed",
    ]
    if planned is not None:
        order = [
            f"all runs so far are given in the order they were made, and {planned:,} examples at "
            "most were planned before the first"
        ]
    return (
        *score_assumptions(design),
        f"the coins of each run are its own: {own_coins}",
        *order,
        f"threshold search: {search}",
        "the bound speaks of the training procedure with its randomness, not of these models; "
        "if the runs followed several procedures, it speaks of the one that leaks most",
    )
