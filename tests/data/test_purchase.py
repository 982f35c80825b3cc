"""Purchase-100: a small file in the official format, bad ones, and the generator."""

import io
import tarfile

import numpy as np
import pytest

from paperlib.data import load
from paperlib.data.tables import purchase
from paperlib.io import DownloadError


@pytest.fixture
def shoppers(tmp_path, monkeypatch):
    """200 made-up shoppers, and a data folder for them without network."""

    def no_network(url, path, **_):
        raise DownloadError(f"{url} cannot be fetched: no network")

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
        (tmp_path / "dataset_purchase").write_bytes(as_text(shoppers).replace(b"\n", b"\r\n").rstrip())
    data, again, other = (load("purchase100", rows=200, seed=seed) for seed in (0, 0, 1))
    assert (len(data.train_y), len(data.test_y)) == (134, 66)
    mine = as_set(np.concatenate([data.train_x, data.test_x]), np.concatenate([data.train_y, data.test_y]))
    assert mine == as_set(shoppers[:, 1:], shoppers[:, 0] - 1)
    assert list(data.sha256s) == ["dataset_purchase.tgz" if packed else "dataset_purchase"]
    np.testing.assert_array_equal(data.train_x, again.train_x)
    assert (data.train_x != other.train_x).any()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda t: t[:-700], "line 200: expected a class from 1 to 100 and 600 times 0 or 1"),
        (lambda t: t.replace(b",1\n", b"\n", 1), "line .: .*got 600 columns"),
        (lambda t: t.replace(b"\n", b",0\n", 1), "line 1: .*got 602 columns"),
        (lambda t: t.replace(b",1,", b",2,", 1), "line 1: expected"),
        (lambda t: t.replace(b",1,", b";1,", 1), "line 1: expected"),
        (lambda t: b"101" + t[t.index(b",") :], "line 1: .*101,"),
        (lambda t: b"0" + t[t.index(b",") :], "line 1: .*: 0,"),
        (lambda t: b"", "the file is empty"),
        (lambda t: b"".join(t.splitlines(keepends=True)[:150]), "expected 200 rows, got 150"),
    ],
)  # fmt: skip
def test_bad_content_is_refused_with_its_line(tmp_path, shoppers, spoil, said):
    pack(tmp_path / "dataset_purchase.tgz", spoil(as_text(shoppers)))
    with pytest.raises(ValueError, match=said) as caught:
        load("purchase100", rows=200)
    assert "dataset_purchase.tgz" in str(caught.value)


def test_another_number_of_rows_needs_to_be_asked_for(tmp_path, shoppers):
    (tmp_path / "dataset_purchase").write_bytes(as_text(shoppers[1:]))
    with pytest.raises(ValueError, match="expected 197324 rows, got 199; pass rows=199"):
        load("purchase100")
    assert len(load("purchase100", rows=None).test_y) == 66  # 33 %, rounded up


def test_a_truncated_or_foreign_archive_is_refused(tmp_path, shoppers):
    path = tmp_path / "dataset_purchase.tgz"
    pack(path, as_text(shoppers))
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"not an archive", b""):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="damaged or cut short"):
            load("purchase100", rows=200)
    pack(path, as_text(shoppers), name="dataset_texas")
    with pytest.raises(ValueError, match="missing: dataset_purchase; found: dataset_texas"):
        load("purchase100", rows=200)


def test_generated_shoppers_have_their_documented_chances_and_no_other_structure():
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


def test_generator_is_seeded_and_says_what_it_is():
    first, again = (load("purchase100_like", n_train=50, n_test=20, seed=1) for _ in range(2))
    np.testing.assert_array_equal(first.train_x, again.train_x)
    assert first.name == "purchase100_like"
    assert "not Purchase-100" in first.description
    for options in ({"n_train": 0}, {"n_test": 0}, {"mixing": 0}, {"mixing": 1.1}):
        with pytest.raises(ValueError, match=next(iter(options))):
            load("purchase100_like", **options)
