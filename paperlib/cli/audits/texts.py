"""``paperlib audit-texts``: any texts, and which of them a language model was trained on, from
files.
"""

from pathlib import Path
from typing import Literal

from paperlib.cli.audits.scores import paragraphs
from paperlib.cli.gate import Wishes, with_wishes
from paperlib.cli.options import Design, Dtype


@with_wishes
def audit_texts(
    model: str,
    members: str,
    nonmembers: str = "",
    base: str = "",
    coins: Path | None = None,
    text_field: str = "text",
    id_field: str = "",
    date_field: str = "",
    attack: Literal[
        "learned", "loss", "min_k", "min_k_pp", "zlib", "hinge", "ratio", "difference", "ez", "wbc"
    ] = "learned",
    prefix_tokens: int = 50,
    suffix_tokens: int = 50,
    tries: int = 100,
    chance: float = 0.5,
    copies: int = 1,
    dtype: Dtype = "auto",
    device: str = "",
    batch_size: int = 32,
    delta: float = 0.0,
    confidence: float = 0.95,
    design: Design | None = None,
    seed: int = 0,
    *,
    wishes: Wishes,
) -> int:
    """Audit a language model on any texts: every membership score, a bound, and texts that can be
    extracted.

    There is no bound if members and non-members differ without the model (words, length, date, the
    base).
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
        raise ValueError(
            f"--base: needed for {attack}; name the model that MODEL was fine-tuned from"
        )
    if bool(nonmembers) == (coins is not None):
        raise ValueError(
            "NONMEMBERS: give a second file of texts, or --coins and one file of all texts"
        )
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
    if bool(dates[0]) != bool(dates[1]):
        raise ValueError(
            "--date-field: one of the files has no dates; give both, or leave them out of both"
        )
    check_sides(*texts)  # before the model is loaded: a mistake shows at once
    loaded, tokenizer = load_language_model(model, dtype=dtype, device=device or None)
    scoring = {"split": (prefix_tokens, suffix_tokens), "batch_size": batch_size}
    reference, log = None, list[str]()
    if base:
        reference, other = load_language_model(base, dtype=dtype, device=device or None)
        if other.get_vocab() != tokenizer.get_vocab():
            scoring["reference_tokenizer"] = other
            log.append(
                "the base has another tokenizer: without the scores ez and wbc, which compare "
                "tokens"
            )
    options: ScoreOptions = {"delta": delta, "confidence": confidence, "seed": seed}
    options |= {"design": design} if design else {}
    options |= {"coins": tossed} if tossed else {}
    audit = audit_texts(
        loaded,
        tokenizer,
        *texts,
        reference=reference,
        attack=attack,
        copies=copies,
        ids=names,
        dates=(dates[0], dates[1]) if all(dates) else None,
        scoring=scoring,
        **options,
    )
    files = {"Model": model, "Base": base, "Members": members, "Non-members": nonmembers}
    files["Coins"] = str(coins or "")
    parts = wishes.parts(owner, files, {"model": model}, attack=attack, seed=seed)
    document = audit.document(
        subject=f"{model} on {members}", log=log, tries=tries, chance=chance, **parts
    )
    opening = f"{model} on {len(texts[0])} members and {len(texts[1])} non-members"
    text = [opening, " ".join(document.verdict.sentences)]
    if audit.audits is not None:
        text = paragraphs(opening, audit.audits, document)
    text += [audit.shown, document.more["extraction"]["said"]]
    return wishes.deliver(document, members, text)
