"""The cache gives back what was computed, once for all processes, and never trusts a damaged
entry.
"""

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path
from socket import gethostname
from unittest.mock import Mock

import numpy as np
import pytest

from paperlib.io import Cache, OutputError, lease

CONFIG = {"m": 3, "seed": 0}
SPAWN = multiprocessing.get_context("spawn")
ARRAYS = {"losses": np.arange(3.0), "names": np.array(["a", "b"]), "flags": np.array([True])}


def test_an_entry_is_computed_once_for_each_configuration_and_what_fails_leaves_none(tmp_path):
    compute, cache = Mock(return_value=ARRAYS), Cache(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        cache.get(CONFIG, Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(ValueError, match="models: expected an array of numbers"):
        cache.get(CONFIG, lambda: {"models": np.array([object()])})
    assert cache.find(CONFIG) is None
    assert list(tmp_path.iterdir()) == []
    first, second = cache.get(CONFIG, compute), cache.get(CONFIG, compute)
    assert compute.call_count == 1
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])
        assert first[name].dtype == second[name].dtype
    cache.get({**CONFIG, "seed": 1}, compute)
    assert compute.call_count == 2
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot write"):
        Cache(tmp_path / "file").get(CONFIG, lambda: pytest.fail("computed"))


def test_a_changed_byte_a_cut_and_a_wrong_name_of_an_entry_are_noticed(tmp_path):
    compute, cache = Mock(return_value=ARRAYS), Cache(tmp_path)
    cache.get(CONFIG, compute)
    whole = cache.path(CONFIG).read_bytes()
    changed = [
        whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in (0, 5, 40, 90, 200, 700)
    ]
    for calls, damaged in enumerate(
        (*changed, *(whole[:size] for size in (0, 1, 60, 300))), start=2
    ):
        cache.path(CONFIG).write_bytes(damaged)
        assert cache.find(CONFIG) is None
        cache.get(CONFIG, compute)
        assert compute.call_count == calls
        assert cache.find(CONFIG) is not None
    cache, other = Cache(tmp_path), {**CONFIG, "seed": 1}
    cache.get(other, Mock(return_value=ARRAYS))
    cache.path(other).rename(cache.path(CONFIG))
    assert cache.find(CONFIG) is None


def ask(folder, seconds):
    """Ask for the entry; every computation leaves a file, named by its process, when it starts."""

    def compute():
        (Path(folder) / f"started-{os.getpid()}").touch()
        time.sleep(seconds)
        return {"pid": float(os.getpid())}

    Cache(Path(folder)).get(CONFIG, compute)


def held(path, *, seconds):
    """How many seconds it took to get the lease."""
    before = time.monotonic()
    with lease(path, lambda: None, seconds=seconds):
        return time.monotonic() - before


def test_processes_compute_an_entry_once(tmp_path):
    processes = [SPAWN.Process(target=ask, args=(str(tmp_path), 0.5)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 3
    assert len(list(tmp_path.glob("started-*"))) == 1
    assert [path.suffix for path in tmp_path.iterdir() if path.suffix] == [".cache"]


def test_a_killed_holder_is_replaced_at_once(tmp_path):
    holder = SPAWN.Process(target=ask, args=(str(tmp_path), 60.0))
    holder.start()
    until = time.monotonic() + 30
    while not list(tmp_path.glob("started-*")) and time.monotonic() < until:
        time.sleep(0.01)
    os.kill(holder.pid or 0, signal.SIGKILL)
    holder.join(10)
    before = time.monotonic()
    assert Cache(tmp_path).get(CONFIG, lambda: {"pid": 1.0})["pid"] == 1.0
    assert time.monotonic() - before < 10


def test_a_holder_on_another_machine_is_replaced_when_its_lease_runs_out(tmp_path):
    path = tmp_path / "a.lease"
    with lease(path, lambda: None, seconds=0.4):
        left = path.read_text()
    assert gethostname() in left
    path.write_text(left.replace(gethostname(), "elsewhere"))
    assert 0.4 < held(path, seconds=0.4) < 5
    assert not path.exists()


@pytest.mark.parametrize("fails", [False, True])
def test_a_renewed_lease_is_not_taken_over_and_goes_on_at_its_end(tmp_path, fails):
    path, order = tmp_path / "a.lease", list[str]()

    def hold():
        with contextlib.suppress(RuntimeError), lease(path, lambda: None, seconds=0.3):
            order.append("first")
            time.sleep(0.9)  # three times its age
            order.append("first ends")
            if fails:
                raise RuntimeError

    thread = threading.Thread(target=hold)
    thread.start()
    while not order:
        time.sleep(0.01)
    held(path, seconds=0.3)
    order.append("second")
    thread.join()
    assert order == ["first", "first ends", "second"]
