"""The cache gives back what was computed, once for all processes, and never trusts a damaged
entry.
"""

import contextlib
import errno
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

from paperlib.io import Cache
from paperlib.io.budget import UNTIL_VARIABLE, BudgetSpent
from paperlib.io.cache import lease
from paperlib.io.files import OutputError

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


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        ("paperlib.io.files.os.fsync", errno.ENOSPC, "the disk is full"),
        ("paperlib.io.files.os.fsync", errno.EDQUOT, "the disk quota is used up"),
        ("paperlib.io.cache.SoftFileLease.acquire", errno.EROFS, "the disk is read-only"),
        ("pathlib.Path.mkdir", errno.EACCES, "no permission to write there"),
    ],
)
def test_a_disk_that_takes_nothing_stops_no_run_and_is_named_once(
    tmp_path, monkeypatch, capsys, call, code, words
):
    cache = Cache(tmp_path / "cache")
    kept = cache.get({**CONFIG, "seed": 1}, Mock(return_value=ARRAYS))

    def fail(*_, **__):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(call, fail)
    monkeypatch.setattr("paperlib.io.files.os.fsync", fail)
    compute = Mock(return_value=ARRAYS)
    for calls in (1, 2):
        found = cache.get(CONFIG, compute)
        np.testing.assert_array_equal(found["losses"], ARRAYS["losses"])
        assert compute.call_count == calls
    assert capsys.readouterr().err == f"{cache.folder}: {words}; what is computed is not kept\n"
    again = cache.get({**CONFIG, "seed": 1}, lambda: pytest.fail("computed"))
    np.testing.assert_array_equal(again["losses"], kept["losses"])
    assert [path.suffix for path in cache.folder.iterdir()] == [".cache"]
    with pytest.raises(ValueError, match="models: expected an array of numbers"):
        cache.get(CONFIG, lambda: {"models": np.array([object()])})


def test_a_read_only_cache_has_its_checkpoint_elsewhere(tmp_path, monkeypatch, capsys):
    cache, used = Cache(tmp_path / "cache"), []

    def fail(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def compute(checkpoint):
        checkpoint.write_text("half")
        used.append(checkpoint)
        return ARRAYS

    assert cache.resumed(CONFIG, compute).keys() == ARRAYS.keys()
    assert used[0].parent == cache.folder
    monkeypatch.setattr("paperlib.io.cache.SoftFileLease.acquire", fail)
    monkeypatch.setattr("paperlib.io.files.temporary_file", fail)
    monkeypatch.setattr("tempfile.TemporaryFile", fail)
    assert cache.resumed({**CONFIG, "seed": 1}, compute).keys() == ARRAYS.keys()
    assert used[1].parent != cache.folder
    assert not used[1].parent.exists()
    assert capsys.readouterr().err.count("\n") == 1


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


def test_no_stage_begins_when_the_time_is_over_and_what_is_kept_is_still_read(
    tmp_path, monkeypatch
):
    cache, compute = Cache(tmp_path), Mock(return_value=ARRAYS)
    monkeypatch.setenv(UNTIL_VARIABLE, str(time.time() + 1000))
    cache.get(CONFIG, compute)
    monkeypatch.setenv(UNTIL_VARIABLE, "1")
    assert cache.get(CONFIG, lambda: pytest.fail("computed")).keys() == ARRAYS.keys()
    with pytest.raises(BudgetSpent, match="the same command goes on"):
        cache.get({**CONFIG, "seed": 1}, lambda: pytest.fail("computed"))
    assert len(list(tmp_path.glob("*"))) == 1, "the entry; the lease was given back"
