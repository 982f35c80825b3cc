"""A test that needs too much CPU time is named, also where another process spends it; with
`--limit-times` it fails, and so does a suite.
"""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
SPEND = "import time\nwhile time.process_time() < start + 0.3: pass"
TESTS = f"""
import subprocess, sys, time

def test_own():
    start = time.process_time()
    exec({SPEND!r}, {{"start": start}})

def test_of_a_child():
    subprocess.run([sys.executable, "-c", "start = 0.1\\n" + {SPEND!r}], check=True)
"""


@pytest.mark.parametrize(
    ("one", "every", "loop", "failed", "code"),
    [(0.2, 60, 60, 2, 1), (20, 0.3, 60, 0, 1), (0.2, 0.3, 1e-4, 0, 0)],
)
def test_cpu_time_is_limited(pytester: pytest.Pytester, one, every, loop, failed, code) -> None:
    """The last case is a slow processor, for which the limits are longer.

    Without `--limit-times` the same tests are named, and pass.
    """
    source = (Path(__file__).parents[1] / "conftest.py").read_text(encoding="utf-8")
    lines = [
        f"MOST_SECONDS = {one}"
        if line.startswith("MOST_SECONDS =")
        else f"MOST_SECONDS_OF_ALL = {every}"
        if line.startswith("MOST_SECONDS_OF_ALL =")
        else f"LOOP_SECONDS = {loop}"
        if line.startswith("LOOP_SECONDS =")
        else line
        for line in source.splitlines()
    ]
    pytester.makeconftest("\n".join(lines))
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--limit-times")
    result.assert_outcomes(passed=2 - failed, failed=failed)
    assert result.ret == code
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=2)
    assert result.ret == 0
    assert len([line for line in result.outlines if "s is the limit" in line]) == failed
