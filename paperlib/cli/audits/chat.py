"""``paperlib audit-chat``: which identifiers of a corpus a model behind an address completes."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from paperlib.cli import options
from paperlib.cli.gate import Wishes, report_name

EXAMPLES = {
    "audit-chat": """
paperlib audit-chat https://api.example.com/v1 docs --model NAME --dry-run
paperlib audit-chat http://localhost:8000/v1 docs --model NAME --yes
# the key is in the environment variable KEY:
paperlib audit-chat https://example.com/v1 docs --model NAME --key-variable KEY
""",
}
"""What help shows below each command, one call a line."""


def audit_chat(
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="Address; /chat/completions is added if it does not end in /completions.",
        ),
    ],
    corpus: options.Corpus,
    *,
    model: Annotated[str, typer.Option(help="Name of the model at this address.")],
    key_variable: Annotated[
        str | None, typer.Option(metavar="NAME", help="Environment variable that holds the key.")
    ] = None,
    identifiers: options.Identifiers = None,
    limit: options.Limit = 200,
    before: options.Before = 200,
    shown: Annotated[
        int, typer.Option(min=0, max=8, help="Digits of each identifier that are sent.")
    ] = 8,
    tries: Annotated[
        int, typer.Option(min=1, help="Answers per question: temperature 0 if one, 1 if several.")
    ] = 1,
    answers: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=options.in_a_folder,
            help="Answers file. Default: NAME-answers.jsonl in this folder.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be sent, and stop.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Send without asking for confirmation.")
    ] = False,
    delta: options.Delta = 0.0,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    claimed_epsilon: options.ClaimedEpsilon = None,
    fail_above: options.FailAbove = None,
    junit: options.Junit = None,
    about: options.About = None,
    questions: options.Questions = None,
    output: options.Output = None,
    as_json: options.Json = False,
    read_limit: options.ReadLimit = None,
) -> int:
    """Audit a model behind an address by its answers alone.

    The question is which identifiers of a corpus (hashes, ...) it completes. Only the text before
    each identifier and its first digits are sent to the address. It reads no losses: no --on.
    """
    from paperlib.audits import audit_chat, chat_questions
    from paperlib.audits.language.endpoint import ANSWER_TOKENS, ChatEndpoint
    from paperlib.audits.language.kept_answers import KeptAnswers
    from paperlib.data.text.pieces import ReadLog
    from paperlib.io.files import config_hash

    wishes = Wishes(
        claimed_epsilon=claimed_epsilon,
        fail_above=fail_above,
        junit=junit,
        about=about,
        questions=questions or (),
        output=output,
        as_json=as_json,
    )
    key = os.environ.get(key_variable, "").strip() if key_variable else ""
    if key_variable and not key:
        raise ValueError(
            "--key-variable: expected the name of an environment variable that holds a key"
        )
    temperature = 0.0 if tries == 1 else 1.0
    endpoint = ChatEndpoint(url=url, model=model, key=key, temperature=temperature)
    file = answers or Path(f"{report_name(corpus)}-answers.jsonl")
    about_file = wishes.checked(corpus, str(file))
    skipped = ReadLog()
    to_complete = chat_questions(
        corpus, kinds=identifiers, before=before, shown=shown, limit=limit, seed=seed, log=skipped
    )
    pairs = [(question.prompt, question.answer) for question in to_complete]
    request = {**endpoint.body(""), "model": ""}  # which has a name of its own below
    asked = config_hash({"questions": pairs, "tries": tries, "request": request})
    settings = {"model": model, "address": endpoint.url, "corpus or option": asked}
    kept = KeptAnswers(
        file,
        settings,
        [question.prompt for question in to_complete for _ in range(tries)],
        date=datetime.now(UTC).date().isoformat(),
    )
    left = kept.left  # answers to ask for
    # A rough price: two characters a token, and 50 tokens of instructions around each prompt.
    characters = sum(len(question.prompt) for question in to_complete) // len(to_complete)
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
            to_complete,
            complete,
            tries=tries,
            model=named,
            delta=delta,
            confidence=confidence,
        )
    document_fields = wishes.parts(
        about_file,
        {"Model": named, "Corpus": corpus},
        {"model": f"{model} at {endpoint.host}"},
        limit=limit,
        before=before,
        shown=shown,
        tries=tries,
        seed=seed,
    )
    log = skipped.lines
    if not left:
        when = kept.first["date"]
        log.append(
            f"no answer was asked for now, all are of {when}: to ask the model again, delete {file}"
        )
    document = audit.document(subject=f"{named} on {corpus}", log=log, **document_fields)
    text = [" ".join(document.verdict.sentences), *map(str, document.answers), *audit.result.notes]
    return wishes.deliver(document, corpus, text)


def _confirm() -> None:
    """Ask whether to send the requests, and end the command on a no; a ValueError where nobody can
    be asked.
    """
    if not sys.stdin.isatty():
        raise ValueError("--yes: needed to send these requests where nobody can be asked")
    typer.confirm("Send them?", abort=True, err=True)
