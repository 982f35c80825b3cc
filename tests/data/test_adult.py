"""Adult: both file forms give the same rows, bad files are refused, nothing is learned from the test part."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paperlib.data import DataUnavailableError, load
from paperlib.data.tables import adult
from paperlib.io import DownloadError

WORKCLASSES = ("Private", "State-gov", "?", "Self-emp-inc")


def made_up_rows(count, seed):
    rng = np.random.default_rng(seed)
    rows = []
    for at in range(count):
        cells = {name: str(rng.integers(1, 90)) for name in adult.NUMERIC}
        cells |= {name: f"{name}-{rng.integers(0, 3)}" for name in adult.WORDS}
        cells |= {"workclass": WORKCLASSES[at % 4], "income": adult.LABELS[int(rng.random() < 0.25)]}
        rows.append(tuple(cells[name] for name in adult.COLUMNS))
    return rows


def uci_form(rows, *, test):
    """UCI's own form: blanks after commas, an empty last line; in the test part a comment and full stops."""
    lines = [", ".join(row) + ("." if test else "") for row in rows]
    return "\n".join([*(["|1x3 Cross validator"] if test else []), *lines, "", ""])


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """A small made-up Adult whose checksums are pinned in place of the real ones; nothing can be fetched."""
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


def test_both_file_forms_give_the_same_arrays(tmp_path, parts):
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
    far = [(*("1000000" if name == "age" else cell for name, cell in zip(adult.COLUMNS, row, strict=True)),)
           for row in parts["test"]]  # fmt: skip
    far[0] = tuple(
        "never seen" if name == "sex" else cell for name, cell in zip(adult.COLUMNS, far[0], strict=True)
    )
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


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda text: text[: len(text) // 2], "columns, got|expected"),
        (lambda text: text.rsplit("\n", 2)[0] + "\n", "expected 40 rows, got 39; the file is not whole"),
        (lambda text: text.replace(",", ";"), "expected 15 columns, got 1"),
        (lambda text: text.replace(">50K", "rich", 1), "expected the income <=50K or >50K, got 'rich'"),
        (lambda text: text.replace("race-0", "race-9", 1), "not the rows of UCI Adult"),
        (lambda text: text.replace("\n", ",extra\n"), "expected 15 columns, got 16"),
        (lambda text: text.replace("\n", "\n?"), "whole number for age"),
        (lambda text: "", "expected 40 rows, got 0"),
        (lambda text: "\udc80\x04\udc95pickle", r"adult_train\.csv"),  # bytes that are no text
    ],
)  # fmt: skip
def test_a_bad_file_is_refused_by_name(tmp_path, parts, spoil, said):
    write(tmp_path, parts, "csv")
    path = tmp_path / "adult_train.csv"
    path.write_text(spoil(path.read_text()), errors="surrogateescape")
    with pytest.raises(ValueError, match=said) as caught:
        load("adult")
    assert "adult_train.csv" in str(caught.value)


def test_uci_is_fetched_with_its_checksum_and_kept(tmp_path, parts, monkeypatch):
    asked = []

    def fetch(url, path, *, sha256=None):
        asked.append((url, sha256))
        test = path.name == "adult.test"
        Path(path).write_text(uci_form(parts["test" if test else "train"], test=test))

    monkeypatch.setattr(adult, "fetch", fetch)
    load("adult")
    load("adult")
    assert asked == [
        (adult.UCI + "adult.data", adult.TRAIN.uci_sha256),
        (adult.UCI + "adult.test", adult.TEST.uci_sha256),
    ]
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
    with pytest.raises(DataUnavailableError, match="not the two official parts"):
        load("adult")


def real_adult():
    folder = Path(os.environ.get("PAPERLIB_DATA", ""))
    return any((folder / name).is_file() for name in adult.TRAIN.files)


@pytest.mark.skipif(not real_adult(), reason="PAPERLIB_DATA holds no Adult files")
def test_the_official_files_have_the_official_counts():
    data = load("adult")
    assert data.train_x.shape == (32_561, 108)
    assert data.test_x.shape == (16_281, 108)
    assert (data.train_y.sum(), data.test_y.sum()) == (7_841, 3_846)
    unknown = [at for at, name in enumerate(data.features) if name.endswith("=?")]
    assert (data.train_x[:, unknown].max(axis=1) > 0).sum() == 2_399
    assert (data.test_x[:, unknown].max(axis=1) > 0).sum() == 1_221
