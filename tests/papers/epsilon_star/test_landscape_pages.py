"""What the notebook on the landscape shows: our points beside the paper's, and the descriptions in words."""

import math

import numpy as np
import pandas as pd
import pytest

from paperlib.papers.epsilon_star.landscape_grids import landscape_config
from paperlib.papers.epsilon_star.landscape_measures import MEASURES
from paperlib.papers.epsilon_star.pages import landscape as pages


@pytest.fixture
def shown(monkeypatch):
    """What the page shows, by name: the figure or table first, then the options."""
    kept = {}

    def keep(what, *, name, **options):
        kept[name] = what, options

    for kind in ("show_figure", "show_table"):
        monkeypatch.setattr(pages, kind, keep)
    return kept


def models(dataset="purchase100_like", one_run=0.2, diverged=False):
    """Two baselines and two DP strategies with two models each."""
    rows = [
        {
            **dict.fromkeys(MEASURES, 0.5), "dataset": dataset, "kind": kind, "epochs": epochs,
            "batch_size": 64, "clip_norm": 1.0, "microbatches": None, "record_level": kind == "dp",
            "target_epsilon": target, "dp_epsilon": target, "seed": seed, "accuracy": utility,
            "auroc": utility if dataset == "adult" else math.nan, "seconds": 1.0,
            "epsilon_star": math.nan if diverged and kind == "dp" else star + seed / 100,
            "epsilon_shuffled": 0.1, "one_run": one_run,
        }
        for kind, epochs, target, star, utility in (
            ("baseline", 10, math.nan, 2.0, 0.85), ("baseline", 50, math.nan, 5.0, 0.9),
            ("dp", 20, 1.0, 0.2, 0.3), ("dp", 20, 10.0, 0.4, 0.6),
        )
        for seed in (0, 1)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def labels(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_the_papers_points_and_limit_stand_beside_ours(shown):
    pages.show_landscape(models(), figure="Figure 1", utility="test accuracy", origin="here")
    figure, options = shown["landscape-purchase100-like"]
    (axis,) = figure.axes
    lines = {str(line.get_label()): line for line in axis.get_lines()}
    assert lines["the paper, no DP"].get_xdata().tolist() == [2.48, 7.06, 7.79]
    assert lines["the paper, no DP"].get_ydata().tolist() == pytest.approx([0.86, 0.904, 0.906])
    assert list(lines["the paper: DP below 1"].get_xdata()) == [1, 1]
    assert list(lines["no DP"].get_xdata()) == pytest.approx([2.005, 5.005])
    assert "The 2 DP strategies have Epsilon* from 0.21 to 0.41" in options["alt"]
    assert [text.get_text() for text in axis.texts] == ["10", "50"]


def test_figure_2_has_a_limit_for_all_models_and_no_points():
    points, limit = pages.printed_landscape("Figure 2")
    assert points.empty
    assert limit == 0.3


def test_series_differ_by_marker_and_colour(shown):
    pages.show_landscape(models("adult"), figure="Figure 2", utility="AUROC", origin="here")
    lines = shown["landscape-adult"][0].axes[0].get_lines()
    drawn = [(line.get_marker(), line.get_color()) for line in lines if line.get_marker() in "os^Dv"]
    assert len({marker for marker, _ in drawn}) == len({color for _, color in drawn}) == 3


def test_what_moves_is_drawn_for_each_training_with_the_bound_that_there_is(shown):
    frames = {"here": models(), "before": models(one_run=math.nan), "lost": models(diverged=True)}
    pages.show_moves(frames)
    figure, options = shown["which-number-moves"]
    first, second, third = figure.axes
    rows = [tick.get_text() for tick in first.get_yticklabels()]
    assert rows == ["no DP, 10 epochs", "no DP, 50 epochs", "DP 1, each record", "DP 10, each record"]
    assert len(third.get_yticks()) == 2
    for axis, bound in ((first, 0.2), (second, 0.5)):
        drawn = {str(line.get_label()): line for line in axis.get_lines()}
        assert set(np.asarray(drawn["one run (lower bound)"].get_xdata())) == {bound}
        assert list(drawn["Epsilon*"].get_xdata()) == pytest.approx([2.005, 5.005, 0.205, 0.405])
        assert list(drawn["Epsilon*"].get_ydata()) == [3, 2, 1, 0]
    assert (
        "here: the largest mean Epsilon* is 5.00 (no DP, 50 epochs), where the shuffled value is 0.10."
        in (options["alt"])
    )


def test_tables_set_ours_beside_the_papers_in_at_most_seven_columns(shown):
    pages.show_section_42("purchase100", {"small": models(), "large": models().assign(accuracy=0.5)})
    table, _ = shown["section-42-purchase100"]
    assert table.columns.tolist() == ["what", "paper", "small", "large"]
    assert table.iloc[0].tolist() == ["test accuracy, no DP, 10 epochs", "86 %", "85.0 %", "50.0 %"]
    for frame, bound in ((models(), "one run"), (models("adult", one_run=math.nan), "both ends")):
        pages.show_noise_models(frame, name=bound.replace(" ", "-"))
        assert list(shown[bound.replace(" ", "-")][1]["columns"])[-1] == bound
    pages.show_readings({"8 relu": models("adult").assign(epochs=5)}, origin="")
    table, options = shown["adult-readings"]
    assert table["baseline - DP"].str.fullmatch(r"-?\d+\.\d+ ± \d+\.\d+").all()
    sides = pd.DataFrame(
        {"strategy": ["a"], "repetitions": 3, "mechanism": 1.0, "log_mean_exp": 1.5, "difference": 0.5,
         "low": 0.25, "high": 0.75, "failed": 0.0, "one_model": 0.8, "one_low": -0.3, "one_high": -0.1}
    )  # fmt: skip
    pages.show_theorem_2(sides, models=2, records=10)
    table, options = shown["theorem-2"]
    assert table[["gap", "one_gap"]].iloc[0].tolist() == ["0.50 ± 0.25", "-0.20 ± 0.10"]
    assert "It is shown (interval above 0) in 1, and refuted (interval below 0) in 0." in options["caption"]
    assert all(len(some[1].get("columns") or some[0].columns) <= 7 for some in shown.values())


def test_clipping_is_told_of_the_largest_dp_model_and_the_longest_training():
    frame = models()
    frame["epsilon_star_clipped"] = 2 * frame["epsilon_star"]
    told = pages.clipped_in_words(frame)
    assert "a DP model is 0.41 nats, with clipped ones 0.82; without DP, after 50 epochs" in told
    assert "the means are 5.00 and 10.01." in told


def test_the_diagonal_stands_for_what_sampling_gives(shown):
    pages.show_shuffled(models())
    figure, options = shown["epsilon-star-shuffled"]
    assert labels(figure) == ["DP-SGD", "no DP", "equal"]
    assert "the DP models lie at 3.05 times their shuffled value" in options["alt"]


def test_grids_stand_side_by_side(shown):
    pages.show_grids([landscape_config(name) for name in ("randhie", "purchase100_like")])
    table, _ = shown["landscape-grid"]
    assert table.columns.tolist() == ["setting", "randhie", "purchase100_like"]
    assert len(table) <= 15


def test_the_scale_tells_what_the_paper_does_not_state():
    scale = pages.landscape_scale("substitute", models(), landscape_config("randhie"), ", some")
    assert scale.facts == (
        "purchase100_like, some, 8 models; 150-100-50 hidden units and 20 epochs with DP, which the paper "
        "does not state"
    )


def test_a_landscape_without_dp_models_can_be_shown(shown):
    frame = models().query("kind == 'baseline'")
    pages.show_landscape(frame, figure="Figure 1", utility="test accuracy", origin="here")
    pages.show_shuffled(frame)
    assert "DP strategies" not in shown["landscape-purchase100-like"][1]["alt"]
    for figure in (shown[name][0] for name in ("landscape-purchase100-like", "epsilon-star-shuffled")):
        figure.canvas.draw()
