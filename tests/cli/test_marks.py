"""``paperlib mark`` and ``audit-marks``: from texts to an answer, and one line for each mistake."""

import json
import shutil
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paperlib.core import Coins

AUDIT = "audit-marks published.audit.jsonl --coins published.coins.json"
WORDS = ["colour", "grey", "centre", "towards", "organise", "realise", "neighbour", "favour"]


@pytest.fixture
def marked(here, command):
    """Thirty texts with a mark."""
    rows = []
    for number, rng in enumerate(np.random.default_rng(0).spawn(30)):
        words = ", ".join(rng.choice(WORDS, 4, replace=False))
        rows.append({"id": f"t{number}", "text": f"Text {number} of the collection has {words}."})
    Path("texts.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert command.line("mark texts.jsonl --out published.jsonl --seed 1")[0] == 0
    return rows


def rows_of(path: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def write_losses(gain: float, path: str = "losses.csv") -> None:
    """Losses of all versions in another order, lower for those that were published."""
    rng = np.random.default_rng(2)
    published = {row["text"] for row in rows_of("published.jsonl")}
    frame = pd.DataFrame(rows_of("published.audit.jsonl"))
    frame["loss"] = rng.normal(size=len(frame)) - gain * frame["text"].isin(published)
    frame[["id", "loss"]].sample(frac=1, random_state=0).to_csv(path, index=False)


def test_from_texts_to_an_answer(marked, command):
    coins = Coins.load("published.coins.json")
    assert (coins.versions, coins.records, len(coins.ids)) == (8, 30, 240)
    for path in ("published.coins.json", "published.audit.jsonl"):
        assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    texts = {row["id"]: row["text"] for row in rows_of("published.audit.jsonl")}
    drawn = [
        texts[name] for name, is_drawn in zip(coins.ids, coins.included, strict=True) if is_drawn
    ]
    assert [row["text"] for row in rows_of("published.jsonl")] == drawn
    assert [row["id"] for row in rows_of("published.jsonl")] == [row["id"] for row in marked]

    write_losses(2.0)
    content = command.document(f"{AUDIT} --scores losses.csv")
    result = content["audits"][0]["result"]
    assert (content["design"], result["used"], result["coins"]) == ("marks", True, coins.commitment)
    assert result["p_value"] < 1e-6
    assert content["epsilon"] > 1
    assert "were used" in content["verdict"]["sentences"][0]

    write_losses(0.0)
    content = command.document(f"{AUDIT} --scores losses.csv --reference losses.csv")
    assert not content["audits"][0]["result"]["used"]
    assert content["refusals"] == []
    code, out, _ = command.line(f"{AUDIT} --scores losses.csv --fail-above 0.5")
    assert (code, "does not show that they were not used" in out) == (0, True)


def test_the_answers_of_a_chat_show_a_use(marked, command):
    texts = {row["id"]: row["text"] for row in rows_of("published.jsonl")}
    lines = []
    for row in rows_of("published.prompts.jsonl"):
        beginning = row["prompt"].partition("\n\n")[2]
        assert texts[row["id"]].startswith(beginning)
        lines.append(
            json.dumps({"id": row["id"], "answer": texts[row["id"]].removeprefix(beginning)})
        )
    Path("answers.jsonl").write_text("\n".join(lines))
    content = command.document(f"{AUDIT} --answers answers.jsonl")
    assert content["audits"][0]["result"]["p_value"] < 1e-6
    Path("answers.jsonl").write_text("\n".join(lines[1:]))
    command.refuses(f"{AUDIT} --answers answers.jsonl", "bring one answer to each prompt")
    same = [
        json.dumps({"id": row["id"], "answer": "No."}) for row in rows_of("published.prompts.jsonl")
    ]
    Path("answers.jsonl").write_text("\n".join(same))
    assert not command.document(f"{AUDIT} --answers answers.jsonl")["audits"][0]["result"]["used"]


def test_an_original_that_is_always_published_is_found_without_the_model(marked, command):
    """The broken twin of the draw: sealed by somebody who chose."""
    coins = Coins.load("published.coins.json")
    chosen = Coins(
        ids=coins.ids,
        included=np.arange(240) % 8 == 0,
        unit="",
        column="id",
        records=30,
        seed=None,
        versions=8,
    )
    Path("published.coins.json").unlink()
    chosen.save("published.coins.json")
    write_losses(0.0)
    content = command.document(f"{AUDIT} --scores losses.csv")
    assert content["refusals"][0]["code"] == "unfair_draw"
    assert "order in which versions were made" in content["refusals"][0]["sentence"]
    assert command.line(f"{AUDIT} --scores losses.csv --fail-above 9")[0] == 3


def test_each_mistake_has_a_line(marked, command):
    write_losses(0.0)
    refuses = command.refuses
    refuses("mark texts.jsonl --out published.jsonl", "exists already")
    refuses("mark texts.jsonl --out published.csv", "published.csv")
    refuses("mark texts.jsonl --out p.jsonl --text texts", "no column 'texts'")
    refuses(AUDIT, "one of --scores, --model and --answers")
    refuses(f"{AUDIT} --scores losses.csv --base gpt2", "compared with --model")
    refuses("audit losses.csv --coins published.coins.json", "audit-marks")
    frame = pd.read_csv("losses.csv")
    frame.iloc[1:].to_csv("few.csv", index=False)
    refuses(f"{AUDIT} --scores few.csv", "bring all of them")
    Path("short.jsonl").write_text('{"id": 1, "text": "No way."}\n' * 9)
    refuses("mark short.jsonl --out p.jsonl", "equal ids")
    Path("short.txt").write_text("No way.\nNone.\nNo.\nNo!\nNever.\nNot at all.\n")
    refuses("mark short.txt --out p.txt", "give --identifier")
    assert command.line("mark short.txt --out p.txt --identifier")[0] == 0
    for option in ("--text body", "--id body"):  # a list has no columns
        refuses(f"mark short.txt --out q.txt --identifier {option}", "no column 'body'")
    shutil.copy("published.audit.jsonl", "other.audit.jsonl")
    text = Path("other.audit.jsonl").read_text()
    Path("other.audit.jsonl").write_text(text.replace("collection", "selection", 1))
    refuses(
        f"{AUDIT.replace('published.audit', 'other.audit')} --scores losses.csv",
        "not those that were sealed",
    )
    assert command.line("coins texts.jsonl --out train.jsonl")[0] == 0
    refuses(
        "audit-marks published.audit.jsonl --coins train.coins.json --scores losses.csv",
        "paperlib mark",
    )


def test_after_an_error_no_file_is_there(marked, command, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    before = {path.name for path in Path().iterdir()}
    monkeypatch.setattr("paperlib.io.records.write_bytes", full)
    assert command.line("mark texts.jsonl --out second.jsonl")[0] != 0
    assert {path.name for path in Path().iterdir()} == before
