"""``paperlib audit-lm``: which identifiers of a corpus a language model knows, from its name and
files.
"""

from typing import Literal

from paperlib.cli.gate import ModelLoading, Wishes, with_wishes
from paperlib.cli.options import On

_NOTEBOOK = "the notebook audit_your_language_model shows a demonstration without files of yours"


@with_wishes
def audit_lm(
    model: str = "",
    corpus: str = "",
    on: On = "all",
    identifiers: list[str] | None = None,
    blind_filter: bool = True,
    limit: int = 200,
    before: int = 200,
    generated: int = 31,
    rank_attack: Literal["loss", "min_k", "min_k_pp", "zlib", "hinge"] = "min_k",
    neighbours: int = 0,
    batch_size: int = 64,
    shown: int = 20,
    delta: float = 0.0,
    confidence: float = 0.95,
    seed: int = 0,
    *,
    loading: ModelLoading,
    wishes: Wishes,
) -> int:
    """Audit a language model: which identifiers of a corpus (hashes, keys, addresses, ...) has it
    learned?

    The audit generates alternatives for each identifier. It trains no model and needs no held-out
    data.
    """
    if not model or not corpus:
        missing = "MODEL" if not model else "CORPUS"
        raise ValueError(f"{missing}: name a language model and a corpus; {_NOTEBOOK}")
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
    skipped = ReadLog()
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
    log = [f"{reason}: {number} (such as {example})" for reason, number, example in skipped.rows]
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
    facts = wishes.parts(
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
    document = audit.document(subject=f"{model} on {corpus}", log=log, count=shown, **facts)
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
