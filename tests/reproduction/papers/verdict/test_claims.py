"""Claims are judged one by one: over the readings of a paper, beside the rule, and from records
that earlier rules wrote.
"""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from paperlib.io import read_result
from paperlib.reproduction.papers.landing import landing_markdown
from paperlib.reproduction.papers.panoramia.images.tables import level
from paperlib.reproduction.papers.verdict import Estimate, Evidence
from paperlib.reproduction.papers.verdict.evidence import from_dict, rules
from paperlib.reproduction.papers.verdict.outcome import Outcome, decide
from paperlib.reproduction.papers.verdict.pages import results_pages
from paperlib.reproduction.papers.verdict.status import JudgedTarget, judge

MEASURED = Path(__file__).parents[4] / "book" / "measured"
ADULT = rules()["epsilon-star-figure-02"]
RELU, TANH = ADULT.readings


def adult(reading: str, scale: str = "paper's data", **values: float) -> dict:
    """A run of Figure 2 in one reading; every claim holds unless it is given."""
    names = {
        "all below 0.3": values.get("below", 0.1),
        "DP not above baselines": values.get("baselines", 0.1),
        "rises with epochs": values.get("rises", 0.1),
        "below the training epsilon": values.get("training", 0.9),
    }
    samples = {name: [value] * 3 for name, value in names.items()}
    evidence = Evidence(ADULT.target, "model", samples, reading=reading)
    record = {**evidence.to_dict(), "level": scale, "facts": "adult"}
    return {
        "notebook": ADULT.notebooks[0],
        "parameters": {"seed": 0},
        "records": [record],
        "provenance": {},
    }


def over_readings(*runs: dict) -> JudgedTarget:
    return next(entry for entry in judge(runs) if entry.rule == ADULT)


def words(outcome: Outcome) -> dict[str, str]:
    return {claim.name: claim.word for claim in outcome.claims}


def test_a_target_disagrees_where_one_claim_fails_in_every_reading():
    """Two claims that fail in one reading each are no claim that fails in both."""
    apart = over_readings(adult(RELU, below=0.5), adult(TANH, baselines=-0.5))
    assert apart.outcome.word == "undecided"
    assert set(words(apart.outcome).values()) == {"undecided", "agrees"}
    both = over_readings(adult(RELU, below=0.5), adult(TANH, below=0.4, baselines=-0.5))
    assert both.outcome.word == "disagrees"
    assert words(both.outcome)["all below 0.3"] == "disagrees"
    assert str(both.outcome.first_reason) == "fails in each reading: all below 0.3"
    one = over_readings(adult(RELU, below=0.5))
    assert one.outcome.word == "undecided"


def test_readings_of_different_scales_share_the_weaker_outcome():
    for value, expected in ((0.5, "does not carry over"), (0.1, "carries over")):
        runs = [adult(RELU, below=value), adult(TANH, "substitute", below=value)]
        assert over_readings(*runs).outcome.word == expected


def test_what_stands_beside_has_an_outcome_of_its_own_and_changes_no_other():
    fails = over_readings(adult(RELU, training=-1.0), adult(TANH, training=-1.0))
    assert fails.outcome.word == "agrees"
    assert words(fails.outcome)["below the training epsilon"] == "disagrees"
    page = "\n".join(results_pages([fails], pages=()).values())
    assert "Beside the rule: [✕ disagrees]{.chip .disagrees} below the training epsilon" in page


def test_a_claim_beside_the_rule_names_the_comparisons_that_decide_and_counts_all():
    """A wide interval decides nothing, however far out it reaches."""
    runs = [adult(RELU), adult(TANH)]
    for run in runs:
        run["records"][0]["values"]["below the training epsilon"] = {
            "wide": [-300.0, 0.0, 300.0],
            "far out": [-5.0, -5.01, -5.02],
            "inside": [0.5, 0.51, 0.52],
        }
    page = "\n".join(results_pages([over_readings(*runs)], pages=()).values())
    (line,) = re.findall(r"Beside the rule: .*", page)
    assert "of 6 comparisons 2 inside the claimed range and 2 outside" in line
    assert line.count("far out") == 2
    assert "wide" not in line


def test_what_fails_stands_first_among_the_claims_of_a_page():
    fails = over_readings(adult(RELU, rises=-1.0), adult(TANH, rises=-1.0))
    page = "\n".join(results_pages([fails], pages=()).values())
    assert "Claim by claim: [✕ disagrees]{.chip .disagrees} rises with epochs; [● agrees]" in page


def test_a_property_of_a_method_can_be_contradicted_on_any_data_and_its_other_claims_carry_over():
    rule = rules()["nid-table-10"]
    samples = {"enough null sets": Estimate(1000), "trained rejected": Estimate(0.001)}
    for rejected, expected in ((12.0, "disagrees"), (5.0, "carries over")):
        values = samples | {"null rejected at its rate": Estimate(rejected)}
        evidence = {rule.notebooks[0]: Evidence(rule.target, "set", values)}
        outcome = decide(rule, evidence, "substitute")
        assert outcome.word == expected
        assert words(outcome)["trained rejected"] == "carries over"


def test_images_of_fewer_pixels_than_the_papers_are_a_substitute_that_still_stands_before_others():
    for side, expected in ((0, "paper's data"), (32, "paper's data"), (16, "substitute")):
        assert level("cifar10", "panoramia-table-02", side=side) == expected
    kept = [vars(read_result(path)) for path in (MEASURED / "cifar10_8_pixels").glob("*.json")]
    digits = [vars(read_result(path)) for path in MEASURED.glob("seeds/*/panoramia_images.json")]
    assert {record["level"] for run in kept for record in run["records"]} >= {"paper's data"}
    judged = [entry for entry in judge([], kept + digits) if entry.rule.item == "Table 2"]
    entries = [entry for entry in judged if entry.rule.paper == "panoramia"]
    assert {entry.level for entry in entries} == {"substitute"}
    assert "8 pixels a side" in entries[0].runs[0].scale.facts


def test_games_of_one_model_are_averaged_where_the_rule_asks_for_models():
    kept = [vars(read_result(path)) for path in (MEASURED / "cifar10_8_pixels").glob("*.json")]
    for entry in judge([], kept):
        if entry.rule.target == "panoramia-figure-03":
            assert {run.evidence.unit for run in entry.runs} == {"game"}
            assert "on these models" not in entry.outcome.reason
            assert entry.outcome.word == "undecided"
    assert rules()["panoramia-figure-03"].unit == "model"


def test_records_of_earlier_rules_have_todays_terms():
    stars = {"no DP, 1 epoch": [0.1, 0.2], "no DP, 20 epochs": [0.4, 0.3], "DP 3, clip 1": [0.5, 1]}
    line = {
        "target": ADULT.target,
        "unit": "model",
        "note": "",
        "level": "paper's data",
        "facts": "adult",
        "values": {"all below 0.3": stars, "DP below baselines": {"DP 3, clip 1": [0.1, 0.2]}},
    }
    samples = from_dict(json.loads(json.dumps(line)))[0].samples()
    assert samples["rises with epochs", ""] == pytest.approx([0.3, 0.1])
    assert samples["below the training epsilon", "DP 3, clip 1"] == pytest.approx([2.5, 2.0])
    assert samples["DP not above baselines", "DP 3, clip 1"] == [0.1, 0.2]
    stars["no DP, 1 epoch"] = [0.1]  # of which models is not known
    assert from_dict(line)[0].samples()["rises with epochs", ""] == []


def test_gains_at_the_largest_m_are_taken_from_earlier_records():
    rule = rules()["output-sets-figure-02"]
    gains = {
        "gaussian, scale 0.5, m = 100, whole line": [1.0],
        "gaussian, scale 0.5, m = 51,200, whole line": [2.0],
        "laplace, scale 1, m = 51,200, whole line": [3.0],
    }
    line = {
        "target": rule.target,
        "unit": "draw",
        "note": "",
        "level": "paper's scale",
        "facts": "draws",
        "values": {"optimal highest": gains, "gain largest at small m": {"gaussian": [0.1]}},
    }
    evidence = from_dict(line)[0]
    significant = "gaussian, scale 0.5, m = 51,200, whole line"
    assert evidence.values["significant at large m"] == {significant: [2.0]}
    assert evidence.values["smaller deviation"] == {}
    with pytest.raises(ValueError, match="values: the rule of"):
        replace(evidence, values={"optimal highest": gains})


def test_the_distance_of_o1_from_the_printed_value_is_shown_and_decides_nothing():
    runs = [vars(read_result(MEASURED / "panoramia_adult_splits" / "seed_2.json"))]
    entry = next(one for one in judge([], runs) if one.rule.target == "panoramia-table-06")
    (distance,) = [claim for claim in entry.outcome.claims if claim.beside]
    assert distance.word == "shown"
    assert [round(contrast.mean, 2) for contrast in distance.contrasts] == [-0.64, 2.91]
    page = "\n".join(results_pages([entry], pages=()).values())
    assert "[▢ shown]{.chip .shown} O(1) from the printed value (MLP, 10 epochs) -0.635" in page
    assert "O(1) from the printed value (MLP, 100 epochs) 2.91" in page


def planned_runs() -> list[dict[str, str]]:
    """The rows of the list of planned runs, as text."""
    return pd.read_csv(
        MEASURED.parent / "planned_runs.csv", dtype=str, keep_default_na=False
    ).to_dict("records")


def missing_seeds() -> dict[str, set[int]]:
    """Seeds of each planned run that is neither committed nor among those of unfinished plans."""
    runs = [read_result(path) for path in sorted(MEASURED.rglob("*.json"))]
    missing: dict[str, set[int]] = {}
    for plan in planned_runs():
        planned = json.loads(plan["parameters"])
        made = {
            int(run.parameters["seed"])
            for run in runs
            if run.notebook == plan["notebook"] and planned.items() <= run.parameters.items()
        }
        seeds = set(map(int, str(plan["seeds"]).split()))
        if made & seeds != seeds:
            missing.setdefault(plan["notebook"], set()).update(seeds - made)
    return missing


def test_the_page_of_results_names_the_plans_that_are_not_finished():
    text = " ".join((MEASURED.parent / "results.md").read_text(encoding="utf-8").split())
    named = re.search("Not all plans are finished: (.*?) are not run", text)
    assert named is not None
    found: dict[str, set[int]] = {}
    pattern = r"seeds? (\d+)(?: (?:to|and) (\d+))? of `(\w+)`"
    for first, last, notebook in re.findall(pattern, named.group(1)):
        found.setdefault(notebook, set()).update(range(int(first), int(last or first) + 1))
    assert found == missing_seeds()


def test_the_first_page_says_how_many_rules_were_changed_and_for_whom():
    text = landing_markdown(judge([]), profile="smoke", findings={})
    assert "fixed before the run]" not in text
    changed = [rule for rule in rules().values() if rule.revised]
    assert f"{50 - len(changed)} of 50 rules stand" in text
    favoured = sum(rule.favour == "authors" for rule in changed)
    assert f"{len(changed)} were changed later, with the outcomes known: {favoured} in the" in text


def test_claims_that_all_have_the_outcome_of_their_row_are_not_said_again():
    agrees = over_readings(adult(RELU), adult(TANH))
    assert {claim.word for claim in agrees.outcome.claims if not claim.beside} == {"agrees"}
    assert "Claim by claim" not in "\n".join(results_pages([agrees], pages=()).values())


def test_a_plan_that_is_not_finished_has_its_hours_and_the_command_of_its_parameters():
    missing = missing_seeds()
    open_plans = [plan for plan in planned_runs() if plan["hours"]]
    assert {plan["notebook"] for plan in open_plans} == set(missing)
    for plan in open_plans:
        assert float(plan["hours"]) > 0
        program, command, notebook, *options = shlex.split(plan["command"])
        assert (program, command, notebook) == ("paperlib", "run", plan["notebook"])
        assert options[:2] == ["--profile", plan["profile"]]
        given = dict(option.split("=", 1) for option in options[3::2])
        planned = json.loads(plan["parameters"]) | {"seed": "SEED"}
        assert set(given) == set(planned)
        for name, value in planned.items():
            assert given[name] == (
                value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
            ), name
