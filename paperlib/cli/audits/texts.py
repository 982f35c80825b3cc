"""``paperlib audit-texts``: any texts, and which of them a language model was trained on, from files."""

from typing import Annotated, Literal

import typer

from paperlib.cli.audits.scores import paragraphs
from paperlib.cli.gate import Wishes, with_wishes
from paperlib.cli.options import CoinsFile, Confidence, Delta, Device, Dtype, Seed

EPILOG = (
    "Examples:  paperlib audit-texts my_model members.jsonl nonmembers.jsonl --base gpt2   |   paperlib "
    "audit-texts my_model texts.jsonl --coins train.coins.json --prefix-tokens 20 --fail-above 3"
)


@with_wishes
def audit_texts(
    model: Annotated[
        str, typer.Argument(help="Causal language model: a folder, or a name on the Hugging Face hub.")
    ],
    members: Annotated[
        str,
        typer.Argument(
            help="Texts that the model was trained on: JSON lines, or a .txt file with one text per line. "
            "With --coins, all texts that have a coin."
        ),
    ],
    nonmembers: Annotated[
        str, typer.Argument(help="Held-out texts of the same source; omit with --coins.")
    ] = "",
    base: Annotated[
        str,
        typer.Option(help="Base model of MODEL, for scores that compare both; trained on neither file."),
    ] = "",
    coins: CoinsFile = None,
    text_field: Annotated[str, typer.Option(help="Field of JSON lines that holds the text.")] = "text",
    id_field: Annotated[
        str,
        typer.Option("--id", metavar="FIELD", help="Field that names each text. Default: id, else its row."),
    ] = "",
    date_field: Annotated[
        str,
        typer.Option(metavar="FIELD", help="Field of each text's date. Default: date, if there is one."),
    ] = "",
    attack: Annotated[
        Literal["learned", "loss", "min_k", "min_k_pp", "zlib", "hinge", "ratio", "difference", "ez", "wbc"],
        typer.Option(help="Score for the bound; learned: all combined. Choose it before you see results."),
    ] = "learned",
    prefix_tokens: Annotated[
        int, typer.Option(min=1, help="Tokens of each text that serve as the prompt of an extraction.")
    ] = 50,
    suffix_tokens: Annotated[int, typer.Option(min=1, help="Tokens that the model must then produce.")] = 50,
    tries: Annotated[int, typer.Option(min=1, help="Attempts per extraction.")] = 100,
    chance: Annotated[
        float, typer.Option(help="Smallest probability of a listed extraction, in (0, 1).")
    ] = 0.5,
    copies: Annotated[
        int, typer.Option(min=1, help="Copies of each member in the training data, for the claims.")
    ] = 1,
    dtype: Dtype = "auto",
    device: Device = "",
    batch_size: Annotated[int, typer.Option(min=1, help="Texts per batch.")] = 32,
    delta: Delta = 0.0,
    confidence: Confidence = 0.95,
    design: Annotated[
        Literal["randomized", "game", "played"] | None,
        typer.Option(
            help="As in `paperlib audit`. Default: randomized with --coins; else game, for members and "
            "others split at random."
        ),
    ] = None,
    seed: Seed = 0,
    *,
    wishes: Wishes,
) -> None:
    """Audit a language model on any texts: every membership score, a bound, and texts that can be extracted.

    There is no bound if members and non-members differ without the model (words, length, date, the base).
    """
    from paperlib.attacks.language.scores import COMPARING
    from paperlib.audits.language.records import read_records
    from paperlib.audits.language.texts import audit_texts, check_sides
    from paperlib.audits.scores import ScoreOptions
    from paperlib.core import Coins
    from paperlib.core.checks import check_in
    from paperlib.models.language import load_language_model

    owner = wishes.checked(members, nonmembers, coins and str(coins))
    check_in("(0, 1)", "--chance", chance)
    if attack in COMPARING and not base:
        raise ValueError(f"--base: needed for {attack}; name the model that MODEL was fine-tuned from")
    if bool(nonmembers) == (coins is not None):
        raise ValueError("NONMEMBERS: give a second file of texts, or --coins and one file of all texts")
    fields = {"text_field": text_field, "id_field": id_field, "date_field": date_field}
    tossed = None if coins is None else Coins.load(coins)
    if tossed is None:
        sides = read_records(members, **fields), read_records(nonmembers, **fields)
    else:
        whole = read_records(members, **{**fields, "id_field": id_field or tossed.column})
        included = tossed.included[tossed.places(whole["name"].tolist())]
        sides = whole[included], whole[~included]
    texts, names = ((sides[0][one].tolist(), sides[1][one].tolist()) for one in ("text", "name"))
    dates = tuple(side["date"].tolist() if "date" in side else [] for side in sides)
    check_sides(*texts)  # before the model is loaded: a mistake shows at once
    loaded, tokenizer = load_language_model(model, dtype=dtype, device=device or None)
    scoring = {"split": (prefix_tokens, suffix_tokens), "batch_size": batch_size}
    reference, log = None, list[str]()
    if base:
        reference, other = load_language_model(base, dtype=dtype, device=device or None)
        if other.get_vocab() != tokenizer.get_vocab():
            scoring["reference_tokenizer"] = other
            log.append("the base has another tokenizer: without the scores ez and wbc, which compare tokens")
    options: ScoreOptions = {"delta": delta, "confidence": confidence, "seed": seed}
    options |= {"design": design} if design else {}
    options |= {"coins": tossed} if tossed else {}
    audit = audit_texts(
        loaded, tokenizer, *texts, reference=reference, attack=attack, copies=copies, ids=names,
        dates=(dates[0], dates[1]) if all(dates) else None, scoring=scoring, **options,
    )  # fmt: skip
    files = {"Model": model, "Base": base, "Members": members, "Non-members": nonmembers}
    files["Coins"] = str(coins or "")
    parts = wishes.parts(owner, files, {"model": model}, attack=attack, seed=seed)
    document = audit.document(subject=f"{model} on {members}", log=log, tries=tries, chance=chance, **parts)
    opening = f"{model} on {len(texts[0])} members and {len(texts[1])} non-members"
    text = [opening, " ".join(document.verdict.sentences)]
    if audit.audits is not None:
        text = paragraphs(opening, audit.audits, document)
    text += [audit.shown, document.more["extraction"]["said"]]
    raise typer.Exit(wishes.deliver(document, members, text))
