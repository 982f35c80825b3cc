"""``paperlib seal`` and ``verify``: the plan of an audit, fixed before training, and the receipt
after it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paperlib.cli.gate import FAILED_GATE, Wishes

if TYPE_CHECKING:
    from paperlib.audits import SealedPlan


def seal(plan: Path) -> None:
    """Seal the plan of an audit before training, after the coins are tossed.

    Writes NAME.sealed.json next to NAME.yaml and prints its hash. `paperlib audit --plan` runs as
    planned and refuses anything else. A hash published before training shows that the plan was made
    before; by itself the hash shows neither its date nor that no other plan was sealed.
    """
    from paperlib.audits import seal_plan

    sealed = seal_plan(plan)
    path = plan.with_suffix(".sealed.json")
    sealed.save(path)
    print(
        f"{path}: the plan, sealed on {sealed.sealed}\n"
        f"Hash of the plan, to be published before training: {sealed.hash}\n"
        "Publish this one alone, where others keep the date: a hash does not show when it was "
        "made, nor that no other plan was sealed\n"
        f"After training: paperlib audit {sealed.scores or 'scores.csv'} --coins FILE --plan {path}"
    )


def verify(report: Path, plan: str = "", coins: str = "") -> int:
    """Compute the audit of a receipt again, from the plan, the coins and the scores in its report.

    Exit code 2 if anything differs, each difference on a line, and 3 if the audit gives no answer
    or does not pass its planned limit. No receipt shows that the scores come from the model, or
    that training followed the coins.
    """
    from paperlib.audits import verify_receipt

    audits = verify_receipt(report, plan=plan, coins=coins)
    document = audits.document()
    limit = None if audits.plan is None else audits.plan.limit
    answer, epsilon, ceiling = document.judged(limit)
    lines: Sequence[str] = document.verdict.sentences
    if epsilon is not None:
        lines = (answer.headline, answer.claim)
    warnings = [f"Warning: {text}" for text in document.further_warnings]
    print("\n".join([*lines, *warnings]) + "\n")
    if audits.plan is not None:
        result = "as printed" if epsilon is not None else "as printed: no answer"
        print(f"Computed again from the receipt, and {result}. It follows {audits.plan.seal}:")
        print("\n".join(_plan_lines(audits.plan)))
    for name, published in (("plan", plan), ("coins", coins)):
        if not published:
            print(
                f"Warning: not compared with a published hash of the {name}; give it with --{name}"
            )
    code = Wishes(fail_above=limit).judge("", lines, epsilon=epsilon, ceiling=ceiling)
    return FAILED_GATE if epsilon is None else code


def _plan_lines(plan: "SealedPlan") -> list[str]:
    """The fields of a plan that are filled in, a line each, without its salt."""
    fields = plan.to_dict()
    return [
        f"  {name}: {value}"
        for name, value in fields.items()
        if value not in ("", None) and name != "salt"
    ]
