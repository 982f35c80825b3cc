"""Adult and Purchase-100 in their official forms, bad files of them, and the generator of
shoppers.
"""

import io
import os
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paperlib.data import DataUnavailableError
from paperlib.io.files import DownloadError
from paperlib.reproduction.data import load
from paperlib.reproduction.data.tables import adult, purchase
from tests.refusals import refused

WORKCLASSES = ("Private", "State-gov", "?", "Self-emp-inc")


def made_up_rows(count, seed):
    rng = np.random.default_rng(seed)
    rows = []
    for at in range(count):
        cells = {name: str(rng.integers(1, 90)) for name in adult.NUMERIC}
        cells |= {name: f"{name}-{rng.integers(0, 3)}" for name in adult.WORDS}
        cells |= {
            "workclass": WORKCLASSES[at % 4],
            "income": adult.LABELS[int(rng.random() < 0.25)],
        }
        rows.append(tuple(cells[name] for name in adult.COLUMNS))
    return rows


def uci_form(rows, *, test):
    """UCI's own form: blanks after commas, an empty last line; in the test part a comment and full
    stops.
    """
    lines = [", ".join(row) + ("." if test else "") for row in rows]
    return "\n".join([*(["|1x3 Cross validator"] if test else []), *lines, "", ""])


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """A small made-up Adult whose checksums are pinned in place of the real ones; nothing can be
    fetched.
    """
    rows = {"train": made_up_rows(40, 0), "test": made_up_rows(20, 1)}
    for name, part in (("TRAIN", adult.TRAIN), ("TEST", adult.TEST)):
        mine = rows[name.lower()]
        monkeypatch.setattr(adult, name, replace(part, rows=len(mine), sha256=adult._digest(mine)))
    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path))
    monkeypatch.setattr(adult, "fetch", no_network)
    return rows


def no_network(url, path, **_):
    raise DownloadError(f"{url} cannot be fetched: no network")


def write(folder, rows, form):
    for name, mine in rows.items():
        if form == "csv":
            (folder / f"adult_{name}.csv").write_text(adult.plain_text(mine))
        else:
            file = folder / ("adult.data" if name == "train" else "adult.test")
            file.write_text(uci_form(mine, test=name == "test"))


def test_both_file_forms_of_adult_give_the_same_arrays(tmp_path, parts):
    write(tmp_path, parts, "csv")
    ours = load("adult")
    for path in tmp_path.iterdir():
        path.unlink()
    write(tmp_path, parts, "uci")
    theirs = load("adult")
    for field in ("train_x", "train_y", "test_x", "test_y"):
        np.testing.assert_array_equal(getattr(ours, field), getattr(theirs, field))
    assert ours.train_x.shape == (40, 6 + 4 + 7 * 3)
    assert ours.train_y.tolist() == [int(row[-1] == ">50K") for row in parts["train"]]
    unknown = ours.train_x[:, ours.features.index("workclass=?")]  # a value of its own
    assert unknown.tolist() == [float(row[1] == "?") for row in parts["train"]]


def test_encoding_is_fitted_on_the_training_part_alone(tmp_path, parts, monkeypatch):
    write(tmp_path, parts, "csv")
    before = load("adult")
    far = [dict(zip(adult.COLUMNS, row, strict=True)) | {"age": "1000000"} for row in parts["test"]]
    far[0]["sex"] = "never seen"
    far = [tuple(row.values()) for row in far]
    monkeypatch.setattr(adult, "TEST", replace(adult.TEST, sha256=adult._digest(far)))
    write(tmp_path, {"train": parts["train"], "test": far}, "csv")
    after = load("adult")
    np.testing.assert_array_equal(before.train_x, after.train_x)
    assert before.features == after.features
    np.testing.assert_allclose(after.train_x[:, :6].mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(after.train_x[:, :6].std(axis=0), 1, atol=1e-5)
    sexes = [at for at, name in enumerate(after.features) if name.startswith("sex=")]
    assert after.test_x[0, sexes].sum() == 0
    assert after.test_x[1, sexes].sum() == 1


def test_a_bad_file_of_adult_is_refused_by_name(tmp_path, parts):
    for spoil, said in (
        (lambda text: text[: len(text) // 2], "columns, got|expected"),
        (
            lambda text: text.rsplit("\n", 2)[0] + "\n",
            "expected 40 rows, got 39; the file is not whole",
        ),
        (
            lambda text: text.replace(">50K", "rich", 1),
            "expected the income <=50K or >50K, got 'rich'",
        ),
        (lambda text: text.replace("race-0", "race-9", 1), "not the rows of UCI Adult"),
        (lambda text: text.replace("\n", ",extra\n"), "expected 15 columns, got 16"),
        (lambda text: text.replace("\n", "\n?"), "whole number for age"),
        (lambda text: "\udc80\x04\udc95pickle", r"adult_train\.csv"),  # bytes that are no text
    ):
        write(tmp_path, parts, "csv")
        path = tmp_path / "adult_train.csv"
        path.write_text(spoil(path.read_text()), errors="surrogateescape")
        assert "adult_train.csv" in refused(said, load, "adult")


def test_uci_is_fetched_with_its_checksum_and_kept(tmp_path, parts, monkeypatch):
    asked = []

    def fetch(url, path, *, sha256=None):
        asked.append((url, sha256))
        test = path.name == "adult.test"
        Path(path).write_text(uci_form(parts["test" if test else "train"], test=test))

    monkeypatch.setattr(adult, "fetch", fetch)
    load("adult")
    load("adult")
    sums = {"adult.data": adult.TRAIN.uci_sha256, "adult.test": adult.TEST.uci_sha256}
    assert asked == [(adult.UCI + name, sha256) for name, sha256 in sums.items()]
    assert all(url.startswith("https://") for url, _ in asked)


@pytest.mark.parametrize("order", [("train", "test"), ("test", "train")])
def test_openml_is_the_second_choice_and_split_by_checksum(tmp_path, parts, monkeypatch, order):
    joined = [row for name in order for row in parts[name]]

    def fetch(url, path, **_):
        if url != adult.OPENML:
            raise DownloadError("down for maintenance")
        text = "age,workclass\n" + "".join(f"{row[0]}, {', '.join(row[1:])}\n" for row in joined)
        Path(path).write_text(text)

    monkeypatch.setattr(adult, "fetch", fetch)
    assert load("adult").train_y.tolist() == [int(row[-1] == ">50K") for row in parts["train"]]
    assert (tmp_path / "adult_test.csv").is_file()
    joined.reverse()
    for path in tmp_path.iterdir():
        path.unlink()
    refused("not the two official parts", load, "adult", error=DataUnavailableError)


def real_adult():
    folder = Path(os.environ.get("PAPERLIB_DATA", ""))
    return any((folder / name).is_file() for name in adult.TRAIN.files)


@pytest.mark.skipif(not real_adult(), reason="PAPERLIB_DATA holds no Adult files")
def test_the_official_files_of_adult_have_the_official_counts():
    data = load("adult")
    assert data.train_x.shape == (32_561, 108)
    assert data.test_x.shape == (16_281, 108)
    assert (data.train_y.sum(), data.test_y.sum()) == (7_841, 3_846)
    unknown = [at for at, name in enumerate(data.features) if name.endswith("=?")]
    assert (data.train_x[:, unknown].max(axis=1) > 0).sum() == 2_399
    assert (data.test_x[:, unknown].max(axis=1) > 0).sum() == 1_221


@pytest.fixture
def shoppers(tmp_path, monkeypatch):
    """200 made-up shoppers, and a data folder for them without network."""
    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path))
    monkeypatch.setattr(purchase, "fetch", no_network)
    rng = np.random.default_rng(0)
    return np.column_stack([rng.integers(1, 101, 200), rng.integers(0, 2, (200, 600))])


def as_text(rows):
    return "".join(",".join(map(str, row)) + "\n" for row in rows.tolist()).encode()


def pack(path, text, name="dataset_purchase"):
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        item = tarfile.TarInfo(name)
        item.size = len(text)
        archive.addfile(item, io.BytesIO(text))


def as_set(x, y):
    return sorted(zip(y.tolist(), map(bytes, x.astype(np.uint8)), strict=True))


@pytest.mark.parametrize("packed", [True, False])
def test_every_row_of_the_official_format_arrives_once(tmp_path, shoppers, packed):
    """Unpacked with the line ends of Windows, and none after the last line."""
    if packed:
        pack(tmp_path / "dataset_purchase.tgz", as_text(shoppers))
    else:
        (tmp_path / "dataset_purchase").write_bytes(
            as_text(shoppers).replace(b"\n", b"\r\n").rstrip()
        )
    data, again, other = (load("purchase100", rows=200, seed=seed) for seed in (0, 0, 1))
    assert (len(data.train_y), len(data.test_y)) == (134, 66)
    mine = as_set(
        np.concatenate([data.train_x, data.test_x]), np.concatenate([data.train_y, data.test_y])
    )
    assert mine == as_set(shoppers[:, 1:], shoppers[:, 0] - 1)
    assert list(data.sha256s) == ["dataset_purchase.tgz" if packed else "dataset_purchase"]
    np.testing.assert_array_equal(data.train_x, again.train_x)
    assert (data.train_x != other.train_x).any()


def test_bad_content_with_its_line_another_number_of_rows_and_a_bad_archive_are_refused(
    tmp_path, shoppers
):
    for spoil, said in (
        (lambda t: t[:-700], "line 200: expected a class from 1 to 100 and 600 times 0 or 1"),
        (lambda t: t.replace(b",1\n", b"\n", 1), "line .: .*got 600 columns"),
        (lambda t: t.replace(b"\n", b",0\n", 1), "line 1: .*got 602 columns"),
        (lambda t: t.replace(b",1,", b",2,", 1), "line 1: expected"),
        (lambda t: b"101" + t[t.index(b",") :], "line 1: .*101,"),
        (lambda t: b"0" + t[t.index(b",") :], "line 1: .*: 0,"),
        (lambda t: b"", "the file is empty"),
        (lambda t: b"".join(t.splitlines(keepends=True)[:150]), "expected 200 rows, got 150"),
    ):
        pack(tmp_path / "dataset_purchase.tgz", spoil(as_text(shoppers)))
        assert "dataset_purchase.tgz" in refused(said, load, "purchase100", rows=200)
    (tmp_path / "dataset_purchase.tgz").unlink()
    (tmp_path / "dataset_purchase").write_bytes(as_text(shoppers[3:]))
    refused("expected 197324 rows, got 197; pass rows=197", load, "purchase100")
    assert len(load("purchase100", rows=None).test_y) == 66  # 33 % are 65.01, rounded up
    assert np.ceil(purchase.TEST_SHARE * 311_540) == 102_809, "the paper's split of all customers"
    path = tmp_path / "dataset_purchase.tgz"
    pack(path, as_text(shoppers))
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"not an archive", b""):
        path.write_bytes(content)
        refused("damaged or cut short", load, "purchase100", rows=200)
    pack(path, as_text(shoppers), name="dataset_texas")
    refused("missing: dataset_purchase; found: dataset_texas", load, "purchase100", rows=200)


def test_generated_shoppers_have_their_documented_chances_and_say_what_they_are():
    data = load("purchase100_like", n_train=20_000, n_test=1_000, seed=3, mixing=0.325)
    assert set(np.unique(data.train_x)) == {0.0, 1.0}
    assert data.classes == 100
    records = np.bincount(data.train_y, minlength=100)
    assert abs(records - 200).max() < 6 * np.sqrt(200)  # equally likely classes
    rng = np.random.default_rng(3)
    base = rng.random(600, dtype=np.float32)
    chances = 0.325 * rng.random((100, 600), dtype=np.float32) + 0.675 * base
    rates = np.array([data.train_x[data.train_y == label].mean(axis=0) for label in range(100)])
    assert (abs(rates - chances) / np.sqrt(0.25 / records[:, None])).max() < 6
    left = (data.train_x - rates[data.train_y])[:, :40]
    pairs = np.corrcoef(left.T)[np.triu_indices(40, 1)] * np.sqrt(len(left))
    assert abs(pairs).max() < 5  # 780 standard normal values
    first, again = (load("purchase100_like", n_train=50, n_test=20, seed=1) for _ in range(2))
    np.testing.assert_array_equal(first.train_x, again.train_x)
    assert first.name == "purchase100_like"
    assert "not Purchase-100" in first.description
    for options in ({"n_train": 0}, {"n_test": 0}, {"mixing": 0}, {"mixing": 1.1}):
        refused(next(iter(options)), load, "purchase100_like", **options)
