"""What is imported is light: no room loads more than it needs, and the whole package loads on first
use.
"""

import os
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
    "torch", "torchvision", "pandas", "matplotlib", "sklearn", "pyarrow", "yaml", "typer", "tqdm",
    "dask",
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
HEAVY = {"torch", "matplotlib", "sklearn", "transformers", "dask", "papermill"}
TIMED = """
import time
times = [time.process_time()]
import numpy, scipy.fft, scipy.optimize, scipy.special
times.append(time.process_time())
import paperlib.core, paperlib.bounds
times.append(time.process_time())
import pandas
times.append(time.process_time())
print(*(time - times[0] for time in times[1:]))
"""
# other work on the machine only ever adds to a CPU time, so that the least of a few is compared
REPEATS = 2


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_core_and_bounds_audit_without_pandas_torch_and_the_rest():
    run("-W", "error", "-c", BLOCK + USE)
    with pytest.raises(AssertionError, match="pandas is blocked"):
        run("-c", BLOCK + "import pandas")


def test_core_and_bounds_add_little_to_the_time_numpy_and_scipy_take_to_load():
    runs = [map(float, run("-c", TIMED).split()) for _ in range(REPEATS)]
    below, own, with_pandas = map(min, zip(*runs, strict=True))
    assert own - below < 0.3 * below < with_pandas - below


def cpu_seconds(*arguments: str) -> float:
    """Least CPU time of a few runs of the interpreter, which its own start is part of."""

    def of_children() -> float:
        times = os.times()
        return times.children_user + times.children_system

    seconds = []
    for _ in range(REPEATS):
        start = of_children()
        run(*arguments)
        seconds.append(of_children() - start)
    return min(seconds)


@pytest.mark.skipif(sys.platform == "win32", reason="no CPU times of child processes")
def test_what_is_used_first_loads_in_a_share_of_the_time_of_numpy_scipy_and_pandas():
    """About 0.05 and 0.15 on a quiet machine; the packages are measured on the same machine."""
    packages = cpu_seconds("-c", "import numpy, scipy.special, pandas")
    assert cpu_seconds("-c", "import paperlib") < packages / 3
    assert cpu_seconds("-m", "paperlib", "--help") < packages / 2


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        (
            "import paperlib; dir(paperlib); import paperlib.cli.app",
            HEAVY | {"numpy", "pandas", "scipy"},
        ),
        ("from paperlib.reproduction.running import find_project", HEAVY | {"numpy", "pandas"}),
        ("import paperlib.core, paperlib.bounds", HEAVY | {"pandas", "scipy.stats"}),
        (
            (
                "from paperlib import audit_one_run, plan_audit; from paperlib.report import "
                "show_table"
            ),
            HEAVY,
        ),
        (
            "import numpy as np; from paperlib.audits.scores import audit_losses; "
            "str(audit_losses(np.arange(40.0), np.arange(30.0) + 20))",
            {"paperlib.io", "torch", "sklearn"},
        ),
        (
            "from paperlib import core, report; scores = core.MembershipScores([1.0], [0.0]); "
            "one = core.ScoreAudit(title='a', kind='lower bound', purpose='b', result=None, "
            "refused='c'); report.audit_report(scores, [one], title='a', facts={})",
            {"matplotlib.pyplot"},  # so that no figure stays open
        ),
        ("import paperlib.data", {"torch", "transformers", "sklearn"}),
        (
            "from paperlib.attacks import rmia; from paperlib.generators import find_identifiers",
            {"torch"},
        ),
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(code, absent):
    assert (
        not set(run("-W", "error", "-c", f"{code}\nimport sys; print(*sys.modules)").split())
        & absent
    )


@pytest.mark.parametrize(
    ("options", "absent"),
    [
        (["--json"], {"pandas", "matplotlib", "scipy.stats", "pyarrow", "torch", "sklearn"}),
        ([], {"matplotlib.pyplot", "scipy.stats", "torch", "sklearn"}),
    ],
)
def test_an_audit_of_a_csv_loads_what_its_output_needs(tmp_path, options, absent):
    table = tmp_path / "scores.csv"
    rows = [f"{score},{score > 19}" for score in range(60)]
    table.write_text("\n".join(["score,member", *rows]))
    words = ["paperlib", "audit", str(table), "--output", str(tmp_path / "a.html"), *options]
    code = f"""
import sys
from paperlib.cli.guard import main
sys.argv = {words!r}
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(*sys.modules)
"""
    if options == ["--json"]:
        code = code.replace(f"'--output', {str(tmp_path / 'a.html')!r}, ", "")
    assert not set(run("-c", code).split()) & absent


def test_every_name_of_the_package_can_be_loaded_and_no_other():
    assert 20 <= len(paperlib.__all__) <= 36
    for name in paperlib.__all__:
        assert getattr(paperlib, name).__name__.rpartition(".")[2] == name
    with pytest.raises(AttributeError, match="audit_everything"):
        _ = paperlib.audit_everything
