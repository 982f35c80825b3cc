"""The page that audits a file reads and computes as the library does, or refuses in one line."""

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paperlib.audits import audit_scores
from paperlib.audits.document import Answer
from paperlib.bounds.one_run.audit import OneRunResult
from paperlib.io import read_scores
from paperlib.io.scores import LoadedScores
from tests.report.scripts import SCRIPTS as REPORT_SCRIPTS
from tests.report.scripts import run_script

STATIC = Path(__file__).parents[2] / "book" / "_static"
ONE_RUN = REPORT_SCRIPTS / "one_run.js"
SCRIPTS = [
    ONE_RUN,
    *(STATIC / f"{name}.js" for name in ("calculator", "read_scores", "audit_in_browser")),
]
AUDIT = """all => all.map(([data, name, kind, options]) => {
  try {
    return AuditFile.audit(ReadScores.read(Buffer.from(data, "base64"), name, kind), options);
  } catch (error) {
    if (!(error instanceof ReadScores.Refusal)) throw error;
    return error.message;
  }
})"""
# What the page refuses and the library does not.
MORE = ("only permutations", "side by side", "no plain UTF-8", "may name units")
SAME = ("condition", "assumptions", "notes", "delta", "confidence", "correct", "guesses", "total")
MEMBERS = {
    "member": ("1", "0"),
    "is_train": ("true", "false"),
    "Split": ("train", "test"),
    "seen": ("yes", "no"),
    "membership": ("1", "-1"),
    "inTrain": ("IN", "out"),
    "member_label": ("Member", "non member"),
    "was member": ("1.0", "0"),
}
CELLS = ("", "nan", "inf", "2", "1e400", "maybe", "-1", "1,234", "0.5", "x" * 9, "train", "id", '"')
NAMES = (
    *MEMBERS,
    "loss",
    "test_loss",
    "train_loss",
    "member loss",
    "losses",
    "score",
    "logprob",
    "-loss",
    "in",
    "member_score",
    "non_member_loss",
    "nonmember",
    "out",
    "test",
    "val",
    "fold",
    "data split",
    "id",
    "index",
    "example_id",
    "Unnamed: 0",
    "level_0",
    "value",
    "perplexity",
    "per_token_nll",
    "maxLogProb",
    "epoch",
    "",
    "true_label_confidence",
)
SCORES = ("score", "logprob", "Confidence", "mia score", "member_prob", "value")
LOSSES = ("loss", "val_loss", "nll", "CrossEntropy", "perplexity", "loss_epoch_3", "value")


def asked(data: bytes, name: str = "a.csv", kind: str = "", **options: Any) -> list[Any]:
    return [base64.b64encode(data).decode(), name, kind, options]


def by_library(
    case: list[Any], folder: Path
) -> tuple[LoadedScores, OneRunResult, Answer, float | None]:
    """What the command reads, its main audit, its answer and number; a ValueError if it refuses the
    file.
    """
    data, name, kind, options = case
    (folder / name).write_bytes(base64.b64decode(data))
    loaded = read_scores(folder / name, kind=kind or None)
    audits = audit_scores(loaded.scores, **options)
    answer, number, _ = (
        replace(audits, reading=(*loaded.warnings, *audits.reading)).document().judged(None)
    )
    return loaded, audits.headline, answer, number


def compare(cases: list[list[Any]], folder: Path, scripts: Sequence[Path] = SCRIPTS) -> list[Any]:
    """What the page shows of each case: what the library says, or a line that refuses it."""
    results = run_script(AUDIT, cases, *scripts)
    for at, (case, shown) in enumerate(zip(cases, results, strict=True)):
        if isinstance(shown, str):
            assert "use `paperlib audit FILE" in shown, at
            assert "\n" not in shown, at
            if not any(words in shown for words in MORE):
                with pytest.raises(ValueError, match=r"\w"):
                    by_library(case, folder)
            continue
        loaded, main, answer, number = by_library(case, folder)
        same = {name: getattr(main, name) for name in SAME}
        assert {name: shown[name] for name in SAME} == json.loads(json.dumps(same)), at
        said = [text.replace("as --kind says", "as chosen here") for text in answer.warnings]
        assert sorted(shown["warnings"]) == sorted(said), at
        assert (shown["source"], shown["kind"]) == (loaded.source, loaded.kind), at
        if number is None:
            assert (shown["epsilon"], shown["headline"], shown["claim"]) == (None, "", ""), at
        else:
            assert shown["epsilon"] == pytest.approx(number, rel=0, abs=1e-9), at
            assert (shown["headline"], shown["claim"]) == (main.headline, main.claim), at
    return results


def made(at: int) -> list[Any]:
    """A plain file of any size, leak, direction, ties, columns, separator and spelling."""
    rng = np.random.default_rng(at)
    size = int(rng.choice([2, 9, 60, 300, 300, 1000, 3000]))
    member = rng.random(size) < 0.5 + rng.choice([0, 0, 1.4]) / np.sqrt(
        size
    )  # 1.4: seldom so uneven
    member[:2] = True, False
    loss = bool(rng.integers(2))
    leak = rng.choice([0.0, 1.0, 2.0, 4.0, 4.0, -3.0 if size >= 300 else 3.0])
    values = rng.normal(0, 1, size) + leak * member
    values = values.astype(rng.choice(["f8", "f8", "f4", "f2"])).astype(float)
    values[: int(rng.choice([0, 0, 2]))] = 0.1234567890123  # copies
    digits = int(rng.choice([1, 2, 5, 17, 17, 17]))
    texts = [repr(round(float(-value if loss else value), digits)) for value in values]
    separator = ",;\t"[at % 3]
    if separator != "," and rng.integers(2) and digits != 3:
        texts = [text.replace(".", ",") for text in texts]
    lies = bool(rng.random() < 0.1)
    score = str(rng.choice(LOSSES if loss is not lies else SCORES))
    flag = str(rng.choice(list(MEMBERS)))
    table = {score: texts, flag: [MEMBERS[flag][0 if one else 1] for one in member]}
    if rng.integers(2):
        table["Record ID"] = [
            f'n"{i}{separator}' if rng.integers(2) else f" {i}" for i in range(size)
        ]
    if rng.integers(2) and score != "value":
        table["note"] = ["a\nb" if rng.random() < 0.1 else "" for _ in range(size)]
    names = rng.permutation(list(table))
    quoted = rng.integers(2)

    def cell(text: str) -> str:
        must = any(mark in text for mark in ' "\n\r' + separator)
        return (
            '"' + text.replace('"', '""') + '"'
            if quoted or must
            else " " * int(rng.integers(2)) + text
        )

    rows = [list(names), *zip(*(table[name] for name in names), strict=True)]
    lines = [separator.join(map(cell, row)) for row in rows]
    blank = [0, *np.flatnonzero(rng.random(len(lines)) < rng.choice([0, 0.1]))]
    lines = ["\r" * (i in blank[1:]) + line for i, line in enumerate(lines)]
    text = str(rng.choice(["\n", "\r\n"])).join(lines) + "\n" * int(rng.integers(3))
    chosen = ("losses" if loss else "scores") if score == "value" or lies else ""
    return asked(
        text.encode(str(rng.choice(["utf-8", "utf-8-sig"]))),
        f"{at}{rng.choice(['.csv', '.TSV', '.txt'])}",
        chosen,
        delta=float(rng.choice([0, 0, 1e-6, 1e-4])),
        confidence=float(rng.choice([0.9, 0.95, 0.99])),
        design=str(rng.choice(["randomized", "played"])),
    )


def test_100_files_give_what_the_library_gives(tmp_path):
    results = compare([made(at) for at in range(100)], tmp_path)
    audited = [one for one in results if isinstance(one, dict)]
    assert len(audited) > 96  # in the others random numbers tell chance from a wrong direction
    assert sum(one["epsilon"] is None for one in audited) > 2
    assert sum((one["epsilon"] or 0) > 0 for one in audited) > 50
    warned = " ".join(text for one in audited for text in one["warnings"])
    for words in ("this uneven", "exactly as many", "check for copies", "as chosen"):
        assert words in warned


def damaged(at: int) -> list[Any]:
    """A small plain file with one or two faults, most of which an editor or a program could
    make.
    """
    rng = np.random.default_rng([1, at])
    case = next(one for one in map(made, rng.integers(0, 10_000, 99)) if len(one[0]) < 6000)
    text = base64.b64decode(case[0]).decode()
    for _ in range(int(rng.integers(1, 3))):
        lines = text.splitlines(keepends=True)
        row, place = int(rng.integers(len(lines))), int(rng.integers(len(text)))
        cells = re.split(r"([,;\t])", lines[row])
        cells[2 * int(rng.integers((len(cells) + 1) // 2))] = str(rng.choice(CELLS))
        text = [
            text[:place] + text[place + 1 :],
            text[:place]
            + str(rng.choice(list("\"' ,;.\t\n\r\x0c\x1f\xa0\ufeff0-e")))
            + text[place:],
            "".join([*lines[: row + 1], *lines[row:]]),
            "".join([*lines[:row], *lines[row + 1 :]]),
            "".join([*lines[:row], "".join(cells), *lines[row + 1 :]]),
            text.replace(",", ";"),
            text.replace(".", ","),
            re.sub(r"\w+", str(rng.choice(NAMES)), text, count=1),
        ][int(rng.integers(8))]
    return asked(text.encode(), *case[1:3], **case[3])


def named(at: int) -> list[Any]:
    """A file of two rows whose columns have any names."""
    rng = np.random.default_rng([2, at])
    names = rng.choice(NAMES, int(rng.integers(2, 5)), replace=False)
    rows = [names, rng.choice(["1", "1", "0.5", "train"], len(names)), ["0"] * len(names)]
    return asked("\n".join(map(",".join, rows)).encode())


def copied(at: int) -> list[Any]:
    """A file in which some values stand several times."""
    rng = np.random.default_rng([3, at])
    times = np.repeat([1, 2, 3], rng.integers(0, [60, 60, 6])) * int(rng.integers(1, 3))
    values = np.repeat(np.arange(times.size), times)
    return asked(
        "\n".join(["score,member", *(f"{value},{rng.integers(2)}" for value in values)]).encode()
    )


def flat(at: int) -> list[Any]:
    """A file in which all, most, half or some values are one."""
    rng = np.random.default_rng([4, at])
    size, value = (
        int(rng.choice([8, 40, 400])),
        rng.choice([0.0, 1.0, -0.0, -1e-7, 1234567.5, 0.1234567890123]),
    )
    values = np.where(
        np.arange(size) < size * rng.choice([0.5, 0.625, 0.9, 1, 1]), value, rng.normal(size=size)
    )
    name, words = rng.choice(["loss", "score"]), rng.permutation(np.arange(size) % 2)
    rows = (f"{value!r},{word}" for value, word in zip(values.tolist(), words, strict=True))
    return asked("\n".join([f"{name},member", *rows]).encode())


def repeated(at: int) -> list[Any]:
    """Members that stand several times, rows of users with any name of the column, or neither."""
    rng = np.random.default_rng([6, at])
    member = rng.random(200) < 0.5
    score = np.round(rng.normal(size=200) + member, int(rng.choice([3, 17])))
    users = np.arange(200) // int(rng.choice([1, 5]))
    if at % 2:
        member = (users * 7 % 11 < 5) if at % 4 == 1 else member
    else:
        copies = rng.integers(1, int(rng.integers(2, 7)), 200)
        rows = np.repeat(np.arange(200), np.where(member, copies, 1))
        member, score, users = member[rows], score[rows], np.arange(rows.size)
    name = rng.choice(["patient", "uid", "note"])
    cells = zip(score.tolist(), member, users, strict=True)
    lines = (f"{value!r},{int(side)},u{user}" for value, side, user in cells)
    return asked("\n".join([f"score,member,{name}", *lines]).encode())


@pytest.mark.parametrize(
    ("of", "most", "least"),
    [(repeated, 80, 15), (damaged, 150, 40), (named, 1500, 50), (copied, 100, 25)],
)
def test_a_doubtful_file_is_refused_or_gives_what_the_library_gives(tmp_path, of, most, least):
    results = compare([of(at) for at in range(most)], tmp_path)
    assert least < sum(isinstance(one, dict) for one in results) < most - least


def test_a_file_of_equal_values_gives_no_answer_and_one_of_few_others_a_doubt(tmp_path):
    audited = [
        one for one in compare([flat(at) for at in range(100)], tmp_path) if isinstance(one, dict)
    ]
    said = [(one["epsilon"] is None, " ".join(one["warnings"])) for one in audited]
    assert sum(none and "all scores are" in text for none, text in said) > 20
    assert sum(not none and "62% of the scores are" in text for none, text in said) > 5
    assert sum("of the scores are" in text or none for none, text in said) < len(said) - 10


def test_a_leak_of_few_records_in_the_other_direction_is_named_as_the_library_names_it(tmp_path):
    files: list[list[Any]] = []
    for at in range(12):
        rng = np.random.default_rng([5, at])
        member, score = rng.integers(0, 2, 1000), rng.normal(size=1000)
        score -= 9.0 * member * (rng.random(1000) < 0.03)
        lines = (f"{value!r},{side}" for value, side in zip(score.tolist(), member, strict=True))
        files.append(asked("\n".join(["score,member", *lines]).encode()))
    shown = [" ".join(one["warnings"]) for one in compare(files, tmp_path) if isinstance(one, dict)]
    assert 2 < sum("a leak in the other direction" in text for text in shown) <= len(shown)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('"losses" : SCORES', '"scores" : SCORES'),
        ("auc < 0.5", "auc < 0"),
        ("number === 1", "number !== 0"),
        ('separator !== ","', "false"),
        ("chanceExplains(times, 2)", "chanceExplains(times, 1)"),
        ("bitsOf(value) > 11", "bitsOf(value) > 0"),
        ("< 1.001 * level", "< 0"),
        ("mixed < expected &&", "false &&"),
        ("repeats.length) <= 1.001 * RECORDS_LEVEL) {", "repeats.length) < 0) {"),
        ("times.size === 1 &&", "false &&"),
        ("2 * most <=", "most <="),
    ],
)
def test_a_reader_that_is_wrong_is_seen(tmp_path, right, wrong):
    twins = [tmp_path / path.name for path in SCRIPTS]
    for twin, path in zip(twins, SCRIPTS, strict=True):
        twin.write_text(path.read_text(encoding="utf-8").replace(right, wrong), encoding="utf-8")
    makers = (made, copied, flat, repeated)
    cases = [make(at) for at in range(30) for make in makers]
    with pytest.raises((AssertionError, ValueError, pytest.fail.Exception)):
        compare(cases, tmp_path, twins)
