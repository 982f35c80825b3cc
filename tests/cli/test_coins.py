"""``paperlib coins`` and ``paperlib audit --coins``: from data to an audit, and one line for each
mistake.
"""

import os
import re
import resource
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paperlib.audits import audit_scores
from paperlib.core import Coins, MembershipScores
from tests.cli.conftest import BOOK, blocks

AUDIT = "audit scores.csv --coins train.coins.json"


@pytest.fixture
def people(here):
    """Five hundred records of two rows each in data.csv, with an id of the row and one of the
    person.
    """
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"id": [f"r{at}" for at in range(1000)], "person": np.repeat(np.arange(500), 2)}
    )
    frame["age"] = rng.random(1000)
    frame.to_csv("data.csv", index=False)
    return frame


def memorized(frame, column, path="scores.csv"):
    """Losses of every record to be scored, lower where the person was trained on, in another
    order.
    """
    rng = np.random.default_rng(1)
    seen = set(pd.read_csv("train.csv")["age"])
    frame = frame.assign(loss=rng.normal(0, 1, len(frame)) - 4.0 * frame["age"].isin(seen))
    frame.sample(frac=1, random_state=0)[["loss", column]].to_csv(path, index=False)
    return frame


@pytest.mark.parametrize("options", ["", "--audit-fraction 0.4"])
def test_from_data_to_an_audit(people, command, options):
    code, out, error = command.line(f"coins data.csv --out train.csv --seed 3 {options}")
    assert (code, error) == (0, "")
    coins = Coins.load("train.coins.json")
    assert coins.commitment in out
    assert "Warning: the coins were tossed with the seed 3: whoever knows" in out
    to_score, train = pd.read_csv("train.audit.csv"), pd.read_csv("train.csv")
    assert to_score["id"].tolist() == list(coins.ids)
    assert (
        list(to_score.columns) == list(train.columns) == list(people.columns)
    )  # nothing tells the coin
    left_out = {
        one for one, included in zip(coins.ids, coins.included, strict=True) if not included
    }
    assert train["id"].tolist() == [one for one in people["id"] if one not in left_out]
    frame = memorized(to_score, "id")
    content = command.document(AUDIT)
    result = content["audits"][0]["result"]
    scores = MembershipScores.from_labels(frame["loss"], coins.included, higher_means_member=False)
    assert result["epsilon"] == audit_scores(scores).headline.epsilon > 1
    assert (content["design"], len(content["inputs"])) == ("randomized", 2)
    (said,) = (text for text in result["assumptions"] if coins.commitment in text)
    assert f"sealed on {coins.sealed}" in said
    assert any("seed 3" in text for text in content["warnings"])


def test_the_rows_of_a_unit_share_a_coin_and_the_claim_says_so(people, command):
    assert command.line("coins data.csv --out train.csv --unit person")[0] == 0
    coins, train = Coins.load("train.coins.json"), pd.read_csv("train.csv")
    assert (coins.unit, len(coins.ids)) == ("person", 500)
    assert set(train["person"].value_counts()) == {2}
    assert len(train) == 2 * coins.included.sum()
    memorized(people, "person")
    code, out, _ = command.line(f"{AUDIT} --output page.html")
    assert code == 0
    assert "One example is one unit of person: all its rows, their values averaged." in out
    assert all(
        coins.commitment in text for text in (out, Path("page.html").read_text(encoding="utf-8"))
    )


def test_without_ids_the_content_names_records_and_copies_are_refused(people, command):
    people.drop(columns=["id", "person"]).to_csv("data.csv", index=False)
    assert command.line("coins data.csv --out train.csv")[0] == 0
    to_score = pd.read_csv("train.audit.csv")
    assert to_score.columns[0] == "record_id"
    assert to_score["record_id"].tolist() == list(Coins.load("train.coins.json").ids)
    assert pd.read_csv("train.csv").columns.tolist() == ["age"]
    memorized(to_score, "record_id")
    assert command.line(AUDIT)[0] == 0
    people.drop(columns=["id", "age"]).to_csv("twice.csv", index=False)
    message = (
        "1,000 of 1,000 records are the same as another one; copies must share a "
        "coin.*--unit COLUMN"
    )
    command.refuses("coins twice.csv --out new.csv", message)
    people.drop(columns="age").to_csv("data.csv", index=False)
    out = command.line("coins data.csv --out other.csv")[1]
    assert "Warning: 1,000 of 1,000 records are the same as another one, but for 'id'" in out


def test_folders_and_lists_have_coins(here, command):
    for at in range(30):
        (here / "all" / str(at % 3)).mkdir(parents=True, exist_ok=True)
        (here / "all" / str(at % 3) / f"{at}.png").write_text(str(at))
    assert command.line("coins all --out some --seed 0")[0] == 0
    coins = Coins.load("some.coins.json")
    kept = {one.relative_to(here / "some").as_posix() for one in (here / "some").rglob("*.png")}
    assert kept == {
        one for one, included in zip(coins.ids, coins.included, strict=True) if included
    }
    assert Path("some.audit.txt").read_text().split() == list(coins.ids)
    Path("ids.txt").write_text("\n".join(coins.ids))
    assert command.line("coins ids.txt --out part.txt --seed 0")[0] == 0
    assert set(Path("part.txt").read_text().split()) == kept
    Path("all/copy.png").write_text("7")
    command.refuses("coins all --out more", "2 of 31 records are the same as another one")
    command.refuses("coins all --out all/more", "all/more is a part of all")


@pytest.mark.parametrize("taken", ["train.csv", "train.audit.csv", "train.coins.json"])
def test_nothing_is_overwritten(people, command, taken):
    Path(taken).write_text("mine")
    command.refuses(
        "coins data.csv --out train.csv", f"{taken}: exists already, and nothing is overwritten"
    )
    assert Path(taken).read_text() == "mine"


@contextmanager
def room_for(size):
    """No file may grow beyond so many bytes: a write fails halfway, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


FAULTS = ((200, "t.coins.json"), (20_000, "t.audit"), (100_000, "t"))


@pytest.mark.parametrize(("size", "file"), FAULTS)
def test_a_full_disk_leaves_no_file_and_no_data_without_coins(here, command, size, file):
    pages = pd.DataFrame({"id": range(200), "text": ["x" * 2000] * 200})
    pages.to_csv("pages.csv", index=False)
    with room_for(size):
        command.refuses(
            "coins pages.csv --id id --audit-fraction 0.1 --out t.csv",
            f"cannot write {file}{'' if file.endswith('json') else '.csv'}: the file would be",
        )
    assert command.line("coins pages.csv --id id --audit-fraction 0.1 --out t.csv")[0] == 0


def test_canaries_and_a_plan_leave_nothing_half_done(here, command):
    rows = "".join(f'{{"text": "text {at} {"x" * 2000}"}}\n' for at in range(200))
    Path("corpus.jsonl").write_text(rows)
    for size, file in ((1_000, "t.coins.json"), (20_000, "t.audit.jsonl"), (100_000, "t.jsonl")):
        with room_for(size):
            command.refuses(
                "canaries corpus.jsonl --count 40 --kind random --out t.jsonl",
                f"cannot write {file}: the",
            )
    plan = {"coins": "0" * 64, "score": "loss", "direction": "lower", "limit": "1"}
    Path("plan.yaml").write_text("".join(f"{name}: '{value}'\n" for name, value in plan.items()))
    with room_for(200):
        command.refuses("seal plan.yaml", "plan.sealed.json: file too large")
    assert command.line("seal plan.yaml")[0] == 0


@pytest.mark.parametrize("data", ["data.csv", "all"])
def test_the_coins_stand_before_the_data_and_an_interrupt_removes_both(
    people, here, command, monkeypatch, data
):
    (here / "all").mkdir()
    for at in range(30):
        (here / "all" / f"{at}.png").write_text(str(at))
    before = sorted(Path().rglob("*"))
    there = []

    def interrupted(path, target):
        if Path(target).name in ("t", "t.csv"):
            there.extend(sorted(one.name for one in Path().glob("t.*") if one != Path(target)))
            raise KeyboardInterrupt
        return replaced(path, target)

    replaced = os.replace
    for name in ("replace", "rename"):  # of a file, and of a folder
        monkeypatch.setattr(os, name, interrupted)
    assert command.line(f"coins {data} --out {'t.csv' if data == 'data.csv' else 't'}")[0] == 130
    assert there == [f"t.audit.{'csv' if data == 'data.csv' else 'txt'}", "t.coins.json"]
    assert sorted(Path().rglob("*")) == before


def test_the_coins_of_another_run_at_the_same_moment_stay(people, command, monkeypatch):
    def late(coins, path):
        Path(path).write_text("theirs")
        save(coins, path)

    save = Coins.save
    monkeypatch.setattr(Coins, "save", late)
    code, _, error = command.line(TOSS)
    assert (code, "t.coins.json: exists already" in error) == (2, True)
    assert Path("t.coins.json").read_text() == "theirs"
    assert not Path("t.csv").exists()


TOSS = "coins data.csv --out t.csv"


def test_a_mistake_of_tossing_or_auditing_is_one_line(people, command):
    command.line("coins data.csv --out train.csv")
    memorized(people, "id")
    Path("part.csv").write_text("\n".join(Path("scores.csv").read_text().splitlines()[:-2]))
    for words, message in (
        (
            "coins data.csv --out t.jsonl",
            "--out: t.jsonl gets the form of data.csv; let it end in .csv",
        ),
        (f"{TOSS} --id person", "1,000 records have 500 ids"),
        (f"{TOSS} --id persn", "no column 'persn'; the columns are 'id', 'person'"),
        (f"{TOSS} --unit person --id id", "--unit: contradicts --id"),
        (f"{TOSS} --audit-fraction 2", "fraction: expected a number in (0, 1]"),
        ("coins none.csv --out t.csv", "none.csv: there is no such file"),
        ("coins data.csv", "Missing option '--out'"),
        (AUDIT.replace("scores", "part"), "2 of 1,000 records with a coin are missing"),
        (f"{AUDIT} --design game", "coins: they say that the design is randomized"),
        (f"{AUDIT.replace('scores.csv', 'scores.csv scores.csv')}", "give one file, and no unit"),
    ):
        command.refuses(words, message)


def test_the_page_s_commands_and_its_example_run(people, command, capsys):
    toss, audit, plant = blocks("toss_coins.md", "sh")[:3]
    Path("corpus.jsonl").write_text(
        "".join(f'{{"text": "text number {at}"}}\n' for at in range(600))
    )
    assert command.line(plant)[0] == 0
    assert "500 coins for 500 canaries" in Coins.load("train.coins.json").seal
    Path("train.coins.json").unlink()
    assert command.line(toss)[0] == 0
    page = (BOOK / "toss_coins.md").read_text(encoding="utf-8")
    assert all(Path(name).exists() for name in re.findall(r"^\| `(\S+)`", page, re.MULTILINE))
    memorized(people, "id")
    assert command.line(audit)[0] == 0
    exec(blocks("toss_coins.md", "python")[0], {})
    assert re.match(r"[0-9a-f]{64}\nε ≥ [1-9]", capsys.readouterr().out)


def test_forgetting_from_data_to_an_audit_and_its_mistakes(here, command):
    labels = np.arange(400) % 3
    pd.DataFrame({"id": range(400), "label": labels}).to_csv("data.csv", index=False)
    of_a_fifth = blocks("toss_coins.md", "sh")[3]
    tossed = command.line(of_a_fifth.replace("--audit-fraction 0.2", "--seed 3"))
    assert (tossed[0], tossed[2]) == (0, "")
    assert "train.forget.csv: the record of each pair to forget after training" in tossed[1]
    scored, forgotten = pd.read_csv("train.audit.csv"), pd.read_csv("train.forget.csv")
    assert len(scored) == 2 * len(forgotten) == 398
    assert set(forgotten["id"]) == set(scored["id"]) & set(pd.read_csv("train.csv")["id"])
    losses = np.random.default_rng(0).gamma(8, 1, len(scored))
    losses[scored["id"].isin(forgotten["id"])] /= 4
    scored.assign(loss=losses)[["id", "loss"]].to_csv("scores.csv", index=False)
    code, out, _ = command.line(f"{AUDIT} --utility 0.9 0.8")
    assert code == 0
    for words in ("forgotten records still known", "after it 0.8", "199 pairs)"):
        assert words in out
    assert "199 examples" not in out
    for line, message in {
        f"{AUDIT} --utility 0.9 1.8": "utility after forgetting",
        "coins data.csv --out t.csv --alike label": "give --forget beside it",
        "coins data.csv --out t.csv --forget --alike lable": "no column 'lable'",
        "coins data.csv --out t.csv --forget --unit label": "pairs are of single records",
        f"{AUDIT} --design game": "no other design does",
    }.items():
        code, _, error = command.line(line)
        assert code != 0
        assert message in error
