"""``paperlib seal`` and ``verify``: the plan of an audit, fixed before training, and the receipt
after it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paperlib.cli import options
from paperlib.cli.gate import FAILED_GATE, Wishes
from paperlib.core.visible import visible_text

if TYPE_CHECKING:
    from paperlib.audits.planned.receipt import CheckedReceipt
    from paperlib.audits.planned.sealed_plan import SealedPlan
    from paperlib.audits.score_results import Audits

EXAMPLES = {
    "seal": """
paperlib seal plan.yaml
# after training:
paperlib audit scores.csv --coins train.coins.json --plan plan.sealed.json
""",
    "verify": """
paperlib verify scores-audit.html
paperlib verify scores-audit.html --plan HASH --coins HASH
# a signature, by a key that you trust:
paperlib verify scores-audit.html --signature scores-audit.html.sig --signers signers
""",
}
"""What help shows below each command, one call a line."""


OTHER_VERSION = 4
"""Exit code where another version of this package wrote the page."""


def seal(
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN",
            help=(
                "YAML with coins, score and direction; optionally delta, confidence, guess, unit,"
                " claimed (a mechanism) or claimed_curve (a table of epsilon and delta), "
                "claimed_epsilon, limit and scores (the file to be audited); and in your own "
                "words model, attack, mechanism, accountant, sampling and notes."
            ),
        ),
    ],
) -> None:
    """Seal the plan of an audit, before training.

    The coins are tossed before. Writes NAME.sealed.json next to NAME.yaml and prints its hash.
    `paperlib audit --plan` runs as planned and refuses anything else. A hash published before
    training shows that the plan was made before; by itself the hash shows neither its date nor that
    no other plan was sealed.
    """
    from paperlib.audits import seal_plan

    sealed = seal_plan(plan)
    path = plan.with_suffix(".sealed.json")
    sealed.save(path)
    file, scores = visible_text(path), visible_text(sealed.scores or "scores.csv")
    print(
        f"{file}: the plan, sealed on {sealed.sealed}\n"
        f"Hash of the plan, to be published before training: {sealed.hash}\n"
        "Publish this one alone, where others keep the date: a hash does not show when it was "
        "made, nor that no other plan was sealed\n"
        f"After training: paperlib audit {scores} --coins FILE --plan {file}"
    )


def verify(
    report: Annotated[
        Path, typer.Argument(metavar="REPORT", help="HTML report of an audit with --plan.")
    ],
    *,
    plan: Annotated[
        str, typer.Option(metavar="HASH", help="Hash of the plan, as published before training.")
    ] = "",
    coins: Annotated[
        str, typer.Option(metavar="HASH", help="Hash of the coins, as published before training.")
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=options.in_a_folder,
            help=(
                "Write the report that is computed here, without a word of that page, to this file."
            ),
        ),
    ] = None,
    signature: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Signature of the report by `ssh-keygen -Y sign`; with --signers."
        ),
    ] = None,
    signers: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keys that you trust, a line each: NAME and PUBLIC KEY."),
    ] = None,
    time_stamp: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Time stamp of the report (RFC 3161, .tsr); with --authority."
        ),
    ] = None,
    authority: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Certificates (PEM) of the time stamp's authority."),
    ] = None,
    read_limit: options.ReadLimit = None,
) -> int:
    """Compute the audit of a receipt again, and compare.

    Its report is written anew, and the whole page compared. Exit code 2 if anything differs, the
    first places on a line each; 3 if the audit gives no answer or does not pass its planned limit;
    4 if another version wrote the page, of which then only the numbers were compared. No receipt
    shows that the scores come from the model, or that training followed the coins.
    """
    from paperlib.audits.planned.receipt import check_receipt

    vouchers = [
        *_signed(report, signature, signers),
        *_stamped(report, time_stamp, authority),
    ]
    checked = check_receipt(report, plan=plan, coins=coins)
    document = checked.audits.document()
    limit = None if checked.audits.plan is None else checked.audits.plan.limit
    answer, epsilon, ceiling = document.judged(limit)
    lines: Sequence[str] = document.verdict.sentences
    if epsilon is not None:
        lines = (answer.headline, answer.claim, *_claimed_lines(checked.audits))
    warnings = [f"Warning: {text}" for text in document.further_warnings]
    print("\n".join([visible_text(line) for line in (*lines, *warnings)]) + "\n")
    print("\n".join([*vouchers, *_compared(checked, has_answer=epsilon is not None)]))
    for name, published in (("plan", plan), ("coins", coins)):
        if not published:
            print(
                f"Warning: not compared with a published hash of the {name}; give it with --{name}"
            )
    if output is not None:
        _write_anew(checked.audits, report, output)
    code = Wishes(fail_above=limit).judge("", lines, epsilon=epsilon, ceiling=ceiling)
    if epsilon is None:
        return FAILED_GATE
    return OTHER_VERSION if checked.other_version and not code else code


def _signed(report: Path, signature: Path | None, signers: Path | None) -> list[str]:
    """One line that says who signed the report, none where neither option is given; a ValueError
    where one of them is missing, or the signature does not fit.
    """
    from paperlib.audits.planned.signatures import signed_by

    if signature is None and signers is None:
        return []
    if signature is None:
        raise ValueError("--signers: give the signature of the report with --signature")
    if signers is None:
        raise ValueError(
            "--signature: give the keys that you trust with --signers, a file of lines NAME KEY; a "
            "signature by any key shows nothing"
        )
    name = signed_by(report, signature=signature, signers=signers)
    return [f"Signed by {name}: the page as it is, which does not make its numbers right."]


def _stamped(report: Path, time_stamp: Path | None, authority: Path | None) -> list[str]:
    """One line that says since when the report is there, none where neither option is given; a
    ValueError where one of them is missing, or the stamp does not fit.
    """
    from paperlib.audits.planned.signatures import stamped_at

    if time_stamp is None and authority is None:
        return []
    if time_stamp is None:
        raise ValueError("--authority: give the time stamp of the report with --time-stamp")
    if authority is None:
        raise ValueError("--time-stamp: give the authority's certificates with --authority")
    time = stamped_at(report, time_stamp=time_stamp, authority=authority)
    return [f"Time stamp: the page as it is was there on {time}, by the authority's clock."]


def _claimed_lines(audits: "Audits") -> list[str]:
    """The outcome of the test of a planned curve, where there is one."""
    return [audit.result.headline for audit in audits if audit.kind == "test" and audit.result]


def _compared(checked: "CheckedReceipt", *, has_answer: bool) -> list[str]:
    """Lines of text: what was computed and compared, the plan, and the words of the page that
    nothing computes. ``has_answer`` says whether the audit gives a number.
    """
    plan = checked.audits.plan
    if checked.other_version:
        first = f"Not compared: the page was {checked.other_version}. "
    else:
        result = "as printed" if has_answer else "as printed: no answer"
        first = (
            "Computed again from plan, coins and scores, and the whole page compared with the "
            f"report written anew from them: it is {result}. "
        )
    lines = [first.rstrip()]
    if plan is not None:
        lines = [f"{first}It follows {visible_text(plan.seal)}:", *_plan_lines(plan)]
    uncomputed = checked.uncomputed()
    if uncomputed:
        lines.append("Words of whoever wrote the page, which nothing computes:")
        lines += [f"  {text}" for text in uncomputed]
    return lines


def _write_anew(audits: "Audits", report: Path, output: Path) -> None:
    """Write a report of the audits of a receipt, without a word of its page."""
    from paperlib.audits.document import report_facts

    facts = report_facts({"Receipt": str(report)})
    audits.document(title="A receipt, computed again", facts=facts).write(output)
    print(f"Report, written anew without a word of that page: {output}")


def _plan_lines(plan: "SealedPlan") -> list[str]:
    """The fields of a plan that are filled in, a line each, without its salt."""
    fields = plan.to_dict()
    return [
        f"  {name}: {visible_text(value)}"
        for name, value in fields.items()
        if value not in ("", None) and name != "salt"
    ]
