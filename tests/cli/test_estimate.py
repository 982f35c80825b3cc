"""The table of costs that `paperlib estimate --csv` fills row by row."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from paperlib.cli.estimate import estimate_notebooks, keep_row
from paperlib.running.cost.estimate import Estimate

ONE = Estimate(
    notebook="toy", profile="paper", stages=(), pflop=2316.0, gpu_memory_gb=26.55, disk_gb=4e-4,
    download_gb=0.0, hours={"this machine": 0.1, "H100": 1.25, "A100": 2.0, "RTX 4090": None}, rest_hours=0.1,
    seconds=3.0, stopped=(), device="a processor, 1 thread", date="2026-11-22", notes=(),
)  # fmt: skip


def table(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_a_row_takes_the_place_of_its_own_and_leaves_the_others(tmp_path: Path):
    file = tmp_path / "costs.csv"
    for one in (ONE, replace(ONE, notebook="ant"), replace(ONE, profile="gpu"), replace(ONE, pflop=1.0)):
        keep_row(file, one)
    rows = table(file)
    assert [(row["notebook"], row["profile"]) for row in rows] == [
        ("ant", "paper"),
        ("toy", "gpu"),
        ("toy", "paper"),
    ]
    assert [row["PFLOP"] for row in rows] == ["2316", "2316", "1"]
    shown = rows[0]
    assert (shown["GPU memory, GB"], shown["disk, GB"]) == ("26.6", "0")  # 26.55, 0.4 MB
    assert (shown["hours, H100"], shown["hours, RTX 4090"], shown["hours, this machine"]) == (
        "1.25",
        "",
        "0.1",
    )
    assert (shown["measured on"], shown["date"]) == ("a processor, 1 thread", "2026-11-22")


def test_another_file_is_refused_before_anything_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "scores.csv"
    file.write_text("score,member\n0.5,1\n", encoding="utf-8")
    monkeypatch.setattr("paperlib.cli.estimate.estimate", lambda *_, **__: pytest.fail("measured"))
    with pytest.raises(ValueError, match=r"--csv: .*scores\.csv is no table of estimates"):
        estimate_notebooks(
            "paper_checks", [], profile="smoke", every=False, own_data=False, cell_seconds=1.0, as_json=False,
            file=file,
        )  # fmt: skip
    assert file.read_text(encoding="utf-8") == "score,member\n0.5,1\n"
