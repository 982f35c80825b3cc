"""What is imported is light: no room loads more than it needs, and the whole package loads on first use."""

import functools
import subprocess
import sys

import pytest

import paperlib

BLOCK = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"{name} is blocked")

BLOCKED = {
    "torch", "torchvision", "pandas", "matplotlib", "sklearn", "pyarrow", "yaml", "typer", "tqdm", "dask",
    "papermill", "nbformat", "nbclient", "dp_accounting", "transformers", "statsmodels", "IPython",
}
sys.meta_path.insert(0, Block())
"""
USE = """
import paperlib.core, paperlib.bounds
scores = paperlib.core.MembershipScores(range(20, 60), range(40))
result = paperlib.bounds.audit_one_run(scores, design="game")
assert str(result) and result.to_dict() and result.epsilon >= 0
"""
SCIENTIFIC = "import numpy, scipy.special, pandas"
HEAVY = {"torch", "matplotlib", "sklearn", "transformers", "dask", "papermill"}
TIMED = """
import time
start = time.process_time()
import numpy, scipy.fft, scipy.optimize, scipy.special
below = time.process_time()
import {added}
print(below - start, time.process_time() - below)
"""
REPEATS = 5  # other work on the machine only ever adds to a CPU time, so that the least of a few is compared


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)


def test_core_and_bounds_audit_without_pandas_torch_and_the_rest():
    done = run(BLOCK + USE)
    assert done.returncode == 0, done.stderr


def test_the_block_blocks():
    done = run(BLOCK + "import pandas")
    assert "pandas is blocked" in done.stderr


def share_added(added: str) -> float:
    """CPU time to import `added` on top of numpy and scipy, as a share of the time these two take."""
    runs = [run(TIMED.format(added=added)) for _ in range(REPEATS)]
    assert not any(done.returncode for done in runs), runs[0].stderr
    below, above = zip(*(map(float, done.stdout.split()) for done in runs), strict=True)
    return min(above) / min(below)


def test_core_and_bounds_add_little_to_the_time_numpy_and_scipy_take_to_load():
    assert share_added("paperlib.core, paperlib.bounds") < 0.3
    assert share_added("paperlib.core, paperlib.bounds, pandas") > 0.3


@functools.cache
def cpu_seconds(*arguments: str) -> float:
    """Least CPU time of a few runs of the interpreter, which its own start is part of."""
    code = (
        "import resource, subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]], check=True, "
        "stdout=subprocess.DEVNULL); used = resource.getrusage(resource.RUSAGE_CHILDREN); "
        "print(used.ru_utime + used.ru_stime)"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
        for _ in range(REPEATS)
    ]
    return min(float(run.stdout) for run in runs)


@pytest.mark.skipif(sys.platform == "win32", reason="no CPU times of child processes")
@pytest.mark.parametrize(
    ("arguments", "share"),
    [
        (("-c", "import paperlib"), 1 / 3),
        (("-m", "paperlib", "--help"), 1 / 2),
        (("-c", "import paperlib.core, paperlib.bounds"), 1.2),
    ],
)
def test_what_is_used_first_loads_in_a_share_of_the_time_of_numpy_scipy_and_pandas(arguments, share):
    """About 0.05, 0.15 and 0.95 on a quiet machine; the packages are measured on the same machine."""
    assert cpu_seconds(*arguments) < share * cpu_seconds("-c", SCIENTIFIC)


def loaded_by(code: str) -> set[str]:
    done = run(f"{code}\nimport sys; print(*sys.modules)")
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import paperlib; paperlib.__version__; dir(paperlib)", HEAVY | {"numpy", "pandas", "scipy"}),
        ("import paperlib.cli", HEAVY | {"numpy", "pandas", "scipy"}),
        ("from paperlib import MembershipScores, audit_one_run, plan_audit", HEAVY),
        ("from paperlib import audit_scores", HEAVY),
        ("import paperlib.core, paperlib.bounds", HEAVY | {"pandas", "scipy.stats"}),
        ("from paperlib.report import show_table", HEAVY),
        ("from paperlib.running import find_project", HEAVY | {"numpy", "pandas"}),
        ("import paperlib.data", {"torch", "transformers", "sklearn"}),
        ("from paperlib.attacks import rmia; from paperlib.generators import find_identifiers", {"torch"}),
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(code, absent):
    assert not loaded_by(code) & absent


def test_every_name_of_the_package_can_be_loaded():
    assert 20 <= len(paperlib.__all__) <= 36
    for name in paperlib.__all__:
        assert getattr(paperlib, name).__name__.rpartition(".")[2] == name


def test_an_unknown_name_is_an_attribute_error():
    done = run(
        "import paperlib\ntry: paperlib.audit_everything\nexcept AttributeError as error: print(error)"
    )
    assert "audit_everything" in done.stdout
