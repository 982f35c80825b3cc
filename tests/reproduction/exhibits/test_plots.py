"""Figures and tables: what they draw, that their words say the same, and what is kept as CSV."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from paperlib import report
from paperlib.report import tables
from paperlib.report.figures import WIDTH, points_on_a_phone
from paperlib.report.tables import format_cell
from paperlib.reproduction.exhibits import plots
from tests.refusals import refused

ROWS = pd.DataFrame(
    {
        "target": ["a", "b"] * 2,
        "audit": ["panoramia"] * 2 + ["rm_rn"] * 2,
        "eps": [0.5, -0.25, 1.0, np.nan],
        "half": 0.125,
        "paper": [0.75, np.nan, np.nan, np.nan],
    }
)


def test_dots_have_their_intervals_and_the_papers_values_as_crosses_and_series_stand_apart():
    fig, words = plots.dots_plot(
        ROWS,
        rows="target",
        value="eps",
        spread="half",
        panel="audit",
        printed="paper",
        mark=0,
        xlabel="nats",
    )
    assert [axes.get_title(loc="left") for axes in fig.axes] == ["PANORAMIA", "RM;RN"], (
        "names of columns.csv are shown by their headings"
    )
    (bars,) = fig.axes[0].containers
    ends = [part[:, 0].tolist() for part in bars.lines[2][0].get_segments()]
    assert ends == [[0.375, 0.625], [-0.375, -0.125]]
    assert [tick.get_text() for tick in fig.axes[0].get_yticklabels()] == ["a", "b"]
    assert fig.axes[0].get_yticks().tolist() == [1, 0]
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["the paper", "here"]
    crosses = next(line for line in fig.axes[0].lines if line.get_label() == "the paper")
    np.testing.assert_array_equal(crosses.get_xdata(), [0.75, np.nan])
    assert words == "PANORAMIA: a 0.50 (the paper 0.75), b -0.25; RM;RN: a 1.00."
    long = ROWS.assign(target=ROWS["target"] + " with a name that a phone has no room for")
    axis = {"xlabel": "nats", "xscale": "symlog"}
    fig, words = plots.dots_plot(long, rows=["target"], value="eps", by="audit", **axis)
    assert fig.axes[0].get_yticklabels()[0].get_text().count("\n") == 1
    assert len({y for bars in fig.axes[0].containers for y in bars.lines[0].get_ydata()}) == 4
    assert "PANORAMIA: a with a name that a phone has no room for 0.50" in words
    assert points_on_a_phone(fig) >= 8


def test_several_rows_at_one_place_are_mean_and_deviation_and_even_places_have_their_values():
    games = pd.DataFrame({"m": [10, 10, 20, 20], "eps": [0.0, 1.0, 2.0, 4.0]})
    axes = {"x": "m", "y": "eps", "xlabel": "m", "ylabel": "ε"}
    fig, words = plots.lines_plot(games, marks={"O(1)": 1.5}, **axes)
    (bars,) = fig.axes[0].containers
    assert list(bars.lines[0].get_ydata()) == [0.5, 3.0]
    ends = bars.lines[2][0].get_segments()[0][:, 1]
    assert ends.tolist() == pytest.approx([0.5 - 0.5**0.5, 0.5 + 0.5**0.5])
    assert words == "ε over m from 10 to 20: from 0.50 to 3.00."
    fig, _ = plots.lines_plot(games, dots=False, **axes)
    assert len(fig.axes[0].containers[0].lines[0].get_ydata()) == 4
    sets = pd.DataFrame(
        {"x": [1.0, 10.0, np.inf], "y": [1.0, 2.0, 3.0], "low": 0.0, "high": 4.0, "way": "a"}
    )
    axes = {
        "x": "x",
        "y": "y",
        "low": "low",
        "high": "high",
        "panel": "way",
        "xlabel": "x",
        "ylabel": "y",
    }
    fig, _ = plots.lines_plot(sets, band=True, even=True, **axes)
    assert [tick.get_text() for tick in fig.axes[0].get_xticklabels()] == ["1", "10", "∞"]
    assert len(fig.axes[0].collections) == 1


def test_losses_images_and_points_are_told():
    losses = {"20 epochs": {"member": [0, 1, 2], "generated": [3, 4, 5]}}
    _, words = plots.histograms_plot(losses, xlabel="loss")
    assert words == "Median loss: 20 epochs: member 1.00, generated 4.00."
    fig, _ = plots.points_plot(
        ROWS, x="half", y="eps", by="audit", xlabel="x", ylabel="y", diagonal=True
    )
    assert fig.axes[0].lines[-1].get_label() == "equal"
    grey = np.arange(5, dtype=np.uint8)[:, None, None, None] * np.ones((1, 1, 7, 7), np.uint8)
    fig, _ = plots.images_plot({"grey": grey}, columns=3)
    (image,) = fig.axes[0].images
    assert [int(np.squeeze(image.get_array())[0, at]) for at in (0, 7, 8, 15, 16)] == [
        0,
        255,
        1,
        255,
        2,
    ]


def curves(target="late", rows=500):
    guesses, parts = np.arange(1, rows + 1), []
    for test, precision in (("baseline", 0.55), ("mia", 0.9)):
        about = {"target": target, "seed": 0, "test": test, "ceiling": 5.0, "precision": precision}
        numbers = {
            "recall": guesses / rows,
            "guesses": guesses,
            "true_positives": precision * guesses,
        }
        parts.append(pd.DataFrame({**about, **numbers, "bound": precision * 2}))
    return pd.concat(parts)


def test_curves_over_recall_have_a_readable_panel_for_each_target_with_chance_and_ceiling():
    both = pd.concat([curves("early"), curves()])
    fig, words = report.precision_figure(both)
    assert [axes.get_title(loc="left") for axes in fig.axes] == ["early", "late"]
    assert words.endswith("late: precision at recall 0.1 baseline 0.55, attack 0.90.")
    assert any(np.allclose(line.get_ydata(), 0.5) for line in fig.axes[0].lines)
    fig, words = report.bounds_figure(both)
    assert any(np.allclose(line.get_ydata(), 5.0) for line in fig.axes[0].lines)
    assert words.endswith("attack 1.80. The ceiling of a perfect attack lies at 5.00.")
    assert report.guesses_figure(both)[0].axes[-1].get_xlabel() == "positive guesses"
    fig, _ = report.bounds_figure(pd.concat([curves(f"target {at}", 20) for at in range(6)]))
    assert len(fig.axes) == 6
    assert fig.get_figwidth() == WIDTH
    assert points_on_a_phone(fig) >= 8


FRAME = pd.DataFrame({"m": [100, 400], "epsilon": [0.5, 1.63089], "note": ["a|b", None]})


@pytest.fixture
def run_folder(tmp_path, monkeypatch):
    monkeypatch.setenv(report.display.RESULTS_VARIABLE, str(tmp_path))
    monkeypatch.setenv(report.display.NOTEBOOK_VARIABLE, "demo")
    return tmp_path


@pytest.fixture
def shown(monkeypatch):
    bundles: list[report.display.Bundle] = []
    for module in (tables, report.figures):
        monkeypatch.setattr(module, "show", bundles.append)
    return bundles


def line_figure():
    fig, axes = plt.subplots()
    axes.plot([0, 1], [0, 1])
    return fig


def test_a_table_is_labelled_captioned_and_kept_with_every_column_and_digit(run_folder, shown):
    report.show_table(FRAME, name="gain-by-m", caption="Gain  over\nm", lower_bounds=["epsilon"])
    markdown = shown[0]._repr_mimebundle_()["text/markdown"]
    assert markdown.startswith("````{table} Gain over m\n:name: tbl-gain-by-m\n")
    assert "{download}`gain-by-m.csv </_generated/data/demo/gain-by-m.csv>`" in markdown
    assert "1.63 " in markdown
    assert "1.631" not in markdown
    assert r"a\|b" in markdown
    kept = pd.read_csv(run_folder / "gain-by-m.csv")
    assert kept["epsilon"].tolist() == [0.5, 1.63089]
    report.show_table(
        FRAME, name="gain", caption="Gain", columns={"epsilon": "bound, nats", "m": "examples"}
    )
    assert "| bound, nats | examples |" in shown[1].markdown
    assert "note" not in shown[1].markdown
    assert pd.read_csv(run_folder / "gain.csv").columns.tolist() == ["m", "epsilon", "note"]


def test_whole_numbers_have_decimals_only_beside_others_and_no_lower_bound_is_shown_above_itself(
    shown,
):
    for value in (1.63089, 0.00123456, 12.3456789, 0.99999, 123456.7, 1e-9):
        shown_value = float(format_cell(value, down=True))
        assert value - max(0.01, 0.1 * min(value, 0.1)) <= shown_value <= value
    frame = pd.DataFrame({"some_size": [100.0, 400.0], "rate": [1.0, 1.25], "count": [1, 2]})
    report.show_table(frame, name="a", caption="c", columns="some_size, rate, count")
    _, names, _, *rows = shown[0].text.splitlines()
    assert "Some size" in names
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert cells == [["100", "1.00", "1"], ["400", "1.25", "2"]]


def test_the_smallest_text_on_a_phone_is_measured():
    fig, (axis,) = report.panels()
    axis.set(xlabel="examples", ylabel="bound")
    assert points_on_a_phone(fig) >= 8
    wide, axes = plt.subplots(figsize=(9, 3))
    axes.set_title("a wide figure", fontsize=7)
    assert points_on_a_phone(wide) < 4
    assert f"{report.figures.SMALLEST_TEXT} " in report.figures.svg_text(fig)
    texts = [report.figures.svg_text(line_figure()) for _ in range(2)]
    assert texts[0] == texts[1], "the same figure gives the same SVG"
    assert ET.fromstring(texts[0]).tag.endswith("svg")


def test_outside_a_run_nothing_is_written_and_the_link_holds_the_data(tmp_path, shown, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(report.display.RESULTS_VARIABLE, raising=False)
    report.show_table(FRAME, name="gain", caption="Gain")
    report.used_data("digits", np.arange(3))
    assert list(tmp_path.iterdir()) == []
    assert "href='data:text/csv;base64," in shown[0].html
    assert "{download}" not in shown[0].markdown


def test_a_table_needs_a_new_name_a_caption_cells_and_known_columns(run_folder, shown):
    report.show_table(FRAME, name="gain", caption="Gain")
    unknown = "no column 'eps'; the columns are 'm', 'epsilon', "
    for changes, message in (
        ({"name": "gain"}, "'gain' is taken"),
        *(
            ({"name": bad}, "name: expected lower-case")
            for bad in ("Gain", "gain_by", "a b", "../a", "", "-a")
        ),
        ({"caption": " "}, "caption: expected words"),
        ({"frame": FRAME.iloc[:0]}, "has no cells"),
        ({"lower_bounds": ["eps"]}, f"lower_bounds: {unknown}"),
        ({"columns": {"eps": "bound"}}, f"columns: {unknown}"),
    ):
        refused(
            message, report.show_table, **{"frame": FRAME, "name": "a", "caption": "c", **changes}
        )


def test_a_figure_has_alt_text_label_and_no_request_and_a_heat_map_its_colours(run_folder, shown):
    alt = 'A line # rising from "0" to 1: 50 %'
    report.show_figure(line_figure(), name="line", caption="A line", alt=alt, data=FRAME)
    markdown = shown[0].markdown
    options = dict(
        line[1:].split(": ", 1) for line in markdown.splitlines() if line.startswith(":")
    )
    assert json.loads(options["alt"]) == alt
    assert options["name"] == "fig-line"
    assert options["figclass"] == "themed"
    assert markdown.startswith("````{figure} data:image/svg+xml;base64,")
    assert "{download}`line.csv </_generated/data/demo/line.csv>`" in markdown
    assert (run_folder / "line.csv").is_file()
    assert plt.get_fignums() == []
    report.show_figure(line_figure(), name="heat", caption="Heat", alt="Heat map.", invert=False)
    assert "themed" not in shown[1].markdown
    assert "dark-light" not in shown[1].markdown
    for no_words in ({"alt": " "}, {}):
        refused(
            "alt: expected words",
            report.show_figure,
            line_figure(),
            name="line",
            caption="A line",
            **no_words,
        )
    described = (line_figure(), "Described already.")
    report.show_figure(described, name="described", caption="A line")
    assert ':alt: "Described already."' in shown[2].markdown


def test_where_and_when_a_number_was_measured_is_folded_below_what_is_seen(run_folder, shown):
    words = "measured 2026-11-23 on a laptop"
    figure = (line_figure(), "A line.")
    report.show_figure(figure, name="line", caption="A line", data=FRAME, origin=words)
    report.show_table(FRAME, name="gain", caption="Gain", origin=words)
    for bundle in shown:
        assert "\n\n:::{dropdown} Where and when this was measured\n" in bundle.markdown
        assert bundle.markdown.count(words) == 1
        assert f"</summary>{words}</details>" in bundle.html
        assert words not in bundle.text
    assert shown[0].markdown.index("{download}") < shown[0].markdown.index(words)


def test_used_data_is_kept_by_checksum(run_folder):
    digest = report.used_data("digits", np.arange(3))
    kept = json.loads((run_folder / report.display.USED_DATA_FILE).read_text())
    assert kept == {"name": "digits", "sha256": digest}
    assert report.used_data("digits", np.arange(1, 4)) != digest
