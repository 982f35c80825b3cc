"""The time that a run may take: stages and trainings end before it is over, and what is done is
kept.
"""

import os
import time

UNTIL_VARIABLE = "PAPERLIB_UNTIL"
"""When the budget of this process and its children is over, seconds since 1970; unset: never."""


class BudgetSpent(RuntimeError):
    """The time is over; finished stages and the state of the training are on disk."""


def has_budget() -> bool:
    """Whether this process has to end at a certain time."""
    return UNTIL_VARIABLE in os.environ


def is_spent() -> bool:
    """Whether the time is over; never without a budget."""
    return has_budget() and time.time() >= float(os.environ[UNTIL_VARIABLE])


def stop_if_spent() -> None:
    """Go on if there is time; called where all that was done is on disk.

    Raises:
        BudgetSpent: There is none left.
    """
    if is_spent():
        raise BudgetSpent(
            "the time is over; finished stages and the training under way are kept, and the same "
            "command goes on from there"
        )
