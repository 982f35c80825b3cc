"""Tables, figures and records: shown in the book's form, kept as CSV beside the result."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from paperlib.core import round_down
from paperlib.report import (
    display,
    figures,
    format_cell,
    record,
    records,
    show_figure,
    show_table,
    tables,
    used_data,
)

FRAME = pd.DataFrame({"m": [100, 400], "epsilon": [0.5, 1.63089], "note": ["a|b", None]})
RECORD: dict[str, Any] = {
    "target": "output-sets-figure-01",
    "holds": True,
    "scale": "paper",
    "paper": "3",
    "ours": "3",
}


@pytest.fixture
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(display.RESULTS_VARIABLE, str(tmp_path))
    monkeypatch.setenv(display.NOTEBOOK_VARIABLE, "demo")
    return tmp_path


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[display.Bundle]:
    bundles: list[display.Bundle] = []
    for module in (tables, figures, records):
        monkeypatch.setattr(module, "show", bundles.append)
    return bundles


def line_figure() -> plt.Figure:
    fig, axes = plt.subplots()
    axes.plot([0, 1], [0, 1])
    return fig


def test_a_table_is_labelled_captioned_and_kept_with_every_digit(
    run_folder: Path, shown: list[display.Bundle]
) -> None:
    show_table(FRAME, name="gain-by-m", caption="Gain  over\nm", lower_bounds=["epsilon"])
    markdown = shown[0]._repr_mimebundle_()["text/markdown"]
    assert markdown.startswith("````{table} Gain over m\n:name: tbl-gain-by-m\n")
    assert "{download}`gain-by-m.csv </_generated/data/demo/gain-by-m.csv>`" in markdown
    assert "1.63 " in markdown
    assert "1.631" not in markdown
    assert r"a\|b" in markdown
    kept = pd.read_csv(run_folder / "gain-by-m.csv")
    assert kept["epsilon"].tolist() == [0.5, 1.63089]


def test_outside_a_run_nothing_is_written_and_the_link_holds_the_data(
    tmp_path: Path, shown: list[display.Bundle], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(display.RESULTS_VARIABLE, raising=False)
    show_table(FRAME, name="gain", caption="Gain")
    record(**RECORD)
    used_data("digits", np.arange(3))
    assert list(tmp_path.iterdir()) == []
    assert "href='data:text/csv;base64," in shown[0].html
    assert "{download}" not in shown[0].markdown


def test_a_name_is_used_once_and_is_a_slug(run_folder: Path, shown: list[display.Bundle]) -> None:
    show_table(FRAME, name="gain", caption="Gain")
    with pytest.raises(ValueError, match="'gain' is taken"):
        show_table(FRAME, name="gain", caption="Gain")
    for bad in ("Gain", "gain_by", "a b", "../a", "", "-a"):
        with pytest.raises(ValueError, match="name: expected lower-case words"):
            show_table(FRAME, name=bad, caption="Gain")


def test_a_table_needs_a_caption_cells_and_known_columns(shown: list[display.Bundle]) -> None:
    with pytest.raises(ValueError, match="caption: expected words"):
        show_table(FRAME, name="a", caption=" ")
    with pytest.raises(ValueError, match="has no cells"):
        show_table(FRAME.iloc[:0], name="a", caption="c")
    with pytest.raises(
        ValueError, match="lower_bounds: no column 'eps'; the columns are 'm', 'epsilon', 'note'"
    ):
        show_table(FRAME, name="a", caption="c", lower_bounds=["eps"])


@pytest.mark.parametrize("value", [1.63089, 0.00123456, 12.3456789, 0.99999, 123456.7, 1e-9])
def test_a_lower_bound_is_never_shown_above_itself(value: float) -> None:
    assert float(format_cell(value, down=True)) <= value
    assert float(format_cell(value, down=True)) >= round_down(value * 0.998, 12)


def test_a_figure_has_alt_text_label_and_no_request(run_folder: Path, shown: list[display.Bundle]) -> None:
    plt.close("all")  # other tests may have left some open
    alt = 'A line # rising from "0" to 1: 50 %'
    show_figure(line_figure(), name="line", caption="A line", alt=alt, data=FRAME)
    markdown = shown[0].markdown
    options = dict(line[1:].split(": ", 1) for line in markdown.splitlines() if line.startswith(":"))
    assert json.loads(options["alt"]) == alt
    assert options["name"] == "fig-line"
    assert options["figclass"] == "themed"
    assert markdown.startswith("````{figure} data:image/svg+xml;base64,")
    assert "{download}`line.csv </_generated/data/demo/line.csv>`" in markdown
    assert (run_folder / "line.csv").is_file()
    assert plt.get_fignums() == []


def test_a_heat_map_keeps_its_colours_in_dark_mode(shown: list[display.Bundle]) -> None:
    show_figure(line_figure(), name="heat", caption="Heat", alt="Heat map.", invert=False)
    assert "themed" not in shown[0].markdown
    assert "dark-light" not in shown[0].markdown


def test_a_figure_needs_alt_text(shown: list[display.Bundle]) -> None:
    fig = line_figure()
    with pytest.raises(ValueError, match="alt: expected words"):
        show_figure(fig, name="line", caption="A line", alt=" ")
    plt.close(fig)


def test_the_same_figure_gives_the_same_svg() -> None:
    first, second = line_figure(), line_figure()
    assert figures.svg_text(first) == figures.svg_text(second)
    assert ET.fromstring(figures.svg_text(first)).tag.endswith("svg")
    plt.close("all")


def test_a_record_is_kept_as_one_line(run_folder: Path, shown: list[display.Bundle]) -> None:
    record(**RECORD)
    record(**{**RECORD, "holds": np.bool_(False), "scale": "reduced: m to 3200", "note": "too small"})
    lines = (run_folder / records.RECORDS_FILE).read_text().splitlines()
    kept = [json.loads(line) for line in lines]
    assert [item["holds"] for item in kept] == [True, False]
    assert ":class: tip" in shown[0].markdown
    assert ":class: warning" in shown[1].markdown
    assert "does not hold at reduced scale: m to 3200" in shown[1].markdown


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"target": "output-set-figure-01"}, "did you mean output-sets-figure-01"),
        ({"holds": 1}, "holds: expected True or False, got a number 1"),
        ({"holds": "yes"}, "holds: expected True or False, got str"),
        ({"scale": "small"}, "scale: expected 'paper' or 'reduced"),
        ({"scale": "reduced: "}, "scale: expected 'paper' or 'reduced"),
        ({"ours": ""}, "ours: expected words"),
    ],
)
def test_a_doubtful_record_is_refused(run_folder: Path, change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        record(**{**RECORD, **change})
    assert list(run_folder.iterdir()) == []


def test_used_data_is_kept_by_checksum(run_folder: Path) -> None:
    digest = used_data("digits", np.arange(3))
    kept = json.loads((run_folder / records.USED_DATA_FILE).read_text())
    assert kept == {"name": "digits", "sha256": digest}
    assert used_data("digits", np.arange(1, 4)) != digest
