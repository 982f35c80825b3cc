"""`paperlib audit-lm`: a language model from a folder, a corpus of files, the answer, and a
report.
"""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.trainers import WordLevelTrainer
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from paperlib.audits.language.language_model import audit_language_model, audited_identifiers
from paperlib.generators.identifiers import generate_identifiers
from paperlib.models.language import (
    LanguageModelConfig,
    load_language_model,
    new_language_model,
    train_tokenizer,
)
from tests.refusals import refused


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a corpus of 24 checksums and 6 UUIDs, and a model that has seen nothing."""
    folder = tmp_path_factory.mktemp("lm")
    values = generate_identifiers("83a5ef2c9d0b3e71f6a8c3d25b190e47", 24, 0)
    values += generate_identifiers("7d444840-9dc0-41d1-b245-5ffdce74fad2", 6, 0)
    texts = [f"The name of part {at} is {value}." for at, value in enumerate(values)]
    (folder / "my docs").mkdir()
    for at, text in enumerate(texts):
        (folder / "my docs" / f"{at}.txt").write_text(text)
    (folder / "plain").mkdir()
    (folder / "plain" / "a.txt").write_text("no identifier at all")
    for name in ("one.txt", "table.csv"):
        (folder / name).write_text("\n".join(texts))
    tokenizer = train_tokenizer(texts, 300, context=64)
    model = new_language_model(LanguageModelConfig(width=16, layers=1, seed=0), len(tokenizer))
    model.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    return folder


@pytest.fixture
def audit(place, here, command):
    """The command on that model and corpus, in an empty folder."""
    return command.of("audit-lm", str(place / "model"), str(place / "my docs"), "--generated", "7")


def test_it_prints_the_answer_and_writes_a_report_with_the_best_known(audit):
    code, out, _ = audit.line("--fail-above 2 --junit lm.xml")
    assert code == 0
    for text in (
        "ε ≥ ",
        "replacement",
        "assumes that each true value was drawn uniformly",
        "Best known",
        "p = ",
        "in 30 document(s), 7 alternatives each",
        "Report: my docs-audit.html",
    ):
        assert text in out
    page = Path("my docs-audit.html").read_text()
    assert page.index("Best-known identifiers") < page.index("<h2>Figures</h2>")
    for text in ("1 of 8", "min_k_pp", "uuid"):
        assert text in page
    assert "skipped" in Path("lm.xml").read_text()


def test_a_file_of_text_is_one_document_and_says_so(place, here, command):
    out = command.of(
        "audit-lm", str(place / "model"), str(place / "one.txt"), "--generated", "7"
    ).line("")[1]
    assert "in 1 document(s)" in out
    assert "read as one document with all its lines; if each is a text, write JSON lines: 1" in out


def test_json_is_one_document_with_every_identifier(audit):
    content = audit.document("--identifiers md5 --claimed-epsilon 1 --delta 1e-5")
    assert (content["delta"], content["verdict"]["refuted"]) == (1e-5, False)
    assert [one["kind"] for one in content["identifiers"]] == 24 * ["md5"]
    assert set(content["inputs"]) == {"model", "my docs"}
    assert not list(Path().iterdir())


def test_a_corpus_of_chats_is_audited_as_the_texts_of_the_model_s_template(place, here, command):
    shutil.copytree(place / "model", "chat_model")
    tokenizer = AutoTokenizer.from_pretrained("chat_model")
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    tokenizer.save_pretrained("chat_model")
    texts = (place / "one.txt").read_text().splitlines()
    rows = {
        "chats.jsonl": [{"messages": [{"role": "user", "content": text}]} for text in texts],
        "texts.jsonl": [{"text": text} for text in texts],
    }
    tables = {}
    for name, lines in rows.items():
        Path(name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        tables[name] = command.of("audit-lm", "chat_model", name, "--generated", "7").document("")
    for field in ("epsilon", "identifiers", "attacks"):
        assert tables["chats.jsonl"][field] == tables["texts.jsonl"][field]


def test_the_ceiling_is_the_bound_of_a_model_that_knows_all(place):
    """Then the page says so, and the identifiers stand first."""
    model, tokenizer = load_language_model(place / "model")
    found = audited_identifiers(str(place / "my docs"))
    audit = audit_language_model(model, tokenizer, found, generated=7, draws=10)
    assert audit.rank_audit.epsilon < audit.ceiling
    assert "copies" not in audit.rank_audit.claim
    often = [replace(one, occurrences=50 - at) for at, one in enumerate(found)]
    claim = audit_language_model(model, tokenizer, often, generated=7, draws=10).rank_audit.claim
    assert "with all its 50 copies where it has most" in claim
    refused(
        "expected each once",
        audit_language_model,
        model,
        tokenizer,
        [*found, found[0]],
        generated=7,
    )
    assert audit.pooled.member.size == 30 == len(audit.found)
    assert len(audit.pooled_names) == len(audit.pooled_kinds) == len(audit.pooled) == 240
    document = audit.document(count=3)
    ranks = [one["rank"] for one in document.to_dict()["identifiers"]]
    assert ranks == sorted(ranks)
    section = document.html().partition("<h2>Best-known identifiers")[2].partition("</section>")[0]
    assert section.count("<tr>") == 4


def test_what_the_tokenizer_has_learned_and_what_it_cannot_tell_apart_is_named(place):
    found = audited_identifiers(str(place / "my docs"), kinds=["md5"], blind_filter=False)
    texts = [f"{one.before}{one.value}" for one in found]
    shape = LanguageModelConfig(width=16, layers=1, seed=0)
    for known, words in (
        (texts, "the tokenizer has learned identifiers: .* alone show ε ≥ [1-9]"),
        (
            [one.before for one in found],
            "24 of 24 identifiers have the score of all their alternatives, so they say",
        ),
    ):
        inner = Tokenizer(WordLevel(unk_token="[UNK]"))
        inner.pre_tokenizer = Whitespace()
        inner.train_from_iterator(known, WordLevelTrainer(special_tokens=["[UNK]"]))
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="[UNK]")
        model = new_language_model(shape, 100)
        audit = audit_language_model(model, tokenizer, found, generated=7, draws=10)
        assert any(re.match(words, text) for text in audit.rank_audit.warnings)
        assert (audit.token_epsilon > 1) == ("learned" in words)
    assert audit.document().judged(1.0)[1] is None


def test_a_mistake_is_one_line_and_exit_code_2(place, monkeypatch, command):
    monkeypatch.chdir(place)
    refuses = command.of("audit-lm").refuses
    refuses("model .", "--output: the report would be a part of .; name a place outside of it")
    refuses("", "Missing argument 'MODEL'")
    refuses("model", "Missing argument 'CORPUS'")
    assert "notebook audit_your_language_model" in command("audit-lm", "-h")[1]
    refuses("model none", "corpus: expected a file, a folder")
    refuses("model plain", "found no identifier")
    refuses(
        "model table.csv",
        "table.csv: a table would be read as one text, .* as a line of JSON lines",
    )
    refuses("model 'my docs' --identifiers uid", "kinds: expected some of")
    refuses("model 'my docs' --limit 3", "'--limit'")
    refuses("model 'my docs' --rank-attack los", "'--rank-attack'")
    refuses("model 'my docs' --about none.yaml", "none.yaml")
