"""Evidence on the tables and figures of natural identifiers: values, errors and labels on made-up
results.
"""

import math

import numpy as np
import pandas as pd
import pytest

from paperlib.generators.identifiers import PAPER_KINDS
from paperlib.reproduction.papers.natural_identifiers import evidence as ev
from paperlib.reproduction.papers.natural_identifiers import randomized_response as nid
from paperlib.reproduction.papers.natural_identifiers.natural_truth import overall
from paperlib.reproduction.papers.verdict import Estimate

Z99 = 2.5758293035489004


def scored(groups):
    """Models with an AUC each, above 0.5 where trained; token counts give 0.505; large less small
    0.25.

    Intervals of 99 % have a standard error of one point (AUC) or of half a point (TPR).
    """
    trained = {"large": 0.8, "medium": 0.7, "small": 0.55, "one pass": 0.52}
    rows = []
    for group, identifiers in groups.items():
        member = group != "held out"
        tpr = 0.03 if member else 0.01
        for model, own in trained.items():
            auc, size = own if member else 0.51, len(model)
            rows += [(model, group, "loss", auc, tpr, identifiers, size)]
            rows += [(model, group, "min_k", auc + 0.1, tpr, identifiers, size)]
            rows += [(model, group, "tokens", 0.505, 0.01, identifiers, size)]
        rows += [("large less small", group, "loss", 0.25, math.nan, 1, math.nan)] * member
    names = ["model", "group", "attack", "auc", "tpr", "identifiers", "parameters"]
    table = pd.DataFrame(rows, columns=names)
    for metric, error in (("auc", 0.01), ("tpr", 0.005)):
        table[f"{metric}_low"] = table[metric] - error * Z99
        table[f"{metric}_high"] = table[metric] + error * Z99
    return table


def close(estimate, value, error):
    assert estimate.value == pytest.approx(value)
    assert estimate.error == pytest.approx(error, abs=1e-12)


def test_planted_identifiers_are_judged_by_the_loss_in_points():
    table = scored({"trained": 200, "16 times": 40, "held out": 100})
    table.loc[table["model"] == "large", "parameters"] = 35
    metrics = [name for name in table if name.startswith(("auc", "tpr"))]
    evidence = ev.benchmark_evidence(table.assign(**100 * table[metrics]), natural=False)
    assert sorted(evidence) == [f"nid-table-{number:02d}" for number in (1, 3, 4, 5, 6, 7, 8, 9)]
    assert all(one.unit == "identifiers" for one in evidence.values())
    first = evidence["nid-table-01"].values
    close(first["trained above"], 29, math.sqrt(2))
    close(first["held out near 50"], 1, 1)
    assert first["natural documents"] == Estimate(0)
    assert list(first["token counts near 50"]) == ["held out", "trained"]
    close(first["token counts near 50"]["trained"], 0.5, 1)
    assert first["enough identifiers"] == Estimate(100)
    close(evidence["nid-table-04"].values["trained above"], 19, math.sqrt(2))
    close(evidence["nid-table-05"].values["smaller leaks less"], 25, 1)
    assert evidence["nid-table-05"].values["sizes apart"] == Estimate(7.0)
    close(evidence["nid-table-03"].values["trained near 50"], 2, 1)
    close(evidence["nid-table-09"].values["trained near 1 %"], 3, 0.5)
    close(evidence["nid-table-06"].values["held out near 1 %"], 1, 0.5)


def test_natural_identifiers_are_judged_in_all_and_after_one_pass_those_that_occur_once():
    groups = {
        "held out": 30,
        "trained": 25,
        "trained, occurs once": 20,
        "trained, occurs oftener": 5,
    }
    table = scored(groups)
    once = (table["model"] == "one pass") & (table["group"] == "trained, occurs once")
    table.loc[once, ["auc", "auc_low", "auc_high"]] += 0.03
    table.loc[table["model"] == "large", "parameters"] = 40
    metrics = [name for name in table if name.startswith(("auc", "tpr"))]
    whole = table.assign(**100 * table[metrics]).rename(columns={"group": "subset"})
    cells = whole.assign(part="scripts", kind="md5", auc=99.0, identifiers=3)  # decide nothing
    both = pd.concat([whole.assign(part="all", kind="all"), cells])
    evidence = ev.benchmark_evidence(overall(both), natural=True)
    assert evidence == ev.benchmark_evidence(whole, natural=True)
    values = evidence["nid-table-01"].values
    close(values["trained above"], 29, math.sqrt(2))
    assert values["natural documents"] == Estimate(1)
    assert values["enough identifiers"] == Estimate(25)
    close(evidence["nid-table-03"].values["trained near 50"], 5, 1)
    assert evidence["nid-table-05"].values["sizes apart"] == Estimate(8.0)


def counts(per_document=1, **subsets):
    """Places of so many different identifiers of each kind, ``per_document`` of a kind in one
    document.
    """
    rows = [
        (name, kind, f"{kind}{at}", f"{kind}{at // per_document}", True, True)
        for name, some in subsets.items()
        for kind, count in zip(PAPER_KINDS, some, strict=True)
        for at in range(count)
    ]
    return pd.DataFrame(rows, columns=["subset", "kind", "value", "document", "erc55", "kept"])


def test_census_compares_the_same_subsets_alone():
    alike = counts(github=(80, 36, 52, 13, 12, 4))
    github = ev.census_evidence(["github", "code"], alike)
    assert github.values["kinds ranked alike"].value == pytest.approx(1)
    assert 0 < github.values["kinds ranked alike"].error < 0.5
    together = ev.census_evidence(
        ["github"], counts(per_document=20, github=(80, 36, 52, 13, 12, 4))
    )
    assert (
        together.values["kinds ranked alike"].error > 2 * github.values["kinds ranked alike"].error
    )
    assert github.values["subsets at hand"] == github.values["filtered"] == Estimate(1)
    turned = ev.census_evidence(["github"], counts(github=(4, 12, 13, 52, 36, 80)))
    assert turned.values["kinds ranked alike"].value < 0
    # Stack Exchange is at hand and none was found there: the paper's counts for it are compared
    # too.
    assert (
        ev.census_evidence(["github", "stackexchange"], alike).values["kinds ranked alike"].value
        < 1
    )
    for none in (None, counts(github=(0,) * 6)):
        values = ev.census_evidence(["code"], none).values
        assert values["kinds ranked alike"] == values["filtered"] == []
    one = ev.census_evidence(["europarl"], counts(europarl=(1, 0, 0, 0, 0, 0)))
    assert one.values["kinds ranked alike"] == []


def p_values():
    sets = {"held out": 0.04, "trained, 1x": 0.002, "trained, 4x": 0.001}
    kfold = pd.DataFrame(
        {"set": [*sets], "p_value_two_sided": [*sets.values()], "schedule": "kfold"}
    )
    forward = kfold.assign(schedule="forward", p_value_two_sided=10 * kfold["p_value_two_sided"])
    return pd.concat([forward, kfold]).assign(p_value=0.5)


def null_sets(count):
    values = (np.arange(count) + 0.5) / count
    kfold = pd.DataFrame({"schedule": "kfold", "p_value_two_sided": values})
    return pd.concat([kfold, kfold.assign(schedule="forward", p_value_two_sided=1e-9)])


def ends(sizes=(10, 100)):
    return pd.DataFrame(
        {"set": name, "identifiers": size, "p_value_two_sided": shown * 10.0 ** -(size / 10)}
        for name, factor in (("trained, 1x", 1), ("trained, 4x", 0.1))
        for size in sizes
        for shown in (factor, factor, 1e-9)
    )


def test_dataset_inference_is_judged_by_the_papers_test_but_not_of_few_sets_or_one_size():
    table, figure = (
        one.values for one in ev.inference_evidence(p_values(), null_sets(1_000), ends())
    )
    assert table["trained rejected"] == Estimate(0.002)
    assert table["null rejected at its rate"] == Estimate(5.0)
    assert table["enough null sets"] == Estimate(1_000)
    assert list(figure["p falls"]) == ["trained, 1x", "trained, 4x"]
    close(figure["p falls"]["trained, 4x"], 9, 0)
    assert figure["null uniform"].value > 0.99
    _, figure = ev.inference_evidence(p_values(), null_sets(999), ends((10,)))
    assert figure.values == {"p falls": {}, "null uniform": []}
    shifted = null_sets(1_000).assign(
        p_value_two_sided=lambda table: table["p_value_two_sided"] ** 2
    )
    assert ev.inference_evidence(p_values(), shifted, ends())[1].values["null uniform"].value < 0.01


def audits(key, bounds, model=0):
    rows = [
        (at, c, top, score, bound * scale if top == 1 else 7.0)
        for (at, c), bound in bounds.items()
        for score, scale in (("loss", 0.5), ("min_k", 1.0), ("difference", 5.0))
        for top in (1, 4)
    ]
    table = pd.DataFrame(rows, columns=[key, "cardinality", "top", "score", "paper"])
    return table.assign(model=model, tight=9.0)


def test_dp_audits_are_judged_by_the_papers_bound_with_one_value_for_each_model_that_has_both():
    by_target = audits(
        "target", {(math.inf, 2): 0.5, (math.inf, 64): 0.8, (5.0, 2): 0.2, (5.0, 64): 0.0}
    )
    by_number = audits(
        "canaries", {(25, 2): 0.3, (50, 2): 0.5, (50, 8): 0.7, (100, 2): 0.6, (200, 2): 0.1}
    )
    second, fifth = (one.values for one in ev.dp_evidence(by_target, by_number))
    assert second["larger sets win without noise"] == pytest.approx([0.3])
    assert second["smaller sets win at target 5"] == pytest.approx([-0.2])
    assert second["something found"] == Estimate(0.2)  # the largest at target 5
    nothing = by_target.assign(paper=by_target["paper"].where(by_target["target"] > 5, 0.0))
    assert ev.dp_evidence(nothing, by_number)[0].values["something found"] == Estimate(0.0)
    # At 100, fixed beforehand, although 50 came out best.
    assert fifth["middle best"] == {"fewest": pytest.approx([0.3]), "most": pytest.approx([0.5])}
    by_number = audits("canaries", {(25, 2): 0.3, (50, 2): 0.5})
    second, fifth = ev.dp_evidence(audits("target", {(5.0, 2): 0.5, (5.0, 32): 0.8}), by_number)
    for claim in ("larger sets win without noise", "smaller sets win at target 5"):
        assert second.values[claim] == []
    assert fifth.values["middle best"] == {"fewest": [], "most": []}
    first = audits(
        "canaries", {(25, 2): 0.3, (50, 2): 0.5, (100, 2): 0.6, (200, 2): 0.1, (400, 2): 0.0}
    )
    second = audits("canaries", {(25, 2): 0.2, (100, 2): 0.1, (400, 2): 0.4}, model=1)
    third = audits("canaries", {(25, 2): 0.2}, model=2)
    both = [
        audits("target", {(math.inf, 2): v, (math.inf, 64): 1.0}, m)
        for m, v in ((0, 0.5), (1, 0.2))
    ]
    evidence = ev.dp_evidence(pd.concat(both), pd.concat([first, second, third]))
    figure, fifth = (one.values for one in evidence)
    assert fifth["middle best"] == {
        "fewest": pytest.approx([0.3, -0.1]),
        "most": pytest.approx([0.6, -0.3]),
    }
    assert figure["larger sets win without noise"] == pytest.approx([0.5, 0.8])


def test_figure_4_compares_the_paper_s_curves_at_one_place_with_the_truth():
    curves = {"epsilons": (2.0,), "curves": ((4, 1), (4, 2)), "points": 2}
    configs = (nid.RandomizedResponseConfig(largest_sets=sets, **curves) for sets in (100_000, 20))
    bounds = (nid.bounds_by_sets(one) for one in configs)
    near, far = (ev.randomized_response_evidence(one, confidence=0.99).values for one in bounds)
    assert list(near["bound close"]) == ["epsilon 2, c = 4"]
    (close,), (not_close,) = (one["bound close"].values() for one in (near, far))
    assert 0 < close.value < 5 < not_close.value
    assert near["bound valid"].value <= 0
