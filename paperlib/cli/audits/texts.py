"""``paperlib audit-texts``: any texts, and which of them a language model was trained on, from
files.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from paperlib.cli.audits.scores import paragraphs
from paperlib.cli.gate import ModelLoading, Wishes, with_wishes
from paperlib.cli.options import Design, On

if TYPE_CHECKING:
    import pandas as pd

    from paperlib.audits.language.chat_templates import ChatTemplate
    from paperlib.core import Coins

    Sides = tuple[pd.DataFrame, pd.DataFrame]


@with_wishes
def audit_texts(
    model: str,
    members: str,
    nonmembers: str = "",
    base: str = "",
    coins: Path | None = None,
    on: On = "all",
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
    batch_size: int = 32,
    delta: float = 0.0,
    confidence: float = 0.95,
    design: Design | None = None,
    seed: int = 0,
    *,
    group_field: list[str] | None = None,
    loading: ModelLoading,
    wishes: Wishes,
) -> int:
    """Audit a language model on any texts: every membership score, a bound, and texts that can be
    extracted.

    There is no bound if members and non-members differ without the model (words, their order,
    length, date, the base).
    """
    from paperlib.audits.language.chat_templates import ChatTemplate
    from paperlib.audits.language.records import check_fields
    from paperlib.audits.language.texts import audit_texts, check_sides
    from paperlib.audits.scores import ScoreOptions
    from paperlib.core import Coins
    from paperlib.core.checks import check_in

    owner = wishes.checked(members, nonmembers, coins and str(coins))
    check_in("(0, 1)", "--chance", chance)
    _check_files(attack, base, nonmembers, coins)
    fields = {"text_field": text_field, "id_field": id_field, "date_field": date_field}
    tossed = None if coins is None else Coins.load(coins)
    sides = _read_sides(members, nonmembers, tossed, {**fields, "on": on}, ChatTemplate(model))
    texts = _columns(sides, "text")
    dates = _dates(sides)
    scored = _columns(sides, "text" if on == "all" else "learned")
    if tossed is None:  # coins chose the side of each text
        check_fields(*sides, groups=group_field or ())
    check_sides(*texts)  # before the model is loaded: a mistake shows at once
    loaded, tokenizer = loading.load(model)
    scoring = {"split": (prefix_tokens, suffix_tokens), "batch_size": batch_size}
    reference = None
    log: list[str] = []
    if base:
        reference, other = loading.load(base)
        if other.get_vocab() != tokenizer.get_vocab():
            scoring["reference_tokenizer"] = other
            log.append(
                "the base has another tokenizer: without the scores ez and wbc, which compare "
                "tokens"
            )
    options: ScoreOptions = {"delta": delta, "confidence": confidence, "seed": seed}
    if design is not None:
        options["design"] = design
    if tossed is not None:
        options["coins"] = tossed
    audit = audit_texts(
        loaded,
        tokenizer,
        *scored,
        on=on,
        reference=reference,
        attack=attack,
        copies=copies,
        ids=_columns(sides, "name"),
        dates=dates,
        scoring=scoring,
        **options,
    )
    files = {
        "Model": model,
        "Base": base,
        "Members": members,
        "Non-members": nonmembers,
        "Coins": str(coins or ""),
    }
    facts = wishes.parts(owner, files, {"model": model}, attack=attack, on=on, seed=seed)
    document = audit.document(
        subject=f"{model} on {members}", log=log, tries=tries, chance=chance, **facts
    )
    opening = f"{model} on {len(texts[0])} members and {len(texts[1])} non-members"
    text = [opening, " ".join(document.verdict.sentences)]
    if audit.audits is not None:
        text = paragraphs(opening, audit.audits, document)
    text += [audit.shown, document.more["extraction"]["said"]]
    return wishes.deliver(document, members, text)


def _check_files(attack: str, base: str, nonmembers: str, coins: Path | None) -> None:
    """Refuse (ValueError) an attack without its base, and sides that neither a file nor coins
    tell, or both.
    """
    from paperlib.attacks.language.scores import COMPARING

    if attack in COMPARING and not base:
        raise ValueError(
            f"--base: needed for {attack}; name the model that MODEL was fine-tuned from"
        )
    if bool(nonmembers) == (coins is not None):
        raise ValueError(
            "NONMEMBERS: give a second file of texts, or --coins and one file of all texts"
        )


def _read_sides(
    members: str,
    nonmembers: str,
    tossed: "Coins | None",
    fields: Mapping[str, Any],
    template: "ChatTemplate",
) -> "Sides":
    """Records of members and of non-members, from a file each, or from one file by its coins."""
    from paperlib.audits.language.records import read_records

    if tossed is None:
        return (
            read_records(members, **fields, template=template),
            read_records(nonmembers, **fields, template=template),
        )
    id_field = fields["id_field"] or tossed.column
    records = read_records(members, **{**fields, "id_field": id_field}, template=template)
    included = tossed.included[tossed.places(records["name"].tolist())]
    return records[included], records[~included]


def _columns(sides: "Sides", column: str) -> tuple[list[Any], list[Any]]:
    """A column of both sides, members first."""
    members, nonmembers = sides
    return members[column].tolist(), nonmembers[column].tolist()


def _dates(sides: "Sides") -> tuple[list[str], list[str]] | None:
    """The dates of both sides; None where neither has any, a ValueError where one alone has."""
    have_dates = ["date" in side and len(side) > 0 for side in sides]
    if not any(have_dates):
        return None
    if not all(have_dates):
        raise ValueError(
            "--date-field: one of the files has no dates; give both, or leave them out of both"
        )
    return _columns(sides, "date")
