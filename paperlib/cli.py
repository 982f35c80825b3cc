"""The ``paperlib`` command: run notebooks, audit a model's scores, see what there is."""

import json
import os
import shlex
import shutil
import signal
import sys
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from paperlib.audits import Audits, audit_scores
from paperlib.core import check_confidence, check_delta, json_ready
from paperlib.io import LoadedScores, OutputError, data_folder, file_sha256, read_scores, write_text
from paperlib.report.audit_page import audit_report
from paperlib.report.printed import targets
from paperlib.report.provenance import gpu_name, hardware, package_versions, utc_now
from paperlib.running import (
    NotebookError,
    Project,
    find_project,
    notebook_parameters,
    parse_assignments,
    plan,
    run_all,
    run_aside,
    run_into_book,
)
from paperlib.running.book import book_results
from paperlib.running.execute import PAGE, RESULT
from paperlib.running.parameters import read_notebook

USAGE_ERROR, INTERRUPTED = 2, 130

app = typer.Typer(
    help="Audit the privacy of machine-learning models without retraining them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class Kind(StrEnum):
    """Direction of the values in a file."""

    scores = "scores"
    losses = "losses"


class GuessMode(StrEnum):
    """Where the one-run audit guesses."""

    both = "both"
    members = "members"
    grid = "grid"


class DesignMode(StrEnum):
    """How membership was decided."""

    randomized = "randomized"
    game = "game"


@app.command(
    epilog="Examples:  paperlib run output_set_gain -p trials=20 -p seed=1 --profile smoke   |   "
    "paperlib run --all --profile default --jobs 2"
)
def run(
    notebook: Annotated[str, typer.Argument(help="Name of a notebook; see `paperlib list`.")] = "",
    assignments: Annotated[list[str] | None, typer.Argument(help="name=value words, as with -p.")] = None,
    parameter: Annotated[
        list[str] | None, typer.Option("-p", "--parameter", help="One parameter, name=value; repeatable.")
    ] = None,
    profile: Annotated[str, typer.Option(help="smoke, default or paper.")] = "default",
    every: Annotated[
        bool, typer.Option("--all", help="Run every notebook that changed, for the book.")
    ] = False,
    jobs: Annotated[int, typer.Option(help="Notebooks run at one time with --all.")] = 2,
    book: Annotated[bool, typer.Option("--book", help="Put this one run into the book.")] = False,
) -> None:
    """Run one notebook with checked parameters into a new folder below runs/, or all into the book."""
    project = find_project()
    given = parse_assignments([*(assignments or []), *(parameter or [])])
    if every:
        if notebook or given:
            raise ValueError("--all: expected no notebook and no parameters beside it")
        _run_every(project, profile, jobs)
        return
    if not notebook:
        raise ValueError(f"notebook: expected one of {', '.join(project.stems()) or 'none yet'}, or --all")
    job = plan(project, notebook, profile=profile, given=given)
    if book:
        run_into_book(job)
        return
    folder = run_aside(job)
    _print_records(folder)
    print(f"Executed notebook: {folder / PAGE}\nResult file:       {folder / RESULT}")


def _run_every(project: Project, profile: str, jobs: int) -> None:
    failed = run_all(project, profile=profile, jobs=jobs, say=lambda text: print(text, flush=True))
    if failed:
        raise NotebookError(f"failed: {', '.join(failed)}; the other notebooks are done")


def _print_records(folder: Path) -> None:
    result = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    for item in result["records"]:
        verdict = "holds" if item["holds"] else "does not hold"
        print(f"{item['target']}: {verdict} ({item['scale']}). Paper: {item['paper']}. Ours: {item['ours']}.")


@app.command("list", epilog="Example:  paperlib list --profile paper")
def list_notebooks(
    profile: Annotated[str, typer.Option(help="Profile whose values are shown.")] = "default",
) -> None:
    """List the notebooks with their parameters, what they reproduce, and how that went here."""
    project = find_project()
    results = {result.notebook: result for result in book_results(project)}
    table = targets()
    for stem in project.stems():
        values = plan(project, stem, profile=profile).parameters
        print(f"{stem}: {_title(project, stem)}")
        for item in notebook_parameters(project.notebook(stem)):
            print(
                f"    {item.name} = {values[item.name]!r}" + (f"  # {item.comment}" if item.comment else "")
            )
        mine = [row["id"] for row in table.to_dict("records") if stem in str(row["notebook"]).split("; ")]
        found = {r["target"]: r for r in results[stem].records} if stem in results else {}
        for name in mine:
            print(f"    reproduces {name}: {_status(found.get(name))}")
        if stem in results:
            print(f"    last run: {results[stem].provenance['date']}, profile {results[stem].profile}")
        print()


def _title(project: Project, stem: str) -> str:
    for cell in read_notebook(project.notebook(stem)).cells:
        for line in cell.source.splitlines():
            if cell.cell_type == "markdown" and line.startswith("#"):
                return line.lstrip("# ").replace("\\", "")
    return "(no title)"


def _status(record: dict[str, Any] | None) -> str:
    if record is None:
        return "not yet"
    return f"{'holds' if record['holds'] else 'does not hold'} ({record['scale']})"


@app.command(epilog="Example:  PAPERLIB_DATA=/data paperlib doctor")
def doctor() -> None:
    """Show what is installed, the hardware, where data is looked for, and where files can be written."""
    machine = hardware()
    print(
        f"Python {sys.version.split()[0]} on {machine['system']}, {machine['cpu']}, {machine['cores']} cores"
    )
    print(f"GPU: {gpu_name() or 'none found'}")
    versions = package_versions()
    for name, extra in _WANTED.items():
        missing = f"not installed (pip install 'paperlib[{extra}]')" if extra else "not installed"
        print(f"  {name:16} {versions.get(name) or _version(name) or missing}")
    browser = next(
        (p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None
    )
    print(f"Chromium (make check, make pdf): {browser or 'not found'}")
    data = data_folder()
    chosen = (
        "PAPERLIB_DATA" if os.environ.get("PAPERLIB_DATA") else "the default; set PAPERLIB_DATA to change it"
    )
    print(f"Data is looked for in {data} ({chosen}): {_writable(data)}")
    try:
        project = find_project()
    except ValueError:
        print("No checkout here: `paperlib audit` works, `paperlib run` needs one")
        return
    for folder in (project.runs, project.generated):
        print(f"{folder.relative_to(project.root)}/: {_writable(folder)}")


_WANTED = {
    "paperlib": "", "numpy": "", "scipy": "", "pandas": "", "matplotlib": "run", "pyarrow": "run",
    "papermill": "run", "ipykernel": "run", "torch": "train", "torchvision": "train", "scikit-learn": "train",
    "jupyter-book": "book", "pytest": "dev",
}  # fmt: skip


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _writable(folder: Path) -> str:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not (existing.is_dir() and os.access(existing, os.W_OK)):
        return "NOT writable"
    return "writable" if existing == folder else "can be made"


@app.command(
    epilog="Examples:  paperlib audit my_scores.csv   |   paperlib audit losses.parquet --score-column nll "
    "--member-column in_train --losses --delta 1e-5   |   paperlib audit members.npy others.npy --kind losses"
)
def audit(
    file: Annotated[
        Path,
        typer.Argument(
            help="CSV, Parquet, NPZ or NPY with a score or loss column and a membership column (1/0, "
            "true/false, in/out); with a second file, the members' scores."
        ),
    ],
    nonmembers: Annotated[Path | None, typer.Argument(metavar="[FILE2]", help="Non-members' scores.")] = None,
    score_column: Annotated[str | None, typer.Option(help="Score column; default: score or loss.")] = None,
    member_column: Annotated[str | None, typer.Option(help="Membership column; default: member.")] = None,
    kind: Annotated[
        Kind | None, typer.Option(help="scores: higher means member; losses: lower does. Default: by name.")
    ] = None,
    losses: Annotated[bool, typer.Option("--losses", help="The same as --kind losses.")] = False,
    delta: Annotated[float, typer.Option(help="Delta of the guarantee tested, in [0, 1).")] = 0.0,
    confidence: Annotated[float, typer.Option(help="Confidence of every number, in (0, 1).")] = 0.95,
    guess: Annotated[
        GuessMode, typer.Option(help="Guess on both ends, on likely members only, or over a grid of pairs.")
    ] = GuessMode.both,
    design: Annotated[
        DesignMode,
        typer.Option(help="randomized: fair coins chose the members; game: draw a fair-coin subsample."),
    ] = DesignMode.randomized,
    seed: Annotated[int, typer.Option(help="Seed of every random split.")] = 0,
    output: Annotated[Path | None, typer.Option(help="HTML report; default: FILE-audit.html here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; a report only with --output.")] = False,
) -> None:
    """Audit the scores of a trained model: numbers, what each supports, and an HTML report."""
    check_confidence(confidence)
    check_delta(delta)
    if losses and kind is Kind.scores:
        raise ValueError("--losses: contradicts --kind scores")
    given = Kind.losses if losses else kind
    loaded = read_scores(
        file,
        nonmembers,
        score_column=score_column,
        member_column=member_column,
        kind=given.value if given else None,
    )
    audits = audit_scores(
        loaded.scores,
        delta=delta,
        confidence=confidence,
        guess=guess.value,
        design=design.value,
        seed=seed,
    )
    files = [path for path in (file, nonmembers) if path is not None]
    facts = _facts(loaded, files)
    report = output or (None if as_json else Path(f"{file.name.partition('.')[0]}-audit.html"))
    if report is not None:
        page = audit_report(loaded.scores, tuple(audits), title=f"Privacy audit of {file.name}", facts=facts)
        write_text(report, page)
    if as_json:
        content = {**audits.to_dict(), "provenance": facts}
        print(json.dumps(json_ready(content), indent=1, sort_keys=True, ensure_ascii=False))
    else:
        _print_audits(loaded, audits)
        print(f"Report: {report}")


def _facts(loaded: LoadedScores, files: list[Path]) -> dict[str, str]:
    machine = hardware()
    versions = package_versions()
    return {
        "Input": f"{loaded.source}, read as {loaded.kind}",
        **{f"SHA-256 of {path.name}": file_sha256(path) for path in files},
        "Command": shlex.join(["paperlib", *sys.argv[1:]]),
        "Date": utc_now(),
        "Versions": f"Python {sys.version.split()[0]}, "
        + ", ".join(
            f"{name} {versions[name]}" for name in ("paperlib", "numpy", "scipy") if name in versions
        ),
        "Hardware": f"{machine['cpu']}, {machine['cores']} cores",
    }


def _print_audits(loaded: LoadedScores, audits: Audits) -> None:
    scores = loaded.scores
    print(
        f"{loaded.source}: {scores.member.size} members, {scores.nonmember.size} non-members ({loaded.kind})"
    )
    print(f"AUC {scores.auc():.4f}\n")
    print(f"{audits}\n")
    print("Each number holds at its own confidence; assumptions are in the report (and in --json).")


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def main() -> None:
    """Run the command; user errors end with one message on stderr and exit code 2."""
    signal.signal(signal.SIGTERM, _interrupt)
    sys.exit(_guarded())


def _guarded() -> int:
    try:
        code = app(standalone_mode=False)
        # Typer turns a Ctrl-C into this exit code without a word.
        return _interrupted() if code == INTERRUPTED else code if isinstance(code, int) else 0
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except typer.Exit as stop:
        return stop.exit_code
    except NotebookError as error:
        return _complain(str(error), 1)
    except (OutputError, ValueError, FileNotFoundError, PermissionError, IsADirectoryError) as error:
        return _complain(str(error), USAGE_ERROR)
    except Exception as error:
        # Typer's usage errors come from the copy of click it carries, which has no public name.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        return _complain(message(), USAGE_ERROR)


def _interrupted() -> int:
    return _complain("interrupted; nothing half-made was kept", INTERRUPTED)


def _complain(message: str, code: int) -> int:
    print(f"paperlib: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
