"""Rules, outcomes, the page of results and what would decide: every verdict can fail."""

import json
import math
import re
from dataclasses import asdict, replace
from typing import get_args

import numpy as np
import pytest
from scipy.stats import binomtest, t

from paperlib.io.files import RunResult
from paperlib.report import display
from paperlib.reproduction.exhibits import paper_table
from paperlib.reproduction.papers.verdict import Estimate, Evidence, Scale, pages, record, records
from paperlib.reproduction.papers.verdict.contrasts import Contrast
from paperlib.reproduction.papers.verdict.evidence import Level, TargetRule, Term, from_dict, rules
from paperlib.reproduction.papers.verdict.outcome import Outcome, decide, decide_alone, pool
from paperlib.reproduction.papers.verdict.reasons import WORDINGS, Cause, Reason
from paperlib.reproduction.papers.verdict.records import SIGNS, class_of
from paperlib.reproduction.papers.verdict.status import JudgedTarget, judge, status_table
from tests.refusals import refused

RULES = rules()
JUDGED = [rule for rule in RULES.values() if any(term.claimed for term in rule.terms)]
SCALE = Scale("paper's data", "made up")
TWO = RULES["panoramia-table-02"]  # three claims over games, no condition
MODELS = RULES["panoramia-table-01"]  # two claims over models, two conditions


def at(term: Term, where: str) -> Estimate | list[float]:
    """An exact value just inside or just outside the range of a term, or one whose interval is too
    wide.
    """
    if not term.bounded:
        return Estimate(0)
    end, inward = (term.at_least, 1) if math.isfinite(term.at_least) else (term.at_most, -1)
    step = inward * 1e-6 * max(1.0, abs(end))
    inside = end if term.at_least == term.at_most else end + step
    if term.how == "largest":
        values = {"inside": [inside] * 5, "outside": [end - step] * 5, "across": of_mean(end, 5)}
        return values[where]
    return {
        "inside": Estimate(inside),
        "outside": Estimate(end - step),
        "across": Estimate(end, 1e-6),
    }[where]


def evidence(rule: TargetRule, where: str = "inside", term: str = "") -> dict[str, Evidence]:
    """Evidence that is inside every range, but for one term."""
    values = {one.name: at(one, where if one.name == term else "inside") for one in rule.terms}
    return {name: Evidence(rule.target, rule.unit, values) for name in rule.notebooks}


def word(rule: TargetRule, given: dict[str, Evidence]) -> str:
    return decide(rule, given, "paper's scale", seeds=rule.runs).word


@pytest.mark.parametrize("rule", JUDGED, ids=lambda rule: rule.target)
def test_every_rule_agrees_disagrees_and_is_undecided_at_its_own_margins(rule):
    assert word(rule, evidence(rule)) == "agrees"
    for term in rule.terms:
        outside = {"claimed": "disagrees", "needed": "undecided", "beside": "agrees"}[term.role]
        by_mean = term.how == "mean on public models"
        if term.role == "needed" or not by_mean:  # by its mean it lies outside only with its error
            assert word(rule, evidence(rule, "outside", term.name)) == outside
        across = "agrees" if term.role == "beside" or by_mean else "undecided"
        assert word(rule, evidence(rule, "across", term.name)) == across
    for name in rule.notebooks[1:]:
        assert word(rule, {k: v for k, v in evidence(rule).items() if k != name}) != "agrees"


def test_there_is_a_rule_for_every_target_and_each_claim_has_a_margin():
    assert len(RULES) == 50
    assert set(RULES) - {rule.target for rule in JUDGED} == {"panoramia-figure-07"}
    assert decide_alone(Evidence("panoramia-figure-07", "model", {}), "substitute").word == "shown"
    assert set(paper_table("rules")["target"]) <= set(RULES)
    for rule in RULES.values():
        assert len({term.name for term in rule.terms}) == len(rule.terms)
        for term in filter(lambda term: term.bounded, rule.terms):
            assert f"{term.at_least:g}" in term.limits or f"{term.at_most:g}" in term.limits


def games(*differences: float, size: int = 8, seed: int = 0) -> list[float]:
    """Values around a mean with deviation 0.05."""
    noise = np.random.default_rng(seed).normal(0, 0.05, size)
    return list(differences[0] + noise - noise.mean())


def table_two(generated=0.4, real=0.4, over=0.0, **options) -> Evidence:
    means = {"generated over none": generated, "real over none": real, "generated over real": over}
    return Evidence(
        TWO.target, "game", {name: games(mean, **options) for name, mean in means.items()}
    )


def test_intervals_are_those_of_the_t_distribution_or_exact_with_the_error_shared_by_the_claims():
    one = decide_alone(table_two(), "substitute").contrasts[0]
    values = np.array(games(0.4))
    low, high = t.interval(1 - TWO.error / 3, 7, values.mean(), values.std(ddof=1) / math.sqrt(8))
    assert (one.low, one.high) == pytest.approx((low, high), rel=1e-12)
    shares = {"Laplace intervals": Estimate(4), "Gaussian intervals": Estimate(3)}
    for count in (0, 3, 20):
        sample = [1.0] * count + [0.0] * (20 - count)
        centre = Evidence("output-sets-figure-01", "exact", shares | {"centre missed": sample})
        one = decide_alone(centre, "substitute").contrasts[2]
        exact = binomtest(count, 20).proportion_ci(1 - 0.025 / 3)
        assert (one.low, one.high) == pytest.approx((exact.low, exact.high), abs=1e-9)
    # Where each run counts as one model its share is a mean, which an exact interval cannot take.
    runs = {"maximum at low recall": [0.5, 1.0, 0.75], "falls to recall 0.5": [1.0, 1.1, 0.9]}
    given = Evidence("panoramia-figure-04", "model", {**runs, "null": [0.0] * 3})
    one = decide_alone(given, "substitute").contrasts[0]
    low, high = t.interval(1 - RULES[given.target].error / 2, 2, 0.75, 0.25 / math.sqrt(3))
    assert (one.low, one.high) == pytest.approx((low, high), rel=1e-12)


def wrong_outcomes(share_error: bool) -> float:
    """How often one of three claims that lie at the ends of their ranges is called wrong."""
    rng, wrong, trials = np.random.default_rng(0), 0, 2000
    rule = replace(TWO, error=0.05)
    whole = t.isf(rule.error / 2, 4) / t.isf(rule.error / 6, 4)  # the broken twin
    narrow = 1.0 if share_error else whole
    for _ in range(trials):
        values = {term.name: list(term.at_least + rng.normal(0, 1, 5)) for term in TWO.terms}
        given = {TWO.notebooks[0]: Evidence(TWO.target, "game", values)}
        contrasts = decide(rule, given, "substitute", seeds=2).contrasts
        wrong += any(
            one.mean + (one.high - one.mean) * narrow < one.term.at_least for one in contrasts
        )
    return wrong / trials


def test_a_claim_that_is_true_at_its_margin_is_seldom_called_wrong():
    """One-sided, each of three claims may fail with a third of half the error."""
    half = 0.05 / 2
    assert wrong_outcomes(share_error=True) <= half + 3 * math.sqrt(half / 2000)
    assert wrong_outcomes(share_error=False) > half + 3 * math.sqrt(half / 2000)


def test_too_few_repetitions_are_undecided_and_games_speak_for_these_models_only():
    assert decide(TWO, {"panoramia_images": table_two()}, "paper's data", seeds=2).word == "agrees"
    few = decide(TWO, {"panoramia_images": table_two(size=4)}, "substitute", seeds=2)
    assert str(few) == "undecided (4 games, 5 needed)"
    assert decide(TWO, {"panoramia_images": table_two()}, "substitute").reason == "1 seed, 2 needed"
    one_model = table_one(gap=[5.0])
    assert str(decide_alone(one_model, "substitute")) == "undecided (1 model, 3 needed)"
    on_games = table_one("game", gap=games(5.0), falls=games(3.0))
    assert str(decide_alone(on_games, "paper's data")) == "agrees (on these models)"


def table_one(unit="model", gap=(5.0, 5.1, 4.9), falls=(3.0,), **needs) -> Evidence:
    values = {
        "gap grows": gap,
        "test falls": falls,
        "overfitted": Estimate(100),
        "clean labels": Estimate(0),
    }
    return Evidence(MODELS.target, unit, values | needs)


def test_a_condition_that_is_not_met_or_not_measured_leaves_a_target_undecided_and_says_which():
    noisy = decide_alone(
        table_one(falls=[3.0, 3.1, 2.9], **{"clean labels": Estimate(0.3)}), "substitute"
    )
    assert noisy.word == "undecided"
    assert "a condition is not met: clean labels 0.3 needed at most 0" in noisy.reason
    once = decide_alone(table_one(falls=[3.0, 3.1, 2.9], overfitted=[100.0]), "substitute")
    assert (
        once.reason
        == "a condition is not met: overfitted 100, one repetition, needed at least 99 %"
    )
    for empty in ([], {}):
        missing = decide_alone(table_one(falls=empty), "substitute")
        assert str(missing) == "undecided (not measured: test falls)"


def test_only_the_papers_data_decide_where_the_rule_says_so_and_wide_intervals_never():
    rule = RULES["panoramia-figure-12"]
    assert decide(rule, evidence(rule), "substitute").reason == "only the paper's data decide"
    assert decide(rule, evidence(rule), "paper's data").word == "agrees"
    far = {"smaller leaks less": Estimate(50, 3.0), "sizes apart": Estimate(4)}
    reason = decide_alone(Evidence("nid-table-05", "model", far), "substitute").reason
    assert "wider than 1 to each side" in reason


def test_runs_of_several_seeds_are_pooled_as_models_and_numbers_without_an_error_have_an_interval():
    three = [
        table_one("game", gap=games(5.0, seed=s), falls=games(3.0 + s, seed=s)) for s in range(3)
    ]
    pooled = pool(three)
    assert pooled.unit == "model"
    assert pooled.samples()["test falls", ""] == pytest.approx([3.0, 4.0, 5.0])
    assert pooled.samples()["overfitted", ""] == Estimate(100)
    two = pool(three[:2])
    assert (two.unit, len(two.samples()["gap grows", ""])) == ("game", 16)
    assert len(pool([table_two(), table_two()]).samples()["real over none", ""]) == 16

    def one(p: float, falls: float = 2.0, error: float = 0.0) -> Evidence:
        values = {"p falls": Estimate(falls, error), "null uniform": Estimate(p)}
        return Evidence("nid-figure-03", "set", values)

    falls = pool([one(1, 1.0, 0.3), one(1, 2.0, 0.3)]).samples()["p falls", ""]
    assert falls == Estimate(1.5, pytest.approx(0.3 / 2**0.5))
    samples = pool([one(0.5), one(0.02), one(0.3)]).samples()
    assert samples["p falls", ""] == Estimate(2.0)
    assert samples["null uniform", ""] == [0.5, 0.02, 0.3]
    # The mean alone would lie in the range.
    assert decide_alone(pool([one(0.5), one(0.02)]), "substitute").word == "undecided"


def test_doubtful_evidence_is_refused():
    for change, words in (
        ({"target": "output-set-figure-01"}, "did you mean output-sets-figure-01"),
        ({"unit": "games"}, "unit: expected one of 'model', 'game'"),
        ({"values": {"rises": [1.0]}}, "has the terms generated over none, .*; got rises"),
        (
            {"values": {**table_two().values, "real over none": [math.nan]}},
            "expected finite numbers",
        ),
    ):
        refused(words, replace, table_two(), **change)
    for level, facts in (("paper", "all"), ("substitute", " ")):
        refused(r"level: expected|facts: expected", Scale, level, facts)


def run(notebook: str, *given: Evidence, level="substitute", seed=0, **more) -> dict:
    scale = Scale(level, "made up")
    records = [{**one.to_dict(), **asdict(scale)} for one in given]
    provenance = {"command": f"make run NB={notebook}"}
    result = {"notebook": notebook, "parameters": {"m": 3, "seed": seed}, "records": records}
    return {**result, "provenance": provenance, **more}


def test_records_come_back_as_they_were(tmp_path, monkeypatch):
    monkeypatch.setenv(display.RESULTS_VARIABLE, str(tmp_path))
    given = table_one(gap={"a": [5.0, np.float64(4.0)], "b": Estimate(2, 0.1)})
    scales = [SCALE, replace(SCALE, measured_here=False)]
    for scale in scales:
        record(given, scale=scale)
    lines = (tmp_path / display.RECORDS_FILE).read_text().splitlines()
    kept = [from_dict(json.loads(line)) for line in lines]
    assert [scale for _, scale in kept] == scales
    for again, _ in kept:
        np.testing.assert_equal(again.samples(), given.samples())


def test_the_status_counts_every_target_once_and_hides_nothing():
    table = status_table(judge([]))
    assert table["id"].tolist() == list(RULES)
    assert set(table["outcome"]) == {"not yet"}
    judged = judge([run("panoramia_images", table_two(seed=s), seed=s) for s in range(2)])
    best = status_table(judged).query("best").set_index("id")
    assert len(best) == 50
    columns = ["outcome", "reason", "scale", "facts", "seeds"]
    reason = f"replaced here: {TWO.parts}; on these models"
    said = ["carries over", reason, "substitute", "made up", "0, 1"]
    assert best.loc[TWO.target, columns].tolist() == said
    counted = "Of 50 tables and figures: 1 carries over to a substitute, 49 are not yet run."
    assert pages.counts_in_words(judged) == counted
    counts = dict(
        re.findall(r'data-outcome="([a-z-]+)" data-count="(\d+)"', pages.legend_html(judged))
    )
    assert counts == {
        class_of(word): {"carries over": "1", "not yet": "49"}.get(word, "0") for word in SIGNS
    }
    chip = r'chip ([a-z-]+)" href="results/[a-z_]+.html#result-([a-z0-9-]+)"'
    chips = re.findall(chip, pages.chips_html(judged))
    assert [target for _, target in chips] == list(RULES)
    assert ("carries-over", TWO.target) in chips


def all_pages(judged, *notebooks: str) -> str:
    return "\n".join(pages.results_pages(judged, pages=notebooks).values())


def test_what_lacks_a_measurement_stands_last_however_often_the_rest_was_measured():
    lacking = Evidence(TWO.target, "game", {**table_two(size=99).values, "real over none": []})
    other = run("panoramia_images", table_two(size=6), parameters={"side": 8})
    rows = status_table(judge([run("panoramia_images", lacking), other])).query("id == @TWO.target")
    assert list(rows["reason"].str.startswith("not measured")) == [False, True]


def test_a_nearer_scale_decides_and_the_page_of_results_has_all_the_evidence_on_every_target():
    how = {
        "level": "paper's data",
        "provenance": {"date": "2026-01-02", "gpu": "Some GPU", "cpu": "x"},
    }
    nearer = [run("panoramia_images", table_two(-1.0, seed=s), seed=s, **how) for s in (0, 1)]
    judged = judge([run("panoramia_images", table_two(seed=s), seed=s) for s in range(2)], nearer)
    rows = status_table(judged).query("id == @TWO.target")
    assert rows["outcome"].tolist() == ["disagrees", "carries over"]
    assert rows["best"].tolist() == [True, False]
    assert rows["origin"].tolist() == ["measured 2026-01-02 on Some GPU", ""]
    page = all_pages(judged, "panoramia_images")
    assert re.findall(r"^\(result-([a-z0-9-]+)\)=$", page, re.MULTILINE) == list(RULES)
    section = page.split(f"(result-{TWO.target})=")[1].split("(result-")[0]
    chip = "- [◆ carries over]{.chip .carries-over}"
    further = f"````{{dropdown}} Further evidence: carries over\n\n{chip}"
    assert section.index("[✕ disagrees]{.chip .disagrees}") < section.index(further)
    assert f"{{ref}}`panoramia_images <verdict-{TWO.target}-panoramia-images>`" in section
    assert "Scale: substitute (made up). Seeds 0, 1 run here." in section
    alone = all_pages(judge([run("panoramia_images", table_two())]))
    assert "Run it again: `make run NB=panoramia_images`" in alone


def test_a_seed_and_shared_evidence_count_once_and_a_later_empty_parameter_is_none():
    noted = run("panoramia_images", table_two(), seed=1)
    noted["records"][0]["note"] = "in 3 minutes"
    alike = (
        run("panoramia_images", table_two(seed=1)),
        run("panoramia_images", table_two(), seed=1),
        noted,
    )
    for second in alike:
        twice = judge([run("panoramia_images", table_two()), second])
        assert status_table(twice).set_index("id").loc[TWO.target, "seeds"] == "0"
    elsewhere = run("panoramia_images", table_two(), seed=None)
    shown = status_table(judge([run("panoramia_images", table_two())], [elsewhere]))
    assert (shown["id"] == TWO.target).sum() == 1
    kept = [run("panoramia_images", table_two(seed=s), seed=s) for s in (0, 1)]
    page = run("panoramia_images", table_two())
    page["parameters"] = {"measured": "a.csv"}  # a page that shows the table of seed 0
    rows = status_table(judge([page], kept)).query("id == @TWO.target")
    assert rows[["seeds", "origin"]].values.tolist() == [["0, 1", "measured  on None"]]
    both = run("panoramia_images", table_two())
    both["records"].append({**both["records"][0], "facts": "a larger table"})
    rows = status_table(judge([both]))
    assert rows.loc[rows["id"] == TWO.target, "facts"].tolist() == ["made up", "a larger table"]
    runs = [run("panoramia_images", table_two(seed=s), seed=s) for s in range(3)]
    runs[1]["parameters"] |= {"games": {}, "parts": "", "more": []}
    runs[2]["parameters"] |= {"games": {"same_test": True}}
    rows = status_table(judge(runs)).set_index("id").loc[[TWO.target]]
    assert sorted(rows["seeds"]) == ["0, 1", "2"]


def test_a_target_needs_all_its_notebooks_and_a_long_command_stands_in_the_csv_alone():
    rule = RULES["panoramia-figure-10"]
    given = evidence(rule)["panoramia_text"]
    runs = [run(name, given, level="paper's scale") for name in rule.notebooks]
    assert status_table(judge(runs)).set_index("id").loc[rule.target, "outcome"] == "agrees"
    alone = status_table(judge(runs[:1])).set_index("id").loc[rule.target]
    assert alone["reason"] == "no run of panoramia_text, panoramia_tabular"
    command = "make run NB=panoramia_images P=" + "x" * 100
    result = run("panoramia_images", table_two(), provenance={"command": command})
    result["records"][0]["facts"] = "eps* ~ {c}_lb $1$ <b>"
    page = all_pages(judge([result]))
    assert command not in page
    assert status_table(judge([result])).set_index("id").loc[TWO.target, "command"] == command
    assert r"eps\* \~ \{c\}\_lb \$1\$ \<b\>" in page


def test_a_page_lists_the_comparisons_nearest_to_deciding_of_which_the_closest_is_measured(capsys):
    values = {
        "optimal highest": {f"n = {n}": Estimate(n) for n in range(20)},
        "gain largest at small m": [],
        "significant at large m": {},
        "smaller deviation": {},
    }
    given = Evidence("output-sets-figure-02", "draw", values)
    record(given, scale=SCALE)
    text = capsys.readouterr().out
    assert [n for n in range(20) if f"(n = {n})" in text] == [0, 1]
    assert "and 18 more comparisons" in text
    outcome = decide_alone(given, "substitute")
    assert str(outcome.contrasts[-1]) == "gain largest at small m not measured"
    assert outcome.closest == outcome.contrasts[0]
    values = {"p falls": [9.0, -5.0, 4.0], "null uniform": Estimate(0.001)}
    outcome = decide_alone(Evidence("nid-figure-03", "set", values), "substitute")
    assert outcome.word == "disagrees"
    assert outcome.closest is not None
    assert outcome.closest.term.name == "null uniform"


def test_all_comparisons_but_the_closest_are_listed_however_they_are_worded(monkeypatch):
    outcome = decide(TWO, {"panoramia_images": table_two()}, "substitute", seeds=2)
    names = {contrast.term.name for contrast in outcome.contrasts}
    closest, others = pages._comparisons(outcome)
    assert len(names) == 3
    assert [sum(name in line for name in names) for line in (closest, others)] == [1, 2]
    monkeypatch.setattr(Contrast, "__str__", lambda _: "reworded")
    closest, others = pages._comparisons(outcome)
    assert [line.count("reworded") for line in (closest, others)] == [1, 2]


def test_made_up_data_decide_nothing_and_are_on_no_page(tmp_path, monkeypatch):
    given = evidence(TWO)
    assert decide(TWO, given, "substitute", seeds=TWO.runs).word == "carries over"
    assert (
        decide(TWO, given, "made-up data", seeds=TWO.runs).reason == "made-up data decide nothing"
    )
    shown = status_table(judge([run("panoramia_images", table_two(), level="made-up data")]))
    assert set(shown["outcome"]) == {"not yet"}
    (tmp_path / "MADE-UP.json").write_text("{}")
    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path))
    monkeypatch.setenv(display.RESULTS_VARIABLE, str(tmp_path))
    record(table_one(), scale=SCALE)
    assert json.loads((tmp_path / display.RECORDS_FILE).read_text())["level"] == "made-up data"


def test_the_first_verdict_of_a_target_on_a_page_has_the_label_the_claim_and_the_scale(
    tmp_path, monkeypatch
):
    monkeypatch.setenv(display.RESULTS_VARIABLE, str(tmp_path))
    monkeypatch.setenv(display.NOTEBOOK_VARIABLE, "panoramia_images")
    shown = []
    monkeypatch.setattr(records, "show", shown.append)
    for _ in range(2):
        record(table_one(), scale=SCALE)
    label = ":name: verdict-panoramia-table-01-panoramia-images\n"
    for once in (label, "The paper: ", "Scale: paper's data"):
        assert [once in one.markdown for one in shown] == [True, False]
    record(table_one(), scale=Scale("substitute", SCALE.facts))
    assert "Scale: substitute" in shown[-1].markdown


def claims_of(rule: TargetRule) -> list[Term]:
    """Terms with an outcome, those beside the rule last."""
    return sorted(
        (term for term in rule.terms if term.role != "needed"), key=lambda term: not term.claimed
    )


CARRIES = RULES["nid-table-03"]  # only models of the paper's size can contradict it
READ = RULES["epsilon-star-figure-01"]


def test_where_a_part_of_the_paper_is_replaced_evidence_neither_agrees_nor_disagrees():
    outside = evidence(CARRIES, "outside", CARRIES.terms[0].name)
    words = {level: decide(CARRIES, outside, level, seeds=3).word for level in get_args(Level)}
    small = "does not carry over"
    assert words == dict(
        zip(get_args(Level), ("disagrees", small, small, "undecided"), strict=True)
    )
    for level in ("paper's data", "substitute"):
        inside = decide(CARRIES, evidence(CARRIES), level, seeds=3)
        assert inside.word == "carries over"
        assert inside.reason == f"replaced here: {CARRIES.contradicted_by}"
    replaced = decide(TWO, evidence(TWO), "substitute", seeds=2).first_reason
    assert str(replaced) == f"replaced here: {TWO.parts}"
    for rule in JUDGED:
        on_substitute = decide(rule, evidence(rule), "substitute", seeds=rule.runs).claims
        for claim, term in zip(on_substitute, claims_of(rule), strict=True):
            if term.how != "any data" and term.bounded:
                assert claim.word in ("carries over", "undecided")


def in_reading(reading: str, where: str) -> dict:
    (given,) = evidence(READ, where, READ.terms[0].name).values()
    return run("epsilon_star_landscape", replace(given, reading=reading), level="paper's data")


def test_a_target_is_undecided_while_the_readings_of_the_paper_differ():
    exact, clipped = READ.readings
    for first, second, word in (
        ("inside", "inside", "agrees"),
        ("outside", "outside", "disagrees"),
        ("inside", "outside", "undecided"),
        ("outside", "across", "undecided"),
    ):
        judged = judge([in_reading(exact, first), in_reading(clipped, second)])
        rows = status_table(judged).query("id == @READ.target")
        assert (rows["outcome"].iloc[0], rows["best"].tolist()) == (word, [True, False, False])
        assert set(rows["reading"]) == {"", exact, clipped}
    assert f"{exact}: disagrees; {clipped}: undecided" in rows["reason"].iloc[0]
    alone = status_table(judge([in_reading(exact, "inside")])).query("id == @READ.target")
    assert alone["reason"].iloc[0].endswith(f"{exact}: agrees; {clipped}: not yet")


def test_models_are_strata_of_identifiers_and_the_interval_over_models_stands_beside():
    rule, needed = RULES["nid-table-05"], {"sizes apart": Estimate(4)}
    values = [2.0, 3.0, 1.5]
    some = [{"smaller leaks less": Estimate(value, 0.3), **needed} for value in values]
    given = [Evidence(rule.target, "identifiers", one) for one in some]
    pooled = pool(given).samples()["smaller leaks less", ""]
    assert pooled == Estimate(pytest.approx(np.mean(values)), pytest.approx(0.3 / math.sqrt(3)))
    page = all_pages(judge([run("nid_mia_benchmark", one, seed=s) for s, one in enumerate(given)]))
    low, high = t.interval(
        1 - rule.error, 2, np.mean(values), np.std(values, ddof=1) / math.sqrt(3)
    )
    assert low < 1 < high
    section = page.split("(result-nid-table-05)=")[1].split("(result-")[0]
    assert "If each run counted as one model: undecided (every interval is wider than 1" in section
    assert "[◆ carries over]" in section


def test_a_rule_that_was_changed_says_so_and_outcomes_are_counted_by_scale():
    changed = [rule for rule in RULES.values() if rule.revised]
    words = {word for rule in changed for word in rule.outcome_before.split(", then ")}
    assert words == {"agrees", "disagrees", "undecided"}
    assert {rule.favour for rule in changed} == set(pages._FAVOURS)
    assert {rule.favour for rule in RULES.values() if not rule.revised} == {""}
    said = r"The rule was changed on 2026-11-2\d, (?:with the )?outcomes? known"
    assert len(re.findall(said, all_pages(judge([])))) == len(changed)
    rows = pages.scales_table(
        judge([in_reading(one, "inside") for one in READ.readings])
    ).splitlines()
    assert rows[0].split("|")[1:4] == [" scale         ", " agrees ", " disagrees "]
    assert [row.split("|")[2].strip() for row in rows[2:]] == ["0", "1", "0"]


def test_what_runs_took_is_counted_by_notebook_profile_and_machine():
    def run(seconds, date, gpu=None, notebook="panoramia_dp"):
        by = {
            "seconds": seconds,
            "date": f"{date} 10:00:00 UTC",
            "cpu": "A",
            "gpu": gpu,
            "cores": 2,
        }
        return RunResult(notebook=notebook, profile="default", provenance=by)

    runs = [run(1800, "2026-11-24"), run(3600, "2026-11-22"), run(60, "2026-11-23", gpu="B")]
    runs.append(run(60, "2026-11-23", notebook="nid_census"))
    shown = pages.executions_markdown("panoramia", runs)
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in shown.splitlines()
        if "`" in line
    ]
    assert rows == [
        ["`panoramia_dp`", "default", "A, 2 cores", "2", "2026-11-22", "2026-11-24", "1.50"],
        ["`panoramia_dp`", "default", "B, 2 cores", "1", "2026-11-23", "2026-11-23", "0.02"],
    ]
    assert shown.endswith("3 runs, 1.5 hours in all.\n")
    assert pages.executions_markdown("output_sets", runs).endswith("0 runs, 0.0 hours in all.\n")


RULE = rules()[
    "panoramia-table-01"
]  # two claims over models, at least 2 and 0.5 points; two conditions
GOOD = {"gap grows": Estimate(9.0), "overfitted": Estimate(99.5), "clean labels": Estimate(0.0)}


def times(**values) -> float:
    given = Evidence(RULE.target, "model", GOOD | values)
    return decide(
        replace(RULE, repetitions=2), {RULE.notebooks[0]: given}, "paper's data", seeds=9
    ).times_needed


def of_mean(mean: float, size: int) -> list[float]:
    """Values of this mean and the standard deviation 1."""
    values = np.arange(size) - (size - 1) / 2
    return list(mean + values / values.std(ddof=1))


@pytest.mark.parametrize("mean", [0.9, 0.1], ids=["claimed", "contradicted"])
def test_the_stated_repetitions_decide_and_one_fewer_does_not(mean):
    size = round(5 * times(**{"test falls": of_mean(mean, 5)}))
    for count, decided in ((size, True), (size - 1, False)):
        low, high = t.interval(1 - RULE.error / 2, count - 1, mean, 1 / math.sqrt(count))
        assert (low >= 0.5 or high < 0.5) == decided
        given = Evidence(RULE.target, "model", GOOD | {"test falls": of_mean(mean, count)})
        word = decide(RULE, {RULE.notebooks[0]: given}, "paper's data", seeds=9).word
        assert word == ("undecided" if not decided else "agrees" if mean > 0.5 else "disagrees")


def test_a_look_has_its_share_of_the_error():
    assert {rule.error for rule in rules().values()} == {0.05 / 2**rule.looks for rule in JUDGED}
    assert {rule.looks for rule in JUDGED} == {1, 2, 3, 4, 5}
    wide = of_mean(0.9, 5)
    given = {RULE.notebooks[0]: Evidence(RULE.target, "model", GOOD | {"test falls": wide})}
    contrasts = decide(replace(RULE, error=0.025), given, "paper's data", seeds=9).contrasts
    low, high = t.interval(1 - 0.025 / 2, 4, 0.9, 1 / math.sqrt(5))
    (found,) = [(one.low, one.high) for one in contrasts if one.mean == pytest.approx(0.9)]
    assert found == pytest.approx((low, high))


def test_a_condition_is_waited_for_and_one_that_fails_in_the_mean_is_no_matter_of_repetitions():
    wide = {"test falls": of_mean(0.9, 5)}
    assert times(**wide, overfitted=of_mean(99.1, 5)) > times(**wide)
    assert times(**wide, overfitted=of_mean(98.9, 5)) == math.inf
    assert times(**{"test falls": of_mean(0.5 + 1e-9, 5)}) == math.inf
    assert math.isnan(times(**{"test falls": Estimate(0.9, 1.0)}))
    assert math.isnan(times(**{"test falls": [], "gap grows": []}))
    assert math.isnan(times(**{"test falls": {}, "gap grows": {}}))


def test_where_more_than_repetitions_is_lacking_no_number_of_them_is_named():
    wide, rule = GOOD | {"test falls": of_mean(0.9, 5)}, replace(RULE, repetitions=2)
    given = {RULE.notebooks[0]: Evidence(RULE.target, "model", wide)}
    assert decide(rule, given, "substitute", seeds=9).times_needed > 1
    assert math.isnan(
        decide(replace(rule, own_data=True), given, "substitute", seeds=9).times_needed
    )
    assert math.isnan(
        decide(replace(rule, repetitions=8), given, "paper's data", seeds=9).times_needed
    )
    unmet = {**wide, "overfitted": of_mean(99.1, 5)}
    given = {RULE.notebooks[0]: Evidence(RULE.target, "model", unmet)}
    assert decide(rule, given, "paper's data", seeds=9).times_needed > 1
    assert math.isnan(
        decide(replace(rule, repetitions=8), given, "paper's data", seeds=9).times_needed
    )


def test_the_table_names_the_cost_by_the_runs_that_were_made():
    values = GOOD | {"test falls": of_mean(1.5, 6)}
    line = {
        **Evidence(RULE.target, "model", values).to_dict(),
        "level": "paper's data",
        "facts": "made up",
    }
    run = {
        "notebook": RULE.notebooks[0],
        "parameters": {"seed": 1},
        "provenance": {"seconds": 7200.0},
    }
    first = status_table(judge([run | {"records": [line]}])).iloc[0]
    assert first["outcome"] == "undecided"
    factor = float(first["to_decide"].split()[1])
    before, after = first["to_decide"].split(": ")[1].split(" hours in place of ")
    assert (float(before), after) == (pytest.approx(2 * factor, abs=0.15), "2.0")
    away = {**line, "measured_here": False}
    assert "hours" not in status_table(judge([run | {"records": [away]}])).iloc[0]["to_decide"]
    for facts in ("made up, measured elsewhere", "in other words"):
        reworded = {**line, "facts": facts}
        row = status_table(judge([run | {"records": [reworded]}])).iloc[0]
        assert row["to_decide"] == first["to_decide"]
    unmet = Evidence(RULE.target, "model", {**values, "overfitted": of_mean(98.9, 6)}).to_dict()
    told = status_table(judge([run | {"records": [line | unmet]}])).iloc[0]["to_decide"]
    assert told == "other settings, not 10,000 repetitions; these took 2.0 hours"


def judged_readings(first: str, second: str) -> Outcome:
    """What evidence in two readings of a paper says together."""
    runs = [in_reading(READ.readings[0], first), in_reading(READ.readings[1], second)]
    (entry,) = [entry for entry in pages.best_of(judge(runs)) if entry.rule == READ]
    return entry.outcome


def outcomes_by_cause() -> dict[Cause, Outcome]:
    """Outcomes whose first reason has each of the causes."""
    level = SCALE.level
    several = RULES["panoramia-figure-10"]
    one_notebook = dict(list(evidence(several).items())[:1])
    own_data = RULES["panoramia-figure-12"]
    few_games = {"panoramia_images": table_two(size=4)}
    unmet = table_one(gap=of_mean(9, 5), falls=of_mean(0.9, 5), overfitted=of_mean(99.1, 5))
    far = {"smaller leaks less": Estimate(50, 3.0), "sizes apart": Estimate(4)}
    across = evidence(TWO, "across", TWO.terms[0].name)
    outside = evidence(CARRIES, "outside", CARRIES.terms[0].name)
    on_games = table_one("game", gap=games(5.0), falls=games(3.0))
    return {
        Cause.MADE_UP_DATA: decide(TWO, evidence(TWO), "made-up data", seeds=2),
        Cause.OTHER_DATA: decide(own_data, evidence(own_data), "substitute"),
        Cause.ABSENT_RUN: decide(several, one_notebook, level),
        Cause.NOT_MEASURED: decide_alone(table_one(falls=[]), level),
        Cause.FEW_SEEDS: decide(TWO, {"panoramia_images": table_two()}, level),
        Cause.UNMET_CONDITION: decide_alone(unmet, level),
        Cause.FEW_REPETITIONS: decide(TWO, few_games, level, seeds=2),
        Cause.WIDE_INTERVALS: decide_alone(Evidence("nid-table-05", "model", far), level),
        Cause.ACROSS_THE_END: decide(TWO, across, level, seeds=2),
        Cause.REPLACED_PART: decide(CARRIES, outside, "substitute", seeds=3),
        Cause.CLAIMS_FAIL: decide(TWO, evidence(TWO, "outside", TWO.terms[0].name), level, seeds=2),
        Cause.THESE_MODELS: decide_alone(on_games, level),
        Cause.EACH_READING: judged_readings("inside", "inside"),
        Cause.FAILS_IN_EACH_READING: judged_readings("outside", "outside"),
        Cause.READINGS_DIFFER: judged_readings("inside", "outside"),
    }


def decisions() -> list[object]:
    """All that is decided by the reasons of outcomes: what lacks more than repetitions, which
    evidence is better, and what a page leaves out.
    """
    outcomes = outcomes_by_cause()
    made: list[object] = []
    for cause, outcome in outcomes.items():
        entry = JudgedTarget(TWO, outcome)
        whole = str(outcome.first_reason) == pages._whole_reason(entry)
        shortened = pages._first_of_reason(entry).endswith("; and more")
        causes = [reason.cause for reason in outcome.reasons]
        made.append((outcome.word, causes, math.isnan(outcome.times_needed), entry.rank))
        made.append((cause, whole, shortened))
    return made


OTHER_SENTENCES = {
    "made up": lambda cause: f"{cause.name} said otherwise",
    "of the next cause": lambda cause: WORDINGS[
        list(Cause)[(list(Cause).index(cause) + 1) % len(Cause)]
    ].sentence.replace("{}", "so much"),
}


@pytest.mark.parametrize("kind", OTHER_SENTENCES)
def test_what_is_decided_stays_where_every_sentence_is_reworded(monkeypatch, kind):
    before = decisions()
    sentences = {cause: outcome.reason for cause, outcome in outcomes_by_cause().items()}
    others = {cause: OTHER_SENTENCES[kind](cause) for cause in Cause}
    for cause, sentence in others.items():
        slot = " {}" if "{}" in WORDINGS[cause].sentence else ""
        wording = replace(WORDINGS[cause], sentence=sentence + slot)
        monkeypatch.setitem(WORDINGS, cause, wording)
    reworded = {cause: outcome.reason for cause, outcome in outcomes_by_cause().items()}
    assert all(reworded[cause] != sentences[cause] for cause in Cause)
    assert decisions() == before


def test_every_cause_has_its_outcome_and_its_sentence():
    outcomes = outcomes_by_cause()
    assert set(outcomes) == set(WORDINGS) == set(Cause)
    for cause, outcome in outcomes.items():
        assert outcome.is_because_of(cause)
        assert outcome.reason.startswith(str(outcome.first_reason))
    only_repetitions = [
        cause for cause, outcome in outcomes.items() if not math.isnan(outcome.times_needed)
    ]
    assert only_repetitions == [Cause.UNMET_CONDITION]
    (lacking,) = [
        cause for cause, outcome in outcomes.items() if JudgedTarget(TWO, outcome).rank[2]
    ]
    assert lacking is Cause.NOT_MEASURED


def test_a_reason_is_shown_whole_without_its_details_or_item_by_item():
    across = Reason(Cause.ACROSS_THE_END, ("a 1", "b 2"))
    assert str(across) == "too wide an interval: a 1; b 2"
    assert across.without_details == "too wide an interval"
    assert across.items == ["too wide an interval: a 1", "b 2"]
    each = Reason(Cause.EACH_READING, ("exact: on these models",))
    assert each.items == ["in each reading", "exact: on these models"]
    assert str(Reason(Cause.EACH_READING)) == "in each reading"
    assert Reason(Cause.ABSENT_RUN, ("a", "b")).items == ["no run of a, b"]
    assert str(Reason(Cause.FEW_SEEDS, ("1 seed", "2"))) == "1 seed, 2 needed"
