"""What one record of an audit is, as facts of its result: what coins, plan and unit say of it."""

from typing import Any

from paperlib.audits.sealed_plan import SealedPlan
from paperlib.core import Coins


def record_facts(
    *, coins: Coins | None = None, plan: SealedPlan | None = None, unit: str = ""
) -> dict[str, Any]:
    """Fields of an `AuditResult`: unit, copies, and the published hashes of coins and plan.

    Args:
        coins: What told membership; they say what a unit is, and how often a canary was inserted.
        plan: What was followed.
        unit: What the rows of a record share, where no coins say it; "" for one row.
    """
    copies = 1
    if coins is not None:
        unit = coins.unit or ("canary" if coins.copies else "")
        copies = max(1, coins.copies)
    return {
        "unit": unit,
        "copies": copies,
        "coins": "" if coins is None else coins.commitment,
        "plan": "" if plan is None else plan.hash,
    }
