"""What may stand in the place of a cache's entry and is none: it is computed again."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from paperlib.io import Cache
from paperlib.io.files import OutputError

CONFIG = {"m": 3}
WHOLE = np.arange(1000.0)
BITS = range(300)


def compute() -> dict[str, np.ndarray]:
    return {"x": WHOLE, "s": np.array(["a", "b"])}


def test_no_turned_bit_of_an_entry_is_accepted(tmp_path):
    cache = Cache(tmp_path)
    cache.get(CONFIG, compute)
    path = cache.path(CONFIG)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    accepted: list[int] = []
    for _ in BITS:
        damaged = bytearray(whole)
        index = int(rng.integers(len(damaged)))
        damaged[index] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        if cache.find(CONFIG) is not None:
            accepted.append(index)
    assert accepted == []
    path.write_bytes(whole)
    assert cache.find(CONFIG) is not None, "the whole one is"


def another_entry(path: Path) -> None:
    other = Cache(path.parent)
    other.put({"m": 4}, {"x": np.zeros(1000)})
    path.write_bytes(other.path({"m": 4}).read_bytes())


def link_to_nothing(path: Path) -> None:
    path.unlink()
    path.symlink_to("/nonexistent/x")


def lease_of_a_stranger(path: Path) -> None:
    path.unlink()
    path.with_suffix(".lease").write_text("no lease")


FAULTS: dict[str, Callable[[Path], object]] = {
    "nothing": lambda path: path.write_bytes(b""),
    "one byte": lambda path: path.write_bytes(path.read_bytes()[:1]),
    "ten bytes": lambda path: path.write_bytes(path.read_bytes()[:10]),
    "a hundred bytes": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "half": lambda path: path.write_bytes(path.read_bytes()[:4000]),
    "another entry": another_entry,
    "a link to nothing": link_to_nothing,
    "a stranger's lease": lease_of_a_stranger,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_stands_in_the_place_of_an_entry_is_no_entry(tmp_path, fault):
    cache = Cache(tmp_path)
    cache.get(CONFIG, compute)
    FAULTS[fault](cache.path(CONFIG))
    assert cache.find(CONFIG) is None
    calls: list[int] = []

    def again() -> dict[str, np.ndarray]:
        calls.append(1)
        return compute()

    np.testing.assert_array_equal(cache.get(CONFIG, again)["x"], WHOLE)
    assert calls == [1]


def test_a_folder_in_the_place_of_an_entry_is_named(tmp_path):
    cache = Cache(tmp_path)
    cache.path(CONFIG).mkdir(parents=True)
    with pytest.raises(OutputError, match="the path is a folder; nothing was changed there"):
        cache.get(CONFIG, compute)


def test_a_clock_that_was_set_back_keeps_nobody_waiting(tmp_path, monkeypatch):
    cache = Cache(tmp_path)
    cache.get(CONFIG, compute)
    now = time.time
    monkeypatch.setattr("time.time", lambda: now() - 10 * 365 * 86_400)
    monkeypatch.setattr("time.sleep", lambda _: pytest.fail("waited"))
    for config in (CONFIG, {"m": 5}):
        np.testing.assert_array_equal(cache.get(config, compute)["x"], WHOLE)
