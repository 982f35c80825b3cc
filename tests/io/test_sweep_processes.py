"""Sweeps on a real scheduler with two worker processes: deaths, kills, and schedulers already there."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paperlib.io import SweepError, run_sweep
from tests.io.sweep_jobs import Job, executions, group, square

pytestmark = pytest.mark.slow

SCRIPT = """
import os
from paperlib.io import run_sweep
from tests.io.sweep_jobs import Job, square

if __name__ == "__main__":
    jobs = [Job(number, {trace!r}, seconds=0.25) for number in range(14)]
    for config, result in run_sweep(square, jobs, folder={folder!r}, version="1"):
        print(result["pid"], flush=True)
"""


@pytest.fixture
def trace(tmp_path):
    folder = tmp_path / "trace"
    folder.mkdir()
    return str(folder)


@pytest.fixture(autouse=True)
def usual_status_port_is_taken():
    """As by another sweep at the same time."""
    with socket.socket() as taken:
        with contextlib.suppress(OSError):
            taken.bind(("", 8787))
            taken.listen()
        yield


def test_one_of_two_workers_killed_midway(tmp_path, trace):
    """Every result is there, none twice, and nothing that was finished is computed again."""
    jobs = [Job(number, trace, seconds=0.25) for number in range(12)]
    pairs, pids = [], set()
    for config, result in run_sweep(
        square, jobs, folder=tmp_path / "u", batch_key=group, max_batch=1, version="1"
    ):
        pairs.append((config.number, result["square"]))
        pids.add(result["pid"])
        if len(pairs) == 4:
            time.sleep(0.1)  # it is in the middle of its next call
            os.kill(result["pid"], signal.SIGKILL)
    assert sorted(pairs) == [(number, number**2) for number in range(12)]
    assert executions(trace) == dict.fromkeys(range(12), 1)
    assert len(pids) >= 2


def test_a_config_that_kills_its_worker_is_named_and_the_rest_goes_on(tmp_path, trace):
    jobs = [Job(number, trace, deed="die" if number == 2 else "") for number in range(6)]
    seen = []
    options = {"batch_key": group, "max_batch": 3, "retries": 0, "version": "1"}
    with pytest.raises(SweepError, match=r"number=2.*its process died at every attempt") as caught:
        seen.extend(run_sweep(square, jobs, folder=tmp_path / "u", **options))
    assert sorted(config.number for config, _ in seen) == [0, 1, 3, 4, 5]
    assert executions(trace) == dict.fromkeys([0, 1, 3, 4, 5], 1)
    assert [config.number for config, _ in caught.value.failures] == [2]


def started(tmp_path, trace):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(trace=trace, folder=str(tmp_path / "u")))
    root = str(Path(__file__).parents[2])
    return subprocess.Popen(
        [sys.executable, "-W", "error", str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background shells ignore it
        env={**os.environ, "PYTHONPATH": root, "PAPERLIB_PROGRESS": "0"},
    )


def alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks processes up in /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_sweep_goes_on_where_it_was(tmp_path, trace, how):
    process = started(tmp_path, trace)
    pids = {int(process.stdout.readline()) for _ in range(4)}
    if how == signal.SIGKILL:
        process.kill()
    else:
        os.killpg(process.pid, how)  # as a terminal does: the workers get it too
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert how == signal.SIGKILL or "KeyboardInterrupt" in errors
    before = len(list((tmp_path / "u").iterdir()))
    assert 4 <= before < 14
    until = time.monotonic() + 15
    while any(map(alive, pids)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(map(alive, pids)), "workers outlived the sweep"
    jobs = [Job(number, trace, seconds=0.25) for number in range(14)]
    done = list(run_sweep(square, jobs, folder=tmp_path / "u", version="1"))
    assert {config.number: result["square"] for config, result in done} == {n: n**2 for n in range(14)}
    # Only calls that were under way when the sweep was killed, one a worker, ran again.
    again = [number for number, times in executions(trace).items() if times > 1]
    assert len(again) <= 2


def test_a_scheduler_that_is_already_there_is_used_and_left_running(tmp_path, trace, monkeypatch):
    distributed = pytest.importorskip("distributed")
    jobs = [Job(number, trace) for number in range(8)]
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0", protocol="tcp"
    ) as cluster:
        monkeypatch.setenv("PAPERLIB_SCHEDULER", cluster.scheduler_address)
        first = list(run_sweep(square, jobs[:4], folder=tmp_path / "u", version="1"))
        with distributed.Client(cluster) as client:
            rest = list(run_sweep(square, jobs, folder=tmp_path / "u", client=client, version="1"))
            assert client.submit(sum, [1, 2]).result() == 3
        address = cluster.scheduler_address
    assert {result["pid"] for _, result in first} == {os.getpid()}
    assert (len(first), len(rest)) == (4, 8)
    assert executions(trace) == dict.fromkeys(range(8), 1)
    monkeypatch.setattr("paperlib.io.schedulers._SECONDS_TO_CONNECT", 0.5)
    monkeypatch.setenv("PAPERLIB_SCHEDULER", address)
    with pytest.raises(ConnectionError, match="no Dask scheduler answers at tcp://"):
        list(run_sweep(square, jobs, folder=tmp_path / "v", version="1"))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_a_batch_system_is_used_through_its_file(tmp_path, trace, monkeypatch):
    """dask-jobqueue's own stand-in for a batch system: it runs the job script as a process."""
    pytest.importorskip("dask_jobqueue")
    queue = tmp_path / "queue.yaml"
    queue.write_text(
        "jobs: 1\njobqueue:\n  local:\n    cores: 1\n    processes: 1\n    memory: 1GB\n"
        f"    local-directory: {tmp_path}\n    python: {sys.executable}\n"
    )
    monkeypatch.setenv("PAPERLIB_SCHEDULER", f"jobqueue:{queue}")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    done = list(
        run_sweep(square, [Job(number, trace) for number in range(4)], folder=tmp_path / "u", version="1")
    )
    assert sorted(result["square"] for _, result in done) == [0, 1, 4, 9]
    assert os.getpid() not in {result["pid"] for _, result in done}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_a_batch_job_that_ends_is_replaced(tmp_path, trace, monkeypatch):
    """As at the end of its walltime; without a new job the sweep would wait for ever."""
    pytest.importorskip("dask_jobqueue")
    dask = pytest.importorskip("dask")
    queue = tmp_path / "queue.yaml"
    queue.write_text(
        "jobs: 1\njobqueue:\n  local:\n    cores: 1\n    processes: 1\n    memory: 1GB\n"
        f"    local-directory: {tmp_path}\n    python: {sys.executable}\n"
    )
    monkeypatch.setenv("PAPERLIB_SCHEDULER", f"jobqueue:{queue}")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    jobs = [Job(number, trace, deed="end the batch job" if number == 1 else "") for number in range(3)]
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1s"}):
        done = list(run_sweep(square, jobs, folder=tmp_path / "u", version="1"))
    assert sorted(result["square"] for _, result in done) == [0, 1, 4]
    assert (Path(trace) / "ended").exists()
    assert executions(trace) == dict.fromkeys(range(3), 1)


def test_each_local_process_has_a_gpu_of_its_own_also_after_it_was_replaced(tmp_path, trace, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7,9")
    jobs = [Job(number, trace, seconds=0.25) for number in range(400)]
    devices = {}
    for config, result in run_sweep(square, jobs, folder=tmp_path / "u", version="1"):
        devices.setdefault(result["pid"], set()).add(result["device"])
        if config.number == 2:
            os.kill(result["pid"], signal.SIGKILL)
        if len(devices) == 3:
            break
    assert sorted(map(sorted, devices.values())) in ([["7"], ["7"], ["9"]], [["7"], ["9"], ["9"]])
