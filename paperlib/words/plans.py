"""What the plan of an audit says: its claim, its assumptions and its warnings."""

import math
from typing import TYPE_CHECKING

from paperlib.core.options import Guess
from paperlib.core.results import round_down, round_up

if TYPE_CHECKING:
    from paperlib.bounds.one_run.planning import AuditPlan

PERFECT = "the attack scores every member above every non-member"
"""What a plan without an attack assumes of it."""


def attack_name(*, is_perfect: bool) -> str:
    """What the attack planned is called: one that makes no wrong guess, or the one at hand."""
    return "a perfect attack" if is_perfect else "this attack"


def headline(plan: "AuditPlan") -> str:
    """What the audit could show, nats, on one line; where an epsilon was aimed at, and
    ``plan.target`` is no NaN, also how many examples it needs.
    """
    share = f"{100 * plan.power:g} % of audits"
    needed = f"ε = {plan.target:g} needs about {plan.total} examples (reached in {share}): "
    least = ""
    if math.isnan(plan.target):
        needed = ""
        least = f"at least {round_down(plan.reached):.3f} in {share}, "
    return (
        f"{needed}{plan.total} examples can show ε up to {round_down(plan.perfect):.3f} "
        f"(δ = {plan.delta:g}, confidence {plan.confidence:g}); {plan.attack} would show "
        f"{least}{plan.expected:.3f} on average (middle 80 %: {plan.low:.3f} to "
        f"{plan.high:.3f})"
    )


def claim(total: int, perfect: float, delta: float, confidence: float, guess: Guess) -> str:
    """The sentence on the most that an audit of ``total`` examples can show: ``perfect``, in
    nats.
    """
    return (
        f"An audit of {total} examples at delta = {delta:g} cannot show more than "
        f"epsilon = {round_up(perfect):.3f} at confidence {confidence:g}, however good the attack "
        f'(add/remove adjacency, guess="{guess}"). A plan, not a measurement.'
    )


def of_auc(auc: float) -> str:
    """What a plan assumes of an attack of which the AUC is known."""
    return f"the planned attack has AUC {auc:g}, with normal scores of equal variance"


def lent_scores(pilot: int) -> str:
    """What a plan assumes of an attack that a large pilot, of so many scores, speaks for."""
    return (
        f"the planned attack scores like the pilot, whose {pilot} scores are drawn without repeats"
    )


def ranks_like_pilot(pilot: int) -> str:
    """What a plan assumes of an attack that a small pilot, of so many scores, speaks for: the laws
    of scores that `paperlib.bounds.one_run.pilot` draws for its simulated audits.
    """
    return (
        f"the planned attack ranks like the pilot of {pilot}: beside normal scores of "
        "any shift and spread, a share of members may stand apart at the top, and of "
        "non-members at the bottom; every simulated audit has its own law of those that the "
        "pilot leaves open"
    )


def assumptions(attack: str, guess: Guess, largest_simulated: int | None) -> tuple[str, ...]:
    """What a plan takes for granted.

    Args:
        attack: What it assumes of the attack, in words.
        guess: As in `audit_one_run`.
        largest_simulated: Examples of the simulated audits, where the planned one has more; else
            None.
    """
    conditions = [
        "each example will be included by its own fair coin before training",
        f'the bound will be computed by audit_one_run with guess="{guess}"',
        attack,
    ]
    if largest_simulated is not None:
        conditions.append(
            f"audits of {largest_simulated} examples are simulated; a larger one shows more by "
            "what the expected numbers of right guesses make of the difference in size"
        )
    return tuple(conditions)


def thin_pilot(guessed: float, wrong: float, pilot: int, enough: float | None) -> str:
    """The warning about a pilot that saw too little of the guesses behind a plan.

    Args:
        guessed: Share of the examples that are guessed in the median simulated audit.
        wrong: Share of the examples that are guessed wrongly in it.
        pilot: Number of scores of the pilot.
        enough: Scores of a pilot that would see enough; None if no size would.
    """
    advice = ""
    if enough is not None:
        advice = f", and a pilot of {math.ceil(enough)} would see it"
    return (
        f"half of the simulated bounds are reached on at most {100 * guessed:.2g} % of the "
        f"examples; there the pilot has about {guessed * pilot:.0f}, with {wrong * pilot:.1f} "
        f"wrong guesses: the fitted tail carries this number{advice}"
    )
