"""Running every notebook of a profile, and putting finished runs into the book."""

import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from paperlib.io import RunResult, read_result, write_text
from paperlib.report.status import CSV_NAME, status_markdown, status_table
from paperlib.running.execute import PAGE, RESULT, Job, finished_run, plan
from paperlib.running.project import Project

Say = Callable[[str], None]


def run_into_book(job: Job) -> RunResult:
    """Run a notebook and put its page, CSVs and result file into the book.

    The result file goes last: as long as it is missing the run counts as not done.

    Raises:
        NotebookError: The notebook failed; the book is unchanged.
        OutputError: A file could not be written.
    """
    project = job.project
    result = project.results / f"{job.stem}.json"
    page, data = project.pages / f"{job.stem}.ipynb", project.generated / "data" / job.stem
    with finished_run(job) as folder:
        for parent in (result.parent, page.parent, data.parent):
            parent.mkdir(parents=True, exist_ok=True)
        result.unlink(missing_ok=True)
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir()
        for path in folder.glob("*.csv"):
            os.replace(path, data / path.name)
        os.replace(folder / PAGE, page)
        os.replace(folder / RESULT, result)
    return read_result(result)


def run_aside(job: Job) -> Path:
    """Run a notebook into a new folder below ``runs``, leaving the book alone.

    Returns:
        The folder with the executed notebook, its CSVs and its result file.

    Raises:
        NotebookError: The notebook failed; no folder is left.
        OutputError: A file could not be written.
    """
    with finished_run(job) as folder:
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        names = itertools.chain([stamp], (f"{stamp}-{at}" for at in itertools.count(2)))
        target = next(path for name in names if not (path := job.project.runs / job.stem / name).exists())
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.part")
        shutil.copytree(folder, part)
        part.chmod(target.parent.stat().st_mode & 0o777)  # the temporary folder was private
        os.replace(part, target)
    return target


def current_result(job: Job) -> RunResult | None:
    """The result in the book if this very run made it and all its files are there, else None."""
    project = job.project
    path, page = project.results / f"{job.stem}.json", project.pages / f"{job.stem}.ipynb"
    if not (path.is_file() and page.is_file()):
        return None
    try:
        result = read_result(path)
    except ValueError:
        return None
    data = project.generated / "data" / job.stem
    whole = all((data / name).is_file() for name in result.data)
    return result if whole and result.provenance.get("fingerprint") == job.fingerprint else None


@dataclass
class _Running:
    job: Job
    process: "subprocess.Popen[bytes]"
    output: IO[bytes]
    started: float


def run_all(project: Project, *, profile: str, jobs: int = 2, say: Say = print) -> list[str]:
    """Run every notebook whose source, parameters, code, versions or data changed; renew the status.

    Each run is a process of its own, so a failing one does not stop the others, and what is
    finished counts when the whole is stopped and started again.

    Args:
        project: The checkout.
        profile: The profile to run.
        jobs: Runs at one time.
        say: Where progress goes, line by line.

    Returns:
        Names of the notebooks that failed.

    Raises:
        ValueError: An unknown profile, a bad parameter in it, or fewer than one job.
    """
    if jobs < 1:
        raise ValueError(f"jobs: expected at least 1, got {jobs}")
    every = [plan(project, stem, profile=profile) for stem in project.stems()]
    to_do = [job for job in every if current_result(job) is None]
    seconds = {job.stem: _last_seconds(job) for job in to_do}
    _prune(project)
    say(f"Profile {profile}: {len(every)} notebooks, {len(to_do)} to run")
    # Longest first keeps both processes busy to the end; an unknown time counts as long.
    to_do.sort(key=lambda job: -(seconds[job.stem] or 1e9))
    failed = _run_many(to_do, seconds, jobs, say)
    write_status(project, profile)
    return failed


def _run_many(to_do: list[Job], seconds: dict[str, float | None], jobs: int, say: Say) -> list[str]:
    waiting, running = list(to_do), list[_Running]()
    failed, done = list[str](), 0
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(_start(waiting.pop(0)))
            finished = [run for run in running if run.process.poll() is not None]
            for run in finished:
                running.remove(run)
                done += 1
                took = time.monotonic() - run.started
                seconds[run.job.stem] = took
                if not _report(run, say):
                    failed.append(run.job.stem)
                left = _seconds_left(waiting, running, seconds, jobs)
                say(f"  [{done}/{len(to_do)}] {run.job.stem}: {took:.0f} s" + (f"; {left}" if left else ""))
            if not finished:
                time.sleep(0.05)
    finally:
        _stop(running)
    return failed


def _start(job: Job) -> _Running:
    command = [sys.executable, "-m", "paperlib", "run", job.stem, "--profile", job.profile, "--book"]
    output = tempfile.TemporaryFile()  # noqa: SIM115 (closed when the run ends)
    # In a session of its own: a Ctrl-C of the terminal reaches only this process, which then
    # ends the others in order.
    process = subprocess.Popen(
        command, cwd=job.project.root, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
    )
    return _Running(job, process, output, time.monotonic())


def _report(run: _Running, say: Say) -> bool:
    with run.output as output:
        output.seek(0)
        text = output.read().decode("utf-8", errors="replace")
    if run.process.returncode:
        say(text.rstrip())
    return run.process.returncode == 0


def _stop(running: Iterable[_Running]) -> None:
    """End runs that are still going: politely, so that they remove their folders, then for good."""
    for run in running:
        run.process.send_signal(signal.SIGINT)
    for run in running:
        try:
            run.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            run.process.kill()
            run.process.wait()
        run.output.close()


def _seconds_left(
    waiting: list[Job], running: list[_Running], seconds: dict[str, float | None], jobs: int
) -> str:
    if not waiting and not running:
        return ""
    known = [value for value in seconds.values() if value]
    usual = sum(known) / len(known) if known else 0.0
    left = sum(seconds[job.stem] or usual for job in waiting)
    left += sum(
        max(0.0, (seconds[run.job.stem] or usual) - (time.monotonic() - run.started)) for run in running
    )
    return f"about {left / jobs:.0f} s left"


def _last_seconds(job: Job) -> float | None:
    path = job.project.results / f"{job.stem}.json"
    try:
        return float(read_result(path).provenance["seconds"]) if path.is_file() else None
    except (ValueError, KeyError, TypeError):
        return None


def _prune(project: Project) -> None:
    """Remove pages and results of notebooks that no longer exist, and folders of killed runs."""
    known = set(project.stems())
    for path in [*project.pages.glob("*.ipynb"), *project.results.glob("*.json")]:
        if path.stem not in known:
            path.unlink()
    for folder in project.runs.glob(".*"):
        if folder.is_dir() and time.time() - folder.stat().st_mtime > 86400:
            shutil.rmtree(folder, ignore_errors=True)


def book_results(project: Project) -> list[RunResult]:
    """The result files of the book's pages, sorted by notebook."""
    return [read_result(path) for path in sorted(project.results.glob("*.json"))]


def measured_results(project: Project) -> list[RunResult]:
    """The committed result files of large runs."""
    return [read_result(path) for path in sorted(project.measured.glob("*.json"))]


def write_status(project: Project, profile: str) -> None:
    """Write the status page and its CSV from the result files at hand.

    Raises:
        OutputError: A file could not be written.
    """
    runs = [asdict(result) for result in book_results(project) if result.profile == profile]
    table = status_table(runs, [asdict(result) for result in measured_results(project)])
    toc = project.root / "book" / "_toc.yml"
    listed = toc.read_text(encoding="utf-8") if toc.is_file() else ""
    pages = [path.stem for path in project.pages.glob("*.ipynb") if f"notebooks/{path.stem}" in listed]
    _write_if_new(project.generated / "data" / CSV_NAME, table.to_csv(index=False))
    _write_if_new(project.generated / "status.md", status_markdown(table, profile=profile, pages=pages))


def _write_if_new(path: Path, text: str) -> None:
    """Leave an equal file alone, so that the book need not be built again."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)
