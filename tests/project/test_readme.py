"""README and CONTRIBUTING are short, what they name exists; examples and exercises print what they
say.
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import paperlib

ROOT = Path(__file__).parents[2]
PAGES = {
    name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md")
}
README = PAGES["README.md"]


def block(language: str, at: int = 0) -> str:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)[at]


def test_the_pages_are_short_and_the_audits_they_name_offered_by_the_package():
    assert len(README.splitlines()) < 150
    assert len(PAGES["CONTRIBUTING.md"].splitlines()) < 80
    assert set(re.findall(r"`(audit_\w+)`", README)) - {"audit_your_model"} <= set(paperlib.__all__)


def test_readme_example_prints_what_it_says(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    member = rng.random(2000) < 0.5
    score = rng.normal(member * 1.0, 1)
    lines = [f"{value:.6f},{int(flag)}" for value, flag in zip(score, member, strict=True)]
    (tmp_path / "my_scores.csv").write_text("\n".join(["score,member", *lines]))
    monkeypatch.chdir(tmp_path)
    exec(block("python"), {})
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.startswith(" ".join(block("text").split()))
    assert "Assumptions:" in printed


def test_readme_example_of_panoramia_gives_a_claim(capsys):
    rng = np.random.default_rng(0)
    members = pd.DataFrame({"age": rng.normal(size=300), "income": rng.integers(0, 2, 300)})
    known = set(members["age"])
    losses = lambda rows: [0.0 if age in known else 1.0 for age in rows["age"]]  # noqa: E731
    code = block("python", 1).replace(
        'label="income"', 'label="income", repetitions=1, restarts=1, epochs=2'
    )
    exec(code, {"losses": losses, "members": members})
    assert "generator" in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES)
def test_notebooks_and_files_that_a_page_names_exist(page):
    for stem in re.findall(r"NB=([a-z]\w+)", PAGES[page]):
        assert (ROOT / "notebooks" / f"{stem}.ipynb").is_file()
    named = re.findall(r"[`(]((?:paperlib|tests|book|notebooks)/[\w./]+)[`)]", PAGES[page])
    made = {"notebooks/NAME.ipynb", "book/notebooks/", "book/_build/html/index.html"}
    assert [path for path in named if not (ROOT / path).exists() and path not in made] == []


PAGE = (Path(__file__).parents[2] / "book" / "exercises.md").read_text(encoding="utf-8")
SETUP, *EXERCISES = re.split(r"^### \d+\. ", PAGE, flags=re.MULTILINE)
LINES = re.DOTALL | re.MULTILINE
ANSWER = re.compile(
    r"^:::\{dropdown\} Answer\n.*?^```python\n(.*?)^```\n\n```text\n(.*?)^```\n:::$", LINES
)


def test_there_are_fifteen_and_the_page_is_short():
    assert len(EXERCISES) == len(ANSWER.findall(PAGE)) == 15
    assert len(PAGE.split()) <= 2500
    assert [one.partition("\n")[0] for one in EXERCISES if "?" not in one.partition(":::")[0]] == []


@pytest.fixture(scope="module")
def printed():
    """What each answer prints, in the page's order: later ones go on with the draws of earlier
    ones.
    """
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


MODELS_PAGE = Path(__file__).parents[2] / "book" / "from_a_model.md"
PARTS = re.compile(r"^## (.*?)\n(.*?)(?=^## |\Z)", LINES)
SECTIONS = dict(PARTS.findall(MODELS_PAGE.read_text(encoding="utf-8")))
EXAMPLES = ["A random forest", "A convolutional network", "A language model"]
OTHERS = ["Anything else", "The labels alone", "A test that fails when training leaks more"]


def blocks(section):
    return re.findall(r"```python\n(.*?)```", SECTIONS[section], re.DOTALL)


@pytest.mark.parametrize("section", EXAMPLES)
def test_a_worked_example_tosses_coins_before_training_and_prints_its_bounds(section, capsys):
    first, *others = blocks(section)
    training = re.search(r"\.fit\(|AdamW?\(", first).start()
    assert 0 < first.index("< 0.5") < training < first.index('design="randomized"')
    assert all('design="game"' in other for other in others)
    names = {}
    for block in blocks(section):
        exec(compile(block, section, "exec"), names)
        printed = capsys.readouterr().out
        assert re.search(r"ε ≥ \d+\.\d{3} \(δ = 0, confidence 0\.95; ", printed)
    values = names["losses_in"], names["losses_out"]
    assert values[0].mean() < values[1].mean()
    assert names["audits"].audit_losses(*values).headline.epsilon > 0


def test_the_other_examples_run_none_is_left_out_and_the_page_s_test_fails_above_its_limit(capsys):
    assert [name for name in SECTIONS if blocks(name)] == [*EXAMPLES, *OTHERS]
    for section, printed in zip(
        OTHERS[:2], ("[0. 1. 4.]", "under replacing the label of one"), strict=True
    ):
        exec(compile(blocks(section)[0], section, "exec"), {})
        assert printed in " ".join(capsys.readouterr().out.split())
    names = {}
    exec(compile(blocks(OTHERS[2])[0], OTHERS[2], "exec"), names)
    (test,) = (
        value for name, value in names.items() if name.startswith("test_")
    )  # as pytest collects it
    assert names["LIMIT"] == 3.0
    test()
    names["LIMIT"] = 0.5
    with pytest.raises(AssertionError, match="ε ≥"):
        test()
