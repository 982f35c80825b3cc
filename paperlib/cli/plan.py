"""``paperlib plan``: what an audit could show, or how many examples it needs, before anyone trains."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paperlib.bounds import plan_audit
from paperlib.core import MembershipScores, check_in, json_ready
from paperlib.io import read_scores


def print_plan(
    auc: float | None,
    pilot: Path | None,
    nonmembers: Path | None,
    columns: Mapping[str, str | None],
    options: Mapping[str, Any],
    *,
    as_json: bool,
) -> None:
    """Print the plan of an audit for a perfect attack, one of a given AUC, or one like a pilot.

    The columns are those of `read_scores`, the options those of `plan_audit`.

    Raises:
        ValueError: Options that contradict each other, a file that cannot be read as scores, or a plan
            that `plan_audit` refuses.
    """
    if options["m"] is None and options["epsilon"] is None:
        raise ValueError("give --m, the examples at hand, or --epsilon, the bound to be shown")
    if options["m"] is not None and options["epsilon"] is not None:
        raise ValueError("--epsilon: contradicts --m; give one of the two")
    plan = plan_audit(**options, attack=_attack(auc, pilot, nonmembers, columns))
    if as_json:
        content = {"headline": plan.headline, **plan.to_dict()}
        print(json.dumps(json_ready(content), indent=1, sort_keys=True, ensure_ascii=False))
    else:
        print(plan)


def _attack(
    auc: float | None, pilot: Path | None, nonmembers: Path | None, columns: Mapping[str, str | None]
) -> float | MembershipScores | None:
    if auc is not None and pilot is not None:
        raise ValueError("--auc: contradicts --pilot; give one of the two")
    if pilot is None:
        if nonmembers is not None or any(value is not None for value in columns.values()):
            raise ValueError("--pilot: is missing; the other options about a file of scores describe it")
        return None if auc is None else check_in("[0.5, 1)", "--auc", auc)
    return read_scores(pilot, nonmembers, **columns).scores
