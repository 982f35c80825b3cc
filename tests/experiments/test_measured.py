"""Tables measured on another occasion."""

import pandas as pd
import pytest

from paperlib.experiments.measured import measured_table
from paperlib.io import RunResult, write_result

ORIGIN = {"date": "2026-01-02 03:04:05 UTC", "cpu": "some CPU", "cores": 2, "gpu": None, "seconds": 600.0}


@pytest.mark.parametrize(
    ("gpu", "place"), [(None, "some CPU, 2 cores"), ("some GPU", "some GPU")], ids=["cpu", "gpu"]
)
def test_a_measured_table_comes_with_its_origin(tmp_path, monkeypatch, gpu, place):
    (tmp_path / "book").mkdir()
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    pd.DataFrame({"subset": ["x"], "total": [3]}).to_csv(tmp_path / "book" / "a.csv", index=False)
    result = RunResult(notebook="n", profile="paper", provenance={**ORIGIN, "gpu": gpu})
    write_result(tmp_path / "book" / "a.json", result)
    table, text = measured_table("book/a.csv")
    assert table.to_dict("list") == {"subset": ["x"], "total": [3]}
    assert text == f"measured 2026-01-02 on {place}, in 10 minutes"


def test_a_table_without_its_result_file_is_refused_and_no_path_gives_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert measured_table("") is None
    with pytest.raises(ValueError, match=r"measured: no 'a\.csv'"):
        measured_table("a.csv")
    (tmp_path / "a.csv").write_text("x\n1\n")
    with pytest.raises(ValueError, match=r"with its \.json"):
        measured_table("a.csv")
