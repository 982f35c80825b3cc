import gzip
import json
import os
import random
import time
import tracemalloc
from pathlib import Path

import pandas as pd
import pytest
import zstandard

from paperlib.data.text import corpora, streams
from paperlib.data.text.corpora import installed_text
from paperlib.data.text.pieces import Reading
from paperlib.generators.identifiers import KINDS, PAPER_KINDS
from paperlib.reproduction.papers.natural_identifiers.census import corpus as census
from paperlib.reproduction.papers.natural_identifiers.census.corpus import take_census
from tests.generators.true_identifiers import KNOWN, LOOK_ALIKES, random_ones
from tests.interrupts import stopping
from tests.refusals import refused

VALUES = [value for values in [*KNOWN.values(), *LOOK_ALIKES.values()] for value in values]


def corpus(seed=0, size=40):
    """Documents with words, identifiers and look-alikes."""
    rng = random.Random(seed)
    words = ["lorem", "ipsum", "größe", "x = 1;", "\n"]
    texts = [
        " ".join(rng.choice(VALUES if rng.random() < 0.2 else words) for _ in range(60))
        for _ in range(size)
    ]
    return [{"text": text, "subset": rng.choice(["code", "web"])} for text in texts]


def write(path, records):
    path.write_text("\n".join(json.dumps(record) for record in records))
    return path


def count(root, folder, **options):
    return take_census([root], folder=folder, **options)


def same(first, second):
    for name in ("counts", "totals", "read", "skipped"):
        pd.testing.assert_frame_equal(getattr(first, name), getattr(second, name))


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "corpus"
    root.mkdir()
    for shard in range(3):
        write(root / f"{shard}.jsonl", corpus(shard))
    return root


def test_counts_are_those_of_each_text_by_itself(folder, tmp_path):
    result = count(folder, tmp_path / "units")
    texts = [record["text"] for shard in range(3) for record in corpus(shard)]
    spaced = [f" {text} ".replace(" ", "  ") for text in texts]
    for kind in KINDS:
        for values, valid in ((KNOWN[kind], True), (LOOK_ALIKES[kind], False)):
            # The words of a value with blanks are never apart in these texts.
            expected = sum(
                text.count(f" {value.replace(' ', '  ')} ") for text in spaced for value in values
            )
            rows = result.totals[
                (result.totals["kind"] == kind) & (result.totals["valid"] == valid)
            ]
            if valid or kind in ("md5", "ethereum", "uuid"):
                assert rows["matches"].sum() == expected, (kind, valid)
    assert result.read["documents"].sum() == 120
    assert result.read["characters"].sum() == sum(map(len, texts))
    assert result.skipped.empty


def test_different_values_count_once_per_subset_and_once_in_all(tmp_path):
    address = KINDS["ethereum"].example
    records = [("a", address), ("a", address.lower()), ("b", address), ("b", address)]
    path = write(
        tmp_path / "x.jsonl", [{"text": text, "subset": subset} for subset, text in records]
    )
    result = count(path, tmp_path / "units")
    rows = result.counts[["subset", "form", "matches", "different"]].to_numpy().tolist()
    assert sorted(rows) == [["a", "checksum", 1, 1], ["a", "lower", 1, 1], ["b", "checksum", 2, 1]]
    assert result.totals.set_index("form")["different"].to_dict() == {"checksum": 1, "lower": 1}
    table = result.by_kind().set_index("subset")
    assert table.loc["a", "total"] == table.loc["a", "ethereum"] == 2
    assert list(table.columns) == ["total", *PAPER_KINDS]


def test_formats_engines_and_blocks_give_the_same_counts(folder, tmp_path, monkeypatch):
    expected = count(folder, tmp_path / "units")
    records = [record for shard in range(3) for record in corpus(shard)]
    data = write(tmp_path / "x.jsonl", records).read_bytes()
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(data))
    (tmp_path / "x.jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(data))
    pd.DataFrame(records).to_parquet(tmp_path / "x.parquet")
    for name in ("x.jsonl.gz", "x.jsonl.zst", "x.parquet"):
        same(count(tmp_path / name, tmp_path / "units"), expected)
    same(expected, count(folder, tmp_path / "units", engine="re"))
    monkeypatch.setattr(streams, "BLOCK", 1_000)
    same(expected, count(folder, tmp_path / "units of small blocks"))


@pytest.mark.parametrize("block", [4_100, 5_003, 9_999])
def test_identifiers_across_block_edges_count_once(tmp_path, monkeypatch, block):
    values = random_ones("sha512", 200)
    path = tmp_path / "sums.txt"
    path.write_text("".join(f"{value}  file {at}é\n" for at, value in enumerate(values)))
    monkeypatch.setattr(streams, "BLOCK", block)
    result = count(path, tmp_path / "units")
    assert result.totals[["kind", "matches", "different"]].values.tolist() == [["sha512", 200, 200]]
    assert result.read["documents"].tolist() == [1]
    assert result.read["characters"].tolist() == [len(path.read_text())]


def test_a_stopped_scan_goes_on_and_of_finished_units_changed_ones_alone(
    folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(census, "_UNIT_BYTES", 1)  # every file a unit of its own
    calls = stopping(monkeypatch, census, "count_unit", 2)
    with pytest.raises(KeyboardInterrupt):
        count(folder, tmp_path / "units")
    resumed = count(folder, tmp_path / "units")
    assert len(calls) == 4
    same(resumed, count(folder, tmp_path / "others"))
    assert len(calls) == 7
    same(resumed, count(folder, tmp_path / "units"))
    assert len(calls) == 7
    (folder / "1.jsonl").write_text(json.dumps({"text": "nothing here"}))
    os.utime(folder / "2.jsonl", ns=(time.time_ns(), time.time_ns() + 10**9))
    again = count(folder, tmp_path / "units")
    assert sorted(Path(unit.files[0].path).name for (unit,) in calls[7:]) == ["1.jsonl", "2.jsonl"]
    assert again.read["documents"].sum() == 81


def test_bad_files_are_reported_and_the_scan_goes_on(folder, tmp_path):
    expected = count(folder, tmp_path / "units")
    (folder / "a.bin").write_bytes(b"\0\1\2")
    (folder / "b.txt").write_bytes(b"")
    (folder / "c.jsonl.gz").write_bytes(b"no gzip")
    (folder / "d.jsonl").write_bytes(b'{"text": "' + b"y" * 2_000 + b'"}\n')
    with (folder / "0.jsonl").open("ab") as file:
        file.write(b'\n{"text": "\xff"}\n')
    result = count(folder, tmp_path / "units", reading=Reading(longest_line=1_900 + 10 * 1_000))
    skipped = result.skipped.set_index("reason")["number"]
    damaged = ["damaged or unreadable file", "invalid UTF-8, its bytes replaced"]
    assert skipped.to_dict() == dict.fromkeys(["binary file", "empty file", *damaged], 1)
    pd.testing.assert_frame_equal(result.totals, expected.totals)


def test_file_names_need_not_be_text_nor_a_corpus_have_identifiers_as_installed_packages_do(
    tmp_path,
):
    root = os.fsencode(tmp_path / "corpus")
    os.mkdir(root)
    for name, content in ((b"\xff 100%.txt", KNOWN["md5"][0].encode()), (b"\xfe.bin", b"\0")):
        Path(os.fsdecode(os.path.join(root, name))).write_bytes(content)
    result = count(tmp_path / "corpus", tmp_path / "units")
    assert result.totals["matches"].tolist() == [1]
    assert result.read["subset"].tolist() == ["\ufffd 100%"]
    assert result.skipped["example"].tolist() == ["\ufffd.bin"]
    path = tmp_path / "plain.txt"
    path.write_text("no identifier in here")
    result = count(path, tmp_path / "units")
    assert result.totals.empty
    assert result.by_kind().values.tolist() == [["plain"] + [0] * (1 + len(PAPER_KINDS))]
    result = take_census(installed_text(("tqdm",)), folder=tmp_path)
    assert result.totals.query("kind == 'wheel_digest' and valid")["matches"].sum() > 20
    assert result.read["subset"].tolist() == ["tqdm"]


def test_memory_is_flat_in_corpus_size(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "BLOCK", 2**16)
    peaks = []
    for megabytes in (1, 8):
        path = tmp_path / f"{megabytes}.txt"
        line = "a line of plain text " * 100 + "with 2f6b8d1c90e4a7353b1e64d7f08a5c92 in it, "
        path.write_text(line * (megabytes * 2**20 // len(line)))
        tracemalloc.start()
        count(path, tmp_path / "units", kinds=["md5"])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]
    assert peaks[1] < 3 * 2**20


def test_bad_requests_say_what_is_wrong(tmp_path):
    for options, message in (
        ({"kinds": ["md6"]}, "'md6'"),
        ({"engine": "grep"}, "engine: expected one of"),
    ):
        refused(message, count, Path(__file__), tmp_path, **options)
    refused("none", take_census, [], folder=tmp_path)


# From the corpora's description, counted by others: md5, sha1, sha256, sha512, eth, suid; all
# matches.
NID_CORPUS = {
    "github_java": [0, 0, 0, 0, 0, 1771],
    "buildroot_hashes": [844, 709, 8022, 242, 0, 0],
    "buildroot_patches": [3, 1611, 2, 1, 0, 0],
    "openembedded_recipes": [3318, 984, 2661, 2, 0, 0],
    "easybuild_configs": [11, 55, 5407, 0, 0, 0],
    "vcpkg_ports": [0, 695, 3, 2978, 0, 0],
    "scoop_manifests": [29, 120, 2455, 46, 0, 0],
    "defi_adapters": [0, 7, 5, 0, 16993, 0],
    "ethereum_tokens": [5, 8, 1, 1, 3239, 0],
    "defi_address_book": [0, 0, 0, 0, 7735, 0],
    "lockfiles": [891, 4370, 4046, 0, 0, 0],
    "debian_packages": [6001, 75, 3000, 0, 0, 0],
    "debian_md5sums": [12917, 0, 0, 0, 0, 0],
    "debian_changelogs": [1, 3880, 0, 0, 0, 0],
}
PILE_TEST = {
    "hackernews": [9, 15, 2, 0, 0, 0],
    "github": [7, 4, 8, 0, 0, 3],
    "stackexchange": [2, 3, 0, 1, 0, 1],
    "ubuntu_irc": [0, 1, 0, 0, 0, 0],
    "wikipedia": [0, 1, 0, 0, 0, 0],
    "pile_cc": [0, 0, 0, 0, 1, 0],
}
DIFFERENT = {
    "md5": 21652,
    "sha1": 9829,
    "sha256": 20644,
    "serial_version_uid": 1674,
    "sha512": 3206,
}


def is_described(form):
    """Which forms of digests the description counts."""
    look_alikes = [
        "counting or repeating",
        "known constant",
        "readable text in hexadecimal digits",
        "time-ordered UUID",
    ]
    return form.str.startswith("lower") | form.isin(look_alikes)


def as_described(table, subset=None):
    """The description counts digests in lower case, and addresses whatever their checksum. Of
    digests it leaves out those of few different digits alone, of what we tell from identifiers.
    """
    rows = table if subset is None else table[table["subset"] == subset]
    digest = rows["kind"].isin(["md5", "sha1", "sha256", "sha512"])
    padding = (rows["kind"] == "ethereum") & (rows["form"] == "few different digits")
    rows = rows[(digest & is_described(rows["form"])) | (~digest & ~padding)]
    kinds = ["md5", "sha1", "sha256", "sha512", "ethereum", "serial_version_uid"]
    return rows.groupby("kind")["matches"].sum().reindex(kinds, fill_value=0).astype(int).tolist()


@pytest.mark.parametrize(
    ("name", "expected"), [("nid_corpus", NID_CORPUS), ("pile_test_subsets", PILE_TEST)]
)
def test_counts_of_the_real_corpora_are_those_of_their_description(tmp_path, name, expected):
    if not (Path(os.environ.get("PAPERLIB_DATA", "none")) / corpora.CORPORA[name].file).is_file():
        pytest.skip(f"{name} is not in the folder PAPERLIB_DATA")
    result = count(name, tmp_path)
    for subset in result.read["subset"]:
        assert as_described(result.counts, subset) == expected.get(subset, [0] * 6), subset
    if name == "nid_corpus":
        totals = result.totals[result.totals["kind"].isin(DIFFERENT)]
        lower = is_described(totals["form"]) | (totals["kind"] == "serial_version_uid")
        assert totals[lower].groupby("kind")["different"].sum().to_dict() == DIFFERENT
