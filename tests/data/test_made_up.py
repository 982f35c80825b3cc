"""Made-up data: read by the loaders of the true data, the same every time, and never taken for the truth."""

import json

import pytest

from paperlib.data import load
from paperlib.data.files import MANIFEST, check_sha256, made_up
from paperlib.data.made_up import made_up_folder, made_up_variables
from paperlib.io import file_sha256


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield made_up_folder()


@pytest.fixture
def chosen(folder, monkeypatch):
    for name, value in made_up_variables(folder).items():
        monkeypatch.setenv(name, value)
    return folder


def test_tables_are_read_by_the_official_loaders_and_can_be_learned(chosen):
    adult, purchase = load("adult"), load("purchase100")
    assert (len(adult.train_y), len(adult.test_y)) == (1_400, 700)
    assert 0.2 < adult.train_y.mean() < 0.3
    assert purchase.train_x.shape == (1_005, 600)
    assert purchase.classes == 100


def test_the_folder_is_written_once_and_always_the_same(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    again = made_up_folder()
    written = (again / MANIFEST).stat().st_mtime_ns
    assert made_up_folder() == again
    assert (again / MANIFEST).stat().st_mtime_ns == written
    assert (again / MANIFEST).read_bytes() == (folder / MANIFEST).read_bytes()


def test_a_pinned_checksum_gives_way_to_the_manifest_and_to_nothing_else(chosen, tmp_path, monkeypatch):
    assert made_up()
    path = chosen / "adult.data"
    assert json.loads((chosen / MANIFEST).read_text())["sha256"]["adult.data"] == file_sha256(path)
    check_sha256(path, "the checksum of the true file")
    (tmp_path / MANIFEST).write_text(json.dumps({"sha256": {}}))
    (tmp_path / "adult.data").write_text("a true file among made-up ones")
    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path))
    with pytest.raises(ValueError, match="of no made-up file"):
        check_sha256(tmp_path / "adult.data", file_sha256(tmp_path / "adult.data"))


def test_true_files_are_still_checked(tmp_path, monkeypatch):
    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path))
    (tmp_path / "adult.data").write_text("39, State-gov")
    assert not made_up()
    with pytest.raises(ValueError, match="expected SHA-256 00"):
        check_sha256(tmp_path / "adult.data", "00")
