"""Every rule is fed the paper's own printed numbers at the paper's own n: it can agree with them,
and disagrees where one of them is moved.

Numbers that the paper does not print (a null, the counts of tokens, figures without numbers) are as
small as the claim allows. Printed means have no error: the papers print none for the paired
differences that the rules compare. Where the number of identifiers is printed, it gives the error.
"""

import math
from collections.abc import Callable

import pandas as pd
import pytest

from paperlib.reproduction.exhibits import paper_table
from paperlib.reproduction.papers.verdict import Estimate, Evidence
from paperlib.reproduction.papers.verdict.evidence import TargetRule, Term, rules
from paperlib.reproduction.papers.verdict.outcome import Outcome, decide, pool
from paperlib.reproduction.papers.verdict.samples import Sample, Samples

RULES = rules()
JUDGED = [rule for rule in RULES.values() if any(term.claimed for term in rule.terms)]
Printed = dict[str, Samples]


def least(rule: TargetRule, term: Term) -> Samples:
    """As many repetitions as the rule asks for, as near to the end of the range as it allows."""
    end, inward = (term.at_least, 1) if math.isfinite(term.at_least) else (term.at_most, -1)
    if not term.bounded:
        return {"": [0.0] * rule.repetitions}
    value = end if term.at_least == term.at_most else end + inward * 1e-6 * max(1.0, abs(end))
    return {"": [value] * max(rule.repetitions, 2)}


def eps_tilde(table: str, **where: object) -> pd.Series:
    """Printed eps~ by the target's DP epsilon, or of the rows that are asked for."""
    rows = paper_table(table).query("audit == 'panoramia'")
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows.set_index("target_dp_eps")["eps_tilde"]


def panoramia_table_01() -> Printed:
    falls = paper_table("panoramia_table01").query("ml_model == 'ResNet101'")["test_accuracy_pct"]
    fall = falls.iloc[0] - falls.iloc[-1]
    return {"test falls": {"": [fall] * 3}, "gap grows": {"": [fall] * 3}}


def helpers(data: str) -> dict[str, float]:
    rows = paper_table("panoramia_table02").query("dataset == @data")
    c_lb = rows.set_index("helper_training_data")["c_lb"]
    return {
        "generated over none": c_lb["gen"] - c_lb["no_helper"],
        "real over none": c_lb["real"] - c_lb["no_helper"],
        "generated over real": c_lb["gen"] - c_lb["real"],
    }


def panoramia_table_02() -> Printed:
    by_data = {data: helpers(data) for data in ("CIFAR10", "CelebA")}
    return {
        name: {data: [values[name]] * 5 for data, values in by_data.items()}
        for name in by_data["CIFAR10"]
    }


def panoramia_table_05() -> Printed:
    by_data = {data: helpers(data) for data in ("CIFAR10", "WikiText")}
    return {
        name: {data: [values[name]] * 5 for data, values in by_data.items()}
        for name in by_data["CIFAR10"]
    }


def panoramia_table_03() -> Printed:
    table = paper_table("panoramia_table03")
    plain = table[table["target_dp_eps"].isna()]
    grows: dict[str, Sample] = {}
    below: dict[str, Sample] = {}
    under: dict[str, Sample] = {}
    for model, rows in plain.groupby("base_model"):
        by_audit = {audit: of.set_index("epochs") for audit, of in rows.groupby("audit")}
        stars = by_audit["panoramia"]["eps_tilde"]
        members = by_audit["panoramia_rm_rn"]["eps"]
        one_run = by_audit["o1_rm_rn"]["eps"]
        for step in stars.diff().dropna().items():
            grows[f"{model}, {step[0]} epochs"] = [step[1]] * 3
        if model == "ViT-small" or str(model).startswith("WideResNet"):
            assert (members - stars).min() > -0.1
        for epochs in stars.index:
            below[f"{model}, {epochs} epochs"] = [members[epochs] - stars[epochs]] * 3
            under[f"{model}, {epochs} epochs"] = [one_run[epochs] - members[epochs]] * 3
    return {"eps~ grows": grows, "eps~ below RM;RN": below, "RM;RN below O(1)": under}


def panoramia_table_06() -> Printed:
    rows = paper_table("panoramia_table06")
    stars = rows[rows["audit"] == "panoramia"].set_index("epochs")["eps_tilde"]
    one_run = rows[rows["audit"] == "o1_rm_rn"].set_index("epochs")["eps"]
    return {
        "eps~ near 0": {f"MLP, {epochs} epochs": [star] * 3 for epochs, star in stars.items()},
        "O(1) positive": {f"MLP, {epochs} epochs": [eps] * 3 for epochs, eps in one_run.items()},
    }


def over_epsilon(table: str) -> Printed:
    stars = eps_tilde(table)
    finite = stars[[float(epsilon) for epsilon in stars.index if math.isfinite(epsilon)]]
    largest = finite[finite.index.max()]
    small = finite[finite.index <= 2]
    return {
        "0 at small epsilon": {f"DP {epsilon:g}": [star] * 3 for epsilon, star in small.items()},
        "grows with epsilon": {"": [largest - small[small.index.max()]] * 3},
        "most without DP": {"": [stars[math.inf] - largest] * 3},
    }


def panoramia_table_09() -> Printed:
    stars = eps_tilde("panoramia_table09")
    private = stars[[epsilon for epsilon in stars.index if math.isfinite(epsilon)]]
    return {
        "0 with DP": {f"DP {epsilon:g}": [star] * 3 for epsilon, star in private.items()},
        "leak without DP": {"": [stars[math.inf]] * 3},
    }


def panoramia_table_10() -> Printed:
    rows = paper_table("panoramia_table10").query("audit == 'panoramia' and target_dp_eps == 20")
    by_gap = rows.sort_values("train_minus_test_acc_pct")
    narrow, wide = by_gap.to_dict("records")
    gap = round(wide["train_minus_test_acc_pct"] - narrow["train_minus_test_acc_pct"], 2)
    return {
        "wider gap leaks more": {"": [wide["eps_tilde"] - narrow["eps_tilde"]] * 3},
        "gaps apart": {"": [gap] * 3},
        "something leaks": {"": [wide["eps_tilde"]] * 3},
    }


def panoramia_figure_05() -> Printed:
    rows = paper_table("panoramia_table07").query("audit == 'panoramia'")
    bounds = rows.set_index("target_dp_eps")["c_plus_eps_lb"]
    finite = bounds[[epsilon for epsilon in bounds.index if math.isfinite(epsilon)]]
    largest = finite[finite.index.max()]
    return {
        "c+eps grows with epsilon": {"": [largest - finite[finite.index.min()]] * 3},
        "most without DP": {"": [bounds[math.inf] - largest] * 3},
    }


def panoramia_figure_06() -> Printed:
    text = paper_table("panoramia_text").query("target_model == 'ResNet101_E100'")
    values = text.set_index("quantity")["value"].astype(float)
    passes = values["eps_tilde_max_over_m"] - values["eps_max_over_m"]
    return {"passes O(1)": {"": [passes] * 5}}


def epsilon_star_figure_01() -> Printed:
    text = paper_table("epsilon_star_text").query("dataset == 'purchase100'")
    stars = text[(text["training"] == "baseline") & (text["quantity"] == "epsilon_star")]
    mean = stars.set_index("epochs")["value"].astype(float)
    accuracy = text[text["quantity"] == "test_accuracy_pct_max"]["value"].astype(float).iloc[0]
    return {
        "50 over 10 epochs": {"": [mean[50] - mean[10]] * 5},
        "100 over 50 epochs": {"": [mean[100] - mean[50]] * 5},
        "something learned": {"": [accuracy] * 5},
    }


def identifiers(table: int, *, subset: str = "pile") -> dict[str, tuple[float, int]]:
    """Printed percentages of the loss by side, each with its number of identifiers."""
    rows = paper_table(f"nid_table{table:02d}").query("mia == 'loss' and subset != 'average'")
    counts = paper_table("nid_table02")
    values: dict[str, tuple[float, int]] = {}
    for split in ("train", "test"):
        corpus = counts.query("corpus == @subset and split == @split and is_aggregate == 0")
        chosen = rows[rows["split"] == split]
        if subset == "pile":
            chosen = chosen[chosen["subset"] == "pile"]
        if len(chosen) and len(corpus):
            values[split] = float(chosen["value_pct"].mean()), int(corpus["total"].sum())
    return values


def auc(printed: tuple[float, int]) -> Estimate:
    """A printed AUC with the error of its identifiers: a rank among alternatives has the variance
    1/12.
    """
    value, count = printed
    return Estimate(value, 100 * math.sqrt(1 / 12 / count))


def less(one: Estimate, other: Estimate) -> Estimate:
    return Estimate(one.value - other.value, math.hypot(one.error, other.error))


def trained_above(table: int) -> Printed:
    by_split = identifiers(table)
    trained, held_out = auc(by_split["train"]), auc(by_split["test"])
    half = Estimate(50.0)
    smaller_side = min(count for _, count in by_split.values())
    return {
        "trained above": {"": less(trained, held_out)},
        "held out near 50": {"": less(held_out, half)},
        "token counts near 50": {"held out": less(Estimate(50, held_out.error), half)},
        "enough identifiers": {"": Estimate(smaller_side)},
    }


def nid_table_03() -> Printed:
    return {
        "trained near 50": {"": less(auc(identifiers(3, subset="dolma")["train"]), Estimate(50))}
    }


def nid_table_05() -> Printed:
    large, small = (auc(identifiers(table)["train"]) for table in (1, 5))
    return {"smaller leaks less": {"": less(large, small)}}


def rate(printed: tuple[float, int]) -> Estimate:
    """A printed rate with the error of its identifiers, of one hit where there is none."""
    percent, count = printed
    share = max(percent / 100, 1 / count)
    return Estimate(percent, 100 * math.sqrt(share * (1 - share) / count))


def rates(table: int) -> Printed:
    by_split = identifiers(table)
    return {
        "trained near 1 %": {"": rate(by_split["train"])},
        "held out near 1 %": {"": rate(by_split["test"])},
    }


def nid_table_09() -> Printed:
    return {"trained near 1 %": {"": rate(identifiers(9, subset="dolma")["train"])}}


def nid_table_10() -> Printed:
    rows = paper_table("nid_table10").query("split == 'train'")
    return {
        "trained rejected": {"": Estimate(float(rows["p_value"].max()))},
        "null rejected at its rate": {"": Estimate(5.0)},
        "enough null sets": {"": Estimate(1000)},
    }


PRINTED: dict[str, Callable[[], Printed]] = {
    "panoramia-table-01": panoramia_table_01,
    "panoramia-table-02": panoramia_table_02,
    "panoramia-table-03": panoramia_table_03,
    "panoramia-table-05": panoramia_table_05,
    "panoramia-table-06": panoramia_table_06,
    "panoramia-table-07": lambda: over_epsilon("panoramia_table07"),
    "panoramia-table-08": lambda: over_epsilon("panoramia_table08"),
    "panoramia-table-09": panoramia_table_09,
    "panoramia-table-10": panoramia_table_10,
    "panoramia-figure-05": panoramia_figure_05,
    "panoramia-figure-06": panoramia_figure_06,
    "epsilon-star-figure-01": epsilon_star_figure_01,
    "nid-table-01": lambda: trained_above(1),
    "nid-table-03": nid_table_03,
    "nid-table-04": lambda: trained_above(4),
    "nid-table-05": nid_table_05,
    "nid-table-06": lambda: rates(6),
    "nid-table-07": lambda: rates(7),
    "nid-table-08": lambda: rates(8),
    "nid-table-09": nid_table_09,
    "nid-table-10": nid_table_10,
}
"""Numbers of the rules that compare printed ones."""


NOT_PRINTED = {
    ("panoramia-table-01", "gap grows"),
    ("nid-table-10", "null rejected at its rate"),
}
"""Claims above whose numbers are as small as the claim allows, or nominal."""


def printed_marks() -> list[dict[str, str]]:
    """Printed numbers of claims in the measure of their rule, as the small figures draw them."""
    marks: list[dict[str, str]] = []
    for target, printed in PRINTED.items():
        claimed = {term.name for term in RULES[target].terms if term.claimed}
        for name, samples in printed().items():
            if name not in claimed or (target, name) in NOT_PRINTED:
                continue
            for label, sample in samples.items():
                value = sample.value if isinstance(sample, Estimate) else sample[0]
                mark = {"target": target, "name": name, "label": label, "value": f"{value:.4g}"}
                marks.append(mark)
    return marks


def values_of(rule: TargetRule) -> Printed:
    """Samples of every term: printed numbers where there are any."""
    printed = PRINTED.get(rule.target, dict)()
    assert set(printed) <= {term.name for term in rule.terms}
    return {term.name: printed.get(term.name) or least(rule, term) for term in rule.terms}


def moved(term: Term, samples: Samples) -> Samples:
    """The samples on the other side of the nearer end of the range, as far beyond it as they were
    within it and ten errors more.
    """
    beyond: dict[str, Sample] = {}
    for label, sample in samples.items():
        estimate = sample if isinstance(sample, Estimate) else Estimate(sample[0])
        below, above = estimate.value - term.at_least, term.at_most - estimate.value
        step = min(below, above) * 2 + 10 * estimate.error + 1e-3 * max(1.0, abs(estimate.value))
        value = estimate.value - step if below <= above else estimate.value + step
        beyond[label] = (
            Estimate(value, estimate.error)
            if isinstance(sample, Estimate)
            else [value] * len(sample)
        )
    return beyond


def judged(rule: TargetRule, values: Printed) -> Outcome:
    evidence = Evidence(rule.target, rule.unit, values)
    by_notebook = {notebook: evidence for notebook in rule.notebooks}
    # A public model is one run; of the others as many seeds as the rule asks for.
    seeds = 1 if rule.unit == "identifiers" else rule.runs
    return decide(rule, by_notebook, "paper's scale", seeds=seeds)


@pytest.mark.parametrize("rule", JUDGED, ids=lambda rule: rule.target)
def test_a_rule_can_agree_with_the_printed_numbers_and_disagrees_where_they_are_moved(rule):
    values = values_of(rule)
    outcome = judged(rule, values)
    assert outcome.word == "agrees", [outcome.reason, *map(str, outcome.contrasts)]
    for term in rule.terms:
        if term.claimed:
            other = {**values, term.name: moved(term, values[term.name])}
            assert judged(rule, other).word == "disagrees", term.name


def test_the_marks_of_the_small_figures_are_the_printed_numbers():
    assert paper_table("marks", as_printed=True).to_dict("records") == printed_marks()


def test_all_50_have_a_rule_and_one_claims_nothing_that_could_be_false():
    assert len(RULES) == 50
    assert len(JUDGED) == 49
    assert set(PRINTED) <= set(RULES)


def test_on_text_the_papers_own_numbers_contradict_that_panoramia_passes_o1():
    """So that Figure 6 is judged on images alone, although it has a panel of GPT-2."""
    text = paper_table("panoramia_text").query("target_model == 'GPT2_E150'")
    most = float(text[text["quantity"] == "eps_tilde_max_over_m"]["value"].iloc[0])
    one_run = text[(text["audit"] == "o1_rm_rn") & (text["section"] == "5.3; Fig 6(d)")]
    assert most - float(one_run["value"].iloc[0]) < -3
    assert "panoramia_text" not in RULES["panoramia-figure-06"].notebooks


def test_three_draws_of_alternatives_for_the_same_identifiers_are_no_strata():
    rule = RULES["nid-table-01"]
    values = values_of(rule) | {"trained above": {"": Estimate(4.5, 0.9)}}
    one = Evidence(rule.target, "identifiers", values)
    for level, error in (("paper's scale", 0.9), ("substitute", 0.9 / math.sqrt(3))):
        pooled = pool([one, one, one], level).samples()["trained above", ""]
        assert pooled == Estimate(4.5, pytest.approx(error))
