"""Runs on images that are kept with the book."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from paperlib.io import read_result
from paperlib.papers.panoramia.images.measured import (
    GRID_ROWS,
    MeasuredRun,
    grid_figure,
    measured_run,
    save_grid,
)
from paperlib.papers.panoramia.images.tables import parse_targets

ROOT = Path(__file__).parents[3]
KEPT = "book/measured/panoramia_cifar10.csv"
NUMBERS = dict.fromkeys(
    ("kid generated", "kid generated error", "kid nonmembers", "kid nonmembers error"), 1.0
)
AUDITS = {
    "panoramia (paper form)": ("c_lb", "c+eps_lb", "value", "sd", "baseline auc", "ceiling"),
    "panoramia (helpers form)": ("value",),
    "rm_rn (paper form)": ("value",),
    "o1 (paper form)": ("value",),
}


def run(values, *, null=0.0):
    """Targets of 10, 40 and 20 epochs, and null, of these eps-tilde."""
    names, epochs = ["E10", "E40", "E20", "null"], [10, 40, 20, 40]
    table = pd.DataFrame({"target": names, "epochs": epochs, "null": [False] * 3 + [True]})
    table = table.assign(train_metric=0.5, test_metric=0.25)
    for audit, columns in AUDITS.items():
        table = table.assign(**{f"{audit} {column}": 0.5 for column in columns})
    table["panoramia (helpers form) value"] = [*values, null]
    table["rm_rn (paper form) value"] = 0.75
    parameters = {
        "dataset": "cifar10",
        "side": 16,
        "levels": 8,
        "sizes": [5, 4, 4, 4],
        "test": 3,
        "repetitions": 2,
    }
    generator = {"network": "unet", "width": 16, "steps": 7}
    return MeasuredRun(
        table.assign(**NUMBERS),
        "measured then",
        {**parameters, "generator": generator},
        np.zeros((11, 8, 3), dtype=np.uint8),
    )


def test_the_scale_and_the_accuracies_in_per_cent_are_stated():
    assert run([0.1, 0.9, 0.5]).scale.startswith("cifar10 at 16 pixels a side and 8 grey values")
    assert "4 members, 2 games" in run([0.1, 0.9, 0.5]).scale
    assert list(run([0.1, 0.9, 0.5]).rows["test accuracy"]) == [25.0] * 4
    assert run([0.1, 0.9, 0.5]).rows.loc[0, ["RM;RN", "O(1)"]].tolist() == [0.75, 0.5]


def test_a_grid_is_kept_pixel_for_pixel(tmp_path):
    rng = np.random.default_rng(0)
    rows = {name: rng.integers(0, 256, (5, 3, 4, 4), dtype=np.uint8) for name in GRID_ROWS}
    save_grid(tmp_path / "a.png", rows, columns=3)
    grid = plt.imread(tmp_path / "a.png")
    assert grid.shape[:2] == (4 * 5 - 1, 3 * 5 - 1)
    second = (255 * grid[5:9, 5:9, :3]).round().astype(np.uint8)
    np.testing.assert_array_equal(np.moveaxis(second, 2, 0), rows["members"][1])
    assert (grid[4] == 1).all(), "white between rows"
    with pytest.raises(ValueError, match="rows: expected D_G, members"):
        save_grid(tmp_path / "b.png", {"D_G": rows["D_G"]})


def test_the_grids_rows_are_named_where_they_stand():
    fig, words = grid_figure(run([0.1, 0.9, 0.5]))
    assert [label.get_text() for label in fig.axes[0].get_yticklabels()] == list(GRID_ROWS)
    assert list(fig.axes[0].get_yticks()) == [1.0, 4.0, 7.0, 10.0]
    assert "cifar10" in words
    plt.close(fig)


def test_incomplete_runs_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert measured_run("") is None
    with pytest.raises(ValueError, match=r"measured: no 'nowhere\.csv'"):
        measured_run("nowhere.csv")


@pytest.fixture(scope="module")
def kept():
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT / "book")
        run = measured_run(KEPT)
    assert run is not None
    return run


def test_the_kept_run_is_whole(kept):
    result = read_result((ROOT / KEPT).with_suffix(".json"))
    given, origin = result.parameters, result.provenance
    assert origin["dirty"] is False
    assert len(origin["commit"]) == 40
    for name in ("date", "cpu", "cores", "seconds", "packages", "command"):
        assert origin[name], name
    assert len(origin["data"]["cifar10"]) == 64
    wanted = parse_targets([*given["targets"], *given["compared"]], **given["target_settings"])
    assert list(kept.table["target"]) == [target.name for target in wanted]
    assert list(kept.table["null"]) == [target.null for target in wanted]
    assert kept.table["null"].any()
    assert not kept.rows.isna().any(axis=None)
    assert (kept.table["games"] == given["repetitions"]).all()
    assert (ROOT / KEPT).with_suffix(".png").stat().st_size <= 60_000
    assert result.data == ["panoramia_cifar10.csv", "panoramia_cifar10.png"]
    others = [one for one in result.records if one["target"] != "panoramia-figure-13"]
    assert {one["level"] for one in others} == {"paper's data"}
    assert "panoramia-table-03" in {one["target"] for one in result.records}


def test_the_page_shows_the_numbers_of_the_file(kept):
    raw = pd.read_csv(ROOT / KEPT).set_index("target")
    shown = kept.rows.set_index("target")
    np.testing.assert_allclose(shown["eps~"], raw["panoramia (paper form) value"])
    np.testing.assert_allclose(shown["RM;RN"], raw["rm_rn (paper form) value"])
    np.testing.assert_allclose(shown["test accuracy"], 100 * raw["test_metric"])
    assert f"{raw['kid generated'].iloc[0]:.2f}" in kept.quality
    assert f'measured = \\"{KEPT}\\"' in (ROOT / "notebooks/panoramia_images.ipynb").read_text()
