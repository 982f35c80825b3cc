"""Evidence on the figures of Epsilon*: values, pairing and labels on made-up results."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paperlib.reproduction.papers.epsilon_star import evidence as ev
from paperlib.reproduction.papers.epsilon_star.landscape_tables import STRATEGY
from paperlib.reproduction.papers.epsilon_star.simulated_losses import RatioErrors
from paperlib.reproduction.papers.measured import measured_table


def landscape(stars, dp):
    """Baselines of each number of epochs, and DP strategies, one model per seed; clipped values are
    half.
    """
    rows = [
        {"kind": "baseline", "epochs": epochs, "seed": seed, "epsilon_star": star, "accuracy": 0.9}
        for epochs, values in stars.items()
        for seed, star in enumerate(values)
    ]
    rows += [
        {
            "kind": "dp",
            "epochs": 30,
            "seed": seed,
            "epsilon_star": star,
            "accuracy": 0.5 + star / 10,
        }
        | {"target_epsilon": 1.0 + at, "clip_norm": 1.0}
        for at, values in enumerate(dp)
        for seed, star in enumerate(values)
    ]
    blank = pd.DataFrame(columns=[*STRATEGY])
    table = pd.DataFrame(rows).assign(dataset="d", batch_size=64).combine_first(blank)
    return table.assign(epsilon_star_clipped=table["epsilon_star"] / 2)


ONE, TWO = "DP 1, clip 1, batch 64, each record", "DP 2, clip 1, batch 64, each record"


def test_purchase_is_paired_by_seed_in_both_readings_and_a_diverged_model_takes_its_pair():
    frame = landscape({50: [3.0, 5.0], 10: [2.0, 2.5], 100: [3.5, 4.0]}, [[0.2, 0.9], [0.6, 0.1]])
    exact, clipped = ev.purchase_evidence(frame.sample(frac=1, random_state=0), records=20_000)
    assert (exact.reading, clipped.reading) == exact.rule.readings
    assert exact.values["50 over 10 epochs"] == [1.0, 2.5]
    assert clipped.values["50 over 10 epochs"] == [0.5, 1.25]
    assert exact.values["100 over 50 epochs"] == [0.5, -1.0]
    strategies = {name: sorted(values) for name, values in exact.values["DP below 1"].items()}
    assert strategies == {ONE: [0.2, 0.9], TWO: [0.1, 0.6]}
    assert exact.values["something learned"] == pytest.approx([56, 59])
    assert exact.values["enough records"].value == 20_000
    assert (
        ev.purchase_evidence(landscape({10: [1.0]}, []), records=5)[0].values["50 over 10 epochs"]
        == []
    )
    frame = landscape({50: [3.0, np.nan], 10: [2.0, 2.5], 100: [3.5, 4.0]}, [[0.2, np.nan]])
    exact = ev.purchase_evidence(frame, records=5)[0].values
    assert exact["50 over 10 epochs"] == [1.0]
    assert exact["DP below 1"] == {ONE: [0.2]}


def test_adult_is_judged_by_strategy_and_by_clipped_losses_alone():
    frame = landscape({5: [0.4, 0.5], 20: [0.56, 0.7]}, [[0.2, 0.6], [0.3, 0.1]])
    network = "128 tanh units"
    found = ev.adult_evidence(frame.assign(epsilon_star=9.0), network=network)
    assert found.reading == network
    assert found.values["all below 0.3"][ONE] == pytest.approx([0.1, 0.3])
    assert len(found.values["all below 0.3"]) == 4
    below = found.values["DP not above baselines"]
    assert list(below) == [ONE, TWO]
    np.testing.assert_allclose(list(below.values()), [[0.1, -0.05], [0.05, 0.2]])
    assert found.values["rises with epochs"] == pytest.approx([0.08, 0.1])
    room = found.values["below the training epsilon"]
    stars = found.values["all below 0.3"]
    for name in (ONE, TWO):
        epsilon = float(name.removeprefix("DP ").split(",")[0])
        assert room[name] == pytest.approx([epsilon - value for value in stars[name]])
    with pytest.raises(ValueError, match=r"reading: expected one of .*128 tanh units"):
        ev.adult_evidence(frame, network="another")


def test_noise_of_one_draw_is_compared_with_three_times_the_middle():
    draws = np.array([[9, 3, 4, 9, 1], [9, 1, np.nan, 9, 2.0]])
    errors = RatioErrors(np.array([1e-6, 1e-3, 1e-2, 0.05, 0.5]), draws)
    noise = ev.curves_evidence({"tpr_ratio": errors, "tnr_ratio": errors}).values[
        "noise at the ends"
    ]
    assert list(noise) == ["(TPR - delta) / FPR", "(TNR - delta) / FNR"]
    assert noise["(TPR - delta) / FPR"] == pytest.approx([np.sqrt(12.5) - 3, 1 - 6])


def test_gamma_samples_are_paired_by_repeat_size_and_truth():
    empirical, parametric = (
        [0.5, 0.7, 0.2, 0.1, 1.0, 1.2, 1.1, 1.1],
        [0.4, 0.8, 0.1, 0.1, 2.5, 1.9, 2.0, 2.0],
    )
    places = pd.MultiIndex.from_product(
        [(0, 1), (100, 1000), (0, 1)], names=["d", "size", "repeat"]
    )
    values = pd.DataFrame({"empirical": empirical, "parametric": parametric}, index=places)
    runs = values.melt(
        var_name="method", value_name="epsilon_star", ignore_index=False
    ).reset_index()
    summary = runs.drop_duplicates(["d", "size", "method"])[["d", "size", "method"]]
    evidence = ev.gamma_evidence(runs, summary.assign(true=3.0, true_delta_range=2.0))
    fourth, fifth = (one.values for one in evidence)
    assert fourth["parametric nearer 0"]["n = 100"] == pytest.approx([0.1, -0.1])
    assert set(fourth["shrinks"]) == {"empirical, n = 100 to 1,000", "parametric, n = 100 to 1,000"}
    assert fourth["shrinks"]["empirical, n = 100 to 1,000"] == pytest.approx([0.3, 0.6])
    assert len(fifth["empirical undershoots"]) == len(fifth["parametric nearer"]) == 4
    label = "n = 100, d = 1, rates in [delta, 1 - delta]"
    assert fifth["empirical undershoots"][label] == pytest.approx([1.0, 0.8])
    assert fifth["parametric nearer"][label] == pytest.approx([0.5, 0.7])
    assert fifth["parametric nearer"]["n = 100, d = 1, every threshold"] == pytest.approx(
        [1.5, 0.7]
    )


def test_shares_of_p_values_are_paired_by_seed_and_the_committed_ones_are_as_many_as_asked_for():
    rows = [(3, 0, 0.5), (3, 0, 0.01), (3, 1, 0.2), (1, 0, 0.01), (1, 1, 0.02)]
    rows += [(math.inf, 0, 0.9), (math.inf, 1, 0.03), (math.inf, 1, 0.3)]
    values = ev.fit_evidence(
        pd.DataFrame(rows, columns=["target_epsilon", "seed", "p_value"])
    ).values
    assert values["mostly above 0.05"] == {
        "without DP": [1.0, 0.5],
        "DP 1": [0.0, 0.0],
        "DP 3": [0.5, 1.0],
    }
    assert values["more with DP"] == {"DP 1": [-1.0, -0.5], "DP 3": [-0.5, 0.5]}
    table, _ = measured_table(
        str(Path(__file__).parents[4] / "book/measured/epsilon_star_fit_adult.csv")
    )
    evidence = ev.fit_evidence(table)
    counts = {len(sample) for sample in evidence.samples().values()}
    assert counts == {evidence.rule.repetitions}
    assert set(table["components"]) >= {1, 20}
    assert (table["test"] == "paper").all()
