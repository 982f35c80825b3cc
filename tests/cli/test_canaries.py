"""``paperlib canaries``: made records go into the data by coins, and the audit's claim names
them.
"""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from paperlib import audit_features, losses
from paperlib.core import Coins
from paperlib.generators.chats import last_answer, with_last_answer


@pytest.fixture
def folder(here):
    """A table of 600 rows with labels, texts in several forms, and images in folders of classes."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"id": np.arange(600), "x": rng.normal(size=600), "z": rng.normal(size=600)}
    )
    frame["label"] = np.where(frame["x"] > 0, "yes", "no")
    frame.to_csv("data.csv", index=False)
    words = ["".join(rng.choice(list("abcdefgh"), 5)) for _ in range(60)]
    texts = [" ".join(rng.choice(words, rng.integers(5, 15))) for _ in range(80)]
    (here / "texts.txt").write_text("\n".join(texts) + "\n")
    rows = [{"text": text, "source": f"s{at % 3}"} for at, text in enumerate(texts)]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (here / "texts.jsonl").write_text(lines)
    (here / "texts.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (here / "chats.jsonl").write_text('{"text": ["hello", "how are you"]}\n')
    pd.DataFrame(rows).rename(columns={"text": "says"}).assign(id=np.arange(80)).to_parquet(
        "texts.parquet"
    )
    for at in range(30):
        part = here / "images" / f"class{at % 3}"
        part.mkdir(parents=True, exist_ok=True)
        (part / f"{at // 3}.png").write_text(str(at))
    return here


CHATS = {
    "messages": lambda question, answer: {
        "messages": [
            {"role": "user", "content": question},
            {"role": "assistant", "content": answer},
            {"role": "user", "content": "Thanks."},
        ]
    },
    "conversations": lambda question, answer: {
        "conversations": [
            {"from": "human", "value": question},
            {"from": "gpt", "value": answer},
        ]
    },
    "pairs": lambda question, answer: {
        "prompt": [{"role": "user", "content": question}],
        "completion": [{"role": "assistant", "content": answer}],
    },
    "texts": lambda question, answer: {"prompt": question, "completion": answer},
}


@pytest.mark.parametrize("form", CHATS)
def test_canaries_of_chats_are_chats_with_another_last_answer(here, command, form):
    make = CHATS[form]
    chats = [make(f"Where is {at}?", f"It is at place {at * 7} now.") for at in range(40)]
    (here / "chats.jsonl").write_text("".join(f"{json.dumps(chat)}\n" for chat in chats))
    code, _, error = command.line(
        "canaries chats.jsonl --count 10 --kind tokens --out train.jsonl --seed 1"
    )
    assert (code, error) == (0, "")
    rows = [json.loads(line) for line in (here / "train.audit.jsonl").read_text().splitlines()]
    coins = Coins.load("train.coins.json")
    assert [row.pop("record_id") for row in rows] == list(coins.ids)
    questions = {last_answer(chat): chat for chat in chats}
    for row in rows:
        assert last_answer(row) not in questions
        assert any(with_last_answer(row, last_answer(chat)) == chat for chat in chats)
    trained = [json.loads(line) for line in (here / "train.jsonl").read_text().splitlines()]
    planted = [row for row, heads in zip(rows, coins.included, strict=True) if heads]
    key = json.dumps
    assert sorted(map(key, trained)) == sorted(map(key, [*chats, *planted]))


def fit_and_score(path):
    """Fit a tree that overfits, and write the loss of every canary."""
    train, canaries = pd.read_csv("train.csv"), pd.read_csv("train.audit.csv")
    tree = DecisionTreeClassifier(random_state=0).fit(train[["x", "z"]], train["label"])
    canaries["loss"] = losses(tree, (canaries[["x", "z"]], canaries["label"]))
    canaries[["id", "loss"]].sample(frac=1, random_state=0).to_csv(path, index=False)


@pytest.mark.parametrize("repetitions", [1, 3])
def test_from_a_table_to_a_claim_about_canaries(folder, command, repetitions):
    words = "canaries data.csv --count 200 --kind labels --label label --out train.csv --seed 4"
    code, out, error = command.line(f"{words} --repetitions {repetitions}")
    assert (code, error) == (0, "")
    data, train, canaries = (
        pd.read_csv(f"{name}.csv") for name in ("data", "train", "train.audit")
    )
    coins = Coins.load("train.coins.json")
    assert coins.commitment in out
    assert (
        f"400 of 600 records and {repetitions * coins.included.sum()} planted ones, to train on"
        in out
    )
    assert canaries["id"].astype(str).tolist() == list(coins.ids)
    right = data.set_index("id").loc[canaries["id"]]
    assert (right["label"].to_numpy() != canaries["label"].to_numpy()).all()
    assert right["x"].tolist() == canaries["x"].tolist()
    assert (
        list(canaries.columns) == list(train.columns) == list(data.columns)
    )  # nothing tells the coin
    times = train["id"].value_counts()
    expected = {
        int(one): repetitions * heads for one, heads in zip(coins.ids, coins.included, strict=True)
    }
    assert all(times.get(row, 0) == expected.get(row, 1) for row in data["id"])
    planted = train["id"].isin(canaries["id"])
    assert (
        train[planted].merge(canaries, on="id")[["x_x", "label_x"]].to_numpy()
        == train[planted].merge(canaries, on="id")[["x_y", "label_y"]].to_numpy()
    ).all()
    assert train[~planted].merge(data).shape == (400, 4)
    fit_and_score("scores.csv")
    content = command.document("audit scores.csv --coins train.coins.json --claimed-epsilon 1")
    result = content["audits"][0]["result"]
    assert result["epsilon"] > 1
    said = "One example is one canary, a record that was made for the audit"
    copies = (
        ", with all its 3 copies: 3 records that come and go together" if repetitions == 3 else ""
    )
    assert f"{said}{copies}." in result["claim"]
    assert any("200 coins for 200 canaries" in text for text in result["assumptions"])
    judged = next(one for one in content["verdict"]["sentences"] if "claimed epsilon" in one)
    more = ", and such a claim allows 3 when 3 copies of a record are added or removed together"
    assert judged.endswith(f"{more if repetitions == 3 else ''}.")
    features = pd.read_csv("scores.csv").assign(loss=lambda rows: -rows["loss"])
    assert said in audit_features(features, coins).claim
    shuffled = pd.read_csv("scores.csv").sample(frac=1, random_state=1)
    shuffled["id"] = np.random.default_rng(1).permutation(shuffled["id"])
    shuffled.to_csv("shuffled.csv", index=False)
    assert command.document("audit shuffled.csv --coins train.coins.json")["epsilon"] == 0


def read(path):
    """Texts and ids of a file, in one form."""
    if path.endswith(".parquet"):
        return pd.read_parquet(path).rename(columns={"says": "text"})
    if path.endswith(".txt"):
        with open(path) as file:
            return pd.DataFrame({"text": file.read().splitlines()})
    return pd.read_json(path, lines=True)


@pytest.mark.parametrize(
    ("kind", "ending"),
    [("random", "txt"), ("tokens", "jsonl"), ("new-vocabulary", "jsonl.gz"), ("tokens", "parquet")],
)
def test_texts_of_every_form(folder, command, kind, ending):
    options = "--repetitions 2 --text says" if ending == "parquet" else "--repetitions 2"
    words = f"canaries texts.{ending} --count 30 --kind {kind} --out t.{ending} {options}"
    assert command.line(words)[0] == 0
    data, train = read(f"texts.{ending}"), read(f"t.{ending}")
    canaries = read("t.audit.jsonl" if ending == "txt" else f"t.audit.{ending}")
    coins, column = Coins.load("t.coins.json"), "id" if ending == "parquet" else "record_id"
    assert (coins.column, coins.copies, len(coins.ids)) == (column, 2, 30)
    assert canaries[column].astype(str).tolist() == list(coins.ids)
    assert column == "id" or next(iter(canaries.columns)) == column
    times = train["text"].value_counts()
    assert [times.get(text, 0) for text in canaries["text"]] == (2 * coins.included).tolist()
    others = train[~train["text"].isin(canaries["text"])]
    assert others.reset_index(drop=True).equals(data)  # every record of the data, in its order
    if ending != "txt":
        assert set(canaries["source"]) <= set(data["source"])
    if column == "id":
        assert canaries["id"].tolist() == list(range(80, 110))
        assert (canaries["id"].dtype, train.dtypes.to_dict()) == (
            data["id"].dtype,
            data.dtypes.to_dict(),
        )


def test_images_get_a_wrong_class_and_leave_their_own(folder, command):
    assert (
        command.line("canaries images --count 12 --kind labels --out some --repetitions 2")[0] == 0
    )
    coins = Coins.load("some.coins.json")

    def files(name):
        found = (folder / name).rglob("*.png")
        return {one.relative_to(folder / name).as_posix(): one.read_text() for one in found}

    data, train, canaries = files("images"), files("some"), files("some.audit")
    own = {content: name.split("/")[0] for name, content in data.items()}
    assert set(canaries) == set(coins.ids)
    assert all(own[content] != name.split("/")[0] for name, content in canaries.items())
    kept = {name: content for name, content in data.items() if content not in canaries.values()}
    assert kept == {name: train[name] for name in kept}
    planted = [one for one, heads in zip(coins.ids, coins.included, strict=True) if heads]
    copies = [one.replace(".png", "-2.png") for one in planted]
    assert set(train) == {*kept, *planted, *copies}
    assert all(
        train[one] == train[copy] == canaries[one]
        for one, copy in zip(planted, copies, strict=True)
    )


def test_coins_of_canaries_are_fair_and_their_places_random(folder, command):
    (folder / "few.txt").write_text(
        "\n".join(f"a{at} b{at} c{at} d{at} e{at}" for at in range(6)) + "\n"
    )
    heads, first = np.zeros(4), []
    for seed in range(60):
        words = f"canaries few.txt --count 4 --kind tokens --out {seed}.txt --seed {seed}"
        assert command.line(words)[0] == 0
        heads += Coins.load(f"{seed}.coins.json").included
        lines = (folder / f"{seed}.txt").read_text().splitlines()
        made = set(pd.read_json(f"{seed}.audit.jsonl", lines=True)["text"])
        first += [at / (len(lines) - 1) for at, line in enumerate(lines) if line in made]
    assert (abs(heads - 30) < 4 * np.sqrt(60 / 4)).all()
    assert abs(heads.sum() - 120) < 4 * np.sqrt(240 / 4)
    assert abs(np.mean(first) - 0.5) < 4 * np.std(first) / np.sqrt(len(first))
    assert {0.0, 1.0} <= set(first)


def test_ids_of_text_stay_new_when_canaries_are_planted_twice(folder, command):
    rows = [{"id": f"doc{at}", "text": f"word{at} and word{at + 1} or none"} for at in range(40)]
    (folder / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for data, out in (("a.jsonl", "b.jsonl"), ("b.jsonl", "c.jsonl")):
        assert (
            command.line(f"canaries {data} --count 20 --kind tokens --out {out} --seed 0")[0] == 0
        )
    assert pd.read_json("c.jsonl", lines=True)["id"].is_unique
    made = set(pd.read_json("c.audit.jsonl", lines=True)["id"])
    assert made <= {f"canary-{at}" for at in range(1, 41)}


def test_rows_with_a_copy_are_no_canaries(folder, command):
    frame = pd.read_csv("data.csv")[:40]
    pd.concat([frame, frame[:30].assign(id=range(1000, 1030), label="no")]).to_csv(
        "twice.csv", index=False
    )
    words = "canaries twice.csv --kind labels --label label --out t.csv --count"
    command.refuses(
        f"{words} 11", "--count: 10 of 70 records have a label and no copy; ask for no more"
    )
    assert command.line(f"{words} 10")[0] == 0
    assert pd.read_csv("t.audit.csv")["id"].tolist() == list(range(30, 40))


TEXTS = "texts.jsonl --count 9 --out t.jsonl --kind"
TABLE = "data.csv --count 9 --out t.csv --kind"
LABELS = "--count 9 --kind labels --out"


def test_a_mistake_is_one_line_and_writes_nothing(folder, command):
    for words, message in (
        (f"{TEXTS} tokns", "'new-vocabulary', 'high-temperature', 'labels', got 'tokns'"),
        (f"{TEXTS} high-temperature", "model: name one for the kind high-temperature"),
        (f"{TEXTS} labels", "--label: name the column of labels; columns are text, source"),
        (f"{TEXTS} random --text txt", "the columns are 'text', 'source'; did you mean 'text'?"),
        (f"{TEXTS} random --label source", "--label: is for the kind labels"),
        (TEXTS.replace("texts", "chats") + " random", "column 'text' holds other values than text"),
        (f"{TEXTS} random --id name", "no column 'name'"),
        (f"{TABLE} labels --label label --model m", "--model: is for the kind high-temperature"),
        (
            f"{TABLE} labels --label lable",
            "no column 'lable'; the columns are 'id', 'x', 'z', 'label'; did",
        ),
        (f"{TABLE} tokens", "no column 'text'; the columns are"),
        (
            f"{TABLE} labels --label label --count 601",
            "--count: 600 of 600 records have a label and",
        ),
        (f"texts.txt {LABELS} t.txt", "the texts of texts.txt have no labels"),
        ("texts.txt --count 9 --kind random --out t.txt --text body", "the columns are none"),
        (f"images {LABELS} t --kind random", "--kind: images holds no texts"),
        (f"images/class0 {LABELS} t", "expected a folder for each class"),
        (f"images {LABELS} images/t", "images/t is a part of images"),
        (f"{TEXTS} random --out t.csv", "--out: t.csv gets the form of texts.jsonl; let it end"),
        (f"none.csv {LABELS} t", "none.csv: there is no such file"),
        (f"{TEXTS} random --count 0", "'--count': Input should be greater than or equal to 1"),
    ):
        command.of("canaries").refuses(words, message)


@pytest.mark.parametrize("taken", ["t.jsonl", "t.audit.jsonl", "t.coins.json"])
def test_nothing_is_overwritten(folder, command, taken):
    (folder / taken).write_text("mine")
    command.refuses(
        f"canaries {TEXTS} random", f"{taken}: exists already, and nothing is overwritten"
    )
    assert (folder / taken).read_text() == "mine"
