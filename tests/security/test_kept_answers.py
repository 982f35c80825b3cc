"""Answers of a chat, kept by their prompts: two runs, lost, doubled, foreign and changed lines."""

import json
import os
import resource
import signal
from multiprocessing import get_context
from pathlib import Path

import pytest

from paperlib.audits.language.kept_answers import KeptAnswers
from paperlib.io.files import OutputError
from tests.refusals import refused

PROMPTS = ["a", "b", "b", "c", "d"]  # b is asked twice
SETTINGS = {"model": "m", "address": "https://host/v1", "corpus or option": "0123"}
FILE = Path("answers.jsonl")


def kept(**changes):
    return KeptAnswers(FILE, {**SETTINGS, **changes}, PROMPTS, date="2026-01-02")


def answers(asked=None):
    """The answer to each prompt, by the file or else by a model; ``asked`` notes what that saw."""
    seen = [] if asked is None else asked

    def ask(prompt):
        seen.append(prompt)
        return f"{prompt}{seen.count(prompt)}"

    with kept().through(ask) as complete:
        return [complete(prompt) for prompt in PROMPTS]


@pytest.fixture
def whole(tmp_path, monkeypatch):
    """The lines of a file with all answers."""
    monkeypatch.chdir(tmp_path)
    assert answers() == ["a1", "b1", "b2", "c1", "d1"]
    return FILE.read_text().splitlines(keepends=True)


@pytest.mark.parametrize("line", [1, 2, 3, 4, 5])
def test_a_lost_line_is_asked_again_and_no_other_answer_moves(whole, line):
    FILE.write_text("".join(whole[:line] + whole[line + 1 :]))
    assert (len(whole), kept().left) == (6, 1)
    asked = []
    again = answers(asked)
    assert asked == [PROMPTS[line - 1]]
    same = [index for index in range(5) if index != line - 1]
    assert [again[index] for index in same] == [["a1", "b1", "b2", "c1", "d1"][i] for i in same]


def test_doubled_lines_and_another_order_change_nothing(whole):
    FILE.write_text("".join([whole[0], *reversed(whole[1:]), *whole[1:]]))
    asked = []
    assert (answers(asked), asked) == (["a1", "b1", "b2", "c1", "d1"], [])


def test_a_killed_run_goes_on(whole):
    FILE.write_text("".join(whole[:3]) + whole[3][:20])
    asked = []
    answers(asked)
    assert asked == ["b", "c", "d"]
    assert len(FILE.read_text().splitlines()) == 6


def test_foreign_and_changed_lines_are_named_and_stay(whole):
    answer = json.loads(whole[2])
    other = json.dumps({**answer, "answer": "other"}) + "\n"
    for lines, words in (
        ([*whole, '{"answer": "x"}\n' * 50], "line 7 is no answer to a prompt of this run"),
        ([*whole, "[]\n"], "line 7 is no answer"),
        ([*whole[:2], other, *whole[3:]], "line 3 is no answer .* or was changed"),
        ([whole[0].replace('"m"', '"n"'), *whole[1:]], "holds answers with another model;"),
        (["abc"], "holds no kept answers"),
        ([""], "holds no kept answers"),
        (["[" * 200_000 + "\n"], "holds no kept answers"),
    ):
        FILE.write_text("".join(lines))
        assert "answers.jsonl: " in refused(words, kept)
        assert FILE.read_text() == "".join(lines)


def test_answers_to_other_prompts_are_never_mixed_in(whole):
    """Not even where the first line was made to fit."""
    for changes, words in (
        ({"model": "n"}, "another model"),
        ({"corpus or option": "4567"}, "another corpus or option"),
    ):
        FILE.write_text("".join(whole))
        refused(f"holds answers with {words}", kept, **changes)
        first = {**json.loads(whole[0]), **changes}
        FILE.write_text("".join([json.dumps(first) + "\n", *whole[1:]]))
        refused("line 2 is no answer to a prompt of this run", kept, **changes)


def ask_and_wait(connection):
    """Ask for all answers; wait before the second."""

    def ask(prompt):
        if prompt == "b":
            connection.send(os.getpid())
            connection.recv()
        return f"{prompt}1"

    with kept().through(ask) as complete:
        for prompt in PROMPTS:
            complete(prompt)


@pytest.mark.parametrize("killed", [False, True])
def test_a_second_run_on_the_same_file_is_refused_until_the_first_ends(
    tmp_path, monkeypatch, killed
):
    monkeypatch.chdir(tmp_path)
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=ask_and_wait, args=(theirs,))
    process.start()
    assert ours.recv() == process.pid
    refused("answers.jsonl: another run is asking for these answers", answers)
    if killed:
        os.kill(process.pid, signal.SIGKILL)
    else:
        ours.send("go on")
        ours.recv()
        ours.send("go on")
    process.join(60)
    asked = []
    answers(asked)
    assert asked == (["b", "b", "c", "d"] if killed else [])
    assert [path.name for path in tmp_path.iterdir()] == [FILE.name]


def test_a_full_disk_is_named_and_what_was_kept_stays(whole):
    FILE.write_text("".join(whole[:3]))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = len("".join(whole[:3])) + 40
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        refused("cannot write answers.jsonl", answers, error=OutputError)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    asked = []
    answers(asked)
    assert asked == ["b", "c", "d"]
