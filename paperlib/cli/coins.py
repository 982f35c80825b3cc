"""``paperlib coins`` and ``canaries``: fair coins before training, for records of the data or made
ones.
"""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count as count_from
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paperlib.cli import options
from paperlib.core.visible import visible_text

if TYPE_CHECKING:
    from paperlib.core import Coins, IntArray
    from paperlib.io.records import Records

EXAMPLES = {
    "coins": """
paperlib coins data.csv --out train.csv
paperlib coins data.parquet --out train.parquet --id customer
paperlib coins visits.csv --out train.csv --unit patient
paperlib coins images --out train_images --audit-fraction 0.1
paperlib coins data.csv --out train.csv --forget --alike label
# after training:
paperlib audit scores.csv --coins train.coins.json
""",
    "canaries": """
paperlib canaries corpus.jsonl --count 500 --kind random --out train.jsonl
paperlib canaries data.csv --count 99 --kind labels --label sex --out new.csv
paperlib canaries images --count 200 --kind labels --out train_images
# after training:
paperlib audit scores.csv --coins train.coins.json
""",
}
"""What help shows below each command, one call a line."""

TEXT_COLUMN = "text"
"""The column of texts where none is named."""


def coins(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help=(
                "Your training data: CSV, TSV, JSON lines, Parquet, a folder of files such as "
                "images, or a list of ids (.txt, one per line)."
            ),
        ),
    ],
    *,
    out: options.Out,
    id_column: options.Id = None,
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column of units, such as users, whose rows share one coin."
        ),
    ] = None,
    audit_fraction: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help=(
                "Share of the records, drawn at random, that get a coin, in (0, 1]; all others "
                "are trained on."
            ),
        ),
    ] = 1.0,
    forget: Annotated[
        bool,
        typer.Option(
            "--forget",
            help=(
                "For an audit of forgetting: in random pairs, one record is trained on and "
                "forgotten later, the other one never seen."
            ),
        ),
    ] = False,
    alike: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column that both records of a pair agree in."),
    ] = None,
    seed: options.SecretSeed = None,
    read_limit: options.ReadLimit = None,
) -> None:
    """Toss a fair coin for each record, before training.

    Train on heads, and leave out tails. An audit of the trained model then bounds the epsilon of
    the training for adding or removing a record. The coins file has ids and coins: keep it secret
    from those who compute the scores. Its hash can be published: it does not reveal the coins, and
    shows later that none was changed.
    """
    import numpy as np

    from paperlib.io import open_records
    from paperlib.io.files import write_text
    from paperlib.io.records import MADE_ID

    _check_together(unit, id_column, alike, forget=forget)
    records = open_records(data)
    to_score, sealed = output_paths(data, out, records, records.ending or ".txt")
    to_forget = out.with_name(to_score.name.replace(".audit", ".forget"))
    if forget:
        check_free(to_forget)
    column = unit or id_column or records.id_column()
    refuse_unknown_column(data, records, column)
    digests = records.digests(column)
    # The id of each record: a hash of its content in a table without ids, else its path in a folder
    # or its line in a list, else its cell in the column of ids.
    made_ids = digests if column is None and records.names is None else None
    names = made_ids or records.names or records.cells(column or "")
    warnings = _copy_warnings(data, digests, names, column)
    name_of_ids = column or ("id" if made_ids is None else MADE_ID)
    options_of_coins = {"seed": seed, "fraction": audit_fraction, "column": name_of_ids}
    tossed = _tossed(names, records, unit=unit, alike=alike, forget=forget, **options_of_coins)
    # Two flags for each record of the data, shape (n,): trained on, and to be scored.
    training = tossed.training(names)
    with_coin = set(tossed.ids)
    audited = np.array([name in with_coin for name in names])
    files_of_data = [to_forget, to_score, out] if forget else [to_score, out]
    with files_of_coins(tossed, sealed, *files_of_data):
        if records.names is None:
            records.write(to_score, audited, made_ids)
        else:
            write_text(to_score, "".join(f"{name}\n" for name in _by_row(names, tossed)))
        forgotten = _write_forgotten(to_forget, records, names, tossed) if forget else ""
        records.write(out, training, None)

    for warning in warnings:
        print(visible_text(f"Warning: {warning}"))
    _tell(
        sealed,
        tossed,
        f"{_tossed_words(tossed)}\n"
        f"{out}: {int(training.sum()):,} of {len(names):,} records, to train on\n"
        f"{forgotten}"
        f"{to_score}: {int(audited.sum()):,} records with a coin, to be scored after training by "
        f"their {name_of_ids!r}",
    )


def _check_together(
    unit: str | None, id_column: str | None, alike: str | None, *, forget: bool
) -> None:
    """Refuse (ValueError) options that contradict each other."""
    if alike is not None and not forget:
        raise ValueError("--alike: says what is alike in a pair; give --forget beside it")
    if unit and forget:
        raise ValueError("--unit: pairs are of single records; leave it out")
    if unit and id_column:
        raise ValueError(
            "--unit: contradicts --id; the unit is what has a coin and is named in the scores"
        )


def _tossed(
    names: Sequence[str],
    records: "Records",
    *,
    unit: str | None,
    alike: str | None,
    forget: bool,
    **options_of_coins: Any,
) -> "Coins":
    """Toss the coins: with ``forget`` for pairs of records, whose cells in the column ``alike``
    agree if it is named; else for single records, or for units.

    ``names`` has the id of each record, shape (n,); ``options_of_coins`` are the seed, fraction and
    column of `toss_coins`. Raises ValueError for a column that the data lack, and as `toss_coins`.
    """
    from paperlib.core.coins import toss_coins, toss_pairs

    if not forget:
        return toss_coins(names, unit=unit or "", **options_of_coins)
    if alike is None:
        return toss_pairs(names, **options_of_coins)
    refuse_unknown_column("--alike", records, alike)
    return toss_pairs(names, alike=records.cells(alike), **options_of_coins)


def _by_row(names: Sequence[str], tossed: "Coins") -> list[str]:
    """Names with a coin in the order of the data, which does not tell what is a pair."""
    with_coin = set(tossed.ids)
    return [name for name in dict.fromkeys(names) if name in with_coin]


def _write_forgotten(path: Path, records: "Records", names: Sequence[str], tossed: "Coins") -> str:
    """Write the records to forget to ``path``: rows of a table as in the data, files and lists as
    their names, one a line. Returns the line that tells so on the terminal.
    """
    from paperlib.io.files import write_text

    report = f"{path}: the record of each pair to forget after training\n"
    is_forgotten = tossed.forgotten(names)
    if records.names is None:
        records.write(path, is_forgotten, None)
        return report
    lines: list[str] = []
    for name, forgotten in zip(names, is_forgotten.tolist(), strict=True):
        if forgotten:
            lines.append(f"{name}\n")
    write_text(path, "".join(lines))
    return report


def check_free(path: Path) -> None:
    """Refuse (ValueError) a path where something is."""
    if path.exists():
        raise ValueError(f"{path}: exists already, and nothing is overwritten; give another --out")


@contextmanager
def files_of_coins(tossed: "Coins", sealed: Path, *others: Path) -> Iterator[None]:
    """Write the coins, then let the block write ``others``, the data last; after an error none of
    these files is there.

    Whoever trains on data whose coins were lost has lost the audit, so that these stand first, and
    go last. Where another run has written its coins at the same moment, its files stay.

    Raises:
        OutputError: The coins cannot be written.
    """
    from paperlib.io.files import output_error

    try:
        tossed.save(sealed)
    except OSError as error:
        raise output_error(sealed, error) from error
    try:
        yield
    except BaseException:
        for path in (*reversed(others), sealed):
            _remove(path)
        raise


def _remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _tossed_words(tossed: "Coins") -> str:
    """How many coins there are, for how many records or units, and how many show heads."""
    what = f"units of {tossed.unit!r}" if tossed.unit else "records"
    heads = int(tossed.included.sum())
    if tossed.forget:
        return f"{heads:,} coins for {heads:,} pairs among {tossed.records:,} records"
    return f"{len(tossed.ids):,} coins for {tossed.records:,} {what}, {heads:,} heads"


def _copy_warnings(
    data: str, digests: Sequence[str], names: Sequence[str], column: str | None
) -> list[str]:
    """One warning where records of different ids hold the same, else none.

    ``digests`` has a hash of what each record holds, ``names`` its id, shape (n,) both. Raises
    ValueError for such records where no ``column`` of ids says that they are different ones.
    """
    # Without ids each row counts as a record of its own, named by its number.
    copies = _copies(digests, names if column else range(len(names)))
    if not copies:
        return []
    copies_exist = f"{copies:,} of {len(names):,} records are the same as another one"
    if not column:
        raise ValueError(
            f"{data}: {copies_exist}; copies must share a coin, or the one that is trained on "
            "gives the other away: keep one of each, or say with --unit COLUMN what has a coin, or "
            "with --id COLUMN that they are different records"
        )
    return [
        f"{copies_exist}, but for {column!r}; if they are copies, give them one coin with --unit"
    ]


def output_paths(data: str, out: Path, records: "Records", ending: str) -> tuple[Path, Path]:
    """Paths of the two files beside ``out``: the records to be scored, which end in ``ending``, and
    the coins.

    Raises:
        ValueError: ``out`` has another ending than the data or lies in their folder, or one of the
            three paths is taken.
    """
    if not str(out).lower().endswith(records.ending):
        raise ValueError(f"--out: {out} gets the form of {data}; let it end in {records.ending}")
    if not records.ending and out.resolve().is_relative_to(Path(data).resolve()):
        raise ValueError(f"--out: {out} is a part of {data}; name a place beside it")
    stem = out.name[: len(out.name) - len(records.ending)]
    to_score = out.with_name(f"{stem}.audit{ending}")
    sealed = out.with_name(f"{stem}.coins.json")
    for path in (out, to_score, sealed):
        check_free(path)
    return to_score, sealed


def refuse_unknown_column(data: str, records: "Records", column: str | None) -> None:
    """Refuse (ValueError) a column that the data lack; None and "" name no column and pass."""
    from paperlib.core.checks import did_you_mean

    if column and column not in records.columns:
        columns = ", ".join(map(repr, records.columns)) or "none"
        hint = did_you_mean(column, records.columns)
        raise ValueError(f"{data}: no column {column!r}; the columns are {columns}{hint}")


_TO_PLAN = "To fix before training what the audit will do: paperlib seal plan.yaml\n"


def _tell(sealed: Path, tossed: "Coins", summary: str) -> None:
    """Print warnings of the coins, ``summary`` of what was written, the coins with their hash, and
    what comes next.
    """
    from paperlib.words.coins import seed_warnings

    for warning in seed_warnings(tossed):
        print(visible_text(f"Warning: {warning}"))
    moment = "training"
    next_steps = _TO_PLAN
    if tossed.forget:
        moment = "forgetting"
        next_steps = ""
    print(
        f"{summary}\n{sealed}: the coins, not to be seen by those who compute the scores\n"
        f"Hash of the coins, to be published before training: {tossed.commitment}\n"
        f"{next_steps}After {moment}: paperlib audit scores.csv --coins {sealed}"
    )


def _copies(digests: Sequence[str], names: Iterable[str | int]) -> int:
    """Number of records that hold the same as a record of another name; records that hold nothing
    beside their name, whose digest is "", do not count.
    """
    first_name: dict[str, str | int] = {}
    of_several_names: set[str] = set()
    for digest, name in zip(digests, names, strict=True):
        if first_name.setdefault(digest, name) != name:
            of_several_names.add(digest)
    return sum(digest in of_several_names for digest in digests if digest)


@dataclass(frozen=True, kw_only=True)
class _Canaries:
    """What canaries are made from: records of the data, the column of their ids if they have one,
    and how many are made with which seed.
    """

    data: str
    records: "Records"
    column: str | None
    count: int
    seed: int | None


def canaries(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help=(
                "Your training data: texts (JSON lines or a table with a column of texts; .txt, "
                "one per line), a table with a column of labels, or a folder of images with a "
                "folder for each class."
            ),
        ),
    ],
    *,
    count: Annotated[
        int, typer.Option(min=1, help="Number of canaries; about half of them are planted.")
    ],
    kind: Annotated[
        str,
        typer.Option(
            help=(
                "random: random characters of your texts. tokens: random words of your texts. "
                "new-vocabulary: such words and an invented one for each canary. "
                "high-temperature: samples of --model. labels: records removed from the data, "
                "each with a wrong label."
            )
        ),
    ],
    out: options.Out,
    repetitions: Annotated[
        int,
        typer.Option(
            min=1,
            help=(
                "Copies of a canary with heads: more copies are learned better, but the bound is "
                "then for adding or removing all copies together."
            ),
        ),
    ] = 1,
    text: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the texts.")] = TEXT_COLUMN,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER", help="Language model before training, for high-temperature."
        ),
    ] = None,
    temperature: Annotated[
        float,
        typer.Option(help="Temperature of the samples, above 0; higher gives less probable texts."),
    ] = 2.0,
    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of the labels, for the kind labels."),
    ] = None,
    id_column: options.Id = None,
    seed: options.SecretSeed = None,
    read_limit: options.ReadLimit = None,
) -> None:
    """Make records and insert those whose fair coin shows heads.

    They are inserted at random places of the data. All records of the data are trained on, except
    those that get a wrong label. An audit of the trained model bounds the epsilon of the training
    for adding or removing a canary, however the canaries were made. The coins file has ids and
    coins: keep it secret from those who compute the scores.
    """
    import numpy as np

    from paperlib.core import toss_coins
    from paperlib.generators.canaries import make_canaries, planted_order
    from paperlib.io import open_records
    from paperlib.io.files import write_text
    from paperlib.io.records import MADE_ID

    _check_kind(kind, label, model)
    records = open_records(data)
    is_folder = not records.ending
    is_list = records.ending.startswith(".txt")
    to_score, sealed = output_paths(data, out, records, ".jsonl" if is_list else records.ending)
    column = id_column or records.id_column()
    refuse_unknown_column(data, records, column)
    source = _Canaries(data=data, records=records, column=column, count=count, seed=seed)
    # Numbers of the records that canaries stand for, which are not trained on, and the canaries.
    if kind == "labels":
        replaced, made = _wrong_rows(source, label)
    elif is_folder:
        raise ValueError(f"--kind: {data} holds no texts; the kind for images is labels")
    else:
        make = partial(
            make_canaries, count=count, kind=kind, seed=seed, model=model, temperature=temperature
        )
        replaced = np.zeros(0, dtype=np.int64)
        made = _made_texts(source, text, make)
    size = len(records.contents)
    with_canaries = records.added(made)  # behind the records of the data
    names = _names(with_canaries, column)[size:]
    name_of_ids = "id" if is_folder else column or MADE_ID
    tossed = toss_coins(names, seed=seed, column=name_of_ids, copies=repetitions)
    # Numbers of the records to write: all canaries, those to train on, and those of the data.
    added = np.arange(size, size + count)
    planted = np.repeat(added[tossed.included], repetitions)
    kept = np.delete(np.arange(size), replaced)
    with files_of_coins(tossed, sealed, to_score, out):
        if is_list:
            rows = [{MADE_ID: name, **row} for name, row in zip(names, made, strict=True)]
            lines = [f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows]
            write_text(to_score, "".join(lines))
        elif is_folder or column:
            with_canaries.write(to_score, added, None)
        else:  # a first column of made ids; those of the data are not written here
            with_canaries.write(to_score, added, [*[""] * size, *names])
        with_canaries.write(out, planted_order(kept, planted, seed=seed), None)

    _tell(
        sealed,
        tossed,
        f"{count:,} canaries, of which {int(tossed.included.sum()):,} have heads and are planted, "
        f"{repetitions:,} of each\n"
        f"{out}: {kept.size:,} of {size:,} records and {planted.size:,} planted ones, to train on\n"
        f"{to_score}: all canaries, to be scored after training by their {name_of_ids!r}",
    )


def _check_kind(kind: str, label: str | None, model: str | None) -> None:
    """Refuse (ValueError) an unknown kind of canaries, and options that are not for this kind."""
    from paperlib.core.checks import check_choice
    from paperlib.generators.canaries import TEXT_KINDS

    check_choice("kind", kind, (*TEXT_KINDS, "labels"))
    if label and kind != "labels":
        raise ValueError("--label: is for the kind labels; leave it out, or give --kind labels")
    if model and kind == "labels":
        raise ValueError("--model: is for the kind high-temperature; leave it out")


def _names(records: "Records", column: str | None) -> Sequence[str]:
    """The id of each record, shape (n,): the path of a file of a folder, the cell of the column of
    ids, and without one a hash of what the record holds.
    """
    if not records.ending:
        return records.names or []
    return records.cells(column) if column else records.digests()


def _made_texts(
    source: _Canaries, text: str, make: Callable[[list[str]], list[str]]
) -> list[dict[str, Any]]:
    """Canaries of made texts, ``source.count`` rows of a cell by its column.

    ``text`` is the column of texts, and ``make`` turns the texts of the data into those of the
    canaries. All other cells are those of a random record, but for an id of its own; of a chat the
    last answer is made. Raises ValueError for a missing column, and for one of other values.
    """
    records = source.records
    if records.names is not None:  # a list, which has no columns
        refuse_unknown_column(source.data, records, None if text == TEXT_COLUMN else text)
        return [{"text": canary} for canary in make(records.names)]
    if text not in records.columns:
        chats = _made_chats(source, make)
        if chats:
            return chats
    refuse_unknown_column(source.data, records, text)
    if not all(isinstance(row.get(text), str | None) for row in records.contents):
        raise ValueError(
            f"{source.data}: column {text!r} holds other values than text; name another with --text"
        )
    made = make(records.cells(text))
    return _in_records(source, made, lambda row, canary: {**row, text: canary})


def _made_chats(source: _Canaries, make: Callable[[list[str]], list[str]]) -> list[dict[str, Any]]:
    """Chats of random records whose last answer is a text made from all last answers; an empty list
    where a record of the data holds no chat.
    """
    from paperlib.generators.chats import last_answer, with_last_answer

    answers: list[str] = []
    for row in source.records.contents:
        answer = last_answer(row)
        if answer is None:
            return []
        answers.append(answer)
    return _in_records(source, make(answers), with_last_answer)


def _in_records(
    source: _Canaries,
    made: Sequence[str],
    put: Callable[[dict[str, Any], str], dict[str, Any]],
) -> list[dict[str, Any]]:
    """Random records of the data, each with an id of its own and one of the texts ``made``, shape
    (count,), which ``put`` writes into it; a record may be drawn several times.
    """
    from paperlib.generators.canaries import example_rows

    records = source.records
    examples = example_rows(len(records.contents), source.count, seed=source.seed).tolist()
    ids = _new_ids(records, source.column) if source.column else repeat(None)
    canaries: list[dict[str, Any]] = []
    for example, canary, canary_id in zip(examples, made, ids, strict=False):  # ids never end
        row = dict(records.contents[example])
        if source.column:
            row[source.column] = canary_id
        canaries.append(put(row, canary))
    return canaries


def _new_ids(records: "Records", column: str) -> Iterator[str | int]:
    """Ids that no record has in the column, without end: where all are numbers those above the
    largest, as text or numbers like them, else canary-1, canary-2, ...
    """
    taken = set(records.cells(column))
    if all(map(str.isdecimal, taken)):
        numbers = count_from(max(map(int, taken)) + 1)
        is_text = isinstance(records.contents[0][column], str)
        return map(str, numbers) if is_text else numbers
    names = (f"canary-{number}" for number in count_from(1))
    return (name for name in names if name not in taken)


def _wrong_rows(source: _Canaries, label: str | None) -> tuple["IntArray", list[dict[str, Any]]]:
    """Records drawn to be canaries, and each of them with a wrong label in place of its own.

    Returns:
        Numbers of the drawn records, rising, shape (count,), which are to be left out of the data;
        and the canary of each, as `Records.added` takes it: the cells of a row, or the path that
        its file is copied to and the file's name.

    Raises:
        ValueError: Too few records to draw from, or what `_labels` and `wrong_labels` refuse.
    """
    import numpy as np

    from paperlib.generators.canaries import wrong_labels

    records = source.records
    labels = _labels(source.data, records, label)
    candidates = _without_copies(records.digests(label, source.column), labels)
    if source.count > len(candidates):
        raise ValueError(
            f"--count: {len(candidates):,} of {len(records.contents):,} records have a label and "
            "no copy; ask for no more"
        )
    labels_to_change = [labels[row] for row in candidates]
    drawn, wrong = wrong_labels(labels_to_change, source.count, seed=source.seed)
    rows = np.array(candidates)[drawn]
    canaries: list[dict[str, Any]] = []
    for row, wrong_label in zip(rows.tolist(), wrong, strict=True):
        if records.names is None:
            canaries.append({**records.contents[row], label or "": wrong_label})
        else:
            canaries.append(_relabelled_file(records, row, wrong_label))
    return rows, canaries


def _without_copies(digests: Sequence[str], labels: Sequence[Any]) -> list[int]:
    """Numbers of the records that have a label and content which no other record has: a copy that
    stays in the data would teach the model the right label.

    ``digests`` has a hash of what each record holds beside label and id, "" for nothing; shape
    (n,), as ``labels``, where None and "" are none.
    """
    times = Counter(digests)
    rows: list[int] = []
    for row, (digest, label) in enumerate(zip(digests, labels, strict=True)):
        if digest and times[digest] == 1 and label not in (None, ""):
            rows.append(row)
    return rows


def _relabelled_file(records: "Records", row: int, label: str) -> dict[str, str]:
    """The canary of a file: a copy in the folder of the class ``label``, named by its content, as
    a file of its old name may be there.
    """
    name = (records.names or [])[row]
    digest = records.contents[row]["sha256"][:24]  # as long as the ids of records without ids
    return {"path": f"{label}/{digest}{Path(name).suffix}", "source": name}


def _labels(data: str, records: "Records", label: str | None) -> list[Any]:
    """The label of each record, shape (n,): the folder of a file, or the cell of the column
    ``label``.

    Raises:
        ValueError: A list of texts, a file in no folder, or a column that is not named or missing.
    """
    from paperlib.generators.canaries import TEXT_KINDS

    if records.ending.startswith(".txt"):
        raise ValueError(
            f"--kind: the texts of {data} have no labels; the kinds are {', '.join(TEXT_KINDS)}"
        )
    if records.names is not None:
        outside = [name for name in records.names if "/" not in name]
        if outside:
            raise ValueError(f"{data}: expected a folder for each class; {outside[0]} is in none")
        return [name.split("/")[0] for name in records.names]
    if label is None:
        raise ValueError(
            f"--label: name the column of labels; columns are {', '.join(records.columns)}"
        )
    refuse_unknown_column(data, records, label)
    return [row.get(label) for row in records.contents]
