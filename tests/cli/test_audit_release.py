"""`paperlib audit-release`: files of every kind, the page's commands, the gate, and mistakes in one
line.
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from paperlib.core import Coins
from tests.audits.test_releases import people
from tests.cli.conftest import BOOK, blocks

PAGE = (BOOK / "audit_a_release.md").read_text(encoding="utf-8")


def write(**tables):
    for name, table in tables.items():
        table.to_csv(f"{name}.csv", index=False)


def test_the_page_s_commands_find_a_release_of_the_training_rows(here, command):
    toss, with_coins, held_out = blocks("audit_a_release.md", "sh")
    data = people(600, 0)
    data.insert(0, "zip", [f"{at % 50:05d}" for at in range(600)])
    write(data=data, members=data[:300], holdout=data[300:])
    assert command.line(toss)[0] == 0
    train = pd.read_csv("train.csv", dtype={"zip": str})
    write(synthetic=train.assign(income=train["income"] + 1))
    code, printed, _ = command.line(with_coins)
    assert (code, "adding or removing one example" in printed) == (0, True)
    assert float(re.search(r"^ε ≥ (\S+)", printed, re.MULTILINE)[1]) > 2
    assert Coins.load("train.coins.json").commitment in Path("synthetic-audit.html").read_text()
    write(synthetic=data[:300].assign(income=data["income"] + 1))
    code, printed, error = command.line(held_out)
    assert (code, "replacing one example" in printed, "gate failed" in error) == (3, True, True)
    page = Path("synthetic-audit-2.html").read_text()
    for name in ("reproduced", "nearly reproduced", "singled out", "linked", "inferred"):
        assert f"\n| {name} | " in PAGE
        assert f"\n{name}: " in printed
        assert name in page
    assert "phantom" in page


def test_the_page_s_example_prints_its_table(capsys):
    exec(blocks("audit_a_release.md", "python")[0], {})
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2
    for row in printed:
        name, epsilon, *hits = row.strip("| ").split(" | ")
        (cells,) = re.findall(rf"^\| {re.escape(name)} \| (.*) \|$", PAGE, re.MULTILINE)
        shown, *counts = cells.split(" | ")
        assert counts == hits
        assert float(epsilon) == pytest.approx(
            float(shown), abs=0.3
        )  # other processors round otherwise


def test_json_has_rates_and_exposed_records_by_name_and_codes_keep_their_zeros(here, command):
    members, others, release = (people(300, seed) for seed in range(3))
    for frame in (members, others, release):
        frame["code"] = [f"00{at % 7}" for at in range(300)]
    release = pd.concat([members[:40], release[40:]])
    for frame, side in ((members, "m"), (others, "n")):
        frame.insert(0, "name", [f"{side}{at}" for at in range(300)])
    write(release=release, members=members)
    others.to_parquet("others.parquet", index=False)
    words = "audit-release release.csv members.csv others.parquet --id-column name --secret code"
    content = command.document(f"{words} --design game --claimed-epsilon 0")
    assert (content["verdict"]["refuted"], content["design"]) == (True, "game")
    assert content["rates"][0]["member_hits"] == 40
    assert {one["record"] for one in content["exposed"]} <= {f"m{at}" for at in range(300)}
    assert set(content["inputs"]) == {"release.csv", "members.csv", "others.parquet"}


def test_texts_lines_arrays_and_folders_are_read(here, command):
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice([f"w{at}" for at in range(200)], 9)) for _ in range(90)]
    pictures = rng.integers(0, 255, (90, 6, 6, 3)).astype(np.uint8)
    for at, name in enumerate("abc"):
        part = texts[30 * at : 30 * at + 30]
        Path(f"{name}.txt").write_text("\n".join(part))
        frame = pd.DataFrame({"text": part, "length": range(30)})
        frame.to_json(f"{name}.jsonl", orient="records", lines=True)
        np.savez(f"{name}.npz", images=pictures[30 * at : 30 * at + 30])
        Path(name).mkdir()
        for number in range(30):
            Image.fromarray(pictures[30 * at + number]).save(f"{name}/{number}.png")
    for ending, options in (
        (".txt", ()),
        (".jsonl", ("--text-column", "text")),
        (".npz", ()),
        ("", ()),
    ):
        files = (f"{name}{ending}" for name in "abc")
        code, printed, error = command("audit-release", *files, "--design", "game", *options)
        assert (code, error, "nearly reproduced" in printed) == (0, "", True)


def test_mistakes_are_told_in_one_line(here, command):
    write(**{name: people(40, seed) for seed, name in enumerate(("a", "b", "c"))})
    write(other=people(40, 3).drop(columns="job"), none=people(0, 0))
    Path("d").mkdir()
    refuses = command.of("audit-release").refuses
    refuses("a.csv b.csv other.csv", "nonmembers: expected the columns")
    refuses("a.csv b.csv gone.csv", "gone.csv: there is no such file")
    refuses("a.csv b.csv none.csv", "none.csv: no rows")
    refuses("a.csv b.csv c.csv --id-column nam", "--id-column: b.csv has no column 'nam'")
    refuses("a.csv b.csv c.csv --text-column age", "a.csv: column 'age' holds other cells")
    refuses("a.csv b.csv c.csv --secret ages", "secret: expected one of the columns")
    refuses("d b.csv c.csv", "d: there are no images")
    refuses("a.csv b.csv c.csv --output b.csv", "--output: b.csv is the input")


def test_what_was_read_otherwise_is_named(here, command):
    members, others, release = (people(60, seed) for seed in range(3))
    for number, table in enumerate((members, others, release)):
        table.insert(0, "key", [f"PT-{60 * number + row:04d}" for row in range(60)])
    write(members=members, others=others, release=release)
    code, printed, _ = command("audit-release", "release.csv", "members.csv", "others.csv")
    assert code == 0
    note = "column 'key': its values never repeat"
    assert f"\nNote: {note}" in printed
    assert note in Path("release-audit.html").read_text(encoding="utf-8")


def test_coins_of_patients_and_a_column_of_units_end_in_an_audit_of_patients(here, command):
    data = people(600, 0)
    data.insert(0, "patient", [f"p{row // 3}" for row in range(600)])
    write(data=data)
    assert command.line("coins data.csv --out train.csv --unit patient")[0] == 0
    train = pd.read_csv("train.csv")
    write(release=train.assign(income=train["income"] + 1))
    words = "audit-release release.csv train.audit.csv --coins train.coins.json"
    for options in ("", " --unit patient"):
        code, printed, _ = command.line(words + options)
        assert code == 0
        assert "One example is one unit of patient" in printed
        assert "200 examples" in printed
    refuses = command.of("audit-release").refuses
    given = "release.csv train.audit.csv --coins train.coins.json"
    refuses(f"{given} --unit job", "--unit: the coins are those of 'patient'; leave it out")
    write(release=data[:300].assign(income=data["income"] + 1), a=data[:300], b=data[300:])
    code, printed, _ = command.line("audit-release release.csv a.csv b.csv --unit patient")
    assert (code, "One example is one unit" in printed) == (0, True)
    write(b=data[299:])
    refuses("release.csv a.csv b.csv --unit patient", "records among both the members and the")
    refuses("release.csv a.csv b.csv --unit patient --id-column job", "--id-column: --unit names")


def test_one_column_is_not_both_text_and_name(here, command):
    texts = [f"word{row} of {row % 7}" for row in range(40)]
    write(**{name: pd.DataFrame({"text": texts, "length": 1}) for name in ("a", "b", "c")})
    command.of("audit-release").refuses(
        "a.csv b.csv c.csv --text-column text --id-column text",
        "column 'text': it cannot be both the text that is audited and the names of the records",
    )
