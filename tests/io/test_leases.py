"""One process makes an entry while the others wait; a holder that is lost is replaced."""

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path
from socket import gethostname

import pytest

from paperlib.io import Cache, OutputError, lease

CONFIG = {"stage": "helpers"}
SPAWN = multiprocessing.get_context("spawn")


def ask(folder: str, seconds: float) -> None:
    """Ask for the entry; every computation leaves a file, named by its process, when it starts."""

    def compute() -> dict[str, float]:
        (Path(folder) / f"started-{os.getpid()}").touch()
        time.sleep(seconds)
        return {"pid": float(os.getpid())}

    Cache(Path(folder)).get(CONFIG, compute)


def held(path: Path, *, seconds: float) -> float:
    """How many seconds it took to get the lease."""
    before = time.monotonic()
    with lease(path, lambda: None, seconds=seconds):
        return time.monotonic() - before


def test_processes_compute_an_entry_once(tmp_path: Path) -> None:
    processes = [SPAWN.Process(target=ask, args=(str(tmp_path), 0.5)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 3
    assert len(list(tmp_path.glob("started-*"))) == 1
    assert [path.suffix for path in tmp_path.iterdir() if path.suffix] == [".cache"]


def test_a_killed_holder_is_replaced_at_once(tmp_path: Path) -> None:
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


def test_a_holder_on_another_machine_is_replaced_when_its_lease_runs_out(tmp_path: Path) -> None:
    path = tmp_path / "a.lease"
    with lease(path, lambda: None, seconds=0.4):
        left = path.read_text()
    assert gethostname() in left
    path.write_text(left.replace(gethostname(), "elsewhere"))
    assert 0.4 < held(path, seconds=0.4) < 5
    assert not path.exists()


@pytest.mark.parametrize("fails", [False, True])
def test_a_renewed_lease_is_not_taken_over_and_goes_on_at_its_end(tmp_path: Path, fails: bool) -> None:
    path, order = tmp_path / "a.lease", list[str]()

    def hold() -> None:
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


def test_a_folder_that_cannot_be_written_is_named_before_anything_is_computed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot write"):
        Cache(tmp_path / "file").get(CONFIG, lambda: pytest.fail("computed"))
