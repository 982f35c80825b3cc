"""``paperlib audit-lm``: which identifiers of a corpus a language model knows, from its name and files."""

from typing import Annotated, Literal

import typer

from paperlib.cli.gate import Wishes, with_wishes
from paperlib.cli.options import Confidence, Delta, Device, Dtype, Seed

EPILOG = (
    "Examples:  paperlib audit-lm folder/of/a/model my_documents   |   paperlib audit-lm "
    "EleutherAI/pythia-160m corpus.jsonl --limit 500 --fail-above 3   |   paperlib audit-lm gpt2 "
    "my_documents --identifiers uuid --identifiers sha1 --rank-attack loss --json"
)
CorpusFiles = Annotated[
    str,
    typer.Argument(
        help="File or folder of text, JSON lines or Parquet, a known corpus by name, or a pack that "
        "`paperlib identifiers` wrote."
    ),
]
IdentifierKinds = Annotated[
    list[str] | None,
    typer.Option(metavar="KIND", help="Kind of identifiers to look for; repeatable. Default: all."),
]
Limit = Annotated[int, typer.Option(min=10, help="Maximum number of identifiers; a random sample is drawn.")]
Before = Annotated[int, typer.Option(min=0, help="Characters before each identifier that the model sees.")]
_NOTEBOOK = "the notebook audit_your_language_model shows a demonstration without files of yours"


@with_wishes
def audit_lm(
    model: Annotated[
        str, typer.Argument(help="Causal language model: a folder, or a name on the Hugging Face hub.")
    ] = "",
    corpus: CorpusFiles = "",
    identifiers: IdentifierKinds = None,
    blind_filter: Annotated[
        bool,
        typer.Option(
            "--blind-filter/--no-blind-filter",
            help="Leave out identifiers that classifiers on letters alone recognise.",
        ),
    ] = True,
    limit: Limit = 200,
    before: Before = 200,
    generated: Annotated[int, typer.Option(min=1, help="Alternatives per identifier.")] = 31,
    rank_attack: Annotated[
        Literal["loss", "min_k", "min_k_pp", "zlib", "hinge"],
        typer.Option(help="Score whose ranks give the lower bound; choose it before you see results."),
    ] = "min_k",
    neighbours: Annotated[
        int, typer.Option(min=0, help="Neighbours per text for the neighbourhood attack; 0: no such attack.")
    ] = 0,
    dtype: Dtype = "auto",
    device: Device = "",
    batch_size: Annotated[int, typer.Option(min=1, help="Texts per batch.")] = 64,
    shown: Annotated[
        int, typer.Option(min=1, help="Identifiers in the report's table of those with the best ranks.")
    ] = 20,
    delta: Delta = 0.0,
    confidence: Confidence = 0.95,
    seed: Seed = 0,
    *,
    wishes: Wishes,
) -> None:
    """Audit a language model: which identifiers of a corpus (hashes, keys, addresses, ...) has it learned?

    The audit generates alternatives for each identifier. It trains no model and needs no held-out data.
    """
    if not model or not corpus:
        missing = "MODEL" if not model else "CORPUS"
        raise ValueError(f"{missing}: name a language model and a corpus; {_NOTEBOOK}")
    from paperlib.audits.language.language_model import audit_language_model, audited_identifiers
    from paperlib.data.text.pieces import ReadLog
    from paperlib.models.language import load_language_model

    owner, skipped = wishes.checked(corpus), ReadLog()
    audited = audited_identifiers(  # before the model is loaded: a mistake shows at once
        corpus, kinds=identifiers, blind_filter=blind_filter, limit=limit, before=before, seed=seed,
        log=skipped,
    )  # fmt: skip
    log = [f"{reason}: {number} (such as {example})" for reason, number, example in skipped.rows]
    if len(audited) < 10:
        raise ValueError("; ".join([f"{corpus}: {len(audited)} identifiers are left, 10 are needed", *log]))
    loaded, tokenizer = load_language_model(model, dtype=dtype, device=device or None)
    audit = audit_language_model(
        loaded, tokenizer, audited, generated=generated, rank_attack=rank_attack, neighbours=neighbours,
        batch_size=batch_size, delta=delta, confidence=confidence, seed=seed,
    )  # fmt: skip
    parts = wishes.parts(
        owner, {"Model": model, "Corpus": corpus}, {"model": model}, limit=limit, before=before, seed=seed,
        generated=generated, rank_attack=rank_attack,
    )  # fmt: skip
    document = audit.document(subject=f"{model} on {corpus}", log=log, count=shown, **parts)
    best = audit.table.head(5)[["kind", "value", "occurrences", "rank"]]
    text = [
        " ".join(document.verdict.sentences),
        *map(str, document.answers),
        f"{len(audited)} identifiers, {generated} alternatives each",
        f"Was the set trained on? {audit.inference.headline}",
        f"Best known:\n{best.to_string(index=False)}",
    ]
    raise typer.Exit(wishes.deliver(document, corpus, text))
