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
import paperlib.core, paperlib.bounds
print(time.process_time() - start)
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)


def test_core_and_bounds_audit_without_pandas_torch_and_the_rest():
    done = run(BLOCK + USE)
    assert done.returncode == 0, done.stderr


def test_the_block_blocks():
    done = run(BLOCK + "import pandas")
    assert "pandas is blocked" in done.stderr


def test_core_and_bounds_load_in_under_a_second():
    """The quickest of up to five: other work on the machine can only make them slower."""
    seconds = []
    while len(seconds) < 5 and min(seconds, default=1) >= 1:
        done = run(TIMED)
        assert done.returncode == 0, done.stderr
        seconds.append(float(done.stdout))
    assert min(seconds) < 1
