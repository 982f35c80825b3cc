"""``paperlib mark`` and ``audit-marks``: like versions of texts, of which one is published, and
whether that one was used.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paperlib.cli import options
from paperlib.cli.audits.scores import paragraphs
from paperlib.cli.coins import (
    TEXT_COLUMN,
    check_free,
    files_of_coins,
    output_paths,
    refuse_unknown_column,
)
from paperlib.cli.gate import ModelLoading, Wishes
from paperlib.core.visible import visible_text

if TYPE_CHECKING:
    from paperlib.core import Coins, MembershipScores
    from paperlib.io.records import Records

EXAMPLES = {
    "mark": """
paperlib mark texts.jsonl --out published.jsonl
paperlib mark poems.txt --out published.txt --versions 4 --identifier
# later:
paperlib audit-marks published.audit.jsonl --coins published.coins.json \\
  --scores losses.csv
""",
    "audit-marks": """
paperlib audit-marks published.audit.jsonl --coins published.coins.json \\
  --scores losses.csv
paperlib audit-marks published.audit.jsonl --coins published.coins.json \\
  --model my_model --base gpt2
paperlib audit-marks published.audit.jsonl --coins published.coins.json \\
  --answers answers.jsonl
""",
}
"""What help shows below each command, one call a line."""


def mark(
    data: Annotated[
        str,
        typer.Argument(
            metavar="TEXTS",
            help=(
                "Your texts, before you publish them: JSON lines or a table with a column of "
                "texts; .txt, one per line."
            ),
        ),
    ],
    *,
    out: Annotated[
        Path,
        typer.Option(
            metavar="PATH",
            callback=options.in_a_folder,
            help=(
                "Output for the texts to publish, in the form of TEXTS. The same folder gets "
                "NAME.coins.json, NAME.audit.jsonl with all versions, and NAME.prompts.jsonl."
            ),
        ),
    ],
    versions: Annotated[int, typer.Option(min=2, max=64, help="Versions of each text.")] = 8,
    identifier: Annotated[
        bool,
        typer.Option(
            "--identifier",
            help=(
                "End each text with a random identifier, for short texts; it is easy to learn, and"
                " easy to remove."
            ),
        ),
    ] = False,
    text: Annotated[
        str, typer.Option(metavar="COLUMN", help="Column of the texts to mark.")
    ] = TEXT_COLUMN,
    id_column: options.Id = None,
    seed: options.SecretSeed = None,
    read_limit: options.ReadLimit = None,
) -> None:
    """Mark texts before they are published, to show their use.

    Versions differ in spelling, punctuation and the order of lists; code, quotations and names stay
    as they are. A text that can be written in fewer ways is published as it stands, without a mark.
    Keep all files but the published one secret, and publish the hash of the coins.
    """
    import numpy as np

    from paperlib.audits.language.marks import prompts_of
    from paperlib.io import open_records
    from paperlib.io.files import write_text
    from paperlib.words.coins import seed_warnings

    records = open_records(data)
    all_versions, sealed = output_paths(data, out, records, ".jsonl")
    prompts = out.with_name(all_versions.name.replace(".audit.", ".prompts."))
    check_free(prompts)
    texts = _texts(data, records, text, id_column)
    made = _made(data, texts, versions, identifier=identifier, seed=seed)
    tossed, by_id = _drawn(made, seed)
    # The version that was drawn of each text, by the text's name, which stands before the last "/"
    # of the id of a version.
    published: dict[str, str] = {}
    for version_id, is_drawn in zip(tossed.ids, tossed.included, strict=True):
        if is_drawn:
            published[version_id.rpartition("/")[0]] = by_id[version_id]
    cells_of = dict(zip(texts, records.contents, strict=True))
    with_marks = records.added([{**cells_of[name], text: new} for name, new in published.items()])
    # The row of each text: its published version stands behind the texts as they were.
    row_of = {name: row for row, name in enumerate(texts)}
    row_of.update({name: len(texts) + number for number, name in enumerate(published)})
    to_ask = prompts_of(tossed, by_id)
    with files_of_coins(tossed, sealed, prompts, all_versions, out):
        write_text(prompts, _lines("prompt", to_ask))
        write_text(all_versions, _lines("text", by_id))
        all_versions.chmod(0o600)  # as the coins: whoever trains on the others spoils the test
        with_marks.write(out, np.array(list(row_of.values())), None)

    for warning in seed_warnings(tossed):
        print(visible_text(f"Warning: {warning}"))
    print(
        f"{len(published):,} of {len(texts):,} texts have a mark, a version of {versions}; the "
        f"others can be written in fewer ways\n"
        f"{out}: all texts, to be published\n"
        f"{sealed}: which version of each was drawn; keep it secret\n"
        f"{all_versions}: all versions, to be scored later; keep it secret\n"
        f"{prompts}: {len(to_ask):,} texts to let a chat continue, where there are no losses\n"
        f"Hash of the coins, to be published with the texts: {tossed.commitment}\n"
        f"Later: paperlib audit-marks {all_versions} --coins {sealed} --scores losses.csv"
    )


def _texts(data: str, records: "Records", text: str, id_column: str | None) -> dict[str, str]:
    """The texts by their name, in the order of the data: the cell of a column of ids, else the
    number of the row, from 1.

    ``text`` is the column of texts, and ``id_column`` that of names, None for one of a usual name.
    Raises ValueError for a folder, a missing column, a row without text, and an empty or equal id.
    """
    if not records.ending:  # only a folder has none
        raise ValueError(f"{data}: is a folder; bring a file with a text in each row")
    if records.names is not None:  # the lines of a list of texts
        _check_list(data, records, text, id_column)
        return {str(row): line for row, line in enumerate(records.names, 1)}
    refuse_unknown_column(data, records, text)
    cells = [row.get(text) for row in records.contents]
    wrong = [row for row, cell in enumerate(cells, 1) if not isinstance(cell, str) or not cell]
    if wrong:
        raise ValueError(f"{data}: row {wrong[0]} holds no text in {text!r}; fill or drop it")
    column = id_column or records.id_column()
    refuse_unknown_column(data, records, column)
    names = list(map(str, range(1, len(cells) + 1)))
    if column:
        names = records.cells(column)
    if "" in names or len(set(names)) < len(names):
        raise ValueError(f"{data}: {column!r} has empty or equal ids; each text needs its own")
    return dict(zip(names, map(str, cells), strict=True))


def _check_list(data: str, records: "Records", text: str, id_column: str | None) -> None:
    """Refuse (ValueError) names of columns for a list of texts, which has none."""
    for column in (None if text == TEXT_COLUMN else text, id_column):
        refuse_unknown_column(data, records, column)


def _made(
    data: str, texts: Mapping[str, str], versions: int, *, identifier: bool, seed: int | None
) -> dict[str, list[str]]:
    """As many versions as asked for, by the name of the text, of each text that has so many.

    ``identifier`` ends each version with a random identifier. Raises ValueError where fewer than
    `FEWEST_TEXTS` texts have so many versions.
    """
    import numpy as np

    from paperlib.bounds.ranks.marks import FEWEST_TEXTS
    from paperlib.generators.versions import make_versions

    # Stream 4 of the seed: coins and canaries draw from others.
    rng = np.random.default_rng(None if seed is None else [seed, 4])
    made: dict[str, list[str]] = {}
    for name, text in texts.items():
        versions_of_text = make_versions(text, versions, rng=rng, identifier=identifier)
        if versions_of_text:
            made[name] = versions_of_text
    if len(made) < FEWEST_TEXTS:
        raise ValueError(
            f"{data}: {len(made)} of {len(texts):,} texts can be written in {versions} ways, and "
            f"{FEWEST_TEXTS} are needed; lower --versions, or give --identifier"
        )
    return made


def _drawn(made: Mapping[str, list[str]], seed: int | None) -> tuple["Coins", dict[str, str]]:
    """The coins that draw a version of each text, and all versions, the texts themselves by the ids
    that the coins have.
    """
    from paperlib.audits.language.marks import version_names
    from paperlib.core.coins import toss_versions

    names = [version_names(name, versions) for name, versions in made.items()]
    by_id: dict[str, str] = {}
    for names_of_text, versions in zip(names, made.values(), strict=True):
        by_id.update(zip(names_of_text, versions, strict=True))
    return toss_versions(names, seed=seed), by_id


def _lines(field: str, by_id: Mapping[str, str]) -> str:
    """JSON lines with an id and a text each."""
    rows = [json.dumps({"id": name, field: text}) for name, text in by_id.items()]
    return "".join(f"{row}\n" for row in rows)


def audit_marks(
    versions: Annotated[
        str,
        typer.Argument(metavar="VERSIONS", help="NAME.audit.jsonl of `paperlib mark`."),
    ],
    *,
    coins: Annotated[
        Path, typer.Option(metavar="FILE", help="NAME.coins.json of `paperlib mark`.")
    ],
    scores: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A loss, or score, of each version by its id."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", help="Causal language model: a folder, or a name on the hub."
        ),
    ] = None,
    answers: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Answers of a chat to NAME.prompts.jsonl: JSON lines with id and answer.",
        ),
    ] = None,
    base: Annotated[
        str,
        typer.Option(
            help=(
                "Model that did not see the texts, with the tokenizer of MODEL; both are compared."
            )
        ),
    ] = "",
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="As --scores, of a model that did not see the texts, for the blind test.",
        ),
    ] = None,
    kind: options.Kind = None,
    batch_size: options.BatchSize = 32,
    delta: options.Delta = 0.0,
    confidence: options.Confidence = 0.95,
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
    """Say whether marked texts were used to train a model.

    The published version of each text is compared with its like versions: by losses or scores from
    a file, under a model, or by the answers of a chat. The p-value is exact for any number of
    texts. Versions that stand apart without the model, such as by their length, are refused.
    """
    from paperlib.audits.language.marks import audit_marks, sealed_versions
    from paperlib.audits.language.records import read_records
    from paperlib.core import Coins
    from paperlib.io import read_scores

    wishes = Wishes(
        claimed_epsilon=claimed_epsilon,
        fail_above=fail_above,
        junit=junit,
        about=about,
        questions=questions or (),
        output=output,
        as_json=as_json,
    )
    about_file = wishes.checked(versions, str(coins), scores, model, answers, base, reference)
    if [scores, model, answers].count(None) != 2:
        raise ValueError("--scores: give one of --scores, --model and --answers")
    if base and model is None:
        raise ValueError("--base: is compared with --model; for --scores give --reference")
    sealed = Coins.load(coins)
    frame = read_records(versions, id_field="id")
    texts = dict(zip(frame["name"], frame["text"], strict=True))
    sealed_versions(sealed, texts)  # before a model is loaded: a mistake shows at once
    compared = None
    if reference is not None:
        compared = read_scores(reference, kind=kind, coins=sealed).scores
    if scores is not None:
        values = read_scores(scores, kind=kind, coins=sealed).scores
    elif answers is not None:
        values = _of_answers(answers, sealed, texts)
    else:
        loading = ModelLoading(dtype=dtype, device=device)
        values, of_base = _of_models(loading, str(model), base, sealed, texts, batch_size)
        compared = compared or of_base
    audits = audit_marks(
        values, sealed, texts, reference=compared, delta=delta, confidence=confidence
    )
    files = {
        "Versions": versions,
        "Coins": str(coins),
        "Scores": scores or "",
        "Model": model or "",
        "Base": base,
        "Answers": answers or "",
        "Reference": reference or "",
    }
    document = audits.document(
        title=f"Were the texts of {Path(versions).name} used?", **wishes.parts(about_file, files)
    )
    opening = f"{sealed.records:,} texts, {sealed.versions} versions of each"
    return wishes.deliver(document, versions, paragraphs(opening, audits, document))


def _of_answers(answers: str, sealed: "Coins", texts: Mapping[str, str]) -> "MembershipScores":
    """Scores of all versions by the answers of a chat: ``answers`` is a file of JSON lines with id
    and answer, ``texts`` has the versions by their ids.
    """
    from paperlib.audits.language.marks import completion_scores
    from paperlib.audits.language.records import read_records

    replies = read_records(answers, text_field="answer", id_field="id")
    by_id = dict(zip(replies["name"], replies["text"], strict=True))
    return sealed.scores(completion_scores(sealed, texts, by_id), kind="scores")


def _of_models(
    loading: ModelLoading,
    model: str,
    base: str,
    sealed: "Coins",
    texts: Mapping[str, str],
    batch_size: int,
) -> "tuple[MembershipScores, MembershipScores | None]":
    """Scores of all versions under ``model``, less those under ``base`` where one is named, and
    those under the base alone, None without one.

    ``texts`` has the versions by their ids, ``batch_size`` counts texts. Raises ValueError for a
    base with another tokenizer.
    """
    from paperlib.audits.language.marks import model_scores

    loaded, tokenizer = loading.load(model)
    reference = None
    if base:
        reference, other = loading.load(base)
        if other.get_vocab() != tokenizer.get_vocab():
            raise ValueError(
                "--base: has another tokenizer than --model; score both yourself, and give "
                "--scores and --reference"
            )
    of_model, of_base = model_scores(
        loaded, tokenizer, texts, reference=reference, batch_size=batch_size
    )
    compared = None if of_base is None else sealed.scores(of_base, kind="scores")
    return sealed.scores(of_model, kind="scores"), compared
