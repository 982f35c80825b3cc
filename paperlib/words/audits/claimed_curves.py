"""What the test of a claimed trade-off curve says, and takes for granted."""

from typing import TYPE_CHECKING

from paperlib.core.facts import Adjacency
from paperlib.core.options import Design
from paperlib.core.results import round_down, round_up
from paperlib.words.claims import NEIGHBOURS
from paperlib.words.designs import GUESSED, THE_PROCEDURE, score_assumptions
from paperlib.words.one_run import runs_assumptions as conditions_of_runs

if TYPE_CHECKING:
    from paperlib.bounds.claims.audit import CurveResult
    from paperlib.bounds.claims.detection import ClaimLimit

TITLE = "The claimed trade-off curve"
PURPOSE = (
    "Is the whole curve of an accountant refuted? One hypothesis, sharper than one epsilon of it."
)
"""Title and purpose of the audit."""


def headline(result: "CurveResult") -> str:
    """The outcome on one line, with its p-value, the bound on mu of Gaussian DP and, where there is
    one, the share of the claimed noise from which on every noise is refuted.
    """
    outcome = "refuted" if result.refuted else "not refuted"
    examples = f"{result.total} examples{_of_runs(result.runs)}"
    text = (
        f"{result.claimed}: {outcome} (p ≤ {_p_value(result.p_value)}, confidence "
        f"{result.confidence:g}; {examples}); mu ≥ {round_down(result.mu):.3f}"
    )
    if result.noise_share is not None:
        text += f"; refuted from {round_up(result.noise_share):.3f} times the noise on"
    return text


def _of_runs(runs: int) -> str:
    """How many runs the examples are of, where there are several."""
    return f" of {runs} runs" if runs > 1 else ""


def _p_value(value: float) -> str:
    """A p-value, rounded up."""
    return f"{round_up(value):.3f}" if value >= 0.001 else f"{value:.1e}"


def claim(
    name: str, p_value: float, confidence: float, adjacency: Adjacency, *, refuted: bool
) -> str:
    """The sentence that the test of a claimed curve, that of ``name``, supports; ``refuted`` is its
    outcome at this confidence.
    """
    neighbours = NEIGHBOURS[adjacency]
    if refuted:
        return (
            f"With confidence {confidence:g}, the training procedure does not have the trade-off "
            f"curve of {name} under {neighbours}, or a more private one (p at most "
            f"{_p_value(p_value)})."
        )
    return (
        f"At confidence {confidence:g} this audit does not refute the trade-off curve of {name} "
        f"under {neighbours} (p at most {_p_value(p_value)}). It does not show that training has "
        "it."
    )


def notes(mu: float, noise_share: float | None, confidence: float) -> tuple[str, ...]:
    """Sentences on further bounds, each at the confidence by itself.

    Args:
        mu: Lower bound on mu of Gaussian DP; 0 has no sentence.
        noise_share: Share of the claimed noise from which on every noise is refuted; None for none.
        confidence: In (0, 1).
    """
    sentences: list[str] = []
    if mu > 0:
        sentences.append(
            f"Training is not mu-GDP for any mu below {round_down(mu):.3f}, with confidence "
            f"{confidence:g} by itself."
        )
    if noise_share is not None:
        sentences.append(
            f"Every noise of at least {round_up(noise_share):.3f} times the claimed one is "
            f"refuted, with confidence {confidence:g} for all together."
        )
    return tuple(sentences)


def detection(limit: "ClaimLimit") -> str:
    """How much less noise than claimed an audit would have shown, and what that does not cover."""
    low, high = round_down(limit.low), round_up(limit.high)
    simulated = (
        f"({limit.shown} of {limit.simulations} simulated; 95 % interval {low:.3f} to {high:.3f})"
    )
    # Not seen at the largest factor that is simulated, 1.1 ** 24, which is 9.8 rounded down.
    if limit.factor is None:
        return (
            f"With a noise 9.8 times smaller than claimed, this audit would have refuted the claim "
            f"in less than {100 * limit.power:g} % of cases {simulated}: it says little of the "
            "claim."
        )
    return (
        f"With a noise {round_up(limit.factor, 2):g} times smaller than claimed and the strongest "
        f"attack, this audit would have refuted the claim in {100 * limit.power:g} % of cases "
        f"{simulated}. A weaker attack needs more."
    )


def assumptions(design: Design) -> tuple[str, ...]:
    """Conditions of the test of a claimed curve."""
    return (
        *score_assumptions(design),
        f"{GUESSED['adaptive']}; ties are broken at random",
        "the claim was fixed before the scores were seen",
        THE_PROCEDURE,
    )


def learned_assumptions(design: Design) -> tuple[str, ...]:
    """Conditions of the test of a claimed curve in a learned order, without the procedure."""
    return (
        *score_assumptions(design),
        "which example is guessed next, and which is only looked at, depends on nothing but the "
        "features and the coins revealed before it",
        "the claim was fixed before the features were seen",
    )


def runs_assumptions(design: Design, planned: int | None) -> tuple[str, ...]:
    """Conditions of the test of a claimed curve on several runs.

    Args:
        design: How membership was decided in each run.
        planned: Most examples of all runs, where they are audited one after the other; None where
            all are looked at together.
    """
    search = "guesses of all runs merged by their rank within each run"
    if planned is not None:
        search = "guesses of one run after the other, with one stake"
    return (
        *conditions_of_runs(design, planned, f"{search}; ties are broken at random"),
        "the claim was fixed before the scores were seen",
    )


def other_adjacency(name: str, design: str) -> str:
    """Why the curve of ``name``, of adding or removing a record, is not tested with a design that
    speaks of replacing one.
    """
    return (
        f"claimed: {name} is a curve of adding or removing one record, and design={design!r} tests "
        "replacing one; give the curve of replacing one record (read_claimed_curve or "
        "profile_of_points), or coins tossed before training"
    )
