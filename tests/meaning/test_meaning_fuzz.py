"""Thousands of inputs whose meaning is known: each entry gives the right answer, or refuses in one
line, and never errs without a word.

A trial draws an input and a change that keeps its meaning or destroys it. Most trials look at what
an entry reads: losses of each record, records of units, copies among runs and texts, rows of a
release. `TRIALS` says how many each gets; with the files of `tests/reading/test_reading_fuzz.py`
they are 20,000, all of them different. Each change has a broken twin, an entry with one plausible
fault, which the trials must find.

The long mode draws ten times as many of each, others than those of CI::

    PAPERLIB_FUZZ_TIMES=10 pytest tests/meaning/test_meaning_fuzz.py
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from io import StringIO
from typing import Any
from unicodedata import normalize

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from paperlib import MembershipScores, audit_texts, losses
from paperlib.audits.language import texts as texts_module
from paperlib.audits.releases.rows import alike
from paperlib.bounds import audit_ranks, combine_runs, rank_epsilon, ranks_from_scores
from paperlib.reading import read_scores
from tests.reading.test_reading_fuzz import FILES

TIMES = int(os.environ.get("PAPERLIB_FUZZ_TIMES", "1"))
TRIALS = {
    "losses": 7_400,
    "ranks": 5_500,
    "texts": 1_500,
    "combine": 900,
    "units": 600,
    "release": 100,
}
"""Trials of each entry; of those of a twin, `TWIN_TRIALS`."""
TWIN_TRIALS = 400
REFUSED = "refused"


@dataclass(frozen=True)
class Trial:
    """What an entry takes, and its answer.

    Attributes:
        arguments: Of the entry, by name.
        right: The answer, or `REFUSED`.
        change: What was changed.
        options: Further arguments.
    """

    arguments: dict[str, Any]
    right: Any
    change: str
    options: dict[str, Any] = field(default_factory=dict)


Entry = Callable[..., Any]
"""From the arguments of a trial to an answer that can be compared."""


def complaint(entry: Entry, trial: Trial) -> str:
    """What is wrong with an entry's answer; empty for nothing."""
    try:
        answer = entry(**trial.arguments, **trial.options)
    except ValueError as error:
        if "\n" in str(error) or not str(error):
            return f"{trial.change}: not one line: {error!r}"
        return "" if trial.right == REFUSED else f"{trial.change}: refused: {error}"
    if trial.right == REFUSED:
        return f"{trial.change}: answered {str(answer)[:80]}, and has to be refused"
    return "" if answer == trial.right else f"{trial.change}: {str(answer)[:80]} is wrong"


def digest(trial: Trial) -> bytes:
    """A digest of the arguments."""
    lines: list[str] = [trial.change]
    for name, value in {**trial.arguments, **trial.options}.items():
        if isinstance(value, pd.DataFrame):
            value = value.to_dict("list")
        elif isinstance(value, list) and value and isinstance(value[0], MembershipScores):
            value = [(run.member.tolist(), run.nonmember.tolist()) for run in value]
        elif isinstance(value, np.ndarray):
            value = value.tolist()
        lines.append(f"{name}={value!r}")
    return sha256("\n".join(lines).encode()).digest()


def trials(name: str, count: int, seed: int) -> Iterator[Trial]:
    """Drawn inputs of an entry, a change of each."""
    draw, changes = DRAWS[name]
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        yield changes[number % len(changes)](rng, draw(rng))


def picked(rng: np.random.Generator, values: list[Any]) -> Any:
    """One of the values, whatever they are."""
    return values[rng.integers(len(values))]


# ---------------------------------------------------------------- losses


class Fitted:
    """A classifier whose records are their probabilities, of classes in an order of its own."""

    def __init__(self, classes: list[Any]) -> None:
        self.classes_ = np.array(classes)

    def predict_proba(self, records: Any) -> NDArray[np.float64]:
        return np.asarray(records, dtype=float)

    def __repr__(self) -> str:
        return f"Fitted({self.classes_.tolist()})"


Classified = tuple[list[int], NDArray[np.float64], NDArray[np.int64]]


def classified(rng: np.random.Generator) -> Classified:
    """Classes, probabilities of records, and the column of each label."""
    classes = rng.permutation(6)[:3].tolist()
    rows = int(rng.integers(4, 12))
    chances = rng.dirichlet([1.0, 1.0, 1.0], rows)
    return classes, chances, rng.integers(0, 3, rows)


def loss_of(chances: NDArray[np.float64], columns: NDArray[np.int64]) -> list[float]:
    """The right losses, to nine digits."""
    right = -np.log(chances[np.arange(len(columns)), columns])
    return np.round(right, 9).tolist()


def of_losses(model: Any, x: Any, y: Any, **options: Any) -> list[float]:
    return np.round(losses(model, (x, y), **options), 9).tolist()


def form_of_losses(rng: np.random.Generator, drawn: Classified) -> Trial:
    """Another container, index or batch; the same losses."""
    classes, chances, columns = drawn
    labels = np.array(classes)[columns]
    index = rng.permutation(1000)[: len(labels)]
    forms = [
        (chances, labels),
        (pd.DataFrame(chances, index=index), pd.Series(labels, index=index)),
        (pd.DataFrame(chances), labels.tolist()),
        (chances, labels.astype(np.int8)),
        (np.asfortranarray(chances), pd.Series(labels)),
    ]
    x, y = picked(rng, forms)
    arguments = {"model": Fitted(classes), "x": x, "y": y}
    options = {"batch_size": picked(rng, [None, 1, 3, 50])}
    return Trial(arguments, loss_of(chances, columns), "form", options)


def labels_of_another_order(rng: np.random.Generator, drawn: Classified) -> Trial:
    """Labels whose index is that of other rows."""
    classes, chances, columns = drawn
    labels = pd.Series(np.array(classes)[columns])
    mixed = labels.sample(frac=1.0, random_state=int(rng.integers(2**31)))
    right = REFUSED if list(mixed.index) != list(labels.index) else loss_of(chances, columns)
    arguments = {"model": Fitted(classes), "x": pd.DataFrame(chances), "y": mixed}
    return Trial(arguments, right, "index")


def labels_of_another_type(rng: np.random.Generator, drawn: Classified) -> Trial:
    """Names in place of numbers, or a class that the model does not know."""
    classes, chances, columns = drawn
    labels = np.array(classes)[columns]
    unknown = labels.copy()
    unknown[rng.integers(len(labels))] = 9
    y = picked(rng, [labels.astype(str), unknown, labels[:-1]])
    return Trial({"model": Fitted(classes), "x": chances, "y": y}, REFUSED, "labels")


def chances_missing(rng: np.random.Generator, drawn: Classified) -> Trial:
    """A probability that is no number, or none of a probability."""
    classes, chances, columns = drawn
    broken = chances.copy()
    row = int(rng.integers(len(columns)))
    broken[row, columns[row]] = picked(rng, [np.nan, -0.5, 2.0, np.inf])
    arguments = {"model": Fitted(classes), "x": broken, "y": np.array(classes)[columns]}
    return Trial(arguments, REFUSED, "chances")


def by_place_of_class(model: Any, x: Any, y: Any, **options: Any) -> list[float]:
    """Takes labels for numbers of columns."""
    chances, labels = np.asarray(x), np.asarray(y)
    return np.round(-np.log(chances[np.arange(len(labels)), labels % 3]), 9).tolist()


def without_index(model: Any, x: Any, y: Any, **options: Any) -> list[float]:
    return of_losses(model, np.asarray(x), np.asarray(y), **options)


def from_words(model: Any, x: Any, y: Any, **options: Any) -> list[float]:
    """Reads names as numbers, and drops what has no place."""
    numbers = np.asarray(y).astype(int)
    is_known = np.isin(numbers, model.classes_)
    return of_losses(model, np.asarray(x)[: len(is_known)][is_known], numbers[is_known])


def without_missing(model: Any, x: Any, y: Any, **options: Any) -> list[float]:
    """Drops records whose probabilities are none."""
    chances = np.asarray(x)
    sound = (np.isfinite(chances) & (chances >= 0) & (chances <= 1)).all(axis=1)
    return of_losses(model, chances[sound], np.asarray(y)[sound])


# ---------------------------------------------------------------- ranks

Candidates = NDArray[np.float64]


def candidates(rng: np.random.Generator) -> Candidates:
    """Scores of 30 sets of 5, the true one first, which stands out."""
    scores = rng.normal(size=(30, 5))
    scores[:, 0] += 2.5
    return scores


def rank_answer(scores: Candidates) -> tuple[int, float]:
    """Hits and bound, counted by hand."""
    hits = int((scores[:, :1] > scores[:, 1:]).all(axis=1).sum())
    return hits, float(rank_epsilon(hits, len(scores), scores.shape[1]))


def of_ranks(true: Any, others: Any, **options: Any) -> tuple[int, float]:
    ranks, sizes = ranks_from_scores(true, others, **options)
    return answer_of_ranks(ranks, sizes)


def answer_of_ranks(ranks: Any, sizes: Any) -> tuple[int, float]:
    """Hits and bound; a reversed direction is a refusal."""
    result = audit_ranks(ranks, sizes)
    if result.refusals:
        raise ValueError(result.refusals[0].sentence)
    return result.correct, result.epsilon


def form_of_ranks(rng: np.random.Generator, scores: Candidates) -> Trial:
    """Sets and candidates in another order, scores in another unit or as losses."""
    mixed = scores[rng.permutation(len(scores))]
    others = rng.permuted(mixed[:, 1:], axis=1)
    true = mixed[:, 0]
    options: dict[str, Any] = {}
    change = rng.integers(4)
    if change == 0:
        true, others = np.exp(true), np.exp(others)
    elif change == 1:
        true, others, options = -true, -others, {"higher_means_member": False}
    elif change == 2:
        true, others = true.tolist(), others.tolist()
    return Trial({"true": true, "others": others}, rank_answer(scores), "form", options)


def reversed_ranks(rng: np.random.Generator, scores: Candidates) -> Trial:
    """Losses that are taken for scores."""
    arguments = {"true": -scores[:, 0], "others": -scores[:, 1:]}
    return Trial(arguments, REFUSED, "sign")


def among_its_candidates(rng: np.random.Generator, scores: Candidates) -> Trial:
    """Each true score stands among its own candidates."""
    column = int(rng.integers(0, 5))
    others = np.insert(scores[:, 1:], column, scores[:, 0], axis=1)
    return Trial({"true": scores[:, 0], "others": others}, REFUSED, "copies")


def shape_of_ranks(rng: np.random.Generator, scores: Candidates) -> Trial:
    """A score that is missing, or sets of other records."""
    broken = scores.copy()
    broken[rng.integers(30), rng.integers(5)] = np.nan
    true, others = picked(rng, [(broken[:, 0], broken[:, 1:]), (scores[:-1, 0], scores[:, 1:])])
    return Trial({"true": true, "others": others}, REFUSED, "shape")


def best_direction_of_ranks(true: Any, others: Any, **options: Any) -> tuple[int, float]:
    """Turns scores round where that shows more."""
    both = [
        audit_ranks(*ranks_from_scores(true, others, higher_means_member=higher))
        for higher in (True, False)
    ]
    best = max(both, key=lambda result: result.epsilon)
    return best.correct, best.epsilon


def without_equal_candidates(true: Any, others: Any, **options: Any) -> tuple[int, float]:
    """Leaves out candidates that equal the true one."""
    kept = [row[row != value] for value, row in zip(true, np.asarray(others), strict=True)]
    return of_ranks(true, kept, **options)


def without_missing_sets(true: Any, others: Any, **options: Any) -> tuple[int, float]:
    """Leaves out sets with a missing score, and those beyond the shorter list."""
    size = min(len(true), len(others))
    rows = np.column_stack([np.asarray(true)[:size], np.asarray(others)[:size]])
    rows = rows[np.isfinite(rows).all(axis=1)]
    return of_ranks(rows[:, 0], rows[:, 1:], **options)


def pooled_ranks(true: Any, others: Any, **options: Any) -> tuple[int, float]:
    """Compares true scores with the candidates of the first set."""
    return of_ranks(true, [np.asarray(others)[0]] * len(true), **options)


# ---------------------------------------------------------------- units


def rows_of_units(rng: np.random.Generator) -> pd.DataFrame:
    """24 customers of three rows each, half of them members; the losses of one are alike."""
    names = rng.permutation(5_000)[:24]
    member = rng.permutation(np.repeat([1, 0], 12))
    rows = pd.DataFrame({"customer": names, "member": member}).loc[np.repeat(np.arange(24), 3)]
    levels = np.repeat(rng.normal(5, 1, 24), 3)
    rows["loss"] = (levels + rng.normal(0, 0.05, len(rows))).round(6)
    return rows.reset_index(drop=True)


def means_of_units(rows: pd.DataFrame) -> list[list[float]]:
    """The mean loss of each unit of either side, sorted."""
    means = rows.groupby("customer")[["member", "loss"]].mean()
    sides = [means["loss"][means["member"] == side] for side in (1, 0)]
    return [sorted(side.round(9).tolist()) for side in sides]


def of_units(text: str, folder: Any, **options: Any) -> list[list[float]]:
    """Losses of both sides as read from a file."""
    path = folder / "units.csv"
    path.unlink(missing_ok=True)
    path.write_text(text)
    scores = read_scores(path, **options).scores
    return [sorted(side.round(9).tolist()) for side in (scores.member, scores.nonmember)]


def unit_trial(rows: pd.DataFrame, right: Any, change: str, **options: Any) -> Trial:
    return Trial({"text": rows.to_csv(index=False)}, right, change, options)


def form_of_units(rng: np.random.Generator, rows: pd.DataFrame) -> Trial:
    """Rows and columns in another order, the unit under another name."""
    right = means_of_units(rows)
    mixed = rows.iloc[rng.permutation(len(rows))][list(rng.permutation(rows.columns))]
    name = picked(rng, ["customer", "patient", "x7", "who"])
    if rng.random() < 0.5:
        mixed = mixed.assign(customer="k" + mixed["customer"].astype(str))
    return unit_trial(mixed.rename(columns={"customer": name}), right, "form", unit_column=name)


def unnamed_units(rng: np.random.Generator, rows: pd.DataFrame) -> Trial:
    """Nobody says that a customer is the record."""
    name = picked(rng, ["customer", "patient", "x7", "who"])
    mixed = rows.iloc[rng.permutation(len(rows))]
    return unit_trial(mixed.rename(columns={"customer": name}), REFUSED, "unnamed")


def units_of_both_sides(rng: np.random.Generator, rows: pd.DataFrame) -> Trial:
    """A customer with rows on both sides, or without a name."""
    row = int(rng.integers(len(rows)))
    broken = rows.copy()
    if rng.random() < 0.5:
        broken.loc[row, "member"] = 1 - int(rows["member"].iloc[row])
    else:
        broken["customer"] = broken["customer"].astype(object)
        broken.loc[row, "customer"] = ""
    return unit_trial(broken, REFUSED, "both sides", unit_column="customer")


def first_rows(text: str, folder: Any, **options: Any) -> list[list[float]]:
    """Takes the first row of each unit."""
    name = options.get("unit_column", "customer")
    rows = pd.read_csv(StringIO(text)).drop_duplicates(name)
    return of_units(rows.to_csv(index=False), folder, **options)


def without_units(text: str, folder: Any, **options: Any) -> list[list[float]]:
    """Takes each row for a record."""
    rows = pd.read_csv(StringIO(text))
    return of_units(rows[["loss", "member"]].to_csv(index=False), folder)


def of_first_side(text: str, folder: Any, **options: Any) -> list[list[float]]:
    """Puts a unit on the side of its first row, and drops rows without a unit."""
    rows = pd.read_csv(StringIO(text)).dropna()
    rows["member"] = rows.groupby("customer")["member"].transform("first")
    return of_units(rows.to_csv(index=False), folder, **options)


# ---------------------------------------------------------------- texts

WORDS = ["the", "privacy", "of", "models", "is", "audited", "with", "generated", "text", "coins"]
Sides = tuple[list[str], list[str]]


class Asked(Exception):
    """The texts and contexts that a model would score."""


def stopped_before_scoring(model: Any, tokenizer: Any, texts: Any, **options: Any) -> Any:
    """In place of the scores: what is asked."""
    raise Asked(texts, options.get("contexts"))


def two_sides(rng: np.random.Generator) -> Sides:
    """20 texts of either side, all different."""
    texts = [f"{' '.join(rng.choice(WORDS, 6))} {number}" for number in rng.permutation(9999)[:40]]
    return texts[:20], texts[20:]


def of_texts(members: Any, others: Any, **options: Any) -> tuple[Any, Any]:
    """What the model is asked, and after what."""
    try:
        audit_texts(None, None, members, others, **options)
    except Asked as asked:
        return asked.args
    raise AssertionError("no model was asked")


def form_of_texts(rng: np.random.Generator, sides: Sides) -> Trial:
    """Sides in another order, with or without contexts and names."""
    members, others = ([str(text) for text in rng.permutation(side)] for side in sides)
    options: dict[str, Any] = {}
    before = None
    if rng.random() < 0.5:
        options["contexts"] = ([f"in {text[:5]}" for text in members], ["so"] * len(others))
        before = [*options["contexts"][0], *options["contexts"][1]]
    if rng.random() < 0.5:
        options["ids"] = ([*range(20)], [*range(20, 40)])
    arguments = {"members": members, "others": others}
    return Trial(arguments, ([*members, *others], before), "form", options)


def copied_texts(rng: np.random.Generator, sides: Sides) -> Trial:
    """A text that stands on both sides, or twice on one."""
    members, others = sides
    text = str(picked(rng, members))
    if rng.random() < 0.5:
        members = [*members, text]
    else:
        others = [*others, text]
    return Trial({"members": members, "others": others}, REFUSED, "copies")


def names_of_other_texts(rng: np.random.Generator, sides: Sides) -> Trial:
    """Names that stand twice, or too few names, dates or contexts."""
    members, others = sides
    names = [str(name) for name in rng.permutation(900)[:40]]
    twice = [*names[20:39], names[int(rng.integers(20))]]
    options = picked(
        rng,
        [
            {"ids": (names[:20], twice)},
            {"ids": (names[:19], names[20:])},
            {"dates": (names[:20], names[21:])},
            {"contexts": (names[:20], names[21:])},
        ],
    )
    return Trial({"members": members, "others": others}, REFUSED, "names", options)


def each_text_once(members: Any, others: Any, **options: Any) -> tuple[Any, Any]:
    """Leaves copies out."""
    members = list(dict.fromkeys(members))
    others = [text for text in dict.fromkeys(others) if text not in members]
    return of_texts(members, others, **options)


def without_names(members: Any, others: Any, **options: Any) -> tuple[Any, Any]:
    return of_texts(members, others)


def sorted_texts(members: Any, others: Any, **options: Any) -> tuple[Any, Any]:
    """Sorts the texts, and leaves what stands beside them."""
    return of_texts(sorted(members), sorted(others), **options)


# ---------------------------------------------------------------- several runs

Runs = list[MembershipScores]


def two_runs(rng: np.random.Generator) -> Runs:
    """Two small runs with a leak, of other numbers of members."""
    sizes = rng.permutation([24, 25, 26, 27])
    return [
        MembershipScores(rng.normal(1.5, 1, sizes[0]), rng.normal(0, 1, sizes[1])),
        MembershipScores(rng.normal(1.5, 1, sizes[2]), rng.normal(0, 1, sizes[3])),
    ]


def of_runs(runs: Runs, **options: Any) -> float:
    """The bound; a reversed direction is a refusal."""
    result = combine_runs(runs, guess="grid", **options)
    if result.refusals:
        raise ValueError(result.refusals[0].sentence)
    return result.epsilon


def form_of_runs(rng: np.random.Generator, runs: Runs) -> Trial:
    """One run in another order and unit, or as losses."""
    right = combine_runs(runs, guess="grid").epsilon
    mixed = MembershipScores(rng.permutation(runs[0].member), rng.permutation(runs[0].nonmember))
    change = rng.integers(3)
    if change == 0:
        mixed = MembershipScores(np.exp(mixed.member), np.exp(mixed.nonmember))
    elif change == 1:
        mixed = MembershipScores(-mixed.member, -mixed.nonmember, higher_means_member=False)
    return Trial({"runs": [mixed, runs[1]]}, right, "form")


def one_run_twice(rng: np.random.Generator, runs: Runs) -> Trial:
    """One run counts twice, perhaps in another unit or with fewer digits."""
    scale = float(picked(rng, [1.0, 1000.0, 0.5]))
    digits = int(picked(rng, [16, 6]))
    again = MembershipScores(
        np.round(scale * runs[0].member, digits), np.round(scale * runs[0].nonmember, digits)
    )
    copies = [runs[0], again]
    if rng.random() < 0.5:
        copies = [runs[1], *copies]
    return Trial({"runs": copies}, REFUSED, "twice")


def records_of_two_runs(rng: np.random.Generator, runs: Runs) -> Trial:
    """Some records stand in both runs, by their names."""
    sizes = [len(run) for run in runs]
    names = [str(name) for name in rng.permutation(900)[: sum(sizes)]]
    ids = [names[: sizes[0]], names[sizes[0] :]]
    for row in range(int(rng.integers(1, 5))):
        ids[1][row] = ids[0][row]
    return Trial({"runs": runs}, REFUSED, "records", {"ids": ids})


def reversed_runs(rng: np.random.Generator, runs: Runs) -> Trial:
    """Losses of all runs that are taken for scores."""
    return Trial(
        {"runs": [MembershipScores(-run.member, -run.nonmember) for run in runs]}, REFUSED, "sign"
    )


def nearly_equal_runs(runs: Runs, **options: Any) -> float:
    """Adds noise, so that no two runs are equal, and mixes sides of equal order."""
    rng = np.random.default_rng(0)
    noisy = [
        MembershipScores(run.member + rng.normal(0, 2, run.member.size), run.nonmember)
        for run in runs
    ]
    return of_runs(noisy, **options)


def without_ids(runs: Runs, ids: Any = None) -> float:
    return of_runs(runs)


def best_direction_of_runs(runs: Runs, **options: Any) -> float:
    turned = [MembershipScores(-run.member, -run.nonmember) for run in runs]
    return max(combine_runs(both, guess="grid").epsilon for both in (runs, turned))


def unscaled_runs(runs: Runs, **options: Any) -> float:
    """Pools scores of all runs as they are."""
    members = np.concatenate([run.member for run in runs])
    others = np.concatenate([run.nonmember for run in runs])
    return of_runs([MembershipScores(members, others)], **options)


# ---------------------------------------------------------------- releases

Tables = dict[str, pd.DataFrame]
CITIES = ["Zürich", "São Paulo", "Łódź", "Nice", "Bonn"]


def tables(rng: np.random.Generator) -> Tables:
    """A release of 25 rows, ten of which are members, and records of both sides."""
    rows = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 70),
            "income": rng.permutation(90_000)[:70],
            "city": rng.choice(CITIES, 70),
        }
    )
    release = pd.concat([rows[:10], rows[55:]], ignore_index=True)
    sides = {"members": rows[:30], "others": rows[30:55]}
    return {
        "release": release,
        **{name: side.reset_index(drop=True) for name, side in sides.items()},
    }


def equal_rows(release: pd.DataFrame, records: pd.DataFrame) -> list[int]:
    """Released rows that are one of the records, by number."""
    held = {tuple(row) for row in records[list(release.columns)].itertuples(index=False)}
    rows = [tuple(row) for row in release.itertuples(index=False)]
    return [number for number, row in enumerate(rows) if row in held]


def of_release(release: pd.DataFrame, members: pd.DataFrame, others: pd.DataFrame) -> list[int]:
    """Released rows that equal a record, as the audit reads both."""
    read = alike(release, [members, others])
    return equal_rows(read.release, read.pool)


def form_of_release(rng: np.random.Generator, drawn: Tables) -> Trial:
    """Columns in another order, numbers with points, words in another spelling."""
    right = equal_rows(drawn["release"], pd.concat([drawn["members"], drawn["others"]]))
    release = drawn["release"][list(rng.permutation(drawn["release"].columns))]
    change = rng.integers(4)
    if change == 0:
        release = release.assign(income=release["income"].astype(float))
    elif change == 1:
        release = release.assign(city=[normalize("NFD", city) for city in release["city"]])
    elif change == 2:
        release = release.assign(city=release["city"].str.upper())
    return Trial({**drawn, "release": release}, right, "form")


def columns_of_another_name(rng: np.random.Generator, drawn: Tables) -> Trial:
    """A column without a counterpart, or of another kind, or too few rows."""
    release = drawn["release"]
    changed = [
        release.drop(columns=str(picked(rng, list(release.columns)))),
        release.rename(columns={str(picked(rng, list(release.columns))): "other"}),
        release.rename(columns={"age": "city", "city": "age"}),
        release[: int(rng.integers(1, 20))],
    ]
    return Trial({**drawn, "release": picked(rng, changed)}, REFUSED, "columns")


def by_place_of_column(
    release: pd.DataFrame, members: pd.DataFrame, others: pd.DataFrame
) -> list[int]:
    """Gives the columns of the release the names of the records'."""
    named = release.set_axis(members.columns[: release.shape[1]], axis=1)
    return equal_rows(named, pd.concat([members, others]))


def letter_by_letter(
    release: pd.DataFrame, members: pd.DataFrame, others: pd.DataFrame
) -> list[int]:
    """Compares cells as they are, by columns of the same name."""
    shared = [name for name in release if name in members]
    return equal_rows(release[shared], pd.concat([members, others]))


# ---------------------------------------------------------------- all of them

DRAWS: dict[str, tuple[Callable[..., Any], list[Callable[..., Trial]]]] = {
    "losses": (
        classified,
        [form_of_losses, labels_of_another_order, labels_of_another_type, chances_missing],
    ),
    "ranks": (
        candidates,
        [form_of_ranks, reversed_ranks, among_its_candidates, shape_of_ranks],
    ),
    "units": (rows_of_units, [form_of_units, unnamed_units, units_of_both_sides]),
    "texts": (two_sides, [form_of_texts, copied_texts, names_of_other_texts]),
    "combine": (
        two_runs,
        [form_of_runs, one_run_twice, records_of_two_runs, reversed_runs],
    ),
    "release": (tables, [form_of_release, columns_of_another_name]),
}
SOUND: dict[str, Entry] = {
    "losses": of_losses,
    "ranks": of_ranks,
    "units": of_units,
    "texts": of_texts,
    "combine": of_runs,
    "release": of_release,
}
TWINS: list[tuple[str, str, Entry]] = [
    ("losses", "form", by_place_of_class),
    ("losses", "index", without_index),
    ("losses", "labels", from_words),
    ("losses", "chances", without_missing),
    ("ranks", "form", pooled_ranks),
    ("ranks", "sign", best_direction_of_ranks),
    ("ranks", "copies", without_equal_candidates),
    ("ranks", "shape", without_missing_sets),
    ("units", "form", first_rows),
    ("units", "unnamed", without_units),
    ("units", "both sides", of_first_side),
    ("texts", "form", sorted_texts),
    ("texts", "copies", each_text_once),
    ("texts", "names", without_names),
    ("combine", "form", unscaled_runs),
    ("combine", "twice", nearly_equal_runs),
    ("combine", "records", without_ids),
    ("combine", "sign", best_direction_of_runs),
    ("release", "form", letter_by_letter),
    ("release", "columns", by_place_of_column),
]


@pytest.fixture
def options_of(tmp_path, monkeypatch):
    """What an entry needs beside the trial: a folder, or no model."""
    monkeypatch.setattr(texts_module, "score_texts", stopped_before_scoring)

    def options(name: str) -> dict[str, Any]:
        return {"folder": tmp_path} if name == "units" else {}

    return options


def with_options(entry: Entry, options: dict[str, Any]) -> Entry:
    return lambda **arguments: entry(**arguments, **options)


def test_all_trials_together_are_20_000():
    assert FILES + sum(TRIALS.values()) == 20_000
    changes = sum(len(changes) for _, changes in DRAWS.values())
    assert len({(name, change) for name, change, _ in TWINS}) == changes


@pytest.mark.parametrize("name", list(TRIALS))
def test_the_answer_is_right_or_a_refusal_of_one_line(name, options_of):
    entry = with_options(SOUND[name], options_of(name))
    seen: set[bytes] = set()
    refused: Counter[bool] = Counter()
    for trial in trials(name, TIMES * TRIALS[name], seed=TIMES):
        assert not complaint(entry, trial), trial
        seen.add(digest(trial))
        refused[trial.right == REFUSED] += 1
    assert len(seen) == TIMES * TRIALS[name]
    assert refused[False] > 0.2 * len(seen)
    assert refused[True] > 0.4 * len(seen)


@pytest.mark.parametrize(
    ("name", "change", "twin"), TWINS, ids=[f"{name}, {change}" for name, change, _ in TWINS]
)
def test_a_fault_is_found(name, change, twin, options_of):
    entry = with_options(twin, options_of(name))
    drawn = (trial for trial in trials(name, TWIN_TRIALS, seed=2) if trial.change == change)
    assert any(complaint(entry, trial) for trial in drawn)
