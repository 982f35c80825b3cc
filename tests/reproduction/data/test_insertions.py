"""The reader of texts that were inserted into public pretraining runs, on files in the official
layout.
"""

import pandas as pd
import pytest

from paperlib.data.files import DataUnavailableError
from paperlib.reproduction.data.text.insertions import TOAA, read_insertions
from paperlib.reproduction.made_up.texts import write_insertions
from tests.refusals import refused


def test_each_condition_is_cut_into_what_is_scored_and_what_stands_before(tmp_path, monkeypatch):
    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path))
    write_insertions(tmp_path / TOAA.partition("/")[2])  # found there by its name on the hub
    some = read_insertions("random_8tok_16x")
    assert (len(some.members), len(some.nonmembers), some.copies, some.left_out) == (60, 60, 16, 0)
    assert {len(text) for text in some.members + some.nonmembers} == {8}
    assert {text[0] for text in some.member_contexts + some.nonmember_contexts} == {0}
    plain = read_insertions("plain_1x")
    assert plain.copies == 1
    assert set(map(tuple, plain.member_contexts)) == {(0,)}
    few = read_insertions("plain_1x", limit=7, seed=3)
    assert len(few.members) == len(few.nonmembers) == 7
    assert all(text in plain.members for text in few.members)
    assert few.members != read_insertions("plain_1x", limit=7, seed=4).members


def test_a_text_that_stands_there_twice_is_on_neither_side(tmp_path):
    write_insertions(tmp_path)
    path = tmp_path / "data" / "train-00000-of-00002.parquet"
    table = pd.read_parquet(path)
    member = table[(table["condition"] == "plain_1x") & (table["membership"] == 1)].head(1)
    pd.concat([table, member.assign(membership=0, example_idx=999)]).to_parquet(path)
    some = read_insertions("plain_1x", source=tmp_path)
    assert (len(some.members), len(some.nonmembers), some.left_out) == (59, 60, 2)


def test_bad_files_are_refused_in_one_line(tmp_path, monkeypatch):
    folder = tmp_path / "good"
    write_insertions(folder)
    with pytest.raises(
        ValueError, match=r"condition: expected .*plain_1x.*random_8tok_16x.*, got 'random'"
    ):
        read_insertions("random", source=folder)
    (tmp_path / "empty").mkdir()
    refused("expected Parquet files", read_insertions, "plain_1x", source=tmp_path / "empty")
    path = folder / "data" / "train-00000-of-00002.parquet"
    table = pd.read_parquet(path)
    table.assign(suffix_start=99).to_parquet(path)
    refused(
        r"suffix_start: expected 1 to .*, the length, got 99",
        read_insertions,
        "plain_1x",
        source=folder,
    )
    (folder / "data" / "train-00001-of-00002.parquet").unlink()
    table[table["membership"] == 1].to_parquet(path)
    refused(
        r"membership: expected 0 and 1, both, got \[1\]", read_insertions, "plain_1x", source=folder
    )
    table.drop(columns="suffix_start").to_parquet(path)
    refused("lacks suffix_start", read_insertions, "plain_1x", source=folder)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path))
    with pytest.raises(DataUnavailableError, match="nobody/nothing is not at hand"):
        read_insertions("plain_1x", source="nobody/nothing")
