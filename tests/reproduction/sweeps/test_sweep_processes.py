"""Sweeps on a real scheduler with worker processes: deaths, kills, and schedulers already there."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paperlib.reproduction.sweeps import SweepError, run_sweep
from tests.reproduction.sweeps.sweep_jobs import (
    Job,
    assert_all_end,
    executions,
    local_cluster,
    square,
    squares,
)

pytestmark = pytest.mark.slow

SCRIPT = """
from paperlib.reproduction.sweeps import run_sweep
from tests.reproduction.sweeps.sweep_jobs import Job, square

if __name__ == "__main__":
    jobs = [Job(number, {trace!r}, seconds=0.25) for number in range(14)]
    for config, result in run_sweep(square, jobs, folder={folder!r}, version="1", workers=1):
        print(result["pid"], flush=True)
"""


USUAL_STATUS_PORT = 8787


@pytest.fixture(autouse=True)
def usual_status_port_is_taken():
    """As by another sweep at the same time."""
    with socket.socket() as taken:
        with contextlib.suppress(OSError):
            taken.bind(("", USUAL_STATUS_PORT))
            taken.listen()
        yield


def test_a_worker_killed_midway_loses_nothing_and_its_successor_has_its_gpu(
    tmp_path, trace, monkeypatch
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7,9")
    jobs = [
        Job(number, trace, seconds=0.25) for number in range(4_000)
    ]  # ends once the successor works
    pairs, devices = [], {}
    for config, result in run_sweep(square, jobs, folder=tmp_path / "u", version="1"):
        pairs.append((config, result))
        devices.setdefault(result["pid"], set()).add(result["device"])
        if len(pairs) == 4:
            time.sleep(0.1)  # it is in the middle of its next call
            os.kill(result["pid"], signal.SIGKILL)
        if len(devices) == 3 and len(pairs) >= 12:
            break
    assert sorted(map(sorted, devices.values())) in ([["7"], ["7"], ["9"]], [["7"], ["9"], ["9"]])
    assert squares(pairs) == {config.number: config.number**2 for config, _ in pairs}
    done = run_sweep(square, jobs[:8], folder=tmp_path / "u", version="1", workers=0)
    assert squares(done) == {number: number**2 for number in range(8)}
    times = [executions(trace)[number] for number in range(8)]
    assert sum(times) <= 9, "only a result still on the dead worker is computed again"


def connects_to(address: str, port: int) -> bool:
    """Whether a call from another address than 127.0.0.1 is answered."""
    with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=5):
        return True
    return False


def test_no_process_of_a_local_sweep_listens_to_other_machines(tmp_path, trace):
    """Dask runs what it is sent: looked at while results come in, in this process and below it."""
    psutil = pytest.importorskip("psutil")
    addresses: list[str] = []
    reached: set[int] = set()
    jobs = [Job(number, trace, seconds=0.25) for number in range(4)]
    for _ in run_sweep(square, jobs, folder=tmp_path / "u", version="1", workers=2):
        this_process = psutil.Process()
        for process in [this_process, *this_process.children(recursive=True)]:
            for connection in process.net_connections(kind="inet"):
                if connection.status == psutil.CONN_LISTEN:
                    if connects_to("127.0.0.2", connection.laddr.port):
                        reached.add(connection.laddr.port)
                    if connection.laddr.port != USUAL_STATUS_PORT:
                        addresses.append(connection.laddr.ip)
    assert len(addresses) >= 5, "scheduler and its status page, two workers, two keepers"
    assert set(addresses) == {"127.0.0.1"}
    if sys.platform == "linux":  # elsewhere no second address of this computer is sure to exist
        assert reached == {USUAL_STATUS_PORT}, "the port of the fixture, which is open to all"


def test_a_config_that_kills_its_worker_is_named_and_the_rest_goes_on(tmp_path, trace):
    jobs = [Job(number, trace, deed="die" if number == 2 else "") for number in range(8)]
    seen = []
    with pytest.raises(SweepError, match=r"number=2.*its process died at every attempt") as caught:
        seen.extend(
            run_sweep(square, jobs, folder=tmp_path / "u", retries=1, workers=1, version="1")
        )
    assert sorted(squares(seen)) == [0, 1, 3, 4, 5, 6, 7]
    assert [config.number for config, _ in caught.value.failures] == [2]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks processes up in /proc")
def test_a_killed_sweep_goes_on_where_it_was(tmp_path, trace):
    """An interrupted one: `tests/reproduction/running/test_sweep_notebooks.py`."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(trace=trace, folder=str(tmp_path / "u")))
    process = subprocess.Popen(
        [sys.executable, "-W", "error", str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "PAPERLIB_PROGRESS": "0"},
    )
    pids = {int(process.stdout.readline()) for _ in range(4)}
    process.kill()
    process.communicate(timeout=60)
    assert 4 <= len(list((tmp_path / "u").iterdir())) < 14
    assert_all_end(pids)
    jobs = [Job(number, trace, seconds=0.25) for number in range(14)]
    done = run_sweep(square, jobs, folder=tmp_path / "u", version="1", workers=0)
    assert squares(done) == {number: number**2 for number in range(14)}
    # Only calls that were not on disk when the sweep was killed, at most two a worker, ran again.
    assert sum(times > 1 for times in executions(trace).values()) <= 2


def test_a_scheduler_that_is_already_there_is_used_and_left_running(tmp_path, trace, monkeypatch):
    jobs = [Job(number, trace) for number in range(8)]
    with local_cluster() as cluster:
        monkeypatch.setenv("PAPERLIB_SCHEDULER", cluster.scheduler_address)
        first = list(run_sweep(square, jobs[:4], folder=tmp_path / "u", version="1"))
        with cluster.get_client() as client:
            rest = list(run_sweep(square, jobs, folder=tmp_path / "u", client=client, version="1"))
            assert client.submit(sum, [1, 2]).result() == 3
    assert {result["pid"] for _, result in first} == {os.getpid()}
    assert (len(first), len(rest)) == (4, 8)
    assert executions(trace) == dict.fromkeys(range(8), 1)
    monkeypatch.setattr("paperlib.reproduction.sweeps.schedulers._SECONDS_TO_CONNECT", 0.5)
    with pytest.raises(ConnectionError, match="no Dask scheduler answers at tcp://"):
        list(run_sweep(square, jobs, folder=tmp_path / "v", version="1"))


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)
def test_a_batch_system_is_used_by_its_file_and_a_job_that_ends_is_replaced(
    tmp_path, trace, monkeypatch
):
    """As at the end of its walltime; dask-jobqueue's own stand-in runs the job script as a
    process.
    """
    pytest.importorskip("dask_jobqueue")
    dask = pytest.importorskip("dask")
    distributed = pytest.importorskip("distributed")
    queue = tmp_path / "queue.yaml"
    queue.write_text(
        "jobs: 1\njobqueue:\n  local:\n    cores: 1\n    processes: 1\n    memory: 1GB\n"
        f"    local-directory: {tmp_path}\n    python: {sys.executable}\n"
    )
    monkeypatch.setenv("PAPERLIB_SCHEDULER", f"jobqueue:{queue}")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    monkeypatch.setattr("paperlib.reproduction.sweeps.schedulers._SECONDS_TO_REPLACE", 1)
    jobs = [
        Job(number, trace, deed="end the batch job" if number == 1 else "") for number in range(3)
    ]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    addresses, folders, modes = set(), set(), set()
    done = []
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1s"}):
        for pair in run_sweep(square, jobs, folder=tmp_path / "u", version="1"):
            done.append(pair)
            addresses.add(distributed.default_client().scheduler.address)
            folders |= set((tmp_path / "cache/paperlib").glob("sweep-credentials-*"))
            modes |= {folder.stat().st_mode & 0o777 for folder in folders}
    assert squares(done) == {0: 0, 1: 1, 2: 4}
    assert (Path(trace) / "ended").exists()
    assert os.getpid() not in {result["pid"] for _, result in done}
    assert {address.partition("://")[0] for address in addresses} == {"tls"}
    assert len(folders) == 1
    assert modes == {0o700}
    assert not any(folder.exists() for folder in folders), "credentials outlived their sweep"


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)
def test_a_lost_scheduler_ends_the_sweep_and_what_is_finished_is_kept(tmp_path, trace, monkeypatch):
    cluster = local_cluster()
    monkeypatch.setenv("PAPERLIB_SCHEDULER", cluster.scheduler_address)
    jobs = [Job(number, trace, seconds=0.25) for number in range(8)]
    done = run_sweep(square, jobs, folder=tmp_path / "u", version="1")
    next(done)
    cluster.close()
    with pytest.raises(SweepError, match="the scheduler was lost"):
        list(done)
    assert len(list((tmp_path / "u").iterdir())) >= 1
