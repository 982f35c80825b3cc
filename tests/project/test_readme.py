"""README and CONTRIBUTING are short, their examples run, and what they name exists."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import paperlib

ROOT = Path(__file__).parents[2]
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md")}
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
    code = block("python", 1).replace('label="income"', 'label="income", repetitions=1, restarts=1, epochs=2')
    exec(code, {"losses": losses, "members": members})
    assert "generator" in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES)
def test_notebooks_and_files_that_a_page_names_exist(page):
    for stem in re.findall(r"NB=([a-z]\w+)", PAGES[page]):
        assert (ROOT / "notebooks" / f"{stem}.ipynb").is_file()
    named = re.findall(r"[`(]((?:paperlib|tests|book|notebooks)/[\w./]+)[`)]", PAGES[page])
    made = {"notebooks/NAME.ipynb", "book/notebooks/", "book/_build/html/index.html"}
    assert [path for path in named if not (ROOT / path).exists() and path not in made] == []
