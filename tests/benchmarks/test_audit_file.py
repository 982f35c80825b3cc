"""Speed of auditing a scores file, from reading it to the finished report: ``make bench``."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paperlib.audits import audit_scores
from paperlib.io import read_scores
from paperlib.report import audit_report

SIZES = (1_000, 10_000, 100_000, 1_000_000)


def write(folder: Path, rows: int, name: str) -> Path:
    rng = np.random.default_rng(rows)
    member = rng.integers(0, 2, rows)
    frame = pd.DataFrame({"loss": rng.normal(size=rows) - member, "member": member})
    path = folder / name
    if name.endswith("parquet"):
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
@pytest.mark.benchmark(group="read a scores file")
def test_reading(benchmark, tmp_path, rows, name):
    benchmark(read_scores, write(tmp_path, rows, name))


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.benchmark(group="read, audit and report")
def test_everything(benchmark, tmp_path, rows):
    path = write(tmp_path, rows, "a.csv")

    def everything() -> str:
        scores = read_scores(path).scores
        return audit_report(scores, tuple(audit_scores(scores)), title="a", facts={})

    benchmark.pedantic(everything, rounds=3)
