"""The README is short, and its example prints what it says."""

import re
from pathlib import Path

import numpy as np

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    return found


def test_readme_is_short():
    assert len(README.splitlines()) < 150


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
