"""Thousands of files as people write them: each is read exactly, or refused in one line."""

import csv
import gzip
import io
import json
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from paperlib.core.column_names import kind_of_name
from paperlib.reading import LoadedScores, read_scores
from tests.reading.test_reading import DOUBTFUL, LOSSES, SCORES, WORDS

FILES = 4_000
UNKNOWN = (*(name for name in DOUBTFUL if len(name) > 1 and "/" not in name), "maß")
MEMBERS = ("member", "membership", "is_member", "is_train", "in_train", "train", "split", "trained")
OTHER_MEMBERS = ("label", "which", "y")
RELATIVE = {
    "1",
    "+1",
    "1.0",
    "true",
    "t",
    "yes",
    "y",
}  # what they mean is up to the name of the column
BAD_CELLS = [
    "",
    "NaN",
    "abc",
    "1_0",
    "−1",
    "0x1",
    "٣",
    "null",
    "1 2",
    "1;2x",
]
INFINITE = {"inf": math.inf, "-Infinity": -math.inf, "1e999": math.inf}
BAD_WORDS = ["", "maybe", "2", "0.5", "nan", "null", "10", "tru"]
READ = "a file is read that has to be refused"
READABLE = ("utf-8", "utf-8-sig", "utf-16")
UNREADABLE = ("cp1252", "utf-16-le", "utf-32")

Reader = Callable[..., LoadedScores]


@dataclass
class Case:
    """One file: its bytes, the options given with it, and the truth that was written into it."""

    name: str
    data: bytes
    options: dict[str, str] = field(default_factory=dict)
    kind: str | None = None  # None: nothing tells the direction
    member: list[float] = field(default_factory=list)
    nonmember: list[float] = field(default_factory=list)
    odd: bool = False  # an exact reader may refuse it; any other must be read
    must_refuse: bool = False
    stdin: bool = False


def styled(rng: random.Random, name: str) -> str:
    changes = [
        str.upper,
        str.title,
        lambda text: text.replace("_", " "),
        lambda text: text.replace("_", "-"),
    ]
    return rng.choice([str, str, *changes])(name)


def chosen_names(rng: random.Random, case: Case) -> tuple[str, str]:
    """Names of the score and the membership column, and the options that a user may give with
    them.
    """
    told = rng.choice(["losses", "losses", "scores", None])
    name = {"losses": LOSSES, "scores": SCORES, None: UNKNOWN}[told]
    score = rng.choice(name) if told is None else styled(rng, rng.choice(name))
    if rng.random() < 0.3:
        case.options["score_column"] = score
    case.kind = told
    if rng.random() < (0.5 if told is None else 0.1):
        case.kind = case.options["kind"] = rng.choice(["losses", "scores"])
    member = styled(rng, rng.choice(MEMBERS))
    if rng.random() < 0.1:
        member = case.options["member_column"] = rng.choice(OTHER_MEMBERS)
    case.must_refuse = case.kind is None
    return score, member


def number(rng: random.Random, marks: str) -> tuple[str, float]:
    """A number as written, and its value."""
    grouped = marks.startswith("thousands")
    size = 10 ** rng.uniform(2, 6.5) if grouped else 10 ** rng.uniform(-3, 4)
    places = rng.choice([0, 0, 1, 2] if grouped else [1, 2, 3, 3, 6])
    text = (
        rng.choice([f"{size:.{places}f}", f"{size:.{places}f}", "" if grouped else repr(size)])
        or "0.5"
    )
    if not grouped and rng.random() < 0.1:
        text = f"{size:.4e}"
    value = float(text)
    if grouped:
        value = float(f"{value:.{places}f}")
        whole, point, rest = f"{value:,.{places}f}".partition(".")
        if marks == "thousands-eu":
            whole, point = whole.replace(",", "."), point.replace(".", ",")
        text = whole + point + rest
    elif marks == "comma":
        text = text.replace(".", ",")
    sign = rng.choice(["", "", "", "-", "+"])
    return sign + text, -value if sign == "-" else value


def rows_of(
    rng: random.Random, case: Case, marks: str, member_name: str
) -> tuple[list[str], list[str]]:
    """Cells of both columns; notes the truth, and what is wrong with them."""
    pair = rng.choice(WORDS)
    count = rng.randint(2, 7)
    flags = [True, False, *(rng.random() < 0.5 for _ in range(count - 2))]
    rng.shuffle(flags)
    if rng.random() < 0.02:
        flags = [flags[0]] * count
        case.must_refuse = True
    written = [number(rng, marks) for _ in flags]
    if rng.random() < 0.03:
        written[rng.randrange(count)] = rng.choice(list(INFINITE.items()))
    case.member = [value for (_, value), flag in zip(written, flags, strict=True) if flag]
    case.nonmember = [value for (_, value), flag in zip(written, flags, strict=True) if not flag]
    scores, words = [text for text, _ in written], [pair[0] if flag else pair[1] for flag in flags]
    if (
        member_name.lower() == "split"
        and pair[0].lower() in RELATIVE
        and "member_column" not in case.options
    ):
        case.must_refuse = True  # 1 may stand for the second part as well as for "yes"
    if rng.random() < 0.08:
        scores[rng.randrange(count)] = rng.choice(BAD_CELLS)
        case.must_refuse = True
    if rng.random() < 0.02 and {"1", "-1", "0"} & set(pair):
        words = ["1" if flag else rng.choice(["0", "-1"]) for flag in flags]
        case.must_refuse = case.must_refuse or {"0", "-1"} <= set(words)
    if rng.random() < 0.05:
        words[rng.randrange(count)] = rng.choice(BAD_WORDS)
        case.must_refuse = True
    return scores, words


def delimited(rng: random.Random) -> Case:
    case = Case(name=rng.choice(["a.csv", "a.csv", "a.tsv", "a.txt", "b.c.csv"]), data=b"")
    score_name, member_name = chosen_names(rng, case)
    separator = rng.choice([",", ",", ";", "\t", "|" if rng.random() < 0.1 else ","])
    marks = rng.choice(["point"] * 5 + ["comma"] * 2 + ["thousands-us", "thousands-eu"])
    if separator == "," and marks == "thousands-eu":
        marks = "point"  # points of a table with commas are decimal points
    scores, words = rows_of(rng, case, marks, member_name)
    columns = {score_name: scores, member_name: words}
    unknown = case.kind is None or "kind" in case.options
    free = not unknown or "score_column" in case.options
    extras = ["notes", "id", "feature 1", "", "größe"] if free else ["id"]
    unquoted = separator == "," and marks in ("comma", "thousands-us") and rng.random() < 0.5
    for extra in rng.sample(extras, rng.randint(0, min(2, len(extras)))):
        texts = ["a", "b c", "é"] if unquoted else ["a", "b c", 'say "x", y', "two\nlines", "", "é"]
        columns[extra] = [
            f"{at} é" if extra == "id" else rng.choice(texts) for at in range(len(scores))
        ]
    names = list(columns)
    rng.shuffle(names)
    table = [names, *map(list, zip(*(columns[name] for name in names), strict=True))]
    end = rng.choice(["\n", "\n", "\r\n", "\r"])
    quoting = csv.QUOTE_ALL if end == "\r" else rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    text = (
        end.join(map(separator.join, table)) + end
        if unquoted
        else quoted(table, separator, end, quoting)
    )
    case.odd = separator != "," or marks != "point"  # such as 1.234 and 2.345 alone
    if not unquoted and rng.random() < 0.05:  # one row has a cell too many or too few
        at = rng.randrange(1, len(table))
        table[at] = [*table[at], "9"] if rng.random() < 0.5 else table[at][:-1]
        text, case.must_refuse = quoted(table, separator, end, csv.QUOTE_ALL), True
    if rng.random() < 0.2:
        text = text.rstrip("\r\n")
    if len(names) > 1 and rng.random() < 0.05:
        text += end * 2
    encoding = rng.choice([*READABLE, "utf-8", "utf-8", "utf-8", *UNREADABLE])
    case.odd |= encoding == "cp1252"
    case.must_refuse = case.must_refuse or encoding in ("utf-16-le", "utf-32")
    case.data = text.encode(encoding, "replace")
    case.stdin = rng.random() < 0.1
    if rng.random() < 0.1:
        case.data, case.name = gzip.compress(case.data), f"{case.name}.gz"
    return case


def quoted(table: list[list[str]], separator: str, end: str, quoting: Any) -> str:
    file = io.StringIO()
    csv.writer(file, delimiter=separator, quoting=quoting, lineterminator=end).writerows(table)
    return file.getvalue()


def json_lines(rng: random.Random) -> Case:
    case = Case(name=rng.choice(["a.jsonl", "a.ndjson"]), data=b"")
    score_name, member_name = chosen_names(rng, case)
    scores, words = rows_of(rng, case, "point", member_name)
    as_text = rng.random() < 0.2
    lines = []
    for score, word in zip(scores, words, strict=True):
        row: dict[str, Any] = {score_name: score if as_text else plain_json(score)}
        row[member_name] = plain_json(word)
        if "kind" not in case.options and rng.random() < 0.2:
            row["more"] = {"deep": [1, {"x": None}]}
        lines.append(json.dumps(row, ensure_ascii=rng.random() < 0.5))
    if rng.random() < 0.1:
        at = rng.randrange(len(lines))
        line = lines[at]
        lines[at] = rng.choice(["[1]", "3", "{", f"{line},", line[:-1], f"{line} {line}", "nil"])
        case.must_refuse = True
    case.data = rng.choice(["\n", "\r\n"]).join(lines).encode(rng.choice(READABLE))
    case.stdin = rng.random() < 0.3 and not lines[0].startswith(("[", "3", "nil"))
    if rng.random() < 0.2:
        case.data, case.name = gzip.compress(case.data), f"{case.name}.gz"
    return case


def plain_json(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if text in ("", "null"):
        return None
    try:
        return float(text) if "_" not in text and text.isascii() else text
    except ValueError:
        return text


def noise(rng: random.Random) -> Case:
    """Bytes that are no table at all, or a table with some bytes changed that are not digits."""
    ends = ("csv", "jsonl", "npz", "npy", "parquet", "safetensors", "csv.gz", "xyz")
    starts = b"", b"PK\3\4", b"\x93NUMPY\1\0", b"\x1f\x8b", b"PAR1", b'{"loss": ', b"loss,member\n"
    name, start = f"a.{rng.choice(ends)}", rng.choice(starts)
    return Case(name=name, data=start + rng.randbytes(rng.randrange(60)), must_refuse=True)


WRITERS = [delimited] * 34 + [json_lines] * 5 + [noise]


def cases(count: int, seed: int = 1) -> Iterator[Case]:
    rng = random.Random(seed)
    for _ in range(count):
        yield rng.choice(WRITERS)(rng)


def complaint(
    case: Case, folder: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, str]:
    """What happened ("read" or "refused"), and what is wrong with it ("" if nothing)."""
    path: str | Path = folder / case.name
    if case.stdin:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(case.data)))
        path = "-"
    else:
        Path(path).unlink(
            missing_ok=True
        )  # overwriting a file takes a disk a hundred times as long
        Path(path).write_bytes(case.data)
    try:
        found = reader(path, **case.options)
    except ValueError as error:
        text = str(error)
        where = "standard input" if case.stdin else str(path)
        if "\n" in text or not text.startswith(f"{where}: ") or len(text) > len(where) + 900:
            return "refused", f"not one line that names the file: {text!r}"
        ordinary = not case.must_refuse and not case.odd
        return "refused", f"an ordinary file is refused: {text}" if ordinary else ""
    except Exception as error:
        return "refused", f"a traceback: {error!r}"
    if case.must_refuse:
        return "read", READ
    if found.kind != case.kind or found.scores.higher_means_member != (case.kind == "scores"):
        return "read", f"wrong direction: {found.kind}"
    values = (found.scores.member.tolist(), found.scores.nonmember.tolist())
    return "read", "" if values == (case.member, case.nonmember) else f"wrong values: {values}"


def test_thousands_of_files_are_read_exactly_or_refused_in_one_line(tmp_path, monkeypatch):
    counts: Counter[str] = Counter()
    for case in cases(FILES):
        outcome, bad = complaint(case, tmp_path, read_scores, monkeypatch)
        assert not bad, f"{bad}: {case}"
        counts[outcome] += 1
    assert counts["read"] > 0.3 * FILES
    assert counts["refused"] > 0.3 * FILES


def guesses(path: Any, **options: Any) -> LoadedScores:
    """Takes every unknown column for a score."""
    try:
        return read_scores(path, **options)
    except ValueError as error:
        if "--kind" not in str(error):
            raise
        return read_scores(path, **options, kind="scores")


def drops_rows(path: Any, **options: Any) -> LoadedScores:
    """Leaves out rows with an empty cell."""
    if str(path).endswith(".csv"):
        lines = Path(path).read_bytes().split(b"\n")
        Path(path).write_bytes(
            b"\n".join(line for line in lines if b",," not in line and line[:1] != b",")
        )
    return read_scores(path, **options)


def takes_any_loss(name: str) -> str | None:
    return "losses" if "loss" in name.lower() else kind_of_name(name)


@pytest.mark.parametrize(
    ("reader", "fault", "words"),
    [
        (guesses, (), READ),
        (drops_rows, (), ""),
        (read_scores, ("paperlib.reading.scores.kind_of_name", takes_any_loss), READ),
        (
            read_scores,
            ("paperlib.reading.columns.check_marks", lambda *_: None),
            "wrong values",
        ),
    ],
)
def test_a_reader_with_a_fault_is_caught(reader, fault, words, tmp_path, monkeypatch):
    if fault:
        monkeypatch.setattr(*fault)
    files = (case for case in cases(FILES, seed=2) if not case.stdin)
    bad = (complaint(case, tmp_path, reader, monkeypatch)[1] for case in files)
    assert any(text and text.startswith(words) for text in bad)
