"""What the sweep tests compute: jobs that leave a file behind for every execution, or do harm."""

import os
import signal
import time
import uuid
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Job:
    """One configuration; ``trace`` is a folder that gets a file for every finished execution."""

    number: int
    trace: str = ""
    group: str = "a"
    seconds: float = 0.0
    deed: str = ""


def square(batch):
    """The square of each number, with the process and the size of the call."""
    for job in batch:
        if job.deed == "raise":
            raise ValueError(f"{job.number} is a bad number")
        if job.deed == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if job.deed == "end the batch job" and not list(Path(job.trace).glob("ended")):
            (Path(job.trace) / "ended").touch()
            os.kill(os.getppid(), signal.SIGKILL)  # what restarts a worker that died
            os.kill(os.getpid(), signal.SIGKILL)
        if job.deed == "interrupt":
            raise KeyboardInterrupt
        time.sleep(job.seconds)
    for job in batch:
        if job.trace:
            (Path(job.trace) / f"{job.number}-{uuid.uuid4().hex}").touch()
    device = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    about = {"pid": os.getpid(), "calls": len(batch), "device": device}
    return [{"square": job.number**2, **about} for job in batch]


def squares(pairs):
    return {config.number: result["square"] for config, result in pairs}


def group(job):
    """Jobs of one group may share a call."""
    return job.group


def executions(folder):
    """How often each number was computed to the end."""
    done = [int(path.name.partition("-")[0]) for path in Path(folder).glob("*-*")]
    return {number: done.count(number) for number in set(done)}


def assert_all_end(pids):
    """None of the processes is left after a while."""
    until = time.monotonic() + 15
    while any(map(_alive, pids)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(map(_alive, pids)), "workers outlived the sweep"


def local_cluster(threads=1):
    """A scheduler and one worker with so many threads, in this process."""
    import pytest  # here, since workers import this file

    here = {"processes": False, "dashboard_address": "127.0.0.1:0", "protocol": "tcp"}
    distributed = pytest.importorskip("distributed")
    return distributed.LocalCluster(n_workers=1, threads_per_worker=threads, **here)


def _alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
