"""``paperlib audit-chat``: which identifiers of a corpus a model behind an address completes."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import typer

from paperlib.cli.gate import Wishes, report_name, with_wishes


@with_wishes
def audit_chat(
    url: str,
    corpus: str,
    model: str,
    key_variable: str | None = None,
    identifiers: list[str] | None = None,
    limit: int = 200,
    before: int = 200,
    shown: int = 8,
    tries: int = 1,
    answers: Path | None = None,
    dry_run: bool = False,
    yes: bool = False,
    delta: float = 0.0,
    confidence: float = 0.95,
    seed: int = 0,
    *,
    wishes: Wishes,
) -> int:
    """Audit a model by its answers alone: which identifiers of a corpus (hashes, ...) does it
    complete?

    Only the text before each identifier and its first digits are sent to the address.
    """
    from paperlib.audits import audit_chat, chat_questions
    from paperlib.audits.language.endpoint import ANSWER_TOKENS, ChatEndpoint
    from paperlib.audits.language.kept_answers import KeptAnswers
    from paperlib.data.text.pieces import ReadLog
    from paperlib.io.files import config_hash

    key = os.environ.get(key_variable, "").strip() if key_variable else ""
    if key_variable and not key:
        raise ValueError(
            "--key-variable: expected the name of an environment variable that holds a key"
        )
    temperature = 0.0 if tries == 1 else 1.0
    endpoint = ChatEndpoint(url=url, model=model, key=key, temperature=temperature)
    file = answers or Path(f"{report_name(corpus)}-answers.jsonl")
    owner = wishes.checked(corpus, str(file))
    skipped = ReadLog()
    questions = chat_questions(
        corpus, kinds=identifiers, before=before, shown=shown, limit=limit, seed=seed, log=skipped
    )
    pairs = [(question.prompt, question.answer) for question in questions]
    request = {**endpoint.body(""), "model": ""}  # which has a name of its own below
    asked = config_hash({"questions": pairs, "tries": tries, "request": request})
    settings = {"model": model, "address": endpoint.url, "corpus or option": asked}
    kept = KeptAnswers(
        file,
        settings,
        [question.prompt for question in questions for _ in range(tries)],
        date=datetime.now(UTC).date().isoformat(),
    )
    left = kept.left
    characters = sum(len(question.prompt) for question in questions) // len(questions)
    tokens = left * (50 + characters // 2)
    cost = f"about {tokens:,} tokens sent, {left * ANSWER_TOKENS:,} received at most"
    print(
        f"{left} requests to {endpoint.host} ({len(kept.answers)} answers kept): {cost}",
        file=sys.stderr,
    )
    if dry_run:
        return 0
    if left and not yes:
        _confirm()
    with kept.through(endpoint) as complete:
        named = f"{model} at {endpoint.host} ({kept.first['date']})"
        audit = audit_chat(
            questions,
            complete,
            tries=tries,
            model=named,
            delta=delta,
            confidence=confidence,
        )
    facts = wishes.parts(
        owner,
        {"Model": named, "Corpus": corpus},
        {"model": f"{model} at {endpoint.host}"},
        limit=limit,
        before=before,
        shown=shown,
        tries=tries,
        seed=seed,
    )
    log = [f"{reason}: {number} (such as {example})" for reason, number, example in skipped.rows]
    if not left:
        when = kept.first["date"]
        log.append(
            f"no answer was asked for now, all are of {when}: to ask the model again, delete {file}"
        )
    document = audit.document(subject=f"{named} on {corpus}", log=log, **facts)
    text = [" ".join(document.verdict.sentences), *map(str, document.answers), *audit.result.notes]
    return wishes.deliver(document, corpus, text)


def _confirm() -> None:
    """Ask whether to send the requests; a ValueError where nobody can be asked."""
    if not sys.stdin.isatty():
        raise ValueError("--yes: needed to send these requests where nobody can be asked")
    typer.confirm("Send them?", abort=True, err=True)
