"""What is said of the coins that decided membership, and of a sealed plan."""

from typing import Protocol

from paperlib.core.coins import Coins
from paperlib.words.claims import unit_sentence


class Sealed(Protocol):
    """What is sealed: coins, or a plan."""

    @property
    def seal(self) -> str:
        """What it is, when it was sealed, and its hash."""
        ...


def one_example(coins: Coins) -> str:
    """The sentence of a claim on what one example is, a unit or a canary with its copies; "" where
    it is a record of the data.
    """
    if not coins.copies:
        return unit_sentence(coins.unit) if coins.unit else ""
    canary = "One example is one canary, a record that was made for the audit"
    if coins.copies == 1:
        return f"{canary}."
    return (
        f"{canary}, with all its {coins.copies} copies: {coins.copies} records that come and go "
        "together."
    )


def membership_assumption(coins: Coins) -> str:
    """What a result takes for granted of the coins."""
    return (
        f"membership is that of {coins.seal}; a hash published before training shows that none "
        "moved"
    )


def seed_warnings(coins: Coins) -> tuple[str, ...]:
    """That the coins are of a seed, if they are."""
    if coins.seed is None:
        return ()
    return (
        f"the coins were tossed with the seed {coins.seed}: whoever knows the seed knows the coins",
    )


def sealed_assumptions(coins: Coins | None, plan: Sealed | None) -> tuple[str, ...]:
    """What a result takes for granted of the coins and of the sealed plan, a sentence for each that
    there is; None is none.
    """
    conditions: list[str] = []
    if coins is not None:
        conditions.append(membership_assumption(coins))
    if plan is not None:
        conditions.append(plan_assumption(plan))
    return tuple(conditions)


def plan_assumption(plan: Sealed) -> str:
    """What a result takes for granted of a sealed plan."""
    return (
        f"the audit followed {plan.seal}; only a hash published before training shows that it was "
        "not chosen among several plans"
    )
