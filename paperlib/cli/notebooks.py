"""``paperlib run`` and ``paperlib list``: the notebooks of a checkout."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

from paperlib import running
from paperlib.cli.options import Notebook, Profile

_P, _FROM = "PAPERLIB_P", "PAPERLIB_FROM"
"""What ``make run`` leaves in the environment: its P as it was typed, and the folder it was called
from.
"""


def run(
    notebook: Notebook = "",
    assignments: list[str] | None = None,
    parameter: list[str] | None = None,
    profile: Profile = "default",
    every: bool = False,
    jobs: int = 2,
    book: bool = False,
    seed: int | None = None,
    measured: bool = False,
) -> None:
    """Run one notebook with checked parameters into a new folder below runs/, or all into the
    book.
    """
    from paperlib.io import read_result, write_bytes
    from paperlib.running.execute import PAGE, RESULT

    project = running.find_project()
    typed = running.split_assignments(os.environ.pop(_P, ""))
    values = running.parse_assignments([*(assignments or []), *(parameter or []), *typed])
    where = Path(os.environ.pop(_FROM, "") or Path.cwd())
    if measured and (every or book or seed is not None or project.made_up(profile)):
        raise ValueError(
            "--measured: expected one run on true data, without --all, --book and --seed"
        )
    if every:
        if notebook or values:
            raise ValueError("--all: expected no notebook and no parameters beside it")
        say = partial(print, flush=True)
        if failed := running.run_all(project, profile=profile, jobs=jobs, seed=seed, say=say):
            raise running.NotebookError(
                f"failed: {', '.join(failed)}; the other notebooks are done"
            )
        return
    if not notebook:
        raise ValueError(
            f"notebook: expected one of {', '.join(project.stems()) or 'none yet'}, or --all"
        )
    kept = (
        book or seed is not None
    )  # with the paths of its profile, which are seen from the checkout
    job = running.plan(
        project,
        notebook,
        profile=profile,
        given=values,
        seed=seed,
        where=project.root if kept else where,
    )
    if seed is not None:
        if values or book:
            raise ValueError(
                "--seed: expected neither parameters nor --book beside it; see -p seed=1"
            )
        print(f"Kept for the outcomes: {running.keep_run(job)}")
        return
    if book:
        running.run_into_book(job)
        return
    folder = running.run_aside(job)
    result = read_result(folder / RESULT)
    for target, outcome in running.outcomes(result).items():
        print(f"{target}: {outcome}")
    for answer in running.answers_in(result):
        print(f"{answer.words(where)}\n")
    print(f"Executed notebook: {folder / PAGE}\nResult file:       {folder / RESULT}")
    if measured:
        committed = project.measured / profile / f"{job.stem}.json"
        if committed.exists() and read_result(committed).parameters != result.parameters:
            committed = committed.with_stem(
                f"{job.stem}-{job.fingerprint[:8]}"
            )  # the other one stays
        write_bytes(committed, (folder / RESULT).read_bytes())
        print(f"To be committed:   {committed}")


def list_notebooks(profile: Profile = "default") -> None:
    """List the notebooks with their parameters, what they reproduce, and the verdicts of their last
    run.
    """
    from paperlib.report import targets
    from paperlib.running.parameters import read_notebook

    project = running.find_project()
    results = {result.notebook: result for result in running.book_results(project)}
    table = targets()
    for stem in project.stems():
        values = running.plan(project, stem, profile=profile).parameters
        cells = read_notebook(project.notebook(stem)).cells
        headings = (
            line.lstrip("# ").replace("\\", "")
            for cell in cells
            if cell.cell_type == "markdown"
            for line in cell.source.splitlines()
            if line.startswith("#")
        )
        print(f"{stem}: {next(headings, '(no title)')}")
        for item in running.notebook_parameters(project.notebook(stem)):
            print(f"    {replace(item, default=values[item.name])}")
        mine = [
            row["id"]
            for row in table.to_dict("records")
            if stem in str(row["notebook"]).split("; ")
        ]
        said = running.outcomes(results[stem]) if stem in results else {}
        for name in mine:
            print(f"    reproduces {name}: {said.get(name, 'not yet')}")
        if stem in results:
            print(
                f"    last run: {results[stem].provenance['date']}, profile {results[stem].profile}"
            )
        print()
