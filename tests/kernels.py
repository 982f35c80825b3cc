"""Kernels forked from one process that has loaded the large packages: half of the time of many notebooks."""

import contextlib
import multiprocessing
import os
import resource
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

PACKAGES = (
    "torch._dynamo", "torch.func", "pandas", "matplotlib.pyplot", "scipy.stats", "sklearn.ensemble",
    "sklearn.linear_model", "ipykernel.kernelapp", "ipykernel.ipkernel", "matplotlib_inline.backend_inline",
)  # fmt: skip
FORKS = multiprocessing.get_context("forkserver")


def launch(command: list[str], *, count: Callable[[float], None], env: dict[str, str], **_: Any) -> "Forked":
    """A kernel in a session of its own, as Jupyter's `launch_kernel` starts it; its CPU time is counted."""
    FORKS.set_forkserver_preload(list(PACKAGES))
    return Forked(count, command[3:], env, os.getcwd(), os.readlink("/proc/self/fd/2"))


class Forked:
    """What Jupyter asks of the process of a kernel."""

    stdin = stdout = stderr = None
    loaded = 0.0  # CPU time that the packages took to load, seconds

    def __init__(self, count: Callable[[float], None], *about: Any) -> None:
        self.said, told = FORKS.Pipe(duplex=False)
        self.process, self.count = FORKS.Process(target=run, args=(told, *about)), count
        self.process.start()
        told.close()
        before, Forked.loaded = Forked.loaded, self.said.recv()
        count(Forked.loaded - before)
        self.pid = self.process.pid

    def poll(self) -> int | None:
        code = self.process.exitcode
        if code is not None and not self.said.closed:
            with contextlib.suppress(EOFError):  # it was killed
                self.count(self.said.recv())
            self.said.close()
        return code

    def wait(self, timeout: float | None = None) -> int | None:
        self.process.join(timeout)
        return self.poll()

    def send_signal(self, number: int) -> None:
        os.kill(self.process.pid or 0, number)


def run(told: Connection, words: list[str], environment: dict[str, str], folder: str, log: str) -> None:
    """Run a kernel in this process, and tell its CPU time at the end."""
    os.setsid()
    ticks = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[11:13]
    told.send(sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"))
    os.environ.clear()
    os.environ.update(environment, JPY_PARENT_PID=str(os.getppid()))
    os.chdir(folder)
    os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), 2)
    sys.argv = ["ipykernel_launcher", *words]
    from ipykernel import kernelapp

    try:
        kernelapp.launch_new_instance()
    finally:
        times = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        told.send(sum(one.ru_utime + one.ru_stime for one in times))
