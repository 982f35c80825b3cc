"""Sweeps of notebooks: each unit once, also when workers die; what is finished stays, and is
evidence.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from paperlib.io import read_result
from paperlib.reproduction import running
from paperlib.reproduction.cli.sweep import sweep_notebook
from paperlib.reproduction.running.sweep import run_batch
from paperlib.reproduction.sweeps import Place, SweepError
from tests.reproduction.running.toys import GOOD, make_project, paperlib_process, write_notebook
from tests.reproduction.sweeps.sweep_jobs import assert_all_end, local_cluster

TRACED = """import os, time, uuid
from pathlib import Path
place = Path({trace!r})
(place / f"{{seed}}-{{os.getppid()}}-{{uuid.uuid4().hex}}-started").touch()
time.sleep({seconds})
if seed == 13: raise ValueError(f"{{seed}} is a bad number")
(place / f"{{seed}}-{{uuid.uuid4().hex}}-finished").touch()
"""
JUDGED = "output_set_shapes"
"""A name that the rules know, so that its runs are evidence."""


def executions(trace, what):
    return Counter(int(path.name.partition("-")[0]) for path in trace.glob(f"*-{what}"))


def traced(root, seconds):
    trace = root / "trace"
    trace.mkdir()
    return make_project(root, toy=TRACED.format(trace=str(trace), seconds=seconds)), trace


def units_of(project, stem="toy", **given):
    return running.plan_units(project, stem, profile="smoke", given=given)


def done(units, place=None):
    return dict(running.run_notebook_units(units, place=place, progress=False))


@pytest.fixture(autouse=True)
def own_package(monkeypatch):
    """Worker processes import this checkout."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    monkeypatch.delenv("PAPERLIB_SCHEDULER", raising=False)


def test_units_are_all_combinations_with_the_fingerprints_of_single_runs(tmp_path):
    project = make_project(tmp_path, toy="m")
    units = units_of(project, m="1,2", seed="0..2")
    pairs = [(unit.parameters["m"], unit.parameters["seed"]) for unit in units]
    assert pairs == [(m, seed) for m in (1, 2) for seed in (0, 1, 2)]
    for unit in units:
        job = running.plan(project, "toy", profile="smoke", given=unit.parameters)
        assert (unit.mark, unit.parameters) == (job.fingerprint, job.parameters)
    assert repr(units[1]) == "m=1, seed=1"


def test_relative_paths_are_seen_from_where_the_sweep_was_planned(tmp_path, monkeypatch):
    """Also on a worker that stands elsewhere; another folder's file of that name is another
    unit.
    """
    project = make_project(tmp_path, toy="assert open(file).read() == 'rows'")
    planned = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows.csv").write_text("rows" if name == "here" else "other")
        monkeypatch.chdir(tmp_path / name)
        planned += units_of(project, file="rows.csv", seed="0,1")
    assert len({unit.mark for unit in planned}) == 4
    run_batch(planned[:1])
    assert set(planned[0].result().provenance["data"]) == {"rows.csv"}


def test_a_model_beside_a_function_that_changed_is_audited_anew(tmp_path, monkeypatch):
    """And a function that writes beside itself stops no run of its sweep."""
    project = make_project(
        tmp_path / "checkout", toy="open('cache', 'a').write('m') if m > 3 else None"
    )
    (tmp_path / "mine.py").write_text("")
    (tmp_path / "weights.npy").write_text("1")
    monkeypatch.chdir(tmp_path)
    finished = []
    for m, weights in (("1,2", "1"), ("1,2", "1"), ("1,2", "22"), ("4,5", "22")):
        if (tmp_path / "weights.npy").read_text() != weights:
            (tmp_path / "weights.npy").write_text(weights)
        units = units_of(project, file="mine.py:losses", m=m)
        finished.append([unit.result() is not None for unit in units])
        assert len(done(units)) == 2
    assert finished == [[False] * 2, [True] * 2, [False] * 2, [False] * 2]


def test_runs_that_would_write_one_report_are_refused(tmp_path):
    """The last one would take the place of the others."""
    project = make_project(tmp_path, toy="m")
    notebook = project.notebook("toy")
    notebook.write_text(notebook.read_text().replace("seed = 0", 'report = \\"\\"\\nseed = 0'))
    assert len(units_of(project, report="a.html,b.html")) == 2
    with pytest.raises(
        ValueError, match=r"several runs would write 'a.html'; leave this parameter out"
    ):
        units_of(project, report="a.html", m="1,2")


def test_a_failing_unit_is_named_with_cell_and_message_and_stops_no_other(tmp_path):
    project, trace = traced(tmp_path, 0.0)
    units = units_of(project, seed="13,14", m="3,4")[:3]
    with pytest.raises(SweepError, match="2 of 3 configurations failed") as caught:
        done(units)
    assert executions(trace, "finished") == Counter([14])
    assert {unit.parameters["seed"] for unit, _ in caught.value.failures} == {13}
    for _, error in caught.value.failures:
        first, *_, last = str(error).splitlines()
        assert first == "toy: 13 is a bad number"
        assert (tmp_path / last.rpartition(" ")[2]).is_file()
    assert len(list((project.runs / "failed").iterdir())) == 2, "each failure has a log of its own"


def test_units_that_the_book_asks_for_are_shared_with_it(tmp_path):
    project = make_project(tmp_path, **{JUDGED: "m"})
    running.keep_run(running.plan(project, JUDGED, profile="smoke", seed=2))
    before = read_result(project.kept / "smoke-seed-2" / JUDGED / "result.json")
    units = units_of(project, JUDGED, seed="0,2", m="3,4")
    assert [unit.result() is not None for unit in units].count(True) == 1
    done(units)
    (mine,) = [unit for unit in units if unit.parameters == before.parameters]
    assert mine.result() == before, "it ran again"
    assert {result.parameters["seed"] for result in running.repeated_results(project, "smoke")} == {
        2
    }
    places = {str(path.relative_to(project.kept)) for path in project.kept.glob("*/*")}
    assert places == {f"smoke/{JUDGED}", f"smoke-seed-2/{JUDGED}"}
    assert running.mean_run(project, JUDGED, "smoke")[0] > 0.1
    running.write_table(tmp_path / "a.csv", units, {})
    folders = list(pd.read_csv(tmp_path / "a.csv")["folder"])
    places = [(project.runs / "sweep" / JUDGED / folder).resolve() for folder in folders]
    assert places == [unit.folder for unit in units]


def test_evidence_of_the_seeds_of_a_setting_is_pooled(tmp_path):
    body = GOOD.replace(
        '"output-sets-figure-05", "exact"', '"panoramia-figure-13", "model"'
    ).replace('{"asymmetric": Estimate(m / 3)}', '{"losses separate": [m + seed / 100]}')
    project = make_project(tmp_path, panoramia_images=body)
    units = units_of(project, "panoramia_images", m="1,6", seed="0..2")
    replaced = "carries over (replaced here: CelebA, its multi-label CNN)"
    for count, said in ((2, "undecided (2 models, 3 needed)"), (3, replaced)):
        done(units[:count])
        found = {
            "m=1": (count, {"panoramia-figure-13": f"{said} (substitute: toy)"}),
            "m=6": (0, {}),
        }
        assert running.pooled_by_setting(units) == found
    running.write_table(tmp_path / "a.csv", units, {})
    alone = pd.read_csv(tmp_path / "a.csv", keep_default_na=False)["panoramia-figure-13"]
    assert [text.partition(")")[0] for text in alone] == ["undecided (1 model, 3 needed"] * 3 + [
        ""
    ] * 3


def test_a_changed_notebook_is_refused_by_the_worker(tmp_path):
    project = make_project(tmp_path, toy="m")
    units = units_of(project, seed="0..1")
    write_notebook(project, "toy", "m + 1")
    with pytest.raises(SweepError, match="not what the sweep was planned with"):
        done(units)
    assert [unit.result() for unit in units] == [None, None]


def test_two_sweeps_at_one_time_run_a_shared_unit_once(tmp_path):
    project, trace = traced(tmp_path, 0.5)
    (unit,) = units_of(project, seed="1")
    script = (
        "import sys\nfrom pathlib import Path\n"
        "from paperlib.reproduction.running import Project, plan_units\n"
        "from paperlib.reproduction.running.sweep import run_batch\n"
        "run_batch(plan_units(Project(Path(sys.argv[1])), 'toy', profile='smoke', given={'seed': "
        "'1'}))"
    )
    other = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)])
    run_batch([unit])
    assert other.wait(60) == 0
    assert executions(trace, "started") == Counter({1: 1})


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)
def test_a_worker_with_several_threads_runs_one_unit_at_a_time(tmp_path):
    project, trace = traced(tmp_path, 0.3)
    units = units_of(project, seed="0,1")
    with local_cluster(threads=3) as cluster:
        assert done(units, Place(address=cluster.scheduler_address)).keys() == set(units)
    times = [[path.stat().st_mtime for path in trace.glob(f"{seed}-*")] for seed in range(2)]
    first, second = sorted((min(one), max(one)) for one in times)
    assert first[1] < second[0]


@pytest.mark.slow
def test_the_command_names_failures_with_exit_code_1_and_goes_on_after_an_interrupt(
    tmp_path, monkeypatch
):
    project, trace = traced(tmp_path, 0.4)

    monkeypatch.setenv("PAPERLIB_PROGRESS", "0")

    def start(workers):
        words = ["toy", "--profile", "smoke", "-p", "seed=12..14", "--workers", workers]
        return paperlib_process(tmp_path, "sweep", *words)

    process, until = start("1"), time.monotonic() + 90
    while not executions(trace, "finished") and time.monotonic() < until:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the workers get it too
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "of 3 runs are finished and kept; the same command goes on" in errors
    assert_all_end({int(path.name.split("-")[1]) for path in trace.glob("*-started")})
    before = executions(trace, "finished")
    kept = len(list((project.runs / "sweep" / "toy").glob("*/result.json")))
    process = start("0")
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "1 of 3 runs failed" in errors
    assert "seed=13: toy: 13 is a bad number (No result was kept" in errors
    assert f"3 runs, {kept} of them finished" in out
    after = executions(trace, "finished")
    assert set(after) == {12, 14}
    assert (after - before).total() == 2 - kept
    rows = pd.read_csv(project.runs / "sweep" / "toy" / "smoke,seed=12..14.csv")
    assert list(rows["state"]) == ["finished", "failed", "finished"]
    assert "13 is a bad number" in rows["error"][1]


def dry_run(project, *given, **options):
    usual = {
        "profile": "smoke",
        "scheduler": "",
        "workers": None,
        "retries": 3,
        "name": "",
        "table": False,
    }
    with contextlib.chdir(project.root):
        sweep_notebook("toy", parameter=list(given), dry_run=True, **{**usual, **options})


def test_a_dry_run_prints_plan_costs_and_job_script_and_starts_nothing(tmp_path, capsys):
    project = make_project(tmp_path, toy="m")
    queue = tmp_path / "queue.yaml"
    options = {
        "cores": 8,
        "memory": "32GB",
        "queue": "gpu",
        "walltime": "12:00:00",
        "job-script-prologue": ["export XDG_CACHE_HOME=/shared/cache"],
    }
    queue.write_text(json.dumps({"jobs": 40, "jobqueue": {"slurm": options}}))
    dry_run(project, "m=1,2", "seed=0..4", scheduler=f"slurm:{queue}")
    out, errors = capsys.readouterr()
    assert errors == ""
    assert "toy, profile smoke: 10 runs, 0 of them finished" in out
    assert "    m=1: 5 runs" in out
    assert "Where: slurm, at most 40 jobs" in out
    assert "Time and disk: unknown, as no such run is finished" in out
    assert "#SBATCH -p gpu" in out
    assert "#SBATCH --cpus-per-task=8" in out
    assert "#SBATCH -t 12:00:00" in out
    assert "export XDG_CACHE_HOME=/shared/cache" in out
    assert out.rpartition("--nthreads ")[2].split()[0] == "1", "a job takes one run at a time"
    assert not project.runs.exists()
    done(units_of(project, m="1", seed="0"))
    dry_run(project, "m=1,2", "seed=0..4", workers=2)
    out = capsys.readouterr().out
    assert "10 runs, 1 of them finished" in out
    assert "hours for the 9 left" in out
    assert "MB a run" in out


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)
@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ("sed=1", {}, r"unknown parameter 'sed'; did you mean 'seed'\?; the known ones are:"),
        (
            "seed=1",
            {"scheduler": "slurm"},
            "--scheduler: slurm: You must specify how much cores and",
        ),
        ("seed=1", {"workers": -1}, "workers: expected 0 or more"),
    ],
)
def test_mistakes_are_named_before_anything_runs(tmp_path, given, options, message):
    project = make_project(tmp_path, toy="m")
    with pytest.raises(ValueError, match=message):
        dry_run(project, given, **options)
    assert not project.runs.exists()
