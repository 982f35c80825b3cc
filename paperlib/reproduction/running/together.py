"""Running every notebook of a profile that changed, several at one time."""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import fmean
from typing import IO, Any

from paperlib.core.checks import check_at_least
from paperlib.io.sources import Known
from paperlib.reproduction.made_up import made_up_folder
from paperlib.reproduction.running.book import (
    current_result,
    judged_notebooks,
    last_seconds,
    prune,
    show_run,
    write_status,
)
from paperlib.reproduction.running.execute import Job, plan
from paperlib.reproduction.running.project import Project

Say = Callable[[str], None]


@dataclass
class _Running:
    """A run in a process of its own, with what it prints, and when it started (monotonic, s)."""

    job: Job
    process: "subprocess.Popen[Any]"
    output: IO[bytes]
    started: float

    @classmethod
    def start(cls, job: Job) -> "_Running":
        """Start ``paperlib run`` for the book, or for the seed of a repetition."""
        command = [sys.executable, "-m", "paperlib", "run", job.stem, "--profile", job.profile]
        command += ["--book"] if job.seed is None else ["--seed", str(job.seed)]
        output = tempfile.TemporaryFile()  # noqa: SIM115 (closed when the run ends)
        streams: dict[str, Any] = {"stdout": output, "stderr": subprocess.STDOUT}
        # In a session of its own: a Ctrl-C of the terminal reaches only this process, which then
        # ends the others in order.
        process = subprocess.Popen(command, cwd=job.project.root, start_new_session=True, **streams)
        return cls(job, process, output, time.monotonic())

    def printed(self) -> str:
        """What the run has printed so far."""
        self.output.seek(0)
        return self.output.read().decode("utf-8", errors="replace").rstrip()

    def wait_or_kill(self) -> None:
        """Give the process 20 seconds to end, then end it by force."""
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.output.close()


def run_all(
    project: Project, *, profile: str, jobs: int = 2, seed: int | None = None, say: Say = print
) -> list[str]:
    """Run every notebook whose source, parameters, code, versions or data changed; renew the
    status.

    Each run is a process of its own: a failing one stops no other, and no finished one is repeated.

    Args:
        jobs: Number of notebooks run at one time, 1 or more.
        seed: Seed of a repetition, for the outcomes alone; None for the runs that the pages show.
        say: Function that receives each line of progress.

    Returns:
        Names of the notebooks that failed.

    Raises:
        ValueError: ``jobs`` below 1, or a profile that there is not.
    """
    check_at_least(1, jobs=jobs)
    stems = project.stems() if seed is None else judged_notebooks(project)
    planned = [
        plan(project, stem, profile=profile, seed=seed, where=project.root) for stem in stems
    ]
    memo: Known = {}  # what the notebooks share is read once
    to_do = [job for job in planned if current_result(replace(job, memo=memo)) is None]
    seconds = {job.stem: last_seconds(job) for job in to_do}
    prune(project)
    if to_do and project.made_up(profile):
        say(f"Made-up data: {made_up_folder()}")  # once, before several runs ask for it
    repetition = "" if seed is None else f", seed {seed}"
    say(f"Profile {profile}{repetition}: {len(planned)} notebooks, {len(to_do)} to run")
    for job in planned:
        if job not in to_do and job.seed is None:
            show_run(job)
    # Longest first keeps all processes busy to the end; unknown times count as long, in the
    # profile's order.
    order = {stem: index for index, stem in enumerate(project.profile(profile))}
    to_do.sort(key=lambda job: (-(seconds[job.stem] or 1e9), order.get(job.stem, 0)))
    failed = _run_many(to_do, seconds, jobs, say)
    write_status(project, profile)
    return failed


def _run_many(to_do: list[Job], seconds: dict[str, float | None], jobs: int, say: Say) -> list[str]:
    """Run the jobs ``to_do``, ``jobs`` at one time, and say how long each took; returns the names
    of those that failed.

    ``seconds`` has the times of earlier runs by name, None for none; a run that ends replaces its
    own.
    """
    waiting = list(to_do)
    running: list[_Running] = []
    failed: list[str] = []
    done = 0
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(_Running.start(waiting.pop(0)))
            finished = [run for run in running if run.process.poll() is not None]
            for run in finished:
                running.remove(run)
                done += 1
                took = time.monotonic() - run.started
                seconds[run.job.stem] = took
                if run.process.returncode:
                    failed.append(run.job.stem)
                    say(run.printed())
                run.output.close()
                left = _time_left(waiting, running, seconds, jobs)
                say(f"  [{done}/{len(to_do)}] {run.job.stem}: {took:.0f} s{left}")
            if not finished:
                time.sleep(0.05)
    finally:
        _interrupt(running)
    return failed


def _time_left(
    waiting: list[Job], running: list[_Running], seconds: dict[str, float | None], jobs: int
) -> str:
    """How long all that waits or runs will take, in words, by earlier runs; empty at the end.

    A notebook that was never run counts with the mean of the others.
    """
    if not waiting and not running:
        return ""
    usual = fmean(filter(None, seconds.values()))
    now = time.monotonic()
    left = sum(seconds[job.stem] or usual for job in waiting)
    for run in running:
        whole = seconds[run.job.stem] or usual
        left += max(0.0, whole - (now - run.started))
    return f"; about {left / jobs:.0f} s left"


def _interrupt(running: list[_Running]) -> None:
    """End runs by an interrupt, so that they remove their folders, and then by force."""
    for run in running:
        run.process.send_signal(signal.SIGINT)
    for run in running:
        run.wait_or_kill()
