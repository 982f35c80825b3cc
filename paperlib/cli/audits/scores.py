"""``paperlib audit``: read scores, run every audit that they allow, print and write the results."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paperlib.cli import options
from paperlib.cli.gate import Wishes

if TYPE_CHECKING:
    from paperlib.audits.document import AuditDocument
    from paperlib.audits.score_results import Audits
    from paperlib.core import ScoreAudit
    from paperlib.reading.scores import LoadedScores

EXAMPLES = {
    "audit": """
paperlib audit my_scores.csv
paperlib audit losses.parquet --losses --score-column nll --delta 1e-5
paperlib audit members.npy others.npy --kind losses
paperlib audit my_scores.csv --claimed-epsilon 3 --about audit.yaml
paperlib audit my_scores.csv --fail-above 3 --junit audit.xml
zcat losses.csv.gz | paperlib audit - --json
paperlib audit losses.csv --claimed 'gaussian(sigma=1.0, q=0.01, steps=1000)'
paperlib audit losses.csv --coins train.coins.json
paperlib audit losses.csv --coins train.coins.json --plan plan.sealed.json
""",
}
"""What help shows below each command, one call a line."""


def audit(
    context: typer.Context,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help=(
                "CSV, Parquet, JSON lines, NPZ, NPY or tensors with a score or loss column and a "
                "membership column (1/0, true/false, in/out); with a second file, the members' "
                "scores; - for standard input."
            ),
        ),
    ],
    nonmembers: Annotated[
        str | None,
        typer.Argument(
            metavar="NONMEMBERS", help="Non-members' scores, if they are in a file of their own."
        ),
    ] = None,
    *,
    score_column: options.ScoreColumn = None,
    member_column: options.MemberColumn = None,
    kind: options.Kind = None,
    losses: options.Losses = False,
    id_column: options.IdColumn = None,
    unit: options.Unit = None,
    coins: options.Coins = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=(
                "File of `paperlib seal`, used with --coins: the audit runs as planned and "
                "refuses different options. The limit of the plan is that of --fail-above."
            ),
        ),
    ] = None,
    group_column: Annotated[
        str | None, typer.Option(help="Column of groups, for the report's table per group.")
    ] = None,
    delta: options.Delta = 0.0,
    confidence: options.Confidence = 0.95,
    guess: options.Guess = "adaptive",
    design: options.Design = "randomized",
    seed: options.Seed = 0,
    utility: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="BEFORE AFTER",
            help=(
                "Utility of the model before and after forgetting, such as its accuracy, in "
                "[0, 1]; with --coins of `paperlib coins --forget`."
            ),
        ),
    ] = None,
    claimed: options.Claimed = None,
    claimed_curve: options.ClaimedCurve = None,
    claimed_epsilon: options.ClaimedEpsilon = None,
    fail_above: options.FailAbove = None,
    junit: options.Junit = None,
    about: options.About = None,
    questions: options.Questions = None,
    output: options.Output = None,
    as_json: options.Json = False,
    read_limit: options.ReadLimit = None,
) -> int:
    """Audit a trained model by its scores, with an HTML report.

    It prints the answer in words and the numbers behind it.
    """
    from paperlib.audits import audit_scores
    from paperlib.audits.planned.sealed_plan import SealedPlan
    from paperlib.core import Coins
    from paperlib.core.checks import check_confidence, check_delta
    from paperlib.io import read_scores
    from paperlib.io.files import file_sha256

    wishes = Wishes(
        claimed_epsilon=claimed_epsilon,
        fail_above=fail_above,
        junit=junit,
        about=about,
        questions=questions or (),
        output=output,
        as_json=as_json,
    )
    kind = options.kind_of(kind, losses)
    check_confidence(confidence)
    check_delta(delta)
    beside = [str(path) for path in (coins, plan, claimed_curve) if path is not None]
    about_file = wishes.checked(file, nonmembers, *beside)
    curve = options.curve_of(claimed, claimed_curve)
    sealed = None if coins is None else Coins.load(coins)
    to_follow = None if plan is None else SealedPlan.load(plan)
    if to_follow is not None:  # its fields take the place of the options
        planned = to_follow.follow(sealed, _chosen(context, file, kind), named=_in_command)
        kind = planned["kind"]
        score_column = planned["score_column"]
        delta = planned["delta"]
        confidence = planned["confidence"]
        guess = planned["guess"]
        wishes = replace(
            wishes, fail_above=to_follow.limit, claimed_epsilon=to_follow.claimed_epsilon
        )
    loaded = read_scores(
        file,
        nonmembers,
        score_column=score_column,
        member_column=member_column,
        kind=kind,
        id_column=id_column,
        group_column=group_column,
        unit_column=unit,
        coins=sealed,
    )
    audits = audit_scores(
        loaded.scores,
        unit=unit,
        delta=delta,
        confidence=confidence,
        guess=guess,
        design=design,
        seed=seed,
        coins=sealed,
        plan=to_follow,
        utility=utility,
        claimed=curve if to_follow is None else None,  # the plan names its curve
    )
    audits = replace(audits, reading=(*loaded.warnings, *audits.reading))
    inputs = dict(loaded.checksums)
    for path in (coins, plan, claimed_curve):
        if path is not None:
            inputs[path.name] = file_sha256(path)
    source = {"Input": f"{loaded.source}, read as {loaded.kind}"}
    opening = _opening(loaded)
    if to_follow is not None:
        source["Plan"] = to_follow.seal
        opening += (
            f"\nAs planned: {to_follow.seal}; the report opens ids, coins and scores to its readers"
        )
    document = audits.document(
        title=f"Privacy audit of {'standard input' if file == '-' else Path(file).name}",
        ids=loaded.ids,
        groups=loaded.groups,
        **wishes.parts_of_scores(about_file, source, inputs),
    )
    return wishes.deliver(document, file, paragraphs(opening, audits, document))


def _chosen(context: typer.Context, file: str, kind: options.Kind | None) -> dict[str, Any]:
    """The options that the user gave, by name: a plan may contradict them, but not a default.

    ``scores`` is the name of the audited file, and ``kind`` the answer of --kind and --losses.
    """
    by_name: dict[str, Any] = {}
    for name, value in context.params.items():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            by_name[name] = value
    by_name["scores"] = Path(file).name
    if kind is not None:
        by_name["kind"] = kind
    return by_name


def _in_command(name: str) -> str:
    """What a field of a plan is called in the command."""
    return "FILE" if name == "scores" else f"--{name.replace('_', '-')}"


def _opening(loaded: "LoadedScores") -> str:
    """What was read, with the number of members and of non-members."""
    scores = loaded.scores
    direction = "higher" if scores.higher_means_member else "lower"
    return (
        f"{loaded.source}, read as {loaded.kind} ({direction} values point to members): "
        f"{scores.member.size} members, {scores.nonmember.size} non-members"
    )


def paragraphs(opening: str, audits: "Audits", document: "AuditDocument") -> list[str]:
    """What the terminal shows of audits of scores, paragraph by paragraph: ``opening``, warnings
    and verdict; the main audit, if it answers, with AUC and rates; and the other audits, a line
    each.
    """
    measures = document.measures
    # The verdict quotes the first refusal, so that it is no warning beside it.
    quoted = {refusal.sentence for refusal in document.refusals[:1]}
    low, high = measures.auc_interval
    auc = f"AUC {measures.auc:.4f} [{low:.4f}, {high:.4f}] at confidence {measures.confidence:g}"
    warnings = [f"Warning: {text}" for text in document.warnings if text not in quoted]
    before = [opening, "\n".join(warnings), "\n".join(document.verdict.sentences)]
    rates = "\n".join([auc, *map(str, measures.rates)])
    _, epsilon, _ = document.judged(None)
    if epsilon is None:  # the audit is refused, or gives no number
        return [*before, rates]
    main = audits.headline
    lines = [main.headline, main.condition, main.claim, *main.notes, main.seen()]
    text = [*before, "\n".join(filter(None, lines)), rates]
    others = [_line_of(audit) for audit in audits.audits[1:]]
    if others:
        text.append("\n".join(["Other audits, each at its own confidence:", *others]))
    return text


def _line_of(audit: "ScoreAudit") -> str:
    """The result of one audit, with its warnings and what was seen on lines below it, or why there
    is no result.
    """
    if audit.result is None:
        lines = [f"not possible: {audit.refused}"]
    else:
        lines = [audit.result.headline, *audit.result.warnings]
    text = f"  {audit.title} ({audit.kind}): " + "\n    Warning: ".join(lines)
    seen = "" if audit.result is None else audit.result.seen()
    return f"{text}\n    {seen}" if seen else text
