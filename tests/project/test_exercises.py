"""The exercises of the book: each asks, folds its answer, and prints what it says."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "book" / "exercises.md").read_text(encoding="utf-8")
SETUP, *EXERCISES = re.split(r"^### \d+\. ", PAGE, flags=re.MULTILINE)
ANSWER = re.compile(
    r"^:::\{dropdown\} Answer\n.*?^```python\n(.*?)^```\n\n```text\n(.*?)^```\n:::$", re.DOTALL | re.MULTILINE
)


def test_there_are_fifteen_and_the_page_is_short():
    assert len(EXERCISES) == len(ANSWER.findall(PAGE)) == 15
    assert len(PAGE.split()) <= 2500
    assert [one.partition("\n")[0] for one in EXERCISES if "?" not in one.partition(":::")[0]] == []


@pytest.fixture(scope="module")
def printed():
    """What each answer prints, in the page's order: later ones go on with the draws of earlier ones."""
    names, outputs, lines = dict[str, object](), list[str](), list[str]()
    names["print"] = lambda *words: lines.append(" ".join(map(str, words)))
    exec(re.findall(r"```python\n(.*?)```", SETUP, re.DOTALL)[0], names)
    for exercise in EXERCISES:
        exec(ANSWER.findall(exercise)[0][0], names)
        outputs.append("\n".join(lines) + "\n")
        lines.clear()
    return outputs


@pytest.mark.parametrize("at", range(15))
def test_an_answer_prints_what_the_page_shows(printed, at):
    assert printed[at] == ANSWER.findall(EXERCISES[at])[0][1]
