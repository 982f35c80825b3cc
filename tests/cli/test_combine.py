"""``paperlib combine``: what it says and writes, its gate, and the runs that it refuses."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paperlib.bounds import combine_runs
from paperlib.core import MembershipScores, toss_coins
from paperlib.io.files import file_sha256
from tests.cli.conftest import in_order

FILES = [f"run{number}.csv" for number in range(1, 4)]
RUNS = " ".join(FILES)


@pytest.fixture
def combine(here, command):
    """The command in a folder with three runs: scores of one, losses of the others."""
    rng = np.random.default_rng(0)
    for number, file in enumerate(FILES):
        member = rng.integers(0, 2, 200)
        value = rng.normal(1.5 * member)
        column = {"score": 10 * value} if number == 0 else {"loss": -value}
        names = [f"{number}-{at}" for at in range(200)]
        pd.DataFrame({"id": names, **column, "member": member}).to_csv(file, index=False)
    return command.of("combine")


def library(**options):
    return combine_runs([MembershipScores.from_file(file) for file in FILES], **options)


def test_the_terminal_shows_the_runs_and_the_answer_and_a_report_is_written(combine):
    code, out, err = combine(*FILES, "--claimed-epsilon", "1")
    expected = library()
    assert (code, err, expected.epsilon > 1) == (0, "", True)
    answer = [expected.headline, expected.condition, expected.claim]
    places = (
        "Run 1: run1.csv",
        "read as scores",
        "Run 3: run3.csv",
        "claimed epsilon",
        *answer,
        "AUC 0.8",
    )
    in_order(out, *places, "Next:", "Report: combined-audit.html\n")
    assert "Other audits" not in out
    page = Path("combined-audit.html").read_text(encoding="utf-8")
    for words in (*map(file_sha256, FILES), expected.claim, "no run was left out"):
        assert words in page
    highest = pd.read_csv(FILES[0]).query("member == 1").nlargest(1, "score")["id"].item()
    assert f"<th scope='row'>{highest}</th>" in page, "the surest member of a run is named"


@pytest.mark.parametrize("planned", [None, 1000])
def test_json_and_gate_are_those_of_an_audit(combine, planned):
    words = f"{RUNS} --delta 1e-5 --fail-above 0.5" + (f" --planned {planned}" if planned else "")
    content, expected = combine.document(words, code=3), library(planned=planned, delta=1e-5)
    assert content["epsilon"] == expected.epsilon > 0.5
    assert content["inputs"] == {file: file_sha256(file) for file in FILES}
    assert content["audits"][0]["result"]["runs"] == [200, 200, 200]
    assert content["audits"][0]["result"]["planned"] == planned
    assert not list(Path().glob("*.html"))


def test_files_of_one_name_are_told_apart_and_a_unit_is_named(combine):
    for number, file in enumerate(FILES[1:]):
        Path(f"month{number}").mkdir()
        pd.concat([pd.read_csv(file)] * 2).to_csv(f"month{number}/scores.csv", index=False)
    content = combine.document("month0/scores.csv month1/scores.csv --unit id")
    assert sorted(content["inputs"]) == ["month0/scores.csv", "month1/scores.csv"]
    assert "one unit of id" in content["claim"]


def test_a_column_that_looks_like_units_is_refused_with_options_that_the_command_has(combine):
    sites = np.random.default_rng(1).permutation(40)  # in no order that a split by time explains
    for file in FILES:
        table = pd.read_csv(file).sort_values("member", kind="stable")
        table.assign(site=[f"s{sites[row // 5]}" for row in range(200)]).to_csv(file, index=False)
    advice = "say --unit site (in Python unit=), or --group-column site"
    combine.refuses(RUNS, advice)
    assert combine.line(f"{RUNS} --group-column site --json")[0] == 0


def test_runs_that_are_not_runs_of_their_own_are_refused_in_one_line(combine):
    table = pd.read_csv(FILES[0])
    Path("copy.csv").write_bytes(Path(FILES[0]).read_bytes())
    again = table.assign(score=np.random.default_rng(1).normal(size=200))
    again.to_csv("again.csv", index=False)
    combine.refuses(f"{RUNS} copy.csv", "two of the files have the same content")
    combine.refuses(f"{RUNS} again.csv", "records in several runs: 200, such as '0-0'")
    combine.refuses(f"{RUNS} --output run2.csv", "--output: run2.csv is the input")
    combine.refuses(f"{RUNS} missing.csv", "missing.csv")
    combine.refuses("", "Missing argument")
    again.drop(columns="id").to_csv("again.csv", index=False)
    table.drop(columns="id").to_csv(FILES[0], index=False)
    assert combine.line("run1.csv again.csv --json")[0] == 0, "new coins for records without names"


def tossed_runs(**options):
    """Two runs on the same records, each with coins of its own; losses in another order than the
    coins.
    """
    runs = []
    for number in (1, 2):
        coins = toss_coins([f"r{at}" for at in range(300)], seed=number, **options)
        coins.save(f"{number}.coins.json")
        losses = np.random.default_rng(number).normal(-2.0 * coins.included)
        frame = pd.DataFrame({"id": coins.ids, "loss": losses})
        frame.sample(frac=1, random_state=0).to_csv(f"{number}.csv", index=False)
        runs.append(coins.scores(frame, kind="losses"))
    return runs


WITH_COINS = "1.csv 2.csv --coins 1.coins.json --coins"


def test_coins_files_tell_who_is_a_member_and_records_may_stand_in_both_runs(combine):
    runs = tossed_runs(copies=2)
    content = combine.document(f"{WITH_COINS} 2.coins.json --output page.html")
    assert content["epsilon"] == combine_runs(runs).epsilon > 1
    assert "with all its 2 copies" in content["claim"]
    assert sum("300 coins for 300 canaries" in text for text in content["assumptions"]) == 2
    assert content["inputs"].keys() == set(re.findall(r"\S+\.\w+", f"{WITH_COINS} 2.coins.json"))
    assert sum("tossed with the seed" in text for text in content["warnings"]) == 2
    content = combine.document("1.csv 2.csv --coins 2.coins.json --coins 1.coins.json")
    assert content["epsilon"] < 0.5, "other coins tell nothing of these losses"


def test_coins_that_are_no_coins_of_each_run_are_refused(combine):
    tossed_runs()
    ids = [f"r{at}" for at in range(300)]
    toss_coins(ids, seed=1).save("again.json")
    toss_coins(ids, seed=1, fraction=0.2).save("part.json")
    toss_coins(ids, seed=3, unit="user").save("unit.json")
    combine.refuses(f"{WITH_COINS} again.json", "runs 1 and 2 share their coins")
    combine.refuses(f"{WITH_COINS} part.json", "runs 1 and 2 share their coins")
    combine.refuses(f"{WITH_COINS} unit.json", "what has a coin differs between the runs")
    combine.refuses("1.csv 2.csv --coins 1.coins.json", "--coins: 1 files for 2 runs")
    combine.refuses(
        f"{WITH_COINS} 2.coins.json --design game", "they say that the design is randomized"
    )
