"""Finished runs: kept one per notebook and profile, and shown in the book."""

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pandas as pd

from paperlib.io import read_result
from paperlib.io.cache import lease
from paperlib.io.files import RunResult, file_sha256, write_bytes, write_text
from paperlib.reproduction.exhibits.printed import PAPERS
from paperlib.reproduction.made_up import made_up_folder, made_up_variables
from paperlib.reproduction.papers import landing
from paperlib.reproduction.papers.letters import letters
from paperlib.reproduction.papers.verdict.claims_file import (
    CLAIMS_NAME,
    SCHEMA_NAME,
    claims_text,
    schema_text,
)
from paperlib.reproduction.papers.verdict.evidence import from_dict, rules
from paperlib.reproduction.papers.verdict.outcome import decide_alone
from paperlib.reproduction.papers.verdict.pages import (
    best_of,
    executions_markdown,
    figure_path,
    results_pages,
)
from paperlib.reproduction.papers.verdict.status import CSV_NAME, JudgedTarget, judge, status_table
from paperlib.reproduction.papers.verdict.thumbnails import thumbnail_svg
from paperlib.reproduction.running.answers import evidence_records
from paperlib.reproduction.running.execute import (
    PAGE,
    RESULT,
    Job,
    finished_run,
    plan,
    variables_set,
)
from paperlib.reproduction.running.parameters import notebook_parameters
from paperlib.reproduction.running.project import Project
from paperlib.reproduction.running.sources import fingerprint, notebook_code

_SECONDS_OF_A_DAY = 86_400


def run_into_book(job: Job) -> RunResult:
    """Run a notebook, keep the finished run, and show it in the book; a NotebookError changes no
    book.
    """
    keep_run(job)
    return show_run(job)


def keep_run(job: Job, folder: Path | None = None) -> Path:
    """Run a notebook and keep its page, CSVs and result file, leaving the book alone: the folder.

    Args:
        folder: Where it is kept; None for the place where the book of its profile looks for it.

    Raises:
        NotebookError: The notebook failed; a run kept before stays.
    """
    kept = folder or kept_folder(job)
    with _profile_data(job), finished_run(job) as made:
        copy_whole(made, kept)
    return kept


def _profile_data(job: Job) -> AbstractContextManager[None]:
    """Environment in which a run finds the data of its profile."""
    made_up = job.project.made_up(job.profile)
    return variables_set(made_up_variables(made_up_folder()) if made_up else {})


def run_aside(job: Job) -> Path:
    """Run a notebook into a new folder below ``runs``, which is returned; a failed run, which
    raises NotebookError, leaves nothing of it.
    """
    with _profile_data(job), finished_run(job) as folder:
        target = _new_folder(job.project.runs / job.stem)
        copy_whole(folder, target)
    return target


def _new_folder(parent: Path) -> Path:
    """A path that is not taken, named by the time, with a number where several runs end in one
    second.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    path = parent / stamp
    number = 1
    while path.exists():
        number += 1
        path = parent / f"{stamp}-{number}"
    return path


def current_result(job: Job) -> RunResult | None:
    """The result of the kept run if it is this very run and all its files are there, else None."""
    return finished_result(kept_folder(job), job.fingerprint)


def finished_result(folder: Path, mark: str) -> RunResult | None:
    """The result in a folder of a run if its fingerprint is ``mark`` and all its files are there,
    as their checksums say; else None, as for a folder or a result file that cannot be read.
    """
    if not (folder / RESULT).is_file():
        return None
    try:
        result = read_result(folder / RESULT)
    except ValueError:
        return None
    files: dict[str, str] = result.provenance.get("files", {})  # checksums by name
    is_whole = files and all(
        (folder / name).is_file() and file_sha256(folder / name) == digest
        for name, digest in files.items()
    )
    is_this_run = result.provenance.get("fingerprint") == mark
    return result if is_whole and is_this_run else None


def show_run(job: Job) -> RunResult:
    """Copy a kept run into the book, unless the book shows it already, and return its result; a run
    on made-up data stays outside of the book.

    Raises OutputError where a page or table cannot be written.
    """
    project = job.project
    kept = kept_folder(job)
    if project.made_up(job.profile):
        return read_result(kept / RESULT)
    # Where the book has the result file, the page and the CSVs.
    result = project.results / f"{job.stem}.json"
    page = project.pages / f"{job.stem}.ipynb"
    data = project.generated / "data" / job.stem
    csvs = {path: data / path.name for path in sorted(kept.glob("*.csv"))}
    is_same_run = result.is_file() and result.read_bytes() == (kept / RESULT).read_bytes()
    is_complete = page.is_file() and all(copy.is_file() for copy in csvs.values())
    if not (is_same_run and is_complete):
        result.unlink(missing_ok=True)  # written last: without it the page counts as not there
        shutil.rmtree(data, ignore_errors=True)
        copies = {**csvs, kept / PAGE: page, kept / RESULT: result}
        for source, target in copies.items():
            write_bytes(target, source.read_bytes())
    return read_result(result)


def last_seconds(job: Job) -> float | None:
    """Wall time in seconds of the kept run, current or not; None without one."""
    path = kept_folder(job) / RESULT
    try:
        return float(read_result(path).provenance["seconds"]) if path.is_file() else None
    except (ValueError, KeyError, TypeError):
        return None


def kept_folder(job: Job) -> Path:
    """Where the book's run of a notebook, or its repetition with a seed, is kept."""
    folder = job.profile if job.seed is None else f"{job.profile}-seed-{job.seed}"
    return job.project.kept / folder / job.stem


def copy_whole(folder: Path, target: Path) -> None:
    """Put a copy of ``folder`` at ``target``, whole or not at all, which takes no more room where
    it can.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.part")
    # Another run of this notebook may end just now.
    with lease(unfinished.with_suffix(".copy"), lambda: None):
        shutil.rmtree(unfinished, ignore_errors=True)  # of a run that was killed
        shutil.copytree(folder, unfinished, copy_function=_linked)
        unfinished.chmod(target.parent.stat().st_mode & 0o777)  # the temporary folder was private
        shutil.rmtree(target, ignore_errors=True)
        unfinished.replace(target)


def _linked(source: str, target: str) -> str:
    """The same file under another name, or a copy of it; finished runs are never written to."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target


def prune(project: Project) -> None:
    """Remove pages, results and kept runs of notebooks that no longer exist, and folders of killed
    runs.
    """
    stems = set(project.stems())
    for path in [*project.pages.glob("*.ipynb"), *project.results.glob("*.json")]:
        if path.stem not in stems:
            path.unlink()
    gone = [folder for folder in project.kept.glob("*/*") if folder.name.lstrip(".") not in stems]
    killed = [
        folder
        for folder in project.runs.glob(".*")
        if time.time() - folder.stat().st_mtime > _SECONDS_OF_A_DAY
    ]
    for folder in [*gone, *killed]:
        shutil.rmtree(folder, ignore_errors=True)


def book_results(project: Project) -> list[RunResult]:
    """The result files of the book's pages, sorted by notebook."""
    return list(_book_files(project).values())


def _book_files(project: Project) -> dict[Path, RunResult]:
    """The results of the book's pages by their files, sorted by notebook."""
    return {path: read_result(path) for path in sorted(project.results.glob("*.json"))}


def repeated_results(project: Project, profile: str) -> list[RunResult]:
    """The result files of runs with other seeds that are still current, sorted by seed and
    notebook.
    """
    return list(_repeated_files(project, profile).values())


def _repeated_files(project: Project, profile: str) -> dict[Path, RunResult]:
    """The results of `repeated_results` by their files."""
    results: dict[Path, RunResult] = {}
    for stem in judged_notebooks(project):
        paths = list(project.kept.glob(f"{profile}-seed-*/{stem}/{RESULT}"))
        if not paths:
            continue
        # Planned and read once for its thousands of seeds.
        job = plan(project, stem, profile=profile, where=project.root)
        code = notebook_code(project, stem, profile)
        for path in paths:
            profile_and_seed = path.parts[-3]  # as `kept_folder` names it
            seed = int(profile_and_seed.rpartition("-")[2])
            values = {**job.parameters, "seed": seed}
            mark = fingerprint(project, stem, profile, values, code, where=job.where)
            result = finished_result(path.parent, mark)
            if result is not None:
                results[path] = result
    return {path: results[path] for path in sorted(results)}


def measured_results(project: Project) -> list[RunResult]:
    """The committed result files of large runs and of other seeds, without plans that lack some
    seeds; ValueError for a file that is damaged, was changed by hand, or has another schema.
    """
    return list(_measured_files(project).values())


def _measured_files(project: Project) -> dict[Path, RunResult]:
    """The results of `measured_results` by their files."""
    paths = sorted(project.measured.rglob("*.json"))
    return {path: read_result(path) for path in paths if path.parent.name != "unfinished"}


def measured_evidence(project: Project) -> list[dict[str, Any]]:
    """The committed results for `judge`, each with its path in the checkout and its checksum."""
    return _all_evidence(project, _measured_files(project))


def judged_notebooks(project: Project) -> list[str]:
    """Names of the notebooks that give evidence and have a seed."""
    named = {notebook for rule in rules().values() for notebook in rule.notebooks}
    return [stem for stem in project.stems() if stem in named and _has_seed(project, stem)]


def _has_seed(project: Project, stem: str) -> bool:
    """Whether a notebook has a parameter ``seed``."""
    parameters = notebook_parameters(project.notebook(stem))
    return any(parameter.name == "seed" for parameter in parameters)


def write_status(project: Project, profile: str) -> None:
    """Write what the book says of all runs together, from those of this profile on this machine and
    from the committed ones: claims, pages of results, letters, first page and tables.

    Files that would not change are left alone. On made-up data nothing is written.
    """
    if project.made_up(profile):
        return
    here = {
        path: result for path, result in _book_files(project).items() if result.profile == profile
    }
    here |= _repeated_files(project, profile)  # of this machine; ``measured`` are committed
    measured = _measured_files(project)
    judged = judge(_all_evidence(project, here), _all_evidence(project, measured))
    for paper in PAPERS:
        text = executions_markdown(paper, [*here.values(), *measured.values()])
        _write_if_new(project.generated / f"executions_{paper}.md", text)
    data = project.generated / "data"
    _write_if_new(data / CSV_NAME, status_table(judged).to_csv(index=False))
    _write_if_new(data / CLAIMS_NAME, claims_text(judged, profile=profile))
    _write_if_new(data / SCHEMA_NAME, schema_text())
    answers = landing.answers_table(judged)
    texts = results_pages(judged, pages=_listed_pages(project), answers=answers)
    for name, text in texts.items():
        _write_if_new(project.generated / "outcomes" / f"{name}.md", text)
    _write_row_figures(project, judged)
    findings = _written_findings(project)
    for paper, text in letters(judged, findings=findings).items():
        _write_if_new(project.generated / "letters" / f"{paper}.md", text)
    text = landing.landing_markdown(judged, profile=profile, findings=findings)
    _write_if_new(project.generated / "status.md", text)
    _write_guide(project)
    _write_costs(project)


def _write_row_figures(project: Project, judged: Sequence[JudgedTarget]) -> None:
    """Write the small figure of each table and figure, and remove one without evidence."""
    for entry in best_of(judged):
        path = project.generated / figure_path(entry.rule.target)
        drawing = thumbnail_svg(entry)
        if drawing:
            _write_if_new(path, drawing)
        else:
            path.unlink(missing_ok=True)


def _listed_pages(project: Project) -> list[str]:
    """Names of the executed notebooks that the table of contents of the book names."""
    contents = project.root / "book" / "_toc.yml"
    listed = contents.read_text(encoding="utf-8") if contents.is_file() else ""
    stems = [path.stem for path in project.pages.glob("*.ipynb")]
    return [stem for stem in stems if f"notebooks/{stem}" in listed]


def _written_findings(project: Project) -> dict[str, landing.Finding]:
    """The findings of the first page by slug, their figures written; none where their page was not
    run.
    """
    table = _table(project, landing.FINDINGS_PAGE, landing.FINDINGS)
    if table is None:
        return {}
    page = project.pages / f"{landing.FINDINGS_PAGE}.ipynb"
    findings = landing.read_findings(table, page)
    for slug, finding in findings.items():
        _write_if_new(project.generated / "figures" / f"{slug}.svg", finding["svg"])
    return findings


def _write_guide(project: Project) -> None:
    """Write the guide of the first page, or how it is made where its page was not run."""
    table = _table(project, landing.GUIDE_PAGE, landing.GUIDE)
    if table is None:
        text = (
            f"`make run NB={landing.GUIDE_PAGE}` makes this guide; it was not run for this book.\n"
        )
    else:
        text = landing.guide_markdown(table)
    _write_if_new(project.generated / "guide.md", text)


def _write_costs(project: Project) -> None:
    """Write the tables of costs without the columns that their page has no room for."""
    for name in landing.COSTS:
        path = project.measured / "estimates" / f"{name}.csv"
        if path.is_file():
            text = landing.costs_markdown(name, pd.read_csv(path))
            _write_if_new(project.generated / f"{name}.md", text)


def _table(project: Project, stem: str, name: str) -> pd.DataFrame | None:
    """A table that a page of the book keeps; None where the page was not run."""
    path = project.generated / "data" / stem / f"{name}.csv"
    page = project.pages / f"{stem}.ipynb"
    return pd.read_csv(path) if path.is_file() and page.is_file() else None


def pooled_outcomes(results: Sequence[RunResult]) -> dict[str, str]:
    """The outcome of each target, in words, by runs that differ in the seed alone, put together as
    in the book; a target without evidence is left out.
    """
    words: dict[str, str] = {}
    for judged in judge([_evidence(result) for result in results]):
        if judged.runs:
            facts = ", ".join(dict.fromkeys(run.scale.facts for run in judged.runs))
            words.setdefault(judged.rule.target, f"{judged.outcome} ({judged.level}: {facts})")
    return words


def outcomes(result: RunResult) -> dict[str, str]:
    """The outcome of each target by one run alone, in words, with the scale of the run."""
    kept = [from_dict(record) for record in evidence_records(result.records)]
    return {
        evidence.target: f"{decide_alone(evidence, scale.level)} ({scale.level}: {scale.facts})"
        for evidence, scale in kept
    }


def _all_evidence(project: Project, results: Mapping[Path, RunResult]) -> list[dict[str, Any]]:
    """Result files for `judge`, each with its path in the checkout and its checksum."""
    evidence: list[dict[str, Any]] = []
    for path, result in results.items():
        file = {"file": path.relative_to(project.root).as_posix(), "sha256": file_sha256(path)}
        evidence.append({**_evidence(result), **file})
    return evidence


def _evidence(result: RunResult) -> dict[str, Any]:
    """A result file for `judge`, without the answers about one's own data."""
    return {**vars(result), "records": evidence_records(result.records)}


def _write_if_new(path: Path, text: str) -> None:
    """Leave an equal file untouched, so that the book need not be built again."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)
