"""``paperlib audit-lm``: which identifiers of a corpus a language model knows, from its name and
files.
"""

from typing import Annotated, Literal

import typer

from paperlib.cli import options
from paperlib.cli.gate import ModelLoading, Wishes

EXAMPLES = {
    "audit-lm": """
paperlib audit-lm folder/of/a/model my_documents
paperlib audit-lm EleutherAI/pythia-160m corpus.jsonl --limit 500
paperlib audit-lm gpt2 my_documents --rank-attack loss --fail-above 3
paperlib audit-lm gpt2 my_documents --identifiers uuid --identifiers sha1
""",
}
"""What help shows below each command, one call a line."""


def audit_lm(
    model: options.LanguageModel,
    corpus: options.Corpus,
    *,
    on: options.On = "all",
    identifiers: options.Identifiers = None,
    blind_filter: Annotated[
        bool,
        typer.Option(help="Leave out identifiers that classifiers on letters alone recognise."),
    ] = True,
    limit: options.Limit = 200,
    before: options.Before = 200,
    generated: Annotated[int, typer.Option(min=1, help="Alternatives per identifier.")] = 31,
    rank_attack: Annotated[
        Literal["loss", "min_k", "min_k_pp", "zlib", "hinge"],
        typer.Option(
            help="Score whose ranks give the lower bound; choose it before you see results."
        ),
    ] = "min_k",
    neighbours: Annotated[
        int,
        typer.Option(
            min=0, help="Neighbours per text for the neighbourhood attack; 0: no such attack."
        ),
    ] = 0,
    batch_size: options.BatchSize = 64,
    shown: Annotated[
        int,
        typer.Option(min=1, help="Identifiers in the report's table of those with the best ranks."),
    ] = 20,
    delta: options.Delta = 0.0,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    dtype: options.Dtype = "auto",
    device: options.Device = "",
    claimed_epsilon: options.ClaimedEpsilon = None,
    fail_above: options.FailAbove = None,
    junit: options.Junit = None,
    about: options.About = None,
    questions: options.Questions = None,
    output: options.Output = None,
    as_json: options.Json = False,
    read_limit: options.ReadLimit = None,
) -> int:
    """Audit which identifiers a language model has learned.

    They are those of a corpus: hashes, keys, addresses, ... The audit generates alternatives for
    each identifier. It trains no model and needs no held-out data. The notebook
    audit_your_language_model shows a demonstration without files of yours.
    """
    loading = ModelLoading(dtype=dtype, device=device)
    wishes = Wishes(
        claimed_epsilon=claimed_epsilon,
        fail_above=fail_above,
        junit=junit,
        about=about,
        questions=questions or (),
        output=output,
        as_json=as_json,
    )
    from paperlib.audits.language.chat_templates import ChatTemplate
    from paperlib.audits.language.language_model import (
        FEWEST_IDENTIFIERS,
        audit_language_model,
        audited_identifiers,
    )
    from paperlib.audits.language.records import chat_documents
    from paperlib.data.text.pieces import ReadLog
    from paperlib.words.audits import completions

    about_file = wishes.checked(corpus)
    skipped = ReadLog()  # what reading the corpus leaves out
    # None of a corpus that holds no chats, which is then read as plain text.
    chats = chat_documents(corpus, ChatTemplate(model), on=on)
    if chats is None and on == "completions":
        raise ValueError(
            f"--on: {corpus} holds no chats; the loss on completions needs JSON lines with "
            "messages, conversations, or prompt and completion"
        )
    # Before the model is loaded, so that a mistake in the corpus shows at once.
    audited = audited_identifiers(
        corpus if chats is None else chats,
        kinds=identifiers,
        blind_filter=blind_filter,
        limit=limit,
        before=before,
        seed=seed,
        log=skipped,
    )
    log = skipped.lines
    if len(audited) < FEWEST_IDENTIFIERS:
        left = f"{len(audited)} identifiers are left, {FEWEST_IDENTIFIERS} are needed"
        raise ValueError("; ".join([f"{corpus}: {left}", *log]))
    if isinstance(chats, list) and any(getattr(chat, "by_turns", False) for chat in chats):
        log.append(completions.BY_TURNS)
    loaded, tokenizer = loading.load(model)
    audit = audit_language_model(
        loaded,
        tokenizer,
        audited,
        generated=generated,
        rank_attack=rank_attack,
        neighbours=neighbours,
        batch_size=batch_size,
        delta=delta,
        confidence=confidence,
        seed=seed,
    )
    document_fields = wishes.parts(
        about_file,
        {"Model": model, "Corpus": corpus},
        {"model": model},
        on=on,
        limit=limit,
        before=before,
        seed=seed,
        generated=generated,
        rank_attack=rank_attack,
    )
    document = audit.document(
        subject=f"{model} on {corpus}", log=log, count=shown, **document_fields
    )
    best = audit.table.head(5)[["kind", "value", "occurrences", "rank"]]
    documents = {identifier.document for identifier in audited}
    text = [
        " ".join(document.verdict.sentences),
        *map(str, document.answers),
        f"{len(audited)} identifiers in {len(documents)} document(s), "
        f"{generated} alternatives each",
        f"Was the set trained on? {audit.inference.headline}",
        f"Best known:\n{best.to_string(index=False)}",
    ]
    return wishes.deliver(document, corpus, text)
