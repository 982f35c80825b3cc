"""``paperlib coins`` and ``paperlib audit --coins``: from data to an audit, and one line for each mistake."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paperlib.audits import audit_scores
from paperlib.core import Coins, MembershipScores


@pytest.fixture
def people(tmp_path, monkeypatch):
    """Five hundred records of two rows each in data.csv, with an id of the row and one of the person."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": [f"r{at}" for at in range(1000)], "person": np.repeat(np.arange(500), 2)})
    frame["age"] = rng.random(1000)
    frame.to_csv("data.csv", index=False)
    return frame


def memorized(frame, column, path="scores.csv"):
    """Losses of every record to be scored, lower where the person was trained on, in another order."""
    rng = np.random.default_rng(1)
    seen = set(pd.read_csv("train.csv")["age"])
    frame = frame.assign(loss=rng.normal(0, 1, len(frame)) - 4.0 * frame["age"].isin(seen))
    frame.sample(frac=1, random_state=0)[["loss", column]].to_csv(path, index=False)
    return frame


@pytest.mark.parametrize("options", [(), ("--audit-fraction", "0.4")])
def test_from_data_to_an_audit(people, command, options):
    code, out, error = command("coins", "data.csv", "--out", "train.csv", "--seed", "3", *options)
    assert (code, error) == (0, "")
    coins = Coins.load("train.coins.json")
    assert coins.commitment in out
    assert "Warning: the coins were tossed with the seed 3: whoever knows" in out
    to_score, train = pd.read_csv("train.audit.csv"), pd.read_csv("train.csv")
    assert to_score["id"].tolist() == list(coins.ids)
    assert list(to_score.columns) == list(train.columns) == list(people.columns)  # nothing tells the coin
    left_out = {one for one, included in zip(coins.ids, coins.included, strict=True) if not included}
    assert train["id"].tolist() == [one for one in people["id"] if one not in left_out]
    frame = memorized(to_score, "id")
    code, out, error = command("audit", "scores.csv", "--coins", "train.coins.json", "--json")
    assert (code, error) == (0, "")
    content = json.loads(out)
    result = content["audits"][0]["result"]
    scores = MembershipScores.from_labels(frame["loss"], coins.included, higher_means_member=False)
    assert result["epsilon"] == audit_scores(scores).headline.epsilon > 1
    assert (content["design"], len(content["inputs"])) == ("randomized", 2)
    assert any(
        coins.commitment in text and f"sealed on {coins.sealed}" in text for text in result["assumptions"]
    )
    assert any("seed 3" in text for text in content["warnings"])


def test_the_rows_of_a_unit_share_a_coin_and_the_claim_says_so(people, command):
    assert command("coins", "data.csv", "--out", "train.csv", "--unit", "person")[0] == 0
    coins, train = Coins.load("train.coins.json"), pd.read_csv("train.csv")
    assert (coins.unit, len(coins.ids)) == ("person", 500)
    assert set(train["person"].value_counts()) == {2}
    assert len(train) == 2 * coins.included.sum()
    memorized(people, "person")
    code, out, _ = command("audit", "scores.csv", "--coins", "train.coins.json", "--output", "page.html")
    assert code == 0
    assert "One example is one unit of person: all its rows, their values averaged." in out
    assert coins.commitment in out
    with open("page.html", encoding="utf-8") as page:
        assert coins.commitment in page.read()


def test_without_ids_the_content_names_records_and_copies_are_refused(people, command):
    people.drop(columns=["id", "person"]).to_csv("data.csv", index=False)
    assert command("coins", "data.csv", "--out", "train.csv")[0] == 0
    to_score = pd.read_csv("train.audit.csv")
    assert to_score.columns[0] == "record_id"
    assert to_score["record_id"].tolist() == list(Coins.load("train.coins.json").ids)
    assert pd.read_csv("train.csv").columns.tolist() == ["age"]
    memorized(to_score, "record_id")
    assert command("audit", "scores.csv", "--coins", "train.coins.json")[0] == 0
    people.drop(columns=["id", "age"]).to_csv("twice.csv", index=False)
    code, _, error = command("coins", "twice.csv", "--out", "new.csv")
    assert code == 2
    assert "1,000 of 1,000 records are the same as another one; copies must share a coin" in error
    assert "--unit COLUMN" in error


def test_records_that_differ_in_their_id_alone_are_pointed_out(people, command):
    people.drop(columns="age").to_csv("data.csv", index=False)
    _, out, _ = command("coins", "data.csv", "--out", "train.csv")
    assert "Warning: 1,000 of 1,000 records are the same as another one, but for 'id'" in out


def test_folders_and_lists_have_coins(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    for at in range(30):
        (tmp_path / "all" / str(at % 3)).mkdir(parents=True, exist_ok=True)
        (tmp_path / "all" / str(at % 3) / f"{at}.png").write_text(str(at))
    assert command("coins", "all", "--out", "some", "--seed", "0")[0] == 0
    coins = Coins.load("some.coins.json")
    kept = {one.relative_to(tmp_path / "some").as_posix() for one in (tmp_path / "some").rglob("*.png")}
    assert kept == {one for one, included in zip(coins.ids, coins.included, strict=True) if included}
    assert (tmp_path / "some.audit.txt").read_text().split() == list(coins.ids)
    (tmp_path / "ids.txt").write_text("\n".join(coins.ids))
    assert command("coins", "ids.txt", "--out", "part.txt", "--seed", "0")[0] == 0
    assert set((tmp_path / "part.txt").read_text().split()) == kept
    (tmp_path / "all" / "copy.png").write_text("7")
    code, _, error = command("coins", "all", "--out", "more")
    assert (code, "2 of 31 records are the same as another one" in error) == (2, True)
    assert "all/more is a part of all" in command("coins", "all", "--out", "all/more")[2]


@pytest.mark.parametrize("taken", ["train.csv", "train.audit.csv", "train.coins.json"])
def test_nothing_is_overwritten(people, tmp_path, command, taken):
    (tmp_path / taken).write_text("mine")
    before = sorted(tmp_path.iterdir())
    code, _, error = command("coins", "data.csv", "--out", "train.csv")
    assert (code, f"{taken}: exists already, and nothing is overwritten" in error) == (2, True)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / taken).read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("data.csv", "--out", "t.jsonl"), "--out: t.jsonl gets the form of data.csv; let it end in .csv"),
        (("data.csv", "--out", "t.csv", "--id", "person"), "1,000 records have 500 ids"),
        (
            ("data.csv", "--out", "t.csv", "--id", "persn"),
            "no column 'persn'; the columns are 'id', 'person'",
        ),
        (("data.csv", "--out", "t.csv", "--unit", "person", "--id", "id"), "--unit: contradicts --id"),
        (("data.csv", "--out", "t.csv", "--audit-fraction", "2"), "fraction: expected a number in (0, 1]"),
        (("none.csv", "--out", "t.csv"), "none.csv: there is no such file"),
        (("data.csv",), "Missing option '--out'"),
    ],
)
def test_a_mistake_of_tossing_is_one_line(people, tmp_path, command, words, message):
    code, out, error = command("coins", *words)
    assert (code, out) == (2, "")
    assert message in error
    assert error.count("\n") == 1
    assert [one.name for one in tmp_path.iterdir()] == ["data.csv"]


def test_a_mistake_of_auditing_is_one_line(people, tmp_path, command):
    command("coins", "data.csv", "--out", "train.csv")
    memorized(people, "id")
    audit = ("audit", "scores.csv", "--coins")
    lines = (tmp_path / "scores.csv").read_text().splitlines()
    (tmp_path / "part.csv").write_text("\n".join(lines[:-2]))
    text = (tmp_path / "train.coins.json").read_text()
    flipped = re.sub(r'("coins": ")(.)', lambda found: found[1] + "10"[int(found[2])], text)
    (tmp_path / "edited.json").write_text(flipped)
    cases = {
        ("audit", "part.csv", "--coins", "train.coins.json"): "2 of 1,000 records with a coin are missing",
        (*audit, "edited.json"): "edited.json: was changed after it was sealed",
        (*audit, "none.json"): "none.json: no such file",
        (*audit, "data.csv"): "data.csv: is no coins file",
        (*audit, "train.coins.json", "--unit", "id"): "coins: they tell who is a member and what a unit is",
        (*audit, "train.coins.json", "--design", "game"): "coins: they say that the design is randomized",
        ("audit", "scores.csv", "scores.csv", "--coins", "train.coins.json"): "give one file, and no unit",
    }
    for words, message in cases.items():
        code, _, error = command(*words)
        assert (code, message in error, error.count("\n")) == (2, True, 1), error


def test_the_page_s_commands_and_its_example_run(people, command, capsys):
    page = (Path(__file__).parents[2] / "book" / "toss_coins.md").read_text(encoding="utf-8")
    toss, audit, plant = re.findall(r"```sh\npaperlib (.*)\n```", page)
    Path("corpus.jsonl").write_text("".join(f'{{"text": "text number {at}"}}\n' for at in range(600)))
    assert command(*shlex.split(plant))[0] == 0
    assert "500 coins for 500 canaries" in Coins.load("train.coins.json").seal
    Path("train.coins.json").unlink()
    assert command(*shlex.split(toss))[0] == 0
    assert all(Path(name).exists() for name in re.findall(r"^\| `(\S+)`", page, re.MULTILINE))
    memorized(people, "id")
    assert command(*shlex.split(audit))[0] == 0
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(code, {})
    printed = capsys.readouterr().out
    assert re.match(r"[0-9a-f]{64}\nε ≥ [1-9]", printed)
    assert Coins.load("forest.coins.json").commitment in printed
