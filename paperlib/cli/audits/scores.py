"""``paperlib audit``: read scores, run every audit that they allow, print and write the results."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from paperlib.cli import options
from paperlib.cli.gate import Wishes, with_wishes

if TYPE_CHECKING:
    from paperlib.audits import AuditDocument, Audits


@with_wishes
def audit(
    context: typer.Context,
    file: str,
    nonmembers: str | None = None,
    score_column: str | None = None,
    member_column: str | None = None,
    kind: options.Kind | None = None,
    losses: bool = False,
    id_column: str | None = None,
    unit: str | None = None,
    coins: Path | None = None,
    plan: Path | None = None,
    group_column: str | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    guess: options.Guess = "adaptive",
    design: options.Design = "randomized",
    seed: int = 0,
    *,
    wishes: Wishes,
) -> int:
    """Audit the scores of a trained model: the answer in words, the numbers behind it, and an HTML
    report.
    """
    from paperlib.audits import SealedPlan, audit_scores
    from paperlib.core import Coins, check_confidence, check_delta
    from paperlib.io import file_sha256, read_scores

    kind = options.kind_of(kind, losses)
    check_confidence(confidence)
    check_delta(delta)
    about = wishes.checked(file, nonmembers, coins and str(coins), plan and str(plan))
    sealed = None if coins is None else Coins.load(coins)
    to_follow = None if plan is None else SealedPlan.load(plan)
    if to_follow is not None:
        sources = {name: context.get_parameter_source(name) for name in context.params}
        given = {
            name: context.params[name]
            for name, one in sources.items()
            if one and one.name == "COMMANDLINE"
        }
        given |= {"scores": Path(file).name, **({"kind": kind} if kind else {})}
        planned = to_follow.follow(
            sealed,
            given,
            named=lambda name: "FILE" if name == "scores" else f"--{name.replace('_', '-')}",
        )
        kind, score_column = planned["kind"], planned["score_column"]
        delta, confidence, guess = planned["delta"], planned["confidence"], planned["guess"]
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
    )
    audits = replace(audits, reading=(*loaded.warnings, *audits.reading))
    inputs = {**loaded.checksums, **{one.name: file_sha256(one) for one in (coins, plan) if one}}
    source = {"Input": f"{loaded.source}, read as {loaded.kind}"}
    source |= {} if to_follow is None else {"Plan": to_follow.seal}
    document = audits.document(
        title=f"Privacy audit of {'standard input' if file == '-' else Path(file).name}",
        ids=loaded.ids,
        groups=loaded.groups,
        **wishes.parts_of_scores(about, source, inputs),
    )
    scores, points = loaded.scores, "higher" if loaded.scores.higher_means_member else "lower"
    opening = (
        f"{loaded.source}, read as {loaded.kind} ({points} values point to members): "
        f"{scores.member.size} members, {scores.nonmember.size} non-members"
    )
    if to_follow is not None:
        opening += (
            f"\nAs planned: {to_follow.seal}; the report opens ids, coins and scores to its readers"
        )
    return wishes.deliver(document, file, paragraphs(opening, audits, document))


def paragraphs(opening: str, audits: "Audits", document: "AuditDocument") -> list[str]:
    """What the terminal shows of audits of scores, after ``opening``."""
    measures = document.measures
    quoted = {refusal.sentence for refusal in document.refusals[:1]}  # by the verdict
    low, high = measures.auc_interval
    auc = f"AUC {measures.auc:.4f} [{low:.4f}, {high:.4f}] at confidence {measures.confidence:g}"
    text = [
        opening,
        "\n".join(f"Warning: {text}" for text in document.warnings if text not in quoted),
        "\n".join(document.verdict.sentences),
        "\n".join([auc, *map(str, measures.rates)]),
    ]
    if document.judged(None)[1] is not None:  # else no number is an answer
        main = audits.headline
        lines = [main.headline, main.condition, main.claim, *main.notes, main.seen()]
        text.insert(3, "\n".join(filter(None, lines)))
        others: list[str] = []
        for one in audits.audits[1:]:
            if one.result is None:
                said = [f"not possible: {one.refused}"]
            else:
                said = [one.result.headline, *one.result.warnings]
            others.append(f"  {one.title} ({one.kind}): " + "\n    Warning: ".join(said))
        if others:
            text.append("\n".join(["Other audits, each at its own confidence:", *others]))
    return text
