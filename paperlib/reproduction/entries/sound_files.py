"""How often sound made-up files are refused, or their direction is held for reversed.

``python -m paperlib.reproduction.entries.sound_files FILE`` counts them for the book, in minutes,
and goes on with the entries that FILE does not have.
"""

import io
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from paperlib.audits import (
    audit,
    audit_features,
    audit_labels,
    audit_losses,
    audit_release,
    audit_scores,
    losses,
)
from paperlib.audits.score_results import Audits
from paperlib.bounds import audit_ranks, combine_runs
from paperlib.core import AuditResult, FloatArray, IntArray, MembershipScores
from paperlib.core.options import Design
from paperlib.reproduction.entries.counting import FIRST, SEED, Cells, count_rows, interval_cells
from paperlib.reproduction.entries.made_up_rows import (
    chosen,
    coins,
    named_membership,
    named_scores,
    other_columns,
    people,
    rounded_losses,
    traits,
)

HEADING = "entry"
_DESIGNS: list[Design] = ["randomized", "game"]

Audit = Callable[[], Audits | AuditResult]
"""The call of an entry on what was drawn for it."""


def _written(rng: np.random.Generator, table: pd.DataFrame, folder: Path) -> Path:
    """Write a table into the folder, in one of five forms, and return the file."""
    name, write = chosen(
        rng,
        [
            ("rows.parquet", partial(table.to_parquet, index=False)),
            ("rows.tsv", partial(table.to_csv, sep="\t", index=False)),
            ("rows.jsonl", partial(_write_lines, table)),
            ("rows.csv", table.to_csv),  # with the index
            ("rows.csv", partial(table.to_csv, index=False)),
        ],
    )
    write(folder / name)
    return folder / name


def _write_lines(table: pd.DataFrame, path: Path) -> None:
    table.to_json(path, orient="records", lines=True, date_format="iso", double_precision=15)


def _file(rng: np.random.Generator, folder: Path) -> Audit:
    """The audit of a file of losses or scores, written into the folder: its columns in a random
    order, its rows in one of five.
    """
    rows = chosen(rng, [20, 40, 100, 250, 600])
    member = coins(rng, rows)
    values = rounded_losses(rng, member)
    columns = other_columns(rng, rows)
    name, cells = named_membership(rng, member)
    score, scores = named_scores(rng, values)
    columns |= {score: scores, name: cells}
    orders = [
        np.arange(rows),
        np.argsort(~member, kind="stable"),
        np.argsort(member, kind="stable"),
        np.argsort(values),
        rng.permutation(rows),
    ]
    table = pd.DataFrame(columns)[list(rng.permutation(list(columns)))]
    path = _written(rng, table.iloc[chosen(rng, orders)].reset_index(drop=True), folder)
    return partial(audit, path, design=chosen(rng, _DESIGNS))


def _scores(rng: np.random.Generator, folder: Path) -> Audit:
    """The audit of losses in memory, a tenth of the time with infinite ones."""
    member = coins(rng, chosen(rng, [20, 40, 100, 250, 600]))
    values = rounded_losses(rng, member)
    if rng.random() < 0.1:
        values = np.where(rng.random(values.size) < 0.03, np.inf, values)
    scores = MembershipScores(values[member], values[~member], higher_means_member=False)
    delta = chosen(rng, [0.0, 1e-5])
    return partial(audit_scores, scores, design=chosen(rng, _DESIGNS), delta=delta)


@dataclass(frozen=True)
class _Classifier:
    """A model that was fitted elsewhere: the features of a row are its probabilities."""

    classes_: Any

    def predict_proba(self, features: Any) -> FloatArray:
        return np.asarray(features, dtype=float)


def _model(rng: np.random.Generator, folder: Path) -> Audit:
    """The audit of a model by its losses, its features and labels in the forms of several
    libraries: the features of a row are the model's probabilities, in one of three precisions.
    """
    rows, classes = chosen(rng, [30, 100, 300]), chosen(rng, [2, 3, 10])
    member = coins(rng, rows)
    chances = np.clip(rng.dirichlet(np.full(classes, chosen(rng, [0.2, 1.0])), rows), 1e-4, None)
    chances /= chances.sum(axis=1, keepdims=True)
    chances = chances.astype(chosen(rng, [np.float64, np.float32, np.float16]))
    numbers = np.arange(classes)
    names = chosen(
        rng, [numbers, numbers + 1, numbers + 0.5, np.char.add("c", numbers.astype(str))]
    )
    labels = names[rng.integers(0, classes, rows)]
    index = rng.permutation(999)[:rows]
    forms = [
        (chances, labels),
        (pd.DataFrame(chances, index=index), pd.Series(labels, index=index)),
        (pd.DataFrame(chances), labels.tolist()),
        (chances, pd.Categorical(labels)),
    ]
    data, size = chosen(rng, forms), chosen(rng, [None, 7, 64])

    def run() -> Audits:
        found = np.asarray(losses(_Classifier(names), data, batch_size=size))
        return audit_losses(found[member], found[~member], design="game")

    return run


def _release(rng: np.random.Generator, folder: Path) -> Audit:
    """The audit of synthetic rows, beside members and others; in three of ten releases some rows
    are copies of members.
    """
    names, rows = traits(rng), chosen(rng, [40, 60, 100])
    members, others = people(rng, rows, names), people(rng, rows, names)
    released = people(rng, chosen(rng, [rows // 2, rows]), names)
    if rng.random() < 0.3:
        released = pd.concat([released, members.iloc[: rows // 5]]).sample(frac=1, random_state=1)
    if rng.random() < 0.5:
        members, others, released = map(_through_text, (members, others, released))
    if rng.random() < 0.3:
        released = released[list(rng.permutation(names))]
    return lambda: audit_release(released, members, others, design="game").result


def _through_text(table: pd.DataFrame) -> pd.DataFrame:
    """The table as pandas reads it again from text."""
    text = io.StringIO(table.to_csv(index=False))
    return pd.read_csv(text, dtype={"zip": str, "phone": str})


def _features(rng: np.random.Generator, folder: Path) -> Audit:
    """The audit of one to five columns that may tell of membership, by a model that is given or by
    the entry's own.
    """
    rows, width = chosen(rng, [40, 100, 200]), int(rng.integers(1, 6))
    member = coins(rng, rows)
    columns = np.column_stack([rounded_losses(rng, member) for _ in range(width)])
    names = rng.permutation(["loss", "entropy", "margin", "grad_norm", "confidence", "rank"])
    forms = [
        columns,
        columns.astype(np.float32),
        pd.DataFrame(columns, columns=list(names[:width])),
    ]
    features = chosen(rng, forms)
    member_forms: list[Any] = [member, member.astype(int), member.tolist()]
    # The entry's own model takes longer: it learns a fifth of the tables.
    model = LogisticRegression() if rng.random() < 0.8 else None
    design = chosen(rng, _DESIGNS)
    return partial(audit_features, features, chosen(rng, member_forms), design=design, model=model)


def _ranks(rng: np.random.Generator, folder: Path) -> Audit:
    """The audit of ranks of true values, in sets of one size or of several, with margins of some
    form; in half of the draws some values are exposed, which rank first.
    """
    sets, size = chosen(rng, [10, 50, 300]), chosen(rng, [2, 5, 16, 100])
    sizes = np.full(sets, size) if rng.random() < 0.5 else rng.integers(2, size + 2, sets)
    ranks = rng.integers(1, sizes + 1)
    ranks[rng.random(sets) < chosen(rng, [0.0, 0.0, 0.1, 0.5])] = 1
    margins = chosen(
        rng,
        [None, np.round(rng.exponential(size=sets), 1), rng.random(sets), np.zeros(sets)],
    )
    order = np.argsort(ranks, kind="stable") if rng.random() < 0.5 else np.arange(sets)
    return partial(
        audit_ranks,
        ranks[order],
        sizes[order],
        margins=None if margins is None else margins[order],
        delta=chosen(rng, [0.0, 1e-6]),
    )


def _runs(rng: np.random.Generator, folder: Path) -> Audit:
    """The audit of two to four runs of some of the same records, with coins of their own, with ids
    or without.
    """
    pool = chosen(rng, [40, 100, 300])
    runs: list[MembershipScores] = []
    for _ in range(int(rng.integers(2, 5))):
        rows = pool if rng.random() < 0.6 else int(rng.integers(30, pool + 1))
        member = coins(rng, rows)
        values = rounded_losses(rng, member)
        runs.append(MembershipScores(values[member], values[~member], higher_means_member=False))
    ids = [[f"run{number}-{row}" for row in range(len(run))] for number, run in enumerate(runs)]
    return partial(combine_runs, runs, ids=ids if rng.random() < 0.5 else None)


def _drawn_classes(rng: np.random.Generator, chances: FloatArray) -> IntArray:
    """A class for each row of probabilities, shape (rows, classes), drawn by them; shape
    (rows,).
    """
    below = rng.random((len(chances), 1)) * chances.sum(axis=1, keepdims=True)
    return (chances.cumsum(axis=1) > below).argmax(axis=1)


def _labels(rng: np.random.Generator, folder: Path) -> Audit:
    """The audit of labels and proxies drawn by one law for each row, which the model knows; in
    three of ten draws it has learned the labels too.
    """
    rows, classes = chosen(rng, [50, 200, 800]), chosen(rng, [2, 3, 10])
    law = rng.dirichlet(np.full(classes, chosen(rng, [0.5, 2.0])), rows)
    if rng.random() < 0.2:
        law = np.round(law, 2) + 1e-3
        law /= law.sum(axis=1, keepdims=True)
    labels, proxies = _drawn_classes(rng, law), _drawn_classes(rng, law)
    model = 0.7 * law + 0.3 * np.eye(classes)[labels] if rng.random() < 0.3 else law
    model = model.astype(chosen(rng, [np.float64, np.float32]))
    others = rng.dirichlet(np.ones(classes), rows)
    unseen = {
        "probabilities": others,
        "labels": _drawn_classes(rng, others),
        "proxies": _drawn_classes(rng, others),
    }
    bases: list[dict[str, Any]] = [{}, {"tossed": True}, {"unseen": unseen}]
    forms: list[Callable[[IntArray], Any]] = [np.asarray, lambda cells: cells.tolist(), pd.Series]
    form = chosen(rng, forms)
    return partial(audit_labels, model, form(labels), form(proxies), **chosen(rng, bases))


@dataclass(frozen=True)
class Entry:
    """What is drawn for an entry, and how often for the book."""

    draw: Callable[[np.random.Generator, Path], Audit]  #: a folder for its files → the call
    files: int


ENTRIES: dict[str, Entry] = {
    "`audit_ranks`": Entry(_ranks, 2_000),
    "`audit_labels`": Entry(_labels, 2_000),
    "`audit_scores`": Entry(_scores, 2_000),
    "`paperlib audit` and `read_scores`": Entry(_file, 2_000),
    "`combine_runs`": Entry(_runs, 2_000),
    "`audit_features`": Entry(_features, 2_000),
    "`losses` and `audit_losses`": Entry(_model, 1_000),
    "`audit_release`": Entry(_release, 100),
}


@dataclass(frozen=True)
class FileOutcome:
    """What an entry says of one sound file."""

    refusal: str | None = None  #: why there is no answer; None where there is one
    is_doubted: bool = False  #: whether its direction may be reversed, by either check
    epsilon: float = 0.0  #: the bound, nats


def outcome_of(name: str, number: int, folder: Path) -> FileOutcome:
    """The outcome of an entry of `ENTRIES` on its file of this number, drawn again each time.

    Args:
        folder: Where the file is written, if the entry reads one.
    """
    rng = np.random.default_rng([SEED, number, *name.encode()])
    run = ENTRIES[name].draw(rng, folder)
    try:
        audited = run()
    except ValueError as error:
        return FileOutcome(refusal=str(error))
    headline = audited if isinstance(audited, AuditResult) else audited.headline
    refusals = [refusal.sentence for refusal in audited.refusals]
    return FileOutcome(
        refusal=refusals[0] if refusals else None,
        is_doubted=bool(headline.doubts),
        epsilon=headline.epsilon or 0.0,
    )


def count_entry(name: str, files: int) -> Cells:
    """How many of so many sound files an entry refuses, by an error or since its number passes no
    gate, and how many it doubts.
    """
    with tempfile.TemporaryDirectory() as folder:
        outcomes = [outcome_of(name, number, Path(folder)) for number in range(files)]
    for outcome in outcomes:
        if outcome.refusal is not None:
            print(f"{name}: {outcome.refusal}", file=sys.stderr, flush=True)
    refused = sum(outcome.refusal is not None for outcome in outcomes)
    return {
        "files": files,
        "refused": refused,
        **interval_cells(refused, files),
        "doubted": sum(outcome.is_doubted for outcome in outcomes),
        "bounds_of_first": round(sum(outcome.epsilon for outcome in outcomes[:FIRST]), 3),
    }


if __name__ == "__main__":
    count_rows(
        Path(sys.argv[1]),
        HEADING,
        {name: partial(count_entry, name, entry.files) for name, entry in ENTRIES.items()},
    )
