"""The cache gives back what was computed, and never trusts a damaged entry."""

from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from paperlib.io import Cache

CONFIG = {"m": 3, "seed": 0}


ARRAYS = {"losses": np.arange(3.0), "names": np.array(["a", "b"]), "flags": np.array([True])}


def test_an_entry_is_computed_once_for_each_configuration_and_read_back_equal(tmp_path: Path) -> None:
    compute, cache = Mock(return_value=ARRAYS), Cache(tmp_path)
    first, second = cache.get(CONFIG, compute), cache.get(CONFIG, compute)
    assert compute.call_count == 1
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])
        assert first[name].dtype == second[name].dtype
    cache.get({**CONFIG, "seed": 1}, compute)
    assert compute.call_count == 2


def test_one_changed_byte_anywhere_and_a_cut_entry_are_noticed(tmp_path: Path) -> None:
    compute, cache = Mock(return_value=ARRAYS), Cache(tmp_path)
    cache.get(CONFIG, compute)
    whole = cache.path(CONFIG).read_bytes()
    changed = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in (0, 5, 40, 90, 200, 700)]
    for calls, damaged in enumerate((*changed, *(whole[:size] for size in (0, 1, 60, 300))), start=2):
        cache.path(CONFIG).write_bytes(damaged)
        assert cache.find(CONFIG) is None
        cache.get(CONFIG, compute)
        assert compute.call_count == calls
        assert cache.find(CONFIG) is not None


def test_a_sound_entry_under_a_wrong_name_is_not_trusted(tmp_path: Path) -> None:
    cache, other = Cache(tmp_path), {**CONFIG, "seed": 1}
    cache.get(other, Mock(return_value=ARRAYS))
    cache.path(other).rename(cache.path(CONFIG))
    assert cache.find(CONFIG) is None


def test_python_objects_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="models: expected an array of numbers"):
        Cache(tmp_path).get(CONFIG, lambda: {"models": np.array([object()])})
    assert list(tmp_path.iterdir()) == []


def test_a_failed_computation_leaves_no_entry(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        Cache(tmp_path).get(CONFIG, Mock(side_effect=KeyboardInterrupt))
    assert Cache(tmp_path).find(CONFIG) is None
