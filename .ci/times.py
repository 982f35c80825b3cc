"""What the steps of ``.ci/run`` take, as one table that a CI host keeps: build/times.csv.

Nothing fails because it took long. The first row is a fixed loop, since processors differ: a table
of a slower one is longer in every row. CPU seconds count a step's process and all that it waits
for; where steps run side by side, their wall seconds overlap.

    python3 .ci/times.py new
    python3 .ci/times.py step book make book PROFILE=smoke
    python3 .ci/times.py commands
    python3 .ci/times.py show
"""

import csv
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "build" / "times.csv"
HEADINGS = ("step", "wall seconds", "CPU seconds", "exit code")
LOOPS = 5_000_000
"""Rounds of the fixed loop."""

_SCORES = """
import random
draw = random.Random(0)
with open("scores.csv", "w") as file:
    file.write("loss,member\\n")
    for row in range(2000):
        member = draw.random() < 0.5
        file.write(f"{draw.gauss(-0.5 if member else 0.0, 1.0)},{int(member)}\\n")
"""
_ONE_RUN = """
import numpy as np
from paperlib import MembershipScores, audit_one_run
rng = np.random.default_rng(0)
member = rng.random(100_000) < 0.5
values = rng.normal(size=100_000) + 0.5 * member
audit_one_run(MembershipScores(values[member], values[~member]), delta=1e-5)
"""


def timed(
    name: str, command: Sequence[str], folder: Path | None = None, *, quiet: bool = False
) -> int:
    """Run a command in a folder (this one for None), add a row to the table, and return its exit
    code; ``quiet`` drops what it prints, but not its errors.
    """
    output = subprocess.DEVNULL if quiet else None
    before, start = _children_seconds(), time.monotonic()
    code = subprocess.run(command, cwd=folder, stdout=output, check=False).returncode
    add(name, time.monotonic() - start, _children_seconds() - before, code)
    return code


def add(name: str, wall: float, cpu: float, code: int) -> None:
    """Add a row to the table: a step, its wall and CPU seconds, and its exit code."""
    TABLE.parent.mkdir(exist_ok=True)
    is_new = not TABLE.exists()
    with TABLE.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if is_new:
            writer.writerow(HEADINGS)
        writer.writerow((name, f"{wall:.1f}", f"{cpu:.1f}", code))


def new() -> int:
    """Begin a new table, with the fixed loop as its first row."""
    TABLE.unlink(missing_ok=True)
    cpu, start = time.process_time(), time.monotonic()
    sum(number * number % 7 for number in range(LOOPS))
    add(f"a loop of {LOOPS:,} rounds", time.monotonic() - start, time.process_time() - cpu, 0)
    return 0


def commands() -> int:
    """Time what users wait for: audits of 2,000 rows, and a bound of 100,000 scores."""
    bin_folder = ROOT / ".venv" / "bin"
    python, audit = str(bin_folder / "python"), [str(bin_folder / "paperlib"), "audit"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([python, "-c", _SCORES], cwd=folder, check=True)
        calls = {
            "audit of 2,000 rows, JSON": [*audit, "scores.csv", "--json"],
            "audit of 2,000 rows, page": [*audit, "scores.csv"],
            "audit_one_run, m = 100,000, delta 1e-5": [python, "-c", _ONE_RUN],
        }
        codes = [timed(call, words, folder, quiet=True) for call, words in calls.items()]
    return max(codes)


def show() -> int:
    """Print the table."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for step, *numbers in rows:
        cells = [text.rjust(width) for text, width in zip(numbers, widths[1:], strict=True)]
        print("  ".join([step.ljust(widths[0]), *cells]))
    return 0


def _children_seconds() -> float:
    """CPU seconds of the processes that this one waited for, and of those that they did."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(words: Sequence[str]) -> int:
    """Do what the words say, and return the exit code."""
    if len(words) > 2 and words[0] == "step":
        return timed(words[1], words[2:])
    actions = {"new": new, "commands": commands, "show": show}
    if len(words) != 1 or words[0] not in actions:
        print(__doc__, file=sys.stderr)
        return 2
    return actions[words[0]]()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
