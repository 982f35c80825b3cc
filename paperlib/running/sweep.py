"""Sweeps: one notebook over all combinations of parameter values, each a run that is never repeated."""

import ast
import gc
import itertools
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paperlib.io import SCHEDULER_VARIABLE, Place, RunResult, lease, read_result, run_units
from paperlib.running.book import (
    copy_whole,
    finished_result,
    judged_notebooks,
    keep_run,
    kept_folder,
)
from paperlib.running.execute import RESULT, Job, NotebookError, plan
from paperlib.running.parameters import notebook_parameters
from paperlib.running.project import Project
from paperlib.running.ranges import values_of_all
from paperlib.running.sources import fingerprint, notebook_code

_ONE_A_PROCESS = threading.Lock()
"""A run sets environment variables and a working folder, so one worker process does one at a time."""


@dataclass(frozen=True, repr=False)
class Unit:
    """One run of a sweep, in a form that travels to a worker.

    Attributes:
        root: Folder of the checkout, the same on all machines.
        stem: Name of the notebook.
        profile: Name of the profile.
        values: All its parameters as a Python literal.
        swept: Names of the parameters that the sweep was given.
        mark: Fingerprint of the run.
        where: Folder from which relative paths are seen, the same on all machines.
    """

    root: str
    stem: str
    profile: str
    values: str
    swept: tuple[str, ...]
    mark: str
    where: str

    def __repr__(self) -> str:
        return self.words(self.swept)

    def words(self, names: tuple[str, ...]) -> str:
        """Values of some of its parameters, in words."""
        return ", ".join(f"{name}={self.parameters[name]!r}" for name in names) or self.stem

    @property
    def parameters(self) -> dict[str, Any]:
        """All its parameters."""
        return ast.literal_eval(self.values)

    @property
    def folder(self) -> Path:
        """Where the finished run is kept whole."""
        return sweep_folder(Project(Path(self.root)), self.stem) / self.mark

    def job(self) -> Job:
        """The run, with its parameters checked against the notebook as it is now."""
        where = Path(self.where)
        return plan(
            Project(Path(self.root)), self.stem, profile=self.profile, given=self.parameters, where=where
        )

    def result(self) -> RunResult | None:
        """The result of the finished run; None as long as there is none, or if a file of it is damaged."""
        return finished_result(self.folder, self.mark)


def sweep_folder(project: Project, stem: str) -> Path:
    """The folder of a notebook's finished units and of the tables of its sweeps."""
    return project.runs / "sweep" / stem


def plan_units(
    project: Project, notebook: str, *, profile: str = "default", given: Mapping[str, str]
) -> list[Unit]:
    """All combinations of parameter values, the last parameter changing fastest.

    Args:
        project: The checkout.
        notebook: Stem or path of the notebook.
        profile: Name of the profile, whose values the given ones replace.
        given: Parameter to a word that says its values, such as ``0..4`` or ``20,50,100``.

    Raises:
        ValueError: An unknown notebook, profile or parameter, or a value of the wrong type.
    """
    base = plan(project, notebook, profile=profile)
    known = notebook_parameters(project.notebook(base.stem))
    values = values_of_all(known, given, base.stem)
    code = notebook_code(project, base.stem, profile)
    units: list[Unit] = []
    for chosen in itertools.product(*values.values()):
        parameters = {**base.parameters, **dict(zip(values, chosen, strict=True))}
        mark = fingerprint(project, base.stem, profile, parameters, code, where=base.where)
        about = (str(project.root), base.stem, profile, repr(parameters), tuple(values))
        units.append(Unit(*about, mark, str(base.where)))
    return units


class KeptUnits:
    """Finished units of a sweep: each a folder, shared with the book where the book asks for the same run.

    Args:
        project: The checkout.
        stem: Name of the notebook.
        profile: Name of the profile.
    """

    def __init__(self, project: Project, stem: str, profile: str) -> None:
        self.folder = sweep_folder(project, stem)
        self._base = plan(project, stem, profile=profile)
        self._judged = stem in judged_notebooks(project)

    def find(self, config: Unit) -> dict[str, Any] | None:
        """Seconds of a finished run, of this or another sweep or of the book; None without one."""
        book, result = self._book_folder(config), config.result()
        if result is None and book and finished_result(book, config.mark):
            copy_whole(book, config.folder)
            result = config.result()
        if result is None:
            return None
        return self.keep(config, {"seconds": result.provenance["seconds"]})

    def keep(self, config: Unit, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Show the book a run that its worker has kept."""
        book = self._book_folder(config)
        if book and config.folder.is_dir() and finished_result(book, config.mark) is None:
            copy_whole(config.folder, book)
        return {"seconds": float(arrays["seconds"])}

    def is_finished(self, unit: Unit) -> bool:
        """Whether `find` would find the unit."""
        book = self._book_folder(unit)
        return any(folder and finished_result(folder, unit.mark) for folder in (unit.folder, book))

    def _book_folder(self, unit: Unit) -> Path | None:
        """Where the book keeps a run with these parameters; None if it asks for no such run."""
        values = unit.parameters
        changed = {name for name, value in values.items() if value != self._base.preset[name]}
        if changed == {"seed"} and self._judged:
            return kept_folder(replace(self._base, seed=values["seed"]))
        return None if changed else kept_folder(self._base)


def run_notebook_units(
    units: list[Unit], *, place: Place | None, retries: int = 3, progress: bool = True
) -> Iterator[tuple[Unit, float]]:
    """Run the units that are not finished, and yield all of them with their seconds as they finish.

    Args:
        units: Result of `plan_units`.
        place: Where to run; None runs one after the other in this process.
        retries: New attempts elsewhere after a unit lost its worker, 0 or more.
        progress: Show a bar with an estimate of the time left.

    Raises:
        SweepError: At the end, if units failed; earlier, if the scheduler was lost.
        OutputError: A run cannot be written, such as on a full disk; what was finished is kept.
    """
    if not units:
        return
    kept = KeptUnits(Project(Path(units[0].root)), units[0].stem, units[0].profile)
    done = run_units(run_batch, units, kept, place=place, retries=retries, progress=progress)
    for unit, result in done:
        yield unit, result["seconds"]


def run_batch(units: list[Unit]) -> list[dict[str, float]]:
    """Run units in this process and keep them, unless another process has done so in the meantime.

    Raises:
        NotebookError: A notebook failed, or code here is not what the sweep was planned with.
        OutputError: A file could not be written.
    """
    try:
        return [{"seconds": _run(unit)} for unit in units]
    finally:
        gc.collect()  # sockets to the kernel that ended, in a process that runs hundreds


def _run(unit: Unit) -> float:
    waiting = unit.folder.with_name(f".{unit.mark}.lease")
    with _ONE_A_PROCESS, _no_sweep_inside(), lease(waiting, unit.result) as result:
        return float((result or _made(unit)).provenance["seconds"])


@contextmanager
def _no_sweep_inside() -> Iterator[None]:
    """Sweeps that a notebook itself starts stay on its worker: others there may all wait for such a one."""
    scheduler = os.environ.pop(SCHEDULER_VARIABLE, None)
    try:
        yield
    finally:
        if scheduler is not None:
            os.environ[SCHEDULER_VARIABLE] = scheduler


def _made(unit: Unit) -> RunResult:
    job = unit.job()
    if job.fingerprint != unit.mark:
        raise NotebookError(
            f"{unit.stem}: the notebook, the code, the Python version or a file that a parameter names is "
            "not what the sweep was planned with; start it again, with the same checkout on every worker"
        )
    keep_run(job, unit.folder)
    result = unit.result()
    if result is None:
        raise NotebookError(f"{unit.stem}: the code changed while it ran; start the sweep again")
    return result


def mean_run(project: Project, stem: str, profile: str) -> tuple[float, float] | None:
    """Mean seconds and bytes on disk of the finished runs of a notebook in a profile; None without any."""
    places = [*sweep_folder(project, stem).glob("*"), *project.kept.glob(f"{profile}*/{stem}")]
    found = [path for path in [*places, *(project.runs / stem).glob("*")] if (path / RESULT).is_file()]
    seconds, sizes = list[float](), list[int]()
    for folder in found:
        try:
            result = read_result(folder / RESULT)
        except ValueError:
            continue  # damaged
        if result.profile == profile:
            seconds.append(float(result.provenance["seconds"]))
            sizes.append(sum(path.stat().st_size for path in folder.iterdir()))
    return (sum(seconds) / len(seconds), sum(sizes) / len(sizes)) if seconds else None
