"""`paperlib.core` and `paperlib.bounds` work where only numpy and scipy are installed, and load fast."""

import subprocess
import sys

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
TIMED = """
import time
start = time.process_time()
import numpy, scipy.optimize, scipy.special, scipy.stats
below = time.process_time()
import paperlib.core, paperlib.bounds
print((time.process_time() - below) / (below - start))
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)


def test_core_and_bounds_audit_without_pandas_torch_and_the_rest():
    done = run(BLOCK + USE)
    assert done.returncode == 0, done.stderr


def test_the_block_blocks():
    done = run(BLOCK + "import pandas")
    assert "pandas is blocked" in done.stderr


def test_core_and_bounds_add_little_to_the_time_numpy_and_scipy_take_to_load():
    """A share, since a busy machine slows both alike; pandas alone would add about a half."""
    done = run(TIMED)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.3
