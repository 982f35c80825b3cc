"""`--questions`: every command that writes a report has it, and changes report and JSON alone."""

import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from typer.main import get_command

from paperlib.cli.app import app
from paperlib.core.options import Questions
from paperlib.words.audits.questions.texts import question_text
from tests.cli.conftest import BOOK

COMMANDS = get_command(app).commands  # pyright: ignore[reportAttributeAccessIssue]


@pytest.fixture
def scores(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = [f"{rng.normal() - (row % 2)},{row % 2}" for row in range(200)]
    Path("scores.csv").write_text("loss,member\n" + "\n".join(lines) + "\n", encoding="utf-8")


def test_every_command_that_writes_a_report_has_the_option():
    options: dict[str, set[str]] = {}
    for name, command in COMMANDS.items():
        options[name] = {parameter.name for parameter in command.params}
    of_reports = {name for name, names in options.items() if "about" in names}
    assert len(of_reports) == 8
    assert {name for name, names in options.items() if "questions" in names} == of_reports


def test_rows_are_in_the_report_and_the_json_and_not_in_the_output(command, scores):
    code, plain, _ = command("audit", "scores.csv")
    assert code == 0
    code, out, _ = command("audit", "scores.csv", "--questions", "aisvs", "--questions", "edpb")
    assert (code, out) == (0, plain)
    page = Path("scores-audit.html").read_text(encoding="utf-8")
    assert page.count("<h2>Questions of ") == 2
    content = command.document("audit scores.csv --questions aisvs")
    assert {row["text"] for row in content["questions"]} == {"aisvs"}
    assert "questions" not in command.document("audit scores.csv")


def test_an_unknown_text_is_refused_in_one_line(command, scores):
    command.refuses("audit scores.csv --questions gdpr", "expected one of edpb, nist-226, aisvs")


def test_the_page_says_how_many_questions_each_text_has():
    page = (BOOK / "gate.md").read_text(encoding="utf-8")
    counts = {name: len(question_text(name).questions) for name in get_args(Questions)}
    for name, count in counts.items():
        assert re.search(rf"^\| `{name}` \| .* \| {count} \|$", page, re.MULTILINE)
    assert sum(counts.values()) > 40
