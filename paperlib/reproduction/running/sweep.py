"""Sweeps: one notebook over all combinations of parameter values, each a run that is never
repeated.
"""

import gc
import itertools
import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from paperlib.io import read_result
from paperlib.io.cache import lease
from paperlib.io.files import RunResult, write_text
from paperlib.reproduction.running.book import (
    finished_result,
    judged_notebooks,
    keep_run,
    kept_folder,
    outcomes,
    pooled_outcomes,
)
from paperlib.reproduction.running.execute import RESULT, Job, NotebookError, plan, variables_set
from paperlib.reproduction.running.parameters import notebook_parameters, swept_values
from paperlib.reproduction.running.project import Project
from paperlib.reproduction.running.sources import OUTPUTS, fingerprint, notebook_code
from paperlib.reproduction.sweeps import SCHEDULER_VARIABLE, Place, run_units

_ONE_A_PROCESS = threading.Lock()
"""A run sets environment variables and a working folder, so one worker process does one at a time.
"""


@dataclass(frozen=True, kw_only=True, repr=False)
class Unit(Job):
    """One run of a sweep, in a form that travels to a worker, which sees the same folders.

    Attributes:
        swept: Names of the parameters that the sweep was given.
        mark: Fingerprint of the run as it was planned.
        folder: Where the finished run is kept: where the book keeps it, if the book asks for the
            same run.
    """

    swept: tuple[str, ...]
    mark: str
    folder: Path

    def __hash__(self) -> int:
        return hash(self.mark)

    def __repr__(self) -> str:
        return self._words(self.swept)

    @property
    def setting(self) -> str:
        """Values of the parameters that the sweep was given, but the seed, in words."""
        return self._words([name for name in self.swept if name != "seed"])

    def _words(self, names: Sequence[str]) -> str:
        """The values of these parameters; the notebook's name where there are none."""
        return ", ".join(f"{name}={self.parameters[name]!r}" for name in names) or self.stem

    def result(self) -> RunResult | None:
        """The result of the finished run; None as long as there is none, or if a file of it is
        damaged.
        """
        return finished_result(self.folder, self.mark)


def sweep_folder(project: Project, stem: str) -> Path:
    """The folder of a notebook's finished units and of the tables of its sweeps."""
    return project.runs / "sweep" / stem


def plan_units(
    project: Project, notebook: str, *, profile: str = "default", given: Mapping[str, str]
) -> list[Unit]:
    """All combinations of parameter values, the last parameter changing fastest.

    Args:
        notebook: Stem or path of the notebook.
        given: Parameter to a word that says its values, such as ``0..4`` or ``20,50,100``.

    Raises:
        ValueError: What `plan` and `swept_values` refuse, or runs that would write one file.
    """
    # Workers know folders as they were planned, so that what a run writes there stops no other.
    base = replace(plan(project, notebook, profile=profile), memo={})
    values = swept_values(notebook_parameters(project.notebook(base.stem)), given, base.stem)
    code = notebook_code(project, base.stem, profile)
    repeated = base.stem in judged_notebooks(project)
    units: list[Unit] = []
    for combination in itertools.product(*values.values()):
        swept = dict(zip(values, combination, strict=True))
        job = replace(base, parameters={**base.parameters, **swept})
        mark = fingerprint(
            project, job.stem, profile, job.parameters, code, where=job.where, memo=job.memo
        )
        folder = _folder_of_run(job, mark, repeated=repeated)
        units.append(Unit(**vars(job), swept=tuple(values), mark=mark, folder=folder))
    _check_outputs(units, base.stem)
    return units


def _folder_of_run(job: Job, mark: str, *, repeated: bool) -> Path:
    """Where a run is kept: with the book's runs if it is one of them, else by its fingerprint.

    The book asks for the run of the profile alone, and, of a notebook that is ``repeated``, for
    its repetitions with other seeds.
    """
    changed = {name for name, value in job.parameters.items() if value != job.preset[name]}
    if not changed:
        return kept_folder(job)
    if changed == {"seed"} and repeated:
        return kept_folder(replace(job, seed=job.parameters["seed"]))
    return sweep_folder(job.project, job.stem) / mark


def _check_outputs(units: Sequence[Unit], stem: str) -> None:
    """Refuse (ValueError) units of which two would write the same file."""
    written: list[Any] = []
    for unit in units:
        written += [unit.parameters[name] for name in OUTPUTS if unit.parameters.get(name)]
    if len(set(written)) < len(written):
        raise ValueError(
            f"{stem}: several runs would write {written[0]!r}; leave this parameter out"
        )


def run_notebook_units(
    units: list[Unit], *, place: Place | None, retries: int = 3, progress: bool = True
) -> Iterator[tuple[Unit, float]]:
    """Run the units that are not finished, and yield all of them with their seconds as they finish.

    Args:
        place: Where to run; None runs one after the other in this process.
        retries: New attempts elsewhere after a unit lost its worker, 0 or more.

    Raises:
        SweepError: At the end, if units failed; earlier, if the scheduler was lost.
        OutputError: A run cannot be written, such as on a full disk; what was finished is kept.
    """
    done = run_units(
        run_batch, units, find=_seconds, where=place, retries=retries, progress=progress
    )
    for unit, result in done:
        yield unit, result["seconds"]


def _seconds(unit: Unit) -> dict[str, Any] | None:
    """Seconds of a finished unit, as `run_units` takes what is on disk; None for an
    unfinished one.
    """
    result = unit.result()
    return None if result is None else {"seconds": np.float64(result.provenance["seconds"])}


def run_batch(units: list[Unit]) -> list[dict[str, Any]]:
    """Run units in this process and keep them, unless another process has done so in the
    meantime.
    """
    return [_run_unit(unit) for unit in units]


def _run_unit(unit: Unit) -> dict[str, Any]:
    """Run one unit, unless another process does, and return its seconds, as `_seconds`.

    Raises:
        NotebookError: It failed, or what it depends on is not what the sweep was planned with.
    """
    path = sweep_folder(unit.project, unit.stem) / f".{unit.mark}.lease"
    # Sweeps that the notebook itself starts stay on its worker: others there may all wait for
    # such a one.
    alone = variables_set({SCHEDULER_VARIABLE: None})
    with _ONE_A_PROCESS, alone, lease(path, unit.result) as finished:
        if finished is None:
            if unit.fingerprint != unit.mark:
                raise NotebookError(
                    f"{unit.stem}: the notebook, the code, the Python version or a file that a "
                    "parameter names is not what the sweep was planned with; start it again, "
                    "with the same checkout on every worker"
                )
            keep_run(unit, unit.folder)
            gc.collect()  # sockets to the kernel that ended, in a process that runs hundreds
    seconds = _seconds(unit)
    if seconds is None:
        raise NotebookError(f"{unit.stem}: the code changed while it ran; start the sweep again")
    return seconds


def mean_run(project: Project, stem: str, profile: str) -> tuple[float, float] | None:
    """Mean seconds and bytes on disk of the finished runs of a notebook in a profile; None without
    any.
    """
    folders = itertools.chain(
        sweep_folder(project, stem).glob("*"),
        (project.runs / stem).glob("*"),
        project.kept.glob(f"{profile}*/{stem}"),
    )
    seconds: list[float] = []
    sizes: list[int] = []
    for folder in folders:
        try:
            result = read_result(folder / RESULT)
        except (OSError, ValueError):
            continue  # no run, or a damaged one
        if result.profile == profile:
            seconds.append(float(result.provenance["seconds"]))
            sizes.append(sum(path.stat().st_size for path in folder.iterdir()))
    if not seconds:
        return None
    return sum(seconds) / len(seconds), sum(sizes) / len(sizes)


def write_table(path: Path, units: Sequence[Unit], errors: Mapping[Unit, str]) -> None:
    """Write a CSV with one row per unit: parameters, state, seconds, error, folder, and outcomes by
    itself.

    ``errors`` are those of failed units. An OutputError says why the CSV cannot be written.
    """
    import pandas as pd

    rows = [_table_row(unit, errors.get(unit, "")) for unit in units]
    write_text(path, pd.DataFrame(rows).to_csv(index=False))


def _table_row(unit: Unit, error: str) -> dict[str, Any]:
    """A unit as a row of the table of a sweep; lists and mappings stand there as JSON."""
    row = {
        name: json.dumps(value) if isinstance(value, list | dict) else value
        for name, value in unit.parameters.items()
    }
    result = unit.result()
    row["state"] = _state(result, error)
    row["seconds"] = None if result is None else result.provenance["seconds"]
    row["error"] = error
    row["folder"] = os.path.relpath(unit.folder, sweep_folder(unit.project, unit.stem))
    if result is not None:
        row |= outcomes(result)
    return row


def _state(result: RunResult | None, error: str) -> str:
    """How far a unit has come, in a word or two."""
    if error:
        return "failed"
    return "not yet" if result is None else "finished"


def pooled_by_setting(units: Sequence[Unit]) -> dict[str, tuple[int, dict[str, str]]]:
    """For each setting, in words, the number of its finished seeds, and the outcome of each target
    by all of them together, in words.
    """
    groups: dict[str, list[RunResult]] = {}
    for unit in units:
        results = groups.setdefault(unit.setting, [])
        result = unit.result()
        if result is not None:
            results.append(result)
    return {words: (len(results), pooled_outcomes(results)) for words, results in groups.items()}
