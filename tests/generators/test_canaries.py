"""Canaries are new, of the corpus' kind, and stand at random places."""

import numpy as np
import pytest

from paperlib.attacks.language import score_texts
from paperlib.generators.canaries import TEXT_KINDS, make_canaries, planted_order, wrong_labels
from paperlib.generators.chats import with_last_answer
from paperlib.models.language import LanguageModelConfig, new_language_model, train_tokenizer
from paperlib.training import TrainingConfig
from paperlib.training.language import fit_language_model
from tests.refusals import refused

RNG = np.random.default_rng(0)
WORDS = ["".join(RNG.choice(list("abcdé,"), RNG.integers(1, 8))) for _ in range(80)]
PLAIN = TEXT_KINDS[:-1]  # all but high-temperature
CORPUS = [" ".join(RNG.choice(WORDS, RNG.integers(4, 30))) for _ in range(300)]


@pytest.mark.parametrize("kind", PLAIN)
def test_canaries_are_new_and_as_long_as_the_texts_of_the_corpus(kind):
    made = make_canaries(CORPUS, 400, kind=kind, seed=1)
    assert len(set(made)) == 400
    assert not set(made) & set(CORPUS)
    assert made == [one.strip() for one in made]
    size = len if kind == "random" else lambda text: len(text.split())
    theirs, ours = ([size(text) for text in texts] for texts in (CORPUS, made))
    assert set(ours) <= set(theirs)
    assert np.mean(ours) == pytest.approx(np.mean(theirs), abs=5 * np.std(theirs) / 20)
    assert make_canaries(CORPUS, 400, kind=kind, seed=1) == made
    assert make_canaries(CORPUS, 400, kind=kind) != made


def test_what_each_kind_is_made_of():
    letters, words = set("".join(CORPUS)), set(" ".join(CORPUS).split())
    made = {kind: make_canaries(CORPUS, 400, kind=kind, seed=2) for kind in PLAIN}
    assert set("".join(made["random"])) == letters
    assert set(" ".join(made["tokens"]).split()) == words
    split = [text.split() for text in made["new-vocabulary"]]
    own = [{*text[::2]} for text in split]
    assert all(len(one) == 1 for one in own)
    new = set.union(*own)
    assert len(new) == 400  # a word of its own for each canary
    assert not new & words
    assert {word for text in split for word in text[1::2]} == words
    few = make_canaries(["a b", "b a b"], 40, kind="new-vocabulary", seed=0)
    assert len({text.split()[0] for text in few}) == 40


@pytest.fixture(scope="module")
def language_model():
    tokenizer = train_tokenizer(CORPUS, 300, context=128)
    rows = [one[:64] for one in tokenizer(CORPUS)["input_ids"]]
    model = new_language_model(LanguageModelConfig(width=32, context=128), 300)
    config = TrainingConfig(epochs=4, batch_size=16, optimizer="adam", learning_rate=0.01, seed=0)
    return fit_language_model(model, rows, config=config, progress=False).model, tokenizer


def test_the_higher_the_temperature_the_less_probable_the_canaries(language_model, tmp_path):
    def made(temperature, seed=0, model=language_model):
        options = {"model": model, "temperature": temperature, "seed": seed}
        return make_canaries(CORPUS, 100, kind="high-temperature", **options)

    for part in language_model:
        part.save_pretrained(tmp_path)
    texts = {temperature: made(temperature) for temperature in (0.8, 2, 8)}
    assert made(2) == made(2, model=tmp_path) == texts[2] != made(2, seed=None)
    means = []
    for canaries in texts.values():
        assert len({*canaries} - {*CORPUS, ""}) == 100
        assert [
            " ".join(one.split()) for one in canaries
        ] == canaries  # they stay one line of a file
        means.append(float(score_texts(*language_model, canaries, attacks=["loss"])["loss"].mean()))
    assert means == sorted(means, reverse=True)
    tokens = (language_model[1](part)["input_ids"] for part in (texts[0.8], CORPUS))
    ours, theirs = (list(map(len, one)) for one in tokens)
    assert np.mean(ours) == pytest.approx(np.mean(theirs), rel=0.25)


def test_a_model_is_for_one_kind_and_a_temperature_is_above_0(language_model):
    for options, message in (
        ({"kind": "high-temperature"}, "model: name one for the kind high-temperature"),
        (
            {"kind": "tokens", "model": language_model},
            "model: name one for the kind high-temperature",
        ),
        (
            {"kind": "high-temperature", "model": language_model, "temperature": 0},
            "temperature: expected",
        ),
    ):
        refused(message, make_canaries, CORPUS, 5, **options)


def test_a_wrong_label_is_any_other_one_of_any_row():
    labels = np.array(["a", "b", "c", "a"] * 5)
    times = {label: {other: 0 for other in "abc"} for label in "abc"}
    chosen = np.zeros(20)
    for seed in range(1000):
        rows, wrong = wrong_labels(labels.tolist(), 6, seed=seed)
        assert (np.diff(rows) > 0).all()
        chosen[rows] += 1
        for row, label in zip(rows, wrong, strict=True):
            times[labels[row]][label] += 1
    for label, counts in times.items():
        assert counts.pop(label) == 0
        first, second = counts.values()
        assert abs(first - second) < 5 * np.sqrt(first + second)
    assert (abs(chosen - 300) < 5 * np.sqrt(1000 * 0.3 * 0.7)).all()


def odd_places(orders: list[np.ndarray]) -> bool:
    """Whether three canaries, 10 to 12, stand at some of 13 places more often than random ones
    do.
    """
    at = np.array(
        [[np.flatnonzero(order == canary)[0] for canary in (10, 11, 12)] for order in orders]
    )
    counts = np.array([np.bincount(column, minlength=13) for column in at.T])
    chance = 1 / 13
    return bool(
        (abs(counts - len(at) * chance) > 5 * np.sqrt(len(at) * chance * (1 - chance))).any()
    )


def test_canaries_stand_anywhere_and_rows_keep_their_order():
    rows, canaries = np.arange(10), np.array([10, 11, 12])
    orders = [planted_order(rows, canaries, seed=seed) for seed in range(1000)]
    assert all(order[order < 10].tolist() == rows.tolist() for order in orders)
    assert not odd_places(orders)
    in_order = [np.insert(rows, np.sort(order[:3] % 11), canaries) for order in orders]
    assert odd_places(in_order)  # those of a planting that keeps the canaries in order
    assert planted_order(rows, canaries[:0]).tolist() == rows.tolist()


def test_what_cannot_be_made_is_refused():
    refused(
        "kind: expected one of 'random', 'tokens', 'new-voc", make_canaries, CORPUS, 3, kind="tokns"
    )
    refused("count", make_canaries, CORPUS, 0, kind="tokens")
    for texts, given in (({"mail 1": "a b c d"}, "dict"), ("a long text of a file", "str")):
        refused(f"texts: .* got {given}; put", make_canaries, texts, 1, kind="new-vocabulary")
    refused("texts: there are no words", make_canaries, ["", " "], 1, kind="random")
    refused(
        "count: only 3 different texts were found for 9 can",
        make_canaries,
        ["a b"],
        9,
        kind="tokens",
    )
    refused("labels: all rows have the label 'a'", wrong_labels, ["a", "a"], 1)
    refused("labels: there are none", wrong_labels, [], 1)
    refused("count: 3 canaries need as many rows, and 2 can be had", wrong_labels, ["a", "b"], 3)


def test_canaries_of_chats_are_random_chats_with_another_last_answer():
    chats = [
        {
            "messages": [
                {"role": "user", "content": f"Where is {number}?"},
                {"role": "assistant", "content": text},
                {"role": "user", "content": "Thanks."},
            ],
            "source": number,
        }
        for number, text in enumerate(CORPUS)
    ]
    made = make_canaries(chats, 40, kind="tokens", seed=3)
    answers = make_canaries(CORPUS, 40, kind="tokens", seed=3)
    assert [chat["messages"][1]["content"] for chat in made] == answers
    for chat, answer in zip(made, answers, strict=True):
        example = chats[chat["source"]]
        assert chat == with_last_answer(example, answer)
        assert example["messages"][1]["content"] == CORPUS[chat["source"]]  # left as it was
    assert len({chat["source"] for chat in made}) > 20
    for row in ("a text", {"messages": [{"role": "user", "content": "Hello?"}]}, {"text": "a"}):
        refused(
            r"texts\[1\] holds no text of a completion",
            make_canaries,
            [chats[0], row],
            1,
            kind="tokens",
        )
