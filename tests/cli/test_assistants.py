"""The page for assistants: its commands are those that there are, and are called as it says."""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from paperlib.cli.app import app
from paperlib.report import audit as report
from tests.cli.conftest import BOOK

PAGE = (BOOK / "assistants.md").read_text(encoding="utf-8")
CALLS = re.findall(r"\| `paperlib ([^`]+)` \|", PAGE)
OF_THE_PAPERS = {"list", "run", "sweep"}
COMMANDS = get_command(app).commands  # pyright: ignore[reportAttributeAccessIssue]


def test_every_command_that_audits_answers_a_question():
    assert {call.split()[0] for call in CALLS} == set(COMMANDS) - OF_THE_PAPERS


@pytest.mark.parametrize("call", CALLS)
def test_each_call_has_what_its_command_needs(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name, *arguments = shlex.split(call)
    for argument in arguments:
        if re.fullmatch(r"[\w-]+\.\w+", argument):
            Path(argument).touch()
    COMMANDS[name].make_context(name, arguments)
    with pytest.raises(Exception, match="No such option"):
        COMMANDS[name].make_context(name, [*arguments, "--no-such-option"])


def test_the_fields_it_names_are_those_of_a_result():
    schema = json.loads(
        (Path(report.__file__).parent / "result.schema.json").read_text(encoding="utf-8")
    )
    fields = re.findall(r"^- (`\w+`(?:(?:, | and )`\w+`)*)", PAGE, re.MULTILINE)
    named = set(re.findall(r"\w+", " ".join(fields).replace(" and ", " ")))
    assert named == {"epsilon", "kind", "condition", "assumptions", "warnings", "verdict"}
    assert named | {"refusals", "claim"} <= set(schema["properties"])
    assert {"lower bound", "measurement"} <= set(schema["$defs"]["kind"]["enum"])
    assert "`lower bound` or `measurement`" in PAGE


def test_the_pages_of_llms_txt_are_in_the_book():
    listed = re.findall(r"\((\S+)\.html\)", (BOOK / "llms.txt").read_text(encoding="utf-8"))
    contents = yaml.safe_load((BOOK / "_toc.yml").read_text(encoding="utf-8"))
    pages = set(re.findall(r"'file': '([^']+)'", str(contents)))
    assert len(listed) > 5
    assert set(listed) <= pages
