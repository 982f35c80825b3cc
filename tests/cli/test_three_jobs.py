"""The page of three whole jobs: its commands and files run, with small data."""

import json
import re
import runpy
import shlex
import sys
import tomllib
import warnings
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from paperlib.models.language import LanguageModelConfig, new_language_model, train_tokenizer
from tests.cli.conftest import BOOK
from tests.insertions import WORDS

PAGE = (BOOK / "three_jobs.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^\(job-(\w+)\)=\n(.*?)(?=^\(job-|\Z)", PAGE, re.S | re.M))
EXTRAS = tomllib.loads((BOOK.parent / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]
FILE = re.compile(r"```\{code-block\} python\n:caption: (\S+)\n(.*?)```", re.S)


def commands(job: str) -> list[str]:
    """The commands of a job, each in one line."""
    (block,) = re.findall(r"```sh\n(.*?)```", SECTIONS[job], re.S)
    return block.replace("\\\n", "").splitlines()


@pytest.fixture
def done(here, command, monkeypatch):
    """Run a job's commands after its installation, in a folder with its files; what each says."""
    monkeypatch.syspath_prepend(str(here))

    def run(job: str) -> list[tuple[int, str]]:
        for name, text in FILE.findall(SECTIONS[job]):
            Path(name).write_text(text, encoding="utf-8")
        return [step(shlex.split(line)) for line in commands(job)[1:]]

    def step(words: list[str]) -> tuple[int, str]:
        if words[0] == "paperlib":
            seed = ["--seed", "0"] if words[1] == "coins" else []
            code, out, error = command(*words[1:], *seed)
            return code, out + error
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Opacus, on its generator
            name = "__main__" if words[0] == "python" else "tested"
            names = runpy.run_path(words[-1], run_name=name)
            for name in list(names):
                if name.startswith("test_"):
                    names[name]()
        return 0, ""

    yield run
    sys.modules.pop("train", None)


@pytest.mark.parametrize("job", SECTIONS)
def test_a_job_has_six_commands_at_most_and_installs_extras_that_exist(job):
    first, *others = commands(job)
    assert 2 <= len(others) <= 5
    assert set(re.findall(r"leakbound\[(\w+)\]", first)) <= set(EXTRAS)


def test_chats_in_json_lines_are_audited_from_coins_to_the_report(done):
    rng = np.random.default_rng(0)
    chats = [
        {
            "id": f"c{number}",
            "messages": [
                {"role": role, "content": " ".join(rng.choice(WORDS.split(), 6))}
                for role in ("user", "assistant")
            ],
        }
        for number in range(56)
    ]
    Path("chats.jsonl").write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    tokenizer = train_tokenizer([WORDS], 300, context=128)
    tokenizer.chat_template = (
        "{{ bos_token }}{% for turn in messages %}{{ turn['content'] }}\n{% endfor %}"
    )
    base = new_language_model(LanguageModelConfig(width=16, layers=1, context=128), len(tokenizer))
    base.save_pretrained("base")
    tokenizer.save_pretrained("base")
    coins, tuned, audit = done("chats")
    assert (coins[0], tuned[0], audit[0]) == (0, 0, 0), audit
    assert "adding or removing one example" in audit[1]
    assert Path("chats.html").is_file()


def test_a_model_and_a_release_are_audited_by_patient_without_reading_a_pickle(done):
    rng = np.random.default_rng(0)
    patients = np.repeat(np.arange(120), 3)
    visits = pd.DataFrame(
        {
            "patient": [f"p{number}" for number in patients],
            "age": rng.normal(50, 15, patients.size),
            "stay": rng.gamma(2, 3, patients.size),
            "ill": rng.integers(0, 2, patients.size),
        }
    )
    visits.to_csv("visits.csv", index=False)
    Path("train.py").write_text(
        "from tests.cli.test_three_jobs import train_officer\ntrain_officer()\n"
    )
    coins, train, score, model, release = done("hospital")
    assert {code for code, _ in (coins, train, score, model, release)} == {0}, (model, release)
    for _, said in (model, release):
        assert "patient" in said
        assert float(re.findall(r"ε ≥ (\d+\.\d+)", said)[0]) > 0.5
    assert Path("model.html").is_file()
    assert Path("release.html").is_file()


def train_officer() -> None:
    """A forest as a pickle, and a release that hardly changes the rows of its training."""
    rows = pd.read_csv("train.csv")
    forest = RandomForestClassifier(20, random_state=0).fit(
        rows[["age", "stay"]].values, rows["ill"]
    )
    joblib.dump(forest, "model.pkl")
    rows["age"] += 0.01
    rows.drop(columns="patient").to_csv("synthetic.csv", index=False)


def test_a_loop_of_opacus_passes_both_gates(done):
    test, train, audit = done("opacus")
    assert (test[0], train[0], audit[0]) == (0, 0, 0), audit
    assert Path("audit.xml").is_file()
