"""Runs count when they are finished, and only then."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from paperlib.io import read_result
from paperlib.io.budget import UNTIL_VARIABLE
from paperlib.report.provenance import provenance
from paperlib.reproduction import running
from paperlib.reproduction.exhibits.printed import PAPERS
from paperlib.reproduction.papers.verdict.evidence import rules
from paperlib.reproduction.papers.verdict.records import page_of
from paperlib.reproduction.running import book
from paperlib.reproduction.running.execute import rerun_command
from paperlib.reproduction.running.parameters import (
    check_parameters,
    parse_assignments,
    parse_parameters,
)
from paperlib.reproduction.running.sources import PACKAGE, notebook_sources, parameter_files
from tests.reproduction.running.toys import GOOD, make_project, paperlib_process, write_notebook

LETTERS = [f"letters/{paper}.md" for paper in PAPERS]
PAGES = ("status.md", "guide.md", *LETTERS, *(f"executions_{paper}.md" for paper in PAPERS))
OUTCOMES = [f"outcomes/{name}.md" for name in {"results", *map(page_of, rules().values())}]
DATA = ("data/status.csv", "data/claims.json", "data/claims.schema.json")
STATUS = {f"book/_generated/{name}" for name in (*DATA, *PAGES, *OUTCOMES)}


def files(project):
    """Everything below the project but its notebooks."""
    paths = (path.relative_to(project.root) for path in project.root.rglob("*") if path.is_file())
    return {str(path) for path in paths if path.parts[0] != "notebooks"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A checkout in which a good and a failing notebook were run into the book."""
    root = tmp_path_factory.mktemp("checkout")
    project = make_project(root, good=GOOD, bad="import warnings\nwarnings.warn('careful')")
    said = []
    failed = running.run_all(project, profile="smoke", jobs=2, say=said.append)
    return project, failed, said


def test_a_failing_notebook_stops_no_other_and_leaves_only_its_log(ran):
    project, failed, said = ran
    assert failed == ["bad"]
    assert files(project) == {
        "runs/book/smoke/good/notebook.ipynb",
        "runs/book/smoke/good/result.json",
        "runs/book/smoke/good/sizes.csv",
        "book/notebooks/good.ipynb",
        "book/_generated/results/good.json",
        "book/_generated/data/good/sizes.csv",
        "book/_generated/figures/rows/output-sets-figure-05.svg",
        "runs/failed/bad.log",
        *STATUS,
    }
    text = "\n".join(said)
    assert "bad failed in cell [2]: UserWarning: careful" in text
    assert "runs/failed/bad.log" in text
    assert "warnings.warn('careful')" in (project.runs / "failed" / "bad.log").read_text()


def test_the_result_file_and_the_page_hold_records_parameters_and_provenance_and_no_path(ran):
    project = ran[0]
    result = read_result(project.results / "good.json")
    assert (result.notebook, result.profile) == ("good", "smoke")
    assert result.parameters == {"m": 3, "file": "", "seed": 0}
    assert [item["target"] for item in result.records] == ["output-sets-figure-05"]
    assert result.data == ["sizes.csv"]
    keys = "date commit dirty python packages cpu cores gpu seconds fingerprint"
    assert set(keys.split()) <= set(result.provenance)
    page = (project.generated / "outcomes" / "output_sets_figures.md").read_text()
    section = page.split("(result-output-sets-figure-05)=")[1].split("(result-")[0]
    assert "[◆ carries over]{.chip .carries-over}" in section
    assert "Closest: asymmetric 1, claimed at least 1." in section
    assert "Scale: substitute (toy). Seed 0 run here." in section
    text = (project.pages / "good.ipynb").read_text()
    assert str(project.root) not in text
    cells = json.loads(text)["cells"]
    box = "".join(cells[-1]["source"])
    assert "How these numbers were computed" in box
    assert "make run NB=good PROFILE=smoke" in box
    (given,) = (cell for cell in cells if "parameters" in cell["metadata"].get("tags", []))
    assert "remove-input" in given["metadata"]["tags"]
    assert "".join(given["source"]) in box
    assert [cell["execution_count"] for cell in cells if cell["cell_type"] == "code"] == [1, 2]
    assert not any("papermill" in str(cell["metadata"]) for cell in cells)


def test_a_finished_run_is_shown_again_but_not_run_until_something_changes(ran):
    project = ran[0]
    job = running.plan(project, "good", profile="smoke")
    assert running.current_result(job) is not None
    assert running.current_result(running.plan(project, "good", profile="default")) is None
    assert (
        running.current_result(running.plan(project, "good", profile="smoke", given={"m": 4}))
        is None
    )
    kept = project.kept / "smoke" / "good"
    for path in (kept / "notebook.ipynb", kept / "sizes.csv"):
        content = path.read_bytes()
        path.unlink()
        assert running.current_result(job) is None, f"{path.name} is missing"
        path.write_bytes(content[:-1])
        assert running.current_result(job) is None, f"{path.name} is cut"
        path.write_bytes(content)
    result = kept / "result.json"
    content = result.read_bytes()
    result.write_bytes(content[: len(content) // 2])
    assert running.current_result(job) is None
    result.write_bytes(content)
    assert running.current_result(job) is not None
    for path in (project.pages / "good.ipynb", project.generated / "data" / "good" / "sizes.csv"):
        before = path.read_bytes()
        path.unlink()
        running.show_run(job)
        assert path.read_bytes() == before


def test_each_profile_keeps_its_runs_and_the_book_shows_one_of_them(ran, tmp_path):
    shutil.copytree(ran[0].root, tmp_path / "copy")
    project = running.Project(tmp_path / "copy")
    project.notebook("bad").unlink()
    (project.notebooks / "profiles" / "default.yaml").write_text("good:\n  m: 4\n")
    said = []
    for profile, m, runs in (("default", 4, 1), ("smoke", 3, 0), ("default", 4, 0)):
        assert running.run_all(project, profile=profile, say=said.append) == []
        assert f"Profile {profile}: 1 notebooks, {runs} to run" in said
        assert read_result(project.results / "good.json").parameters["m"] == m
        assert (project.generated / "data" / "good" / "sizes.csv").read_text() == f"m\n{m}\n"


def test_runs_with_other_seeds_join_the_outcomes_and_leave_the_pages(tmp_path):
    project = make_project(tmp_path, output_set_shapes="m", good="m")
    running.run_into_book(
        running.plan(project, "output_set_shapes", profile="smoke", where=tmp_path)
    )
    pages = {path: path.read_bytes() for path in project.pages.glob("*")}
    said = []
    assert running.run_all(project, profile="smoke", seed=5, say=said.append) == []
    assert said[0] == "Profile smoke, seed 5: 1 notebooks, 1 to run"  # "good" judges nothing
    assert {path: path.read_bytes() for path in project.pages.glob("*")} == pages
    (again,) = running.repeated_results(project, "smoke")
    assert again.parameters["seed"] == 5
    assert again.provenance["command"] == 'make run NB=output_set_shapes P="seed=5" PROFILE=smoke'
    assert running.repeated_results(project, "default") == []
    running.run_all(project, profile="smoke", seed=5, say=said.append)
    assert said[-1] == "Profile smoke, seed 5: 1 notebooks, 0 to run"
    write_notebook(project, "output_set_shapes", "m + 1")
    assert running.repeated_results(project, "smoke") == []  # of older code: no longer counted
    project.notebook("output_set_shapes").unlink()
    assert running.repeated_results(project, "smoke") == []  # of a notebook that is gone


def test_the_fingerprint_covers_source_lock_and_named_files_functions_and_folders(tmp_path):
    project = make_project(tmp_path, good=GOOD)
    scores = tmp_path / "scores.csv"

    def mark(file=str(scores), where=tmp_path):
        return running.plan(project, "good", given={"file": file}, where=where).fingerprint

    marks = []
    for path, text in [(scores, "1"), (scores, "2"), (tmp_path / "requirements.lock", "numpy==1")]:
        path.write_text(text)
        marks.append(mark())
    write_notebook(project, "good", GOOD + "\n")
    marks.append(mark())
    assert mark() == marks[-1]
    for text in "12":
        (tmp_path / "mine.py").write_text(text)
        marks.append(mark("mine.py:losses"))
    for name in "ab":
        (tmp_path / name / "texts").mkdir(parents=True)
        (tmp_path / name / "rows.csv").write_text(name)
        marks.append(mark("texts", tmp_path / name))
    marks.append(mark("x" * 400))  # no file can be called so
    for file, folder in (("mine.py:losses", tmp_path), ("texts", tmp_path / "texts")):
        for path in ("weights.npy", "net/weights.npy", "net/weights.npy"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(f"{'more' * len(marks)}")
            marks.append(mark(file))
            for name in ("runs/log", "__pycache__/mine.pyc", ".git/index"):  # what a run may write
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(path * len(marks))
            assert mark(file) == marks[-1]
    assert len(set(marks)) == len(marks) == 15
    checksums = parameter_files({"one": "a/rows.csv", "two": "b/rows.csv"}, tmp_path)
    assert set(checksums) == {"a/rows.csv", "b/rows.csv"}
    assert len(set(checksums.values())) == 2


def test_sources_are_those_a_notebook_can_reach(tmp_path):
    body = "%matplotlib inline\nfrom paperlib.reproduction.papers.own_model import train_and_score"
    project = make_project(tmp_path, good=GOOD, model=body)
    sources = (notebook_sources(project.notebook(name)) for name in ("good", "model"))
    good, model = ({str(path.relative_to(PACKAGE)) for path in paths} for paths in sources)
    report = {"report/tables.py", "reproduction/exhibits/printed_tables/targets.csv"}
    assert {*report, "core/results.py", "reproduction/running/execute.py"} <= good
    assert "reproduction/papers/own_model.py" not in good
    own_model = "reproduction/papers/own_model.py"
    assert {own_model, "bounds/one_run/audit.py", "models/losses.py"} <= model
    assert "cli.py" not in model


def test_a_run_aside_leaves_the_book_alone(tmp_path):
    project = make_project(tmp_path, good=GOOD)
    job = running.plan(project, "good", given={"m": "4"})
    folder = running.run_aside(job)
    path = project.notebook("good")  # edited while it runs
    path.write_text(path.read_text().replace("# how many", "# how many\\nk = 5  # new"))
    assert rerun_command(job) == 'make run NB=good P="m=4" PROFILE=default'
    assert {path.name for path in folder.iterdir()} == {
        "notebook.ipynb",
        "result.json",
        "sizes.csv",
    }
    assert not (tmp_path / "book").exists()
    assert [path.name for path in project.runs.iterdir()] == ["good"]
    outcome = "carries over (replaced here: simulated scores) (substitute: toy)"
    said = {"output-sets-figure-05": outcome}
    assert running.outcomes(read_result(folder / "result.json")) == said
    cells = json.loads((folder / "notebook.ipynb").read_text())["cells"]
    assert "m = 4  # how many" in "".join(cells[1]["source"])


def test_a_printed_command_gives_back_values_that_hold_spaces_and_quotes(tmp_path):
    """The shell, make and the command hand every value on as it is."""
    known = parse_parameters("some = ['a']  # texts\none = 'x'  # text\nany = None  # value", "toy")
    job = running.plan(make_project(tmp_path, good=GOOD), "good")
    job = replace(job, preset={parameter.name: parameter.default for parameter in known})
    changed = {"some": ["null cnn@32:50", "it's", "a\\b", "`c`"], "one": "two words", "any": [1, 2]}
    make, run, stem, words, profile = shlex.split(rerun_command(replace(job, parameters=changed)))
    assert (make, run, stem, profile) == ("make", "run", "NB=good", "PROFILE=default")
    read = parse_assignments(running.split_assignments(words.removeprefix("P=")))
    assert check_parameters(known, read, "toy") == changed
    numbers = {**job.preset, "any": [1, 2]}
    expected = 'make run NB=good P="any=[1,2]" PROFILE=default'
    assert rerun_command(replace(job, parameters=numbers)) == expected


def test_a_run_whose_time_is_over_ends_with_one_line_and_its_own_code(tmp_path):
    body = f"""
import os
from paperlib.io.budget import stop_if_spent
assert float(os.environ["{UNTIL_VARIABLE}"]) > 1e9
os.environ["{UNTIL_VARIABLE}"] = "1"
stop_if_spent()"""
    make_project(tmp_path, toy=body)
    process = paperlib_process(tmp_path, "run", "toy", "--minutes", "5")
    _, said = process.communicate(timeout=100)
    assert process.returncode == 75
    assert said == (
        "toy: the time is over; finished stages and the training under way are kept, and the same "
        "command goes on from there\n"
    )
    assert not (tmp_path / "runs" / "failed").exists()


def failed(project, **given):
    with pytest.raises(running.NotebookError) as caught:
        running.run_aside(running.plan(project, "toy", given=given))
    return str(caught.value)


def test_a_mistake_of_the_user_is_one_line_and_a_fault_in_code_shows_its_last_one(
    tmp_path, monkeypatch
):
    """The traceback is in the log alone, unless it is asked for."""
    body = """
class OutputError(OSError):
    pass
if m == 1: raise OutputError("members: expected\\n   30 rows, got 3")
if m == 2: {}["trials"]
"""
    monkeypatch.chdir(tmp_path)
    project = make_project(tmp_path, toy=body)
    first, last = failed(project, m=1).splitlines()
    assert first == "toy: members: expected 30 rows, got 3"
    where = (
        "No result was kept, only this log (paperlib --debug prints the traceback): runs/failed/"
    )
    assert last.startswith(where)
    assert "Traceback" in (tmp_path / last.rpartition(" ")[2]).read_text()
    monkeypatch.setenv("PAPERLIB_DEBUG", "1")
    said = failed(project, m=2)
    assert said.startswith("toy failed in cell [2]: KeyError: 'trials'\n")
    assert "Traceback" in said


READS = """from pathlib import Path
from own_code import answer
Path(report or "none.html").write_text(Path(file).read_text() + answer)
"""


def test_relative_paths_are_seen_from_where_the_user_stands(tmp_path, monkeypatch):
    """Files to read, code to import and reports to write; a report is no data of the run."""
    project = make_project(tmp_path / "checkout", toy=READS)
    notebook = project.notebook("toy")
    with_report = 'report = \\"\\"  # to write\\nseed = 0'
    notebook.write_text(notebook.read_text().replace("seed = 0", with_report))
    user = tmp_path / "my data"
    user.mkdir()
    (user / "rows.csv").write_text("rows")
    (user / "own_code.py").write_text("answer = ' and code'")
    given = {"file": "rows.csv", "report": "page.html"}
    monkeypatch.chdir(user)
    result = read_result(
        running.run_aside(running.plan(project, "toy", given=given)) / "result.json"
    )
    assert (user / "page.html").read_text() == "rows and code"
    assert set(result.provenance["data"]) == {"rows.csv"}
    same = running.plan(project, "toy", given=given).fingerprint  # though the page is there now
    assert result.provenance["fingerprint"] == same
    monkeypatch.chdir(tmp_path)
    assert running.plan(project, "toy", given=given, where=user).fingerprint == same
    assert "own_code" in failed(project, **given)


def test_a_file_of_the_checkout_that_a_profile_names_is_found_from_elsewhere(tmp_path, monkeypatch):
    project = make_project(tmp_path / "checkout", toy="assert open(file).read() == 'kept'")
    (project.root / "book").mkdir()
    (project.root / "book" / "kept.csv").write_text("kept")
    (project.notebooks / "profiles" / "default.yaml").write_text("toy:\n  file: book/kept.csv\n")
    monkeypatch.chdir(tmp_path)
    running.run_aside(running.plan(project, "toy"))
    assert "book/kept.csv" not in rerun_command(running.plan(project, "toy"))


def test_a_failed_run_keeps_the_page_that_was_there(tmp_path):
    project = make_project(tmp_path, good="import os\nos._exit(3)")
    page = project.pages / "good.ipynb"
    page.parent.mkdir(parents=True)
    page.write_text("old")
    with pytest.raises(running.NotebookError, match="good failed"):
        running.run_into_book(running.plan(project, "good"))
    assert files(project) == {"book/notebooks/good.ipynb", "runs/failed/good.log"}
    assert page.read_text() == "old"


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_what_a_killed_run_left_goes_with_the_next_one_and_a_changed_digit_does_not_count(
    tmp_path, monkeypatch
):
    project = make_project(
        tmp_path, slow="open('started', 'w').close()\n__import__('time').sleep(60)"
    )
    write_notebook(project, "quick", GOOD)
    process = paperlib_process(tmp_path, "run", "slow", "--profile", "smoke")
    while not (tmp_path / "started").exists():
        assert process.poll() is None
        time.sleep(0.05)
    sockets = [path for path in Path("/tmp").glob("nb-*") if f"-{process.pid}-" in path.name]
    left = list(project.runs.glob(".slow-*"))
    assert (len(sockets), len(left)) == (1, 1)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    monkeypatch.setattr("paperlib.io.temporary._cleaned", set())  # as in a new process
    job = running.plan(project, "quick", profile="smoke")
    kept = running.keep_run(job)
    assert not sockets[0].exists()
    assert list(project.runs.glob(".*")) == []
    result = kept / "result.json"
    assert running.current_result(job) is not None
    content = json.loads(result.read_text())
    content["records"][0]["note"] = "1000"
    result.write_text(json.dumps(content))
    assert running.current_result(job) is None


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_interrupted_run_leaves_nothing(tmp_path):
    body = f"open({str(tmp_path / 'started')!r}, 'w').close()\nimport time\ntime.sleep(60)"
    project = make_project(tmp_path, slow=body)
    process = paperlib_process(tmp_path, "run", "--all", "--profile", "smoke")
    until = time.monotonic() + 60
    while not (tmp_path / "started").exists() and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert error == "paperlib: interrupted; no half-finished result was kept\n"
    assert files(project) == {"started"}


def test_a_profile_of_made_up_data_finds_them_and_stays_outside_the_book(tmp_path):
    body = (
        "from paperlib.reproduction.data import load\nprint(len(load('adult').train_y), 'people')"
    )
    project = make_project(tmp_path, people=f"{body}\n{GOOD}")
    (project.notebooks / "profiles" / "small.yaml").write_text("base: default\ndata: made up\n")
    said = []
    for _ in range(2):
        assert running.run_all(project, profile="small", say=said.append) == []
    assert said[-1] == "Profile small: 1 notebooks, 0 to run"
    assert not (tmp_path / "book").exists()
    kept = project.kept / "small" / "people"
    assert "1400 people" in (kept / "notebook.ipynb").read_text()
    outcome = running.outcomes(read_result(kept / "result.json"))["output-sets-figure-05"]
    assert outcome.startswith("undecided (made-up data decide nothing)")


def test_a_first_run_starts_the_notebooks_in_the_order_of_the_profile(tmp_path, monkeypatch):
    project, started = make_project(tmp_path, a="1", b="1", c="1"), []
    (project.notebooks / "profiles" / "smoke.yaml").write_text("b: {}\nc: {}\na: {}\n")
    monkeypatch.setattr(
        "paperlib.reproduction.running.together._run_many", lambda jobs, *_: started.extend(jobs)
    )
    running.run_all(project, profile="smoke", say=str)
    assert [job.stem for job in started] == ["b", "c", "a"]


def test_a_bad_profile_is_refused_before_anything_runs(tmp_path):
    project = make_project(tmp_path, good=GOOD)
    (project.notebooks / "profiles" / "smoke.yaml").write_text("good:\n  n: 3\n")
    with pytest.raises(ValueError, match="profile smoke, good: unknown parameter 'n'"):
        running.run_all(project, profile="smoke")
    assert files(project) == set()


def test_pages_of_removed_notebooks_go(tmp_path):
    project = make_project(tmp_path)
    kept = project.kept / "smoke" / "gone" / "result.json"
    for path in (project.pages / "gone.ipynb", project.results / "gone.json", kept):
        path.parent.mkdir(parents=True)
        path.write_text("{}")
    assert running.run_all(project, profile="smoke", say=lambda _: None) == []
    assert files(project) == STATUS


def test_two_runs_that_are_kept_at_one_time_are_not_mixed(tmp_path, monkeypatch):
    for name in "ab":
        (tmp_path / name).mkdir()
        for file in ("1.csv", "2.csv", "3.csv"):
            (tmp_path / name / file).write_text(name)
    own, begun, kept = book._linked, list[str](), tmp_path / "book" / "good"
    other = threading.Thread(target=book.copy_whole, args=(tmp_path / "b", kept))

    def linked(source, target):
        begun.append(source)
        if len(begun) == 2:  # the other one begins in the midst of the first
            other.start()
            other.join(0.3)
        return own(source, target)

    monkeypatch.setattr(book, "_linked", linked)
    book.copy_whole(tmp_path / "a", kept)
    other.join()
    assert [path.read_text() for path in kept.iterdir()] == ["b", "b", "b"]
    assert list(kept.parent.iterdir()) == [kept]


def test_a_source_that_git_does_not_know_is_a_local_change_and_a_file_of_the_user_is_none(tmp_path):
    names = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    for words in (("init", "-q"), (*names, "commit", "-q", "--allow-empty", "-m", "first")):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    (tmp_path / "paperlib").mkdir()
    for name, dirty in (("scores.csv", False), ("paperlib/new.py", True)):
        (tmp_path / name).write_text("")
        found = provenance(root=tmp_path, profile="smoke", parameters={}, seconds=0)
        assert found["dirty"] is dirty


def test_a_kernel_of_another_python_with_the_usual_name_is_not_used(tmp_path, monkeypatch):
    other = tmp_path / "jupyter" / "kernels" / "python3"
    other.mkdir(parents=True)
    spec = {"argv": [str(tmp_path / "other-python")], "display_name": "Other", "language": "python"}
    (other / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    running.run_aside(running.plan(make_project(tmp_path, good="m"), "good"))


def test_a_checkout_with_a_package_of_its_own_is_run_by_that_package_alone(tmp_path):
    """Its notebooks would import that one, under the fingerprint of the other."""
    project = make_project(tmp_path, good="m")
    (tmp_path / "paperlib").symlink_to(PACKAGE)
    running.plan(project, "good")
    (tmp_path / "paperlib").unlink()
    (tmp_path / "paperlib").mkdir()
    with pytest.raises(ValueError, match=r"PYTHONPATH: set it to .*, whose paperlib is not"):
        running.plan(project, "good")


def test_the_fingerprint_covers_packages_kept_tables_made_up_data_and_files_in_lists(
    tmp_path, monkeypatch
):
    """And a file of a folder that has another's size and date, as unpacked archives may have."""
    body = "from paperlib.reproduction.papers.measured import measured_table"
    project, marks = make_project(tmp_path, good=body, other="m"), list[str]()
    path = project.notebook("good")
    path.write_text(path.read_text().replace("# a file", "# a file\\nfiles = []"))
    (tmp_path / "texts").mkdir()
    given = {"files": ["rows.csv", "texts"]}

    def mark():
        marks.append(running.plan(project, "good", given=given, where=tmp_path).fingerprint)

    (tmp_path / "rows.csv").write_text("1")
    mark()
    (tmp_path / "rows.csv").write_text("2")
    mark()
    for text in "ab":
        (tmp_path / "texts" / "a.txt").write_text(text)
        os.utime(tmp_path / "texts" / "a.txt", (0, 0))
        mark()
    before = running.plan(project, "other").fingerprint
    project.measured.mkdir(parents=True)
    (project.measured / "kept.csv").write_text("a")
    mark()
    assert running.plan(project, "other").fingerprint == before, "it shows no kept table"
    versions = "paperlib.reproduction.running.sources.package_version"
    monkeypatch.setattr(versions, lambda name: f"{name} 0.1")
    mark()
    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path))
    mark()
    (tmp_path / "MADE-UP.json").write_text("{}")
    mark()
    assert len(set(marks)) == len(marks) - 1, "another folder of true data alone repeats nothing"
