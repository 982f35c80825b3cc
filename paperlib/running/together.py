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

from paperlib.core import check_at_least
from paperlib.data.made_up import made_up_folder
from paperlib.io.sources import Known
from paperlib.running.book import (
    current_result,
    judged_notebooks,
    last_seconds,
    prune,
    show_run,
    write_status,
)
from paperlib.running.execute import Job, plan
from paperlib.running.project import Project

Say = Callable[[str], None]


@dataclass
class _Running:
    job: Job
    process: "subprocess.Popen[Any]"
    output: IO[bytes]
    started: float

    @classmethod
    def start(cls, job: Job) -> "_Running":
        where = ["--book"] if job.seed is None else ["--seed", str(job.seed)]
        command = [
            sys.executable,
            "-m",
            "paperlib",
            "run",
            job.stem,
            "--profile",
            job.profile,
            *where,
        ]
        output = tempfile.TemporaryFile()  # noqa: SIM115 (closed when the run ends)
        streams: dict[str, Any] = {"stdout": output, "stderr": subprocess.STDOUT}
        # In a session of its own: a Ctrl-C of the terminal reaches only this process, which then
        # ends the others in order.
        process = subprocess.Popen(command, cwd=job.project.root, start_new_session=True, **streams)
        return cls(job, process, output, time.monotonic())


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
    """
    check_at_least(1, jobs=jobs)
    stems = project.stems() if seed is None else judged_notebooks(project)
    every = [plan(project, stem, profile=profile, seed=seed, where=project.root) for stem in stems]
    known: Known = {}  # what the notebooks share is read once
    to_do = [job for job in every if current_result(replace(job, known=known)) is None]
    seconds = {job.stem: last_seconds(job) for job in to_do}
    prune(project)
    if to_do and project.made_up(profile):
        say(f"Made-up data: {made_up_folder()}")  # once, before several runs ask for it
    again = "" if seed is None else f", seed {seed}"
    say(f"Profile {profile}{again}: {len(every)} notebooks, {len(to_do)} to run")
    for job in every:
        if job not in to_do and job.seed is None:
            show_run(job)
    # Longest first keeps both processes busy to the end; unknown times count as long, in the
    # profile's order.
    order = {stem: place for place, stem in enumerate(project.profile(profile))}
    to_do.sort(key=lambda job: (-(seconds[job.stem] or 1e9), order.get(job.stem, 0)))
    failed = _run_many(to_do, seconds, jobs, say)
    write_status(project, profile)
    return failed


def _run_many(to_do: list[Job], seconds: dict[str, float | None], jobs: int, say: Say) -> list[str]:
    waiting, running = list(to_do), list[_Running]()
    failed, done = list[str](), 0
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
                    run.output.seek(0)
                    say(run.output.read().decode("utf-8", errors="replace").rstrip())
                run.output.close()
                usual, now = fmean(filter(None, seconds.values())), time.monotonic()
                whole = ((one.started, seconds[one.job.stem] or usual) for one in running)
                left = sum(seconds[job.stem] or usual for job in waiting)
                left += sum(max(0.0, long - (now - started)) for started, long in whole)
                goes_on = f"; about {left / jobs:.0f} s left" if waiting or running else ""
                say(f"  [{done}/{len(to_do)}] {run.job.stem}: {took:.0f} s{goes_on}")
            if not finished:
                time.sleep(0.05)
    finally:
        # Runs that still go on end by an interrupt, so that they remove their folders, then by
        # force.
        for run in running:
            run.process.send_signal(signal.SIGINT)
        for run in running:
            try:
                run.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                run.process.kill()
                run.process.wait()
            run.output.close()
    return failed
