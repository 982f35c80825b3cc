"""`paperlib audit-lm`: a language model from a folder, a corpus of files, the answer, and a report."""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from paperlib import cli
from paperlib.audits.language import audit_language_model, audited_identifiers
from paperlib.generators.identifiers import generate_identifiers
from paperlib.models.language import LanguageModelConfig, new_language_model, train_tokenizer
from paperlib.report import result_schema

QUICK = ("--generated", "7")


@pytest.fixture(autouse=True)
def _same_signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    tokenizer = train_tokenizer(texts, 300, context=64)
    model = new_language_model(LanguageModelConfig(width=16, layers=1, seed=0), len(tokenizer))
    model.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    return folder


def call(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["paperlib", "audit-lm", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert isinstance(stop.value.code, int)
    return stop.value.code


def test_it_prints_the_answer_and_writes_a_report_with_the_best_known(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = (str(place / "model"), str(place / "my docs"), *QUICK, "--fail-above", "2", "--junit", "lm.xml")
    assert call(monkeypatch, *words) == 0
    said = capsys.readouterr().out
    for text in (
        "ε ≥ ",
        "replacement",
        "assumes that each true value was drawn uniformly",
        "Best known",
        "p = ",
    ):
        assert text in said
    assert "30 identifiers, 7 alternatives each" in said
    assert "Report: my docs-audit.html" in said
    page = (tmp_path / "my docs-audit.html").read_text()
    assert page.index("Best-known identifiers") < page.index("<h2>Figures</h2>")
    assert "1 of 8" in page
    assert "min_k_pp" in page
    assert "uuid" in page
    assert "skipped" in Path("lm.xml").read_text()


def test_json_is_one_document_with_every_identifier(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = (str(place / "model"), str(place / "my docs"), *QUICK, "--identifiers", "md5", "--json")
    assert call(monkeypatch, *words, "--claimed-epsilon", "1", "--delta", "1e-5") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["delta"] == 1e-5
    assert len(content["identifiers"]) == 24
    assert {one["kind"] for one in content["identifiers"]} == {"md5"}
    assert content["verdict"]["refuted"] is False
    assert set(content["inputs"]) == {"model", "my docs"}
    jsonschema.validate(content, result_schema())
    assert not list(tmp_path.iterdir())


def test_the_ceiling_is_the_bound_of_a_model_that_knows_all(place: Path) -> None:
    """Then the page says so, and the identifiers stand first."""
    from paperlib.models.language import load_language_model

    model, tokenizer = load_language_model(place / "model")
    found = audited_identifiers(str(place / "my docs"))
    audit = audit_language_model(model, tokenizer, found, generated=7, draws=10)
    assert audit.rank_audit.epsilon < audit.ceiling
    assert audit.pooled.member.size == 30 == len(audit.found)
    assert len(audit.pooled_names) == len(audit.pooled_kinds) == len(audit.pooled) == 240
    document = audit.document(count=3)
    ranks = [one["rank"] for one in document.to_dict()["identifiers"]]
    assert ranks == sorted(ranks)
    section = document.html().partition("<h2>Best-known identifiers")[2].partition("</section>")[0]
    assert section.count("<tr>") == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "MODEL: name a language model .* the notebook audit_your_language_model shows a demonstration"),
        (["model"], "CORPUS: name"),
        (["model", "none"], "corpus: expected a file, a folder"),
        (["model", "plain"], "found no identifier"),
        (["model", "my docs", "--identifiers", "uid"], "kinds: expected some of"),
        (["model", "my docs", "--limit", "3"], "'--limit'"),
        (["model", "my docs", "--rank-attack", "los"], "'--rank-attack'"),
        (["model", "my docs", "--about", "none.yaml"], "none.yaml"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(place)
    assert call(monkeypatch, *words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert re.search(message, said.err), said.err
    assert said.err.count("\n") == 1
