"""Tables and figures: shown in the book's form, kept as CSV beside the result."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from paperlib import report
from paperlib.report import tables
from paperlib.report.figures import points_on_a_phone
from tests.refusals import refused

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
    report.show_table(FRAME, name="gain", caption="Gain", columns={"epsilon": "bound, nats", "m": "examples"})
    assert "| bound, nats | examples |" in shown[1].markdown
    assert "note" not in shown[1].markdown
    assert pd.read_csv(run_folder / "gain.csv").columns.tolist() == ["m", "epsilon", "note"]


def test_whole_numbers_have_decimals_only_beside_others_and_no_lower_bound_is_shown_above_itself(shown):
    for value in (1.63089, 0.00123456, 12.3456789, 0.99999, 123456.7, 1e-9):
        shown_value = float(report.format_cell(value, down=True))
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
    assert f"{report.figures.SMALLEST} " in report.figures.svg_text(fig)
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
        refused(message, report.show_table, **{"frame": FRAME, "name": "a", "caption": "c", **changes})


def test_a_figure_has_alt_text_label_and_no_request_and_a_heat_map_its_colours(run_folder, shown):
    alt = 'A line # rising from "0" to 1: 50 %'
    report.show_figure(line_figure(), name="line", caption="A line", alt=alt, data=FRAME)
    markdown = shown[0].markdown
    options = dict(line[1:].split(": ", 1) for line in markdown.splitlines() if line.startswith(":"))
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
    refused("alt: expected words", report.show_figure, line_figure(), name="line", caption="A line", alt=" ")


def test_used_data_is_kept_by_checksum(run_folder):
    digest = report.used_data("digits", np.arange(3))
    kept = json.loads((run_folder / report.display.USED_DATA_FILE).read_text())
    assert kept == {"name": "digits", "sha256": digest}
    assert report.used_data("digits", np.arange(1, 4)) != digest
