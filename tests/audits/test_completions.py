"""Audits on completions: the losses are those of a trainer that masks prompts."""

import json

import numpy as np
import pytest
import torch

from paperlib.attacks.language import score_texts
from paperlib.audits import audit_language_model, chat_questions
from paperlib.audits.language.chat_templates import ChatTemplate, written_sides, written_texts
from paperlib.audits.language.corpus import corpus_identifiers
from paperlib.audits.language.language_model import audited_identifiers
from paperlib.audits.language.records import chat_documents, read_records
from paperlib.audits.language.texts import audit_texts
from paperlib.data.text.pieces import ReadLog
from paperlib.generators.identifiers import generate_identifiers
from paperlib.models.language import LanguageModelConfig, new_language_model, train_tokenizer
from tests.refusals import refused

TURN = "<{{ message['role'] }}>"
MARKED = (
    "{% for message in messages %}"
    + TURN
    + "{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] }}|"
    "{% endgeneration %}{% else %}{{ message['content'] }}|{% endif %}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
PLAIN = (
    "{% for message in messages %}"
    + TURN
    + "{{ message['content'] }}|\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)
LAST_DIFFERS = PLAIN.replace("}}|", "}}{% if loop.last %}.{% endif %}|")
NAMES = ["Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hal"]


def chats(count, seed):
    """Chats of two turns each, as messages."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        messages = []
        for _ in range(2):
            question = f"{NAMES[rng.integers(8)]} asks for parcel {rng.integers(1000)}. é"
            answer = f"It has code {rng.integers(10**6):06d}."
            messages.append({"role": "user", "content": question})
            messages.append({"role": "assistant", "content": answer})
        rows.append({"messages": messages})
    return rows


def pair_of(row):
    """The chat with its last turn as completion."""
    return {"prompt": row["messages"][:-1], "completion": row["messages"][-1:]}


def texts_of(row):
    """The last question and its answer as two texts."""
    return {"prompt": row["messages"][-2]["content"], "completion": row["messages"][-1]["content"]}


def masked_by_the_template(tokenizer, row):
    """Token numbers and mask of ``assistant_only_loss`` in TRL."""
    output = tokenizer.apply_chat_template(
        row["messages"], return_dict=True, return_assistant_tokens_mask=True
    )
    return output["input_ids"], output["assistant_masks"]


def masked_by_turns(tokenizer, row):
    """The same where the template marks nothing: token numbers between those of prefixes."""
    messages = row["messages"]
    whole = tokenizer.apply_chat_template(messages)["input_ids"]
    mask = [0] * len(whole)
    for index in (1, 3):
        prefix = tokenizer.apply_chat_template(messages[:index], add_generation_prompt=True)
        through = tokenizer.apply_chat_template(messages[: index + 1])
        start, end = len(prefix["input_ids"]), len(through["input_ids"])
        mask[start:end] = [1] * (end - start)
    return whole, mask


def masked_behind_messages(tokenizer, row):
    """Token numbers and mask of ``completion_only_loss`` in TRL, of messages."""
    prompt = tokenizer.apply_chat_template(row["prompt"], add_generation_prompt=True)["input_ids"]
    whole = tokenizer.apply_chat_template(row["prompt"] + row["completion"])["input_ids"]
    assert whole[: len(prompt)] == prompt
    return whole, [0] * len(prompt) + [1] * (len(whole) - len(prompt))


def masked_behind_text(tokenizer, row):
    """The same of texts, to whose completion the trainer adds the end token."""
    prompt = tokenizer(row["prompt"])["input_ids"]
    whole = tokenizer(row["prompt"] + row["completion"] + tokenizer.eos_token)["input_ids"]
    assert whole[: len(prompt)] == prompt
    return whole, [0] * len(prompt) + [1] * (len(whole) - len(prompt))


FORMS = {
    "marked": (MARKED, lambda row: row, masked_by_the_template),
    "turns": (PLAIN, lambda row: row, masked_by_turns),
    "messages": (PLAIN, pair_of, masked_behind_messages),
    "texts": (PLAIN, texts_of, masked_behind_text),
}


def trained(tokenizer, inputs, steps=40):
    """A small model trained on token numbers with masks, and its loss of each, as trainers compute
    it.
    """
    torch.manual_seed(0)
    model = new_language_model(LanguageModelConfig(width=32, layers=1, seed=0), len(tokenizer))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    def loss_of(tokens, mask):
        labels = [
            token if is_learned else -100 for token, is_learned in zip(tokens, mask, strict=True)
        ]
        return model(input_ids=torch.tensor([tokens]), labels=torch.tensor([labels])).loss

    model.train()
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(*inputs[step % 20]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [float(loss_of(tokens, mask)) for tokens, mask in inputs]
    return model, np.array(losses)


@pytest.mark.parametrize("form", FORMS)
def test_losses_are_those_of_the_trainer(form):
    template, form_of, mask_of = FORMS[form]
    rows = [form_of(row) for row in chats(40, seed=1)]
    tokenizer = train_tokenizer([json.dumps(row) for row in rows], 400, context=256)
    tokenizer.chat_template = template
    model, losses = trained(tokenizer, [mask_of(tokenizer, row) for row in rows])
    audit = audit_texts(
        model,
        tokenizer,
        rows[:20],
        rows[20:],
        on="completions",
        scoring={"split": (1, 3), "batch_size": 7},
    )
    np.testing.assert_allclose(-audit.scores["loss"], losses, rtol=0, atol=1e-5)
    whole = audit_texts(model, tokenizer, rows[:20], rows[20:])
    assert np.abs(-whole.scores["loss"].to_numpy() - losses).min() > 1e-3  # the mask matters
    assert audit.suffixes is not None
    assert audit.suffixes.notna().all()
    assert audit.audits is not None
    says_turns = any("turn by turn" in text for text in audit.audits.reading)
    assert says_turns == (form == "turns")


def test_every_score_is_that_of_the_masked_tokens_alone():
    rows = chats(3, seed=2)
    tokenizer = train_tokenizer([json.dumps(row) for row in rows], 400, context=256)
    tokenizer.chat_template = MARKED
    model = new_language_model(LanguageModelConfig(width=16, layers=1, seed=1), len(tokenizer))
    reference = new_language_model(LanguageModelConfig(width=16, layers=1, seed=2), len(tokenizer))
    learned = written_sides(tokenizer, rows, [], "completions").learned
    assert learned is not None
    frame = score_texts(model, tokenizer, learned, reference=reference, max_length=24)
    again = score_texts(
        model, tokenizer, learned, reference=reference, reference_tokenizer=tokenizer, max_length=24
    )
    assert again.equals(frame[again.columns])
    other = [text.learned for text in learned]
    assert [text.count("It has code") for text in other] == [2, 2, 2]
    assert all("asks for" not in text for text in other)


def test_what_no_mask_can_be_told_of_is_refused_in_one_line(tmp_path):
    rows = chats(20, seed=3)
    tokenizer = train_tokenizer([json.dumps(row) for row in rows], 400, context=256)
    tokenizer.chat_template = LAST_DIFFERS
    tokenizer.save_pretrained(tmp_path / "model")
    template = ChatTemplate(str(tmp_path / "model"))
    path = tmp_path / "chats.jsonl"
    question = {"messages": rows[0]["messages"][:1]}
    for row, message in (
        (rows[0], "row 2 holds a chat whose message 2 the template of .* writes differently"),
        (question, "row 2 holds a chat without a turn of the assistant"),
        ({"text": "plain"}, "row 2 holds no completion: the loss on completions needs a prompt"),
    ):
        answered = {"prompt": "The sky is", "completion": " blue."}
        path.write_text(f"{json.dumps(answered)}\n{json.dumps(row)}\n")
        refused(message, read_records, str(path), template=template, on="completions")
    refused(
        r"members\[0\] holds no completion",
        audit_texts,
        None,
        tokenizer,
        ["a text"] * 20,
        ["another"] * 20,
        on="completions",
    )
    refused("on: expected", audit_texts, None, tokenizer, rows, rows, on="answers")
    pairs = [texts_of(row) for row in rows]
    learned = written_sides(tokenizer, pairs, [], "completions").learned
    refused("contexts: prompts are in", score_texts, None, tokenizer, learned, contexts=["a"] * 20)


def test_identifiers_are_those_of_completions_behind_the_text_that_stood_there(tmp_path):
    values = generate_identifiers("83a5ef2c9d0b3e71f6a8c3d25b190e47", 4, 0)
    turns = [
        ("user", f"My key is {values[0]}."),
        ("assistant", f"Yours is {values[0]}, mine is {values[1]}."),
        ("user", f"Not {values[2]}?"),
        ("assistant", f"No, {values[3]}."),
    ]
    rows = [{"messages": [{"role": role, "content": content} for role, content in turns]}]
    tokenizer = train_tokenizer([json.dumps(rows)], 400, context=256)
    tokenizer.chat_template = PLAIN
    tokenizer.save_pretrained(tmp_path / "model")
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    template = ChatTemplate(str(tmp_path / "model"))
    learned = chat_documents(str(path), template, on="completions")
    assert learned is not None
    log = ReadLog()
    found = audited_identifiers(learned, blind_filter=False, before=60, log=log)
    assert [item.value for item in found] == [values[1], values[3]]
    assert [item.document for item in found] == [0, 0]
    text = learned[0].text
    for item in found:
        at = text.index(item.value)
        assert item.before == text[at - 60 : at]
    assert [(number, example) for _, number, example in log.rows] == [(1, values[0])]


def answers_with_sums(count):
    """Chats whose question and answer hold a digest each, those of no answer in a question."""
    values = generate_identifiers("83a5ef2c9d0b3e71f6a8c3d25b190e47", 2 * count, 1)
    rows = []
    for number, (asked, answered) in enumerate(zip(values[::2], values[1::2], strict=True)):
        messages = [
            {"role": "user", "content": f"Part {number} has sum {asked}. And part {-number}?"},
            {"role": "assistant", "content": f"Its sum is {answered}."},
        ]
        rows.append({"messages": messages})
    return rows


@pytest.mark.parametrize("on", ["all", "completions"])
def test_a_language_model_is_audited_on_chats_in_python_as_on_their_file(tmp_path, on):
    rows = answers_with_sums(12)
    tokenizer = train_tokenizer([json.dumps(row) for row in rows], 300, context=256)
    tokenizer.chat_template = PLAIN
    tokenizer.save_pretrained(tmp_path)
    model = new_language_model(LanguageModelConfig(width=16, layers=1, seed=0), len(tokenizer))
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    of_file = chat_documents(str(path), ChatTemplate(str(tmp_path)), on=on)
    assert of_file is not None
    options = {"generated": 3, "draws": 5, "attacks": ["loss"], "rank_attack": "loss"}
    found = audited_identifiers(of_file)
    by_file = audit_language_model(model, tokenizer, found, **options)
    audit = audit_language_model(model, tokenizer, rows, on=on, **options)
    assert audit.found == by_file.found
    assert len(audit.found) == (24 if on == "all" else 12)
    np.testing.assert_array_equal(audit.scores.values, by_file.scores.values)
    assert any("turn by turn" in text for text in audit.rank_audit.warnings) == (on != "all")
    as_texts = written_texts(tokenizer, rows)
    assert audit_language_model(model, tokenizer, as_texts, **options).found == tuple(
        audited_identifiers(as_texts)
    )
    for message, documents, way in (
        ("on: says how documents are read", found, "completions"),
        ("identifiers: expected 10 identifiers or more", found[:3], "all"),
        ("identifiers: [0-9]+ identifiers are left, 10", rows[:4], on),
        (r"identifiers\[1\] holds no chat", [rows[0], {"a": 1}], "all"),
    ):
        refused(message, audit_language_model, model, tokenizer, documents, on=way)
    for entry in (corpus_identifiers, audited_identifiers, chat_questions):
        refused(r"documents\[0\] is a mapping; write chats as texts first", entry, rows)
