"""Chats in files are read as the text that the template of the model's tokenizer makes of them."""

import gzip
import json

import pytest

from paperlib.audits.language.chat_templates import ChatTemplate
from paperlib.audits.language.records import chat_documents, read_records
from paperlib.models.language import train_tokenizer
from tests.refusals import refused

TEMPLATE = (
    "{{ bos_token }}{% if tools %}{{ tools[0]['name'] }} {% endif %}"
    "{% for message in messages %}<{{ message['role'] }}>{{ message['content'] }}\n{% endfor %}"
    "{% if messages[0]['role'] == 'tool' %}{{ raise_exception('a tool cannot begin') }}{% endif %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
QUESTION = {"role": "user", "content": "Where is it?"}
ANSWER = {"role": "assistant", "content": "Here."}
START = "<|endoftext|>"
TEXT = f"{START}<user>Where is it?\n<assistant>Here.\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a tokenizer that has a template."""
    folder = tmp_path_factory.mktemp("model")
    tokenizer = train_tokenizer(["Where is it? It is here."], 280, context=64)
    assert tokenizer.bos_token == START
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    return str(folder)


def lines_of(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_each_form_of_a_chat_is_the_text_that_training_saw(model, tmp_path):
    question = {"from": "human", "value": "Where is it?"}
    answered = {"from": "gpt", "value": "Here."}
    path = lines_of(
        tmp_path / "chats.jsonl",
        {"id": "a", "messages": [QUESTION, ANSWER]},
        {
            "id": "b",
            "conversations": [{"from": "system", "value": "Be brief."}, question, answered],
        },
        {"id": "c", "prompt": [QUESTION], "completion": [ANSWER]},
        {"id": "d", "prompt": [QUESTION], "completion": "Here."},
        {"id": "e", "prompt": "The sky is", "completion": " blue."},
        {"id": "f", "messages": [QUESTION, ANSWER], "tools": [{"name": "search"}]},
        {"id": "g", "text": "plain", "messages": [QUESTION, ANSWER]},
    )
    records = read_records(path, template=ChatTemplate(model))
    assert records["name"].tolist() == [*"abcdefg"]
    assert records["text"].tolist() == [
        TEXT,
        TEXT.replace(START, f"{START}<system>Be brief.\n"),
        TEXT,
        TEXT,
        "The sky is blue.",
        TEXT.replace(START, f"{START}search "),
        "plain",
    ]
    named = lines_of(tmp_path / "named.jsonl", {"turns": [question, answered]})
    records = read_records(named, text_field="turns", template=ChatTemplate(model))
    assert records["text"].tolist() == [TEXT]


def test_a_chat_that_cannot_be_written_is_refused_in_one_line(model, tmp_path):
    without = tmp_path / "without"
    train_tokenizer(["Where is it? It is here."], 280, context=64).save_pretrained(without)
    chat = {"messages": [QUESTION, ANSWER]}
    for row, folder, message in (
        (chat, without, "row 2 holds a chat, and the tokenizer of .* has no chat template: write"),
        (chat, tmp_path / "none", "row 2 holds a chat, and .*none has no tokenizer that could"),
        ({"messages": [{"content": "a"}]}, model, "row 2 .* neither role and content, nor from"),
        ({"messages": ["a"]}, model, "row 2 .* neither role and content, nor from and value: 'a'"),
        (
            {"messages": [{"role": "tool", "content": "a"}]},
            model,
            "row 2 holds a chat that the template of .* refuses: a tool cannot begin",
        ),
        ({"prompt": "a"}, model, r"row 2 has no text 'text', only \['prompt'\]"),
    ):
        path = lines_of(tmp_path / "chats.jsonl", {"text": "plain"}, row)
        refused(message, read_records, path, template=ChatTemplate(str(folder)))
    refused("row 2 has no text 'text'", read_records, path)


def test_a_corpus_of_chats_is_known_by_its_first_line(model, tmp_path):
    template = ChatTemplate(model)
    chat = {"messages": [QUESTION, ANSWER]}
    path = lines_of(tmp_path / "chats.jsonl", chat, {"text": "plain"})
    assert chat_documents(path, template) == [TEXT, "plain"]
    packed = tmp_path / "chats.jsonl.gz"
    packed.write_bytes(gzip.compress(json.dumps(chat).encode()))
    assert chat_documents(str(packed), template) == [TEXT]
    texts = lines_of(tmp_path / "texts.jsonl", {"text": "plain"}, chat)
    (tmp_path / "notes.txt").write_text("plain")
    (tmp_path / "odd.json").write_text("[\n1]")
    for other in (texts, tmp_path / "notes.txt", tmp_path / "odd.json", tmp_path, "pile"):
        assert chat_documents(str(other), template) is None
