"""``paperlib coins`` and ``canaries``: fair coins before training, for records of the data or made
ones.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count as count_from
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paperlib.core import Coins, IntArray
    from paperlib.io import Records


def coins(
    data: str,
    out: Path,
    id_column: str | None = None,
    unit: str | None = None,
    audit_fraction: float = 1.0,
    seed: int | None = None,
) -> None:
    """Toss a fair coin for each record before training: train on heads, leave out tails.

    An audit of the trained model then bounds the epsilon of the training for adding or removing a
    record. The coins file has ids and coins: keep it secret from those who compute the scores. Its
    hash can be published: it does not reveal the coins, and shows later that none was changed.
    """
    import numpy as np

    from paperlib.core import toss_coins
    from paperlib.io import MADE_ID, open_records, write_text

    if unit and id_column:
        raise ValueError(
            "--unit: contradicts --id; the unit is what has a coin and is named in the scores"
        )
    records = open_records(data)
    to_score, sealed = _places(data, out, records, records.ending or ".txt")
    column = unit or id_column or records.id_column()
    _check_column(data, records, column)
    digests = records.digests(column)
    made = digests if column is None and records.names is None else None
    names = made or records.names or records.cells(column or "")
    copies = _copies(digests, names if column else range(len(names)))
    same = f"{copies:,} of {len(names):,} records are the same as another one"
    if copies and not column:
        raise ValueError(
            f"{data}: {same}; copies must share a coin, or the one that is trained on gives the "
            "other away: keep one of each, or say with --unit COLUMN what has a coin, or with --id "
            "COLUMN that they are different records"
        )
    called = column or ("id" if made is None else MADE_ID)
    tossed = toss_coins(names, seed=seed, fraction=audit_fraction, unit=unit or "", column=called)
    keep, with_coin = tossed.training(names), set(tossed.ids)
    audited = np.array([name in with_coin for name in names])
    records.write(out, keep, None)
    if records.names is None:
        records.write(to_score, audited, made)
    else:
        write_text(to_score, "".join(f"{name}\n" for name in tossed.ids))
    tossed.save(sealed)

    if copies:
        print(
            f"Warning: {same}, but for {column!r}; if they are copies, give them one coin with "
            "--unit"
        )
    of = f"units of {unit!r}" if unit else "records"
    _tell(
        sealed,
        tossed,
        f"{len(tossed.ids):,} coins for {tossed.records:,} {of}, {int(tossed.included.sum()):,} "
        f"heads\n{out}: {int(keep.sum()):,} of {len(names):,} records, to train on\n"
        f"{to_score}: {int(audited.sum()):,} records with a coin, to be scored after training by "
        f"their {called!r}",
    )


def _places(data: str, out: Path, records: "Records", ending: str) -> tuple[Path, Path]:
    """The files beside ``out``: what is to be scored, and the coins; a ValueError where a file is
    there.
    """
    if not str(out).lower().endswith(records.ending):
        raise ValueError(f"--out: {out} gets the form of {data}; let it end in {records.ending}")
    if not records.ending and out.resolve().is_relative_to(Path(data).resolve()):
        raise ValueError(f"--out: {out} is a part of {data}; name a place beside it")
    stem = out.name[: len(out.name) - len(records.ending)]
    beside = out.with_name(f"{stem}.audit{ending}"), out.with_name(f"{stem}.coins.json")
    for path in (out, *beside):
        if path.exists():
            raise ValueError(
                f"{path}: exists already, and nothing is overwritten; give another --out"
            )
    return beside


def _check_column(data: str, records: "Records", column: str | None) -> None:
    from paperlib.core import did_you_mean

    if column and column not in records.columns:
        known = ", ".join(map(repr, records.columns)) or "none"
        near = did_you_mean(column, records.columns)
        raise ValueError(f"{data}: no column {column!r}; the columns are {known}{near}")


def _tell(sealed: Path, tossed: "Coins", said: str) -> None:
    """Print warnings of the coins, what was made of the data, and what comes next."""
    for warning in tossed.warnings:
        print(f"Warning: {warning}")
    print(
        f"{said}\n{sealed}: the coins, not to be seen by those who compute the scores\n"
        f"Hash of the coins, to be published before training: {tossed.commitment}\n"
        "To fix before training what the audit will do: paperlib seal plan.yaml\n"
        f"After training: paperlib audit scores.csv --coins {sealed}"
    )


def _copies(digests: Sequence[str], names: Iterable[str | int]) -> int:
    """Number of records that hold the same as one of another name."""
    first: dict[str, str | int] = {}
    pairs = zip(digests, names, strict=True)
    shared = {digest for digest, name in pairs if first.setdefault(digest, name) != name}
    return sum(digest in shared for digest in digests if digest)


def canaries(
    data: str,
    count: int,
    kind: str,
    out: Path,
    repetitions: int = 1,
    text: str = "text",
    model: str | None = None,
    temperature: float = 2.0,
    label: str | None = None,
    id_column: str | None = None,
    seed: int | None = None,
) -> None:
    """Make records for an audit, and insert those whose fair coin shows heads at random places of
    the data.

    All records of the data are trained on, except those that get a wrong label. An audit of the
    trained model bounds the epsilon of the training for adding or removing a canary, however the
    canaries were made. The coins file has ids and coins: keep it secret from those who compute the
    scores.
    """
    import numpy as np

    from paperlib.core import check_choice, toss_coins
    from paperlib.generators.canaries import TEXT_KINDS, make_canaries, planted_order
    from paperlib.io import MADE_ID, open_records, write_text

    check_choice("kind", kind, (*TEXT_KINDS, "labels"))
    if label and kind != "labels":
        raise ValueError("--label: is for the kind labels; leave it out, or give --kind labels")
    if model and kind == "labels":
        raise ValueError("--model: is for the kind high-temperature; leave it out")
    records = open_records(data)
    is_folder, is_list = not records.ending, records.ending.startswith(".txt")
    to_score, sealed = _places(data, out, records, ".jsonl" if is_list else records.ending)
    column = id_column or records.id_column()
    _check_column(data, records, column)
    taken = np.zeros(0, dtype=np.int64)
    if kind == "labels":
        taken, made = _wrong_rows(data, records, label, column, count, seed)
    elif is_folder:
        raise ValueError(f"--kind: {data} holds no texts; the kind for images is labels")
    else:
        make = partial(
            make_canaries, count=count, kind=kind, seed=seed, model=model, temperature=temperature
        )
        made = _made_texts(data, records, text, column, count, make, seed)
    every, size = records.added(made), len(records.contents)
    every_name = every.names if is_folder else every.cells(column) if column else every.digests()
    names = (every_name or [])[size:]
    called = "id" if is_folder else column or MADE_ID
    tossed = toss_coins(names, seed=seed, column=called, copies=repetitions)
    new = np.arange(size, size + count)
    planted = np.repeat(new[tossed.included], repetitions)
    kept = np.delete(np.arange(size), taken)
    every.write(out, planted_order(kept, planted, seed=seed), None)
    if is_list:
        rows = ({MADE_ID: name, **row} for name, row in zip(names, made, strict=True))
        write_text(to_score, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))
    else:
        every.write(to_score, new, None if column or is_folder else [*[""] * size, *names])
    tossed.save(sealed)

    _tell(
        sealed,
        tossed,
        f"{count:,} canaries, of which {int(tossed.included.sum()):,} have heads and are planted, "
        f"{repetitions:,} of each\n"
        f"{out}: {kept.size:,} of {size:,} records and {planted.size:,} planted ones, to train on\n"
        f"{to_score}: all canaries, to be scored after training by their {called!r}",
    )


def _made_texts(
    data: str,
    records: "Records",
    text: str,
    column: str | None,
    count: int,
    make: Callable[[list[str]], list[str]],
    seed: int | None,
) -> list[dict[str, Any]]:
    """Records with a made text and an id; what else a record holds is that of a random one of the
    data.
    """
    import numpy as np

    if records.names is not None:
        return [{"text": one} for one in make(records.names)]
    _check_column(data, records, text)
    if not all(isinstance(row.get(text), str | None) for row in records.contents):
        raise ValueError(
            f"{data}: column {text!r} holds other values than text; name another with --text"
        )
    made = make(records.cells(text))
    rng = np.random.default_rng(None if seed is None else [seed, 3])
    like = [records.contents[at] for at in rng.integers(len(records.contents), size=count).tolist()]
    own: Iterable[dict[str, Any]] = repeat({})
    if column:
        known = set(records.cells(column))
        if all(map(str.isdecimal, known)):
            is_text = isinstance(records.contents[0][column], str)
            numbers = count_from(max(map(int, known)) + 1)
            own = ({column: str(at) if is_text else at} for at in numbers)
        else:
            free = (f"canary-{at}" for at in count_from(1))
            own = ({column: name} for name in free if name not in known)
    return [{**row, **named, text: one} for row, named, one in zip(like, own, made, strict=False)]


def _wrong_rows(
    data: str,
    records: "Records",
    label: str | None,
    column: str | None,
    count: int,
    seed: int | None,
) -> tuple["IntArray", list[dict[str, Any]]]:
    """Places of rows without a copy, and each with a wrong label; files get their new class as
    folder.
    """
    import numpy as np

    from paperlib.generators.canaries import TEXT_KINDS, wrong_labels

    names, contents = records.names, records.contents
    if records.ending.startswith(".txt"):
        raise ValueError(
            f"--kind: the texts of {data} have no labels; the kinds are {', '.join(TEXT_KINDS)}"
        )
    if names is not None:
        if alone := [name for name in names if "/" not in name]:
            raise ValueError(f"{data}: expected a folder for each class; {alone[0]} is in none")
        labels = [name.split("/")[0] for name in names]
    else:
        if label is None:
            raise ValueError(
                f"--label: name the column of labels; columns are {', '.join(records.columns)}"
            )
        _check_column(data, records, label)
        labels = [one.get(label) for one in contents]
    digests = records.digests(label, column)
    times = Counter(digests)
    able = [
        at
        for at, one in enumerate(digests)
        if one and times[one] == 1 and labels[at] not in (None, "")
    ]
    if count > len(able):
        raise ValueError(
            f"--count: {len(able):,} of {len(contents):,} records have a label and no copy; "
            "ask for no more"
        )
    places, wrong = wrong_labels([labels[at] for at in able], count, seed=seed)
    taken = np.array(able)[places]
    pairs = list(zip(taken.tolist(), wrong, strict=True))
    if names is None:
        return taken, [{**contents[at], label or "": other} for at, other in pairs]
    return taken, [
        {
            "path": f"{other}/{contents[at]['sha256'][:24]}{Path(names[at]).suffix}",
            "source": names[at],
        }
        for at, other in pairs
    ]
