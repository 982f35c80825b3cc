"""`paperlib audit-texts`: texts in files, a model in a folder, the bound, what can be extracted, a
report.
"""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from paperlib import toss_coins
from paperlib.models.language import LanguageModelConfig, new_language_model, train_tokenizer
from tests.cli.conftest import blocks, in_order
from tests.insertions import WORDS

SHORT = "--prefix-tokens 4 --suffix-tokens 4"


def write(path, records):
    Path(path).write_text("".join(json.dumps(one) + "\n" for one in records))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A base and a model tuned from it on the texts that coins chose, and files of members and
    others.
    """
    folder, rng = tmp_path_factory.mktemp("texts"), np.random.default_rng(0)
    records = [
        {"id": f"mail {at}", "text": " ".join(rng.choice(WORDS.split(), 8))} for at in range(120)
    ]
    coins = toss_coins([one["id"] for one in records], seed=0)
    coins.save(folder / "train.coins.json")
    heads = [one for one, included in zip(records, coins.included, strict=True) if included]
    tokenizer = train_tokenizer([one["text"] for one in records], 300, context=64)
    base = new_language_model(LanguageModelConfig(width=32, layers=1, context=64), len(tokenizer))
    base.save_pretrained(folder / "base")
    rows = [torch.tensor(tokenizer(one["text"])["input_ids"]) for one in heads]
    labels = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-100)
    optimizer = torch.optim.AdamW(base.parameters(), lr=1e-2)
    for _ in range(80):
        optimizer.zero_grad()
        base(input_ids=labels.clamp(min=0), labels=labels).loss.backward()
        optimizer.step()
    base.save_pretrained(folder / "my_model")
    for name in ("base", "my_model"):
        tokenizer.save_pretrained(folder / name)
    other = train_tokenizer(["another corpus"], 280, context=64)
    new_language_model(LanguageModelConfig(width=16, layers=1), len(other)).save_pretrained(
        folder / "other"
    )
    other.save_pretrained(folder / "other")
    write(folder / "texts.jsonl", records)
    write(folder / "members.jsonl", heads)
    others = [one for one in records if one not in heads]
    write(folder / "nonmembers.jsonl", others)
    write(
        folder / "old.jsonl",
        [{**one, "date": f"1999-01-{at % 28 + 1}"} for at, one in enumerate(others)],
    )
    write(
        folder / "new.jsonl",
        [{**one, "date": f"2026-01-{at % 28 + 1}"} for at, one in enumerate(heads)],
    )
    (folder / "members.txt").write_text("\n".join(one["text"] for one in heads))
    (folder / "blank.txt").write_text("one\n\ntwo\n")
    (folder / "members.csv").write_text("text\na\n")
    (folder / "bad.jsonl").write_text('{"text": "a"}\n{"body": "b"}\n')
    return folder


@pytest.fixture
def audit(place, monkeypatch, command):
    """The command, where the files are."""
    monkeypatch.chdir(place)
    yield command.of("audit-texts")
    for report in place.glob("*-audit.html"):
        report.unlink()


def test_planted_texts_are_bounded_extracted_by_name_and_fail_the_gate(audit):
    words = (
        f"my_model members.jsonl nonmembers.jsonl --base base {SHORT} --tries 1000 --fail-above 1"
    )
    code, out, err = audit.line(words)
    assert (code, "gate failed" in err) == (3, True)
    assert re.search(r"ε ≥ [2-9].* in the learned order", out)
    assert "coins tossed by this audit chose who is shown" in out
    counts = re.search(r"continue (\d+) of (\d+) members, and (\d+) of (\d+) non-members", out)
    found, asked, others, other = map(int, counts.groups())
    assert asked + other == 120
    assert found > 0.5 * asked
    assert others < 0.2 * other
    page = Path("members-audit.html").read_text()
    section = page.partition("<h2>Extraction</h2>")[2].partition("</section>")[0]
    assert section.count("mail ") == 20
    for text in ("Without the model", "loss of the reference", "wbc", "Most exposed records"):
        assert text in page


def test_coins_say_who_is_a_member_and_json_has_everything(audit):
    words = f"texts.jsonl --coins train.coins.json {SHORT}"
    content = audit.document(f"my_model {words} --base base")
    assert (content["epsilon"] > 2, content["design"]) == (True, "randomized")
    assert "under adding or removing one example" in content["claim"]
    assert any("sealed on" in text for text in content["assumptions"])
    assert {one["signal"] for one in content["blind"]} > {
        "which tokens stand there",
        "loss of the reference",
    }
    assert {"ez", "wbc"} < {one["attack"] for one in content["attacks"]}
    content = audit.document(f"base {words} --fail-above 2")
    assert (content["epsilon"], content["extraction"]["texts"]) == (0, [])


def test_a_base_with_another_tokenizer_gives_what_needs_no_common_tokens(audit):
    content = audit.document(f"my_model members.jsonl nonmembers.jsonl --base other {SHORT}")
    assert {"difference", "ez", "wbc"} & {one["attack"] for one in content["attacks"]} == {
        "difference"
    }
    assert "the base has another tokenizer" in content["warnings"][0]


def test_sides_that_differ_by_themselves_get_no_bound_and_pass_no_gate(audit):
    words = f"my_model new.jsonl old.jsonl {SHORT} --fail-above 5"
    code, out, err = audit.line(words)
    assert (code, "ε ≥" in out, "gives no answer" in err) == (3, False, True)
    in_order(
        out, "Not an answer yet: the audit was not possible. The date alone tells members from non-"
    )
    content = audit.document(words, code=3)
    assert content["epsilon"] is None
    assert content["audits"][0]["refused"].startswith("the date alone")


SIDES = "members.jsonl nonmembers.jsonl"


def test_a_mistake_is_one_line_and_exit_code_2(audit):
    Path("dated.jsonl").write_text('{"text": "a", "date": 2020}\n{"text": "b", "date": null}\n')
    write("twice.jsonl", [{"id": at // 2, "text": f"text {at}"} for at in range(40)])
    options = set(re.findall(r"--[a-z-]+", audit.line("--help")[1]))
    Path("cut.jsonl").write_text('{"text": "a \\ud83d"}\n')
    for words, message in (
        ("texts.jsonl", "NONMEMBERS: give a second file of texts, or --coins"),
        ("blank.txt nonmembers.jsonl", "blank.txt: row 2 has an empty text; leave it out"),
        ("members.csv nonmembers.jsonl", "members.csv: expected a file ending in .jsonl"),
        (
            "bad.jsonl nonmembers.jsonl",
            "row 2 has no text 'text', only ['body']; name one with --text-field",
        ),
        ("members.jsonl none.txt", "none.txt: there is no such file"),
        (f"{SIDES} --id ids", "row 1 has no 'ids'; did you mean 'id'"),
        (f"{SIDES} --attack ez", "--base: needed for ez"),
        (f"{SIDES} --chance 1", "--chance"),
        ("dated.jsonl nonmembers.jsonl", "dated.jsonl: row 2 has no 'date'"),
        ("cut.jsonl nonmembers.jsonl", "cut.jsonl: row 1 holds half of a character"),
        (
            "twice.jsonl nonmembers.jsonl",
            "row of each, or say what a record is: unit=, or `paperlib",
        ),
    ):
        code, out, err = audit.line(f"my_model {words}")
        said = [line for line in err.splitlines() if line.startswith("paperlib: ")]
        assert (code, out, len(said)) == (2, "", 1)
        assert message in said[0]
        assert {*re.findall("(?<!paperlib audit )(--[a-z-]+)", said[0])} <= options
    reversed_sides = audit.line(f"my_model nonmembers.jsonl members.jsonl --attack loss {SHORT}")[1]
    assert "probably reversed" in reversed_sides
    assert reversed_sides.count("--kind") == 3 == 1 + reversed_sides.count("of `paperlib audit`")


def test_plain_text_takes_a_line_as_a_record_and_the_page_s_commands_run(audit):
    commands = [one for one in blocks("audit_texts.md", "sh") if one.startswith("audit-texts ")]
    assert len(commands) == 2
    for words in commands:
        assert audit.line(f"{words.removeprefix('audit-texts ')} {SHORT}")[0] in (0, 3)
    content = audit.document(f"my_model members.txt nonmembers.jsonl --attack loss {SHORT}")
    assert content["epsilon"] > 1


def test_chats_are_audited_as_the_text_that_the_model_s_template_makes_of_them(audit):
    """Every chat is that of one text, so that both audits have the same numbers."""
    shutil.copytree("my_model", "chat_model")
    tokenizer = AutoTokenizer.from_pretrained("my_model")
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    tokenizer.save_pretrained("chat_model")
    for name in ("members", "nonmembers"):
        lines = Path(f"{name}.jsonl").read_text().splitlines()
        texts = [json.loads(line)["text"] for line in lines]
        cut = [(text[:9], text[9:]) for text in texts]
        write(
            f"{name}_chats.jsonl",
            [
                {
                    "messages": [
                        {"role": "user", "content": start},
                        {"role": "assistant", "content": rest},
                    ]
                }
                for start, rest in cut
            ],
        )
    words = f"--attack loss {SHORT}"
    chats = audit.document(f"chat_model members_chats.jsonl nonmembers_chats.jsonl {words}")
    texts = audit.document(f"my_model {SIDES} {words}")
    for name in ("epsilon", "attacks", "blind"):
        assert chats[name] == texts[name]
    asked = "chat_model members_chats.jsonl nonmembers_chats.jsonl --on completions"
    answers = audit.document(f"{asked} {words}")
    assert "told turn by turn" in " ".join(answers["warnings"])
    assert answers["extraction"] != chats["extraction"], "the answers alone are asked for"
    code, out, err = audit.line("my_model members_chats.jsonl nonmembers_chats.jsonl")
    assert (code, out) == (2, "")
    assert "members_chats.jsonl: row 1 holds a chat, and the tokenizer of my_model has no" in err


def test_a_field_that_names_authors_of_several_texts_is_refused_unless_each_is_a_record(audit):
    """Once texts of authors with a coin each passed for texts with a coin each."""
    values = 0
    for first, name in ((0, "members"), (500, "nonmembers")):
        rows = [json.loads(line) for line in Path(f"{name}.jsonl").read_text().splitlines()]
        rows = rows[: len(rows) // 3 * 3]
        values += len(rows) // 3
        authors = [(first + at // 3) * 7919 % 99991 for at in range(len(rows))]  # in no order
        write(
            f"{name}-authors.jsonl",
            [{**row, "kennung": author} for row, author in zip(rows, authors, strict=True)],
        )
    words = f"my_model members-authors.jsonl nonmembers-authors.jsonl {SHORT}"
    audit.refuses(
        words,
        f"column 'kennung' names units: {values} of its {values} values .* keep one text of each, "
        "or --group-field kennung if each row is a record of its own",
    )
    assert audit.line(f"{words} --group-field kennung")[0] == 0
    audit.refuses(f"{words} --group-field nobody", "group column: expected one of the columns")
