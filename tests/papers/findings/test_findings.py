"""What the papers do not say: each sentence says what its numbers say."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from scipy.special import ndtr

from paperlib.papers.findings.audits import corrections, learned_orders
from paperlib.papers.findings.finding import Finding, findings_table
from paperlib.papers.findings.identifiers import folded, tight_ranks, training_subsets
from paperlib.papers.findings.panoramia import PLAIN, nulls, replacement
from paperlib.papers.findings.tails import tails
from paperlib.papers.measured import measured_table
from paperlib.report.style import points_on_a_phone
from paperlib.validity.studies import ValidityConfig, false_positives


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def readable(finding: Finding) -> Finding:
    assert points_on_a_phone(finding.figure) >= 8
    assert len(finding.alt) > 30
    return finding


def games(text_null: float) -> pd.DataFrame:
    rows = [
        (data, PLAIN, np.nan, "t" if not null else "n", null, world, 1.0, value + 0.01 * world)
        for data, null, value in (
            ("text", False, 1.0),
            ("text", True, text_null),
            ("tables", False, 0.4),
            ("tables", True, 0.0),
        )
        for world in range(4)
    ]
    names = ["data", "helpers", "ratio", "target", "null", "world", "c_lb", "difference"]
    return pd.DataFrame(rows, columns=names)


def test_a_null_above_the_margin_is_named_and_another_is_not():
    loud = readable(nulls(games(0.5), "made up"))
    assert "But on text it is 0.5" in loud.sentence
    assert "on tables" not in loud.sentence
    assert "every interval reaches into the margin" in nulls(games(0.02), "made up").sentence


def test_the_kept_runs_have_a_null_that_fails():
    kept = [
        measured_table(f"book/measured/panoramia_null_{kind}.csv") for kind in ("tables", "images", "text")
    ]
    found = nulls(pd.concat([rows for rows, _ in filter(None, kept)]), "kept")
    assert "on text" in found.sentence


def test_epsilon_for_replacing_is_that_of_twice_the_influence():
    noises, delta = np.array([0.5, 1.0, 4.0]), 1e-5
    table = readable(replacement(noises, delta=delta)).data
    for name, mu in (("add or remove", 1 / noises), ("replace", 2 / noises)):
        epsilon = table[name].to_numpy()
        spent = ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
        assert spent == pytest.approx(delta, rel=1e-6)


def test_an_uncorrected_search_is_wrong_too_often_and_the_control_is_not():
    every = false_positives(ValidityConfig(trials=300, seed=1))
    found = readable(corrections(every, examples=480, confidence=0.95, interval=0.999))
    table = found.data.set_index("bound")
    control = table.loc["control: number of guesses fixed in advance"]
    assert control["low"] <= 0.05
    assert table.loc["best threshold, uncorrected", "low"] > 0.05


def test_the_orders_are_ahead_and_never_behind_in_the_kept_run():
    kept = measured_table("book/measured/output_set_dpsgd.csv")
    assert kept is not None
    found = readable(learned_orders(*kept))
    assert found.sentence.count("behind in 0") == 2
    assert "ahead in 0" not in found.sentence


def test_normals_fitted_to_laplace_losses_are_above_the_truth_in_the_tail():
    table = readable(tails((0.5, 1.0), size=2_000, repeats=3, seed=1)).data
    assert (table["parametric"] > 2 * table["true"]).all()
    assert table["true"].tolist() == pytest.approx([0.5, 1.0], abs=1e-3)


def test_printed_aucs_within_noise_are_counted_by_its_quantile():
    found, table = readable(folded(4_000)), training_subsets(4_000)
    within = int((table["printed"] <= table["noise, 95 %"]).sum())
    assert f"{within} lie within" in found.sentence
    assert 0 < within < len(table)
    few, many = table.nsmallest(1, "identifiers"), table.nlargest(1, "identifiers")
    assert few["noise, mean"].item() > many["noise, mean"].item() > 50


def test_the_tight_bound_comes_near_epsilon_and_the_papers_stops():
    table = readable(tight_ranks(5.0, 64, 8, confidence=0.99)).data
    last = table[table["sets"] == table["sets"].max()].set_index("bound")["mean"]
    assert 4.8 < last["tight"] <= 5
    assert last["paper"] < 2.2
    assert (table["error_rate"] <= 0.01 + 1e-12).all()


def test_the_table_has_a_row_for_each_finding():
    found = [replacement(np.array([1.0]), delta=1e-5), tight_ranks(1.0, 8, 2, confidence=0.95)]
    table = findings_table(found)
    assert table["slug"].tolist() == ["replacement", "ranks"]
    assert table.columns.tolist() == ["slug", "paper", "title", "sentence", "caption", "alt"]
