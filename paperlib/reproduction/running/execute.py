"""Run one notebook in a temporary folder, of which only a finished run is used."""

import contextlib
import json
import os
import re
import shlex
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from traitlets.config import Config

from paperlib.core.visible import visible_lines, visible_text
from paperlib.io.budget import BudgetSpent
from paperlib.io.files import RunResult, file_sha256, write_result, write_text
from paperlib.io.sources import Known
from paperlib.io.temporary import temporary_folder
from paperlib.report.display import (
    NOTEBOOK_VARIABLE,
    RECORDS_FILE,
    RESULTS_VARIABLE,
    USED_DATA_FILE,
)
from paperlib.report.provenance import describe, provenance
from paperlib.reproduction.running.parameters import (
    assignment,
    check_parameters,
    notebook_parameters,
    parameters_cell,
    read_notebook,
    with_values,
)
from paperlib.reproduction.running.project import Project
from paperlib.reproduction.running.sources import PACKAGE, fingerprint, parameter_files

PAGE = "notebook.ipynb"
RESULT = "result.json"
KERNEL_LOG = "kernel.log"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
DEBUG_VARIABLE = "PAPERLIB_DEBUG"
"""Set to 1 (by ``paperlib --debug``), errors of notebooks come with their traceback."""
MISTAKES = (
    "ValueError",
    "FileNotFoundError",
    "PermissionError",
    "IsADirectoryError",
    "NotADirectoryError",
    "OutputError",
    "DataUnavailableError",
    "DownloadError",
    "CheckpointError",
    "NoSpreadError",
    "SweepError",
)
"""Errors whose message says what is wrong with what was given; any other one is a fault in code."""
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_LONGEST_LINE = 100_000  # characters of a line of a log

# A warning ends the run, as it would end a test; deprecations are for the authors of the packages.
_STRICT = [
    "import warnings as _warnings",
    "_warnings.simplefilter('error')",
    "[_warnings.simplefilter('default', _kind) for _kind in "
    "(DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning)]",
    "del _warnings",
    # imports leave few cycles: a fifth of their time
    "__import__('gc').set_threshold(100_000, 20, 20)",
]


class NotebookError(RuntimeError):
    """A notebook stopped with an error; the message says what is wrong, and where the log is."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run to do, as `plan` checks it.

    Attributes:
        stem: Name of the notebook.
        parameters: All its parameters by name.
        preset: Those that the profile alone would give it.
        seed: Seed of a repetition of the run that the book shows; None for any other run.
        where: Folder from which relative paths are seen.
        memo: What runs share between which no file changes: the ``known`` of `source_files`.
    """

    project: Project
    stem: str
    profile: str
    parameters: Mapping[str, Any]
    preset: Mapping[str, Any]
    seed: int | None = None
    where: Path = field(default_factory=Path.cwd)
    memo: Known | None = field(default=None, compare=False, repr=False)

    @property
    def fingerprint(self) -> str:
        """The hash of everything the run depends on."""
        return fingerprint(
            self.project,
            self.stem,
            self.profile,
            self.parameters,
            where=self.where,
            memo=self.memo,
        )


def plan(
    project: Project,
    name: str,
    *,
    profile: str = "default",
    given: Mapping[str, Any] | None = None,
    seed: int | None = None,
    where: Path | None = None,
) -> Job:
    """Plan a run: check the notebook, the profile and every parameter before it starts.

    Args:
        name: Stem or path of the notebook.
        given: Values by name that replace those of the profile, as Python values or as text.
        seed: Seed of a repetition that is kept beside the run of the book; None for that run
            itself.
        where: Folder from which relative paths are seen; None for the current one.

    Raises:
        ValueError: Unknown notebook, profile or parameter, or a value of the wrong type.
    """
    path = project.notebook(name)
    package = project.root / PACKAGE.name
    if package.is_dir() and not package.samefile(PACKAGE):  # which the notebook would import
        raise ValueError(
            f"PYTHONPATH: set it to {project.root}, whose {package.name} is not the one that runs"
        )
    parameters = notebook_parameters(path)
    of_profile = project.profile(profile).get(path.stem, {})
    preset = check_parameters(parameters, of_profile, f"profile {profile}, {path.stem}")
    replaced = {**of_profile, **(given or {})}
    if seed is not None:
        replaced["seed"] = seed
    return Job(
        project=project,
        stem=path.stem,
        profile=profile,
        parameters=check_parameters(parameters, replaced, path.stem),
        preset=preset,
        seed=seed,
        where=(where or Path.cwd()).resolve(),
    )


@contextlib.contextmanager
def finished_run(job: Job) -> Iterator[Path]:
    """Run a notebook, and yield the folder of its page, CSVs and result file, which is removed at
    the end of the block.

    Raises:
        NotebookError: The notebook failed; its log is kept below ``runs/failed``.
        BudgetSpent: Its minutes are over.
    """
    job.project.runs.mkdir(parents=True, exist_ok=True)
    with temporary_folder(job.project.runs, f".{job.stem}-") as folder:
        # Of what the run began with: files that change while it runs make it outdated.
        fingerprint_at_start = job.fingerprint
        started = time.monotonic()
        notebook = _execute(job, folder)
        _finish(job, folder, notebook, time.monotonic() - started, fingerprint_at_start)
        yield folder


def _execute(job: Job, folder: Path) -> Any:
    """The executed notebook (nbformat 4); what it writes besides is in ``folder``.

    Raises NotebookError where a cell fails or the kernel dies, and BudgetSpent.
    """
    notebook = read_notebook(job.project.notebook(job.stem))
    cell = parameters_cell(notebook, job.stem)
    cell.source = with_values(cell.source, _values_for_cell(job))
    log = folder / KERNEL_LOG
    with (
        variables_set(_variables(job, folder)),
        _kernel_config() as config,
        _standard_error_to(log),
        warnings.catch_warnings(),
    ):
        # Papermill and the kernel client warn about their own internals.
        warnings.simplefilter("ignore")
        import papermill
        from papermill.exceptions import PapermillExecutionError

        try:
            return papermill.execute_notebook(
                notebook,
                None,
                kernel_name="python3",
                progress_bar=False,
                config=config,
                start_timeout=120,
                iopub_timeout=600,  # a busy machine may need long for what a cell printed
                cwd=job.where,
            )
        except PapermillExecutionError as error:
            if error.ename == BudgetSpent.__name__:
                raise BudgetSpent(f"{job.stem}: {error.evalue}") from None
            traceback = _visible_log("\n".join(error.traceback))
            text = visible_text(" ".join(_ANSI.sub("", str(error.evalue)).split()))
            # The message alone where it names a mistake in what was given.
            if error.ename in MISTAKES and text:
                message = f"{job.stem}: {text}"
            else:
                message = f"{job.stem} failed in cell [{error.exec_count}]: {error.ename}: {text}"
            raise _failure(job, message, traceback, log) from None
        except RuntimeError as error:
            raise _failure(job, visible_text(f"{job.stem} failed: {error}"), "", log) from None


def _values_for_cell(job: Job) -> dict[str, Any]:
    """The parameters of a run, with whole paths where it runs outside the checkout and its profile
    names a file of the checkout.
    """
    root = job.project.root
    values = dict(job.parameters)
    if job.where.is_relative_to(root):
        return values
    for name, value in job.parameters.items():
        of_profile = isinstance(value, str) and value == job.preset.get(name)
        if of_profile and parameter_files({name: value}, root):
            values[name] = str(root / value)
    return values


def _variables(job: Job, folder: Path) -> dict[str, str | None]:
    """Environment variables of a run; None takes one away."""
    return {
        **{name: os.environ.get(name, "1") for name in THREADS},
        RESULTS_VARIABLE: str(folder),
        NOTEBOOK_VARIABLE: job.stem,
        "PAPERLIB_PROGRESS": "0",
        "MPLBACKEND": "agg",
        "JUPYTER_PATH": None,  # where a kernel of another Python may have this name
        "JUPYTER_PREFER_ENV_PATH": "1",
    }


def _failure(job: Job, message: str, traceback: str, kernel_log: Path) -> NotebookError:
    """The error of a failed run, with ``message``; its log, ``traceback`` and what the kernel wrote
    into ``kernel_log``, is kept in ``runs/failed``.
    """
    name = job.stem
    if job.parameters != job.preset:  # of a sweep, where many may fail at one time
        name += f"-{job.fingerprint[:8]}"
    log = job.project.runs / "failed" / f"{name}.log"
    output = _visible_log(kernel_log.read_text(encoding="utf-8", errors="replace"))
    head = f"{job.stem}, profile {job.profile}, parameters {dict(job.parameters)}"
    write_text(log, f"{head}\n\n{traceback or message}\n\nThe kernel's own output:\n{output}")
    path = log.relative_to(job.where) if log.is_relative_to(job.where) else log
    if os.environ.get(DEBUG_VARIABLE, "") in ("", "0"):
        hint = " (paperlib --debug prints the traceback)"
        paragraphs = [message, f"No result was kept, only this log{hint}: {path}"]
    else:
        paragraphs = [message, traceback, f"No result was kept, only this log: {path}"]
    return NotebookError("\n".join(filter(None, paragraphs)))


def _visible_log(text: str) -> str:
    """What a notebook or its kernel wrote, without its colours and with nothing that would steer
    the terminal on which it is read.
    """
    return visible_lines(_ANSI.sub("", text), _LONGEST_LINE)


@contextlib.contextmanager
def _standard_error_to(path: Path) -> Iterator[None]:
    """Send this process's standard error, which kernels share, to a file."""
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with path.open("wb") as file:
            os.dup2(file.fileno(), 2)
            yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


@contextlib.contextmanager
def variables_set(values: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables for a while; None takes a variable away."""
    before = {name: os.environ.get(name) for name in values}
    try:
        _set_variables(values)
        yield
    finally:
        _set_variables(before)


def _set_variables(values: Mapping[str, str | None]) -> None:
    """Set environment variables for good; None takes a variable away."""
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextlib.contextmanager
def _kernel_config() -> Iterator[Config]:
    """Settings of a kernel that warnings end; its sockets lie in a folder of their own, since
    kernels with sockets of one name block each other.
    """
    client = {"extra_arguments": [f"--IPKernelApp.exec_lines={_STRICT!r}"]}
    if os.name == "nt":
        yield Config({"NotebookClient": client})
        return
    # A socket's path may have 107 characters.
    base = "/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir()
    with temporary_folder(Path(base), "nb-") as folder:
        yield Config(
            {"NotebookClient": client, "KernelManager": {"transport": "ipc", "ip": f"{folder}/k"}}
        )


def _finish(
    job: Job, folder: Path, notebook: Any, seconds: float, fingerprint_at_start: str
) -> None:
    """Write the page and the result file of a run, whose CSVs lie in ``folder``: there its records
    are collected, the provenance is added, and files that only the run needs are removed.
    """
    used = {item["name"]: item["sha256"] for item in _lines(folder / USED_DATA_FILE)}
    data = {**parameter_files(job.parameters, job.where), **used}
    origin = provenance(
        root=job.project.root,
        profile=job.profile,
        parameters=job.parameters,
        seconds=seconds,
        data=data,
    )
    result = RunResult(
        notebook=job.stem,
        profile=job.profile,
        parameters=dict(job.parameters),
        records=_lines(folder / RECORDS_FILE),
        data=sorted(path.name for path in folder.glob("*.csv")),
        provenance={
            **origin,
            "command": rerun_command(job),
            "fingerprint": fingerprint_at_start,
        },
    )
    for name in (RECORDS_FILE, USED_DATA_FILE, KERNEL_LOG):
        (folder / name).unlink(missing_ok=True)
    notebook.metadata.pop("papermill", None)
    for cell in notebook.cells:
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
    # The box at the end of the page shows the parameters: the page hides their cell.
    parameters = parameters_cell(notebook, job.stem)
    parameters.metadata["tags"] = [*parameters.metadata["tags"], "remove-input"]
    box = _provenance_box(job, origin, parameters.source)
    notebook.cells.append(nbformat.v4.new_markdown_cell(box, id="provenance"))
    write_text(folder / PAGE, nbformat.writes(notebook))
    result.provenance["files"] = {name: file_sha256(folder / name) for name in (PAGE, *result.data)}
    write_result(folder / RESULT, result)


def _provenance_box(job: Job, origin: Mapping[str, Any], parameters: str) -> str:
    """The end of a page, in MyST: how to run it again, its provenance, and its parameters."""
    rows = "\n".join(f"- {line}" for line in describe(origin))
    return (
        "## How these numbers were computed\n\n"
        f"Run this page again: `{rerun_command(job)}`\n\n"
        "``````{dropdown} Date, hardware, versions and data\n:class-container: provenance\n\n"
        f"{rows}\n``````\n\n"
        "``````{dropdown} Parameters\n:class-container: provenance\n\n"
        f"```python\n{parameters}\n```\n``````\n"
    )


def _lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of JSON lines; none where there is no such file."""
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def rerun_command(job: Job) -> str:
    """The command that repeats a run; it names only the parameters that differ from the profile."""
    changed = {name: value for name, value in job.parameters.items() if value != job.preset[name]}
    words = " ".join(assignment(name, value) for name, value in changed.items())
    if not words:
        return f"make run NB={job.stem} PROFILE={job.profile}"
    quoted = shlex.quote(words) if set('"`$\\!').intersection(words) else f'"{words}"'
    return f"make run NB={job.stem} P={quoted} PROFILE={job.profile}"
