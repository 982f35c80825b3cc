"""``paperlib audit-texts``: any texts, and which of them a language model was trained on, from
files.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from paperlib.cli import options
from paperlib.cli.audits.scores import paragraphs
from paperlib.cli.gate import ModelLoading, Wishes
from paperlib.core import options as core_options

if TYPE_CHECKING:
    import pandas as pd

    from paperlib.audits.language.chat_templates import ChatTemplate
    from paperlib.core import Coins

    Sides = tuple[pd.DataFrame, pd.DataFrame]

EXAMPLES = {
    "audit-texts": """
paperlib audit-texts my_model members.jsonl nonmembers.jsonl --base gpt2
paperlib audit-texts my_model texts.jsonl --coins train.coins.json
paperlib audit-texts my_model members.jsonl nonmembers.jsonl --fail-above 3
""",
}
"""What help shows below each command, one call a line."""


def audit_texts(
    model: options.LanguageModel,
    members: Annotated[
        str,
        typer.Argument(
            metavar="MEMBERS",
            help=(
                "Texts that the model was trained on: JSON lines, or a .txt file with one text "
                "per line. With --coins, all texts that have a coin."
            ),
        ),
    ],
    nonmembers: Annotated[
        str,
        typer.Argument(
            metavar="NONMEMBERS", help="Held-out texts of the same source; omit with --coins."
        ),
    ] = "",
    *,
    base: Annotated[
        str,
        typer.Option(
            help="Base model of MODEL, for scores that compare both; trained on neither file."
        ),
    ] = "",
    coins: options.Coins = None,
    on: options.On = "all",
    text_field: Annotated[
        str,
        typer.Option(
            help=(
                "Field of JSON lines that holds the text, or the messages of a chat. Default: "
                "text, else messages, conversations, or prompt and completion."
            )
        ),
    ] = "text",
    id_field: Annotated[
        str,
        typer.Option(
            "--id", metavar="FIELD", help="Field that names each text. Default: id, else its row."
        ),
    ] = "",
    date_field: Annotated[
        str,
        typer.Option(
            metavar="FIELD", help="Field of each text's date. Default: date, if there is one."
        ),
    ] = "",
    attack: Annotated[
        Literal[
            "learned",
            "loss",
            "min_k",
            "min_k_pp",
            "zlib",
            "hinge",
            "ratio",
            "difference",
            "ez",
            "wbc",
        ],
        typer.Option(
            help="Score for the bound; learned: all combined. Choose it before you see results."
        ),
    ] = "learned",
    prefix_tokens: Annotated[
        int,
        typer.Option(
            min=1,
            help=(
                "Tokens of each text that serve as the prompt of an extraction; on completions, "
                "all before the first completion does."
            ),
        ),
    ] = 50,
    suffix_tokens: Annotated[
        int, typer.Option(min=1, help="Tokens that the model must then produce.")
    ] = 50,
    tries: Annotated[int, typer.Option(min=1, help="Attempts per extraction.")] = 100,
    chance: Annotated[
        float, typer.Option(help="Smallest probability of a listed extraction, in (0, 1).")
    ] = 0.5,
    copies: Annotated[
        int, typer.Option(min=1, help="Copies of each member in the training data, for the claims.")
    ] = 1,
    batch_size: options.BatchSize = 32,
    delta: options.Delta = 0.0,
    confidence: options.Confidence = 0.95,
    design: Annotated[
        core_options.Design | None,
        typer.Option(
            help=(
                "As in `paperlib audit`. Default: randomized with --coins; else game, for members"
                " and others split at random."
            )
        ),
    ] = None,
    seed: options.Seed = 0,
    group_field: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD",
            help=(
                "Field, such as a source, whose values look like authors of several texts though "
                "each text is a record of its own; can be repeated."
            ),
        ),
    ] = None,
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
    """Audit which texts a language model was trained on.

    There is every membership score, a bound, and the texts that can be extracted. There is no bound
    if members and non-members differ without the model (words, their order, length, date, the
    base).
    """
    from paperlib.audits.language.chat_templates import ChatTemplate
    from paperlib.audits.language.records import check_fields
    from paperlib.audits.language.texts import audit_texts, check_sides
    from paperlib.audits.scores import ScoreOptions
    from paperlib.core import Coins
    from paperlib.core.checks import check_in

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
    about_file = wishes.checked(members, nonmembers, coins and str(coins))
    check_in("(0, 1)", "--chance", chance)
    _check_files(attack, base, nonmembers, coins)
    fields = {"text_field": text_field, "id_field": id_field, "date_field": date_field}
    tossed = None if coins is None else Coins.load(coins)
    sides = _read_sides(members, nonmembers, tossed, {**fields, "on": on}, ChatTemplate(model))
    texts = _columns(sides, "text")
    dates = _dates(sides)
    # On completions: each text with what training took its loss from.
    scored = _columns(sides, "text" if on == "all" else "learned")
    if tossed is None:  # coins chose the side of each text
        check_fields(*sides, groups=group_field or ())
    check_sides(*texts)  # before the model is loaded: a mistake shows at once
    loaded, tokenizer = loading.load(model)
    # How texts are scored: tokens of the prompt and of the extracted text, texts of a batch.
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
    score_options: ScoreOptions = {"delta": delta, "confidence": confidence, "seed": seed}
    if design is not None:
        score_options["design"] = design
    if tossed is not None:
        score_options["coins"] = tossed
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
        **score_options,
    )
    files = {
        "Model": model,
        "Base": base,
        "Members": members,
        "Non-members": nonmembers,
        "Coins": str(coins or ""),
    }
    document = audit.document(
        subject=f"{model} on {members}",
        log=log,
        tries=tries,
        chance=chance,
        **wishes.parts(about_file, files, {"model": model}, attack=attack, on=on, seed=seed),
    )
    opening = f"{model} on {len(texts[0])} members and {len(texts[1])} non-members"
    text = [opening, " ".join(document.verdict.sentences)]
    if audit.audits is not None:
        text = paragraphs(opening, audit.audits, document)
    text += [audit.shown, document.more["extraction"]["said"]]
    return wishes.deliver(document, members, text)


def _check_files(attack: str, base: str, nonmembers: str, coins: Path | None) -> None:
    """Refuse (ValueError) an attack that compares two models where no base is named, and a file of
    non-members beside coins, which each tell members from non-members, or neither of the two.
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
    """Records of members and of non-members, a row each as by `read_records`: from a file each, or,
    with the coins ``tossed``, all from the file ``members``.

    ``fields`` are the options of `read_records` that name fields, and ``on``. Raises ValueError as
    `read_records`, and for records that do not fit the coins.
    """
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
    """The cells of a column, of members, shape (m,), and of non-members, shape (n,)."""
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
