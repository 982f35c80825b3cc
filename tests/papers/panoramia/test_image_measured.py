"""Runs on images that are kept with the book."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paperlib.io import read_result
from paperlib.papers.panoramia.images.models import parse_targets
from paperlib.papers.panoramia.images.tables import MeasuredRun, measured_run

ROOT = Path(__file__).parents[3]
KEPT = "book/measured/panoramia_cifar10.csv"
FURTHER = "book/measured/cifar10"
AUDITS = {
    "panoramia (paper form)": ("c_lb", "c+eps_lb", "baseline auc", "ceiling"),
    "panoramia (helpers form)": ("c_lb", "c+eps_lb"),
    "rm_rn (paper form)": ("value",),
    "o1 (paper form)": ("value",),
}


def run(*gains):
    """Two targets and a null in runs whose last target's attack beats the baseline by these nats."""
    table = pd.DataFrame(
        {"target": ["E10", "E40", "null"], "epochs": [10, 40, 40], "null": [False, False, True]}
    )
    table = table.assign(train_metric=0.5, test_metric=0.25)
    for audit, columns in AUDITS.items():
        table = table.assign(**{f"{audit} {column}": 0.5 for column in columns})
    table["rm_rn (paper form) value"] = 0.75
    tables = [table.assign(seed=at) for at in range(len(gains))]
    for one, gain in zip(tables, gains, strict=True):
        one.loc[1, "panoramia (paper form) c+eps_lb"] += gain
        one.loc[2, "panoramia (paper form) c+eps_lb"] -= 0.1
    table = pd.concat(tables, ignore_index=True)
    return MeasuredRun(table, "measured then", {}, np.zeros((11, 8, 3), dtype=np.uint8))


def test_rows_are_means_over_models_in_per_cent_and_clipped_last():
    rows = run(-0.2, 0.6, 0.8).means
    assert list(rows["target"]) == ["E10", "E40", "null"]
    assert list(rows["test_accuracy"]) == [25.0] * 3
    assert rows.loc[0, ["rm_rn", "o1"]].tolist() == [0.75, 0.5]
    np.testing.assert_allclose(rows["eps_tilde"], [0, 0.4, 0])  # clipped before the mean, E40 would have 0.47
    np.testing.assert_allclose(rows["eps_tilde_sd"], [0, np.std([-0.2, 0.6, 0.8], ddof=1), 0], atol=1e-12)


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
    assert list(kept.means["target"]) == [target.name for target in wanted]
    assert list(kept.means["null"]) == [target.null for target in wanted]
    assert kept.means["null"].any()
    assert not kept.means.isna().any(axis=None)
    assert (kept.table["games"] == given["repetitions"]).all()
    assert (ROOT / KEPT).with_suffix(".png").stat().st_size <= 60_000
    assert result.data == ["panoramia_cifar10.csv", "panoramia_cifar10.png"]
    others = [one for one in result.records if one["target"] != "panoramia-figure-13"]
    assert {one["level"] for one in others} == {"paper's data"}
    assert "panoramia-table-03" in {one["target"] for one in result.records}


def test_the_page_shows_the_numbers_of_the_file(kept):
    raw = pd.read_csv(ROOT / KEPT)
    means = raw.groupby("target", sort=False).mean(numeric_only=True)
    shown = kept.means.set_index("target")
    raised = means["panoramia (paper form) c+eps_lb"] - means["panoramia (paper form) c_lb"]
    np.testing.assert_allclose(shown["eps_tilde"], raised.clip(lower=0))
    np.testing.assert_allclose(shown["rm_rn"], means["rm_rn (paper form) value"])
    np.testing.assert_allclose(shown["test_accuracy"], 100 * means["test_metric"])
    seeds = sorted(raw["seed"].unique())
    assert seeds == [0, *(int(path.stem[5:]) for path in sorted((ROOT / FURTHER).glob("seed_*.json")))]
    assert f'measured = \\"{KEPT}\\"' in (ROOT / "notebooks/panoramia_images.ipynb").read_text()
